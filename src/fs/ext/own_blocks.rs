//! The blocks of the volume itself: superblocks, descriptors, bitmaps, inode tables, the log. No file has one: a map that
//! names one is damaged, and a write to that block would be one over the volume.

use std::ops::Range;

/// Blocks of the volume itself, as sorted ranges without overlaps.
#[derive(Debug, Default)]
pub struct OwnBlocks(Vec<Range<u64>>);

impl OwnBlocks {
    /// The blocks of these ranges.
    pub fn of(mut ranges: Vec<Range<u64>>) -> OwnBlocks {
        ranges.retain(|range| !range.is_empty());
        ranges.sort_unstable_by_key(|range| range.start);
        let mut joined: Vec<Range<u64>> = Vec::new();
        for range in ranges {
            match joined.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => joined.push(range),
            }
        }
        OwnBlocks(joined)
    }

    /// The same with more.
    pub fn with(mut self, ranges: &[Range<u64>]) -> OwnBlocks {
        self.0.extend_from_slice(ranges);
        OwnBlocks::of(self.0)
    }

    /// The number of blocks.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|range| range.end - range.start).sum()
    }

    /// True if one of these blocks is among them.
    pub fn overlaps(&self, blocks: &Range<u64>) -> bool {
        let next = self.0.partition_point(|range| range.end <= blocks.start);
        self.0.get(next).is_some_and(|range| range.start < blocks.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_joined_ranges_overlap_and_their_neighbours_do_not() {
        let own = OwnBlocks::of(vec![30..40, 0..5, 3..8, 8..9, 20..20]).with(&[50..51, 70..71]);
        for (blocks, overlaps) in [
            (8..9, true),
            (9..30, false),
            (29..31, true),
            (40..50, false),
            (49..60, true),
            (0..1, true),
            (51..70, false),
            (60..71, true),
        ] {
            assert_eq!(own.overlaps(&blocks), overlaps, "{blocks:?}");
        }
    }
}
