//! What a run needs of the machine that it runs on: the library has no clock and mounts nothing.

use super::error::{OpenError, RunError};
use super::path::Path;
use crate::device::Account;
use crate::fs::kernel::KernelSettings;
use std::path::Path as FilePath;

/// The machine of a run.
pub trait Machine: Sync {
    /// The time in nanoseconds, from any beginning on.
    fn now_ns(&self) -> u64;

    /// Makes and mounts the kernel's file system on top of `path`, whose `settings` these are. All writes of these steps
    /// are on the device when this returns. `seed` is that of the devices' random choices. Write requests are merged up to
    /// `max_request` bytes.
    fn mount(
        &self,
        path: &Path,
        settings: &KernelSettings,
        seed: u64,
        max_request: u64,
    ) -> Result<Box<dyn MountedPath>, RunError>;
}

/// A path with its file system mounted. Dropping it unmounts the file system and undoes all else.
pub trait MountedPath {
    /// The root directory of the file system.
    fn directory(&self) -> &FilePath;

    /// Bytes of the device below the file system.
    fn size_bytes(&self) -> u64;

    /// Free bytes in the file system.
    fn free_bytes(&self) -> Result<u64, RunError>;

    /// The counts of the stations below the file system.
    fn account(&self) -> Result<Account, RunError>;

    /// Unmounts, takes the counts, checks the file system, and undoes all else; returns the counts.
    fn take_down(self: Box<Self>) -> Result<Account, RunError>;
}

/// No machine: what is simulated needs none. Wall-clock times are 0, and no file system of the kernel can be mounted.
pub struct NoMachine;

impl Machine for NoMachine {
    fn now_ns(&self) -> u64 {
        0
    }

    fn mount(&self, path: &Path, _: &KernelSettings, _: u64, _: u64) -> Result<Box<dyn MountedPath>, RunError> {
        Err(OpenError::NeedsKernel(path.text.clone()).into())
    }
}
