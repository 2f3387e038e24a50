//! ext4 of the running kernel on loop devices on files, with data=journal, and its journal inside or on a second device.

use super::journals::Sizes;
use crate::ReproduceError;
use flashpath_kernel::{FileSystem, KernelError, LoopDevice, Mkfs, Mount, ScratchFile, make_mounts_private};
use std::path::Path;

/// The place of the journal of ext4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelJournal {
    /// In the volume.
    Inline,
    /// On a loop device on a file in memory.
    Memory,
}

/// No read writes, as in a simulated run.
const OPTIONS: &str = "data=journal,noatime";

/// A mounted volume of ext4. Dropping it unmounts it and detaches its devices.
struct Ext4 {
    // In the order of their end.
    mount: Mount,
    _volume: LoopDevice,
    _journal: Option<LoopDevice>,
}

impl Ext4 {
    fn create(journal: KernelJournal, sizes: &Sizes, drive: &Path, memory: &Path) -> Result<Ext4, KernelError> {
        make_mounts_private()?;
        let attach = |directory: &Path, bytes: u64| {
            // A loop device keeps its file.
            let file = ScratchFile::create(directory, bytes)?;
            LoopDevice::attach(file.file())
        };
        let make = |device: &LoopDevice, journal_bytes: Option<u64>, extra: &[String]| {
            let extra_arguments = extra.to_vec();
            Mkfs { file_system: FileSystem::Ext4, journal_bytes, extra_arguments }.run(device.path())
        };
        let volume = attach(drive, sizes.volume_bytes)?;
        let device = match journal {
            KernelJournal::Inline => {
                make(&volume, Some(sizes.journal_bytes), &[])?;
                None
            }
            KernelJournal::Memory => {
                let device = attach(memory, sizes.journal_bytes)?;
                make(&device, None, &["-O".to_string(), "journal_dev".to_string()])?;
                make(&volume, None, &["-J".to_string(), format!("device={}", device.path().display())])?;
                Some(device)
            }
        };
        let mount = Mount::new(volume.path(), FileSystem::Ext4.name(), OPTIONS, drive)?;
        mount.sync()?;
        Ok(Ext4 { mount, _volume: volume, _journal: device })
    }
}

/// Runs `work` in a new volume of ext4, whose file is in `drive` and that of a journal in memory in `memory`. `Ok(Err)` says
/// which right or program of the system is missing.
pub fn in_ext4<R: Send>(
    journal: KernelJournal,
    sizes: &Sizes,
    (drive, memory): (&Path, &Path),
    work: impl FnOnce(&Path) -> Result<R, ReproduceError> + Send,
) -> Result<Result<R, String>, ReproduceError> {
    // The mounts of this thread, and of those that it starts, are its own, and end with it.
    let run = || {
        let failed = |error: KernelError| ReproduceError::failed(format!("ext4 of the kernel: {error}"));
        let volume = match Ext4::create(journal, sizes, drive, memory) {
            Ok(volume) => volume,
            Err(KernelError::Missing { what, .. }) => return Ok(Err(what)),
            Err(error) => return Err(failed(error)),
        };
        let done = work(volume.mount.path())?;
        volume.mount.unmount().map_err(failed)?;
        Ok(Ok(done))
    };
    std::thread::scope(|scope| scope.spawn(run).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
