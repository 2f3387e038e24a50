//! Checkpoints: blocks that committed transactions have changed are written home, and the log lets them go.
//!
//! They are [rounds](super::rounds) beside commits: a commit waits for one only if the log has no room. A block that is
//! changed again by a later transaction is that one's: it goes home with it, and the older copy may go. A block that is
//! freed while it is being written home is not used again before that is done.

use super::common::locked;
use super::home::{Due, Waiting};
use super::order::Order;
use super::rounds::{Checkpointed, Rounds};
use super::transactions::LoggedJournal;
use super::{Transaction, TransactionId};
use crate::fs::ext::media::Run;
use crate::fs::volume::VolumeError;
use crate::task::Task;
use std::collections::BTreeMap;

impl LoggedJournal {
    /// Waits until blocks that committed transactions have freed can be used: not before a checkpoint under way has ended.
    pub(super) fn wait_for_freed(&self, task: &Task<'_>) -> Result<(), VolumeError> {
        let waits = !locked(&self.home).freed_late.is_empty();
        if waits { self.finish_with(task, || None) } else { Ok(()) }
    }

    /// Writes the blocks that transactions up to `last` have changed home, without later changes.
    pub(super) fn write_home(&self, task: &Task<'_>, last: TransactionId) -> Result<(), VolumeError> {
        let is_due = || locked(&self.home).waiting.values().any(|entry| !entry.id.is_after(last));
        while is_due() {
            self.finish_with(task, || self.goal(last))?;
        }
        // One that writes nothing more may let go of transactions still.
        self.finish_with(task, || None)
    }

    /// Makes room in the log for a transaction.
    pub(super) fn make_room(&self, task: &Task<'_>, transaction: &Transaction) -> Result<(), VolumeError> {
        while let Some(last) = self.log.due(Some(transaction)) {
            self.finish_with(task, || self.goal(last))?;
        }
        Ok(())
    }

    /// The goal of a round up to transaction `last`, and its number of parts.
    fn goal(&self, last: TransactionId) -> Option<(Due, usize)> {
        let due = {
            let mut home = locked(&self.home);
            let due = home.waiting.iter().filter(|(_, entry)| !entry.id.is_after(last));
            let due: BTreeMap<u64, Waiting> = due.map(|(block, entry)| (*block, entry.clone())).collect();
            home.under_way = due.keys().copied().collect();
            due
        };
        locked(&self.counts).checkpoints += u64::from(!due.is_empty());
        let due = Due::new(last, due, self.batch);
        let parts = due.parts.len();
        Some((due, parts))
    }

    /// Makes blocks that are home durable there, before the log lets them go: and later transactions that have changed others
    /// of its blocks again, or freed them, since only these have them then.
    fn settle_home(&self, task: &Task<'_>) -> Result<(), VolumeError> {
        match self.log.order() {
            Order::Barriers => return Ok(self.common.media.barrier(task)?),
            Order::Flushes => return Ok(self.common.media.flush(task)?),
            Order::Checksums => self.settled.settle_beside(task, |_| false, || self.log.settle(task))?,
        }
        // On a device of its own the log may have been durable.
        if self.common.media.is_unflushed() { Ok(self.common.media.flush(task)?) } else { Ok(()) }
    }

    /// These blocks are home now, unless the device has failed: then the log has them still.
    fn is_written(&self, due: &BTreeMap<u64, Waiting>, is_home: bool) {
        let running = locked(&self.running);
        let mut home = locked(&self.home);
        home.under_way.clear();
        for (block, written) in due.iter().filter(|_| is_home) {
            // A later transaction may have changed or freed it meanwhile.
            if home.waiting.get(block).is_none_or(|entry| entry.id != written.id) {
                continue;
            }
            home.waiting.remove(block);
            if !running.blocks.contains_key(block) && !home.committing.contains(block) {
                self.common.blocks.release(*block);
            }
        }
        let late = std::mem::take(&mut home.freed_late);
        drop(home);
        drop(running);
        self.common.unhold_all(late);
    }
}

impl Checkpointed for LoggedJournal {
    type Goal = Due;
    type Part = Vec<Run>;

    fn rounds(&self) -> &Rounds<Due, Vec<Run>> {
        &self.rounds
    }

    fn due_goal(&self) -> Option<(Due, usize)> {
        self.goal(self.log.due(None)?)
    }

    fn is_round_due(&self) -> bool {
        self.log.due(None).is_some()
    }

    fn part(&self, due: &Due, number: usize) -> Vec<Run> {
        let home = locked(&self.home);
        due.runs(number, |block, id| home.waiting.get(&block).is_some_and(|entry| entry.id == id))
    }

    fn write_piece(&self, task: &Task<'_>, due: &Due, runs: &mut Vec<Run>) -> Result<bool, VolumeError> {
        let runs = std::mem::take(runs);
        if runs.is_empty() {
            return Ok(false);
        }
        if self.log.order() == Order::Checksums {
            // Nothing else keeps a block from being home before its transaction is in the log.
            self.settled.settle_beside(task, |durable| !due.last.is_after(durable.last), || self.log.settle(task))?;
        }
        self.common.media.write_runs(task, runs)?;
        Ok(true)
    }

    fn end_round(&self, task: &Task<'_>, due: &Due, has_failed: bool) -> Result<(), VolumeError> {
        let is_needed = !has_failed && !due.blocks.is_empty();
        let flushed = if is_needed { self.settle_home(task) } else { Ok(()) };
        self.is_written(&due.blocks, !has_failed && flushed.is_ok());
        flushed?;
        if has_failed { Ok(()) } else { self.log.let_go(task, due.last.next(), false) }
    }
}
