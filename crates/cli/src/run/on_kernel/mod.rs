//! This machine for the library's runs: its clock, paths with a file system of the running kernel on top, and programs
//! that work in them.
//!
//! | file | role |
//! |---|---|
//! | `stack` | the path as a block device of this machine, with the file system mounted |
//! | `programs` | a shell command, or a fio job that fio runs |

mod programs;
mod stack;

use flashpath::fs::kernel::KernelSettings;
use flashpath::run::{Machine, MountedPath, Path, RunError};
pub use programs::{fio, shell};
use stack::KernelStack;
use std::time::Instant;

/// This machine.
pub struct ThisMachine {
    /// The beginning of its time.
    began: Instant,
}

impl Default for ThisMachine {
    fn default() -> ThisMachine {
        ThisMachine { began: Instant::now() }
    }
}

impl Machine for ThisMachine {
    fn now_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    fn mount(
        &self,
        path: &Path,
        settings: &KernelSettings,
        seed: u64,
        max_request: u64,
    ) -> Result<Box<dyn MountedPath>, RunError> {
        Ok(Box::new(KernelStack::set_up(path, settings, seed, max_request)?))
    }
}
