//! A log in jbd2's format, in blocks of a device.
//!
//! ```text
//! | superblock | descriptor | copies ... | descriptor | copies ... | commit | revokes | descriptor | ... |
//!               ^ tail: the oldest transaction that may not be home                                ^ head
//! ```
//!
//! The records of a transaction lie one behind the other and go round at the end. Before the commit record there is a flush,
//! and behind it another: the first makes durable all that the transaction relies on, copies and the bytes of files; the
//! second the commit. If the log has a device of its own, the first is a flush of both devices, and the second of the
//! log's.
//!
//! In another [`Order`] barriers stand in the places of the flushes, or nothing does: then each commit says up to which
//! transaction the log was durable when it was written, and a log that is not empty has a feature that only this program
//! knows, since other replays would not stop before a transaction that is not whole.
//!
//! Fast commits lie in the last blocks of the log, from the beginning of their area on, and are replayed behind the records.
//! A flush before each makes durable all that it relies on, and one behind it the fast commit.

use super::room::Room;
use super::{FREED_FOR_ONE, FastArea, Log, LogPlace, Order, Transaction, TransactionId};
use crate::fs::ext::format::log::{Dialect, LogSuperblock, Tag, feature};
use crate::fs::ext::media::{Media, flush_all};
use crate::fs::volume::VolumeError;
use crate::label::{Cause, Content, Label};
use crate::task::{Step, Task};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

const LABEL: Label = Label::first(Cause::JournalCommit, Content::Journal);

/// A transaction in the log.
struct Stored {
    id: TransactionId,
    /// Its first block.
    start: u32,
    blocks: u32,
}

struct State {
    /// The oldest first.
    stored: VecDeque<Stored>,
    superblock: LogSuperblock,
    /// The next block of the log that is written.
    head: u32,
    /// Blocks from the tail to the head.
    used: u32,
    /// The superblock on the medium says where the log begins.
    is_open: bool,
    /// The last transaction that is durable; `None` before the first one is stored.
    durable: Option<TransactionId>,
}

/// A log in jbd2's format.
pub struct Jbd2 {
    place: LogPlace,
    /// The volume's device, unless the log lies on it.
    volume: Option<Arc<Media>>,
    dialect: Dialect,
    order: Order,
    /// Blocks of records: from the first one to the end.
    first: u32,
    end: u32,
    /// Blocks of records that are used at the same time, at the most.
    most_used: u32,
    /// Blocks for fast commits. The kernel and e2fsck read one behind those that are full: the last one is left alone.
    fast: Range<u32>,
    state: Mutex<State>,
}

impl Jbd2 {
    /// The empty log of the volume on `media` that lies in this place. It is used as if it had `most_used` blocks of
    /// records at the most.
    pub fn new(media: &Arc<Media>, place: LogPlace, superblock: LogSuperblock, most_used: u32) -> Jbd2 {
        let (dialect, head, end) = (Dialect::of(&superblock), superblock.first(), superblock.records_end());
        let fast = superblock.fast_area();
        let fast = fast.start..fast.end.saturating_sub(1).max(fast.start);
        let state =
            Mutex::new(State { stored: VecDeque::new(), superblock, head, used: 0, is_open: false, durable: None });
        let volume = Some(Arc::clone(media)).filter(|media| !Arc::ptr_eq(media, &place.media));
        Jbd2 { place, volume, dialect, order: Order::Flushes, first: head, end, most_used, fast, state }
    }

    /// The same with another order of transactions.
    pub fn in_order(self, order: Order) -> Jbd2 {
        Jbd2 { order, ..self }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        // Its fields change together, and nothing between can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The blocks of two transactions together for which an empty log has room in any case, however much the second has freed.
    pub(super) fn room_for_two(&self) -> u32 {
        let all = self.room().capacity;
        let block = self.block_bytes();
        let descriptors = all.div_ceil(self.dialect.tags_of_block(block) as u32) + 2;
        let most_freed = self.most_blocks() * FREED_FOR_ONE;
        let revokes = most_freed.div_ceil(self.dialect.revokes_of_block(block)) as u32;
        all.saturating_sub(descriptors + revokes + 2)
    }

    /// Has it begin, on the medium, at its head with transaction `id`, which is stored next: the transactions before are home, and are
    /// written over.
    pub fn begin_anew(&self, task: &Task<'_>, id: TransactionId) -> Result<(), VolumeError> {
        let head = self.state().head;
        self.write_superblock(task, head, id)?;
        self.place.media.flush(task)?;
        self.state().is_open = true;
        Ok(())
    }

    /// The log has the volume's blocks to itself from now on, and the devices below may know.
    pub(super) fn take_place(&self) -> Result<(), VolumeError> {
        Ok(self.place.media.set_journal(&self.place.runs)?)
    }

    fn room(&self) -> Room {
        Room { capacity: self.most_used.min(self.end - self.first), block_bytes: self.block_bytes() }
    }

    /// Blocks that a transaction takes in the log.
    fn blocks_of(&self, transaction: &Transaction) -> u32 {
        let block = self.block_bytes();
        let descriptors = transaction.blocks.len().div_ceil(self.dialect.tags_of_block(block));
        let revokes = transaction.revokes.len().div_ceil(self.dialect.revokes_of_block(block));
        (revokes + descriptors + transaction.blocks.len() + 1) as u32
    }

    fn block_bytes(&self) -> usize {
        self.place.media.block_bytes()
    }

    /// Writes records from block `at` of the log on, round their end, and answers the next block.
    fn write(&self, task: &Task<'_>, at: u32, bytes: &[u8]) -> Result<u32, VolumeError> {
        self.write_within(task, self.first..self.end, at, bytes)
    }

    /// Writes blocks of a part of the log from `at` on, round its end, and answers the next block.
    fn write_within(&self, task: &Task<'_>, part: Range<u32>, at: u32, bytes: &[u8]) -> Result<u32, VolumeError> {
        let block = self.block_bytes();
        let (mut at, mut rest) = (at, bytes);
        while !rest.is_empty() {
            let place = self.place.find(at);
            let (place, follow) = place.expect("all blocks of the log were found to have a place when it was opened");
            let count = (rest.len() / block).min(follow as usize).min((part.end - at) as usize);
            let (now, behind) = rest.split_at(count * block);
            self.place.media.write_metadata(task, place, now, LABEL)?;
            at += count as u32;
            at = if at == part.end { part.start } else { at };
            rest = behind;
        }
        Ok(at)
    }

    /// The records of a transaction but its commit.
    fn records(&self, transaction: &Transaction) -> Vec<u8> {
        let block = self.block_bytes();
        let mut records = Vec::with_capacity(self.blocks_of(transaction) as usize * block);
        let id = transaction.id.0;
        let mut record = vec![0; block];
        for revokes in transaction.revokes.chunks(self.dialect.revokes_of_block(block)) {
            self.dialect.write_revokes(&mut record, id, revokes);
            records.extend_from_slice(&record);
        }
        for logged in transaction.blocks.chunks(self.dialect.tags_of_block(block)) {
            let mut copies: Vec<Vec<u8>> = logged.iter().map(|logged| whole(&logged.bytes, block)).collect();
            let tags: Vec<Tag> = copies
                .iter_mut()
                .zip(logged)
                .map(|(copy, logged)| self.dialect.escape(copy, logged.block, id))
                .collect();
            self.dialect.write_descriptor(&mut record, id, &tags);
            records.extend_from_slice(&record);
            copies.iter().for_each(|copy| records.extend_from_slice(copy));
        }
        records
    }

    fn write_superblock(&self, task: &Task<'_>, start: u32, sequence: TransactionId) -> Result<(), VolumeError> {
        let bytes = {
            let mut state = self.state();
            state.superblock.set_start(start, sequence.0);
            state.superblock.set_feature(feature::OPTIMISTIC, self.order == Order::Checksums && start != 0);
            whole(state.superblock.bytes(), self.block_bytes())
        };
        Ok(self.place.media.write_metadata(task, self.place.superblock, &bytes, LABEL)?)
    }
}

/// Bytes as a block: those of a stamp, or a superblock, are filled up.
fn whole(bytes: &[u8], block_bytes: usize) -> Vec<u8> {
    let mut block = bytes.to_vec();
    block.resize(block_bytes, 0);
    block
}

impl Jbd2 {
    /// True if something that was written may be lost.
    fn is_unflushed(&self) -> bool {
        self.place.media.is_unflushed() || self.volume.iter().any(|volume| volume.is_unflushed())
    }

    /// Flushes the device of the log, and that of the volume if it is another one and has writes that may be lost.
    fn flush_both(&self, task: &Task<'_>) -> Result<(), VolumeError> {
        let volume = self.volume.iter().filter(|volume| volume.is_unflushed());
        Ok(flush_all(task, &volume.chain([&self.place.media]).map(|media| &**media).collect::<Vec<_>>())?)
    }
}

impl Jbd2 {
    /// Earlier writes are durable before later ones, if they are not already durable.
    fn end_epoch(&self, task: &Task<'_>) -> Result<(), VolumeError> {
        match self.order {
            Order::Flushes => Ok(self.place.media.flush(task)?),
            Order::Barriers => Ok(self.place.media.barrier(task)?),
            Order::Checksums => Ok(()),
        }
    }
}

impl FastArea for Jbd2 {
    fn blocks(&self) -> u32 {
        self.fast.end - self.fast.start
    }

    fn block_bytes(&self) -> usize {
        self.place.media.block_bytes()
    }

    fn is_unsettled(&self) -> bool {
        // A barrier takes no time in which others could come.
        self.order.is_durable() && self.is_unflushed()
    }

    fn prepare(&self, task: &Task<'_>) -> Result<(), VolumeError> {
        match self.order {
            _ if !self.is_unflushed() => Ok(()),
            Order::Flushes => self.flush_both(task),
            Order::Barriers | Order::Checksums => self.end_epoch(task),
        }
    }

    fn store(&self, task: &Task<'_>, id: TransactionId, at: u32, bytes: &[u8]) -> Result<(), VolumeError> {
        let count = (bytes.len() / self.block_bytes()) as u32;
        assert!(at + count <= self.blocks(), "blocks {at} and {count} more are in the area of {}", self.blocks());
        let (head, is_open) = {
            let state = self.state();
            (state.head, state.is_open)
        };
        if !is_open {
            // An empty log is not looked at, nor are the blocks behind it.
            self.write_superblock(task, head, id)?;
            self.state().is_open = true;
        }
        task.spend(Step::BlockSummed, count.into());
        self.prepare(task)?;
        self.write_within(task, self.fast.clone(), self.fast.start + at, bytes)?;
        self.end_epoch(task)
    }

    fn clear(&self, task: &Task<'_>) -> Result<(), VolumeError> {
        self.write_within(task, self.fast.clone(), self.fast.start, &vec![0; self.block_bytes()]).map(drop)
    }
}

impl Log for Jbd2 {
    fn fast_area(&self) -> Option<&dyn FastArea> {
        (!self.fast.is_empty()).then_some(self)
    }

    fn most_blocks(&self) -> usize {
        self.room().most_blocks()
    }

    fn has_room(&self, transaction: &Transaction) -> bool {
        self.room().holds(self.state().used, self.blocks_of(transaction))
    }

    fn due(&self, waiting: Option<&Transaction>) -> Option<TransactionId> {
        let waiting = waiting.map(|transaction| self.blocks_of(transaction));
        let state = self.state();
        self.room().due(state.used, waiting, state.stored.iter().map(|stored| (stored.id, stored.blocks)))
    }

    fn store(&self, task: &Task<'_>, transaction: &mut Transaction, at_ns: i64) -> Result<(), VolumeError> {
        let (head, is_open, durable) = {
            let mut state = self.state();
            let before = TransactionId(transaction.id.0.wrapping_sub(1));
            (state.head, state.is_open, *state.durable.get_or_insert(before))
        };
        if !is_open {
            self.write_superblock(task, head, transaction.id)?;
        }
        // The checksum of each copy.
        task.spend(Step::BlockSummed, transaction.blocks.len() as u64);
        let next = self.write(task, head, &self.records(transaction))?;
        match self.order {
            // Bytes of files that were written before this transaction named their blocks may be on the other device.
            Order::Flushes => self.flush_both(task)?,
            Order::Barriers | Order::Checksums => self.end_epoch(task)?,
        }
        let mut commit = vec![0; self.block_bytes()];
        let durable = (self.order == Order::Checksums).then_some(durable.0);
        self.dialect.write_commit(&mut commit, transaction.id.0, at_ns, durable);
        let next = self.write(task, next, &commit)?;
        self.end_epoch(task)?;
        let mut state = self.state();
        let blocks = self.blocks_of(transaction);
        state.stored.push_back(Stored { id: transaction.id, start: head, blocks });
        state.used += blocks;
        (state.head, state.is_open) = (next, true);
        Ok(())
    }

    fn order(&self) -> Order {
        self.order
    }

    fn settle(&self, task: &Task<'_>) -> Result<(), VolumeError> {
        let last = self.state().stored.back().map(|stored| stored.id);
        self.flush_both(task)?;
        let mut state = self.state();
        state.durable = last.or(state.durable);
        Ok(())
    }

    fn let_go(&self, task: &Task<'_>, next: TransactionId, is_closed: bool) -> Result<(), VolumeError> {
        let (gone, start, sequence) = {
            let state = self.state();
            let gone = state.stored.iter().take_while(|stored| next.is_after(stored.id)).count();
            if gone == 0 && !(is_closed && state.is_open) {
                return Ok(());
            }
            match state.stored.get(gone) {
                Some(oldest) => (gone, oldest.start, oldest.id),
                None if is_closed => (gone, 0, next),
                // The next one is stored here, if it is not already on its way.
                None => (gone, state.head, next),
            }
        };
        self.write_superblock(task, start, sequence)?;
        // New bytes of their blocks must not be there before the superblock that says the log begins behind them.
        match self.order {
            Order::Flushes | Order::Checksums => self.place.media.flush(task)?,
            Order::Barriers => self.place.media.barrier(task)?,
        }
        let mut state = self.state();
        state.used -= state.stored.drain(..gone).map(|stored| stored.blocks).sum::<u32>();
        state.is_open = !is_closed;
        Ok(())
    }
}
