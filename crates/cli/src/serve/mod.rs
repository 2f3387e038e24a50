//! `flashpath serve`: a path as a disk for other programs, or several as an NVMe subsystem or as disks of virtual machines.
//!
//! | file | role |
//! |---|---|
//! | `mod` | the command line, start and shutdown |
//! | `device` | opens the devices |
//! | `export` | the export over NBD, as a file, over NVMe/TCP, or over vhost-user |
//! | `watch`, `figures` | the messages and figures on standard error |
//! | `metrics`, `metrics_page` | the same for Prometheus |

mod device;
mod export;
mod figures;
mod metrics;
mod metrics_page;
mod watch;

use crate::failure::Failure;
use crate::resident::exit_notifier::ExitNotifier;
use crate::resident::faults::Faults;
use crate::resident::process::Process;
use crate::resident::signals::Signals;
use crate::resident::warnings::PrintedWarnings;
use crate::resident::watch::Watch;
use crate::resident::worker::Workers;
use crate::resident::{cannot, seconds};
use export::{Export, NvmeOptions};
use flashpath::run::shared::{ServeError, ServedDevice, SharedDevice, Sharing};
use flashpath::units::human_size;
use flashpath_nbd::{Address, Listener};
use flashpath_nvme::Drive;
use metrics::Metrics;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use watch::WatchedDevices;

/// Serve a path as a disk for other programs, until an interrupt or SIGTERM
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("export").required(true))]
#[command(mut_arg("background", |option| option.help(BACKGROUND)))]
pub struct Serve {
    /// The path, from top to bottom; several with --nvme or --vhost-user
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<String>,
    /// Export over NBD, on a Unix socket of this name or on this loopback port
    #[arg(long, value_name = "SOCKET|127.0.0.1:PORT", value_parser = address, group = "export")]
    nbd: Option<Address>,
    /// Export as one file, such as for losetup; DIR becomes a mount point, and is created if missing
    #[arg(long, value_name = "DIR/NAME", group = "export")]
    file: Option<PathBuf>,
    /// Export over NVMe/TCP, each path a namespace (zns paths are zoned ones), on this loopback address or on a Unix socket of
    /// this name
    #[arg(long, value_name = "127.0.0.1:PORT|SOCKET", group = "export")]
    nvme: Option<String>,
    /// Export as a virtio disk to a virtual machine (QEMU's vhost-user-blk), on a Unix socket of this name; of several paths, each has
    /// the option of the same place
    #[arg(long, value_name = "SOCKET", value_parser = socket, group = "export", action = clap::ArgAction::Append)]
    vhost_user: Vec<PathBuf>,
    /// Let --nvme listen on any address: whoever reaches it may read and write, and nothing is encrypted
    #[arg(long, conflicts_with_all = ["nbd", "file", "vhost_user"])]
    any_address: bool,
    /// The qualified name of the NVMe subsystem; without it, one that follows from the address and the paths
    #[arg(long, value_name = "NQN", conflicts_with_all = ["nbd", "file", "vhost_user"])]
    nqn: Option<String>,
    /// Delay answers to the completion times of the device's timing model
    #[arg(long)]
    pace: bool,
    /// Print figures at this interval on standard error: requests, write amplification, and blocks received and copied
    /// by content
    #[arg(long, value_name = "SECONDS", value_parser = seconds, conflicts_with = "background")]
    stats: Option<Duration>,
    /// Serve the figures to Prometheus as /metrics, on a Unix socket of this name or on this loopback port
    #[arg(long, value_name = "SOCKET|127.0.0.1:PORT", value_parser = address)]
    metrics: Option<Address>,
    /// Refuse writes and discards
    #[arg(long)]
    read_only: bool,
    /// The seed of all randomness
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    process: Process,
}

/// The help of `--background`.
const BACKGROUND: &str = "Return when the disk is ready; print the number of the serving process";

fn address(text: &str) -> Result<Address, String> {
    Address::read(text).map_err(|error| error.to_string())
}

fn socket(text: &str) -> Result<PathBuf, String> {
    match Address::read(text) {
        Ok(Address::Unix(path)) => Ok(path),
        Ok(Address::Tcp(_)) => {
            Err("a virtual machine shares its memory over a Unix socket: write the name of one".to_string())
        }
        Err(error) => Err(error.to_string()),
    }
}

impl Serve {
    /// Serves until a signal or an unmount.
    pub fn run(self) -> Result<(), Failure> {
        let Some(signals) = self.process.begin()? else { return Ok(()) };
        let nvme = self.nvme_address()?;
        self.check_number_of_paths()?;
        let sharing = Sharing { read_only: self.read_only, paced: self.pace };
        let drives = device::open(&self.paths, nvme.is_some(), self.seed, sharing)?;
        // Warnings of opening are printed before the disk is ready: in the background they would be lost later.
        let warnings = Arc::new(PrintedWarnings::default());
        for drive in &drives {
            warnings.print_new(&drive.account()?);
        }
        let mut exit_notifier = ExitNotifier::default();
        let served = self.start_workers(&drives).and_then(|workers| {
            let served = self.serve(&drives, nvme.as_ref(), &warnings, &signals, &mut exit_notifier);
            drop(workers);
            served
        });
        let mut ended = served;
        for drive in &drives {
            // Also after a failed start: the device's own changes are kept.
            let closed = drive.close().map_err(|error| cannot("close the device", error));
            if let Ok(account) = drive.account() {
                warnings.print_new(&account);
            }
            ended = ended.and(closed.map(|_| ()));
        }
        // The images are released before the exit status is sent.
        drop(drives);
        exit_notifier.notify(&ended);
        ended
    }

    fn check_number_of_paths(&self) -> Result<(), Failure> {
        let (paths, sockets) = (self.paths.len(), self.vhost_user.len());
        if sockets > 0 && sockets != paths {
            let message = format!("{paths} paths, and --vhost-user for {sockets}");
            let help = "give the option once for each path, in their order";
            return Err(Failure::input(message, Some(help.into())));
        }
        if paths > 1 && sockets == 0 && self.nvme.is_none() {
            let help = "serve each path by a program of its own, or all with --nvme or --vhost-user";
            return Err(Failure::input("only --nvme and --vhost-user export several paths", Some(help.into())));
        }
        Ok(())
    }

    /// The address of `--nvme`: of this machine alone, unless the user allows others.
    fn nvme_address(&self) -> Result<Option<Address>, Failure> {
        let Some(text) = &self.nvme else { return Ok(None) };
        if self.any_address {
            return Ok(Some(Address::read_any(text)?));
        }
        let is_open = matches!(Address::read_any(text), Ok(Address::Tcp(address)) if !address.ip().is_loopback());
        if is_open {
            let message = format!("{text} would be open to the network");
            let help = "write 127.0.0.1:PORT; or add --any-address if everybody there may read and write";
            return Err(Failure::input(message, Some(help.into())));
        }
        Ok(Some(Address::read(text)?))
    }

    /// Starts the background work of the devices of blocks; one for reading only gets none.
    fn start_workers(&self, drives: &[Drive]) -> Result<Vec<Workers<ServedDevice>>, Failure> {
        let works = drives.iter().filter(|_| !self.read_only).filter_map(|drive| match drive {
            Drive::Blocks(device) => Some(Workers::start(Arc::clone(device))),
            // A device of zones has no work of its own.
            Drive::Zones(_) => None,
        });
        works.collect()
    }

    fn serve(
        &self,
        drives: &[Drive],
        nvme: Option<&Address>,
        warnings: &Arc<PrintedWarnings>,
        signals: &Signals,
        exit_notifier: &mut ExitNotifier,
    ) -> Result<(), Failure> {
        // Fail before the disk is ready.
        let metrics = self.metrics.as_ref().map(Listener::bind).transpose()?;
        let faults = Arc::new(Faults::new(signals.stopper()));
        let disks: Vec<_> = drives.iter().zip(&self.paths).filter_map(disk).collect();
        let export = match (nvme, &self.nbd, &self.file, drives) {
            _ if !self.vhost_user.is_empty() => {
                Export::vhost_user(&self.vhost_user, &disks, &faults.notices("a vhost-user server"))?
            }
            (Some(address), ..) => {
                let options = NvmeOptions { address, name: self.nqn.as_deref(), paths: &self.paths };
                Export::nvme(&options, drives, faults.notices("the NVMe server"))?
            }
            (_, Some(address), _, [Drive::Blocks(device)]) => {
                Export::nbd(address, Arc::clone(device), faults.notices("the NBD server"))?
            }
            (_, _, Some(place), [Drive::Blocks(device)]) => Export::file(place, Arc::clone(device), signals.stopper())?,
            _ => return Err(Failure::input("give --nbd, --file, --nvme or --vhost-user", None)),
        };
        if let Export::File(mounted, _) = &export {
            exit_notifier.listen(mounted.directory());
        }
        let sizes = drives.iter().zip(&self.paths);
        let each = sizes.map(|(drive, path)| format!("{path} ({})", human_size(drive.size_bytes() as f64)));
        let mut ready = format!("serving {} at {}\n", each.collect::<Vec<_>>().join(", "), export.place());
        let metrics = match metrics {
            Some(listener) => {
                ready.push_str(&format!("metrics at {}\n", Metrics::place(listener.address())));
                let notices = faults.notices("--metrics");
                Some(Metrics::start(listener, drives.to_vec(), export.count_clients(), notices)?)
            }
            None => None,
        };
        let watched = WatchedDevices::new(drives.to_vec(), Arc::clone(warnings));
        let news = drives.first().map(Drive::news).unwrap_or_default();
        let watch = Watch::start(watched, news, self.stats)?;
        let waited = self.process.wait(&ready, signals);
        let ended = export.end(signals);
        exit_notifier.close();
        watch.stop();
        drop(metrics);
        waited.and(ended).and(faults.failure())
    }
}

/// A device of blocks, and its path.
fn disk<'d>((drive, path): (&'d Drive, &'d String)) -> Option<(&'d Arc<SharedDevice>, &'d str)> {
    match drive {
        Drive::Blocks(device) => Some((device, path)),
        Drive::Zones(_) => None,
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Failure {
        Failure::failed(error.to_string())
    }
}
