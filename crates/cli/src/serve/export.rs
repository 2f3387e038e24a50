//! The export of the disk: over NBD, as a file, or of several as an NVMe subsystem or as disks of virtual machines.

use super::metrics::CountClients;
use crate::failure::Failure;
use crate::resident::cannot;
use crate::resident::signals::Signals;
use crate::resident::unmount::unmount;
use flashpath::run::shared::SharedDevice;
use flashpath_fuse::Mounted;
use flashpath_nbd::{Address, Limits, ListenError, Listener, Notices, Server, Traffic};
use flashpath_nvme::{Drive, Limits as NvmeLimits, Server as NvmeServer, Subsystem, SubsystemError};
use flashpath_vhost::Server as VhostServer;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An exported disk, or several.
pub enum Export {
    /// Over NBD, at this address.
    Nbd(Server, Address),
    /// As this file.
    File(Mounted, String),
    /// Over NVMe/TCP, at this place, with the command that connects a host.
    Nvme(NvmeServer, String),
    /// Each as a virtio disk, at these sockets.
    VhostUser(Vec<VhostServer>, String),
}

/// The options of `--nvme`.
pub struct NvmeOptions<'o> {
    /// The address to listen on.
    pub address: &'o Address,
    /// The name of the subsystem, if the user has given one.
    pub name: Option<&'o str>,
    /// The paths of the namespaces.
    pub paths: &'o [String],
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

    /// Exports the devices as the namespaces of an NVMe subsystem. `notices` hears what the user is to know at once.
    pub fn nvme(options: &NvmeOptions<'_>, drives: &[Drive], notices: Notices) -> Result<Export, Failure> {
        let listener = Listener::bind(options.address)?;
        let address = listener.address().clone();
        let what = format!("{} at {address}", options.paths.join(" "));
        let subsystem = Arc::new(Subsystem::new(options.name, &what, drives.to_vec())?);
        let name = subsystem.name().to_string();
        let server = NvmeServer::start(listener, subsystem, NvmeLimits::default(), notices);
        let server = server.map_err(|error| cannot("start a thread", error))?;
        let place = match &address {
            Address::Unix(path) => format!("nvme+unix://{} as {name}", path.display()),
            Address::Tcp(address) => {
                let (host, port) = (address.ip(), address.port());
                format!("nvme://{address}: nvme connect -t tcp -a {host} -s {port} -n {name}")
            }
        };
        Ok(Export::Nvme(server, place))
    }

    /// Exports each of these devices, with their paths, as a virtio disk on a socket of its own. `notices` hears messages for
    /// the user.
    pub fn vhost_user(
        sockets: &[PathBuf],
        disks: &[(&Arc<SharedDevice>, &str)],
        notices: &Notices,
    ) -> Result<Export, Failure> {
        assert_eq!(sockets.len(), disks.len(), "each disk has its socket");
        let serve = |(socket, (device, path)): (&PathBuf, &(&Arc<SharedDevice>, &str))| {
            let listener = Listener::bind(&Address::Unix(socket.clone()))?;
            // The serial number stays the same when the server is started again.
            let name = format!("{path} at {}", socket.display());
            let server = VhostServer::start(listener, Arc::clone(device), &name, Arc::clone(notices));
            server.map_err(|error| cannot("start a thread", error))
        };
        let servers = sockets.iter().zip(disks).map(serve).collect::<Result<Vec<_>, Failure>>()?;
        let places: Vec<String> = sockets.iter().map(|socket| format!("vhost-user:{}", socket.display())).collect();
        Ok(Export::VhostUser(servers, places.join(", ")))
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

    /// The address for clients: an NBD URI, a file name, or the command that connects a host.
    pub fn place(&self) -> String {
        match self {
            Export::Nbd(_, Address::Unix(path)) => format!("nbd+unix:///?socket={}", path.display()),
            Export::Nbd(_, Address::Tcp(address)) => format!("nbd://{address}"),
            Export::File(_, place) | Export::Nvme(_, place) | Export::VhostUser(_, place) => place.clone(),
        }
    }

    /// A function that counts the clients.
    pub fn count_clients(&self) -> CountClients {
        match self {
            Export::Nbd(server, _) => {
                let traffic = server.traffic();
                Box::new(move || Some(("nbd_clients", traffic())))
            }
            Export::Nvme(server, _) => {
                let traffic = server.traffic();
                Box::new(move || Some(("nvme_queues", traffic())))
            }
            Export::VhostUser(servers, _) => {
                let each: Vec<_> = servers.iter().map(VhostServer::traffic).collect();
                Box::new(move || {
                    Some(("vhost_user_clients", each.iter().map(|traffic| traffic()).fold(Traffic::default(), sum)))
                })
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
            Export::Nvme(server, _) => {
                server.stop();
                Ok(())
            }
            Export::VhostUser(servers, _) => {
                servers.into_iter().for_each(VhostServer::stop);
                Ok(())
            }
            Export::File(mounted, _) => unmount(mounted, signals),
        }
    }
}

fn sum(all: Traffic, one: Traffic) -> Traffic {
    Traffic {
        connected: all.connected + one.connected,
        accepted: all.accepted + one.accepted,
        turned_away: all.turned_away + one.turned_away,
        broken: all.broken + one.broken,
    }
}

impl From<SubsystemError> for Failure {
    fn from(error: SubsystemError) -> Failure {
        Failure::input(error.to_string(), None)
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
