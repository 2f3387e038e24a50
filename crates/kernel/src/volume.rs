//! A mounted file system on a loop device on a scratch file.

use crate::{KernelError, LoopDevice, Mkfs, Mount, ScratchFile};
use std::path::Path;

/// A mounted file system on a loop device on a scratch file. Dropping it undoes all of them.
#[derive(Debug)]
pub struct Volume {
    // In the order of their end.
    mount: Mount,
    device: LoopDevice,
    scratch: ScratchFile,
}

impl Volume {
    /// Makes a volume of `size_bytes`; its file and its mount point are in `directory`. Fails as its parts do.
    pub fn create(directory: &Path, size_bytes: u64, make: &Mkfs, options: &str) -> Result<Volume, KernelError> {
        make.check()?;
        let scratch = ScratchFile::create(directory, size_bytes)?;
        let device = LoopDevice::attach(scratch.file())?;
        make.run(device.path())?;
        let mount = Mount::new(device.path(), make.file_system.name(), options, directory)?;
        Ok(Volume { mount, device, scratch })
    }

    /// The mounted file system.
    pub fn mount(&self) -> &Mount {
        &self.mount
    }

    /// Unmounts and mounts again, as [`Mount::mount_again`] does.
    pub fn mount_again(&mut self) -> Result<(), KernelError> {
        self.mount.mount_again()
    }

    /// The loop device below the file system.
    pub fn device(&self) -> &LoopDevice {
        &self.device
    }

    /// The file below the device.
    pub fn scratch(&self) -> &ScratchFile {
        &self.scratch
    }

    /// Unmounts, and returns the device, still attached, with its file.
    pub fn unmount(self) -> Result<(LoopDevice, ScratchFile), KernelError> {
        let Volume { mount, device, scratch } = self;
        mount.unmount()?;
        Ok((device, scratch))
    }
}
