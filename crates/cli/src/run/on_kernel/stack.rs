//! A path as a device of this machine, with the kernel's file system on it: served as one file, attached to a loop
//! device, made, mounted. Everything is undone in the opposite order, whatever fails on the way.

use crate::failure::Failure;
use crate::resident::heard::Heard;
use crate::resident::worker::Worker;
use flashpath::device::Account;
use flashpath::fs::kernel::{KernelFileSystem, KernelSettings};
use flashpath::run::shared::{ServeError, ServedDevice, SharedDevice, Sharing};
use flashpath::run::{Holds, Labelling, Path, open_device};
use flashpath::time::Time;
use flashpath_fuse::{Leaving, Mounted};
use flashpath_kernel::{FileSystem, LoopDevice, Mkfs, Mount, make_mounts_private};
use std::fs::OpenOptions;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The served file, in its mount point.
const FILE: &str = "disk";
/// How long what was just detached may still be in use: the kernel lets a loop device go in its own time.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

/// A path with its file system mounted. What is dropped first stands first.
pub struct Standing {
    mount: Option<Mount>,
    disk: Option<LoopDevice>,
    served: Option<Mounted>,
    worker: Option<Worker<ServedDevice>>,
    device: Arc<SharedDevice>,
    file_system: FileSystem,
    /// Where the mount points are; empty when all is undone.
    _place: tempfile::TempDir,
}

impl Standing {
    /// Serves what is below the file system of `path`, makes the file system, and mounts it. What that writes is on the
    /// device when this returns.
    pub fn set_up(path: &Path, settings: &KernelSettings, seed: u64) -> Result<Standing, Failure> {
        make_mounts_private()?;
        let make = make_of(settings);
        make.check()?;
        let device = open_device(path, Holds::Bytes, seed)?;
        let device = Labelling::new(device, Time::ZERO).map_err(|error| Failure::failed(error.to_string()))?;
        let began = Instant::now();
        let clock = Box::new(move || Time(began.elapsed().as_nanos() as u64));
        let device = Arc::new(SharedDevice::new(Box::new(device), Sharing::default(), clock)?);
        let cannot = |doing: &str, error: std::io::Error| Failure::failed(format!("cannot {doing}: {error}"));
        let place = tempfile::Builder::new()
            .prefix("flashpath-run-")
            .tempdir()
            .map_err(|error| cannot("make a temporary directory", error))?;
        let mut standing = Standing {
            mount: None,
            disk: None,
            served: None,
            worker: None,
            device,
            file_system: make.file_system,
            _place: place,
        };
        let place = standing._place.path().to_path_buf();
        let device = Arc::clone(&standing.device);
        standing.worker = Some(Worker::start(device)?);
        let file = place.join("device").join(FILE);
        standing.served = Some(Mounted::one_file(Arc::clone(&standing.device), &file, || {})?);
        let opened = OpenOptions::new().read(true).write(true).open(&file);
        let opened = opened.map_err(|error| cannot(&format!("open {}", file.display()), error))?;
        let disk = LoopDevice::attach(&opened)?;
        make.run(disk.path())?;
        let mount = Mount::new(disk.path(), make.file_system.name(), &settings.mount_options, &place)?;
        mount.sync()?;
        standing.disk = Some(disk);
        standing.mount = Some(mount);
        Ok(standing)
    }

    /// Where the file system is mounted.
    pub fn mount(&self) -> &Mount {
        self.mount.as_ref().expect("it is mounted until it is taken down")
    }

    /// What the stations below have counted.
    pub fn account(&self) -> Result<Account, ServeError> {
        self.device.account()
    }

    /// Bytes of the device below.
    pub fn size_bytes(&self) -> u64 {
        self.device.size_bytes()
    }

    /// Unmounts, answers what was counted until then, checks the file system, and undoes the rest.
    pub fn take_down(mut self) -> Result<Account, Failure> {
        if let Some(mount) = self.mount.take() {
            mount.sync()?;
            mount.unmount()?;
        }
        let account = self.device.account()?;
        if let Some(disk) = self.disk.take() {
            self.file_system.check(disk.path())?;
        }
        self.leave()?;
        if let Some(worker) = self.worker.take() {
            worker.stop();
        }
        self.device.flush()?;
        Ok(account)
    }

    /// Takes the served file away, once the loop device has let it go.
    fn leave(&mut self) -> Result<(), Failure> {
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

impl Drop for Standing {
    fn drop(&mut self) {
        // In this order; whoever wants to know how it went calls `take_down`.
        drop(self.mount.take());
        drop(self.disk.take());
        let _ = self.leave();
        if let Some(worker) = self.worker.take() {
            worker.stop();
        }
        // Also where there is no result that would say so.
        if let Ok(account) = self.device.account() {
            Heard::default().tell(&account);
        }
    }
}

fn make_of(settings: &KernelSettings) -> Mkfs {
    let file_system = match settings.file_system {
        KernelFileSystem::Ext4 => FileSystem::Ext4,
        KernelFileSystem::Btrfs => FileSystem::Btrfs,
        KernelFileSystem::Xfs => FileSystem::Xfs,
    };
    let lazy = ["-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard"];
    // The last of several -E counts.
    let lazy = lazy.into_iter().filter(|_| settings.is_lazy).map(str::to_string);
    let extra_arguments = lazy.chain(settings.mkfs_arguments.iter().cloned()).collect();
    Mkfs { file_system, journal_bytes: settings.journal_bytes, extra_arguments }
}
