//! A log that writes nothing: a monitor keeps the memory of committed blocks (Huang and Chang, "VM aware journaling").
//!
//! A commit tells the monitor which blocks have changed and where they lie in memory, and copies no data. The monitor keeps
//! that memory when the process dies, and writes it home then. A change of a committed block copies it first; at the next
//! commit the new memory takes the place of the old.
//!
//! The log keeps its own share of each block's memory until the monitor has answered that it keeps it no longer: until
//! then nobody may change it.
//!
//! If the monitor goes away while the volume is mounted, the log moves into the volume: all that is kept becomes one
//! transaction there, and the superblock names the log in the volume from then on. Blocks that do not fit into one are written
//! home: a crash meanwhile leaves a part of it there, as one of guest and monitor together does.

use super::common::locked;
use super::room::Room;
use super::{Jbd2, Log, Logged, Transaction, TransactionId};
use crate::device::{Frame, Monitor};
use crate::fs::ext::format::superblock::{LENGTH, PLACE, Superblock};
use crate::fs::ext::media::{Media, Run};
use crate::fs::volume::VolumeError;
use crate::label::{Cause, Content, Label};
use crate::task::Task;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Blocks that are written home at the same time.
const RUNS_AT_ONCE: usize = 32;

/// The memory that the monitor keeps.
#[derive(Default)]
struct Kept {
    /// Of each block, the last transaction that has changed it.
    blocks: FxHashMap<u64, KeptBlock>,
    /// The number of blocks whose last change is in each transaction, the oldest first.
    transactions: VecDeque<(TransactionId, u32)>,
    /// The most blocks that were kept at once.
    most: usize,
}

struct KeptBlock {
    id: TransactionId,
    bytes: Frame,
    content: Content,
}

impl Kept {
    fn forget(&mut self, block: u64) {
        if let Some(old) = self.blocks.remove(&block) {
            self.count_off(old.id);
        }
    }

    fn put(&mut self, block: u64, kept: KeptBlock) {
        if let Some(old) = self.blocks.insert(block, kept) {
            self.count_off(old.id);
        }
    }

    /// A transaction has one block less.
    fn count_off(&mut self, id: TransactionId) {
        let place = self.transactions.partition_point(|(of, _)| id.is_after(*of));
        let (of, blocks) = &mut self.transactions[place];
        assert_eq!(*of, id, "it has blocks that are kept");
        *blocks -= 1;
    }
}

/// A log in memory that a monitor keeps.
pub struct VmAwareLog {
    monitor: Arc<dyn Monitor>,
    /// The volume's device.
    media: Arc<Media>,
    room: Room,
    kept: Mutex<Kept>,
    /// The log in the volume, which is empty.
    inline: Jbd2,
    has_moved: AtomicBool,
    /// The block in which the superblock is.
    superblock: u64,
}

impl VmAwareLog {
    /// The log of the volume on `media`. The monitor has begun, and keeps nothing; `inline` is empty. `most` blocks are kept; by
    /// default, the kept blocks and a transaction always fit into `inline`.
    pub fn new(
        media: &Arc<Media>,
        monitor: Arc<dyn Monitor>,
        inline: Jbd2,
        superblock: u64,
        most: Option<u32>,
    ) -> VmAwareLog {
        let capacity = most.unwrap_or(inline.room_for_two()).min(monitor.most_blocks());
        let room = Room { capacity, block_bytes: media.block_bytes() };
        let (media, kept, has_moved) = (Arc::clone(media), Mutex::default(), AtomicBool::new(false));
        VmAwareLog { monitor, media, room, kept, inline, has_moved, superblock }
    }

    /// Has the monitor keep a transaction.
    fn keep(&self, task: &Task<'_>, transaction: &Transaction) -> Result<(), VolumeError> {
        // Bytes of files that were written before this transaction named their blocks.
        if self.media.is_data_unflushed() {
            self.media.flush(task)?;
        }
        let blocks: Vec<(u64, Frame)> =
            transaction.blocks.iter().map(|logged| (logged.block, logged.bytes.clone())).collect();
        task.ask(|at| self.monitor.commit(at, transaction.id.0, &blocks, &transaction.revokes))?;
        Ok(())
    }

    /// The log holds its share of the blocks of a transaction.
    fn take_in(&self, transaction: &Transaction) {
        let id = transaction.id;
        let mut kept = locked(&self.kept);
        transaction.revokes.iter().for_each(|block| kept.forget(*block));
        if !transaction.blocks.is_empty() {
            kept.transactions.push_back((id, transaction.blocks.len() as u32));
        }
        for Logged { block, bytes, content } in &transaction.blocks {
            kept.put(*block, KeptBlock { id, bytes: bytes.clone(), content: *content });
        }
        kept.transactions.retain(|(_, blocks)| *blocks > 0);
        kept.most = kept.most.max(kept.blocks.len());
    }

    /// Moves into the volume: the kept blocks are the first transaction there, `transaction` the second, which has the newest
    /// superblock in any case. The monitor is gone.
    fn move_inline(&self, task: &Task<'_>, transaction: &mut Transaction, at_ns: i64) -> Result<(), VolumeError> {
        let mut blocks: Vec<Logged> = {
            let kept = locked(&self.kept);
            let logged = |(block, kept): (&u64, &KeptBlock)| Logged {
                block: *block,
                bytes: kept.bytes.clone(),
                content: kept.content,
            };
            kept.blocks.iter().map(logged).collect()
        };
        blocks.sort_unstable_by_key(|logged| logged.block);
        let of_kept = blocks.iter().find(|logged| logged.block == self.superblock).cloned();
        if !transaction.blocks.iter().any(|logged| logged.block == self.superblock) {
            let logged = match of_kept {
                Some(logged) => logged,
                None => {
                    let mut bytes = vec![0; self.media.block_bytes()];
                    self.media.read(task, self.superblock, &mut bytes)?;
                    Logged { block: self.superblock, bytes: bytes.into(), content: Content::Metadata }
                }
            };
            transaction.blocks.push(logged);
        }
        self.name_own_log(transaction);
        self.inline.take_place()?;
        if blocks.len() as u32 <= self.inline.room_for_two() {
            let before = TransactionId(transaction.id.0.wrapping_sub(1));
            let mut first = Transaction { id: before, blocks, revokes: Vec::new() };
            self.name_own_log(&mut first);
            self.inline.store(task, &mut first, at_ns)?;
        } else {
            self.write_home(task, &blocks)?;
        }
        self.inline.store(task, transaction, at_ns)?;
        // Until this is durable, the volume names memory that nobody keeps.
        let superblock = transaction.blocks.iter().find(|logged| logged.block == self.superblock);
        let superblock = superblock.expect("the transaction has the superblock");
        let label = Label::first(Cause::Checkpoint, Content::Metadata);
        self.media.write_metadata(task, self.superblock, &superblock.bytes, label)?;
        self.media.flush(task)?;
        self.has_moved.store(true, Ordering::SeqCst);
        *locked(&self.kept) = Kept::default();
        Ok(())
    }

    /// Writes blocks home, in their order, and makes them durable.
    fn write_home(&self, task: &Task<'_>, blocks: &[Logged]) -> Result<(), VolumeError> {
        let run = |logged: &Logged| Run {
            first: logged.block,
            bytes: logged.bytes.to_vec(),
            label: Label::first(Cause::Checkpoint, logged.content),
        };
        for part in blocks.chunks(RUNS_AT_ONCE) {
            self.media.write_runs(task, part.iter().map(run).collect())?;
        }
        Ok(self.media.flush(task)?)
    }

    /// The superblock in a transaction, if there is one, names the log in the volume.
    fn name_own_log(&self, transaction: &mut Transaction) {
        for logged in transaction.blocks.iter_mut().filter(|logged| logged.block == self.superblock) {
            let mut bytes = logged.bytes.to_vec();
            let at = PLACE as usize % self.media.block_bytes();
            let mut superblock = Superblock::new(&bytes[at..at + LENGTH]);
            superblock.name_memory(None);
            superblock.sum();
            bytes[at..at + LENGTH].copy_from_slice(superblock.bytes());
            logged.bytes = bytes.into();
        }
    }
}

impl Log for VmAwareLog {
    fn most_blocks(&self) -> usize {
        // A transaction must fit into the log in the volume, too.
        self.room.most_blocks().min(self.inline.most_blocks())
    }

    fn has_room(&self, transaction: &Transaction) -> bool {
        if self.has_moved() {
            return self.inline.has_room(transaction);
        }
        // As if none took the place of an older one.
        self.room.holds(locked(&self.kept).blocks.len() as u32, transaction.blocks.len() as u32)
    }

    fn due(&self, waiting: Option<&Transaction>) -> Option<TransactionId> {
        if self.has_moved() {
            return self.inline.due(waiting);
        }
        let waiting = waiting.map(|transaction| transaction.blocks.len() as u32);
        let kept = locked(&self.kept);
        self.room.due(kept.blocks.len() as u32, waiting, kept.transactions.iter().copied())
    }

    fn store(&self, task: &Task<'_>, transaction: &mut Transaction, at_ns: i64) -> Result<(), VolumeError> {
        if self.has_moved() {
            self.name_own_log(transaction);
            return self.inline.store(task, transaction, at_ns);
        }
        match self.keep(task, transaction) {
            Err(_) if self.monitor.is_gone() => self.move_inline(task, transaction, at_ns),
            kept => kept.map(|()| self.take_in(transaction)),
        }
    }

    fn wants_to_move(&self) -> bool {
        self.monitor.is_gone() && !self.has_moved()
    }

    fn has_moved(&self) -> bool {
        self.has_moved.load(Ordering::SeqCst)
    }

    fn let_go(&self, task: &Task<'_>, next: TransactionId, is_closed: bool) -> Result<(), VolumeError> {
        if self.has_moved() {
            return self.inline.let_go(task, next, is_closed);
        }
        let is_gone = |id: TransactionId| next.is_after(id);
        if !is_closed && !locked(&self.kept).transactions.front().is_some_and(|(id, _)| is_gone(*id)) {
            return Ok(());
        }
        match task.ask(|at| self.monitor.let_go(at, next.0)) {
            // No block is kept: those that are home need not move into the volume.
            Err(_) if self.monitor.is_gone() => {}
            answered => answered?,
        }
        let mut kept = locked(&self.kept);
        kept.blocks.retain(|_, block| !is_gone(block.id));
        kept.transactions.retain(|(id, _)| !is_gone(*id));
        Ok(())
    }

    fn closed(&self) -> Result<(), VolumeError> {
        match self.monitor.end() {
            Err(_) if self.has_moved() || self.monitor.is_gone() => Ok(()),
            ended => Ok(ended?),
        }
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        let kept = locked(&self.kept);
        vec![
            ("blocks kept by the monitor", kept.blocks.len() as u64),
            ("most blocks kept", kept.most as u64),
            ("moves of the journal into the volume", u64::from(self.has_moved())),
        ]
    }
}
