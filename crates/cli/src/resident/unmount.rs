//! Unmounts, and waits while the mount is in use.

use super::cannot;
use super::signals::Signals;
use crate::failure::Failure;
use crate::print_message;
use flashpath_fuse::{Leaving, MountError, Mounted};
use std::time::Duration;

/// The interval of the attempts while it is in use.
const PAUSE: Duration = Duration::from_millis(100);

/// Unmounts. While the mount is in use, prints its users once and waits, until a second signal abandons it.
pub fn unmount(mut mounted: Mounted, signals: &Signals) -> Result<(), Failure> {
    let mut is_announced = false;
    loop {
        match mounted.leave() {
            Leaving::Left => return Ok(()),
            Leaving::Failed(error) => {
                return Err(cannot(&format!("unmount {}", mounted.directory().display()), error));
            }
            Leaving::Busy if signals.are_two() => {
                mounted.abandon();
                return Err(Failure::Quiet(130));
            }
            Leaving::Busy if is_announced => {}
            Leaving::Busy => {
                is_announced = true;
                let users = flashpath_kernel::users_of(mounted.directory());
                let place = mounted.directory().display();
                print_message(&format!("{place} is in use{users}: waiting until it is free, or for a second signal"));
            }
        }
        signals.wait_at_most(PAUSE);
    }
}

impl From<MountError> for Failure {
    fn from(error: MountError) -> Failure {
        let help = match &error {
            MountError::Name(_) => Some("write the mount point and the file's name, such as mnt/disk".to_string()),
            MountError::NotEmpty(_) => Some("choose an empty directory, or a name that is free".to_string()),
            MountError::Taken { directory, .. } => {
                Some(format!("end it with flashpath umount {}, or choose another directory", directory.display()))
            }
            MountError::Directory { .. } => None,
            MountError::Mount { .. } => {
                Some("it needs /dev/fuse, and without root the program fusermount3 (apt-get install fuse3)".to_string())
            }
        };
        Failure::input(error.to_string(), help)
    }
}
