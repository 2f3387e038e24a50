//! How the disk is offered: over NBD, or as a file.

use super::metrics::CountClients;
use crate::failure::Failure;
use crate::resident::cannot;
use crate::resident::leave::leave;
use crate::resident::signals::Signals;
use flashpath::run::shared::SharedDevice;
use flashpath_fuse::Mounted;
use flashpath_nbd::{Address, Limits, ListenError, Listener, Server};
use std::path::Path;
use std::sync::Arc;

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
        let server =
            Server::start(listener, device, Limits::default()).map_err(|error| cannot("start a thread", error))?;
        Ok(Export::Nbd(server, address))
    }

    /// Offers it as a file. `on_end` is called when somebody unmounts it.
    pub fn file(
        place: &Path,
        device: Arc<SharedDevice>,
        on_end: impl FnOnce() + Send + 'static,
    ) -> Result<Export, Failure> {
        let mounted = Mounted::one_file(device, place, on_end)?;
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
        match self {
            Export::Nbd(server, _) => {
                server.stop();
                Ok(())
            }
            Export::File(mounted, _) => leave(mounted, signals),
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
