//! `flashpath serve`: a path as a disk for other programs.
//!
//! | file | role |
//! |---|---|
//! | `mod` | the command line, start and shutdown |
//! | `export` | the export over NBD or as a file |
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
use crate::resident::worker;
use crate::resident::{cannot, clock, seconds};
use export::Export;
use flashpath::run::shared::{ServeError, SharedDevice, Sharing};
use flashpath::units::human_size;
use flashpath_nbd::{Address, Listener};
use metrics::Metrics;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use watch::WatchedDevice;

/// Serve a path as a disk for other programs, until an interrupt or SIGTERM
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("export").required(true))]
#[command(mut_arg("background", |option| option.help(BACKGROUND)))]
pub struct Serve {
    /// The path, from top to bottom
    #[arg(value_name = "PATH")]
    path: String,
    /// Export over NBD, on a Unix socket of this name or on this loopback port
    #[arg(long, value_name = "SOCKET|127.0.0.1:PORT", value_parser = address, group = "export")]
    nbd: Option<Address>,
    /// Export as one file, such as for losetup; DIR becomes a mount point, and is created if missing
    #[arg(long, value_name = "DIR/NAME", group = "export")]
    file: Option<PathBuf>,
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

impl Serve {
    /// Serves until a signal or an unmount.
    pub fn run(self) -> Result<(), Failure> {
        let Some(signals) = self.process.begin()? else { return Ok(()) };
        let device = device::open(&self.path, self.seed)?;
        let sharing = Sharing { read_only: self.read_only, paced: self.pace };
        let device = SharedDevice::new(device, sharing, clock()).map_err(|error| cannot("serve the device", error))?;
        let device = Arc::new(device);
        // Warnings of opening are printed before the disk is ready: in the background they would be lost later.
        let warnings = Arc::new(PrintedWarnings::default());
        warnings.print_new(&device.account()?);
        // A read-only device gets no background work.
        let worker_target = (!self.read_only).then(|| Arc::clone(&device));
        let mut exit_notifier = ExitNotifier::default();
        let served =
            worker::run_with_workers(worker_target, || self.serve(&device, &warnings, &signals, &mut exit_notifier));
        // Also after a failed start: the device's own changes are kept.
        let closed = device.close().map_err(|error| cannot("close the device", error));
        if let Ok(account) = device.account() {
            warnings.print_new(&account);
        }
        let ended = served.and(closed.map(|_| ()));
        // The images are released before the exit status is sent.
        drop(device);
        exit_notifier.notify(&ended);
        ended
    }

    fn serve(
        &self,
        device: &Arc<SharedDevice>,
        warnings: &Arc<PrintedWarnings>,
        signals: &Signals,
        exit_notifier: &mut ExitNotifier,
    ) -> Result<(), Failure> {
        // Fail before the disk is ready.
        let metrics = self.metrics.as_ref().map(Listener::bind).transpose()?;
        let faults = Arc::new(Faults::new(signals.stopper()));
        let export = match (&self.nbd, &self.file) {
            (Some(address), _) => Export::nbd(address, Arc::clone(device), faults.notices("the NBD server"))?,
            (_, Some(place)) => Export::file(place, Arc::clone(device), signals.stopper())?,
            (None, None) => return Err(Failure::input("give --nbd or --file", None)),
        };
        if let Export::File(mounted, _) = &export {
            exit_notifier.listen(mounted.directory());
        }
        let size = human_size(device.size_bytes() as f64);
        let mut ready = format!("serving {} ({size}) at {}\n", self.path, export.place());
        let metrics = match metrics {
            Some(listener) => {
                ready.push_str(&format!("metrics at {}\n", Metrics::place(listener.address())));
                Some(Metrics::start(listener, Arc::clone(device), export.count_clients(), faults.notices("--metrics"))?)
            }
            None => None,
        };
        let watched = WatchedDevice::new(Arc::clone(device), Arc::clone(warnings));
        let watch = Watch::start(watched, device.news(), self.stats)?;
        let waited = self.process.wait(&ready, signals);
        let ended = export.end(signals);
        exit_notifier.close();
        watch.stop();
        drop(metrics);
        waited.and(ended).and(faults.failure())
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Failure {
        Failure::failed(error.to_string())
    }
}
