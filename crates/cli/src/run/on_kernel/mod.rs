//! A path with a file system of the running kernel on top: run for real, and counted by the stations below it.
//!
//! | file | what it is |
//! |---|---|
//! | `stack` | the path as a device of this machine, with the file system mounted |
//! | `work` | what is done in it |

mod stack;
mod work;

use crate::failure::Failure;
use crate::run::Run;
use crate::workload::Source;
use flashpath::run::{Outcome, Path};
use stack::Standing;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Runs what the command line asks for on one path, and takes all down again. Counted is what reaches the device from
/// when the file system is made and mounted until it is unmounted.
pub fn run(command: &Run, source: &Source, path: &Path, stop: &AtomicBool) -> Result<Outcome, Failure> {
    let settings = path.kernel().expect("the caller looked");
    let began = Instant::now();
    let standing = Standing::set_up(path, settings, command.seed)?;
    let size_bytes = standing.size_bytes();
    let before = standing.account()?;
    let free_bytes = (standing.mount().free_share()? * size_bytes as f64) as u64;
    let done = work::work(command, source, standing.mount().path(), free_bytes, stop)?;
    let after = standing.take_down()?;
    let mut outcome = Outcome::in_files(path, command.seed, done, (&before, &after), size_bytes);
    outcome.result.seconds_wall = began.elapsed().as_secs_f64();
    Ok(outcome)
}
