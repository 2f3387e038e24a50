//! How the disk is offered: over NBD, or as a file.

use super::metrics::CountClients;
use super::signals::Signals;
use super::{cannot, tell};
use crate::failure::Failure;
use flashpath::run::shared::SharedDevice;
use flashpath_fuse::{Leaving, MountError, Mounted};
use flashpath_nbd::{Address, ListenError, Listener, Server};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How often it is tried to unmount what is in use.
const PAUSE: Duration = Duration::from_millis(100);

/// A disk that is offered.
pub enum Export {
    /// Over NBD, at this address.
    Nbd(Server, Address),
    /// As this file.
    File(Mounted, String),
}

impl Export {
    /// Offers it over NBD.
    pub fn nbd(address: &Address, device: Arc<SharedDevice>) -> Result<Export, Failure> {
        let listener = Listener::bind(address)?;
        let address = listener.address().clone();
        let server = Server::start(listener, device).map_err(|error| cannot("start a thread", error))?;
        Ok(Export::Nbd(server, address))
    }

    /// Offers it as a file. `on_end` is called when somebody unmounts it.
    pub fn file(
        place: &Path,
        device: Arc<SharedDevice>,
        on_end: impl FnOnce() + Send + 'static,
    ) -> Result<Export, Failure> {
        let mounted = Mounted::mount(device, place, on_end)?;
        Ok(Export::File(mounted, place.display().to_string()))
    }

    /// Where it is, as clients write it.
    pub fn place(&self) -> String {
        match self {
            Export::Nbd(_, Address::Unix(path)) => format!("nbd+unix:///?socket={}", path.display()),
            Export::Nbd(_, Address::Loopback(address)) => format!("nbd://{address}"),
            Export::File(_, place) => place.clone(),
        }
    }

    /// What counts its clients.
    pub fn count_clients(&self) -> CountClients {
        match self {
            Export::Nbd(server, _) => {
                let traffic = server.traffic();
                Box::new(move || Some(traffic()))
            }
            Export::File(..) => Box::new(|| None),
        }
    }

    /// Takes it back in good order: requests that have arrived are answered. A file that is in use is waited for, unless
    /// a second signal insists.
    pub fn end(self, signals: &Signals) -> Result<(), Failure> {
        let mut mounted = match self {
            Export::Nbd(server, _) => {
                server.stop();
                return Ok(());
            }
            Export::File(mounted, _) => mounted,
        };
        let mut is_told = false;
        loop {
            match mounted.leave() {
                Leaving::Left => return Ok(()),
                Leaving::Failed(error) => {
                    return Err(cannot(&format!("unmount {}", mounted.directory().display()), error));
                }
                Leaving::Busy if signals.were_two() => {
                    mounted.abandon();
                    return Err(Failure::Quiet(130));
                }
                Leaving::Busy if is_told => {}
                Leaving::Busy => {
                    is_told = true;
                    let users = flashpath_kernel::users_of(mounted.directory());
                    let place = mounted.directory().display();
                    tell(&format!("{place} is in use{users}: it ends when that does, or at a second signal"));
                }
            }
            signals.wait_at_most(PAUSE);
        }
    }
}

impl From<ListenError> for Failure {
    fn from(error: ListenError) -> Failure {
        let help = match &error {
            ListenError::Taken(_) => Some("end that server, or take another name".to_string()),
            ListenError::Occupied(_) => Some("remove it, or take another name".to_string()),
            ListenError::Address { .. } | ListenError::Io { .. } => None,
        };
        Failure::input(error.to_string(), help)
    }
}

impl From<MountError> for Failure {
    fn from(error: MountError) -> Failure {
        let help = match &error {
            MountError::Name(_) => Some("write the mount point and the file's name, such as mnt/disk".to_string()),
            MountError::NotEmpty(_) => Some("take an empty directory, or one that is not there yet".to_string()),
            MountError::Directory { .. } => None,
            MountError::Mount { .. } => {
                Some("it needs /dev/fuse, and without root the program fusermount3 (apt-get install fuse3)".to_string())
            }
        };
        Failure::input(error.to_string(), help)
    }
}
