//! Checkpoints: the newest committed image of each block goes home, and slots are recycled.
//!
//! A *round* covers all slots up to the cut of a transaction. Its partitions are handed out to the checkpoint threads; each
//! writes the blocks of its partition home, newest image only, in runs of neighbours. Who ends the last partition flushes
//! the device, stores the checkpoint's record, and recycles the slots (J14): the barrier of the paper, without a counter
//! that is set back (J15).
//!
//! A checkpoint thread is whoever lends one: a thread of a front end, or a call that needs room. In a simulated run each
//! has a clock of its own, and works while that is behind the clock of the call that asks ([`Volume::work`]).
//!
//! [`Volume::work`]: crate::fs::volume::Volume::work

use super::atomic::{AtomicBool, AtomicU64, AtomicUsize, Mutex, locked, relax_longer};
use super::layout::Record;
use super::ring::Kept;
use super::{NvmJournal, Revoked, Scheme};
use crate::fs::ext::journal::TransactionId;
use crate::fs::ext::journal::common::Common;
use crate::fs::ext::media::Run;
use crate::fs::volume::VolumeError;
use crate::label::{Cause, Content, Label};
use crate::task::Task;
use crate::time::Time;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::{Arc, TryLockError};

/// Runs, and blocks, that are written at the same time.
const RUNS_AT_ONCE: usize = 32;
const BLOCKS_AT_ONCE: usize = 256;

/// The state of checkpoints.
pub(super) struct Checkpoints {
    workers: Vec<Mutex<Worker>>,
    round: Mutex<Option<Arc<Round>>>,
    /// The last transaction that is home, and rounds so far.
    home: Mutex<(TransactionId, u64)>,
    under_way: Mutex<UnderWay>,
    /// Blocks freed by transactions that are not home yet, in any order.
    revoked: Mutex<Vec<Revoked>>,
    is_renewing: AtomicBool,
}

/// Blocks that a round is writing.
#[derive(Default)]
struct UnderWay {
    blocks: FxHashSet<u64>,
    /// The beginnings of ranges that were freed with blocks that are under way: they may be used again after that.
    freed_late: Vec<u64>,
}

/// A checkpoint thread.
#[derive(Default)]
struct Worker {
    clock: Time,
    part: Option<Part>,
}

/// A partition of a round.
struct Part {
    round: Arc<Round>,
    partition: usize,
    /// Images that go home, by block.
    images: VecDeque<Image>,
}

#[derive(Clone, Copy)]
struct Image {
    block: u64,
    version: u64,
    index: u64,
    content: Content,
}

struct Round {
    begin: Time,
    /// It covers the transactions up to this one.
    last: TransactionId,
    cut: Vec<u64>,
    handed_out: AtomicUsize,
    ended: AtomicUsize,
    end: AtomicU64,
    is_over: AtomicBool,
    /// Images that were written home.
    written: Mutex<Vec<Image>>,
    has_failed: AtomicBool,
    /// The first error, until somebody has returned it.
    failure: Mutex<Option<VolumeError>>,
}

impl Round {
    fn fail(&self, error: VolumeError) {
        self.has_failed.store(true, Release);
        locked(&self.failure).get_or_insert(error);
    }

    fn has_failed(&self) -> bool {
        self.has_failed.load(Acquire)
    }

    fn has_more(&self) -> bool {
        self.handed_out.load(Relaxed) < self.cut.len()
    }
}

impl Checkpoints {
    pub(super) fn new(threads: u32, home: TransactionId, partitions: usize) -> Checkpoints {
        // More threads than partitions would have nothing to do.
        let threads = (threads as usize).clamp(1, partitions);
        Checkpoints {
            workers: (0..threads).map(|_| Mutex::default()).collect(),
            round: Mutex::default(),
            home: Mutex::new((home, 0)),
            under_way: Mutex::default(),
            revoked: Mutex::default(),
            is_renewing: AtomicBool::new(false),
        }
    }

    pub(super) fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Does `act`, unless another thread does so already.
    pub(super) fn alone(&self, act: impl FnOnce()) {
        if !self.is_renewing.swap(true, SeqCst) {
            act();
            self.is_renewing.store(false, SeqCst);
        }
    }

    /// Notes freed blocks.
    pub(super) fn revoke(&self, revoked: Revoked) {
        locked(&self.revoked).push(revoked);
    }

    /// Of ranges whose freeing is durable, keeps those that are on their way home; the others can be used again.
    pub(super) fn unhold_or_keep(&self, common: &Common, freed: Vec<Range<u64>>) {
        let mut under_way = locked(&self.under_way);
        let UnderWay { blocks, freed_late } = &mut *under_way;
        let is_late = |range: &Range<u64>| !blocks.is_empty() && range.clone().any(|block| blocks.contains(&block));
        let (late, usable): (Vec<_>, Vec<_>) = freed.into_iter().partition(is_late);
        freed_late.extend(late.into_iter().map(|range| range.start));
        common.unhold_all(usable.into_iter().map(|range| range.start));
    }

    /// True if freed blocks wait for the end of a round.
    pub(super) fn holds_freed(&self) -> bool {
        !locked(&self.under_way).freed_late.is_empty()
    }

    fn round(&self) -> Option<Arc<Round>> {
        locked(&self.round).clone()
    }
}

impl NvmJournal {
    /// True if checkpoint threads have something to do.
    pub(super) fn is_checkpoint_due(&self) -> bool {
        match self.checkpoints.round() {
            Some(round) => round.has_more(),
            None => self.is_round_due(),
        }
    }

    fn is_round_due(&self) -> bool {
        let (home, _) = *locked(&self.checkpoints.home);
        let is_behind = self.durable().is_after(home);
        is_behind
            && match self.scheme {
                Scheme::Paper => true,
                Scheme::Helping if self.common.blocks.stay_beyond(2) => true,
                Scheme::Helping => self.rings.iter().any(|ring| ring.used() > ring.slots() / 2),
            }
    }

    /// The transaction up to which the next round goes; `None` if all that is durable is home.
    fn next_goal(&self) -> Option<TransactionId> {
        let (home, durable) = (locked(&self.checkpoints.home).0, self.durable());
        let behind = durable.0.wrapping_sub(home.0);
        match self.scheme {
            _ if !durable.is_after(home) => None,
            // Its cut is among those that are kept.
            Scheme::Paper if (behind as usize) < super::CUTS / 2 => Some(home.next()),
            Scheme::Paper | Scheme::Helping => Some(durable),
        }
    }

    /// The round under way, or a new one if `is_wanted`.
    fn join_round(&self, at: Time, is_wanted: bool) -> Option<Arc<Round>> {
        let mut round = locked(&self.checkpoints.round);
        if round.is_none() && is_wanted {
            let (last, cut) = loop {
                let last = self.next_goal()?;
                // So many may be closed between the two lines that its cut is not kept: the goal is a later one then.
                if let Some(cut) = self.cut(last) {
                    break (last, cut);
                }
            };
            self.counts.checkpoints.fetch_add(1, Relaxed);
            *round = Some(Arc::new(Round {
                begin: at,
                last,
                cut,
                handed_out: AtomicUsize::new(0),
                ended: AtomicUsize::new(0),
                end: AtomicU64::new(at.0),
                is_over: AtomicBool::new(false),
                written: Mutex::default(),
                has_failed: AtomicBool::new(false),
                failure: Mutex::default(),
            }));
        }
        round.clone()
    }

    /// Lends a thread to the round that is under way or due. In a simulated run, all checkpoint threads work up to now.
    pub(super) fn checkpoint_a_piece(&self, task: &Task<'_>) -> Result<(), VolumeError> {
        if task.is_simulated() {
            while self.simulate_step(task.now(), task.now())? {}
            return Ok(());
        }
        if let Some(round) = self.join_round(task.now(), self.is_round_due()) {
            self.work_on(task, &round)?;
        }
        Ok(())
    }

    /// Works on a round while it has something to hand out.
    fn work_on(&self, task: &Task<'_>, round: &Arc<Round>) -> Result<(), VolumeError> {
        for worker in &self.checkpoints.workers {
            let mut worker = match worker.try_lock() {
                Ok(worker) => worker,
                Err(TryLockError::WouldBlock) => continue,
                Err(TryLockError::Poisoned(broken)) => broken.into_inner(),
            };
            // When the round has no more to hand out, another may have a part that a thread has left in a panic.
            while self.step(&mut worker, task, round)? {}
        }
        Ok(())
    }

    /// Writes home what is durable now, and waits until that is done.
    pub(super) fn checkpoint_now(&self, task: &Task<'_>) -> Result<(), VolumeError> {
        match self.join_round(task.now(), true) {
            Some(round) => self.finish(task, &round),
            None => Ok(()),
        }
    }

    /// Waits for the end of the round that is under way.
    pub(super) fn finish_round(&self, task: &Task<'_>) -> Result<(), VolumeError> {
        self.checkpoints.round().map_or(Ok(()), |round| self.finish(task, &round))
    }

    fn finish(&self, task: &Task<'_>, round: &Arc<Round>) -> Result<(), VolumeError> {
        let mut looks = 0;
        while !round.is_over.load(Acquire) {
            if task.is_simulated() {
                self.simulate_step(task.now(), Time(u64::MAX))?;
                continue;
            }
            self.work_on(task, round)?;
            looks += 1;
            relax_longer(task, looks);
        }
        task.wait_until(Time(round.end.load(Acquire)));
        locked(&round.failure).take().map_or(Ok(()), Err)
    }

    /// Lets the checkpoint thread that is furthest behind do a step, if that begins no later than `end`. True if one has.
    fn simulate_step(&self, now: Time, end: Time) -> Result<bool, VolumeError> {
        let Some(round) = self.join_round(now, self.is_round_due()) else { return Ok(false) };
        let workers = self.checkpoints.workers.iter().map(locked);
        let able = workers.filter(|worker| worker.part.is_some() || round.has_more());
        let next = able.min_by_key(|worker| worker.clock.max(round.begin));
        let Some(mut worker) = next.filter(|worker| worker.clock.max(round.begin) <= end) else { return Ok(false) };
        let task = Task::at(worker.clock.max(round.begin));
        let stepped = self.step(&mut worker, &task, &round);
        worker.clock = task.now();
        stepped?;
        Ok(true)
    }

    /// A step of a checkpoint thread: it takes a partition of the round, writes a piece of it, or ends it. False if there is
    /// nothing to do.
    fn step(&self, worker: &mut Worker, task: &Task<'_>, round: &Arc<Round>) -> Result<bool, VolumeError> {
        let Some(part) = &mut worker.part else {
            let partition = round.handed_out.fetch_add(1, AcqRel);
            if partition < round.cut.len() {
                worker.part = Some(self.plan(round, partition));
            }
            return Ok(partition < round.cut.len());
        };
        if !part.images.is_empty() && !part.round.has_failed() {
            if let Err(error) = self.write_piece(task, part) {
                part.round.fail(error);
            }
            return Ok(true);
        }
        let round = Arc::clone(&part.round);
        worker.part = None;
        round.end.fetch_max(task.now().0, AcqRel);
        if round.ended.fetch_add(1, AcqRel) + 1 == round.cut.len() {
            task.wait_until(Time(round.end.load(Acquire)));
            self.end_round(task, &round);
            return locked(&round.failure).take().map_or(Ok(true), Err);
        }
        Ok(true)
    }

    /// Finds what a round writes home of a partition: the newest image of each block, unless it was freed since.
    fn plan(&self, round: &Arc<Round>, partition: usize) -> Part {
        let ring = &self.rings[partition];
        let mut newest: FxHashMap<u64, Image> = FxHashMap::default();
        for index in ring.head()..round.cut[partition] {
            let entry = ring.entry(index);
            let Kept::Image(content) = entry.what else { continue };
            let image = Image { block: entry.block, version: entry.version, index, content };
            let kept = newest.entry(image.block).or_insert(image);
            if kept.version < image.version {
                *kept = image;
            }
        }
        locked(&self.checkpoints.under_way).blocks.extend(newest.keys());
        // From here on, a block whose freeing becomes durable is not used before the round ends.
        for revoked in locked(&self.checkpoints.revoked).iter().filter(|revoked| self.is_durable(revoked.transaction)) {
            for block in revoked.ranges.iter().cloned().flatten() {
                if newest.get(&block).is_some_and(|image| image.version < revoked.version) {
                    newest.remove(&block);
                }
            }
        }
        let mut images: Vec<Image> = newest.into_values().collect();
        images.sort_unstable_by_key(|image| image.block);
        Part { round: Arc::clone(round), partition, images: images.into() }
    }

    /// Writes some of a partition's blocks home.
    fn write_piece(&self, task: &Task<'_>, part: &mut Part) -> Result<(), VolumeError> {
        let (shape, ring) = (self.shape(), &self.rings[part.partition]);
        let width = shape.width as usize;
        let (mut runs, mut written): (Vec<Run>, Vec<Image>) = (Vec::new(), Vec::new());
        while let Some(image) = part.images.front().copied() {
            let follows = |run: &Run| run.first + (run.bytes.len() / width) as u64 == image.block;
            let label = Label::first(Cause::Checkpoint, image.content);
            let is_new = !runs.last().is_some_and(|run| follows(run) && run.label == label);
            if written.len() == BLOCKS_AT_ONCE || is_new && runs.len() == RUNS_AT_ONCE {
                break;
            }
            if is_new {
                runs.push(Run { first: image.block, bytes: Vec::new(), label });
            }
            let run = runs.last_mut().expect("there is one now");
            let from = run.bytes.len();
            run.bytes.resize(from + width, 0);
            let at = shape.data(part.partition as u32, ring.place(image.index));
            self.nvm.read(at, &mut run.bytes[from..]);
            written.push(image);
            part.images.pop_front();
        }
        task.wait_until(self.nvm.read_by(task.now(), (written.len() * shape.block_bytes as usize) as u64));
        self.common.media.send_runs(task, &runs)?;
        locked(&part.round.written).extend(written);
        Ok(())
    }

    /// All partitions of a round are written: makes that durable, and recycles the slots. If the round has failed, they stay.
    fn end_round(&self, task: &Task<'_>, round: &Arc<Round>) {
        if !round.has_failed() {
            match self.common.media.flush(task) {
                Ok(()) => self.recycle(round),
                Err(error) => round.fail(error.into()),
            }
        }
        {
            let mut under_way = locked(&self.checkpoints.under_way);
            under_way.blocks.clear();
            // Before the lock is free: who finds nothing there relies on it that these can be used.
            self.common.unhold_all(under_way.freed_late.drain(..));
        }
        round.end.fetch_max(task.now().0, AcqRel);
        *locked(&self.checkpoints.round) = None;
        round.is_over.store(true, Release);
    }

    fn recycle(&self, round: &Round) {
        let mut home = locked(&self.checkpoints.home);
        *home = (round.last, home.1 + 1);
        let record =
            Record { generation: self.superblock.generation, transaction: round.last.0, cut: round.cut.clone() };
        record.checkpoint(&*self.nvm, home.1);
        drop(home);
        for (ring, cut) in self.rings.iter().zip(&round.cut) {
            ring.recycle(*cut);
        }
        locked(&self.checkpoints.revoked).retain(|revoked| revoked.transaction.is_after(round.last));
        for image in locked(&round.written).drain(..) {
            self.common.blocks.release_version(image.block, image.version);
        }
        self.checkpoints.alone(|| self.credits.renew(self.rings.iter()));
    }
}
