//! Checkpoints: the newest committed image of each block goes home, and slots are recycled.
//!
//! A [round](super::super::rounds) covers all slots up to the cut of a transaction. Its parts are the partitions; a thread writes
//! the blocks of its partition home, newest image only, in runs of neighbours. The thread that ends the last partition flushes the
//! device, stores the checkpoint's record, and recycles the slots (J14): the barrier of the paper, without a counter that is
//! set back (J15).

use super::atomic::{AtomicBool, Mutex, locked};
use super::layout::Record;
use super::ring::Kept;
use super::{NvmJournal, Revoked, Scheme};
use crate::fs::ext::journal::TransactionId;
use crate::fs::ext::journal::common::Common;
use crate::fs::ext::journal::rounds::{Checkpointed, Rounds};
use crate::fs::ext::media::Run;
use crate::fs::volume::VolumeError;
use crate::label::{Cause, Content, Label};
use crate::task::Task;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// The state of checkpoints.
pub(super) struct Checkpoints {
    pub(super) rounds: Rounds<Goal, Part>,
    /// Blocks that a thread writes home at once, at most.
    batch: usize,
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

/// The transactions of a round: those up to `last`, whose slots are below `cut`.
pub struct Goal {
    last: TransactionId,
    cut: Vec<u64>,
    /// Images that were written home.
    written: Mutex<Vec<Image>>,
}

/// The images of a partition that go home, by block.
pub struct Part {
    partition: usize,
    images: VecDeque<Image>,
}

#[derive(Clone, Copy)]
struct Image {
    block: u64,
    version: u64,
    index: u64,
    content: Content,
}

impl Checkpoints {
    pub(super) fn new(threads: u32, batch: usize, home: TransactionId, partitions: usize) -> Checkpoints {
        Checkpoints {
            // More threads than partitions would have nothing to do.
            rounds: Rounds::new((threads as usize).clamp(1, partitions)),
            batch,
            home: Mutex::new((home, 0)),
            under_way: Mutex::default(),
            revoked: Mutex::default(),
            is_renewing: AtomicBool::new(false),
        }
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
}

impl NvmJournal {
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

    /// The goal of the next round, and its number of parts; `None` if all that is durable is home.
    fn goal(&self) -> Option<(Goal, usize)> {
        let (last, cut) = loop {
            let last = self.next_goal()?;
            // So many may be closed between the two lines that its cut is not kept: the goal is a later one then.
            if let Some(cut) = self.cut(last) {
                break (last, cut);
            }
        };
        self.counts.checkpoints.fetch_add(1, Relaxed);
        let parts = cut.len();
        Some((Goal { last, cut, written: Mutex::default() }, parts))
    }

    /// Writes the durable transactions home, or waits for the round that is under way.
    pub(super) fn checkpoint_now(&self, task: &Task<'_>) -> Result<(), VolumeError> {
        self.finish_with(task, || self.goal())
    }

    /// Waits for the end of the round that is under way.
    pub(super) fn finish_round(&self, task: &Task<'_>) -> Result<(), VolumeError> {
        self.finish_with(task, || None)
    }

    fn recycle(&self, goal: &Goal) {
        let mut home = locked(&self.checkpoints.home);
        *home = (goal.last, home.1 + 1);
        let record = Record { generation: self.superblock.generation, transaction: goal.last.0, cut: goal.cut.clone() };
        record.checkpoint(&*self.nvm, home.1);
        drop(home);
        for (ring, cut) in self.rings.iter().zip(&goal.cut) {
            ring.recycle(*cut);
        }
        locked(&self.checkpoints.revoked).retain(|revoked| revoked.transaction.is_after(goal.last));
        for image in locked(&goal.written).drain(..) {
            self.common.blocks.release_version(image.block, image.version);
        }
        self.checkpoints.alone(|| self.credits.renew(self.rings.iter()));
    }
}

impl Checkpointed for NvmJournal {
    type Goal = Goal;
    type Part = Part;

    fn rounds(&self) -> &Rounds<Goal, Part> {
        &self.checkpoints.rounds
    }

    fn due_goal(&self) -> Option<(Goal, usize)> {
        self.goal()
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

    /// Finds the blocks that a round writes home of a partition: the newest image of each block, unless it was freed since.
    fn part(&self, goal: &Goal, partition: usize) -> Part {
        let ring = &self.rings[partition];
        let mut newest: FxHashMap<u64, Image> = FxHashMap::default();
        for index in ring.head()..goal.cut[partition] {
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
        Part { partition, images: images.into() }
    }

    fn write_piece(&self, task: &Task<'_>, goal: &Goal, part: &mut Part) -> Result<bool, VolumeError> {
        if part.images.is_empty() {
            return Ok(false);
        }
        let (shape, ring) = (self.shape(), &self.rings[part.partition]);
        let width = shape.width as usize;
        let count = part.images.len().min(self.checkpoints.batch);
        let written: Vec<Image> = part.images.drain(..count).collect();
        let mut runs: Vec<Run> = Vec::new();
        for image in &written {
            let follows = |run: &Run| run.first + (run.bytes.len() / width) as u64 == image.block;
            let label = Label::first(Cause::Checkpoint, image.content);
            if !runs.last().is_some_and(|run| follows(run) && run.label == label) {
                runs.push(Run { first: image.block, bytes: Vec::new(), label });
            }
            let run = runs.last_mut().expect("there is one now");
            let from = run.bytes.len();
            run.bytes.resize(from + width, 0);
            let at = shape.data(part.partition as u32, ring.place(image.index));
            self.nvm.read(at, &mut run.bytes[from..]);
        }
        let mut read = written.iter().map(|image| {
            let [_, data] =
                shape.bytes_of_slot(part.partition as u32, ring.place(image.index), u64::from(shape.block_bytes));
            data
        });
        task.wait_until(self.nvm.read_by(task.now(), &mut read));
        self.common.media.send_runs(task, &runs)?;
        locked(&goal.written).extend(written);
        Ok(true)
    }

    fn end_round(&self, task: &Task<'_>, goal: &Goal, has_failed: bool) -> Result<(), VolumeError> {
        let flushed = if has_failed { Ok(()) } else { self.common.media.flush(task) };
        if !has_failed && flushed.is_ok() {
            self.recycle(goal);
        }
        let mut under_way = locked(&self.checkpoints.under_way);
        under_way.blocks.clear();
        // Before the lock is free: a task that finds nothing there relies on it that these can be used.
        self.common.unhold_all(under_way.freed_late.drain(..));
        Ok(flushed?)
    }
}
