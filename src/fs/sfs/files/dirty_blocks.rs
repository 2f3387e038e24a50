//! Dirty data blocks: the dirty part of what a kernel calls its page cache.
//!
//! A dirty block has a slot, which its entry in the DAT holds instead of an address. The changed slots of an inode are
//! linked, so that an fsync finds them without those that are only being cleaned, or whose bytes are in log records.

use crate::fs::sfs::media::format::{BLOCK, NO_GROUP};
use crate::fs::sfs::placement::Hint;
use std::collections::BTreeMap;
use std::ops::Range;

/// No slot.
const NONE: u32 = u32::MAX;

/// What a sync has to do with a dirty block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It differs from the version that is stored, or in the log.
    Changed,
    /// It equals the version in the log: the stored one, with the bytes of log records.
    Logged,
    /// It is being cleaned, and equals the stored version.
    Cleaned,
}

/// A dirty block.
#[derive(Clone, Copy, Debug)]
pub(in crate::fs::sfs) struct Slot {
    /// The virtual block.
    pub number: u64,
    pub inode: u64,
    /// The block's index in the file.
    pub place: u64,
    /// The address of the stored version; 0 if none.
    pub before: u64,
    /// The checksum of the stored version.
    pub crc_before: u32,
    /// For a cleaned block, the group of its segment.
    pub cleaned_from: u8,
    state: State,
    /// All bytes that differ from the version that is stored, or in the log, are in this part.
    changed: (u16, u16),
    /// The group that it was last assigned to.
    pub group: u8,
    /// The lifetime that the writer stated; none for a cleaned block.
    pub hint: Hint,
    /// The order in which blocks became dirty.
    pub since: u64,
    previous: u32,
    next: u32,
}

impl Slot {
    /// True if the block is only being cleaned, and equals the stored version.
    pub fn is_cleaned(&self) -> bool {
        self.state == State::Cleaned
    }

    /// The part of the block that a sync must make durable.
    pub fn changed(&self) -> Range<usize> {
        self.changed.0.into()..self.changed.1.into()
    }

    /// Adds bytes to the changed part.
    fn extend(&mut self, bytes: Range<usize>) {
        let all = match self.changed() {
            none if none.is_empty() => bytes,
            known => known.start.min(bytes.start)..known.end.max(bytes.end),
        };
        debug_assert!(all.end <= BLOCK, "bytes {all:?} are in one block");
        self.changed = (all.start as u16, all.end as u16);
    }
}

/// All dirty blocks.
pub(in crate::fs::sfs) struct DirtyBlocks {
    width: usize,
    slots: Vec<Slot>,
    bytes: Vec<u8>,
    free: Vec<u32>,
    /// The first changed slot of each inode.
    first: BTreeMap<u64, u32>,
    count: usize,
    since: u64,
}

impl DirtyBlocks {
    /// For blocks of `width` bytes.
    pub fn new(width: usize) -> DirtyBlocks {
        DirtyBlocks {
            width,
            slots: Vec::new(),
            bytes: Vec::new(),
            free: Vec::new(),
            first: BTreeMap::new(),
            count: 0,
            since: 0,
        }
    }

    /// Number of dirty blocks.
    pub fn len(&self) -> usize {
        self.count
    }

    pub fn slot(&self, slot: u32) -> &Slot {
        &self.slots[slot as usize]
    }

    /// True if the slot is in use.
    pub fn is_used(&self, slot: u32) -> bool {
        self.slots.get(slot as usize).is_some_and(|slot| slot.number != 0)
    }

    pub fn slot_mut(&mut self, slot: u32) -> &mut Slot {
        &mut self.slots[slot as usize]
    }

    pub fn bytes(&self, slot: u32) -> &[u8] {
        &self.bytes[slot as usize * self.width..][..self.width]
    }

    /// Sets the bytes of a block to those of a version that is stored, or in the log.
    pub fn load(&mut self, slot: u32, version: &[u8]) {
        debug_assert!(self.is_used(slot), "slot {slot} is in use");
        self.bytes[slot as usize * self.width..][..self.width].copy_from_slice(version);
    }

    /// Overwrites bytes of a changed block, from byte `from`. Bytes that stay as they are do not count as changed.
    pub fn overwrite(&mut self, slot: u32, from: usize, bytes: &[u8]) {
        let it = &mut self.slots[slot as usize];
        debug_assert_eq!(it.state, State::Changed, "slot {slot} was marked as changed");
        let old = &mut self.bytes[slot as usize * self.width..][..self.width][from..from + bytes.len()];
        let known = it.changed();
        if !(known.start <= from && from + bytes.len() <= known.end) {
            let differs = |(old, new): (&u8, &u8)| old != new;
            let Some(first) = old.iter().zip(bytes).position(differs) else { return };
            let last = old.iter().zip(bytes).rposition(differs).expect("a byte differs");
            it.extend(from + first..from + last + 1);
        }
        old.copy_from_slice(bytes);
    }

    /// Adds a changed block. Its bytes are arbitrary, until all are overwritten, or those of a version are
    /// [loaded](DirtyBlocks::load).
    pub fn add(&mut self, number: u64, inode: u64, place: u64, has_version: bool) -> u32 {
        let slot = self.add_cleaned(number, inode, place, NO_GROUP);
        self.change(slot, has_version);
        slot
    }

    /// Adds a block that is being cleaned from a segment of group `from`. Its bytes are arbitrary.
    pub fn add_cleaned(&mut self, number: u64, inode: u64, place: u64, from: u8) -> u32 {
        debug_assert_ne!(number, 0, "virtual block 0 marks a free slot");
        self.since += 1;
        let slot = Slot {
            number,
            inode,
            place,
            before: 0,
            crc_before: 0,
            cleaned_from: from,
            state: State::Cleaned,
            changed: (0, 0),
            group: NO_GROUP,
            hint: Hint::None,
            since: self.since,
            previous: NONE,
            next: NONE,
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.slots[at as usize] = slot;
                at
            }
            None => {
                self.slots.push(slot);
                self.bytes.resize(self.slots.len() * self.width, 0);
                self.slots.len() as u32 - 1
            }
        };
        self.count += 1;
        at
    }

    /// Marks a block as changed, so that it is no longer the cleaned or logged version. Unless the stored version of a
    /// cleaned block `is_known`, all of the block counts as changed: it may be damaged.
    pub fn change(&mut self, slot: u32, is_known: bool) {
        let Slot { inode, state, .. } = self.slots[slot as usize];
        if state == State::Changed {
            return;
        }
        let next = self.first.insert(inode, slot).unwrap_or(NONE);
        if next != NONE {
            self.slots[next as usize].previous = slot;
        }
        let it = &mut self.slots[slot as usize];
        (it.state, it.previous, it.next) = (State::Changed, NONE, next);
        if state == State::Cleaned && !is_known {
            it.extend(0..BLOCK);
        }
    }

    /// Notes that log records hold the changes of a block.
    pub fn set_logged(&mut self, slot: u32) {
        self.unlink(slot);
        let it = &mut self.slots[slot as usize];
        (it.state, it.changed) = (State::Logged, (0, 0));
    }

    /// Removes a block that was written or freed.
    pub fn remove(&mut self, slot: u32) {
        assert!(self.is_used(slot), "slot {slot} is in use");
        self.unlink(slot);
        // Virtual block 0 marks a free slot.
        self.slots[slot as usize].number = 0;
        self.free.push(slot);
        self.count -= 1;
    }

    /// Removes a block from the changed ones of its inode, if it is among them.
    fn unlink(&mut self, slot: u32) {
        let Slot { inode, previous, next, state, .. } = self.slots[slot as usize];
        if state != State::Changed {
            return;
        }
        if next != NONE {
            self.slots[next as usize].previous = previous;
        }
        match (previous, next) {
            (NONE, NONE) => {
                self.first.remove(&inode);
            }
            (NONE, next) => {
                self.first.insert(inode, next);
            }
            (previous, next) => self.slots[previous as usize].next = next,
        }
    }

    /// True if the inode has changed blocks.
    pub fn has_changed(&self, inode: u64) -> bool {
        self.first.contains_key(&inode)
    }

    /// The changed slots of an inode.
    pub fn changed_of(&self, inode: u64) -> Vec<u32> {
        let mut slots = Vec::new();
        let mut at = self.first.get(&inode).copied().unwrap_or(NONE);
        while at != NONE {
            slots.push(at);
            at = self.slots[at as usize].next;
        }
        slots
    }

    /// All slots in use.
    pub fn all(&self) -> impl Iterator<Item = u32> + '_ {
        self.slots.iter().enumerate().filter(|(_, slot)| slot.number != 0).map(|(at, _)| at as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stored block of zeros that is overwritten partly.
    fn block() -> (DirtyBlocks, u32) {
        let mut blocks = DirtyBlocks::new(BLOCK);
        let slot = blocks.add(7, 2, 0, true);
        blocks.load(slot, &[0; BLOCK]);
        (blocks, slot)
    }

    #[test]
    fn the_changed_part_has_all_bytes_that_differ_from_the_stored_version() {
        let (mut blocks, slot) = block();
        assert_eq!(blocks.slot(slot).changed(), 0..0);
        blocks.overwrite(slot, 100, &[0, 0, 1, 0, 2, 0]);
        assert_eq!(blocks.slot(slot).changed(), 102..105);
        blocks.overwrite(slot, 50, &[0; 10]);
        assert_eq!(blocks.slot(slot).changed(), 102..105, "zeros over zeros change nothing");
        blocks.overwrite(slot, 103, &[0; 1]);
        blocks.overwrite(slot, 4090, &[9; 6]);
        assert_eq!(blocks.slot(slot).changed(), 102..BLOCK);
        assert_eq!((blocks.bytes(slot)[102], blocks.bytes(slot)[4095]), (1, 9));
    }

    #[test]
    fn a_block_without_a_known_version_has_changed_as_a_whole() {
        let mut blocks = DirtyBlocks::new(BLOCK);
        let slot = blocks.add(7, 2, 0, false);
        assert_eq!(blocks.slot(slot).changed(), 0..BLOCK);
        let cleaned = blocks.add_cleaned(8, 2, 1, 0);
        blocks.change(cleaned, false);
        assert_eq!(blocks.slot(cleaned).changed(), 0..BLOCK, "the cleaned version may be damaged");
        let read = blocks.add_cleaned(9, 2, 2, 0);
        blocks.change(read, true);
        assert_eq!(blocks.slot(read).changed(), 0..0);
    }

    #[test]
    fn a_logged_block_waits_for_no_sync_until_it_changes_again() {
        let (mut blocks, slot) = block();
        let other = blocks.add(8, 2, 1, false);
        blocks.overwrite(slot, 0, &[1; 10]);
        blocks.set_logged(slot);
        assert_eq!(blocks.changed_of(2), [other]);
        assert!(!blocks.slot(slot).is_cleaned() && blocks.slot(slot).changed().is_empty());
        blocks.change(slot, false);
        blocks.overwrite(slot, 4, &[1; 10]);
        assert_eq!((blocks.changed_of(2), blocks.slot(slot).changed()), (vec![slot, other], 10..14));
        blocks.set_logged(other);
        blocks.set_logged(slot);
        assert!(!blocks.has_changed(2));
        blocks.remove(slot);
        blocks.remove(other);
        assert_eq!(blocks.len(), 0);
    }
}
