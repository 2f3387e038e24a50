//! The superblock of a mounted volume, and the list of orphans that begins there: files that have no name and are in use, or
//! that are being cut off.

use crate::fs::ext::changes::Changes;
use crate::fs::ext::format::superblock::Superblock;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The superblock of a mounted volume, and the list that begins there.
pub struct Head {
    pub superblock: Superblock,
    pub orphans: Orphans,
    /// The UUID by which it names the memory with the journal, while the volume is mounted with it.
    pub memory_name: Option<[u8; 16]>,
}

impl Head {
    /// The head of a volume with this superblock, before its list of orphans is read.
    pub fn new(superblock: Superblock) -> Head {
        Head { superblock, orphans: Orphans::default(), memory_name: None }
    }

    /// The UUID of the memory in which the journal is, if it is in memory.
    pub fn named_memory(&self, changes: &Changes) -> Option<[u8; 16]> {
        let has_moved = changes.journal.as_ref().is_some_and(|journal| journal.has_moved());
        self.memory_name.filter(|_| !has_moved)
    }
}

/// The list in memory.
#[derive(Default)]
pub struct Orphans {
    /// The newest is the last.
    by_age: BTreeMap<u64, u32>,
    ages: FxHashMap<u32, u64>,
}

impl Orphans {
    /// Adds the newest.
    pub fn push(&mut self, number: u32) {
        let age = self.by_age.last_key_value().map_or(0, |(last, _)| last + 1);
        self.by_age.insert(age, number);
        self.ages.insert(number, age);
    }

    pub fn has(&self, number: u32) -> bool {
        self.ages.contains_key(&number)
    }

    /// All of them, the newest first.
    pub fn all(&self) -> Vec<u32> {
        self.by_age.values().rev().copied().collect()
    }

    pub(super) fn newest(&self) -> u32 {
        self.by_age.last_key_value().map_or(0, |(_, number)| *number)
    }

    /// The orphan that follows one in the list, the next older; 0 at the end.
    pub fn next(&self, number: u32) -> u32 {
        let older = self.ages.get(&number).and_then(|age| self.by_age.range(..age).next_back());
        older.map_or(0, |(_, number)| *number)
    }

    /// Takes one out, and answers the next newer one; `None` if it was not there.
    pub(super) fn remove(&mut self, number: u32) -> Option<Option<u32>> {
        let age = self.ages.remove(&number)?;
        self.by_age.remove(&age);
        Some(self.by_age.range(age..).next().map(|(_, newer)| *newer))
    }
}

impl FromIterator<u32> for Orphans {
    /// From the oldest to the newest.
    fn from_iter<T: IntoIterator<Item = u32>>(numbers: T) -> Orphans {
        let mut orphans = Orphans::default();
        numbers.into_iter().for_each(|number| orphans.push(number));
        orphans
    }
}
