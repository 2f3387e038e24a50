//! Unmounting, in use or not.

use super::cannot;
use super::signals::Signals;
use crate::failure::Failure;
use crate::tell;
use flashpath_fuse::{Leaving, MountError, Mounted};
use std::time::Duration;

/// How often it is tried to unmount what is in use.
const PAUSE: Duration = Duration::from_millis(100);

/// Unmounts. What is in use is waited for, and by whom is told, unless a second signal insists.
pub fn leave(mut mounted: Mounted, signals: &Signals) -> Result<(), Failure> {
    let mut is_told = false;
    loop {
        match mounted.leave() {
            Leaving::Left => return Ok(()),
            Leaving::Failed(error) => {
                return Err(cannot(&format!("unmount {}", mounted.directory().display()), error));
            }
            Leaving::Busy if signals.were_two() => {
                mounted.abandon();
                return Err(Failure::Quiet(130));
            }
            Leaving::Busy if is_told => {}
            Leaving::Busy => {
                is_told = true;
                let users = flashpath_kernel::users_of(mounted.directory());
                let place = mounted.directory().display();
                tell(&format!("{place} is in use{users}: it ends when that does, or at a second signal"));
            }
        }
        signals.wait_at_most(PAUSE);
    }
}

impl From<MountError> for Failure {
    fn from(error: MountError) -> Failure {
        let help = match &error {
            MountError::Name(_) => Some("write the mount point and the file's name, such as mnt/disk".to_string()),
            MountError::NotEmpty(_) => Some("take an empty directory, or one that is not there yet".to_string()),
            MountError::Taken { directory, .. } => {
                Some(format!("flashpath umount {} ends it, or take another directory", directory.display()))
            }
            MountError::Directory { .. } => None,
            MountError::Mount { .. } => {
                Some("it needs /dev/fuse, and without root the program fusermount3 (apt-get install fuse3)".to_string())
            }
        };
        Failure::input(error.to_string(), help)
    }
}
