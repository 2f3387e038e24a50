//! Blocks that were freed, and may not be used before the transaction that freed them is committed.

use std::collections::BTreeMap;
use std::ops::Range;

/// Ranges of blocks that do not overlap.
#[derive(Debug, Default)]
pub(super) struct Withheld {
    /// First and end.
    ranges: BTreeMap<u64, u64>,
    blocks: u64,
}

impl Withheld {
    /// Adds a range. What it overlaps becomes one range with it.
    pub fn add(&mut self, Range { mut start, mut end }: Range<u64>) {
        while let Some((first, last)) = self.ranges.range(..end).next_back().map(|(first, last)| (*first, *last)) {
            if last <= start {
                break;
            }
            self.remove(first);
            (start, end) = (start.min(first), end.max(last));
        }
        self.ranges.insert(start, end);
        self.blocks += end - start;
    }

    /// Removes the range that begins at `first`, if there is one.
    pub fn remove(&mut self, first: u64) {
        if let Some(end) = self.ranges.remove(&first) {
            self.blocks -= end - first;
        }
    }

    /// The parts of a range of blocks that are withheld.
    pub fn within(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let before = self.ranges.range(..range.start).next_back().filter(|(_, end)| **end > range.start);
        let all = before.into_iter().chain(self.ranges.range(range.start..range.end));
        all.map(|(first, end)| *first.max(&range.start)..*end.min(&range.end)).collect()
    }

    /// The number of blocks. Each new page of a file asks for it, so that it is counted.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }
}
