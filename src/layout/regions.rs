//! Byte ranges and their contents.

use std::ops::Range;

/// The content of a range of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// The journal: descriptors, copies of other blocks, commit records.
    Journal,
    /// Other structures of the file system.
    Metadata,
    /// Files' bytes.
    Data,
}

/// Byte ranges in order, without overlaps; adjacent ones differ in content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Regions {
    ranges: Vec<(Range<u64>, Region)>,
}

impl Regions {
    /// Ranges in any order; of two that overlap, the later in `ranges` wins. Empty ones are dropped.
    pub fn new(ranges: impl IntoIterator<Item = (Range<u64>, Region)>) -> Regions {
        let mut known: Vec<(Range<u64>, Region)> = ranges.into_iter().filter(|(range, _)| !range.is_empty()).collect();
        // Most inputs, of some hundred thousand ranges, are in order and without overlaps: one pass is enough.
        if known.windows(2).any(|pair| pair[0].0.end > pair[1].0.start) {
            known = flattened(&known);
        }
        let mut ranges: Vec<(Range<u64>, Region)> = Vec::with_capacity(known.len());
        for (range, region) in known {
            match ranges.last_mut() {
                Some((last, kind)) if *kind == region && last.end == range.start => last.end = range.end,
                _ => ranges.push((range, region)),
            }
        }
        Regions { ranges }
    }

    /// The region of the byte at `offset`; `None` outside all ranges.
    pub fn at(&self, offset: u64) -> Option<Region> {
        let after = self.ranges.partition_point(|(range, _)| range.end <= offset);
        self.ranges.get(after).filter(|(range, _)| range.contains(&offset)).map(|(_, region)| *region)
    }

    /// The ranges in order.
    pub fn iter(&self) -> impl Iterator<Item = (Range<u64>, Region)> + '_ {
        self.ranges.iter().cloned()
    }

    /// The ranges of one kind.
    pub fn of(&self, region: Region) -> impl Iterator<Item = Range<u64>> + '_ {
        self.iter().filter(move |(_, kind)| *kind == region).map(|(range, _)| range)
    }

    /// The number of bytes of one kind.
    pub fn bytes_of(&self, region: Region) -> u64 {
        self.of(region).map(|range| range.end - range.start).sum()
    }

    /// The ranges of both; where they overlap, `later` wins.
    pub fn overlaid(&self, later: &Regions) -> Regions {
        Regions::new(self.iter().chain(later.iter()))
    }
}

/// The ranges without overlaps: between any two edges, the last range that covers the gap wins.
fn flattened(ranges: &[(Range<u64>, Region)]) -> Vec<(Range<u64>, Region)> {
    let mut edges: Vec<(u64, usize, bool)> = Vec::with_capacity(2 * ranges.len());
    for (number, (range, _)) in ranges.iter().enumerate() {
        edges.push((range.start, number, true));
        edges.push((range.end, number, false));
    }
    edges.sort_unstable();
    let mut open = std::collections::BTreeSet::new();
    let mut flat = Vec::new();
    let mut from = 0;
    for (at, number, opens) in edges {
        if let Some(&winner) = open.last()
            && from < at
        {
            let (_, region): &(_, Region) = &ranges[winner];
            flat.push((from..at, *region));
        }
        from = at;
        if opens {
            open.insert(number);
        } else {
            open.remove(&number);
        }
    }
    flat
}

#[cfg(test)]
mod tests {
    use super::*;
    use Region::{Data, Journal, Metadata};
    use proptest::prelude::*;

    #[test]
    fn the_later_range_counts_where_two_overlap() {
        let regions = Regions::new([(0..100, Metadata), (40..60, Journal), (60..70, Journal), (90..120, Data)]);
        let expected = [(0..40, Metadata), (40..70, Journal), (70..90, Metadata), (90..120, Data)];
        assert_eq!(regions.iter().collect::<Vec<_>>(), expected);
        assert_eq!([39, 40, 119, 120].map(|at| regions.at(at)), [Some(Metadata), Some(Journal), Some(Data), None]);
        assert_eq!((regions.bytes_of(Journal), regions.bytes_of(Metadata)), (30, 60));
    }

    proptest! {
        #[test]
        fn every_byte_is_what_the_last_range_over_it_says(
            ranges in proptest::collection::vec((0u64..40, 0u64..12, 0usize..3), 0..12),
        ) {
            let ranges: Vec<_> = ranges
                .into_iter()
                .map(|(start, length, kind)| (start..start + length, [Journal, Metadata, Data][kind]))
                .collect();
            let regions = Regions::new(ranges.clone());
            for at in 0..64 {
                let last = ranges.iter().rev().find(|(range, _)| range.contains(&at)).map(|(_, region)| *region);
                prop_assert_eq!(regions.at(at), last);
            }
        }
    }
}
