//! A path with a file system of the running kernel on top: run in real time, and counted by the stations below it.
//!
//! | file | role |
//! |---|---|
//! | `stack` | the path as a block device of this machine, with the file system mounted |
//! | `work` | the workload in it |

mod stack;
mod work;

use crate::failure::Failure;
use crate::run::Run;
use crate::workload::Source;
use flashpath::run::{FilesPlace, Outcome, Path};
use stack::KernelStack;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Sets up a path, runs the workload on it, and takes it down. The device's requests are counted after mkfs and mount
/// until after unmount.
pub fn run(command: &Run, source: &Source, path: &Path, stop: &AtomicBool) -> Result<Outcome, Failure> {
    let settings = path.kernel().expect("the path has a kernel file system");
    let began = Instant::now();
    let stack = KernelStack::set_up(path, settings, command.seed)?;
    let size_bytes = stack.size_bytes();
    let before = stack.account()?;
    let free_bytes = (stack.mount().free_share()? * size_bytes as f64) as u64;
    let done = work::work(command, source, stack.mount().path(), free_bytes, stop)?;
    let after = stack.take_down()?;
    let place = FilesPlace::Path { path, accounts: (&before, &after), exported_bytes: size_bytes, cpu: None };
    let mut outcome = Outcome::in_files(place, command.seed, done);
    outcome.result.seconds_wall = began.elapsed().as_secs_f64();
    Ok(outcome)
}
