//! The blocks of files that wait to be written: the dirty part of what a kernel would call its page cache.
//!
//! A block that waits has a slot; its entry in the DAT names that instead of an address. The slots of an inode are
//! chained, so that an fsync finds its own.

use std::collections::BTreeMap;

/// No slot.
const NONE: u32 = u32::MAX;

/// A block that waits.
#[derive(Clone, Copy, Debug)]
pub(in crate::fs::sfs) struct Slot {
    /// Its virtual block.
    pub number: u64,
    pub inode: u64,
    /// Its place in the file, in blocks.
    pub place: u64,
    /// Where the version before it lies; 0 for nowhere.
    pub before: u64,
    /// The checksum of the version before it.
    pub crc_before: u32,
    /// The group of the segment that it is cleaned out of.
    pub cleaned_from: u8,
    /// Whether it waits only because its segment is cleaned, and is the version that lies at `before`.
    pub is_cleaned: bool,
    /// When it began to wait, counted in slots.
    pub since: u64,
    previous: u32,
    next: u32,
}

/// All blocks that wait.
pub(in crate::fs::sfs) struct Waiting {
    width: usize,
    slots: Vec<Slot>,
    bytes: Vec<u8>,
    free: Vec<u32>,
    /// The first slot of each inode.
    first: BTreeMap<u64, u32>,
    count: usize,
    since: u64,
}

impl Waiting {
    /// For blocks of so many bytes.
    pub fn new(width: usize) -> Waiting {
        Waiting {
            width,
            slots: Vec::new(),
            bytes: Vec::new(),
            free: Vec::new(),
            first: BTreeMap::new(),
            count: 0,
            since: 0,
        }
    }

    /// Blocks that wait.
    pub fn len(&self) -> usize {
        self.count
    }

    pub fn slot(&self, slot: u32) -> &Slot {
        &self.slots[slot as usize]
    }

    /// Whether a block waits in this slot.
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
        debug_assert!(self.is_used(slot), "slot {slot} holds a block");
        &mut self.bytes[slot as usize * self.width..][..self.width]
    }

    /// A block begins to wait. Its bytes are whatever they are.
    pub fn add(&mut self, number: u64, inode: u64, place: u64) -> u32 {
        debug_assert_ne!(number, 0, "what waits has a virtual block: a slot without one is free");
        let next = self.first.get(&inode).copied().unwrap_or(NONE);
        self.since += 1;
        let slot = Slot {
            number,
            inode,
            place,
            before: 0,
            crc_before: 0,
            cleaned_from: crate::fs::sfs::media::format::NO_GROUP,
            is_cleaned: false,
            since: self.since,
            previous: NONE,
            next,
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
        if next != NONE {
            self.slots[next as usize].previous = at;
        }
        self.first.insert(inode, at);
        self.count += 1;
        at
    }

    /// A block no longer waits.
    pub fn remove(&mut self, slot: u32) {
        assert!(self.is_used(slot), "slot {slot} is emptied twice: it would hold two blocks");
        let Slot { inode, previous, next, .. } = self.slots[slot as usize];
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
        // A slot that is free has no virtual block.
        self.slots[slot as usize].number = 0;
        self.free.push(slot);
        self.count -= 1;
    }

    /// Whether anything of an inode waits.
    pub fn has(&self, inode: u64) -> bool {
        self.first.contains_key(&inode)
    }

    /// The slots of an inode.
    pub fn of(&self, inode: u64) -> Vec<u32> {
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
