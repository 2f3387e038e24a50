//! A block device, as the kernel names and describes it.

use crate::failure::Failure;
use flashpath::units::format_size;
use nix::sys::stat::{major, minor};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Bytes of a sector in sysfs.
const SECTOR_BYTES: u64 = 512;

/// A whole block device.
pub struct Device {
    /// Its file, as the user named it.
    pub file: PathBuf,
    /// Its major and minor number.
    pub number: (u32, u32),
    /// Its size.
    pub bytes: u64,
    /// True if a driver gets its requests from a queue; device mapper and md pass them on as they are sent.
    pub has_queue: bool,
}

impl Device {
    /// Looks at a device.
    ///
    /// Fails if the file is no block device, or a part of one.
    pub fn open(file: &Path) -> Result<Device, Failure> {
        let name = file.display();
        let about = fs::metadata(file).map_err(|error| wrong(format!("cannot look at {name}: {error}"), LIST))?;
        if !about.file_type().is_block_device() {
            return Err(wrong(format!("{name} is no block device"), LIST));
        }
        let number = numbers(about.rdev());
        let described = sysfs(number);
        if described.join("partition").exists() {
            let whole = whole_of(&described).unwrap_or_else(|| "the whole device".to_string());
            let help = format!("record {whole}: the kernel counts requests of a partition on the device that has it");
            return Err(wrong(format!("{name} is a partition"), &help));
        }
        let sectors = fs::read_to_string(described.join("size")).ok().and_then(|text| text.trim().parse::<u64>().ok());
        let has_queue = !described.join("dm").exists() && !described.join("md").exists();
        let bytes = sectors.unwrap_or(0).saturating_mul(SECTOR_BYTES);
        Ok(Device { file: file.to_path_buf(), number, bytes, has_queue })
    }

    /// True if the files of a folder are stored on it, or on a partition of it.
    pub fn holds(&self, folder: &Path) -> bool {
        let Ok(about) = fs::metadata(folder) else { return false };
        let number = numbers(about.dev());
        let whole = fs::canonicalize(sysfs(number)).ok();
        let own = fs::canonicalize(sysfs(self.number)).ok();
        number == self.number || whole.zip(own).is_some_and(|(place, own)| place.starts_with(own))
    }
}

const LIST: &str = "name a whole block device, such as /dev/nvme0n1: 'lsblk -d' lists them. To record a file system of its own, use \
                    flashpath capture";

fn wrong(message: impl Into<String>, help: &str) -> Failure {
    Failure::input(message, Some(help.to_string()))
}

fn numbers(device: u64) -> (u32, u32) {
    (major(device) as u32, minor(device) as u32)
}

fn sysfs((major, minor): (u32, u32)) -> PathBuf {
    PathBuf::from(format!("/sys/dev/block/{major}:{minor}"))
}

/// The file of the device that has a partition.
fn whole_of(partition: &Path) -> Option<String> {
    let place = fs::canonicalize(partition).ok()?;
    Some(format!("/dev/{}", place.parent()?.file_name()?.to_str()?))
}

/// Refuses a device that is named twice, also by two names.
pub fn check_distinct(devices: &[Device]) -> Result<(), Failure> {
    for (at, device) in devices.iter().enumerate() {
        if let Some(other) = devices[..at].iter().find(|other| other.number == device.number) {
            let message = format!("{} and {} are one device", other.file.display(), device.file.display());
            return Err(wrong(message, "name each device once"));
        }
    }
    Ok(())
}

/// The size of flash for a drive that takes the addresses of all devices, one behind the other.
pub fn drive_for(devices: &[Device]) -> String {
    let bytes: u64 = devices.iter().map(|device| device.bytes).sum();
    // A fifth more than what is exported, in whole GiB.
    let gib = (bytes + bytes / 5).div_ceil(1 << 30).max(1);
    format_size(gib << 30)
}
