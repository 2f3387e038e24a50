//! Grouping by hotness: the policy of SFS (sections 3.4 and 3.5). Before a writeback the segments are quantized, and
//! each block goes to the group whose centre is nearest to its hotness. Group 0 is the coldest.

use super::{BlockView, Grouping, GroupingSettings, SegmentView, Tick, VolumeShape, hotness, quantize};
use crate::expression::{Choice, Settings};
use crate::random::Random;

/// The algorithm that finds the groups' hotness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantizerKind {
    /// Iterative refinement.
    Iterative,
    /// Equal intervals of hotness: the paper's "equi-height".
    EquiHeight,
    /// Equal numbers of segments: the paper's "equi-width".
    EquiWidth,
}

impl Choice for QuantizerKind {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("iterative", QuantizerKind::Iterative, "centres refined iteratively, as in k-means"),
        ("equi-height", QuantizerKind::EquiHeight, "the range of hotness is divided into equal intervals"),
        ("equi-width", QuantizerKind::EquiWidth, "every group has the same number of segments"),
    ];
}

/// The options `groups` and `quantizer`.
#[derive(Clone, Copy, Debug)]
pub struct HotnessSettings {
    groups: usize,
    quantizer: QuantizerKind,
}

impl HotnessSettings {
    /// Reads the options.
    pub fn read(settings: &Settings) -> HotnessSettings {
        HotnessSettings { groups: settings.count("groups") as usize, quantizer: settings.choice("quantizer") }
    }
}

impl GroupingSettings for HotnessSettings {
    fn start(&self, volume: VolumeShape) -> Box<dyn Grouping> {
        Box::new(ByHotness::new(self.groups, self.quantizer, volume.seed))
    }

    fn quantizes(&self) -> bool {
        true
    }
}

/// The groups' centres.
#[derive(Clone, Debug)]
pub struct ByHotness {
    groups: usize,
    quantizer: QuantizerKind,
    random: Random,
    /// In ascending order; empty until segments are observed.
    centres: Vec<f64>,
    /// The segments' hotness, kept to reuse its allocation.
    hotness: Vec<f64>,
}

impl ByHotness {
    /// A policy with `groups` groups, at least 1. The seed draws the initial centres of [`QuantizerKind::Iterative`].
    pub fn new(groups: usize, quantizer: QuantizerKind, seed: u64) -> ByHotness {
        let random = Random::new(seed, "the first centres of hotness");
        ByHotness { groups: groups.max(1), quantizer, random, centres: Vec::new(), hotness: Vec::new() }
    }
}

impl Grouping for ByHotness {
    fn groups(&self) -> usize {
        self.groups
    }

    /// Updates all Hg. Without segments that have live blocks, they stay.
    fn observe(&mut self, segments: &[SegmentView], now: Tick) {
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

    /// Hg of all groups; empty until segments are observed.
    fn centres(&self) -> &[f64] {
        &self.centres
    }

    /// The centres, stored "for faster convergence" after the next mount (section 3.4).
    fn state(&self) -> Vec<f64> {
        self.centres.clone()
    }

    fn restore(&mut self, memory: &[f64]) {
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

    /// Segments with one live block of age 100 each, with these write counts.
    fn segments(writes: &[u64]) -> Vec<SegmentView> {
        writes.iter().map(|writes| SegmentView { writes: *writes, modified: 900, ..segment(0, 1) }).collect()
    }

    fn grouping(groups: usize, quantizer: QuantizerKind) -> ByHotness {
        ByHotness::new(groups, quantizer, 7)
    }

    #[test]
    fn before_any_segment_is_written_all_blocks_are_of_group_0() {
        let mut groups = grouping(4, QuantizerKind::Iterative);
        groups.observe(&[], NOW);
        groups.observe(&[segment(3, 0)], NOW);
        assert_eq!((groups.groups(), groups.group_of(&block(500, 999), NOW)), (4, 0));
        assert!(groups.state().is_empty());
    }

    #[test]
    fn a_block_goes_to_the_group_of_its_hotness() {
        let mut groups = grouping(3, QuantizerKind::Iterative);
        groups.observe(&segments(&[1, 50, 400]), NOW);
        assert_eq!(groups.centres(), [0.01, 0.5, 4.0]);
        let mut group = |writes, modified| groups.group_of(&block(writes, modified), NOW);
        assert_eq!((group(1, 10), group(6, 990), group(9, 998), group(2, 999)), (0, 1, 2, 1));
    }

    #[test]
    fn a_new_block_is_grouped_by_the_hotness_of_its_file() {
        use super::super::History;
        let mut groups = grouping(3, QuantizerKind::Iterative);
        groups.observe(&segments(&[1, 50, 400]), NOW);
        let of_file = |writes| BlockView { file: History { writes, modified: Tick(990) }, ..block(0, 1000) };
        assert_eq!([0, 5, 50].map(|writes| groups.group_of(&of_file(writes), NOW)), [0, 1, 2]);
    }

    #[test]
    fn a_cleaned_block_is_grouped_like_any_other() {
        let mut groups = grouping(3, QuantizerKind::Iterative);
        groups.observe(&segments(&[1, 50, 400]), NOW);
        let cleaned = BlockView { cleaned_from: Some(0), group: Some(0), ..block(9, 998) };
        assert_eq!(groups.group_of(&cleaned, NOW), 2);
    }

    #[test]
    fn initial_centres_are_redrawn_until_there_are_more_segments_than_groups() {
        let mut groups = grouping(2, QuantizerKind::Iterative);
        groups.observe(&segments(&[100, 200]), NOW);
        assert_eq!(groups.centres(), [1.0, 2.0]);
        groups.observe(&segments(&[500, 600]), NOW);
        assert_eq!(groups.centres(), [5.0, 6.0]);
        groups.observe(&segments(&[500, 500, 700]), NOW);
        assert_eq!(groups.centres(), [5.0, 7.0]);
    }

    #[test]
    fn centres_follow_the_segments_from_writeback_to_writeback() {
        let mut groups = grouping(2, QuantizerKind::Iterative);
        groups.observe(&segments(&[100, 100, 100, 900]), NOW);
        groups.observe(&segments(&[200, 200, 200, 800]), NOW);
        assert_eq!(groups.centres(), [2.0, 8.0]);
    }

    #[test]
    fn each_quantizer_finds_different_centres() {
        let written = segments(&[100, 200, 300, 1200]);
        let centres = |quantizer| {
            let mut groups = grouping(2, quantizer);
            groups.observe(&written, NOW);
            groups.observe(&written, NOW);
            groups.state()
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
            groups.observe(&written, NOW);
            groups.state()
        };
        assert_eq!(memory(1), memory(1));
        assert!((2..20).any(|seed| memory(seed) != memory(1)));
    }

    #[test]
    fn the_centres_are_restored_by_a_mount() {
        let mut before = grouping(2, QuantizerKind::Iterative);
        before.observe(&segments(&[100, 100, 100, 900]), NOW);
        let mut after = ByHotness::new(2, QuantizerKind::Iterative, 99);
        after.restore(&before.state());
        assert_eq!(after.centres(), before.centres());
        assert_eq!(after.group_of(&block(9, 999), NOW), 1);
    }

    #[test]
    fn an_invalid_stored_state_is_ignored() {
        for memory in [&[1.0, f64::NAN][..], &[1.0, f64::INFINITY], &[-1.0, 1.0], &[0.0, f64::MAX], &[1.0], &[1.0; 3]] {
            let mut groups = grouping(2, QuantizerKind::Iterative);
            groups.restore(memory);
            assert!(groups.centres().is_empty(), "{memory:?}");
        }
    }
}
