//! The changes of the running transaction, as the tags of a fast commit tell it: from the tracked changes, and from the
//! blocks of metadata as they are now.
//!
//! Names come in their order, a new file's inode before its name. Then the blocks of all files that have changed, each
//! file's inode behind them: the kernel counts a file's blocks when it replays its inode, and a name changes its time. Directories have no tags of their own: their blocks, sizes, links and times follow from the
//! names. A file without a name is not told, since its last unlink was.

use super::files::extent_tree::in_extents;
use super::files::inodes::Inodes;
use super::files::node::File;
use super::format::fast_commit::Change;
use super::format::inode::{Inode, Stamp, flag};
use super::journal::{FastTags, Journal, Pending, Reason, TrackedFile, TransactionId};
use crate::fs::volume::{FileKind, VolumeError};
use crate::task::Task;

/// The longest an inode's clock may be behind the time at which the volume was made, in seconds: clocks are set. A fast commit
/// with one that is further behind is taken for one of another life of the device.
pub const CLOCK_SECONDS: i64 = 86_400;
/// The place of the superblock's time at which the volume was made, in seconds.
pub const MADE_AT: usize = 264;
/// The most bytes of an inode that a tag has room for in the smallest block.
const MOST_INODE_BYTES: usize = 1000;
const OLD_BYTES: usize = 128;

/// The state of its changes that a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Its changes are durable (fsync, fdatasync).
    Durability,
    /// They are there after a crash if anything is that comes later (fbarrier, fdatabarrier).
    Order,
}

impl Inodes<'_> {
    /// Makes a transaction's changes of a file durable, or puts them in order, unless they are: by a fast commit, or else in
    /// full. The task is behind no gate.
    pub fn commit_of(
        &self,
        task: &Task<'_>,
        journal: &dyn Journal,
        id: TransactionId,
        inode: u32,
        wanted: Wanted,
    ) -> Result<(), VolumeError> {
        if journal.tracker().is_some() {
            let made_at = self.head.enter(task).superblock.u32(MADE_AT).into();
            let read_tags = |task: &Task<'_>, pending: &Pending| self.fast_tags(task, pending, made_at);
            let is_done = match wanted {
                Wanted::Durability => journal.commit_fast(task, id, inode, &read_tags)?,
                Wanted::Order => journal.order_fast(task, id, inode, &read_tags)?,
            };
            if is_done {
                return Ok(());
            }
        }
        match wanted {
            Wanted::Durability => journal.commit(task, id),
            Wanted::Order => journal.order(task, id),
        }
    }

    /// The tags of these changes.
    fn fast_tags(&self, task: &Task<'_>, pending: &Pending, made_at: i64) -> Result<FastTags, VolumeError> {
        let mut changes = Vec::new();
        for change in pending.names() {
            if let Change::Create(name) = change {
                match self.tell_inode(task, name.inode, made_at)? {
                    Ok(Some((_, inode))) => {
                        changes.push(inode);
                        // e2fsck leaves a file whose last name it unlinks its blocks, which the next file would have.
                        let was_freed = pending.files().get(&name.inode).is_some_and(TrackedFile::was_freed);
                        changes.extend(was_freed.then_some(Change::CutRange {
                            inode: name.inode,
                            first: 0,
                            blocks: u32::MAX,
                        }));
                    }
                    Ok(None) => return Ok(Err(Reason::Other)),
                    Err(reason) => return Ok(Err(reason)),
                }
            }
            changes.push(change.clone());
        }
        for (number, file) in pending.files() {
            match self.tell_inode(task, *number, made_at)? {
                Ok(Some((stored, inode))) => {
                    self.tell_ranges(task, &stored, file, &mut changes)?;
                    changes.push(inode);
                }
                Ok(None) => {}
                Err(reason) => return Ok(Err(reason)),
            }
        }
        Ok(Ok(changes))
    }

    /// The file with this inode as it is in the table, and the tag of the inode; `None` if it has no name.
    fn tell_inode(
        &self,
        task: &Task<'_>,
        number: u32,
        made_at: i64,
    ) -> Result<Result<Option<(File, Change)>, Reason>, VolumeError> {
        let stored = File::new(number, self.metadata.read_inode(task, number)?);
        if stored.inode.links() == 0 {
            return Ok(Ok(None));
        }
        Ok(inode_change(&stored, made_at).map(|inode| Some((stored, inode))))
    }

    /// Tells the places of a file's blocks that have changed; of a new file, those that it has.
    fn tell_ranges(
        &self,
        task: &Task<'_>,
        stored: &File,
        file: &TrackedFile,
        changes: &mut Vec<Change>,
    ) -> Result<(), VolumeError> {
        let inode = stored.number;
        for range in file.ranges() {
            let (mut at, end) = (range.start, range.end.min(u64::from(u32::MAX)));
            while at < end {
                let run = self.maps.run(task, stored, at)?;
                let count = run.count.min(end - at);
                match run.place {
                    Some(place) => {
                        let extents = in_extents(at, place..place + count, run.is_written);
                        changes.extend(extents.map(|extent| Change::AddRange { inode, extent }));
                    }
                    None if file.is_new() => {}
                    None => changes.push(Change::CutRange { inode, first: at as u32, blocks: count as u32 }),
                }
                at += count;
            }
        }
        Ok(())
    }
}

/// The tag of an inode as it is in the table, or the reason why it can have none.
fn inode_change(stored: &File, made_at: i64) -> Result<Change, Reason> {
    let inode: &Inode = &stored.inode;
    match inode.kind() {
        Some(FileKind::Regular) if inode.has(flag::EXTENTS) => {}
        Some(FileKind::Regular) => return Err(Reason::BlockMap),
        _ => return Err(Reason::Kind),
    }
    let changed = inode.stamp(Stamp::Changed).0.div_euclid(1_000_000_000);
    if changed + CLOCK_SECONDS < made_at {
        return Err(Reason::OldTimes);
    }
    let length = (OLD_BYTES + inode.extra()).min(inode.bytes().len());
    if length > MOST_INODE_BYTES {
        return Err(Reason::Other);
    }
    Ok(Change::Inode { inode: stored.number, bytes: inode.bytes()[..length].to_vec() })
}
