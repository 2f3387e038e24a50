//! The fast commits of a volume that is checked: made in memory, and of a repair written as a transaction of the log.

use super::Check;
use crate::fs::ext::blocks::Bytes;
use crate::fs::ext::error::OpenExtError;
use crate::fs::ext::found_log::FoundLog;
use crate::fs::ext::journal::TransactionId;
use crate::fs::ext::recovery::fast_replay::{FastReplaying, fast_transaction};
use crate::fs::ext::recovery::fast_scan::FastCommits;
use crate::fs::volume::VolumeError;
use std::collections::BTreeMap;

/// The log behind replayed fast commits.
pub(super) struct AfterFast {
    pub next: TransactionId,
    pub is_damaged: bool,
}

impl Check<'_> {
    /// Replays the fast commits of a log, of which these are the blocks. `None` if there are none, or none can be replayed.
    pub(super) fn replay_fast(
        &mut self,
        log: &FoundLog,
        fast: &FastCommits,
        logged: &BTreeMap<u64, Bytes>,
        writes: bool,
    ) -> Result<Option<AfterFast>, OpenExtError> {
        if let Some(damage) = &fast.damage {
            self.found(damage.what.clone(), damage.repair.clone());
        }
        if fast.commits.is_empty() {
            return Ok(None);
        }
        self.parts.head.get_mut().superblock = self.superblock.clone();
        let summed = self.parts.sum_groups(self.task);
        let replaying = FastReplaying { parts: &mut self.parts, task: self.task, fast, logged };
        let replayed = match summed.and_then(|()| replaying.replay()) {
            Ok(replayed) => replayed,
            Err(error @ VolumeError::Damaged { .. }) => {
                let what = format!("{} fast commits of the journal cannot be replayed: {error}", fast.commits.len());
                self.found(what, "they are left out, and what they have changed is lost");
                return Ok(Some(AfterFast { next: fast.id.next(), is_damaged: true }));
            }
            Err(error) => return Err(error.into()),
        };
        let is_damaged = replayed.damage.is_some();
        if let Some(damage) = replayed.damage {
            self.found(damage.what, damage.repair);
        }
        let mut next = fast.id.next();
        if writes && !replayed.blocks.is_empty() {
            let transaction = fast_transaction(&self.parts.metadata.media, log, fast.id, &replayed.blocks);
            let transaction = transaction.map_err(OpenExtError::Unrepairable)?;
            self.parts.metadata.media.flush(self.task)?;
            next = transaction.store(self.task, self.now.0)?;
        }
        self.take_blocks(replayed.blocks, writes)?;
        Ok(Some(AfterFast { next, is_damaged }))
    }
}
