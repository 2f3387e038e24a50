//! Simulated runs: from a path and its work to an outcome.

use super::in_volume::{VolumeOptions, run_in_volume};
use super::{FileShape, OpenError, Options, Outcome, Path, Progress, prepare, prepare_file};
use crate::workload::Workload;
use crate::workload::files::FileWorkload;

/// The work of a run.
pub enum Work<'a, E> {
    /// A block workload on the whole path.
    Blocks(OpenBlocks<'a, E>),
    /// A block workload in a file of this shape, in a volume of the sfs on top.
    InFile(FileShape, OpenBlocks<'a, E>),
    /// A file workload in a volume of the sfs on top. Its seed is also the volume's.
    Files(FileWorkload, VolumeOptions),
}

/// Opens a block workload for a number of bytes, those of the path or of the file; returns it with its options.
pub type OpenBlocks<'a, E> = Box<dyn FnOnce(u64) -> Result<(Box<dyn Workload>, Options), E> + 'a>;

/// Runs `work` on a path in simulated time. Storage in memory is new; `seed` is that of the devices' random choices,
/// except for a file workload, which has its own. `watch` is called regularly, and returns false to end the run.
///
/// Fails if the path cannot be opened, or its workload; nothing was run then.
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
