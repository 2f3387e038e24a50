//! The replay of fast commits: first in memory, where each change is checked, and then as a transaction of the log. It has
//! the number of that which the fast commits belong to: until it is committed they count, and from then on they do not. So
//! a replay that is cut off is repeated from the beginning, or done.
//!
//! If a change contradicts the volume, its fast commit is left out, and those behind it.

use super::fast_changes::FastReplay;
use super::fast_scan::FastCommits;
use crate::fs::ext::blocks::Bytes;
use crate::fs::ext::files::head::{Head, Orphans};
use crate::fs::ext::files::node::Nodes;
use crate::fs::ext::found_log::FoundLog;
use crate::fs::ext::journal::{Changed, CollectedJournal, Jbd2, Log as _, Logged, Transaction, TransactionId};
use crate::fs::ext::media::Media;
use crate::fs::ext::parts::Parts;
use crate::fs::volume::{Damage, Timestamp, VolumeError};
use crate::label::Content;
use crate::task::{Gate, Task};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, PoisonError};

/// The place of the superblock's time of its last write, in seconds.
const WRITTEN_AT: usize = 48;

/// The blocks that fast commits have changed, in memory.
#[derive(Default)]
pub struct FastReplayed {
    pub blocks: BTreeMap<u64, Bytes>,
    /// A fast commit that was left out.
    pub damage: Option<Damage>,
}

/// Blocks that files have got, which nothing else may take before.
fn places(fast: &FastCommits) -> impl Iterator<Item = Range<u64>> + '_ {
    use crate::fs::ext::format::fast_commit::Change;
    fast.commits.iter().flat_map(|commit| &commit.changes).filter_map(|change| match change {
        Change::AddRange { extent, .. } => Some(extent.place..extent.place + u64::from(extent.count)),
        _ => None,
    })
}

/// The replay of fast commits in memory. Nothing else has changed the volume, whose superblock and counts are those of the
/// blocks of the log.
pub struct FastReplaying<'o> {
    pub parts: &'o mut Parts,
    pub task: &'o Task<'o>,
    pub fast: &'o FastCommits,
    /// Blocks of the log, which are in memory.
    pub logged: &'o BTreeMap<u64, Bytes>,
}

impl FastReplaying<'_> {
    /// Makes the changes of fast commits.
    pub fn replay(mut self) -> Result<FastReplayed, VolumeError> {
        let fast = self.fast;
        let mut replayed = FastReplayed::default();
        let mut count = fast.commits.len();
        while count > 0 {
            let superblock = self.parts.head.get_mut().superblock.clone();
            let (mut changed, made) = self.attempt(count);
            let error = match made {
                Ok(()) => {
                    // Files that were freed in parts have come into the list of orphans and left it.
                    let own = self.parts.metadata.shape.superblock_block(0);
                    if changed.remove(&own) {
                        self.restore(own);
                        self.parts.head.get_mut().superblock = superblock;
                    }
                    let blocks = changed
                        .into_iter()
                        .filter_map(|block| Some((block, self.parts.metadata.blocks.get(block).ok()?)));
                    replayed.blocks = blocks.collect();
                    break;
                }
                Err((wrong, error)) => {
                    count = wrong;
                    error
                }
            };
            changed.iter().for_each(|block| self.restore(*block));
            self.parts.head = Gate::new("superblock", Head::new(superblock));
            self.parts.sum_groups(self.task)?;
            let at = fast.first + fast.commits[count].at as u32;
            let what = format!("a fast commit in block {at} of the journal contradicts the volume: {error}");
            let rest = fast.commits.len() - count;
            let repair = format!("the {count} before it are replayed; it is left out, and {} behind it", rest - 1);
            replayed.damage = Some(Damage { what, repair });
        }
        Ok(replayed)
    }

    /// Gives a block the bytes that it has by the log, or on the device.
    fn restore(&self, block: u64) {
        self.parts.metadata.blocks.forget(block);
        if let Some(bytes) = self.logged.get(&block) {
            self.parts.metadata.blocks.set(block, bytes);
        }
    }

    /// Makes the changes of the first `count` fast commits, and answers the changed blocks; of a failure, the number of the
    /// fast commits before it.
    fn attempt(&mut self, count: usize) -> (BTreeSet<u64>, Result<(), (usize, VolumeError)>) {
        let below = (Arc::clone(&self.parts.metadata.media), Arc::clone(&self.parts.metadata.blocks));
        let (journal, changed): (CollectedJournal, Changed) =
            CollectedJournal::new(below, self.fast.id, self.parts.origin);
        self.parts.changes.journal = Some(Box::new(journal));
        // A check has no clock: its changes are not older than the volume.
        let written_at = i64::from(self.parts.head.get_mut().superblock.u32(WRITTEN_AT)) * 1_000_000_000;
        let origin = self.parts.origin;
        self.parts.origin = Timestamp(origin.0.max(written_at));
        let made = self.make_changes(count);
        (self.parts.origin, self.parts.changes.journal) = (origin, None);
        self.parts.nodes = Nodes::new(self.parts.shares.inode_count());
        self.parts.space.windows.clear();
        // The list of orphans is read when its files are freed.
        self.parts.head.get_mut().orphans = Orphans::default();
        let changed = std::mem::take(&mut *changed.lock().unwrap_or_else(PoisonError::into_inner));
        (changed, made)
    }

    fn make_changes(&self, count: usize) -> Result<(), (usize, VolumeError)> {
        let (parts, task, fast) = (&*self.parts, self.task, self.fast);
        let first = |error| (0, error);
        let journal = self.parts.changes.journal().map_err(first)?;
        places(fast).for_each(|range| journal.common().withhold(range));
        let handle = journal.begin(task, 0).map_err(first)?;
        let made = FastReplay::new(parts, task, &handle).map_err(first).and_then(|mut replay| {
            fast.commits[..count].iter().enumerate().try_for_each(|(number, commit)| {
                let made = commit.changes.iter().try_for_each(|change| replay.change(change));
                made.and_then(|()| replay.finish()).map_err(|error| (number, error))
            })
        });
        handle.end();
        made
    }
}

/// The transaction that makes replayed blocks durable, and the log that it is for, whose own blocks are home.
///
/// # Errors
///
/// Why the log has no room for them.
pub fn fast_transaction(
    media: &Arc<Media>,
    log: &FoundLog,
    id: TransactionId,
    blocks: &BTreeMap<u64, Bytes>,
) -> Result<FastTransaction, String> {
    let logged =
        |(block, bytes): (&u64, &Bytes)| Logged { block: *block, bytes: bytes.clone(), content: Content::Metadata };
    let transaction = Transaction { id, blocks: blocks.iter().map(logged).collect(), revokes: Vec::new() };
    let records = log.superblock.records_end() - log.superblock.first();
    let log = Jbd2::new(media, log.place.clone(), log.superblock.clone(), records);
    match log.has_room(&transaction) {
        true => Ok(FastTransaction { log, transaction }),
        false => Err(format!(
            "its fast commits have changed {} blocks, for which the {records} blocks of its journal have no room: \
             'e2fsck -fy' replays them",
            blocks.len()
        )),
    }
}

/// Replayed blocks that become a transaction of the log.
pub struct FastTransaction {
    log: Jbd2,
    transaction: Transaction,
}

impl FastTransaction {
    /// Makes it durable, at this time on the wall clock, and answers the number of the next one. The log's other blocks
    /// are home and durable.
    pub fn store(mut self, task: &Task<'_>, at_ns: i64) -> Result<TransactionId, VolumeError> {
        // Its records may lie where those before it do, which would look damaged: then fast commits do not count.
        self.log.begin_anew(task, self.transaction.id)?;
        self.log.store(task, &mut self.transaction, at_ns)?;
        Ok(self.transaction.id.next())
    }
}
