//! MiDAS (Oh, Kim, Han, Kim, Lee, Noh: "MIDAS: Minimizing Write Amplification in
//! Log-Structured Systems through Adaptive Group Number and Size Configuration", FAST 2024): blocks move down a chain of
//! groups, one at each cleaning that they survive; a model sets the number of groups and their sizes.
//!
//! | group | blocks |
//! |---|---|
//! | 0 | host writes of hot blocks |
//! | 1 | other host writes |
//! | i + 1 | cleaned from group i; the last group keeps its own |
//!
//! | file | part of the paper |
//! |---|---|
//! | `mod` | the chain; the hot filter; quotas, which select the group to clean; merging |
//! | `intervals` | the distribution of update intervals, from sampled blocks |
//! | `model` | MCAM, the Markov-chain model of write amplification, and the search for the best groups |
//!
//! From the paper: all parts in these tables, the filter's two bits and its threshold, the share of sampled blocks, the unit
//! of intervals, the epoch of four capacities, first in, first out within a group (here the option `cleaner=fifo`; other
//! cleaners can be chosen).
//!
//! Ours, where a file system differs from a drive or the text that we have is silent: small volumes sample more blocks;
//! the first epochs are shorter, so that a new volume is not without groups for four capacities; survivors of the hot
//! group go to group 2; the bound of a model's error; segments of several groups, which a drive does not have, are cleaned
//! when they hold more dead blocks than the average.

mod intervals;
mod model;

use super::{BlockView, Grouping, GroupingSettings, MOST_GROUPS, SegmentView, Tick, VolumeShape};
use intervals::Intervals;
use model::{Groups, Load};

/// The value of a block's counter from which it is hot.
const HOT: u8 = 3;
/// The windows that a counter's stamp distinguishes.
const WINDOWS: u64 = 64;
/// An epoch, in capacities.
const EPOCH: u64 = 4;
/// The first epoch is this part of a capacity; each is twice as long as the one before, up to [`EPOCH`].
const FIRST_EPOCH: u64 = 8;
/// The difference between measured and modelled valid shares at which a group and all above it merge.
const WRONG: f64 = 0.2;
/// Victims of a group before its valid share is compared.
const VICTIMS: u32 = 16;

/// The grouping has no options.
#[derive(Clone, Copy, Debug)]
pub struct MidasSettings;

impl GroupingSettings for MidasSettings {
    fn start(&self, volume: VolumeShape) -> Box<dyn Grouping> {
        Box::new(Midas::new(volume))
    }
}

/// The chain of groups, and what sets its sizes.
#[derive(Clone, Debug)]
pub struct Midas {
    volume: VolumeShape,
    intervals: Intervals,
    /// Host writes since the volume was mounted.
    written: u64,
    /// Host writes to the hot group in this epoch, and all of this epoch.
    hot: u64,
    in_epoch: u64,
    epoch: u64,
    /// Live blocks at the last observation.
    live: u64,
    /// Blocks of all written segments when a victim was last selected: what the groups share. The cleaner's reserve is
    /// no part of it. 0 before the first cleaning.
    held: u64,
    groups: Groups,
    /// Segments that the hot group may have; 0 if it takes no blocks.
    hot_quota: f64,
    /// The sum of the valid shares of each group's victims, and their number.
    measured: [(f64, u32); MOST_GROUPS],
}

impl Midas {
    /// The grouping of a new volume: one group besides the hot one.
    pub fn new(volume: VolumeShape) -> Midas {
        Midas {
            volume,
            intervals: Intervals::new(volume),
            written: 0,
            hot: 0,
            in_epoch: 0,
            epoch: (volume.blocks() / FIRST_EPOCH).max(1),
            live: 0,
            held: 0,
            groups: Groups::one(),
            hot_quota: 0.0,
            measured: [(0.0, 0); MOST_GROUPS],
        }
    }

    /// The last group.
    fn last(&self) -> usize {
        self.groups.sizes.len() + 1
    }

    /// The number of the window of training: as many writes as the volume has blocks.
    fn window(&self) -> u64 {
        self.written / self.volume.blocks().max(1) % WINDOWS
    }

    /// The hot filter: the counter of a block after a write over it, in two bits. It grows if the block died before any
    /// cleaning, and falls if it was cleaned, and with each window that passed.
    fn counter(&self, block: &BlockView) -> u8 {
        let (counter, stamp) = (block.memory & 3, u64::from(block.memory >> 2));
        let passed = (self.window() + WINDOWS - stamp) % WINDOWS;
        let kept = counter.saturating_sub(passed.min(3) as u8);
        match block.group {
            _ if block.block.writes == 0 => 0,
            Some(0 | 1) => (kept + 1).min(3),
            Some(_) => kept.saturating_sub(1),
            None => kept,
        }
    }

    /// Ends an epoch: the model chooses number and sizes of groups for the observed load.
    fn configure(&mut self) {
        let hot_share = self.hot as f64 / self.in_epoch.max(1) as f64;
        let load = Load {
            survival: self.intervals.survival(),
            unit: self.intervals.unit(),
            hot_share,
            capacity: self.held as f64,
            live: self.live as f64,
        };
        // Without cleaning, there is nothing to configure.
        self.groups = if self.held > 0 { Groups::best(&load, MOST_GROUPS - 1) } else { Groups::one() };
        let first = self.groups.sizes.first().copied().unwrap_or(0.0);
        self.hot_quota = hot_share * first / (1.0 - hot_share).max(0.01) / f64::from(self.volume.segment_blocks);
        self.measured = [(0.0, 0); MOST_GROUPS];
        self.intervals.begin_epoch();
        (self.hot, self.in_epoch) = (0, 0);
        self.epoch = (2 * self.epoch).min(EPOCH * self.volume.blocks().max(1));
    }

    /// The segments that a group may have before it is cleaned.
    fn quota(&self, group: usize) -> f64 {
        match group {
            0 => self.hot_quota,
            group => self.groups.sizes[group - 1] / f64::from(self.volume.segment_blocks),
        }
    }
}

impl Grouping for Midas {
    fn groups(&self) -> usize {
        MOST_GROUPS
    }

    fn observe(&mut self, segments: &[SegmentView], _now: Tick) {
        self.live = segments.iter().map(|segment| u64::from(segment.live)).sum();
    }

    fn group_of(&mut self, block: &BlockView, _now: Tick) -> usize {
        match block.cleaned_from {
            None => usize::from(self.counter(block) < HOT || self.hot_quota == 0.0),
            Some(from) => (usize::from(from.clamp(1, MOST_GROUPS as u8)) + 1).min(self.last()),
        }
    }

    fn written(&mut self, block: &BlockView, _group: Option<u8>, _now: Tick) -> u8 {
        if block.cleaned_from.is_some() {
            return block.memory;
        }
        let counter = self.counter(block);
        self.hot += u64::from(counter >= HOT);
        self.written += 1;
        self.in_epoch += 1;
        self.intervals.written(block.inode, block.place, self.written);
        let memory = counter | (self.window() as u8) << 2;
        if self.in_epoch >= self.epoch {
            self.configure();
        }
        memory
    }

    /// The first group of the chain with more segments than its quota, else the last one.
    fn victim_group(&mut self, segments: &mut dyn Iterator<Item = SegmentView>, _now: Tick) -> Option<Option<u8>> {
        let mut counts = [0u32; MOST_GROUPS];
        // Dead blocks and all blocks: of segments of several groups, and of all segments.
        let (mut mixed, mut all) = ((0u64, 0u64), (0u64, 0u64));
        for segment in segments {
            let dead = u64::from(segment.capacity.saturating_sub(segment.live));
            let blocks = u64::from(segment.capacity);
            all = (all.0 + dead, all.1 + blocks);
            match segment.group.filter(|group| usize::from(*group) < MOST_GROUPS) {
                Some(group) => counts[usize::from(group)] += 1,
                None => mixed = (mixed.0 + dead, mixed.1 + blocks),
            }
        }
        self.held = all.1;
        if mixed.0 as f64 * all.1 as f64 > all.0 as f64 * mixed.1 as f64 {
            return Some(None);
        }
        let last = self.last();
        let over = (0..last).find(|group| f64::from(counts[*group]) > self.quota(*group));
        // Groups behind the last one are what earlier configurations or a merge left.
        let behind = (last..MOST_GROUPS).rev().find(|group| counts[*group] > 0);
        over.or(behind).map(|group| Some(group as u8))
    }

    /// Merges a group and all above it if the model does not hold for it; the last one merges with the one before it. The
    /// hot group ends if more of its victims' blocks are live than of those of the first.
    fn cleaning_begins(&mut self, segment: &SegmentView, _now: Tick) {
        let last = self.last();
        let Some(group) = segment.group.map(usize::from).filter(|group| *group <= last) else { return };
        let (valid, victims) = &mut self.measured[group];
        *valid += f64::from(segment.live) / f64::from(segment.capacity.max(1));
        *victims += 1;
        if *victims >= VICTIMS && last > 1 {
            let wrong = *valid / f64::from(*victims) - self.groups.valid[group.saturating_sub(1)];
            (*valid, *victims) = (0.0, 0);
            let is_wrong = if group == last { wrong > WRONG } else { wrong.abs() > WRONG };
            if group == 0 && wrong > 0.0 {
                // What the filter takes for hot does not die sooner than the rest.
                self.hot_quota = 0.0;
            } else if group > 0 && is_wrong {
                let kept = (group - 1).min(last - 2);
                self.groups.sizes.truncate(kept);
                self.groups.valid.truncate(kept);
                self.groups.valid.push(1.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::views::{block, segment};
    use super::*;

    const VOLUME: VolumeShape = VolumeShape { seed: 1, segments: 256, segment_blocks: 64 };

    fn cleaned(midas: &mut Midas, from: u8) -> usize {
        midas.group_of(&BlockView { cleaned_from: Some(from), ..block(1, 1) }, Tick(9))
    }

    #[test]
    fn a_block_that_dies_young_three_times_is_hot_until_it_is_cleaned_or_a_window_passes() {
        let mut midas = Midas::new(VOLUME);
        midas.hot_quota = 1.0;
        let mut view = block(0, 0);
        let mut groups = Vec::new();
        for _ in 0..5 {
            let group = midas.group_of(&view, Tick(1));
            view.memory = midas.written(&view, Some(group as u8), Tick(1));
            (view.block.writes, view.group) = (view.block.writes + 1, Some(group as u8));
            groups.push(group);
        }
        assert_eq!(groups, [1, 1, 1, 0, 0]);
        assert_eq!(midas.group_of(&BlockView { group: Some(2), ..view }, Tick(1)), 1, "it was cleaned");
        midas.written += 2 * VOLUME.blocks();
        assert_eq!(midas.group_of(&view, Tick(1)), 1, "two windows passed");
    }

    #[test]
    fn survivors_move_down_the_chain_to_its_last_group() {
        let mut midas = Midas::new(VOLUME);
        assert_eq!([0, 1, 2, 255].map(|from| cleaned(&mut midas, from)), [1; 4], "one group");
        midas.groups = Groups { sizes: vec![640.0; 3], valid: vec![0.5; 4], amplification: 2.0 };
        assert_eq!([0, 1, 2, 3, 4, 9, 255].map(|from| cleaned(&mut midas, from)), [2, 2, 3, 4, 4, 4, 4]);
    }

    #[test]
    fn the_group_over_its_quota_is_cleaned_else_the_last() {
        let mut midas = Midas::new(VOLUME);
        midas.groups = Groups { sizes: vec![640.0; 2], valid: vec![0.5; 3], amplification: 2.0 };
        let of = |group, count| (0..count).map(move |number| SegmentView { group, ..segment(number, 50) });
        let mut chosen = |first, second, third| {
            let mut segments = of(Some(1), first).chain(of(Some(2), second)).chain(of(Some(3), third));
            midas.victim_group(&mut segments, Tick(9))
        };
        assert_eq!(
            (chosen(11, 11, 5), chosen(10, 11, 5), chosen(10, 10, 5)),
            (Some(Some(1)), Some(Some(2)), Some(Some(3)))
        );
        let mixed = SegmentView { group: None, ..segment(9, 10) };
        assert_eq!(midas.victim_group(&mut of(Some(1), 20).chain([mixed]), Tick(9)), Some(None), "mostly dead");
    }

    #[test]
    fn groups_merge_where_the_model_is_wrong() {
        let mut midas = Midas::new(VOLUME);
        midas.groups = Groups { sizes: vec![640.0; 3], valid: vec![0.5; 4], amplification: 2.0 };
        let victim = |group, live| SegmentView { group: Some(group), capacity: 100, ..segment(0, live) };
        (0..100).for_each(|_| midas.cleaning_begins(&victim(1, 45), Tick(9)));
        assert_eq!(midas.last(), 4);
        (0..100).for_each(|_| midas.cleaning_begins(&victim(2, 90), Tick(9)));
        assert_eq!(midas.last(), 2);
    }

    /// Blocks 0 to 999 get nine tenths of the writes, 12,000 others the rest, each in turn.
    #[test]
    fn the_model_separates_what_dies_soon() {
        let mut midas = Midas::new(VOLUME);
        midas.observe(&(0..200).map(|number| segment(number, 65)).collect::<Vec<_>>(), Tick(1));
        midas.held = VOLUME.blocks();
        for at in 0..4 * VOLUME.blocks() {
            let place = if at % 10 == 0 { 1000 + at / 10 % 12_000 } else { (at - at / 10) % 1000 };
            midas.written(&BlockView { place, group: Some(2), ..block(1, 1) }, Some(1), Tick(at));
        }
        assert!(midas.last() >= 2, "{:?}", midas.groups);
        // Nine tenths of the blocks of the first group die within 1,112 writes, and the others do not.
        assert!((1000.0..4500.0).contains(&midas.groups.sizes[0]), "{:?}", midas.groups);
        assert!((0.03..0.2).contains(&midas.groups.valid[0]), "{:?}", midas.groups);
    }
}
