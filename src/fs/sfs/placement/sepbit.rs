//! SepBIT (Wang, Lee, Lui, Shi, Zhu: "Separating Data via Block Invalidation Time Inference for Write Amplification
//! Reduction in Log-Structured Storage", FAST 2022): a block lives about as long as what it overwrites lived, and a block
//! that was cleaned lives the longer the older it is.
//!
//! | group | what is written there |
//! |---|---|
//! | 0 | by the host, over a block that lived shorter than l |
//! | 1 | by the host, over one that lived longer, or a new block |
//! | 2 | by the cleaner, out of group 0 |
//! | 3 | by the cleaner, out of another group, of age below 4 l |
//! | 4 | likewise, of age below 16 l |
//! | 5 | likewise, older |
//!
//! l is the mean lifespan, from its writing to its cleaning, of the last 16 segments of group 0 that were cleaned. Until
//! there are so many it is infinite. Lifespans and ages are in ticks: of the paper's unit, blocks written, if a tick is one.

use super::{BlockView, Grouping, SegmentView, Tick, hotness};
use std::collections::VecDeque;

/// Segments whose lifespans are averaged: n_c of the paper.
const WINDOW: usize = 16;

/// The lifespans of segments of group 0.
#[derive(Clone, Debug, Default)]
pub struct SepBit {
    /// The last [`WINDOW`] of them in ticks, oldest first.
    lifespans: VecDeque<f64>,
    /// l, if there are so many.
    mean: Option<f64>,
}

impl SepBit {
    /// No segment has been cleaned yet.
    pub fn new() -> SepBit {
        SepBit::default()
    }

    /// l, in ticks.
    pub fn lifespan(&self) -> f64 {
        self.mean.unwrap_or(f64::INFINITY)
    }

    fn record(&mut self, lifespan: f64) {
        if self.lifespans.len() == WINDOW {
            self.lifespans.pop_front();
        }
        self.lifespans.push_back(lifespan);
        if self.lifespans.len() == WINDOW {
            self.mean = Some(self.lifespans.iter().sum::<f64>() / WINDOW as f64);
        }
    }
}

impl Grouping for SepBit {
    fn groups(&self) -> usize {
        6
    }

    fn group_of(&mut self, block: &BlockView, now: Tick) -> usize {
        let (age, l) = (hotness::age(block.block.modified, now) as f64, self.lifespan());
        match block.cleaned_from {
            None if block.block.writes > 0 && age < l => 0,
            None => 1,
            Some(0) => 2,
            Some(_) if age < 4.0 * l => 3,
            Some(_) if age < 16.0 * l => 4,
            Some(_) => 5,
        }
    }

    fn collects(&mut self, segment: &SegmentView, now: Tick) {
        if segment.group == Some(0) {
            self.record(hotness::age(segment.written, now) as f64);
        }
    }

    fn memory(&self) -> Vec<f64> {
        self.lifespans.iter().copied().collect()
    }

    fn remember(&mut self, memory: &[f64]) {
        // A lifespan is a whole number of ticks from 1 on.
        let is_lifespan = |value: &f64| (1.0..=u64::MAX as f64).contains(value);
        if memory.len() <= WINDOW && memory.iter().all(is_lifespan) {
            *self = SepBit::new();
            memory.iter().for_each(|lifespan| self.record(*lifespan));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::views::{block, segment};
    use super::*;

    const NOW: Tick = Tick(10_000);

    /// So many segments of a group are cleaned, each of which lived so many ticks.
    fn cleaned(policy: &mut SepBit, segments: usize, group: Option<u8>, lifespan: u64) {
        for _ in 0..segments {
            policy.collects(&SegmentView { group, written: Tick(NOW.0 - lifespan), ..segment(0, 1) }, NOW);
        }
    }

    /// A policy with l = 100.
    fn hundred() -> SepBit {
        let mut policy = SepBit::new();
        cleaned(&mut policy, 16, Some(0), 100);
        policy
    }

    fn host(policy: &mut SepBit, age: u64) -> usize {
        policy.group_of(&block(1, NOW.0 - age), NOW)
    }

    fn cleaner(policy: &mut SepBit, from: u8, age: u64) -> usize {
        policy.group_of(&BlockView { cleaned_from: Some(from), ..block(1, NOW.0 - age) }, NOW)
    }

    #[test]
    fn the_lifespan_is_infinite_until_sixteen_segments_of_group_0_were_cleaned() {
        let mut policy = SepBit::new();
        cleaned(&mut policy, 15, Some(0), 100);
        cleaned(&mut policy, 40, Some(1), 7);
        cleaned(&mut policy, 40, None, 7);
        assert_eq!(policy.lifespan(), f64::INFINITY);
        cleaned(&mut policy, 1, Some(0), 260);
        assert_eq!(policy.lifespan(), 110.0);
    }

    #[test]
    fn the_lifespan_is_that_of_the_last_sixteen() {
        let mut policy = hundred();
        cleaned(&mut policy, 8, Some(0), 300);
        assert_eq!(policy.lifespan(), 200.0);
        cleaned(&mut policy, 8, Some(0), 300);
        assert_eq!(policy.lifespan(), 300.0);
    }

    #[test]
    fn a_write_over_a_block_that_lived_short_is_of_group_0() {
        assert_eq!(host(&mut hundred(), 99), 0);
    }

    #[test]
    fn a_write_over_a_block_that_lived_long_is_of_group_1() {
        assert_eq!(host(&mut hundred(), 100), 1);
    }

    #[test]
    fn a_new_block_is_of_group_1() {
        assert_eq!(hundred().group_of(&block(0, NOW.0), NOW), 1);
        assert_eq!(SepBit::new().group_of(&block(0, NOW.0), NOW), 1);
    }

    #[test]
    fn every_overwrite_is_of_group_0_as_long_as_no_lifespan_is_known() {
        assert_eq!(host(&mut SepBit::new(), 9_999), 0);
    }

    #[test]
    fn what_is_cleaned_out_of_group_0_is_of_group_2_at_any_age() {
        for age in [0, 399, 400, 1600, 9_999] {
            assert_eq!(cleaner(&mut hundred(), 0, age), 2);
        }
    }

    #[test]
    fn what_is_cleaned_out_of_other_groups_is_parted_by_age_at_4_and_16_lifespans() {
        for from in [1, 2, 3, 4, 5, u8::MAX] {
            let groups = [0, 399, 400, 1599, 1600, 9_999].map(|age| cleaner(&mut hundred(), from, age));
            assert_eq!(groups, [3, 3, 4, 4, 5, 5], "out of {from}");
        }
    }

    #[test]
    fn what_is_cleaned_is_young_as_long_as_no_lifespan_is_known() {
        assert_eq!(cleaner(&mut SepBit::new(), 1, 9_999), 3);
    }

    #[test]
    fn the_lifespan_outlives_a_mount() {
        for cleanings in [0, 5, 16] {
            let mut before = SepBit::new();
            cleaned(&mut before, cleanings, Some(0), 100);
            let mut after = SepBit::new();
            after.remember(&before.memory());
            cleaned(&mut before, 11, Some(0), 420);
            cleaned(&mut after, 11, Some(0), 420);
            assert_eq!((after.lifespan(), after.memory()), (before.lifespan(), before.memory()));
        }
    }

    #[test]
    fn a_memory_that_it_cannot_have_had_is_ignored() {
        for memory in [&[100.0, f64::NAN][..], &[f64::INFINITY], &[-1.0], &[0.0], &[1e300], &[5.0; 17]] {
            let mut policy = hundred();
            policy.remember(memory);
            assert_eq!(policy.lifespan(), 100.0, "{memory:?}");
        }
    }
}
