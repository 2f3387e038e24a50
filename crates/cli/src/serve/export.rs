//! The export of the disk: over NBD, or as a file.

use super::metrics::CountClients;
use crate::failure::Failure;
use crate::resident::cannot;
use crate::resident::signals::Signals;
use crate::resident::unmount::unmount;
use flashpath::run::shared::SharedDevice;
use flashpath_fuse::Mounted;
use flashpath_nbd::{Address, Limits, ListenError, Listener, Notices, Server};
use std::path::Path;
use std::sync::Arc;

/// An exported disk.
pub enum Export {
    /// Over NBD, at this address.
    Nbd(Server, Address),
    /// As this file.
    File(Mounted, String),
}

impl Export {
    /// Exports the device over NBD. `notices` hears what the user is to know at once.
    pub fn nbd(address: &Address, device: Arc<SharedDevice>, notices: Notices) -> Result<Export, Failure> {
        let listener = Listener::bind(address)?;
        let address = listener.address().clone();
        let server = Server::start(listener, device, Limits::default(), notices);
        let server = server.map_err(|error| cannot("start a thread", error))?;
        Ok(Export::Nbd(server, address))
    }

    /// Exports the device as a file. An unmount calls `on_end`.
    pub fn file(
        place: &Path,
        device: Arc<SharedDevice>,
        on_end: impl FnOnce() + Send + 'static,
    ) -> Result<Export, Failure> {
        let mounted = Mounted::one_file(device, place, on_end)?;
        Ok(Export::File(mounted, place.display().to_string()))
    }

    /// The address for clients: an NBD URI or a file name.
    pub fn place(&self) -> String {
        match self {
            Export::Nbd(_, Address::Unix(path)) => format!("nbd+unix:///?socket={}", path.display()),
            Export::Nbd(_, Address::Tcp(address)) => format!("nbd://{address}"),
            Export::File(_, place) => place.clone(),
        }
    }

    /// A function that counts the clients.
    pub fn count_clients(&self) -> CountClients {
        match self {
            Export::Nbd(server, _) => {
                let traffic = server.traffic();
                Box::new(move || Some(traffic()))
            }
            Export::File(..) => Box::new(|| None),
        }
    }

    /// Ends the export cleanly: answers the received requests. While a file is in use, waits until a second signal.
    pub fn end(self, signals: &Signals) -> Result<(), Failure> {
        match self {
            Export::Nbd(server, _) => {
                server.stop();
                Ok(())
            }
            Export::File(mounted, _) => unmount(mounted, signals),
        }
    }
}

impl From<ListenError> for Failure {
    fn from(error: ListenError) -> Failure {
        let help = match &error {
            ListenError::Taken(_) => Some("end that server, or choose another name".to_string()),
            ListenError::Occupied(_) => Some("remove it, or choose another name".to_string()),
            ListenError::Address { .. } | ListenError::Io { .. } => None,
        };
        Failure::input(error.to_string(), help)
    }
}
