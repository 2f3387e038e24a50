//! What assembles a path and drives it: the only room that knows which kinds exist.

mod engine;
mod outcome;
mod pace;
mod path;
mod steady;
mod windows;

pub use engine::{Options, Progress, Replay, RunError};
pub use outcome::Outcome;
pub use path::{Path, STATIONS, Station};
pub use steady::steady_from;

use crate::device::nand::{Nand, Reserving, Untimed};
use crate::translation::page_level::PageLevel;
use crate::workload::Workload;

/// Runs `workload` on a new drive of this path. `watch` is called now and then, and ends the run by answering false.
pub fn run(
    path: &Path,
    workload: &mut dyn Workload,
    options: &Options,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Outcome {
    let (nand, page) = (&path.nand, &path.page);
    match nand.latencies {
        None => {
            let flash = Nand::new(nand.geometry, nand.endurance, options.verify, Untimed);
            engine::drive(path, PageLevel::new(flash, page, options.seed), workload, options, watch)
        }
        Some(latencies) => {
            let timing = Reserving::new(nand.geometry, latencies);
            let flash = Nand::new(nand.geometry, nand.endurance, options.verify, timing);
            engine::drive(path, PageLevel::new(flash, page, options.seed), workload, options, watch)
        }
    }
}
