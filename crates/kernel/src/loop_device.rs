//! A file as a block device.

use crate::{KernelError, failed};
use nix::errno::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The maximum number of attempts, as another process may take the same free device.
const ATTEMPTS: usize = 64;
const PAUSE: Duration = Duration::from_millis(10);

/// A loop device; it detaches when the guard and all other users are gone.
#[derive(Debug)]
pub struct LoopDevice {
    // Kept open: the device stays attached as long as it has users.
    _device: File,
    path: PathBuf,
    number: (u32, u32),
}

impl LoopDevice {
    /// Attaches `file` as a block device of its size, with sectors of 512 bytes.
    ///
    /// Other processes may attach devices at the same time. Fails without root, and if the kernel has no loop devices.
    pub fn attach(file: &File) -> Result<LoopDevice, KernelError> {
        let control =
            OpenOptions::new().read(true).write(true).open("/dev/loop-control").map_err(|error| {
                match error.kind() {
                    io::ErrorKind::NotFound => KernelError::missing(
                        "the kernel's loop devices are missing: there is no /dev/loop-control",
                        "load them (modprobe loop), or give a container that device and /dev/loop*",
                    ),
                    _ => failed("open /dev/loop-control")(error),
                }
            })?;
        for _ in 0..ATTEMPTS {
            let free = ioctls::free_device(&control).map_err(failed("ask for a free loop device"))?;
            let path = PathBuf::from(format!("/dev/loop{free}"));
            let device = match open_device(&path) {
                Ok(device) => device,
                // The device node may appear a moment after the device.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    std::thread::sleep(PAUSE);
                    continue;
                }
                Err(error) => return Err(failed(format!("open {}", path.display()))(error)),
            };
            match ioctls::configure(&device, file) {
                Ok(()) => return LoopDevice::of(device, path),
                // Another process took the device.
                Err(Errno::EBUSY) => std::thread::sleep(PAUSE),
                Err(error) => return Err(failed(format!("attach {}", path.display()))(error)),
            }
        }
        Err(KernelError::missing(
            "no free loop device could be attached: none has a node in /dev, or others took them all",
            "detach some (losetup --list), or give the container /dev/loop*",
        ))
    }

    fn of(device: File, path: PathBuf) -> Result<LoopDevice, KernelError> {
        let metadata = device.metadata().map_err(failed(format!("look at {}", path.display())))?;
        let number = metadata.rdev();
        let number = (nix::sys::stat::major(number) as u32, nix::sys::stat::minor(number) as u32);
        Ok(LoopDevice { _device: device, path, number })
    }

    /// Its name, such as /dev/loop3.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes written to the device since it was first attached, counted by the kernel; `None` if statistics are off.
    pub fn written_bytes(&self) -> Option<u64> {
        let (major, minor) = self.number;
        let place = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
        let is_counting = std::fs::read_to_string(place.join("queue/iostats")).ok()?.trim() == "1";
        let counters = std::fs::read_to_string(place.join("stat")).ok()?;
        // The seventh field counts sectors of 512 bytes ("Block layer statistics" of the kernel's documentation).
        let sectors: u64 = counters.split_whitespace().nth(6)?.parse().ok()?;
        is_counting.then_some(sectors * 512)
    }

    /// Waits until the device has no request in flight, or for `patience`: a request that is counted later was queued before.
    pub fn wait_until_idle(&self, patience: Duration) {
        let (major, minor) = self.number;
        let in_flight = || std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/inflight"));
        let until = Instant::now() + patience;
        while in_flight().is_ok_and(|counts| counts.split_whitespace().any(|count| count != "0"))
            && Instant::now() < until
        {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Its major and minor number.
    pub fn number(&self) -> (u32, u32) {
        self.number
    }
}

fn open_device(path: &Path) -> io::Result<File> {
    let device = OpenOptions::new().read(true).write(true).open(path)?;
    if device.metadata()?.file_type().is_block_device() {
        Ok(device)
    } else {
        Err(io::Error::other("it is not a block device"))
    }
}

/// The two ioctls, which have no safe form. Numbers and structures are those of `linux/loop.h`.
mod ioctls {
    use super::{AsRawFd, Errno, File};

    const AUTOCLEAR: u32 = 4;

    #[repr(C)]
    #[derive(Default)]
    pub struct Information {
        device: u64,
        inode: u64,
        represented_device: u64,
        offset: u64,
        size_limit: u64,
        number: u32,
        encryption: u32,
        encryption_key_bytes: u32,
        flags: u32,
        file_name: [[u64; 4]; 2],
        cipher_name: [[u64; 4]; 2],
        encryption_key: [u64; 4],
        initial: [u64; 2],
    }

    #[repr(C)]
    #[derive(Default)]
    pub struct Configuration {
        file: u32,
        block_bytes: u32,
        information: Information,
        reserved: [u64; 8],
    }

    const _: () = assert!(size_of::<Information>() == 232 && size_of::<Configuration>() == 304);

    nix::ioctl_none_bad!(loop_control_get_free, 0x4C82);
    nix::ioctl_write_ptr_bad!(loop_configure, 0x4C0A, Configuration);

    #[allow(unsafe_code, reason = "an ioctl")]
    pub fn free_device(control: &File) -> Result<i32, Errno> {
        // SAFETY: the request takes no argument and touches no memory of ours; the descriptor is open.
        unsafe { loop_control_get_free(control.as_raw_fd()) }
    }

    #[allow(unsafe_code, reason = "an ioctl")]
    pub fn configure(device: &File, file: &File) -> Result<(), Errno> {
        let descriptor = u32::try_from(file.as_raw_fd()).map_err(|_| Errno::EBADF)?;
        let information = Information { flags: AUTOCLEAR, ..Information::default() };
        let configuration = Configuration { file: descriptor, information, ..Configuration::default() };
        // SAFETY: the request reads one structure of the size that is asserted above, which lives until it returns;
        // both descriptors are open.
        unsafe { loop_configure(device.as_raw_fd(), &configuration) }.map(|_| ())
    }
}
