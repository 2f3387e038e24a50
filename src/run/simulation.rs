//! The door to a simulated run: from a path and what is run on it to an outcome.

use super::in_volume::{VolumeOptions, run_in_volume};
use super::{FileShape, OpenError, Options, Outcome, Path, Progress, prepare, prepare_file};
use crate::workload::Workload;
use crate::workload::files::FileWorkload;

/// What is run on a path.
pub enum Work<'a, E> {
    /// A block workload on all of the path.
    Blocks(OpenBlocks<'a, E>),
    /// A block workload in a file of this shape, in a volume of the sfs on top.
    InFile(FileShape, OpenBlocks<'a, E>),
    /// A file workload in a volume of the sfs on top. Its seed is the volume's, too.
    Files(FileWorkload, VolumeOptions),
}

/// Opens a block workload for as many bytes as the path, or the file, has, and says how it is run.
pub type OpenBlocks<'a, E> = Box<dyn FnOnce(u64) -> Result<(Box<dyn Workload>, Options), E> + 'a>;

/// Runs `work` on a path, in simulated time. What is in memory is new; `seed` is that of its devices' own choices,
/// but where files are worked on, whose workload has the seed of both.
/// `watch` is called now and then, and ends the run by answering false.
///
/// Fails if the path cannot be opened, or the workload for it: nothing was run then.
pub fn simulate<E: From<OpenError>>(
    path: &Path,
    seed: u64,
    work: Work<'_, E>,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Outcome, E> {
    let (prepared, open) = match work {
        Work::Blocks(open) => (prepare(path, seed)?, open),
        Work::InFile(shape, open) => (prepare_file(path, seed, shape)?, open),
        Work::Files(workload, options) => return Ok(run_in_volume(path, workload, &options, watch)?),
    };
    let (mut workload, options) = open(prepared.exported_bytes())?;
    Ok(prepared.run(workload.as_mut(), &options, watch))
}
