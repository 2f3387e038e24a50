//! How long blocks live: for each group the rate at which its live blocks die, by the time since their last write.
//!
//! Rates are deaths over exposure (live blocks times ticks), per class of ages; classes are geometric. Both sums decay:
//! those of a group are halved each time that it has counted 32,768 deaths. So the rates follow changes of the load,
//! whatever the unit of a tick.
//!
//! Segments of which nearly all blocks live are counted apart. Files that are never overwritten fill such segments, in the
//! same group as others where there is one group: with their exposure, old blocks would seem to die less than young ones,
//! although all that die do so at one rate.

use super::{MOST_GROUPS, SegmentView, Tick};
use std::cell::Cell;

/// Classes of ages per doubling of the age.
const PER_DOUBLING: f64 = 1.5;
/// Classes of ages: up to 2^64 ticks.
const AGES: usize = 96;
/// Deaths of a group after which the past counts half.
const MEMORY: f64 = 32_768.0;
/// The weight of the classes beside that of an age: neighbours smooth what few deaths say.
const NEIGHBOUR: f64 = 0.5;
/// The live share of a segment from which on nearly all of its blocks live.
const FULL: f64 = 0.98;
/// Classes that a segment may wait for: 6 doublings of its age.
const AHEAD: usize = 9;

/// What was observed of one group.
#[derive(Clone, Debug)]
struct Group {
    deaths: [f64; AGES],
    exposure: [f64; AGES],
    /// The sum of `deaths`.
    all_deaths: f64,
    /// [`Lives::rate`] by class of age; NaN if not computed since the last change.
    rates: [Cell<f64>; AGES],
}

/// The lives of blocks in each group, in full segments and in others. The last group is of segments with several groups.
#[derive(Clone, Debug)]
pub struct Lives {
    groups: Vec<Group>,
    observed: Tick,
}

impl Default for Lives {
    fn default() -> Lives {
        let group = Group {
            deaths: [0.0; AGES],
            exposure: [0.0; AGES],
            all_deaths: 0.0,
            rates: [const { Cell::new(f64::NAN) }; AGES],
        };
        Lives { groups: vec![group; 2 * (MOST_GROUPS + 1)], observed: Tick(0) }
    }
}

/// The class of an age in ticks, at least 1.
fn class_of(age: f64) -> usize {
    ((age.max(1.0).log2() * PER_DOUBLING) as usize).min(AGES - 1)
}

/// The age at which a class begins.
fn begin(class: usize) -> f64 {
    (class as f64 / PER_DOUBLING).exp2()
}

/// The place of a segment's group in [`Lives::groups`].
fn index(segment: &SegmentView) -> usize {
    let group = segment.group.map_or(MOST_GROUPS, usize::from).min(MOST_GROUPS);
    2 * group + usize::from(f64::from(segment.live) >= FULL * f64::from(segment.capacity))
}

impl Lives {
    /// Counts the death of a block of a segment, at the mean age of the segment's live blocks: as its exposure counts.
    pub fn died(&mut self, segment: &SegmentView, now: Tick) {
        let group = &mut self.groups[index(segment)];
        group.deaths[class_of(mean_age(segment, now))] += 1.0;
        group.all_deaths += 1.0;
        if group.all_deaths >= MEMORY {
            group.deaths.iter_mut().chain(&mut group.exposure).for_each(|sum| *sum /= 2.0);
            group.all_deaths /= 2.0;
        }
    }

    /// Counts the exposure of all live blocks since the last observation. The blocks of a segment count at their mean age.
    pub fn observe(&mut self, segments: &[SegmentView], now: Tick) {
        let passed = now.0.saturating_sub(self.observed.0) as f64;
        self.observed = now;
        for segment in segments.iter().filter(|segment| segment.live > 0) {
            self.groups[index(segment)].exposure[class_of(mean_age(segment, now))] += f64::from(segment.live) * passed;
        }
        self.groups.iter().flat_map(|group| &group.rates).for_each(|rate| rate.set(f64::NAN));
    }

    /// The rate, in deaths per live block and tick, at which live blocks of a segment are expected to die if it waits as
    /// long as pays best: the maximum over all times t of (1 - S(t)) / t, where S is the share that survives t. Where
    /// blocks die at random, that is the rate now. Where they die together, as those of a circular journal, it is the
    /// inverse of the time that is left until then, although none dies before.
    ///
    /// Always above 0 and finite: where nothing was observed, the rate is the inverse of the age.
    pub fn rate(&self, segment: &SegmentView, now: Tick) -> f64 {
        let group = &self.groups[index(segment)];
        let class = class_of(mean_age(segment, now));
        let known = group.rates[class].get();
        if !known.is_nan() {
            return known;
        }
        let rate = group.best_rate(class);
        group.rates[class].set(rate);
        rate
    }
}

impl Group {
    /// The rate of deaths in a class of ages. One death at the class's own age is assumed beside those observed.
    fn hazard(&self, class: usize) -> f64 {
        let (mut deaths, mut exposure) = (1.0, begin(class) + 1.0);
        for near in class.saturating_sub(1)..=(class + 1).min(AGES - 1) {
            let weight = if near == class { 1.0 } else { NEIGHBOUR };
            deaths += weight * self.deaths[near];
            exposure += weight * self.exposure[near];
        }
        deaths / exposure
    }

    /// The best rate for blocks in the middle of a class of ages.
    fn best_rate(&self, class: usize) -> f64 {
        let born = (begin(class) + begin(class + 1)) / 2.0;
        let (mut age, mut hazards, mut best) = (born, 0.0, self.hazard(class));
        for class in class..(class + AHEAD).min(AGES) {
            let end = begin(class + 1);
            hazards += self.hazard(class) * (end - age);
            age = end;
            best = best.max((1.0 - f64::exp(-hazards)) / (age - born));
        }
        best
    }
}

/// The mean age of the live blocks of a segment, in ticks.
fn mean_age(segment: &SegmentView, now: Tick) -> f64 {
    let live = u128::from(segment.live.max(1));
    let ages = (live * u128::from(now.0)).saturating_sub(segment.modified);
    ages as f64 / live as f64
}

#[cfg(test)]
mod tests {
    use super::super::views::segment;
    use super::*;

    /// A segment of group 0 with 100 live blocks of this age at tick 1,000,000.
    fn aged(age: u64) -> SegmentView {
        SegmentView { modified: u128::from(1_000_000 - age) * 100, group: Some(0), ..segment(0, 100) }
    }

    const NOW: Tick = Tick(1_000_000);

    #[test]
    fn without_observations_older_blocks_are_expected_to_live_longer() {
        let rates = [10, 1000, 100_000].map(|age| Lives::default().rate(&aged(age), NOW));
        assert!(rates[0] > 30.0 * rates[1] && rates[1] > 30.0 * rates[2], "{rates:?}");
    }

    #[test]
    fn a_constant_rate_of_deaths_is_found_at_any_age() {
        let mut lives = Lives::default();
        // One death in 1000 block-ticks at each age.
        for age in (8..30).map(|class| (begin(class) * 1.2) as u64) {
            lives.observed = Tick(NOW.0 - 2000);
            lives.observe(&[aged(age)], NOW);
            (0..200).for_each(|_| lives.died(&aged(age), NOW));
        }
        for age in [100, 1000, 10_000] {
            let rate = lives.rate(&aged(age), NOW);
            assert!((0.0004..0.0015).contains(&rate), "{age}: {rate}");
        }
    }

    #[test]
    fn blocks_that_die_together_are_worth_waiting_for() {
        let mut lives = Lives::default();
        for age in [100, 300, 1000, 3000] {
            lives.observed = Tick(NOW.0 - 100_000);
            lives.observe(&[aged(age)], NOW);
        }
        (0..10_000).for_each(|_| lives.died(&aged(4000), NOW));
        let rate = lives.rate(&aged(1000), NOW);
        assert!((1.0 / 6000.0..1.0 / 2000.0).contains(&rate), "about 1 / 3000: {rate}");
    }

    #[test]
    fn groups_are_separate_and_the_past_is_forgotten() {
        let mut lives = Lives::default();
        (0..100_000).for_each(|_| lives.died(&SegmentView { group: Some(1), ..aged(100) }, NOW));
        assert!(lives.groups[index(&SegmentView { group: Some(1), ..aged(100) })].all_deaths < MEMORY);
        assert_eq!(lives.groups[index(&aged(100))].all_deaths, 0.0);
    }

    #[test]
    fn cold_files_do_not_hide_that_others_die_at_one_rate() {
        let mut lives = Lives::default();
        // One death in 1000 block-ticks at each age; the old ones share their group with full segments, where nothing dies.
        for age in (8..30).map(|class| (begin(class) * 1.2) as u64) {
            let (dying, cold) =
                (SegmentView { capacity: 200, ..aged(age) }, SegmentView { capacity: 100, ..aged(age) });
            lives.observed = Tick(NOW.0 - 2000);
            let cold = if age > 1000 { vec![cold; 9] } else { Vec::new() };
            lives.observe(&[cold, vec![dying]].concat(), NOW);
            (0..200).for_each(|_| lives.died(&dying, NOW));
        }
        let rates = [100, 10_000].map(|age| lives.rate(&SegmentView { capacity: 200, ..aged(age) }, NOW));
        assert!(rates.iter().all(|rate| (0.0004..0.0015).contains(rate)), "{rates:?}");
    }
}
