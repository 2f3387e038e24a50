//! Runs work in a file system of the running kernel on top of a path, in real time; the stations below count it.

use super::engine::Progress;
use super::error::RunError;
use super::in_directory::run_in_directory;
use super::in_files::FilesPlace;
use super::machine::{Machine, MountedPath};
use super::outcome::Outcome;
use super::path::Path;
use super::work::{RunOptions, Work};
use crate::fs::directory::Directory;
use crate::fs::kernel::KernelSettings;

/// The sizes of files are multiples of this.
const MIB: u64 = 1 << 20;

/// Mounts the path, does the work in it, and takes it down. The device's requests are counted after mkfs and mount until
/// after unmount.
pub(super) fn run_on_kernel(
    path: &Path,
    settings: &KernelSettings,
    work: Work<'_>,
    options: &RunOptions,
    seed: u64,
    machine: &dyn Machine,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Outcome, RunError> {
    let mounted = machine.mount(path, settings, seed, options.max_request())?;
    let (exported_bytes, before) = (mounted.size_bytes(), mounted.account()?);
    let done = match work {
        Work::Program(program) => (program.run)(mounted.directory())?,
        work => {
            let size = options.file.bytes.map_or_else(|| half_of_the_free_space(&*mounted), Ok)?;
            let files = Directory::open(mounted.directory())?;
            run_in_directory(&files, work, Some(size), options, seed, machine, watch)?
        }
    };
    let after = mounted.take_down()?;
    let place = FilesPlace::Path { path, accounts: (&before, &after), exported_bytes, cpu: None };
    Ok(Outcome::in_files(place, seed, done))
}

/// The size of a block workload's file that leaves room for the file system's own blocks.
fn half_of_the_free_space(mounted: &dyn MountedPath) -> Result<u64, RunError> {
    Ok(mounted.free_bytes()? / 2 / MIB * MIB)
}
