//! The seam between the file system and its journal.
//!
//! Above it, the file system begins a [`Handle`], changes blocks within it, and commits. Below it, a [`Journal`] makes the
//! changes of all handles of a transaction durable together, and writes them home later. There are three:
//!
//! - [`LoggedJournal`] collects the changes of the running transaction and hands them to a [`Log`], which stores whole
//!   transactions: `jbd2`, in the volume itself or on a device of its own, or `vm_aware`, which writes nothing and has a
//!   monitor keep the memory of committed blocks. Another kind of log replaces [`Log`] alone.
//! - [`CollectedJournal`] keeps changes in memory alone, for a replay.
//! - [`NvmJournal`] copies each changed block into partitioned non-volatile memory when its handle ends, without a lock.
//!
//! | file | content |
//! |---|---|
//! | `mod` | the seam: transactions, handles, the calls of a journal |
//! | `handle` | changes that belong together |
//! | `common` | the state of all journals: blocks that were freed, counts, why nothing is changed any more |
//! | `withheld` | blocks that were freed |
//! | `transactions` | the running transaction, and commits to a log |
//! | `tracker` | the changes of the running transaction, for fast commits |
//! | `reasons` | why a sync takes a full commit where fast ones are written |
//! | `fast` | fast commits of the running transaction |
//! | `collected` | a journal that stores nothing |
//! | `order` | the order of transactions, and the means that keeps it |
//! | `settled` | stores in order, and those of them that a flush has made durable |
//! | `commit_thread` | a thread of its own that commits, if there is one |
//! | `rounds` | a checkpoint that several threads work on |
//! | `checkpoint` | committed blocks of a log go home, beside commits |
//! | `home` | the list of committed blocks that are not home yet |
//! | `jbd2` | a log in jbd2's format, in blocks of a device |
//! | `vm_aware` | VM-aware journaling: a log in memory that a monitor keeps |
//! | `room` | the room of a log, and when a checkpoint is due |
//! | `place` | which blocks of which device |
//! | `atomic` | the atomics, or a model checker's |
//! | `nvm/` | the journal in non-volatile memory |

mod atomic;
mod checkpoint;
#[cfg(test)]
mod checkpoint_tests;
mod collected;
mod commit_thread;
mod common;
mod fast;
mod handle;
mod home;
mod jbd2;
mod nvm;
mod order;
mod place;
mod reasons;
mod room;
mod rounds;
mod settled;
mod tracker;
mod transactions;
mod vm_aware;
mod withheld;

pub use collected::{Changed, CollectedJournal};
pub use common::Counts;
pub use handle::Handle;
pub use jbd2::Jbd2;
pub use nvm::{FoundRegion, Hash, NvmJournal, NvmOptions, RegionShape, RegionSuperblock, Scheme, Slots};
pub use order::{Below as OrderBelow, Order};
pub use place::LogPlace;
pub use reasons::Reason;
pub use tracker::{Pending, TrackedFile, Tracker};
pub use transactions::LoggedJournal;
pub use vm_aware::VmAwareLog;

use super::blocks::Bytes;
use super::format::fast_commit::Change;
use crate::fs::volume::VolumeError;
use crate::label::Content;
use crate::task::Task;
use crate::time::Time;
use common::Common;
use std::ops::Range;

/// So many freed blocks count as one changed block, in the size of a transaction.
const FREED_FOR_ONE: usize = 64;

/// The way of checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpointing {
    /// Blocks that a checkpoint thread writes home at once, at most.
    pub batch: usize,
    /// Threads of a checkpoint; `None` for one, or in non-volatile memory for one for each partition.
    pub threads: Option<u32>,
}

/// The number of a transaction. Numbers go round after 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionId(pub u32);

impl TransactionId {
    pub fn next(self) -> TransactionId {
        TransactionId(self.0.wrapping_add(1))
    }

    /// True if this one is later than `other`.
    pub fn is_after(self, other: TransactionId) -> bool {
        self.0.wrapping_sub(other.0) as i32 > 0
    }
}

/// A block that a transaction changes, as it is when that is committed.
#[derive(Clone, Debug)]
pub struct Logged {
    pub block: u64,
    pub bytes: Bytes,
    /// Its content at home: metadata, or bytes of a file.
    pub content: Content,
}

/// Changes that are there together after a crash, or not at all.
#[derive(Clone, Debug)]
pub struct Transaction {
    pub id: TransactionId,
    pub blocks: Vec<Logged>,
    /// Blocks that were freed: older copies of them in the log are not replayed.
    pub revokes: Vec<u64>,
}

/// A place where transactions are stored until they are home. One at a time is stored, and one at a time lets go.
pub trait Log: Send + Sync {
    /// The most blocks that a transaction may have.
    fn most_blocks(&self) -> usize;

    /// True if there is room for a transaction.
    fn has_room(&self, transaction: &Transaction) -> bool;

    /// The last of the oldest transactions that a checkpoint should write home now; `None` if none is due. `waiting`: a
    /// transaction that waits for room.
    fn due(&self, waiting: Option<&Transaction>) -> Option<TransactionId>;

    /// Stores a transaction; it is durable when this returns, with all that was written to the volume's device before. In a
    /// log of another [`order`](Log::order), it is durable before all that is written later instead, as that says.
    /// `at_ns`: the time on the wall clock. A log that moves to another place puts the superblock that says so into it.
    fn store(&self, task: &Task<'_>, transaction: &mut Transaction, at_ns: i64) -> Result<(), VolumeError>;

    /// The means that keeps its transactions in order.
    fn order(&self) -> Order {
        Order::Flushes
    }

    /// Makes all durable that was stored before.
    fn settle(&self, _: &Task<'_>) -> Result<(), VolumeError> {
        Ok(())
    }

    /// True if it has to move to another place with the next transaction, which is to come soon, also without changes.
    fn wants_to_move(&self) -> bool {
        false
    }

    /// True if it is in the volume, and was in memory when the mount began.
    fn has_moved(&self) -> bool {
        false
    }

    /// The volume's superblock says that nothing is in the log.
    fn closed(&self) -> Result<(), VolumeError> {
        Ok(())
    }

    /// The blocks that transactions before `next` have changed are home, and durable there: lets them go. `is_closed`: they are all,
    /// and none follows in this mount. Others may be stored at the same time.
    fn let_go(&self, task: &Task<'_>, next: TransactionId, is_closed: bool) -> Result<(), VolumeError>;

    /// Counts that only logs of its kind have.
    fn counts(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// The area for fast commits, if it has one.
    fn fast_area(&self) -> Option<&dyn FastArea> {
        None
    }
}

/// The blocks of a log for fast commits, each of which belongs to the transaction that follows the last one in the log. One at
/// a time is stored, and none beside a transaction.
pub trait FastArea: Send + Sync {
    /// Blocks that all fast commits of a transaction may take.
    fn blocks(&self) -> u32;

    /// Bytes of a block.
    fn block_bytes(&self) -> usize;

    /// True if something that was written to the volume's device may be lost yet.
    fn is_unsettled(&self) -> bool;

    /// Makes earlier writes to the volume's device durable, unless they are, or puts them in order, as the log does. A fast
    /// commit that is stored next need not wait for that.
    fn prepare(&self, task: &Task<'_>) -> Result<(), VolumeError>;

    /// Stores a fast commit of transaction `id` in whole blocks, `at` blocks behind the beginning of the area; it is durable
    /// when this returns, with all that was written to the volume's device before, or in order, as a transaction of the log.
    fn store(&self, task: &Task<'_>, id: TransactionId, at: u32, bytes: &[u8]) -> Result<(), VolumeError>;

    /// Clears the first block: the transaction of the fast commits is in the log, and durable. e2fsck 1.47 does not replay a
    /// log behind which there are some of an older transaction.
    fn clear(&self, task: &Task<'_>) -> Result<(), VolumeError>;
}

/// The changes of a fast commit, or the reason why none can have them.
pub type FastTags = Result<Vec<Change>, Reason>;

/// Puts changes into the tags of fast commits, from the blocks of metadata. No handle is open meanwhile, and it begins
/// none.
pub type ReadTags<'t> = &'t dyn Fn(&Task<'_>, &Pending) -> Result<FastTags, VolumeError>;

/// Makes the changes of handles durable, transaction by transaction.
pub trait Journal: Send + Sync {
    /// The most blocks that a handle may promise to change.
    fn most_blocks(&self) -> usize;

    /// Begins a handle that changes `blocks` at the most. May wait for a commit or a checkpoint. The task has no handle
    /// yet.
    ///
    /// # Errors
    ///
    /// A commit or a change has failed: then nothing more is changed.
    fn begin<'j>(&'j self, task: &'j Task<'j>, blocks: usize) -> Result<Handle<'j>, VolumeError>;

    /// The running transaction.
    fn running(&self) -> TransactionId;

    /// The time at which the running transaction began, if it has changed something, or since when something waits for a flush
    /// that is in order.
    fn begun(&self) -> Option<Time>;

    /// Makes a transaction durable, unless it is. The task has no handle.
    fn commit(&self, task: &Task<'_>, id: TransactionId) -> Result<(), VolumeError>;

    /// Makes the changes of transaction `id` to a file, or to the names in a directory, durable by a fast commit, unless they
    /// are. False if that takes a full commit. The task has no handle.
    fn commit_fast(&self, _: &Task<'_>, _id: TransactionId, _inode: u32, _: ReadTags<'_>) -> Result<bool, VolumeError> {
        Ok(false)
    }

    /// Puts a transaction in order, unless it is: after a crash it is there if anything is that was changed after this has
    /// returned. Where that takes durability, it is durable. The task has no handle.
    fn order(&self, task: &Task<'_>, id: TransactionId) -> Result<(), VolumeError> {
        self.commit(task, id)
    }

    /// The same of a file's changes, as [`commit_fast`](Journal::commit_fast) makes them durable.
    fn order_fast(
        &self,
        task: &Task<'_>,
        id: TransactionId,
        inode: u32,
        read_tags: ReadTags<'_>,
    ) -> Result<bool, VolumeError> {
        self.commit_fast(task, id, inode, read_tags)
    }

    /// Makes bytes of files durable that were written past it.
    fn commit_data(&self, task: &Task<'_>) -> Result<(), VolumeError> {
        Ok(self.common().media.flush(task)?)
    }

    /// Puts them in order, as [`order`](Journal::order) does with a transaction.
    fn order_data(&self, task: &Task<'_>) -> Result<(), VolumeError> {
        self.commit_data(task)
    }

    /// A task is told that its changes are in order.
    fn tell_order(&self) {}

    /// The tracker of the running transaction's changes, if fast commits are written.
    fn tracker(&self) -> Option<&Tracker> {
        None
    }

    /// Commits the running transaction, and waits until the blocks that it has freed can be used. The task has no handle.
    fn commit_freed(&self, task: &Task<'_>) -> Result<(), VolumeError>;

    /// True if a checkpoint is due, which nobody does yet.
    fn wants_checkpoint(&self) -> bool;

    /// Does a part of the checkpoint that is due, beside commits. Nothing, if others are at it.
    fn checkpoint(&self, task: &Task<'_>) -> Result<(), VolumeError>;

    /// Watches for a while how far the changes of handles are stored, for tasks that commit. True if a thread is to be lent
    /// to it again at once.
    fn watch(&self, _: &Task<'_>) -> bool {
        false
    }

    /// The number of threads that can checkpoint and watch at the same time.
    fn workers(&self) -> usize {
        1
    }

    /// Commits the running transaction, writes all changes home, and closes the journal. Nobody begins a handle any more.
    fn end(&self, task: &Task<'_>) -> Result<(), VolumeError>;

    /// The volume's superblock says that nothing is in the journal.
    fn closed(&self) -> Result<(), VolumeError> {
        Ok(())
    }

    /// True if it is in the volume, and was in memory when the mount began.
    fn has_moved(&self) -> bool {
        false
    }

    /// The state that every journal keeps.
    fn common(&self) -> &Common;

    /// Counts since the mount.
    fn counts(&self) -> Counts;

    /// Counts that only journals of its kind have.
    fn own_counts(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// A handle will change a block.
    fn joins(&self, handle: &Handle<'_>, block: u64, content: Content);

    /// A handle has freed blocks. `is_logged`: they may be in the journal, which must not bring them back.
    fn frees(&self, handle: &Handle<'_>, range: Range<u64>, is_logged: bool);

    /// A handle ends: it changes nothing more.
    fn ends(&self, handle: &mut Handle<'_>);

    /// A handle is dropped in the middle of its changes, since its thread panics.
    fn abandons(&self, handle: &mut Handle<'_>);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_transactions_go_round() {
        let last = TransactionId(u32::MAX);
        assert!(last.next().is_after(last) && !last.is_after(last.next()) && !last.is_after(last));
        assert_eq!(last.next(), TransactionId(0));
    }
}
