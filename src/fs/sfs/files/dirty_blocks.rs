//! Dirty data blocks: the dirty part of what a kernel calls its page cache.
//!
//! A dirty block has a slot, which its entry in the DAT holds instead of an address. The changed slots of an inode are
//! linked, so that an fsync finds them without those that are only being cleaned.

use crate::fs::sfs::media::format::NO_GROUP;
use crate::fs::sfs::placement::Hint;
use std::collections::BTreeMap;

/// No slot.
const NONE: u32 = u32::MAX;

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
    /// True if the block is only being cleaned, and equals the stored version.
    pub is_cleaned: bool,
    /// The group that it was last assigned to.
    pub group: u8,
    /// The lifetime that the writer stated; none for a cleaned block.
    pub hint: Hint,
    /// The order in which blocks became dirty.
    pub since: u64,
    previous: u32,
    next: u32,
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

    pub fn bytes_mut(&mut self, slot: u32) -> &mut [u8] {
        debug_assert!(self.is_used(slot), "slot {slot} is in use");
        &mut self.bytes[slot as usize * self.width..][..self.width]
    }

    /// Adds a changed block. Its bytes are arbitrary.
    pub fn add(&mut self, number: u64, inode: u64, place: u64) -> u32 {
        let slot = self.add_cleaned(number, inode, place, NO_GROUP);
        self.change(slot);
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
            is_cleaned: true,
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

    /// Marks a block as changed, so that it is no longer the cleaned version.
    pub fn change(&mut self, slot: u32) {
        let Slot { inode, is_cleaned, .. } = self.slots[slot as usize];
        if !is_cleaned {
            return;
        }
        let next = self.first.insert(inode, slot).unwrap_or(NONE);
        if next != NONE {
            self.slots[next as usize].previous = slot;
        }
        let it = &mut self.slots[slot as usize];
        (it.is_cleaned, it.next) = (false, next);
    }

    /// Removes a block that was written or freed.
    pub fn remove(&mut self, slot: u32) {
        assert!(self.is_used(slot), "slot {slot} is in use");
        let Slot { inode, previous, next, is_cleaned, .. } = self.slots[slot as usize];
        if next != NONE {
            self.slots[next as usize].previous = previous;
        }
        match (previous, next) {
            _ if is_cleaned => {}
            (NONE, NONE) => {
                self.first.remove(&inode);
            }
            (NONE, next) => {
                self.first.insert(inode, next);
            }
            (previous, next) => self.slots[previous as usize].next = next,
        }
        // Virtual block 0 marks a free slot.
        self.slots[slot as usize].number = 0;
        self.free.push(slot);
        self.count -= 1;
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
