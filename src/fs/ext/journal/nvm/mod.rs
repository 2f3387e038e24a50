//! The journal in partitioned non-volatile memory (Park, Lee, Han, "Design and Implementation of NVM-based Concurrent
//! Journaling Scheme", JKCA 21(7), 2021), with the points that the paper leaves open: docs/decisions/0012 has each.
//!
//! ```text
//!  threads          a block of a transaction: snapshot, a slot in its partition by one atomic addition, copy, fence, flag;
//!   │ │ │           when its transaction is closed, or with scheme=paper when its handle ends
//!   ▼ ▼ ▼
//!  partition 0 ▓▓▓▓▓▓▒▒░░░░   partition 1 ▓▓▓▓▒▒▒░░░   ...      ▓ committed  ▒ complete  ░ free
//!       │           commit: cut = tails of all partitions; all flags below it; record; done
//!       ▼
//!  checkpoint threads, one for each partition: newest committed image of each block home; flush; record; recycle
//! ```
//!
//! | file | content |
//! |---|---|
//! | `mod` | handles and commits |
//! | `entrance` | handles go into the running transaction, and out, without a lock |
//! | `ring` | the slots of a partition, without locks; credits |
//! | `layout` | the structures in the region |
//! | `options` | the options of the journal |
//! | `storing` | blocks into their slots |
//! | `joining` | a block that a transaction changes several times is stored once |
//! | `waiters` | threads that wait for the progress of others |
//! | `commit_workers` | threads that look at the flags, with `scheme=paper` |
//! | `checkpoint` | rounds of the checkpoint threads |
//! | `recovery` | the content of a region after a crash |
//! | `tests`, `crashes`, `ring_models` | tests: with threads, with losses of power, under a model checker |

mod checkpoint;
mod commit_workers;
#[cfg(all(test, not(any(feature = "checked-gates", feature = "checked-slots"))))]
mod crashes;
mod entrance;
mod joining;
mod layout;
mod options;
mod recovery;
mod ring;
#[cfg(all(test, feature = "checked-slots"))]
mod ring_models;
mod storing;
#[cfg(all(test, not(any(feature = "checked-gates", feature = "checked-slots"))))]
mod tests;
mod waiters;

pub use layout::{Hash, Shape as RegionShape, Superblock as RegionSuperblock};
pub use options::{NvmOptions, Scheme, Slots};
pub use recovery::FoundRegion;

use super::common::{Common, Counts};
use super::handle::Inside;
use super::rounds::Checkpointed;
use super::{Checkpointing, Handle, Journal, TransactionId, atomic};
use crate::device::nvm::Nvm;
use crate::fs::ext::blocks::Blocks;
use crate::fs::ext::media::Media;
use crate::fs::volume::{Timestamp, VolumeError};
use crate::label::Content;
use crate::task::{Gate, SharedGate, Step, Task};
use crate::time::Time;
use atomic::{AtomicBool, AtomicU32, AtomicU64, Mutex, locked, relax};
use checkpoint::Checkpoints;
use commit_workers::CommitWorkers;
use entrance::{Entered, Entrance};
use joining::Joining;
use layout::{Record, Shape, Superblock};
use ring::{Credits, Ring};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64 as Count;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use waiters::Waiters;

/// Nothing has begun.
const NEVER: u64 = u64::MAX;
/// Slots that handles may take beyond their promise, for freed blocks.
const FOR_REVOKES: usize = 4;
/// Cuts of closed transactions that are kept for checkpoints that go by commits.
const CUTS: usize = if cfg!(feature = "checked-gates") { 8 } else { 1024 };

/// A journal in partitioned non-volatile memory.
pub struct NvmJournal {
    common: Common,
    nvm: Arc<dyn Nvm>,
    superblock: Superblock,
    scheme: Scheme,
    /// With [`Slots::Locked`]: a task that takes and fills slots is alone inside.
    slots_lock: Option<Gate<()>>,
    rings: Vec<Ring>,
    credits: Credits,
    /// Handles are inside; the task that closes a transaction waits until they have left.
    entrance: Entrance,
    /// The same for simulated tasks, which take turns at gates: handles are its readers, the task that closes is alone.
    open: SharedGate<()>,
    /// The running transaction.
    running: AtomicU32,
    begun: AtomicU64,
    /// The last transaction that is durable, and since when.
    durable: AtomicU32,
    durable_at: AtomicU64,
    /// A task stores a commit record; records so far.
    is_recording: AtomicBool,
    records: AtomicU64,
    /// The cuts of the last closed transactions, one behind the other, by transaction.
    cuts: Vec<AtomicU64>,
    /// Ranges that transactions have freed which are not durable yet.
    freed: Mutex<Vec<(TransactionId, Range<u64>)>>,
    joining: Joining,
    checkpoints: Checkpoints,
    commit_workers: CommitWorkers,
    waiters: Waiters,
    counts: AtomicCounts,
}

#[derive(Default)]
struct AtomicCounts {
    commits: Count,
    checkpoints: Count,
    logged_blocks: Count,
    revokes: Count,
    waits: Count,
}

/// Freed blocks that may be in the journal.
#[derive(Clone, Debug)]
struct Revoked {
    transaction: TransactionId,
    version: u64,
    ranges: Vec<Range<u64>>,
}

impl NvmJournal {
    /// Begins with an empty region that has this superblock, which says that it is in use from now on.
    pub fn new(
        nvm: Arc<dyn Nvm>,
        superblock: Superblock,
        (options, checkpointing): (&NvmOptions, Checkpointing),
        (media, blocks): (Arc<Media>, Arc<Blocks>),
        origin: Timestamp,
    ) -> NvmJournal {
        let (shape, next) = (superblock.shape, superblock.next);
        let last = next.wrapping_sub(1);
        NvmJournal {
            common: Common::new(media, blocks, origin),
            nvm,
            superblock,
            scheme: options.scheme,
            slots_lock: (options.slots == Slots::Locked).then(|| Gate::new("slots", ())),
            rings: (0..shape.partitions).map(|_| Ring::new(shape.slots as usize)).collect(),
            credits: Credits::new(shape.slots),
            entrance: Entrance::new(),
            open: SharedGate::new("transaction", ()),
            running: AtomicU32::new(next),
            begun: AtomicU64::new(NEVER),
            durable: AtomicU32::new(last),
            durable_at: AtomicU64::new(0),
            is_recording: AtomicBool::new(false),
            records: AtomicU64::new(0),
            cuts: (0..CUTS * shape.partitions as usize).map(|_| AtomicU64::new(0)).collect(),
            freed: Mutex::default(),
            joining: Joining::new(shape.partitions),
            checkpoints: Checkpoints::new(
                checkpointing.threads.unwrap_or(shape.partitions),
                checkpointing.batch,
                TransactionId(last),
                shape.partitions as usize,
            ),
            commit_workers: CommitWorkers::new(options.scheme, shape.partitions),
            waiters: Waiters::default(),
            counts: AtomicCounts::default(),
        }
    }

    fn shape(&self) -> &Shape {
        &self.superblock.shape
    }

    fn durable(&self) -> TransactionId {
        TransactionId(self.durable.load(Acquire))
    }

    fn is_durable(&self, id: TransactionId) -> bool {
        !id.is_after(self.durable())
    }

    /// The cut of a closed transaction; `None` if it is not one of the last [`CUTS`].
    fn cut(&self, id: TransactionId) -> Option<Vec<u64>> {
        let first = id.0 as usize % CUTS * self.rings.len();
        let cut = self.cuts[first..first + self.rings.len()].iter().map(|cut| cut.load(Acquire)).collect();
        // In this order: a later transaction that has the same place in `cuts` puts its own cut there as it is closed.
        ((self.running().0.wrapping_sub(id.0) as usize) < CUTS).then_some(cut)
    }

    /// The cut of a closed transaction, if all slots below it are complete.
    fn complete_cut(&self, id: TransactionId) -> Option<Vec<u64>> {
        self.cut(id).filter(|cut| (0..).zip(cut).all(|(partition, end)| self.is_complete(partition, *end)))
    }

    /// Closes a transaction, if it is the running one: waits until its handles have ended, and takes the tails of all
    /// partitions, below which are all of its slots. True if this call has closed it.
    fn close(&self, task: &Task<'_>, id: TransactionId) -> bool {
        if task.is_simulated() {
            let _alone = self.open.write(task);
            return self.close_alone(task, id);
        }
        let mut has_closed_entrance = false;
        self.waiters.wait_until(task, || {
            has_closed_entrance = self.running() == id && self.entrance.close();
            has_closed_entrance || self.running() != id
        });
        if !has_closed_entrance {
            return false;
        }
        self.waiters.wait_until(task, || self.entrance.is_empty());
        let has_closed = self.close_alone(task, id);
        self.entrance.open();
        self.waiters.wake();
        has_closed
    }

    /// The same; no handle is inside.
    fn close_alone(&self, task: &Task<'_>, id: TransactionId) -> bool {
        if self.running() != id {
            return false;
        }
        if self.scheme == Scheme::Helping {
            self.take_joined(id);
        }
        let first = id.0 as usize % CUTS * self.rings.len();
        for (ring, cut) in self.rings.iter().zip(&self.cuts[first..]) {
            cut.store(ring.tail(), Release);
        }
        task.spend(Step::LineShared, self.rings.len() as u64);
        // In this order: a task that sees that nothing has begun, and then that the transaction still runs, has nothing to commit.
        self.running.store(id.next().0, Release);
        self.begun.store(NEVER, Release);
        true
    }

    /// Goes into the running transaction, which is not closed before [`leave`](NvmJournal::leave).
    fn enter<'j>(&'j self, task: &'j Task<'j>) -> Inside<'j> {
        if task.is_simulated() {
            return Inside::Gate(self.open.read(task));
        }
        let cell = Entrance::cell(task);
        self.waiters.wait_until(task, || match self.entrance.enter(cell) {
            Entered::Yes => true,
            Entered::No => false,
            Entered::AndLeft => {
                self.waiters.wake();
                false
            }
        });
        Inside::Cell(cell)
    }

    fn leave(&self, handle: &mut Handle<'_>) {
        if let Inside::Cell(cell) = std::mem::replace(&mut handle.inside, Inside::Nothing)
            && self.entrance.leave(cell)
        {
            self.waiters.wake();
        }
    }

    /// Makes a closed transaction durable: all slots below its cut are complete, and then a record says so. Several
    /// transactions may come to this point at once: one task stores the record, of the last that is complete, for all.
    fn store_commit(&self, task: &Task<'_>, id: TransactionId) -> Result<(), VolumeError> {
        self.fill_joined(task, id);
        // Threads that copy into slots wake nobody: there are too many of them, and they end soon.
        while !self.is_durable(id) && self.complete_cut(id).is_none() {
            self.common.check()?;
            relax(task);
        }
        while !self.is_durable(id) {
            self.common.check()?;
            let mut records = false;
            self.waiters.wait_until(task, || {
                records = !self.is_recording.swap(true, AcqRel);
                records || self.is_durable(id)
            });
            if !records {
                break;
            }
            let recorded = if self.is_durable(id) { Ok(()) } else { self.record(task, id) };
            if let Err(error) = &recorded {
                self.common.abort(&format!("a commit of the journal failed: {error}"));
            }
            self.is_recording.store(false, Release);
            self.waiters.wake();
            recorded?;
        }
        task.wait_until(Time(self.durable_at.load(Acquire)));
        Ok(())
    }

    /// Stores the record of the last closed transaction that is complete, or of `id`, which is. Nobody else does meanwhile.
    fn record(&self, task: &Task<'_>, id: TransactionId) -> Result<(), VolumeError> {
        let last = TransactionId(self.running().0.wrapping_sub(1));
        let complete = [last, id].into_iter().find_map(|id| Some((id, self.complete_cut(id)?)));
        // If so many were closed meanwhile that the cut of `id` is not kept, the caller looks again at the last.
        let Some((last, cut)) = complete else { return Ok(()) };
        // With data=ordered, bytes of files are durable before the metadata that names their blocks.
        if self.common.media.is_data_unflushed() {
            self.common.media.flush(task)?;
        }
        let begun = task.now();
        let record = Record { generation: self.superblock.generation, transaction: last.0, cut };
        let bytes = record.commit(&*self.nvm, self.records.fetch_add(1, Relaxed));
        task.spend(Step::LineShared, self.rings.len() as u64);
        self.is_stored(last, self.nvm.stored_by(begun, &mut std::iter::once(bytes)).max(task.now()));
        Ok(())
    }

    /// A transaction is durable, with all before it.
    fn is_stored(&self, id: TransactionId, at: Time) {
        let later = |durable| id.is_after(TransactionId(durable)).then_some(id.0);
        self.durable_at.fetch_max(at.0, AcqRel);
        let _ = self.durable.fetch_update(AcqRel, Acquire, later);
        self.counts.commits.fetch_add(1, Relaxed);
        self.unhold_freed();
    }

    /// Blocks whose freeing is durable can be used again, but those that are on their way home. When this returns, that is
    /// so, also if another task has done it: the lock is held until then.
    fn unhold_freed(&self) {
        let mut freed = locked(&self.freed);
        let (durable, left): (Vec<_>, Vec<_>) = freed.drain(..).partition(|(freed_by, _)| self.is_durable(*freed_by));
        *freed = left;
        self.checkpoints.unhold_or_keep(&self.common, durable.into_iter().map(|(_, range)| range).collect());
    }

    /// Waits until a closed transaction is durable, which another thread sees to.
    fn wait_for(&self, task: &Task<'_>, id: TransactionId) -> Result<(), VolumeError> {
        self.fill_joined(task, id);
        self.waiters.wait_until(task, || self.is_durable(id) || self.common.check().is_err());
        self.common.check()?;
        task.wait_until(Time(self.durable_at.load(Acquire)));
        Ok(())
    }

    /// Makes room for a handle that found none: commits, if the changes take it up, and waits for a checkpoint.
    fn make_room(&self, task: &Task<'_>, blocks: usize) -> Result<(), VolumeError> {
        if self.renew_credits(blocks) {
            return Ok(());
        }
        self.empty(task)?;
        if !self.renew_credits(blocks) {
            // All room may be reserved by handles that have not ended.
            relax(task);
        }
        Ok(())
    }

    /// Commits the running transaction, and waits for a checkpoint.
    fn empty(&self, task: &Task<'_>) -> Result<(), VolumeError> {
        self.counts.waits.fetch_add(1, Relaxed);
        self.commit(task, self.running())?;
        self.checkpoint_now(task)
    }

    /// Takes the free slots into the credits; true if there are so many now.
    fn renew_credits(&self, blocks: usize) -> bool {
        self.checkpoints.alone(|| self.credits.renew(self.rings.iter()));
        self.credits.reserve(blocks) && {
            self.credits.give_back(blocks, 0);
            true
        }
    }
}

impl Journal for NvmJournal {
    fn most_blocks(&self) -> usize {
        (self.shape().slots / 4) as usize - FOR_REVOKES
    }

    fn begin<'j>(&'j self, task: &'j Task<'j>, blocks: usize) -> Result<Handle<'j>, VolumeError> {
        let most = self.most_blocks();
        debug_assert!(blocks <= most, "{blocks} blocks of {most}: whoever changes more does it in pieces");
        self.common.check()?;
        if self.common.blocks.stay_beyond(1) {
            // They are too many for the memory of this process.
            self.empty(task)?;
        }
        if self.is_joined_enough() {
            self.commit(task, self.running())?;
        }
        while !self.credits.reserve(blocks + FOR_REVOKES) {
            self.make_room(task, blocks + FOR_REVOKES)?;
            self.common.check()?;
        }
        task.spend(Step::LineShared, 1);
        let inside = self.enter(task);
        if self.begun.load(Relaxed) == NEVER {
            self.begun.fetch_min(task.now().0, Relaxed);
        }
        Ok(Handle::new(self, task, self.running(), blocks, inside))
    }

    fn running(&self) -> TransactionId {
        TransactionId(self.running.load(Acquire))
    }

    fn begun(&self) -> Option<Time> {
        Some(self.begun.load(Acquire)).filter(|begun| *begun != NEVER).map(Time)
    }

    fn commit(&self, task: &Task<'_>, id: TransactionId) -> Result<(), VolumeError> {
        self.common.check()?;
        if self.is_durable(id) {
            return Ok(());
        }
        if self.running() == id {
            if self.begun().is_none() && self.running() == id {
                // The changes of the caller are in earlier transactions, which may be closed and not durable yet.
                return self.wait_for(task, TransactionId(id.0.wrapping_sub(1)));
            }
            if self.close(task, id) {
                return self.store_commit(task, id);
            }
        }
        self.wait_for(task, id)
    }

    fn commit_freed(&self, task: &Task<'_>) -> Result<(), VolumeError> {
        self.commit(task, self.running())?;
        self.unhold_freed();
        if self.checkpoints.holds_freed() {
            self.finish_round(task)?;
        }
        Ok(())
    }

    fn wants_checkpoint(&self) -> bool {
        self.wants_thread()
    }

    fn checkpoint(&self, task: &Task<'_>) -> Result<(), VolumeError> {
        self.lend_thread(task)
    }

    fn watch(&self, task: &Task<'_>) -> bool {
        self.watch_a_partition(task)
    }

    fn workers(&self) -> usize {
        self.checkpoints.rounds.threads() + self.commit_workers.count()
    }

    fn end(&self, task: &Task<'_>) -> Result<(), VolumeError> {
        self.commit(task, self.running())?;
        while self.rings.iter().any(|ring| ring.used() > 0) {
            self.checkpoint_now(task)?;
        }
        Ok(())
    }

    fn closed(&self) -> Result<(), VolumeError> {
        let superblock = Superblock { next: self.running().0, ..FoundRegion { superblock: self.superblock }.emptied() };
        superblock.write(&*self.nvm);
        Ok(())
    }

    fn common(&self) -> &Common {
        &self.common
    }

    fn counts(&self) -> Counts {
        let AtomicCounts { commits, checkpoints, logged_blocks, revokes, waits } = &self.counts;
        let [commits, checkpoints, logged_blocks, revokes, waits] =
            [commits, checkpoints, logged_blocks, revokes, waits].map(|count| count.load(Relaxed));
        Counts { commits, checkpoints, logged_blocks, revokes, waits }
    }

    fn own_counts(&self) -> Vec<(&'static str, u64)> {
        let slots = || self.rings.iter().map(Ring::tail);
        vec![
            ("slots stored", slots().sum()),
            ("slots stored in the fullest partition", slots().max().unwrap_or(0)),
            ("slots stored in the emptiest partition", slots().min().unwrap_or(0)),
        ]
    }

    fn joins(&self, handle: &Handle<'_>, block: u64, content: Content) {
        handle.done.borrow_mut().changed.push((block, content));
    }

    fn frees(&self, handle: &Handle<'_>, range: Range<u64>, is_logged: bool) {
        let mut done = handle.done.borrow_mut();
        done.freed.push(range.clone());
        if is_logged {
            done.changed.retain(|(block, _)| !range.contains(block));
            range.clone().for_each(|block| self.common.blocks.forget(block));
            done.revoked.push(range);
        }
    }

    fn ends(&self, handle: &mut Handle<'_>) {
        self.store_handle(handle);
    }

    fn abandons(&self, handle: &mut Handle<'_>) {
        self.abandon_handle(handle);
    }
}
