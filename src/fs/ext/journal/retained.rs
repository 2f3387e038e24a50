//! A log that writes nothing: a monitor keeps the memory of committed blocks (Huang and Chang, "VM aware journaling").
//!
//! A commit tells the monitor which blocks have changed and where they lie in memory, and copies no data. The monitor keeps
//! that memory when the process dies, and writes it home then. A change of a committed block copies it first; at the next
//! commit the new memory takes the place of the old.
//!
//! The log keeps its own share of each block's memory until the monitor has answered that it keeps it no longer: until
//! then nobody may change it.

use super::common::locked;
use super::room::Room;
use super::{Log, Transaction, TransactionId};
use crate::device::{Frame, Monitor};
use crate::fs::ext::media::Media;
use crate::fs::volume::VolumeError;
use crate::task::Task;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

/// The memory that the monitor keeps.
#[derive(Default)]
struct Kept {
    /// Of each block, the last transaction that has changed it.
    blocks: BTreeMap<u64, (TransactionId, Frame)>,
    /// The number of blocks whose last change is in each transaction, the oldest first.
    transactions: VecDeque<(TransactionId, u32)>,
    /// The most blocks that were kept at once.
    most: usize,
}

impl Kept {
    fn forget(&mut self, block: u64) {
        let Some((id, _)) = self.blocks.remove(&block) else { return };
        let (_, blocks) = self.transactions.iter_mut().find(|(of, _)| *of == id).expect("it has blocks that are kept");
        *blocks -= 1;
    }
}

/// A log in memory that a monitor keeps.
pub struct RetainedLog {
    monitor: Arc<dyn Monitor>,
    /// The volume's device.
    media: Arc<Media>,
    room: Room,
    kept: Mutex<Kept>,
}

impl RetainedLog {
    /// The log of the volume on `media`, which keeps less than `capacity` blocks. The monitor has begun, and keeps nothing.
    pub fn new(media: &Arc<Media>, monitor: Arc<dyn Monitor>, capacity: u32) -> RetainedLog {
        let room = Room { capacity, block_bytes: media.block_bytes() };
        RetainedLog { monitor, media: Arc::clone(media), room, kept: Mutex::default() }
    }
}

impl Log for RetainedLog {
    fn most_blocks(&self) -> usize {
        self.room.most_blocks()
    }

    fn has_room(&self, transaction: &Transaction) -> bool {
        // As if none took the place of an older one.
        self.room.holds(locked(&self.kept).blocks.len() as u32, transaction.blocks.len() as u32)
    }

    fn due(&self, waiting: Option<&Transaction>) -> Option<TransactionId> {
        let waiting = waiting.map(|transaction| transaction.blocks.len() as u32);
        let kept = locked(&self.kept);
        self.room.due(kept.blocks.len() as u32, waiting, kept.transactions.iter().copied())
    }

    fn store(&self, task: &Task<'_>, transaction: &Transaction, _: i64) -> Result<(), VolumeError> {
        // Bytes of files that were written before this transaction named their blocks.
        if self.media.is_data_unflushed() {
            self.media.flush(task)?;
        }
        let id = transaction.id;
        let blocks: Vec<(u64, Frame)> =
            transaction.blocks.iter().map(|logged| (logged.block, Arc::clone(&logged.bytes))).collect();
        task.ask(|at| self.monitor.commit(at, id.0, &blocks, &transaction.revokes))?;
        let mut kept = locked(&self.kept);
        for block in transaction.revokes.iter().chain(blocks.iter().map(|(block, _)| block)) {
            kept.forget(*block);
        }
        kept.transactions.retain(|(_, blocks)| *blocks > 0);
        if !blocks.is_empty() {
            kept.transactions.push_back((id, blocks.len() as u32));
        }
        kept.blocks.extend(blocks.into_iter().map(|(block, frame)| (block, (id, frame))));
        kept.most = kept.most.max(kept.blocks.len());
        Ok(())
    }

    fn let_go(&self, task: &Task<'_>, next: TransactionId, is_closed: bool) -> Result<(), VolumeError> {
        let is_gone = |id: TransactionId| next.is_after(id);
        if !is_closed && !locked(&self.kept).transactions.front().is_some_and(|(id, _)| is_gone(*id)) {
            return Ok(());
        }
        task.ask(|at| self.monitor.let_go(at, next.0))?;
        let mut kept = locked(&self.kept);
        kept.blocks.retain(|_, (id, _)| !is_gone(*id));
        kept.transactions.retain(|(id, _)| !is_gone(*id));
        Ok(())
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        let kept = locked(&self.kept);
        vec![("blocks kept by the monitor", kept.blocks.len() as u64), ("most blocks kept", kept.most as u64)]
    }
}
