//! Uses of an image by the kernel, which does not ask for the lock of an image: a mounted block device, and a file behind
//! a loop device.

use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Open options that fail with EBUSY if the path is a block device that is mounted, swapped to, or below another one. The
/// kernel cannot mount it while it is open.
pub fn exclusive(path: &Path) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    if path.metadata().is_ok_and(|found| found.file_type().is_block_device()) {
        options.custom_flags(OFlags::EXCL.bits() as i32);
    }
    options
}

/// The loop device that has a file, such as `/dev/loop0`; `None` if none has it. One that another mount namespace set up
/// for a path of its own is not recognised.
pub fn loop_device_of(file: &File) -> Option<String> {
    let own = file.metadata().ok()?;
    let devices = std::fs::read_dir("/sys/block").ok()?.flatten();
    let mut users = devices.filter(|device| {
        let Ok(backing) = std::fs::read_to_string(device.path().join("loop/backing_file")) else { return false };
        let behind = std::fs::metadata(backing.trim_end_matches('\n'));
        behind.is_ok_and(|behind| (behind.dev(), behind.ino()) == (own.dev(), own.ino()))
    });
    users.next().map(|device| format!("/dev/{}", device.file_name().display()))
}
