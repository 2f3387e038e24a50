//! Runs a workload of this program in a directory of this machine, in real time.

use super::disk_file::DiskFile;
use super::engine::{Progress, needs_an_end};
use super::error::RunError;
use super::files::{FileRun, FilesRun, Threads, run_files};
use super::machine::Machine;
use super::work::{BlockWork, RunOptions, Work};
use crate::fs::directory::Directory;
use crate::workload::Clock;
use crate::workload::files::FileWorkload;

/// Runs the workload in the directory; a block workload in one file of `disk_bytes`.
///
/// # Panics
/// For a program, and for a block workload without the size of its file: [`check`](super::fit::check) refuses them.
pub(super) fn run_in_directory(
    directory: &Directory,
    work: Work<'_>,
    disk_bytes: Option<u64>,
    options: &RunOptions,
    seed: u64,
    machine: &dyn Machine,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Result<FilesRun, RunError> {
    let (workload, asked, warning) = match work {
        Work::Files(workload) => (workload, Vec::new(), None),
        Work::Blocks(blocks) => {
            let size_bytes = disk_bytes.expect("the size of the file is given");
            open_in_file(blocks, size_bytes, options, seed)?
        }
        Work::Program(_) => unreachable!("a program is run by the machine"),
    };
    let clock = || machine.now_ns();
    let run = FileRun {
        limit: options.limit,
        part: options.part,
        stored: None,
        log: None,
        begin_counting: &|_| {},
        threads: Threads::System(&clock),
    };
    let mut done = run_files(directory, workload, &run, watch);
    done.options.extend(asked);
    done.warnings.extend(warning);
    Ok(done)
}

/// Opens a block workload as a file workload in one file. Returns also the arguments that repeat it, and a warning.
fn open_in_file(
    blocks: BlockWork<'_>,
    size_bytes: u64,
    options: &RunOptions,
    seed: u64,
) -> Result<(FileWorkload, Vec<String>, Option<String>), RunError> {
    let workload = (blocks.open)(size_bytes)?;
    if workload.clock() == Clock::Needed {
        return Err(needs_an_end(&blocks.name, "in a directory requests are served without a clock"));
    }
    let depth = workload.queue_depth().filter(|depth| *depth > 1);
    let warning =
        depth.map(|depth| format!("the job's queue depth is {depth}; in a directory requests are served one by one"));
    let fsync_every = options.file.fsync_every;
    let disk = DiskFile { size_bytes, fill: options.fill, fsync_every };
    let mut opened = disk.workload(workload, seed);
    opened.name = blocks.name;
    Ok((opened, disk.arguments(), warning))
}
