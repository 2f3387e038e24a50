//! Checkpoints: what committed transactions have changed is written home, and the log lets them go.
//!
//! They go through a gate of their own, beside commits: a commit waits for one only if the log has no room. A block that is
//! changed again by a later transaction is that one's: it goes home with it, and the older copy may go. A block that is
//! freed while it is being written home is not used again before that is done.

use super::common::locked;
use super::home::Waiting;
use super::transactions::LoggedJournal;
use super::{Transaction, TransactionId};
use crate::fs::ext::media::Run;
use crate::fs::volume::VolumeError;
use crate::label::{Cause, Label};
use crate::task::Task;
use std::collections::BTreeMap;

/// Runs of blocks that are written home at the same time.
const RUNS_AT_ONCE: usize = 32;
/// Blocks of these runs together, at the most.
const BLOCKS_AT_ONCE: u64 = 1024;
/// The same, beside commits: whatever a commit asks of the device may have to wait for so many.
const BLOCKS_BESIDE: u64 = 8;

impl LoggedJournal {
    /// Waits until what committed transactions have freed can be used: not before a checkpoint under way has ended.
    pub(super) fn wait_for_freed(&self, task: &Task<'_>) {
        let waits = !locked(&self.home).freed_late.is_empty();
        if waits {
            drop(self.checkpoint.enter(task));
        }
    }

    /// Writes what the transactions up to `last` have changed home, and nothing since, runs of neighbours at once, and makes
    /// it durable. Called behind the gate `checkpoint`.
    pub(super) fn write_home(&self, task: &Task<'_>, last: TransactionId) -> Result<(), VolumeError> {
        self.write_home_by(task, last, BLOCKS_AT_ONCE)
    }

    fn write_home_by(&self, task: &Task<'_>, last: TransactionId, at_once: u64) -> Result<(), VolumeError> {
        let due: BTreeMap<u64, Waiting> = {
            let mut home = locked(&self.home);
            let due = home.waiting.iter().filter(|(_, entry)| !entry.id.is_after(last));
            let due: BTreeMap<u64, Waiting> = due.map(|(block, entry)| (*block, entry.clone())).collect();
            home.under_way = due.keys().copied().collect();
            due
        };
        if due.is_empty() {
            return Ok(());
        }
        locked(&self.counts).checkpoints += 1;
        let written = self.write_runs(task, &due, at_once).and_then(|()| Ok(self.common.media.flush(task)?));
        self.is_written(&due, written.is_ok());
        written
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

    fn write_runs(&self, task: &Task<'_>, home: &BTreeMap<u64, Waiting>, at_once: u64) -> Result<(), VolumeError> {
        let mut all = home.iter().peekable();
        let mut runs = Vec::new();
        let mut blocks = 0;
        while let Some((first, entry)) = all.next() {
            let (mut next, mut bytes) = (first + 1, entry.bytes.to_vec());
            // Counted in blocks: of a block of stamps there are only four bytes.
            while let Some((_, more)) = all.next_if(|(block, more)| {
                **block == next && more.content == entry.content && blocks + next - first < at_once
            }) {
                bytes.extend_from_slice(&more.bytes);
                next += 1;
            }
            blocks += next - first;
            runs.push(Run { first: *first, bytes, label: Label::first(Cause::Checkpoint, entry.content) });
            if runs.len() == RUNS_AT_ONCE || blocks == at_once {
                self.common.media.write_runs(task, std::mem::take(&mut runs))?;
                blocks = 0;
            }
        }
        Ok(self.common.media.write_runs(task, runs)?)
    }

    /// Makes as much room in the log as is due, or as a transaction waits for.
    pub(super) fn checkpoint_due(&self, task: &Task<'_>, waiting: Option<&Transaction>) -> Result<(), VolumeError> {
        let _alone = self.checkpoint.enter(task);
        // Who was here before may have made room enough.
        let Some(last) = self.log.due(waiting) else { return Ok(()) };
        let at_once = if waiting.is_some() { BLOCKS_AT_ONCE } else { BLOCKS_BESIDE };
        self.write_home_by(task, last, at_once)?;
        self.log.let_go(task, last.next(), false)
    }
}
