//! A mount that ends with its guard.

use crate::{KernelError, failed};
use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The maximum wait for a busy mount.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

/// Options that mount(2) takes as flags, apart from those of the file system.
const FLAGS: [(&str, MsFlags); 10] = [
    ("dirsync", MsFlags::MS_DIRSYNC),
    ("lazytime", MsFlags::MS_LAZYTIME),
    ("noatime", MsFlags::MS_NOATIME),
    ("nodev", MsFlags::MS_NODEV),
    ("nodiratime", MsFlags::MS_NODIRATIME),
    ("noexec", MsFlags::MS_NOEXEC),
    ("nosuid", MsFlags::MS_NOSUID),
    ("relatime", MsFlags::MS_RELATIME),
    ("strictatime", MsFlags::MS_STRICTATIME),
    ("sync", MsFlags::MS_SYNCHRONOUS),
];

/// Divides options into flags and those of the file system, both joined by commas.
fn divide(options: &str) -> (MsFlags, String) {
    let mut flags = MsFlags::empty();
    let of_file_system = options.split(',').filter(|option| {
        let flag = FLAGS.iter().find(|(name, _)| name == option).map(|(_, flag)| *flag);
        flags |= flag.unwrap_or(MsFlags::empty());
        flag.is_none()
    });
    let of_file_system = of_file_system.collect::<Vec<_>>().join(",");
    (flags, of_file_system)
}

/// Checks that the kernel has a file system, or can load it.
///
/// The check is a mount of what is no block device, which fails in any case: for a file system that the kernel lacks, before it looks
/// at the device. Without root nothing is known, and it succeeds.
pub fn check_known(file_system: &str) -> Result<(), KernelError> {
    let listed = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    if listed.lines().any(|line| line.split_whitespace().next_back() == Some(file_system)) {
        return Ok(());
    }
    match mount(Some("/dev/null"), "/", Some(file_system), MsFlags::empty(), None::<&str>) {
        Err(Errno::ENODEV) => Err(missing(file_system)),
        _ => Ok(()),
    }
}

fn missing(file_system: &str) -> KernelError {
    KernelError::missing(
        format!("the kernel has no {file_system}"),
        format!("load it (modprobe {file_system}), or take a file system that /proc/filesystems lists"),
    )
}

/// A mounted file system in a directory of its own.
#[derive(Debug)]
pub struct Mount {
    directory: Option<TempDir>,
    path: PathBuf,
    source: PathBuf,
    file_system: String,
    options: String,
    is_mounted: bool,
}

impl Mount {
    /// Mounts `source`, a device or a name, in a new directory below `beside`.
    ///
    /// `options` are those of mount(8) and of the file system, joined by commas. Fails without root, if the kernel lacks the file
    /// system, and if the file system rejects the options (the kernel's log has the reason).
    pub fn new(source: &Path, file_system: &str, options: &str, beside: &Path) -> Result<Mount, KernelError> {
        let directory = tempfile::Builder::new()
            .prefix("flashpath-mount-")
            .tempdir_in(beside)
            .map_err(failed(format!("make a directory in {}", beside.display())))?;
        let mut made = Mount {
            path: directory.path().to_path_buf(),
            directory: Some(directory),
            source: source.to_path_buf(),
            file_system: file_system.to_string(),
            options: options.to_string(),
            is_mounted: false,
        };
        made.begin()?;
        Ok(made)
    }

    fn begin(&mut self) -> Result<(), KernelError> {
        let Mount { path, source, file_system, options, .. } = self;
        let (flags, data) = divide(options);
        let data = (!data.is_empty()).then_some(data.as_str());
        mount(Some(source.as_path()), path.as_path(), Some(file_system.as_str()), flags, data).map_err(|error| {
            match error {
                Errno::ENODEV => missing(file_system),
                _ => failed(format!("mount {} as {file_system} ({options})", source.display()))(error),
            }
        })?;
        self.is_mounted = true;
        Ok(())
    }

    /// Unmounts and mounts again in the same place with the same options, which empties the journal and all caches.
    /// Fails as [`unmount`](Mount::unmount) and [`new`](Mount::new) do; it is not mounted then.
    pub fn mount_again(&mut self) -> Result<(), KernelError> {
        self.leave()?;
        self.begin()
    }

    /// The mount point.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until all written data is on the device.
    pub fn sync(&self) -> Result<(), KernelError> {
        let doing = || format!("write back {}", self.path.display());
        let directory = File::open(&self.path).map_err(failed(doing()))?;
        nix::unistd::syncfs(&directory).map_err(failed(doing()))
    }

    /// The share of free blocks, from 0 to 1.
    pub fn free_share(&self) -> Result<f64, KernelError> {
        let status = nix::sys::statvfs::statvfs(&self.path)
            .map_err(failed(format!("see how full {} is", self.path.display())))?;
        Ok(status.blocks_available() as f64 / (status.blocks() as f64).max(1.0))
    }

    /// Unmounts. A mount that stays busy is detached, so that it ends with its last user; the error names the users.
    pub fn unmount(mut self) -> Result<(), KernelError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), KernelError> {
        let left = self.leave();
        if let Some(directory) = self.directory.take() {
            // At worst, an empty directory remains.
            let _ = directory.close();
        }
        left
    }

    fn leave(&mut self) -> Result<(), KernelError> {
        if !std::mem::take(&mut self.is_mounted) {
            return Ok(());
        }
        let until = Instant::now() + PATIENCE;
        let ended = loop {
            match umount2(&self.path, MntFlags::UMOUNT_NOFOLLOW) {
                Err(Errno::EBUSY) if Instant::now() < until => std::thread::sleep(PAUSE),
                Err(Errno::EINTR) => {}
                ended => break ended,
            }
        };
        ended.map_err(|error| {
            let users = users_of(&self.path);
            // The mount ends with its last user; the error is reported below.
            let _ = umount2(&self.path, MntFlags::MNT_DETACH | MntFlags::UMOUNT_NOFOLLOW);
            let source = match error {
                Errno::EBUSY => io::Error::other(format!("it is still in use{users}")),
                other => other.into(),
            };
            KernelError::Failed { doing: format!("unmount {}", self.path.display()), source }
        })
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Errors are reported by `unmount` only.
        let _ = self.end();
    }
}

/// The processes with open files below `path`, and the loop devices on such files, as text to append to "in use"; empty
/// if there are none.
pub fn users_of(path: &Path) -> String {
    let is_below = |link: PathBuf| std::fs::read_link(link).is_ok_and(|target| target.starts_with(path));
    let mut users = Vec::new();
    for process in std::fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path()) {
        let Some(number) = process.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok()) else { continue };
        let mut files = std::fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        if is_below(process.join("cwd")) || files.any(|file| is_below(file.path())) {
            let name = std::fs::read_to_string(process.join("comm")).unwrap_or_default();
            users.push(format!("{number} ({})", name.trim()));
        }
    }
    let mut words = Vec::new();
    if !users.is_empty() {
        words.push(format!("process {}", users.join(", ")));
    }
    let mut devices: Vec<String> = std::fs::read_dir("/sys/block")
        .into_iter()
        .flatten()
        .flatten()
        .filter(|device| {
            let file = std::fs::read_to_string(device.path().join("loop/backing_file")).unwrap_or_default();
            Path::new(file.trim_end()).starts_with(path)
        })
        .map(|device| format!("/dev/{}", device.file_name().display()))
        .collect();
    devices.sort();
    words.extend(devices);
    if words.is_empty() { String::new() } else { format!(" by {}", words.join(" and ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_taken_out_of_the_options_of_a_file_system() {
        assert_eq!(divide(""), (MsFlags::empty(), String::new()));
        assert_eq!(divide("data=ordered,nodiscard"), (MsFlags::empty(), "data=ordered,nodiscard".to_string()));
        let flags = MsFlags::MS_NOATIME | MsFlags::MS_NODEV;
        assert_eq!(divide("data=ordered,noatime,nodiscard,nodev"), (flags, "data=ordered,nodiscard".to_string()));
    }
}
