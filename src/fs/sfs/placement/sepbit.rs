//! SepBIT (Wang, Lee, Lui, Shi, Zhu: "Separating Data via Block Invalidation Time Inference for Write Amplification
//! Reduction in Log-Structured Storage", FAST 2022): the lifespan of an overwritten block predicts that of its
//! successor, and the age of a cleaned block predicts its remaining lifespan.
//!
//! | group | blocks |
//! |---|---|
//! | 0 | host writes over a block with a lifespan below l |
//! | 1 | host writes over a block with a longer lifespan, and new blocks |
//! | 2 | cleaned from group 0 |
//! | 3 | cleaned from another group, age below 4 l |
//! | 4 | cleaned from another group, age below 16 l |
//! | 5 | cleaned from another group, older |
//!
//! l is the mean lifespan, from writing to cleaning, of the last 16 cleaned segments of group 0. It is infinite until
//! there are 16. Lifespans and ages are in ticks; the paper's unit is blocks written.

use super::{BlockView, Grouping, SegmentView, Tick, hotness};
use std::collections::VecDeque;

/// Number of averaged segments: n_c of the paper.
const WINDOW: usize = 16;

/// The lifespans of cleaned segments of group 0.
#[derive(Clone, Debug, Default)]
pub struct SepBit {
    /// The last [`WINDOW`] lifespans in ticks, oldest first.
    lifespans: VecDeque<f64>,
    /// l; `None` until the window is full.
    mean: Option<f64>,
}

impl SepBit {
    /// The initial state: no segment has been cleaned.
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

    fn cleaning_begins(&mut self, segment: &SegmentView, now: Tick) {
        if segment.group == Some(0) {
            self.record(hotness::age(segment.written, now) as f64);
        }
    }

    fn state(&self) -> Vec<f64> {
        self.lifespans.iter().copied().collect()
    }

    fn restore(&mut self, memory: &[f64]) {
        // A lifespan is a whole number of ticks, at least 1.
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

    /// Cleans `segments` segments of a group, each with this lifespan in ticks.
    fn cleaned(policy: &mut SepBit, segments: usize, group: Option<u8>, lifespan: u64) {
        for _ in 0..segments {
            policy.cleaning_begins(&SegmentView { group, written: Tick(NOW.0 - lifespan), ..segment(0, 1) }, NOW);
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
    fn l_is_infinite_until_sixteen_segments_of_group_0_are_cleaned() {
        let mut policy = SepBit::new();
        cleaned(&mut policy, 15, Some(0), 100);
        cleaned(&mut policy, 40, Some(1), 7);
        cleaned(&mut policy, 40, None, 7);
        assert_eq!(policy.lifespan(), f64::INFINITY);
        cleaned(&mut policy, 1, Some(0), 260);
        assert_eq!(policy.lifespan(), 110.0);
    }

    #[test]
    fn l_is_the_mean_of_the_last_sixteen() {
        let mut policy = hundred();
        cleaned(&mut policy, 8, Some(0), 300);
        assert_eq!(policy.lifespan(), 200.0);
        cleaned(&mut policy, 8, Some(0), 300);
        assert_eq!(policy.lifespan(), 300.0);
    }

    #[test]
    fn a_write_over_a_short_lived_block_goes_to_group_0() {
        assert_eq!(host(&mut hundred(), 99), 0);
    }

    #[test]
    fn a_write_over_a_long_lived_block_goes_to_group_1() {
        assert_eq!(host(&mut hundred(), 100), 1);
    }

    #[test]
    fn a_new_block_goes_to_group_1() {
        assert_eq!(hundred().group_of(&block(0, NOW.0), NOW), 1);
        assert_eq!(SepBit::new().group_of(&block(0, NOW.0), NOW), 1);
    }

    #[test]
    fn every_overwrite_goes_to_group_0_while_l_is_infinite() {
        assert_eq!(host(&mut SepBit::new(), 9_999), 0);
    }

    #[test]
    fn a_block_cleaned_from_group_0_goes_to_group_2_at_any_age() {
        for age in [0, 399, 400, 1600, 9_999] {
            assert_eq!(cleaner(&mut hundred(), 0, age), 2);
        }
    }

    #[test]
    fn blocks_cleaned_from_other_groups_are_divided_at_ages_4_l_and_16_l() {
        for from in [1, 2, 3, 4, 5, u8::MAX] {
            let groups = [0, 399, 400, 1599, 1600, 9_999].map(|age| cleaner(&mut hundred(), from, age));
            assert_eq!(groups, [3, 3, 4, 4, 5, 5], "out of {from}");
        }
    }

    #[test]
    fn cleaned_blocks_count_as_young_while_l_is_infinite() {
        assert_eq!(cleaner(&mut SepBit::new(), 1, 9_999), 3);
    }

    #[test]
    fn l_is_restored_by_a_mount() {
        for cleanings in [0, 5, 16] {
            let mut before = SepBit::new();
            cleaned(&mut before, cleanings, Some(0), 100);
            let mut after = SepBit::new();
            after.restore(&before.state());
            cleaned(&mut before, 11, Some(0), 420);
            cleaned(&mut after, 11, Some(0), 420);
            assert_eq!((after.lifespan(), after.state()), (before.lifespan(), before.state()));
        }
    }

    #[test]
    fn an_invalid_stored_state_is_ignored() {
        for memory in [&[100.0, f64::NAN][..], &[f64::INFINITY], &[-1.0], &[0.0], &[1e300], &[5.0; 17]] {
            let mut policy = hundred();
            policy.restore(memory);
            assert_eq!(policy.lifespan(), 100.0, "{memory:?}");
        }
    }
}
