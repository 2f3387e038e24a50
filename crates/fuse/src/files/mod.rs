//! What the requests to a mounted volume do.
//!
//! | file | what it is |
//! |---|---|
//! | `mod` | the volume, and what its requests share |
//! | `names` | finding, making, linking, renaming and removing |
//! | `attributes` | what is known of a file, in the kernel's words |
//! | `change` | setattr, and the bits that a change takes away |
//! | `content` | reading, writing, allocating, seeking, copying |
//! | `listing` | directories |
//! | `extended` | extended attributes |
//! | `access_list` | access control lists, in step with modes |
//! | `caller` | who makes a request |
//!
//! The kernel has checked permissions before (`default_permissions`), and that names and kinds of files make sense. An
//! inode that the kernel was told of is held until it forgets it, with a name or without.

mod access_list;
mod attributes;
mod caller;
mod change;
mod content;
mod extended;
mod listing;
mod names;

pub use attributes::{kind_of_mode, system_attributes, system_kind};
pub use caller::Caller;
pub use change::Wish;
pub use names::Made;

use crate::error::CallError;
use crate::sharing::VolumeSharing;
use flashpath::device::Account;
use flashpath::fs::sfs::{Attributes, InodeNumber, Sfs, SfsError, Space, Timestamp};
use flashpath::time::Time;
use std::collections::HashSet;

/// Inodes of which it is known that they have no capabilities. Of others it is looked up again.
const MOST_KNOWN: usize = 1 << 16;

/// The volume, and what its requests share.
pub struct Files {
    volume: Sfs,
    sharing: VolumeSharing,
    /// Inodes that the kernel knows and that are known to have no capabilities of a program, which a write would take
    /// away: some of those that were written, [`MOST_KNOWN`] at the most.
    without_capability: HashSet<InodeNumber>,
}

impl Files {
    /// Those of this volume.
    pub fn new(volume: Sfs, sharing: VolumeSharing) -> Files {
        Files { volume, sharing, without_capability: HashSet::new() }
    }

    /// A request begins at `at`, or when the one before it ended.
    pub fn begin(&mut self, at: Time) {
        self.volume.begin(at);
    }

    /// The instant up to which the last request took.
    pub fn now(&self) -> Time {
        self.volume.now()
    }

    /// The same by the wall clock, as the volume stamps files with.
    fn timestamp(&self) -> Timestamp {
        let now = i64::try_from(self.volume.now().0).unwrap_or(i64::MAX);
        Timestamp(self.sharing.wall_origin_ns.saturating_add(now))
    }

    /// A piece of what is due in the background.
    pub fn work(&mut self) -> Result<Option<Time>, CallError> {
        Ok(self.volume.work()?)
    }

    /// True if something has changed since the last checkpoint, and can be made durable.
    pub fn is_changed(&self) -> bool {
        self.volume.is_changed() && self.volume.read_only().is_none()
    }

    /// Makes all that has changed durable.
    pub fn store(&mut self) -> Result<(), CallError> {
        Ok(self.volume.sync()?)
    }

    /// Ends in good order.
    pub fn unmount(mut self, at: Time) -> Result<(), SfsError> {
        self.volume.begin(at);
        self.volume.unmount()
    }

    /// What the stations have counted, and what they warn of.
    pub fn account(&self) -> Account {
        self.volume.account()
    }

    /// How much there is, and how much is left.
    pub fn space(&self) -> Space {
        self.volume.space()
    }

    /// What is known of a file.
    pub fn attributes(&mut self, inode: InodeNumber) -> Result<Attributes, CallError> {
        Ok(self.volume.attributes(inode)?)
    }

    /// The kernel forgets an inode that it was told of `times` times.
    pub fn forget(&mut self, inode: InodeNumber, times: u64) -> Result<(), CallError> {
        if inode == InodeNumber::ROOT {
            return Ok(());
        }
        self.without_capability.remove(&inode);
        Ok(self.volume.release(inode, times)?)
    }

    /// The kernel is told of an inode: it is held until it is forgotten. (The root is known without being told of.)
    fn hold(&mut self, inode: InodeNumber) -> Result<(), CallError> {
        if inode != InodeNumber::ROOT {
            self.volume.retain(inode)?;
        }
        Ok(())
    }
}
