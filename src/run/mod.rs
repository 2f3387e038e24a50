//! What assembles a path and drives it: the only room that knows which kinds exist.
//!
//! [`prepare`] makes a path ready for a workload that runs in simulated time; [`open_device`] hands out the device that a
//! path is, for whoever stands on it or serves it; [`run_files`] drives a file system as fast as it goes.
//!
//! | file | what it is |
//! |---|---|
//! | `stations` | which stations there are, and the translation layers on flash |
//! | `path` | the path that a text means |
//! | `open` | from a path to its devices |
//! | `file_system` | from a path to the file system on its top |
//! | `volume` | volumes of dm-zoned on images: made, checked, repaired, looked at |
//! | `labelling` | labels for what a file system writes, read from its own metadata |
//! | `engine` | fill, preconditioning, and the run that counts |
//! | `target` | what the engine drives, and what that tells of a run |
//! | `pace`, `windows`, `steady` | when requests are issued; a run in windows; from where on it is steady |
//! | `outcome` | what a run ends with |
//! | `beneath` | the result of a path with a file system of the kernel on top |
//! | `files`, `disk_file` | file workloads; a block workload in a file |

mod beneath;
mod disk_file;
mod engine;
mod file_system;
mod files;
mod labelling;
mod open;
mod outcome;
mod pace;
mod path;
pub mod shared;
mod stations;
mod steady;
mod target;
mod volume;
mod windows;

pub use beneath::{DoneInFiles, result_beneath};
pub use disk_file::{DISK_FILE, DiskFile};
pub use engine::{Options, Progress, Replay, RunError};
pub use file_system::open_file_system;
pub use files::{FileOutcome, FileRun, FileRunError, Part, SetupFault, run_files};
pub use labelling::Labelling;
pub use open::{Holds, OpenError, open_device};
pub use outcome::Outcome;
pub use path::{Path, Stack};
pub use stations::{DriveSettings, Layer, STATIONS, Station};
pub use volume::{check_volume, make_volume, repair_volume, survey_volume};

use crate::device::BlockDevice;
use crate::translation::Translation;
use crate::units::BLOCK_BYTES;
use crate::workload::Workload;
use stations::WithDrive;
use target::{DeviceTarget, DriveTarget, Target};

/// A path that is ready to be run.
pub struct Prepared<'a> {
    path: &'a Path,
    seed: u64,
    /// What is not a drive: that is made when it runs.
    device: Option<Box<dyn BlockDevice>>,
}

/// Makes a path ready: its devices are new, but for what lies in images. `seed` is that of their own choices.
///
/// Fails as [`open_device`] does, and if a file system of the kernel is on top.
pub fn prepare(path: &Path, seed: u64) -> Result<Prepared<'_>, OpenError> {
    if path.file_system.is_some() {
        return Err(OpenError::NeedsKernel(path.text.clone()));
    }
    let device = match path.drive() {
        Some(_) => None,
        None => Some(open_device(path, Holds::Stamps, seed)?),
    };
    Ok(Prepared { path, seed, device })
}

impl<'a> Prepared<'a> {
    /// A device of the caller's own in place of what the path opens: a wrapper around that, such as one that watches.
    pub fn with_device(path: &'a Path, device: Box<dyn BlockDevice>, seed: u64) -> Prepared<'a> {
        Prepared { path, seed, device: Some(device) }
    }

    /// Bytes that the path offers.
    pub fn exported_bytes(&self) -> u64 {
        let drive = || self.path.drive().map(DriveSettings::exported_bytes);
        self.device.as_ref().map(|device| device.blocks() * BLOCK_BYTES).or_else(drive).unwrap_or(0)
    }

    /// Whether the path has a timing model.
    pub fn is_timed(&self) -> bool {
        let drive = || self.path.drive().is_some_and(|drive| drive.nand.latencies.is_some());
        self.device.as_ref().map_or_else(drive, |device| device.is_timed())
    }

    /// Runs `workload`, which was opened for as many bytes as the path offers. `watch` is called now and then, and ends
    /// the run by answering false.
    pub fn run(
        self,
        workload: &mut dyn Workload,
        options: &Options,
        watch: &mut dyn FnMut(&Progress) -> bool,
    ) -> Outcome {
        let Prepared { path, seed, device } = self;
        let floor = Floor { path, workload, options, watch };
        match (device, &path.stack) {
            (None, Stack::Drive(drive)) => drive.make(options.verify, seed, floor),
            (Some(device), _) => floor.run(DeviceTarget::new(device)),
            (None, _) => unreachable!("what is no drive was opened"),
        }
    }
}

/// All that a run takes beside what is driven.
struct Floor<'a> {
    path: &'a Path,
    workload: &'a mut dyn Workload,
    options: &'a Options,
    watch: &'a mut dyn FnMut(&Progress) -> bool,
}

impl Floor<'_> {
    fn run<T: Target>(self, target: T) -> Outcome {
        let (run, ended) = engine::drive(target, self.workload, self.options, self.watch);
        outcome::conclude(self.path, run, self.workload, self.options, ended)
    }
}

impl WithDrive for Floor<'_> {
    type Output = Outcome;

    fn with<T: Translation + Send + 'static>(self, drive: T) -> Outcome {
        self.run(DriveTarget::new(drive))
    }
}
