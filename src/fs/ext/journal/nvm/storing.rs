//! A handle ends: its changed blocks are copied into slots, at once or when its transaction is closed.
//!
//! With `scheme=paper`, as the paper has it:
//!
//! 1. Behind the gate of the running transaction: a snapshot of each changed block, and a slot for it in its partition.
//! 2. The handle leaves the gate: the transaction can be closed while the copies are made.
//! 3. Each snapshot is copied into its slot; one fence; then the flags.
//!
//! Otherwise changes are [joined](super::joining): a block is copied once for each transaction that has changed it.
//!
//! A snapshot costs no copy: the bytes of a block are shared, and copied if it is changed meanwhile. It carries the version
//! of the block, so that the newest of several images is known in any slots (J5).

use super::atomic::locked;
use super::layout::{Header, MOST_RANGES, ranges_to_bytes};
use super::ring::{Entry, Kept};
use super::{FOR_REVOKES, NvmJournal, Revoked, Scheme};
use crate::crc;
use crate::fs::ext::blocks::Bytes;
use crate::fs::ext::journal::handle::Done;
use crate::fs::ext::journal::{Handle, TransactionId};
use crate::label::Content;
use crate::task::{Step, Task};
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

/// A slot that is taken, and its content.
pub(super) struct Taken {
    pub(super) partition: u32,
    pub(super) index: u64,
    entry: Entry,
    bytes: Bytes,
}

/// Slots are taken and not complete. If a panic leaves them so, no commit can cover them (J12): nothing is committed any more.
struct Unfinished<'j>(&'j NvmJournal);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        self.0.common.abort("a thread has panicked while it stored changes in non-volatile memory");
    }
}

/// Slots that were reserved for a handle.
fn reserved(handle: &Handle<'_>) -> usize {
    handle.promised() + FOR_REVOKES
}

impl NvmJournal {
    /// Stores the changes of a handle, and lets it go.
    pub(super) fn store_handle(&self, handle: &mut Handle<'_>) {
        let reserved = reserved(handle);
        let done = std::mem::take(handle.done.get_mut());
        let task = handle.task;
        if !done.freed.is_empty() {
            locked(&self.freed).extend(done.freed.iter().map(|range| (handle.id, range.clone())));
        }
        let used = match self.scheme {
            Scheme::Helping => {
                let used = self.join(task, handle.id, done);
                self.leave(handle);
                used
            }
            Scheme::Paper => {
                // Nobody unwinds here, and so a handle may end at a gate.
                let lock = self.slots_lock.as_ref().map(|lock| lock.enter(task));
                let taken = self.take_slots(task, handle.id, done);
                self.leave(handle);
                self.store_slots(task, handle.id, &taken);
                drop(lock);
                taken.len()
            }
        };
        assert!(used <= reserved, "{used} slots are needed, and {reserved} were reserved");
        self.credits.give_back(reserved, used);
        handle.task.spend(Step::LineShared, 2);
    }

    /// Lets a handle go in the middle of its changes, of which no commit may store a part.
    pub(super) fn abandon_handle(&self, handle: &mut Handle<'_>) {
        self.common.abort("a thread has panicked in the middle of a change");
        self.leave(handle);
        self.credits.give_back(reserved(handle), 0);
    }

    /// Takes a slot for each changed block, and for the freed ones.
    fn take_slots(&self, task: &Task<'_>, id: TransactionId, done: Done) -> Vec<Taken> {
        let Done { mut changed, revoked, .. } = done;
        changed.sort_unstable_by_key(|(block, _)| *block);
        changed.dedup_by_key(|(block, _)| *block);
        let images = changed.into_iter().filter_map(|(block, content)| self.image(block, content));
        let mut taken: Vec<Taken> = images.collect();
        taken.extend(self.revokes(id, &revoked));
        taken.sort_by_key(|taken| taken.partition);
        for slots in taken.chunk_by_mut(|one, other| one.partition == other.partition) {
            self.take_of_partition(slots);
            task.spend(Step::LineShared, 1);
        }
        taken
    }

    /// Takes slots that are all of one partition.
    pub(super) fn take_of_partition(&self, slots: &mut [Taken]) {
        let Some(first) = slots.first() else { return };
        let indexes = self.rings[first.partition as usize].take(slots.len() as u64);
        slots.iter_mut().zip(indexes).for_each(|(slot, index)| slot.index = index);
    }

    /// A changed block as it is now, for a slot that is not taken yet. `None` if it has gone: it was freed since.
    pub(super) fn image(&self, block: u64, content: Content) -> Option<Taken> {
        let (bytes, version) = self.common.blocks.snapshot(block)?;
        let partition = self.shape().partition_of(block);
        let what = Kept::Image(if content == Content::Metadata { content } else { Content::Data });
        Some(Taken { partition, index: 0, entry: Entry { block, version, what }, bytes })
    }

    /// Freed blocks of a transaction, for slots that are not taken yet.
    pub(super) fn revokes(&self, id: TransactionId, revoked: &[Range<u64>]) -> Vec<Taken> {
        let taken = |ranges: &[Range<u64>]| {
            let version = self.common.blocks.next_version();
            self.counts.revokes.fetch_add(ranges.iter().map(|range| range.end - range.start).sum(), Relaxed);
            self.checkpoints.revoke(Revoked { transaction: id, version, ranges: ranges.to_vec() });
            // Any partition will do: all of them recycle the slots of the same transactions at once.
            let partition = self.shape().partition_of(ranges[0].start);
            let bytes =
                if self.common.media.holds_stamps() { Bytes::default() } else { ranges_to_bytes(ranges).into() };
            let entry = Entry { block: ranges.len() as u64, version, what: Kept::Revoke };
            Taken { partition, index: 0, entry, bytes }
        };
        revoked.chunks(MOST_RANGES).map(taken).collect()
    }

    /// Copies into the slots, makes that durable, and says so.
    pub(super) fn store_slots(&self, task: &Task<'_>, id: TransactionId, taken: &[Taken]) {
        if taken.is_empty() {
            return;
        }
        let (shape, begun) = (self.shape(), task.now());
        let unfinished = Unfinished(self);
        for Taken { partition, index, entry, bytes } in taken {
            let stamp;
            let data: &[u8] = match entry.what {
                // A block of metadata is a stamp where stamps stand for blocks.
                Kept::Image(Content::Metadata) if self.common.media.holds_stamps() => {
                    stamp = crc::crc32c(bytes).to_le_bytes();
                    &stamp
                }
                _ => bytes,
            };
            let header = Header {
                index: *index,
                block: entry.block,
                version: entry.version,
                transaction: id.0,
                what: entry.what,
                generation: self.superblock.generation,
                length: data.len() as u32,
            };
            let slot = self.rings[*partition as usize].place(*index);
            header.store(&*self.nvm, shape.header(*partition, slot), shape.data(*partition, slot), data);
            if let Kept::Image(_) = entry.what {
                // A stamp stands for the rest.
                self.nvm.stand_for((shape.block_bytes as usize).saturating_sub(data.len()));
            }
        }
        self.nvm.fence();
        for Taken { partition, index, entry, .. } in taken {
            self.rings[*partition as usize].complete(*index, *entry);
        }
        std::mem::forget(unfinished);
        let images = taken.iter().filter(|taken| taken.entry.what != Kept::Revoke).count() as u64;
        self.counts.logged_blocks.fetch_add(images, Relaxed);
        task.spend(Step::BlockStored, images);
        // Nothing is waited for here: a handle may have gone, and the time goes on where the task is asked next.
        let mut stored = taken.iter().flat_map(|Taken { partition, index, entry, .. }| {
            let bytes = match entry.what {
                Kept::Image(_) => u64::from(shape.block_bytes),
                Kept::Revoke => 16 * entry.block,
            };
            shape.bytes_of_slot(*partition, self.rings[*partition as usize].place(*index), bytes)
        });
        task.pass_until(self.nvm.stored_by(begun, &mut stored));
    }
}
