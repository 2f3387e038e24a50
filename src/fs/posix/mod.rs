//! The rules of POSIX that are every file system's, once: [`Posix`] around a [`Volume`].
//!
//! A file system itself keeps names, attributes and bytes. These rules it does not have to know: who may
//! do what, which bits of a mode a change takes away, what a new file inherits, how access control lists follow the
//! mode, which reads are noted, and what an extended attribute may be called. Rules that look before they allow are
//! handed to the volume, which asks them behind its own gates ([`rules`](super::volume::Locked)).
//!
//! | file | content |
//! |---|---|
//! | `permission` | who may do what, by mode and access control list |
//! | `access_list` | access control lists, in step with modes |
//! | `names` | finding, making, linking, renaming and removing |
//! | `change` | modes, owners, sizes, times |
//! | `privileges` | the bits and capabilities that a change takes away |
//! | `content` | reading, writing, allocating, seeking, copying |
//! | `reads` | which reads are noted in the time of access |
//! | `listing` | directories |
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

pub use change::{NewTime, Wish};
pub use names::Made;
pub use permission::Wanted;
pub use reads::AccessTimes;

use super::Durable;
use super::volume::{Attributes, Call, InodeNumber, Space, Timestamp, Volume, VolumeError};
use privileges::WithoutCapability;
use std::sync::Arc;

/// The side that checks permissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checks {
    /// The kernel did, before it asked (`default_permissions`).
    #[default]
    Kernel,
    /// Nobody did yet: it is checked here.
    Here,
}

/// The options of a mounted volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The side that checks permissions.
    pub checks: Checks,
    /// Nothing may be changed, and no read is noted.
    pub read_only: bool,
    /// Reads that are noted.
    pub access_times: AccessTimes,
    /// Reads of directories are not.
    pub ignores_directory_reads: bool,
}

/// A volume with the rules that are every file system's.
pub struct Posix {
    volume: Arc<dyn Volume>,
    usage: Usage,
    without_capability: WithoutCapability,
}

impl Posix {
    /// This volume, used so.
    pub fn new(volume: Arc<dyn Volume>, usage: Usage) -> Posix {
        Posix { volume, usage, without_capability: WithoutCapability::default() }
    }

    /// The volume.
    pub fn volume(&self) -> &dyn Volume {
        &*self.volume
    }

    /// The options with which it is used.
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

    /// The space: all, and free.
    pub fn space(&self, call: &Call) -> Result<Space, VolumeError> {
        self.volume.space(call)
    }

    /// Lets a file go that the caller was told of `times` times.
    pub fn forget(&self, call: &Call, inode: InodeNumber, times: u64) -> Result<(), VolumeError> {
        self.volume.forget(call, inode, times)
    }

    /// The wall clock's time at which a call is.
    fn timestamp(&self, call: &Call) -> Timestamp {
        self.volume.timestamp(call.task.now())
    }
}
