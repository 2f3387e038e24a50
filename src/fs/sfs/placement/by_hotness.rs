//! Grouping by hotness: SFS's own (sections 3.4 and 3.5). At a segment writing the segments are quantized, and each block
//! goes to the group whose centre is nearest to its hotness. Group 0 is the coldest.

use super::{BlockView, Grouping, GroupingSettings, SegmentView, Tick, hotness, quantize};
use crate::expression::{Choice, Settings};
use crate::random::Random;

/// How the groups' hotness is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantizerKind {
    /// Refinement.
    Iterative,
    /// Equal parts of the range: the paper's "equi-height".
    EquiHeight,
    /// Equal numbers of segments: the paper's "equi-width".
    EquiWidth,
}

impl Choice for QuantizerKind {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("iterative", QuantizerKind::Iterative, "centres found by refinement, as k-means finds them"),
        ("equi-height", QuantizerKind::EquiHeight, "the range of hotness is cut into equal parts"),
        ("equi-width", QuantizerKind::EquiWidth, "every group has as many segments"),
    ];
}

/// The options `groups` and `quantizer`.
#[derive(Clone, Copy, Debug)]
pub struct HotnessSettings {
    groups: usize,
    quantizer: QuantizerKind,
}

impl HotnessSettings {
    /// Reads them.
    pub fn read(settings: &Settings) -> HotnessSettings {
        HotnessSettings { groups: settings.count("groups") as usize, quantizer: settings.choice("quantizer") }
    }
}

impl GroupingSettings for HotnessSettings {
    fn start(&self, seed: u64) -> Box<dyn Grouping> {
        Box::new(ByHotness::new(self.groups, self.quantizer, seed))
    }
}

/// The groups' centres.
#[derive(Clone, Debug)]
pub struct ByHotness {
    groups: usize,
    quantizer: QuantizerKind,
    random: Random,
    /// Ascending; none until segments have been looked at.
    centres: Vec<f64>,
    /// The segments' hotness at the last look: kept for its memory alone.
    hotness: Vec<f64>,
}

impl ByHotness {
    /// So many groups, at least 1. The seed draws the first centres of [`QuantizerKind::Iterative`].
    pub fn new(groups: usize, quantizer: QuantizerKind, seed: u64) -> ByHotness {
        let random = Random::new(seed, "the first centres of hotness");
        ByHotness { groups: groups.max(1), quantizer, random, centres: Vec::new(), hotness: Vec::new() }
    }
}

impl Grouping for ByHotness {
    fn groups(&self) -> usize {
        self.groups
    }

    /// All Hg are updated. Without a segment that has live blocks they stay.
    fn look(&mut self, segments: &[SegmentView], now: Tick) {
        self.hotness.clear();
        let written = segments.iter().filter(|segment| segment.live > 0);
        self.hotness.extend(written.map(|segment| hotness::of_segment(segment, now)));
        if self.hotness.is_empty() {
            return;
        }
        let few = self.hotness.len() <= self.groups;
        match self.quantizer {
            QuantizerKind::Iterative => {
                if few || self.centres.is_empty() {
                    self.centres = quantize::draw(&mut self.hotness, self.groups, &mut self.random);
                }
                if !few {
                    quantize::refine(&mut self.centres, &self.hotness);
                }
            }
            QuantizerKind::EquiHeight => self.centres = quantize::equi_height(&self.hotness, self.groups),
            QuantizerKind::EquiWidth => self.centres = quantize::equi_width(&mut self.hotness, self.groups),
        }
    }

    fn group_of(&mut self, block: &BlockView, now: Tick) -> usize {
        quantize::nearest(&self.centres, hotness::of_block(block, now))
    }

    /// Hg of all groups. None until segments have been looked at.
    fn centres(&self) -> &[f64] {
        &self.centres
    }

    /// The centres, "for faster convergence" after the next mount (section 3.4).
    fn memory(&self) -> Vec<f64> {
        self.centres.clone()
    }

    fn remember(&mut self, memory: &[f64]) {
        let is_hotness = |value: &f64| (0.0..=u64::MAX as f64).contains(value);
        if memory.len() == self.groups && memory.iter().all(is_hotness) {
            self.centres = memory.to_vec();
            self.centres.sort_unstable_by(f64::total_cmp);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::views::{block, segment};
    use super::*;

    const NOW: Tick = Tick(1000);

    /// Segments of one live block of age 100, written so often.
    fn segments(writes: &[u64]) -> Vec<SegmentView> {
        writes.iter().map(|writes| SegmentView { writes: *writes, modified: 900, ..segment(0, 1) }).collect()
    }

    fn grouping(groups: usize, quantizer: QuantizerKind) -> ByHotness {
        ByHotness::new(groups, quantizer, 7)
    }

    #[test]
    fn before_any_segment_is_written_all_blocks_are_of_group_0() {
        let mut groups = grouping(4, QuantizerKind::Iterative);
        groups.look(&[], NOW);
        groups.look(&[segment(3, 0)], NOW);
        assert_eq!((groups.groups(), groups.group_of(&block(500, 999), NOW)), (4, 0));
        assert!(groups.memory().is_empty());
    }

    #[test]
    fn a_block_goes_where_segments_are_as_hot_as_it() {
        let mut groups = grouping(3, QuantizerKind::Iterative);
        groups.look(&segments(&[1, 50, 400]), NOW);
        assert_eq!(groups.centres(), [0.01, 0.5, 4.0]);
        let mut group = |writes, modified| groups.group_of(&block(writes, modified), NOW);
        assert_eq!((group(1, 10), group(6, 990), group(9, 998), group(2, 999)), (0, 1, 2, 1));
    }

    #[test]
    fn a_new_block_goes_where_its_file_would() {
        use super::super::History;
        let mut groups = grouping(3, QuantizerKind::Iterative);
        groups.look(&segments(&[1, 50, 400]), NOW);
        let of_file = |writes| BlockView { file: History { writes, modified: Tick(990) }, ..block(0, 1000) };
        assert_eq!([0, 5, 50].map(|writes| groups.group_of(&of_file(writes), NOW)), [0, 1, 2]);
    }

    #[test]
    fn a_block_that_is_cleaned_is_grouped_like_any_other() {
        let mut groups = grouping(3, QuantizerKind::Iterative);
        groups.look(&segments(&[1, 50, 400]), NOW);
        let cleaned = BlockView { cleaned_from: Some(0), group: Some(0), ..block(9, 998) };
        assert_eq!(groups.group_of(&cleaned, NOW), 2);
    }

    #[test]
    fn centres_are_drawn_anew_until_there_are_more_segments_than_groups() {
        let mut groups = grouping(2, QuantizerKind::Iterative);
        groups.look(&segments(&[100, 200]), NOW);
        assert_eq!(groups.centres(), [1.0, 2.0]);
        groups.look(&segments(&[500, 600]), NOW);
        assert_eq!(groups.centres(), [5.0, 6.0]);
        groups.look(&segments(&[500, 500, 700]), NOW);
        assert_eq!(groups.centres(), [5.0, 7.0]);
    }

    #[test]
    fn centres_follow_the_segments_from_writing_to_writing() {
        let mut groups = grouping(2, QuantizerKind::Iterative);
        groups.look(&segments(&[100, 100, 100, 900]), NOW);
        groups.look(&segments(&[200, 200, 200, 800]), NOW);
        assert_eq!(groups.centres(), [2.0, 8.0]);
    }

    #[test]
    fn each_quantizer_sets_the_centres_its_own_way() {
        let written = segments(&[100, 200, 300, 1200]);
        let centres = |quantizer| {
            let mut groups = grouping(2, quantizer);
            groups.look(&written, NOW);
            groups.look(&written, NOW);
            groups.memory()
        };
        assert_eq!(centres(QuantizerKind::Iterative), [2.0, 12.0]);
        assert_eq!(centres(QuantizerKind::EquiHeight), [3.75, 9.25]);
        assert_eq!(centres(QuantizerKind::EquiWidth), [1.5, 7.5]);
    }

    #[test]
    fn the_same_seed_gives_the_same_groups() {
        let written = segments(&(0..50).map(|i| i * i).collect::<Vec<_>>());
        let memory = |seed| {
            let mut groups = ByHotness::new(4, QuantizerKind::Iterative, seed);
            groups.look(&written, NOW);
            groups.memory()
        };
        assert_eq!(memory(1), memory(1));
        assert!((2..20).any(|seed| memory(seed) != memory(1)));
    }

    #[test]
    fn the_centres_outlive_a_mount() {
        let mut before = grouping(2, QuantizerKind::Iterative);
        before.look(&segments(&[100, 100, 100, 900]), NOW);
        let mut after = ByHotness::new(2, QuantizerKind::Iterative, 99);
        after.remember(&before.memory());
        assert_eq!(after.centres(), before.centres());
        assert_eq!(after.group_of(&block(9, 999), NOW), 1);
    }

    #[test]
    fn a_memory_that_it_cannot_have_had_is_ignored() {
        for memory in [&[1.0, f64::NAN][..], &[1.0, f64::INFINITY], &[-1.0, 1.0], &[0.0, f64::MAX], &[1.0], &[1.0; 3]] {
            let mut groups = grouping(2, QuantizerKind::Iterative);
            groups.remember(memory);
            assert!(groups.centres().is_empty(), "{memory:?}");
        }
    }
}
