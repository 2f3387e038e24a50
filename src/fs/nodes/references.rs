//! Reference counts of inodes: a few bytes each, since the kernel may reference millions of inodes that are not in memory.

use rustc_hash::FxHashMap;

/// Neighbouring inodes whose counts share one allocation.
const COUNTS_PER_CHUNK: usize = 32;

/// Reference counts of inodes, allocated together for neighbours.
#[derive(Default)]
pub(in crate::fs) struct ReferenceCounts {
    counts: FxHashMap<u64, Box<[u64; COUNTS_PER_CHUNK]>>,
}

impl ReferenceCounts {
    /// References to an inode.
    pub fn count(&self, number: u64) -> u64 {
        self.counts
            .get(&(number / COUNTS_PER_CHUNK as u64))
            .map_or(0, |counts| counts[number as usize % COUNTS_PER_CHUNK])
    }

    /// Takes `times` references to an inode.
    pub fn add(&mut self, number: u64, times: u64) {
        let counts = self.counts.entry(number / COUNTS_PER_CHUNK as u64).or_default();
        counts[number as usize % COUNTS_PER_CHUNK] += times;
    }

    /// Drops `times` references to an inode. True if none is left.
    pub fn take(&mut self, number: u64, times: u64) -> bool {
        let page = number / COUNTS_PER_CHUNK as u64;
        let Some(counts) = self.counts.get_mut(&page) else { return true };
        let count = &mut counts[number as usize % COUNTS_PER_CHUNK];
        *count = count.saturating_sub(times);
        let is_none = *count == 0;
        if is_none && counts.iter().all(|count| *count == 0) {
            self.counts.remove(&page);
        }
        is_none
    }
}
