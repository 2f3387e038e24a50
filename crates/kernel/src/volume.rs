//! A file system in a scratch file, ready to be written.

use crate::{KernelError, LoopDevice, Make, Mount, ScratchFile};
use std::path::Path;

/// A scratch file, as a loop device, with a mounted file system. Dropping it undoes all of it.
#[derive(Debug)]
pub struct Volume {
    // In the order in which they must go.
    mount: Mount,
    device: LoopDevice,
    scratch: ScratchFile,
}

impl Volume {
    /// Makes one of `size_bytes` whose file and mount point are in `directory`. Fails as its parts do.
    pub fn create(directory: &Path, size_bytes: u64, make: &Make, options: &str) -> Result<Volume, KernelError> {
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

    /// The device that it is on.
    pub fn device(&self) -> &LoopDevice {
        &self.device
    }

    /// The file that stands for the device.
    pub fn scratch(&self) -> &ScratchFile {
        &self.scratch
    }

    /// Unmounts, and hands back the device, still attached, with the file behind it.
    pub fn unmount(self) -> Result<(LoopDevice, ScratchFile), KernelError> {
        let Volume { mount, device, scratch } = self;
        mount.unmount()?;
        Ok((device, scratch))
    }
}
