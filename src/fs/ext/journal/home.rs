//! Committed blocks that are not home yet: the list between commits and checkpoints, and the part of it that a round takes.

use super::{Logged, Transaction, TransactionId};
use crate::fs::ext::blocks::Bytes;
use crate::fs::ext::media::Run;
use crate::label::{Cause, Content, Label};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A committed block that waits to be written home.
#[derive(Clone)]
pub struct Waiting {
    pub(super) bytes: Bytes,
    pub(super) content: Content,
    /// The last committed transaction that has changed it.
    pub(super) id: TransactionId,
}

/// Blocks on their way home.
#[derive(Default)]
pub(super) struct Home {
    pub(super) waiting: BTreeMap<u64, Waiting>,
    /// Blocks of the transaction that is being committed.
    pub(super) committing: BTreeSet<u64>,
    /// Blocks that a checkpoint is writing.
    pub(super) under_way: BTreeSet<u64>,
    /// The beginnings of ranges that were freed, with blocks that are under way: they may be used again after that.
    pub(super) freed_late: Vec<u64>,
}

impl Home {
    /// These blocks are being committed.
    pub(super) fn begin_commit(&mut self, blocks: impl Iterator<Item = u64>) {
        self.committing = blocks.collect();
    }

    /// A transaction is committed, and has freed these ranges: answers the beginnings of those that can be used from now
    /// on.
    pub(super) fn take_in(&mut self, transaction: Transaction, freed: &[Range<u64>]) -> Vec<u64> {
        self.committing.clear();
        for revoked in &transaction.revokes {
            self.waiting.remove(revoked);
        }
        for Logged { block, bytes, content } in transaction.blocks {
            self.waiting.insert(block, Waiting { bytes, content, id: transaction.id });
        }
        let is_late = |range: &&Range<u64>| self.under_way.range((*range).clone()).next().is_some();
        let (late, usable): (Vec<_>, Vec<_>) = freed.iter().partition(is_late);
        self.freed_late.extend(late.into_iter().map(|range| range.start));
        usable.into_iter().map(|range| range.start).collect()
    }
}

/// The blocks of a round.
pub struct Due {
    /// The last transaction of the round.
    pub(super) last: TransactionId,
    pub(super) blocks: BTreeMap<u64, Waiting>,
    /// The first block of each part. There is one at least.
    pub(super) parts: Vec<u64>,
}

impl Due {
    /// Blocks in parts of at most `batch` blocks.
    pub(super) fn new(last: TransactionId, blocks: BTreeMap<u64, Waiting>, batch: usize) -> Due {
        let parts = blocks.keys().copied().step_by(batch).collect::<Vec<_>>();
        Due { last, blocks, parts: if parts.is_empty() { vec![0] } else { parts } }
    }

    /// The runs of neighbours of a part, of those blocks that are `alive` with their transaction.
    pub(super) fn runs(&self, part: usize, alive: impl Fn(u64, TransactionId) -> bool) -> Vec<Run> {
        let end = self.parts.get(part + 1).copied().unwrap_or(u64::MAX);
        let all = self.blocks.range(self.parts[part]..end);
        let mut all = all.filter(|(block, entry)| alive(**block, entry.id)).peekable();
        let mut runs = Vec::new();
        while let Some((first, entry)) = all.next() {
            let (mut next, mut bytes) = (first + 1, entry.bytes.to_vec());
            while let Some((_, more)) = all.next_if(|(block, more)| **block == next && more.content == entry.content) {
                bytes.extend_from_slice(&more.bytes);
                next += 1;
            }
            runs.push(Run { first: *first, bytes, label: Label::first(Cause::Checkpoint, entry.content) });
        }
        runs
    }
}
