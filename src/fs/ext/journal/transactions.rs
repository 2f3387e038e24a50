//! The running transaction, and commits.
//!
//! A handle is a reader of the gate `transaction`; the task that closes the running transaction goes through it alone, takes the
//! changes, and leaves it before anything is written. Commits go through the gate `commit` one after the other; a task that
//! comes for a transaction that somebody else has committed meanwhile is done.

use super::commit_thread::CommitThread;
use super::common::{Common, Counts, locked};
use super::handle::Inside;
use super::home::{Due, Home};
use super::order::Order;
use super::reasons::{FastCounts, Reason};
use super::rounds::{Checkpointed, Rounds};
use super::settled::{Settled, Stores};
use super::tracker::Tracker;
use super::{Checkpointing, FREED_FOR_ONE, Handle, Journal, Log, Logged, ReadTags, Transaction, TransactionId};
use crate::fs::ext::blocks::Blocks;
use crate::fs::ext::media::{Media, Run};
use crate::fs::volume::{Timestamp, VolumeError};
use crate::label::Content;
use crate::task::{Gate, SharedGate, Step, Task};
use crate::time::Time;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// Changes of the running transaction so far.
pub(super) struct Running {
    id: TransactionId,
    pub(super) blocks: BTreeMap<u64, Content>,
    revokes: BTreeSet<u64>,
    /// Blocks that open handles may still change.
    promised: usize,
    /// The time at which its first handle began.
    begun: Option<Time>,
    /// Blocks that it has freed.
    freed: Vec<Range<u64>>,
}

pub(super) struct Committed {
    /// The last transaction that is durable.
    pub(super) last: TransactionId,
    /// Blocks that the fast commits of the running transaction take.
    pub(super) fast_blocks: u32,
}

/// A journal whose transactions are stored in a [`Log`].
pub struct LoggedJournal {
    pub(super) common: Common,
    pub(super) log: Box<dyn Log>,
    pub(super) open: SharedGate<()>,
    pub(super) commit: Gate<Committed>,
    commit_thread: CommitThread,
    pub(super) rounds: Rounds<Due, Vec<Run>>,
    /// Blocks that a checkpoint thread writes home at once, at most.
    pub(super) batch: usize,
    pub(super) running: Mutex<Running>,
    /// Locked within `running`, if with it.
    pub(super) home: Mutex<Home>,
    pub(super) counts: Mutex<Counts>,
    /// The changes of the running transaction, if fast commits are written.
    pub(super) tracker: Option<Tracker>,
    pub(super) fast_counts: Mutex<FastCounts>,
    /// The commits that are durable.
    pub(super) settled: Settled,
}

impl LoggedJournal {
    /// Transactions from `next` on, stored in this log. `has_commit_thread`: a thread of its own commits.
    pub fn new(
        log: Box<dyn Log>,
        (media, blocks): (Arc<Media>, Arc<Blocks>),
        next: TransactionId,
        origin: Timestamp,
        checkpointing: Checkpointing,
        has_commit_thread: bool,
    ) -> LoggedJournal {
        let running = Running {
            id: next,
            blocks: BTreeMap::new(),
            revokes: BTreeSet::new(),
            promised: 0,
            begun: None,
            freed: Vec::new(),
        };
        let last = TransactionId(next.0.wrapping_sub(1));
        LoggedJournal {
            common: Common::new(media, blocks, origin),
            log,
            open: SharedGate::new("transaction", ()),
            commit: Gate::new("commit", Committed { last, fast_blocks: 0 }),
            commit_thread: CommitThread::new(has_commit_thread),
            rounds: Rounds::new(checkpointing.threads.unwrap_or(1) as usize),
            batch: checkpointing.batch,
            running: Mutex::new(running),
            home: Mutex::default(),
            counts: Mutex::default(),
            tracker: None,
            fast_counts: Mutex::default(),
            settled: Settled::new(last),
        }
    }

    /// The same with fast commits, if the log has room for any.
    pub fn with_fast_commits(mut self) -> LoggedJournal {
        let bytes = self.log.fast_area().map(|area| area.blocks() as usize * area.block_bytes());
        self.tracker = bytes.map(Tracker::new);
        self
    }

    fn commit_running(&self, task: &Task<'_>, committed: &mut Committed) -> Result<(), VolumeError> {
        self.common.check()?;
        let Some((mut transaction, freed)) = self.close(task) else { return Ok(()) };
        let stored = self.store(task, &mut transaction).and_then(|()| self.end_fast(task, committed));
        if let Err(error) = stored {
            self.common.abort(&format!("a commit of the journal failed: {error}"));
            return Err(error);
        }
        committed.last = transaction.id;
        self.settled.has_stored(transaction.id, task.now());
        self.is_committed(transaction, &freed);
        Ok(())
    }

    /// Makes all commits durable, unless `is_durable` is true of the last stores that are.
    pub(super) fn settle(&self, task: &Task<'_>, is_durable: impl Fn(Stores) -> bool) -> Result<(), VolumeError> {
        if self.log.order().is_durable() {
            return Ok(());
        }
        let settled = self.settled.settle(task, is_durable, || self.log.settle(task));
        settled.inspect_err(|error| self.common.abort(&format!("a flush of the journal failed: {error}")))
    }

    /// Closes the running transaction, when all handles have ended; `None` if it has changed nothing.
    fn close(&self, task: &Task<'_>) -> Option<(Transaction, Vec<Range<u64>>)> {
        let _closed = self.open.write(task);
        let mut running = locked(&self.running);
        debug_assert_eq!(running.promised, 0, "no handle is open");
        if running.blocks.is_empty() && running.revokes.is_empty() && !self.log.wants_to_move() {
            return None;
        }
        let id = running.id;
        running.id = id.next();
        running.begun = None;
        self.tracker.iter().for_each(Tracker::begin_next);
        let blocks = std::mem::take(&mut running.blocks);
        locked(&self.home).begin_commit(blocks.keys().copied());
        let blocks = blocks.into_iter().filter_map(|(block, content)| {
            self.common.blocks.get(block).ok().map(|bytes| Logged { block, bytes, content })
        });
        let blocks = blocks.collect();
        let revokes = std::mem::take(&mut running.revokes).into_iter().collect();
        Some((Transaction { id, blocks, revokes }, std::mem::take(&mut running.freed)))
    }

    fn store(&self, task: &Task<'_>, transaction: &mut Transaction) -> Result<(), VolumeError> {
        if !self.log.has_room(transaction) {
            locked(&self.counts).waits += 1;
            self.make_room(task, transaction)?;
        }
        self.log.store(task, transaction, self.common.wall_ns(task.now()))
    }

    fn is_committed(&self, transaction: Transaction, freed: &[Range<u64>]) {
        let mut counts = locked(&self.counts);
        counts.commits += 1;
        counts.logged_blocks += transaction.blocks.len() as u64;
        counts.revokes += transaction.revokes.len() as u64;
        drop(counts);
        let usable = locked(&self.home).take_in(transaction, freed);
        self.common.unhold_all(usable);
    }
}

impl Journal for LoggedJournal {
    fn most_blocks(&self) -> usize {
        self.log.most_blocks()
    }

    fn begin<'j>(&'j self, task: &'j Task<'j>, blocks: usize) -> Result<Handle<'j>, VolumeError> {
        let most = self.most_blocks();
        debug_assert!(blocks <= most, "{blocks} blocks of {most}: whoever changes more does it in pieces");
        loop {
            self.common.check()?;
            let open = self.open.read(task);
            // The counts of its handles, and of the blocks that they may change.
            task.spend(Step::LineShared, 2);
            let id = {
                let mut running = locked(&self.running);
                let is_first = running.blocks.is_empty() && running.promised == 0;
                let freed = running.revokes.len().max(running.freed.len()) / FREED_FOR_ONE;
                if is_first || running.blocks.len() + freed + running.promised + blocks <= most {
                    running.promised += blocks;
                    running.begun.get_or_insert(task.now());
                    return Ok(Handle::new(self, task, running.id, blocks, Inside::Gate(open)));
                }
                running.id
            };
            drop(open);
            self.order(task, id)?;
        }
    }

    fn running(&self) -> TransactionId {
        locked(&self.running).id
    }

    fn begun(&self) -> Option<Time> {
        if self.log.wants_to_move() {
            return Some(Time::ZERO);
        }
        let running = locked(&self.running);
        let begun = (!running.blocks.is_empty() || !running.revokes.is_empty()).then_some(running.begun).flatten();
        let unsettled = if self.log.order().is_durable() { None } else { self.settled.since() };
        [begun, unsettled].into_iter().flatten().min()
    }

    fn commit_freed(&self, task: &Task<'_>) -> Result<(), VolumeError> {
        self.order(task, self.running())?;
        self.wait_for_freed(task)
    }

    fn commit(&self, task: &Task<'_>, id: TransactionId) -> Result<(), VolumeError> {
        self.order(task, id)?;
        self.settle(task, |durable| !id.is_after(durable.last))
    }

    fn order(&self, task: &Task<'_>, id: TransactionId) -> Result<(), VolumeError> {
        if self.commit_thread.has_committed(task, id) {
            return self.common.check();
        }
        let came = task.now();
        let mut committed = self.commit.enter(task);
        if !id.is_after(committed.last) {
            self.commit_thread.wakes(task, u64::from(task.now() > came));
            return Ok(());
        }
        self.commit_thread.wakes(task, 1);
        self.commit_running(task, &mut committed)?;
        self.commit_thread.wakes(task, 1);
        Ok(())
    }

    fn commit_fast(
        &self,
        task: &Task<'_>,
        id: TransactionId,
        inode: u32,
        read_tags: ReadTags<'_>,
    ) -> Result<bool, VolumeError> {
        let is_stored = self.try_fast(task, id, inode, read_tags)?;
        let stores = self.settled.stores();
        if is_stored {
            self.settle(task, |durable| durable.count >= stores.count)?;
        }
        Ok(is_stored)
    }

    fn order_fast(
        &self,
        task: &Task<'_>,
        id: TransactionId,
        inode: u32,
        read_tags: ReadTags<'_>,
    ) -> Result<bool, VolumeError> {
        self.try_fast(task, id, inode, read_tags)
    }

    fn commit_data(&self, task: &Task<'_>) -> Result<(), VolumeError> {
        self.settle(task, |_| false)?;
        if self.common.media.is_data_unflushed() { Ok(self.common.media.flush(task)?) } else { Ok(()) }
    }

    fn order_data(&self, task: &Task<'_>) -> Result<(), VolumeError> {
        if self.log.order() != Order::Barriers {
            return self.commit_data(task);
        }
        self.common.media.barrier(task)?;
        self.settled.has_stored(self.settled.stores().last, task.now());
        Ok(())
    }

    fn tell_order(&self) {
        if !self.log.order().is_durable() {
            self.settled.tell_order();
        }
    }

    fn tracker(&self) -> Option<&Tracker> {
        self.tracker.as_ref()
    }

    fn watch(&self, task: &Task<'_>) -> bool {
        self.commit_thread.serve(task, |id| {
            let mut committed = self.commit.enter(task);
            if id.is_after(committed.last) {
                // A failure is the reason why the journal is aborted, which the waiting threads return.
                let _ = self.commit_running(task, &mut committed);
            }
        })
    }

    fn workers(&self) -> usize {
        self.rounds.threads() + usize::from(self.commit_thread.is_on())
    }

    fn wants_checkpoint(&self) -> bool {
        self.wants_thread()
    }

    fn checkpoint(&self, task: &Task<'_>) -> Result<(), VolumeError> {
        self.lend_thread(task)
    }

    fn end(&self, task: &Task<'_>) -> Result<(), VolumeError> {
        let mut committed = self.commit.enter(task);
        self.commit_running(task, &mut committed)?;
        self.write_home(task, committed.last)?;
        self.log.let_go(task, committed.last.next(), true)
    }

    fn closed(&self) -> Result<(), VolumeError> {
        self.log.closed()
    }

    fn has_moved(&self) -> bool {
        self.log.has_moved()
    }

    fn common(&self) -> &Common {
        &self.common
    }

    fn counts(&self) -> Counts {
        *locked(&self.counts)
    }

    fn own_counts(&self) -> Vec<(&'static str, u64)> {
        let mut counts = self.log.counts();
        if self.tracker.is_some() {
            counts.extend(locked(&self.fast_counts).events());
        }
        if !self.log.order().is_durable() {
            counts.extend(self.settled.counts());
        }
        counts
    }

    fn joins(&self, handle: &Handle<'_>, block: u64, content: Content) {
        let mut running = locked(&self.running);
        debug_assert!(!running.revokes.contains(&block), "a freed block is used only after the commit");
        if running.blocks.insert(block, content).is_none() {
            // The lock of the list that all handles share.
            handle.task.spend(Step::LineShared, 1);
        }
    }

    fn frees(&self, _: &Handle<'_>, range: Range<u64>, is_logged: bool) {
        let mut running = locked(&self.running);
        if is_logged {
            for block in range.clone() {
                running.blocks.remove(&block);
                running.revokes.insert(block);
            }
        }
        running.freed.push(range.clone());
        drop(running);
        if is_logged {
            range.for_each(|block| self.common.blocks.forget(block));
        }
    }

    fn ends(&self, handle: &mut Handle<'_>) {
        if let Some(tracker) = self.tracker.as_ref().filter(|_| !handle.is_tracked()) {
            tracker.exclude(Reason::Other);
        }
        locked(&self.running).promised -= handle.promised();
        handle.task.spend(Step::LineShared, 2);
    }

    fn abandons(&self, handle: &mut Handle<'_>) {
        self.ends(handle);
    }
}
