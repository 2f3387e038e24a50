//! What assembles a path and drives it: the only room that knows which kinds exist.
//!
//! [`run()`] drives a path in simulated time; [`run_files`] a file system as fast as it goes.

mod disk_file;
mod engine;
mod files;
mod outcome;
mod pace;
mod path;
pub mod shared;
mod steady;
mod windows;

pub use disk_file::{DISK_FILE, DiskFile};
pub use engine::{Options, Progress, Replay, RunError};
pub use files::{FileOutcome, FileRun, FileRunError, Part, SetupFault, run_files};
pub use outcome::Outcome;
pub use path::{Layer, Path, STATIONS, Station};

use crate::device::nand::{Nand, Reserving, Timing, Untimed};
use crate::translation::Translation;
use crate::translation::fast::Fast;
use crate::translation::page_level::{PageLevel, RamMap};
use crate::translation::superblock::SuperblockFtl;
use crate::workload::Workload;

/// Runs `workload` on a new drive of this path. `watch` is called now and then, and ends the run by answering false.
pub fn run(
    path: &Path,
    workload: &mut dyn Workload,
    options: &Options,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Outcome {
    let nand = &path.nand;
    match nand.latencies {
        None => run_timed(path, Untimed, workload, options, watch),
        Some(latencies) => run_timed(path, Reserving::new(nand.geometry, latencies), workload, options, watch),
    }
}

fn run_timed<T: Timing>(
    path: &Path,
    timing: T,
    workload: &mut dyn Workload,
    options: &Options,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Outcome {
    let flash = Nand::new(path.nand.geometry, path.nand.endurance, options.verify, timing);
    match &path.layer {
        Layer::Page(settings) => {
            let drive = PageLevel::new(flash, settings, RamMap::new(settings.exported_pages), options.seed);
            run_drive(path, drive, workload, options, watch)
        }
        Layer::Dftl(settings) => run_drive(path, settings.drive(flash, options.seed), workload, options, watch),
        Layer::Fast(settings) => run_drive(path, Fast::new(flash, settings), workload, options, watch),
        Layer::Superblock(settings) => run_drive(path, SuperblockFtl::new(flash, settings), workload, options, watch),
    }
}

fn run_drive<T: Translation>(
    path: &Path,
    drive: T,
    workload: &mut dyn Workload,
    options: &Options,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Outcome {
    let (run, ended) = engine::drive(drive, workload, options, watch);
    outcome::conclude(path, run, workload, options, ended)
}
