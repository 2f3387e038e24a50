//! The running transaction, and commits.
//!
//! A handle is a reader of the gate `transaction`; who closes the running transaction goes through it alone, takes what
//! has changed, and leaves it before anything is written. Commits go through the gate `commit` one after the other; who
//! comes for a transaction that somebody else has committed meanwhile is done.

use super::home::Home;
use super::{Log, Logged, Transaction, TransactionId};
use crate::fs::ext::blocks::{Blocks, Bytes};
use crate::fs::ext::media::Media;
use crate::fs::volume::{Timestamp, VolumeError};
use crate::label::Content;
use crate::task::{Gate, ReadGuard, SharedGate, Task};
use crate::time::Time;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the running transaction has changed so far.
pub(super) struct Running {
    id: TransactionId,
    pub(super) blocks: BTreeMap<u64, Content>,
    revokes: BTreeSet<u64>,
    /// Blocks that open handles may still change.
    promised: usize,
    /// When the first handle of it began.
    begun: Option<Time>,
    /// Blocks that it has freed.
    freed: Vec<Range<u64>>,
}

struct Committed {
    /// The last transaction that is durable.
    last: TransactionId,
}

/// The transactions of a mounted volume.
pub struct Journal {
    pub(super) log: Box<dyn Log>,
    pub(super) media: Arc<Media>,
    pub(super) blocks: Arc<Blocks>,
    open: SharedGate<()>,
    commit: Gate<Committed>,
    pub(super) checkpoint: Gate<()>,
    /// Somebody does the checkpoint that is due.
    pub(super) is_checkpointing: AtomicBool,
    pub(super) running: Mutex<Running>,
    /// Locked within `running`, if with it.
    pub(super) home: Mutex<Home>,
    /// Blocks that were freed, and may not be used before the transaction that freed them is committed: first and end.
    withheld: Mutex<BTreeMap<u64, u64>>,
    pub(super) counts: Mutex<Counts>,
    /// Why nothing is changed or committed any more.
    aborted: Mutex<Option<String>>,
    /// The time on the wall clock at [`Time::ZERO`].
    origin: Timestamp,
}

/// Counts since the mount.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub commits: u64,
    pub checkpoints: u64,
    pub logged_blocks: u64,
    pub revokes: u64,
    /// Commits that waited for a checkpoint, as the log had no room.
    pub waits: u64,
}

pub(super) fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    // Between two changes of what is behind these locks nothing can panic.
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A part of the running transaction: changes that are committed together. It ends when it is dropped.
pub struct Handle<'j> {
    journal: &'j Journal,
    /// The task that has begun it.
    pub task: &'j Task<'j>,
    /// The transaction.
    pub id: TransactionId,
    promised: usize,
    _open: ReadGuard<'j, ()>,
}

impl Journal {
    /// Transactions from `next` on, stored in this log.
    pub fn new(
        log: Box<dyn Log>,
        media: Arc<Media>,
        blocks: Arc<Blocks>,
        next: TransactionId,
        origin: Timestamp,
    ) -> Journal {
        let running = Running {
            id: next,
            blocks: BTreeMap::new(),
            revokes: BTreeSet::new(),
            promised: 0,
            begun: None,
            freed: Vec::new(),
        };
        Journal {
            log,
            media,
            blocks,
            open: SharedGate::new("transaction", ()),
            commit: Gate::new("commit", Committed { last: TransactionId(next.0.wrapping_sub(1)) }),
            checkpoint: Gate::new("checkpoint", ()),
            is_checkpointing: AtomicBool::new(false),
            running: Mutex::new(running),
            home: Mutex::default(),
            withheld: Mutex::default(),
            counts: Mutex::default(),
            aborted: Mutex::default(),
            origin,
        }
    }

    pub fn counts(&self) -> Counts {
        *locked(&self.counts)
    }

    /// The most blocks that a handle may promise to change.
    pub fn most_blocks(&self) -> usize {
        self.log.most_blocks()
    }

    /// Begins a handle that changes `blocks` at the most. Waits for a commit if the running transaction is full. The
    /// task has no handle yet.
    ///
    /// # Errors
    ///
    /// A commit or a change has failed: then nothing more is changed.
    pub fn begin<'j>(&'j self, task: &'j Task<'j>, blocks: usize) -> Result<Handle<'j>, VolumeError> {
        let most = self.log.most_blocks();
        debug_assert!(blocks <= most, "{blocks} blocks of {most}: whoever changes more does it in pieces");
        loop {
            self.check()?;
            let open = self.open.read(task);
            let id = {
                let mut running = locked(&self.running);
                let is_first = running.blocks.is_empty() && running.promised == 0;
                if is_first || running.blocks.len() + running.revokes.len() / 64 + running.promised + blocks <= most {
                    running.promised += blocks;
                    running.begun.get_or_insert(task.now());
                    return Ok(Handle { journal: self, task, id: running.id, promised: blocks, _open: open });
                }
                running.id
            };
            drop(open);
            self.commit(task, id)?;
        }
    }

    /// The running transaction.
    pub fn running(&self) -> TransactionId {
        locked(&self.running).id
    }

    /// When the running transaction began, if it has changed something.
    pub fn begun(&self) -> Option<Time> {
        let running = locked(&self.running);
        (!running.blocks.is_empty() || !running.revokes.is_empty()).then_some(running.begun).flatten()
    }

    /// Commits the running transaction, and waits until what it has freed can be used. The task has no handle.
    pub fn commit_freed(&self, task: &Task<'_>) -> Result<(), VolumeError> {
        self.commit(task, self.running())?;
        self.wait_for_freed(task);
        Ok(())
    }

    /// Makes a transaction durable, unless it is.
    pub fn commit(&self, task: &Task<'_>, id: TransactionId) -> Result<(), VolumeError> {
        let mut committed = self.commit.enter(task);
        if !id.is_after(committed.last) {
            return Ok(());
        }
        self.commit_running(task, &mut committed)
    }

    fn commit_running(&self, task: &Task<'_>, committed: &mut Committed) -> Result<(), VolumeError> {
        self.check()?;
        let Some((transaction, freed)) = self.close(task) else { return Ok(()) };
        let stored = self.store(task, &transaction);
        if let Err(error) = stored {
            self.abort(&format!("a commit of the journal failed: {error}"));
            return Err(error);
        }
        committed.last = transaction.id;
        self.is_committed(transaction, &freed);
        Ok(())
    }

    /// Closes the running transaction, when all handles have ended; `None` if it has changed nothing.
    fn close(&self, task: &Task<'_>) -> Option<(Transaction, Vec<Range<u64>>)> {
        let _closed = self.open.write(task);
        let mut running = locked(&self.running);
        debug_assert_eq!(running.promised, 0, "no handle is open");
        if running.blocks.is_empty() && running.revokes.is_empty() {
            return None;
        }
        let id = running.id;
        running.id = id.next();
        running.begun = None;
        let blocks = std::mem::take(&mut running.blocks);
        locked(&self.home).begin_commit(blocks.keys().copied());
        let blocks = blocks
            .into_iter()
            .filter_map(|(block, content)| self.blocks.get(block).ok().map(|bytes| Logged { block, bytes, content }));
        let blocks = blocks.collect();
        let revokes = std::mem::take(&mut running.revokes).into_iter().collect();
        Some((Transaction { id, blocks, revokes }, std::mem::take(&mut running.freed)))
    }

    fn store(&self, task: &Task<'_>, transaction: &Transaction) -> Result<(), VolumeError> {
        if !self.log.has_room(transaction) {
            locked(&self.counts).waits += 1;
            self.checkpoint_due(task, Some(transaction))?;
        }
        let at_ns = self.origin.0.saturating_add(i64::try_from(task.now().0).unwrap_or(i64::MAX));
        self.log.store(task, transaction, at_ns)
    }

    fn is_committed(&self, transaction: Transaction, freed: &[Range<u64>]) {
        let mut counts = locked(&self.counts);
        counts.commits += 1;
        counts.logged_blocks += transaction.blocks.len() as u64;
        counts.revokes += transaction.revokes.len() as u64;
        drop(counts);
        let usable = locked(&self.home).take_in(transaction, freed);
        self.unhold_all(usable);
    }

    /// Commits what has changed, writes all of it home, and closes the log. Nobody begins a handle any more.
    pub fn end(&self, task: &Task<'_>) -> Result<(), VolumeError> {
        let mut committed = self.commit.enter(task);
        self.commit_running(task, &mut committed)?;
        let _alone = self.checkpoint.enter(task);
        self.write_home(task, committed.last)?;
        self.log.let_go(task, committed.last.next(), true)
    }

    /// Keeps blocks from being used.
    pub fn withhold(&self, range: Range<u64>) {
        locked(&self.withheld).insert(range.start, range.end);
    }

    /// Lets blocks be used again that were kept from it.
    pub fn unhold(&self, start: u64) {
        self.unhold_all([start]);
    }

    pub(super) fn unhold_all(&self, starts: impl IntoIterator<Item = u64>) {
        let mut withheld = locked(&self.withheld);
        for start in starts {
            withheld.remove(&start);
        }
    }

    /// Nothing more is changed or committed, for this reason.
    pub fn abort(&self, why: &str) {
        locked(&self.aborted).get_or_insert_with(|| why.to_string());
    }

    /// Why nothing more is changed, if so.
    pub fn aborted(&self) -> Option<String> {
        locked(&self.aborted).clone()
    }

    fn check(&self) -> Result<(), VolumeError> {
        self.aborted().map_or(Ok(()), |why| Err(VolumeError::ReadOnly(why)))
    }

    /// The parts of a range of blocks that may not be used yet.
    pub fn withheld(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let withheld = locked(&self.withheld);
        let before = withheld.range(..range.start).next_back().filter(|(_, end)| **end > range.start);
        let all = before.into_iter().chain(withheld.range(range.start..range.end));
        all.map(|(first, end)| *first.max(&range.start)..*end.min(&range.end)).collect()
    }

    /// The number of blocks that were freed and may not be used yet.
    pub fn withheld_blocks(&self) -> u64 {
        locked(&self.withheld).iter().map(|(first, end)| end - first).sum()
    }
}

impl Handle<'_> {
    /// A block will be changed, which is in memory. False if it has left memory meanwhile: it must be read again.
    pub fn change(&self, block: u64, content: Content, change: impl FnOnce(&mut [u8])) -> bool {
        self.joins(block, content);
        self.journal.blocks.change(block, change)
    }

    /// A block is new: whatever it was, these are its bytes.
    pub fn set(&self, block: u64, content: Content, bytes: Bytes) {
        self.joins(block, content);
        self.journal.blocks.set(block, bytes);
    }

    fn joins(&self, block: u64, content: Content) {
        let mut running = locked(&self.journal.running);
        debug_assert!(!running.revokes.contains(&block), "a freed block is used only after the commit");
        running.blocks.insert(block, content);
    }

    /// Blocks are free from now on, and can be used once this is committed. `is_logged`: they may be in the log, which
    /// must not bring them back.
    pub fn free(&self, range: Range<u64>, is_logged: bool) {
        let mut running = locked(&self.journal.running);
        for block in range.clone() {
            if is_logged {
                running.blocks.remove(&block);
                running.revokes.insert(block);
            }
        }
        running.freed.push(range.clone());
        drop(running);
        if is_logged {
            range.clone().for_each(|block| self.journal.blocks.forget(block));
        }
        locked(&self.journal.withheld).insert(range.start, range.end);
    }

    /// Blocks that this handle may still change.
    pub fn promised(&self) -> usize {
        self.promised
    }
}

impl Drop for Handle<'_> {
    fn drop(&mut self) {
        locked(&self.journal.running).promised -= self.promised;
    }
}
