//! The rules of POSIX common to all file systems: [`Posix`] around a [`Volume`].
//!
//! A file system keeps names, attributes and bytes. The rules are here: permissions, bits of the mode cleared by a
//! change, inheritance from a directory, access control lists that follow the mode, updates of access times, and names
//! of extended attributes. Rules that inspect files before they permit an operation are passed to the volume, which
//! calls them while it holds its locks ([`rules`](super::volume::Locked)).
//!
//! | file | content |
//! |---|---|
//! | `permission` | permission checks, by mode and access control list |
//! | `access_list` | access control lists, consistent with modes |
//! | `names` | lookup, create, link, rename and unlink |
//! | `change` | modes, owners, sizes, times |
//! | `privileges` | bits and capabilities that a change clears |
//! | `content` | read, write, allocate, seek, copy |
//! | `reads` | updates of the access time |
//! | `listing` | listing of directories |
//! | `extended` | extended attributes |

mod access_list;
mod change;
mod content;
mod extended;
mod listing;
mod names;
mod permission;
mod privileges;
mod reads;

pub use change::{NewTime, SetAttributes};
pub use names::CreateRequest;
pub use permission::Wanted;
pub use reads::AccessTimes;

use super::Durable;
use super::volume::{Attributes, Call, InodeNumber, Space, Timestamp, Volume, VolumeError};
use privileges::WithoutCapability;
use std::sync::Arc;

/// The place of permission checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checks {
    /// The kernel checks before it calls (`default_permissions`).
    #[default]
    Kernel,
    /// [`Posix`] checks.
    Here,
}

/// The options of a mounted volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The place of permission checks.
    pub checks: Checks,
    /// True if nothing may be changed, including access times.
    pub read_only: bool,
    /// The policy for updates of the access time.
    pub access_times: AccessTimes,
    /// True if reading a directory does not update its access time (nodiratime).
    pub ignores_directory_reads: bool,
}

/// A volume with the rules common to all file systems.
pub struct Posix {
    volume: Arc<dyn Volume>,
    usage: Usage,
    without_capability: WithoutCapability,
}

impl Posix {
    /// Wraps this volume with these options.
    pub fn new(volume: Arc<dyn Volume>, usage: Usage) -> Posix {
        Posix { volume, usage, without_capability: WithoutCapability::default() }
    }

    /// The volume.
    pub fn volume(&self) -> &dyn Volume {
        &*self.volume
    }

    /// The mount options.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// The attributes of a file.
    pub fn attributes(&self, call: &Call, inode: InodeNumber) -> Result<Attributes, VolumeError> {
        self.volume.attributes(call, inode)
    }

    /// Makes a file or a directory durable.
    pub fn sync_file(&self, call: &Call, inode: InodeNumber, what: Durable) -> Result<(), VolumeError> {
        self.volume.sync_file(call, inode, what)
    }

    /// Total and free space.
    pub fn space(&self, call: &Call) -> Result<Space, VolumeError> {
        self.volume.space(call)
    }

    /// Drops `times` references to a file.
    pub fn forget(&self, call: &Call, inode: InodeNumber, times: u64) -> Result<(), VolumeError> {
        self.volume.forget(call, inode, times)
    }

    /// The wall-clock time of a call.
    fn timestamp(&self, call: &Call) -> Timestamp {
        self.volume.timestamp(call.task.now())
    }
}
