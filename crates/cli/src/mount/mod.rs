//! `flashpath mount`: a path with a file system of this program on top, as a directory of this machine.
//!
//! | file | what it is |
//! |---|---|
//! | `mod` | the command line, and the order in which all begins and ends |
//! | `memory` | how much memory it may take |
//! | `watch` | the figures of `--stats` |

mod memory;
mod watch;

use crate::failure::Failure;
use crate::resident::leave::leave;
use crate::resident::signals::Signals;
use crate::resident::stay::Stay;
use crate::resident::watch::Watch;
use crate::resident::worker;
use crate::resident::{cannot, clock, seconds, tell};
use flashpath::run::{Path, open_file_system};
use flashpath_fuse::{Caching, Mounted, SharedVolume, VolumeSharing, Wishes};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use watch::WatchedVolume;

/// Mount a path with sfs on top, until an interrupt, SIGTERM, SIGHUP or `umount DIR`
#[derive(clap::Args)]
#[command(mut_arg("background", |option| option.help(BACKGROUND)))]
pub struct Mount {
    /// The path, from top to bottom
    #[arg(value_name = "PATH")]
    path: String,
    /// The mount point: an empty directory, made if it is not there
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Answer when the device would be done by its timing model, and not before
    #[arg(long)]
    pace: bool,
    /// Let other users in, as far as permissions go; with root they always are
    #[arg(long)]
    allow_other: bool,
    /// Refuse whatever would change the volume
    #[arg(long)]
    read_only: bool,
    /// Never note when a file was read
    #[arg(long)]
    noatime: bool,
    /// Let writes wait in the kernel's page cache, and come in larger pieces
    #[arg(long)]
    writeback: bool,
    /// Tell what passes every so many seconds, on standard error
    #[arg(long, value_name = "SECONDS", value_parser = seconds, conflicts_with = "background")]
    stats: Option<Duration>,
    #[command(flatten)]
    stay: Stay,
}

/// What `--background` is about here.
const BACKGROUND: &str = "Return as soon as it is mounted; the number of the process that serves it is printed";

impl Mount {
    /// Mounts, until it is told to end.
    pub fn run(self) -> Result<(), Failure> {
        let Some(signals) = self.stay.begin()? else { return Ok(()) };
        let path = Path::read(&self.path)?.with_machine_memory(memory::machine_share());
        let (clock, wall_origin_ns) = (clock(), wall_time_ns());
        let volume = open_file_system(&path, self.stay.seed, wall_origin_ns, self.read_only)?;
        let sharing = VolumeSharing {
            read_only: self.read_only,
            paced: self.pace,
            no_access_times: self.noatime,
            wall_origin_ns,
        };
        let volume = Arc::new(SharedVolume::new(volume, sharing, clock, Box::new(tell)));
        // Who only reads does not want segments to be cleaned, either.
        let diligent = (!self.read_only).then(|| Arc::clone(&volume));
        let served = worker::beside(diligent, || self.serve(&volume, &signals));
        // Also where nothing was mounted in the end: what opening it has repaired is kept.
        let unmounted = volume.unmount().map_err(|error| cannot("end the volume in good order", error));
        served.and(unmounted)
    }

    fn serve(&self, volume: &Arc<SharedVolume>, signals: &Signals) -> Result<(), Failure> {
        let caching = if self.writeback { Caching::WriteBack } else { Caching::WriteThrough };
        let wishes = Wishes { name: self.path.clone(), allow_other: self.allow_other, caching };
        let mounted = Mounted::volume(Arc::clone(volume), &self.directory, &wishes, signals.ender())?;
        let said = format!("mounted {} at {}\n", self.path, self.directory.display());
        let watch = self.stats.map(|interval| {
            let watched = WatchedVolume::new(Arc::clone(volume));
            Watch::start(watched, Some(interval))
        });
        let watch = watch.transpose()?;
        self.stay.wait(&said, signals)?;
        let left = leave(mounted, signals);
        if let Some(watch) = watch {
            watch.stop();
        }
        left
    }
}

/// Nanoseconds since 1970.
pub fn wall_time_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
