//! The directory that becomes a mount point.

use crate::mounted::MountError;
use nix::errno::Errno;
use nix::mount::{MntFlags, umount2};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Makes sure that there is an empty directory on which nothing is mounted through FUSE; whether it was made. A mount
/// whose server was killed is taken away.
pub fn prepare(directory: &Path) -> Result<bool, MountError> {
    let failed = |source| MountError::Directory { directory: directory.to_path_buf(), source };
    let is_dead = |error: &io::Error| error.raw_os_error() == Some(Errno::ENOTCONN as i32);
    if std::fs::metadata(directory).is_err_and(|error| is_dead(&error)) {
        // Its server was killed: nothing can be done with it but this.
        unmount(directory, MntFlags::MNT_DETACH | MntFlags::UMOUNT_NOFOLLOW).map_err(|error| failed(error.into()))?;
    }
    if let Some(what) = mounted_at(directory) {
        return Err(MountError::Taken { directory: directory.to_path_buf(), what });
    }
    match std::fs::read_dir(directory) {
        Ok(mut entries) => match entries.next() {
            None => Ok(false),
            Some(_) => Err(MountError::NotEmpty(directory.to_path_buf())),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            std::fs::create_dir(directory).map(|()| true).map_err(failed)
        }
        Err(error) => Err(failed(error)),
    }
}

/// Unmounts; without root, through fusermount3, which may.
pub fn unmount(directory: &Path, flags: MntFlags) -> Result<(), Errno> {
    match umount2(directory, flags) {
        Err(Errno::EPERM) => {
            let mut command = Command::new("fusermount3");
            command.arg("-u").args(flags.contains(MntFlags::MNT_DETACH).then_some("-z")).arg("--").arg(directory);
            let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
            match status {
                Ok(status) if status.success() => Ok(()),
                // It says why only in words; what it is nearly always about is this.
                Ok(_) => Err(Errno::EBUSY),
                Err(_) => Err(Errno::EPERM),
            }
        }
        ended => ended,
    }
}

/// What is mounted there through FUSE, in words. A file system of the kernel is no obstacle: an empty one may be
/// covered.
fn mounted_at(directory: &Path) -> Option<String> {
    let directory = directory.canonicalize().ok()?;
    // Without /proc nobody can tell, and what has files is refused all the same.
    let mounts = std::fs::read("/proc/self/mountinfo").ok()?;
    let (kind, source) = topmost(&mounts, &directory)?;
    let is_fuse = kind == "fuse" || kind.starts_with("fuse.");
    is_fuse.then(|| format!("{source} ({kind})"))
}

/// The kind and the source of the last mount at this place (proc_pid_mountinfo(5)).
fn topmost(mounts: &[u8], place: &Path) -> Option<(String, String)> {
    let lines = mounts.split(|byte| *byte == b'\n').rev();
    let mut found = lines.filter_map(|line| {
        let mut words = line.split(|byte| *byte == b' ');
        let is_here = unescaped(words.nth(4)?) == place;
        // Behind the optional fields: a dash, the kind, the source.
        let mut behind = words.skip_while(|word| *word != b"-").skip(1);
        let words = (behind.next()?, unescaped(behind.next()?));
        is_here.then(|| (String::from_utf8_lossy(words.0).into_owned(), words.1.display().to_string()))
    });
    found.next()
}

/// A name in which spaces and the like are written as backslashes and three octal digits.
fn unescaped(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        let octal = tail.get(..3).filter(|digits| *first == b'\\' && digits.iter().all(|d| (b'0'..b'8').contains(d)));
        match octal {
            Some(digits) => {
                bytes.push(digits.iter().fold(0u8, |value, digit| value.wrapping_mul(8).wrapping_add(digit - b'0')));
                rest = &tail[3..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

/// A name of what is mounted, for `df`: fusermount3 takes commas and backslashes only behind a backslash.
pub fn source_name(text: &str, through_fusermount: bool) -> String {
    /// The kernel takes a page at most.
    const MOST: usize = 1024;
    let name = if text.len() > MOST || text.is_empty() { "flashpath" } else { text };
    if through_fusermount { name.replace('\\', "\\\\").replace(',', "\\,") } else { name.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_topmost_mount_at_a_place_is_found_whatever_its_name() {
        let mounts = b"22 1 0:21 / /mnt rw shared:1 - ext4 /dev/a rw\n\
            23 1 0:22 / /mnt/a\\040b\\134 rw shared:1 master:2 - fuse.sfs sfs/mem:size=1G,x=\\0401 rw,user_id=0\n\
            24 1 0:23 / /mnt rw - fuse.flashpath flashpath rw\n\
            broken\n";
        let found = |place: &str| topmost(mounts, Path::new(place));
        assert_eq!(found("/mnt"), Some(("fuse.flashpath".into(), "flashpath".into())));
        assert_eq!(found("/mnt/a b\\"), Some(("fuse.sfs".into(), "sfs/mem:size=1G,x= 1".into())));
        assert_eq!(found("/mnt/a"), None);
    }

    #[test]
    fn a_name_with_commas_goes_through_fusermount_whole() {
        assert_eq!(source_name("sfs:a=1,b=2/zns", false), "sfs:a=1,b=2/zns");
        assert_eq!(source_name("sfs:a=1,b=\\2/zns", true), "sfs:a=1\\,b=\\\\2/zns");
        assert_eq!(source_name(&"x".repeat(5000), true), "flashpath");
    }
}
