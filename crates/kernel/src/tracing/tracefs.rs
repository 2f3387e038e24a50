//! Finds or mounts tracefs.

use crate::{KernelError, Mount};
use std::path::{Path, PathBuf};

/// The tracing file system: an existing mount, or one that ends with this guard.
#[derive(Debug)]
pub(super) enum Tracefs {
    Found(PathBuf),
    Own(Mount),
}

impl Tracefs {
    /// Finds tracefs among the mounts, or mounts it in a new directory.
    pub fn find(directory: &Path) -> Result<Tracefs, KernelError> {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let has_instances = |path: &PathBuf| path.join("instances").is_dir();
        match mounts.lines().filter_map(mounted_tracefs).find(has_instances) {
            Some(path) => Ok(Tracefs::Found(path)),
            None => {
                Mount::new(Path::new("tracefs"), "tracefs", "", directory).map(Tracefs::Own).map_err(
                    |error| match error {
                        KernelError::Missing { .. } => KernelError::missing(
                            format!("tracefs is missing: {error}"),
                            "it takes root, and a kernel with CONFIG_FTRACE and without lockdown (mount -t tracefs)",
                        ),
                        other => other,
                    },
                )
            }
        }
    }

    pub fn path(&self) -> &Path {
        match self {
            Tracefs::Found(path) => path,
            Tracefs::Own(mount) => mount.path(),
        }
    }
}

/// The mount point in a line of mountinfo (fields, a dash, the type), if it is the root of a tracefs. Spaces are
/// written \040.
fn mounted_tracefs(line: &str) -> Option<PathBuf> {
    let (fields, kind) = line.split_once(" - ")?;
    let mut fields = fields.split(' ').skip(3);
    let (root, place) = (fields.next()?, fields.next()?);
    (root == "/" && kind.starts_with("tracefs ")).then(|| PathBuf::from(place.replace("\\040", " ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mounted_tracefs_is_found_by_its_type() {
        let line = "37 24 0:12 / /sys/kernel/tracing rw,nosuid shared:14 - tracefs tracefs rw";
        assert_eq!(mounted_tracefs(line), Some(PathBuf::from("/sys/kernel/tracing")));
        assert_eq!(mounted_tracefs("25 1 8:1 / /tracefs rw - ext4 /dev/sda1 rw"), None);
        assert_eq!(mounted_tracefs("37 24 0:12 /events /mnt rw - tracefs tracefs rw"), None);
    }
}
