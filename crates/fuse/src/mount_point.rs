//! Mount points, and the FUSE mounts at them.

use crate::error::MountError;
use flashpath::run::STATIONS;
use nix::errno::Errno;
use nix::mount::{MntFlags, umount2};
use nix::sys::statvfs::statvfs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Checks, without a change, that a mount could be made at `directory`: it is empty and has no FUSE mount, or only one of a
/// killed server, or it can be made in a directory.
pub fn check_mount_point(directory: &Path) -> Result<(), MountError> {
    if is_dead(directory) {
        return Ok(());
    }
    match check_directory(directory) {
        Err(MountError::Directory { source, .. })
            if source.kind() == io::ErrorKind::NotFound && has_parent(directory) =>
        {
            Ok(())
        }
        checked => checked,
    }
}

/// True if the directory that would hold `directory` exists.
fn has_parent(directory: &Path) -> bool {
    directory.parent().is_some_and(|parent| parent.as_os_str().is_empty() || parent.is_dir())
}

/// Ensures an empty directory without a FUSE mount; true if it was made. The mount of a killed server is unmounted.
pub fn prepare(directory: &Path) -> Result<bool, MountError> {
    let failed = |source| MountError::Directory { directory: directory.to_path_buf(), source };
    if is_dead(directory) {
        // Its server was killed: it can only be unmounted.
        unmount(directory, MntFlags::MNT_DETACH | MntFlags::UMOUNT_NOFOLLOW).map_err(|error| failed(error.into()))?;
    }
    match check_directory(directory) {
        Ok(()) => Ok(false),
        Err(MountError::Directory { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            std::fs::create_dir(directory).map(|()| true).map_err(failed)
        }
        Err(error) => Err(error),
    }
}

/// Checks that a directory is empty, and has no FUSE mount.
fn check_directory(directory: &Path) -> Result<(), MountError> {
    if let Some(mount) = FuseMount::at(directory) {
        let what = format!("{} ({})", mount.source, mount.kind);
        return Err(MountError::Taken { directory: directory.to_path_buf(), what });
    }
    match std::fs::read_dir(directory) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(MountError::NotEmpty(directory.to_path_buf())),
        },
        Err(source) => Err(MountError::Directory { directory: directory.to_path_buf(), source }),
    }
}

/// Unmounts; without root, through fusermount3, which is set-user-ID root.
pub fn unmount(directory: &Path, flags: MntFlags) -> Result<(), Errno> {
    match umount2(directory, flags) {
        Err(Errno::EPERM) => {
            let mut command = Command::new("fusermount3");
            command.arg("-u").args(flags.contains(MntFlags::MNT_DETACH).then_some("-z")).arg("--").arg(directory);
            let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
            match status {
                Ok(status) if status.success() => Ok(()),
                // Its reason is text; nearly always the mount is busy.
                Ok(_) => Err(Errno::EBUSY),
                Err(_) => Err(Errno::EPERM),
            }
        }
        ended => ended,
    }
}

/// A FUSE mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FuseMount {
    /// The mount point, from the root.
    pub directory: PathBuf,
    /// The kernel's name of its type: `fuse.sfs`.
    pub kind: String,
    /// The source: the path of the volume.
    pub source: String,
    /// The kernel's number of the mounted file system: `0:57`.
    pub device: String,
    /// The user who mounted it.
    pub user: Option<u32>,
}

impl FuseMount {
    /// The FUSE mount at a directory; `None` if there is none. An empty mount of another file system may be mounted over.
    pub fn at(directory: &Path) -> Option<FuseMount> {
        let directory = full_name(directory)?;
        // Without /proc it is unknown; a directory with files is refused all the same.
        let mounts = std::fs::read("/proc/self/mountinfo").ok()?;
        topmost(&mounts, &directory).filter(|mount| mount.kind == "fuse" || mount.kind.starts_with("fuse."))
    }

    /// True if this program serves it: a volume of any kind, or a device as one file.
    pub fn is_of_flashpath(&self) -> bool {
        let is_volume = |name: &str| STATIONS.iter().filter(|row| row.is_volume()).any(|row| row.kind.name == name);
        self.kind.strip_prefix("fuse.").is_some_and(|name| name == "flashpath" || is_volume(name))
    }

    /// True if its file system is also mounted elsewhere, as by a bind mount: unmounting this one does not end its
    /// server.
    pub fn is_elsewhere(&self) -> bool {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        mounts.lines().filter(|line| line.split(' ').nth(2) == Some(&self.device)).count() > 1
    }

    /// True if the process that served it has ended: every request fails with ENOTCONN.
    pub fn is_dead(&self) -> bool {
        is_dead(&self.directory)
    }
}

/// True if a mount's server is gone. The kernel may answer other calls from its caches, but never statvfs.
fn is_dead(directory: &Path) -> bool {
    statvfs(directory).is_err_and(|error| error == Errno::ENOTCONN)
}

/// The absolute name. The mount point of a dead server cannot be resolved, but its parent can.
fn full_name(directory: &Path) -> Option<PathBuf> {
    directory.canonicalize().ok().or_else(|| {
        let parent =
            directory.parent().map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent });
        Some(parent?.canonicalize().ok()?.join(directory.file_name()?))
    })
}

/// The topmost mount at this place (proc_pid_mountinfo(5)).
fn topmost(mounts: &[u8], place: &Path) -> Option<FuseMount> {
    let lines = mounts.split(|byte| *byte == b'\n').rev();
    let mut found = lines.filter_map(|line| {
        let mut words = line.split(|byte| *byte == b' ');
        let device = String::from_utf8_lossy(words.nth(2)?).into_owned();
        let directory = unescaped(words.nth(1)?);
        // After the optional fields: a dash, the type, the source, the file system's own options.
        let mut behind = words.skip_while(|word| *word != b"-").skip(1);
        let kind = String::from_utf8_lossy(behind.next()?).into_owned();
        let source = unescaped(behind.next()?).display().to_string();
        let options = String::from_utf8_lossy(behind.next().unwrap_or_default()).into_owned();
        let user = options.split(',').find_map(|option| option.strip_prefix("user_id=")?.parse().ok());
        (directory == place).then_some(FuseMount { directory, kind, source, device, user })
    });
    found.next()
}

/// The name with its escapes decoded: a backslash and three octal digits stand for a space and the like.
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

/// The name of the source, for `df`: fusermount3 takes commas and backslashes only after a backslash.
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
            23 1 0:22 / /mnt/a\\040b\\134 rw shared:1 master:2 - fuse.sfs sfs/mem:size=1G,x=\\0401 rw,user_id=5,group_id=0\n\
            24 1 0:23 / /mnt rw - fuse.flashpath flashpath rw\n\
            broken\n";
        let found =
            |place: &str| topmost(mounts, Path::new(place)).map(|mount| (mount.kind, mount.source, mount.device));
        let of = |kind: &str, source: &str, device: &str| Some((kind.into(), source.into(), device.into()));
        assert_eq!(found("/mnt"), of("fuse.flashpath", "flashpath", "0:23"));
        assert_eq!(found("/mnt/a b\\"), of("fuse.sfs", "sfs/mem:size=1G,x= 1", "0:22"));
        assert_eq!(found("/mnt/a"), None);
        assert_eq!(topmost(mounts, Path::new("/mnt/a b\\")).unwrap().user, Some(5));
    }

    /// Mounts were recognised by the names `sfs` and `flashpath`: one of a third file system, shown under its own name,
    /// could be neither unmounted nor remounted by this program.
    #[test]
    fn mounts_of_every_volume_in_the_table_are_the_programs_and_those_of_others_are_not() {
        let is_known = |name: &str| {
            let kind = format!("fuse.{name}");
            let mount =
                FuseMount { directory: "/m".into(), kind, source: String::new(), device: String::new(), user: None };
            mount.is_of_flashpath()
        };
        let volumes = STATIONS.iter().filter(|row| row.is_volume()).map(|row| row.kind.name);
        assert_eq!(volumes.filter(|name| is_known(name)).collect::<Vec<_>>(), ["sfs", "ext", "tree"]);
        assert!(is_known("flashpath"));
        for other in ["ext4", "sshfs", "conv", "sfs2", ""] {
            assert!(!is_known(other), "{other}");
        }
    }

    #[test]
    fn a_name_with_commas_goes_through_fusermount_whole() {
        assert_eq!(source_name("sfs:a=1,b=2/zns", false), "sfs:a=1,b=2/zns");
        assert_eq!(source_name("sfs:a=1,b=\\2/zns", true), "sfs:a=1\\,b=\\\\2/zns");
        assert_eq!(source_name(&"x".repeat(5000), true), "flashpath");
    }
}
