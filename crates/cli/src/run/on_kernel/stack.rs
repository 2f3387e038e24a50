//! A path as a block device of this machine with a kernel file system: served as one file, attached to a loop device,
//! formatted, mounted. All steps are undone in reverse order, also after errors.

use crate::failure::Failure;
use crate::resident::warnings::PrintedWarnings;
use crate::resident::worker::Workers;
use flashpath::device::Account;
use flashpath::fs::kernel::{KernelFileSystem, KernelSettings};
use flashpath::run::shared::{ServedDevice, SharedDevice, Sharing};
use flashpath::run::{Labelling, MountedPath, Path, RunError, open_device_counted};
use flashpath::time::Time;
use flashpath_fuse::{Leaving, Mounted};
use flashpath_kernel::{FileSystem, LoopDevice, Mkfs, Mount, make_mounts_private};
use std::fs::OpenOptions;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The name of the served file in its mount point.
const FILE: &str = "disk";
/// The time to wait for the release of the loop device, which the kernel detaches asynchronously.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

/// A path with its file system mounted. Fields are in the order of dropping.
pub struct KernelStack {
    mount: Option<Mount>,
    disk: Option<LoopDevice>,
    served: Option<Mounted>,
    workers: Option<Workers<ServedDevice>>,
    device: Arc<SharedDevice>,
    file_system: FileSystem,
    /// The directory of the mount points.
    _place: tempfile::TempDir,
}

impl KernelStack {
    /// Serves the device below the file system of `path`, makes the file system, and mounts it. All writes of these
    /// steps are on the device when this returns. Write requests are merged up to `max_request` bytes.
    pub fn set_up(path: &Path, settings: &KernelSettings, seed: u64, max_request: u64) -> Result<KernelStack, Failure> {
        make_mounts_private()?;
        let make = make_of(settings);
        make.check()?;
        let device = open_device_counted(path, seed, max_request)?;
        let device = Labelling::new(device, Time::ZERO).map_err(|error| Failure::failed(error.to_string()))?;
        let began = Instant::now();
        let clock = Box::new(move || Time(began.elapsed().as_nanos() as u64));
        let device = Arc::new(SharedDevice::new(Box::new(device), Sharing::default(), clock)?);
        let cannot = |doing: &str, error: std::io::Error| Failure::failed(format!("cannot {doing}: {error}"));
        let place = tempfile::Builder::new()
            .prefix("flashpath-run-")
            .tempdir()
            .map_err(|error| cannot("make a temporary directory", error))?;
        let mut stack = KernelStack {
            mount: None,
            disk: None,
            served: None,
            workers: None,
            device,
            file_system: make.file_system,
            _place: place,
        };
        let place = stack._place.path().to_path_buf();
        let device = Arc::clone(&stack.device);
        stack.workers = Some(Workers::start(device)?);
        let file = place.join("device").join(FILE);
        stack.served = Some(Mounted::one_file(Arc::clone(&stack.device), &file, || {})?);
        let opened = OpenOptions::new().read(true).write(true).open(&file);
        let opened = opened.map_err(|error| cannot(&format!("open {}", file.display()), error))?;
        let disk = LoopDevice::attach(&opened)?;
        make.run(disk.path())?;
        let mount = Mount::new(disk.path(), make.file_system.name(), &settings.mount_options, &place)?;
        mount.sync()?;
        stack.disk = Some(disk);
        stack.mount = Some(mount);
        Ok(stack)
    }

    fn mounted(&self) -> &Mount {
        self.mount.as_ref().expect("mounted until take_down")
    }

    fn unmount(mut self) -> Result<Account, Failure> {
        if let Some(mount) = self.mount.take() {
            mount.sync()?;
            mount.unmount()?;
        }
        let account = self.device.account()?;
        if let Some(disk) = self.disk.take() {
            self.file_system.check(disk.path())?;
        }
        self.unmount_file()?;
        if let Some(workers) = self.workers.take() {
            workers.stop();
        }
        self.device.flush()?;
        Ok(account)
    }

    /// Unmounts the served file once the loop device has released it.
    fn unmount_file(&mut self) -> Result<(), Failure> {
        let Some(mut served) = self.served.take() else { return Ok(()) };
        let until = Instant::now() + PATIENCE;
        loop {
            match served.leave() {
                Leaving::Left => return Ok(()),
                Leaving::Busy if Instant::now() < until => std::thread::sleep(PAUSE),
                Leaving::Busy => {
                    let users = flashpath_kernel::users_of(served.directory());
                    return Err(Failure::failed(format!("the served file is still in use{users}")));
                }
                Leaving::Failed(error) => {
                    return Err(Failure::failed(format!("cannot unmount the served file: {error}")));
                }
            }
        }
    }
}

impl MountedPath for KernelStack {
    fn directory(&self) -> &FilePath {
        self.mounted().path()
    }

    fn size_bytes(&self) -> u64 {
        self.device.size_bytes()
    }

    fn free_bytes(&self) -> Result<u64, RunError> {
        let share = self.mounted().free_share().map_err(Failure::from)?;
        Ok((share * self.size_bytes() as f64) as u64)
    }

    fn account(&self) -> Result<Account, RunError> {
        Ok(self.device.account().map_err(Failure::from)?)
    }

    fn take_down(self: Box<Self>) -> Result<Account, RunError> {
        Ok(self.unmount()?)
    }
}

impl Drop for KernelStack {
    fn drop(&mut self) {
        // Undone in this order; errors are reported by `take_down` only.
        drop(self.mount.take());
        drop(self.disk.take());
        let _ = self.unmount_file();
        if let Some(workers) = self.workers.take() {
            workers.stop();
        }
        // Without a result, the warnings are printed here.
        if let Ok(account) = self.device.account() {
            PrintedWarnings::default().print_new(&account);
        }
    }
}

fn make_of(settings: &KernelSettings) -> Mkfs {
    let file_system = match settings.file_system {
        KernelFileSystem::Ext4 => FileSystem::Ext4,
        KernelFileSystem::Btrfs => FileSystem::Btrfs,
        KernelFileSystem::Xfs => FileSystem::Xfs,
        KernelFileSystem::F2fs => FileSystem::F2fs,
        KernelFileSystem::Nilfs2 => FileSystem::Nilfs2,
    };
    let lazy = ["-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard"];
    // The last of several -E counts.
    let lazy = lazy.into_iter().filter(|_| settings.is_lazy).map(str::to_string);
    let extra_arguments = lazy.chain(settings.mkfs_arguments.iter().cloned()).collect();
    Mkfs { file_system, journal_bytes: settings.journal_bytes, extra_arguments }
}
