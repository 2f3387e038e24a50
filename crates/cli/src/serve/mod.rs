//! `flashpath serve`: a path as a disk that other programs use.
//!
//! | file | what it is |
//! |---|---|
//! | `mod` | the command line, and the order in which all begins and ends |
//! | `export` | how the disk is offered: over NBD, or as a file |
//! | `watch`, `figures` | what is told on standard error |
//! | `metrics`, `metrics_page` | the same for Prometheus |

mod device;
mod export;
mod figures;
mod metrics;
mod metrics_page;
mod watch;

use crate::failure::Failure;
use crate::resident::farewell::Farewell;
use crate::resident::heard::Heard;
use crate::resident::signals::Signals;
use crate::resident::stay::Stay;
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

/// Serve a path as a disk that other programs use, until an interrupt or SIGTERM
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("export").required(true))]
#[command(mut_arg("background", |option| option.help(BACKGROUND)))]
pub struct Serve {
    /// The path, from top to bottom
    #[arg(value_name = "PATH")]
    path: String,
    /// As an NBD export, on a Unix socket of this name or on this loopback port
    #[arg(long, value_name = "SOCKET|127.0.0.1:PORT", value_parser = address, group = "export")]
    nbd: Option<Address>,
    /// As one file, such as for losetup: DIR becomes a mount point, and is made if it is not there
    #[arg(long, value_name = "DIR/NAME", group = "export")]
    file: Option<PathBuf>,
    /// Answer when the device would be done by its timing model, and not before
    #[arg(long)]
    pace: bool,
    /// Tell what passes every so many seconds, on standard error: requests, write amplification, and by content the blocks
    /// received and copied
    #[arg(long, value_name = "SECONDS", value_parser = seconds, conflicts_with = "background")]
    stats: Option<Duration>,
    /// Tell the same, and more, to Prometheus, which asks for /metrics on a Unix socket of this name or on this loopback port
    #[arg(long, value_name = "SOCKET|127.0.0.1:PORT", value_parser = address)]
    metrics: Option<Address>,
    /// Refuse whatever would change the device
    #[arg(long)]
    read_only: bool,
    #[command(flatten)]
    stay: Stay,
}

/// What `--background` is about here.
const BACKGROUND: &str = "Return as soon as the disk can be used; the number of the process that serves it is printed";

fn address(text: &str) -> Result<Address, String> {
    Address::read(text).map_err(|error| error.to_string())
}

impl Serve {
    /// Serves, until it is told to end.
    pub fn run(self) -> Result<(), Failure> {
        let Some(signals) = self.stay.begin()? else { return Ok(()) };
        let device = device::open(&self.path, self.stay.seed)?;
        let sharing = Sharing { read_only: self.read_only, paced: self.pace };
        let device = SharedDevice::new(device, sharing, clock()).map_err(|error| cannot("serve it", error))?;
        let device = Arc::new(device);
        // What was found on the way is told before it is ready: in the background nobody listens later.
        let heard = Arc::new(Heard::default());
        heard.tell(&device.account()?);
        // Who only reads does not want blocks to be moved, either.
        let diligent = (!self.read_only).then(|| Arc::clone(&device));
        let mut farewell = Farewell::default();
        let served = worker::beside(diligent, || self.serve(&device, &heard, &signals, &mut farewell));
        // Also where nothing was served in the end: what the device did by itself is kept.
        let closed = device.close().map_err(|error| cannot("close the device", error));
        if let Ok(account) = device.account() {
            heard.tell(&account);
        }
        let ended = served.and(closed.map(|_| ()));
        // The images are let go before anybody is told.
        drop(device);
        farewell.tell(&ended);
        ended
    }

    fn serve(
        &self,
        device: &Arc<SharedDevice>,
        heard: &Arc<Heard>,
        signals: &Signals,
        farewell: &mut Farewell,
    ) -> Result<(), Failure> {
        // What can be refused comes before the disk can be used.
        let metrics = self.metrics.as_ref().map(Listener::bind).transpose()?;
        let export = match (&self.nbd, &self.file) {
            (Some(address), _) => Export::nbd(address, Arc::clone(device))?,
            (_, Some(place)) => Export::file(place, Arc::clone(device), signals.ender())?,
            (None, None) => return Err(Failure::input("write --nbd or --file", None)),
        };
        if let Export::File(mounted, _) = &export {
            farewell.offer(mounted.directory());
        }
        let size = human_size(device.size_bytes() as f64);
        let mut said = format!("serving {} ({size}) at {}\n", self.path, export.place());
        let metrics = match metrics {
            Some(listener) => {
                said.push_str(&format!("its figures are at {}\n", Metrics::place(listener.address())));
                Some(Metrics::start(listener, Arc::clone(device), export.count_clients())?)
            }
            None => None,
        };
        let watched = WatchedDevice::new(Arc::clone(device), Arc::clone(heard));
        let watch = Watch::start(watched, device.news(), self.stats)?;
        let waited = self.stay.wait(&said, signals);
        let ended = export.end(signals);
        farewell.close();
        watch.stop();
        drop(metrics);
        waited.and(ended)
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Failure {
        Failure::failed(error.to_string())
    }
}
