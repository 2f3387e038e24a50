//! Properties of every policy, for arbitrary input.

use super::cleaners::{CostBenefit, CostHotness, CostLifetime, Fifo, Greedy};
use super::lives::Lives;
use super::{BlockView, Cleaner, Grouping, Hint, History, SegmentView, Tick, VolumeShape, hotness, victim};
use crate::expression::parse_term;
use crate::fs::sfs::settings::SfsSettings;
use proptest::prelude::*;

fn policy(term: &str) -> Box<dyn Grouping> {
    let settings = parse_term(term).and_then(|term| SfsSettings::read(&term)).expect("a term of the station");
    settings.grouping.start(VolumeShape { seed: 5, segments: 64, segment_blocks: 16 })
}

#[test]
fn the_settings_select_the_policy() {
    let groups = |term| policy(term).groups();
    assert_eq!((groups("sfs:grouping=sfs"), groups("sfs:groups=7"), groups("sfs:groups=1")), (4, 7, 1));
    assert_eq!((groups("sfs"), groups("sfs:grouping=lifetime"), groups("sfs:grouping=midas")), (4, 4, 16));
    assert_eq!((groups("sfs:grouping=none"), groups("sfs:grouping=dac"), groups("sfs:grouping=sepbit")), (1, 6, 6));
    // The group of a new block distinguishes the two policies with six groups.
    let new = super::views::block(0, 0);
    let group = |term| policy(term).group_of(&new, Tick(9));
    assert_eq!((group("sfs:grouping=dac"), group("sfs:grouping=sepbit")), (0, 1));
}

/// Numbers, with small ones and the ends of the range preferred.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..100u64, Just(0), Just(u64::MAX), Just(u64::MAX - 1), any::<u64>()]
}

fn tick() -> impl Strategy<Value = Tick> {
    number().prop_map(Tick)
}

fn count() -> impl Strategy<Value = u32> {
    prop_oneof![0..100u32, Just(0), Just(u32::MAX), any::<u32>()]
}

fn history() -> impl Strategy<Value = History> {
    (number(), tick()).prop_map(|(writes, modified)| History { writes, modified })
}

prop_compose! {
    fn block()(block in history(), file in history(), group in any::<Option<u8>>(), cleaned_from in any::<Option<u8>>(), (inode, place) in (number(), number()), hint in 0..6u8, memory in any::<u8>()) -> BlockView {
        BlockView { block, file, group, cleaned_from, inode, place, hint: Hint::of_number(hint), memory }
    }
}

prop_compose! {
    fn segment()(
        (number, capacity, live) in (count(), count(), count()),
        (writes, modified, youngest, written) in (number(), number(), tick(), tick()),
        group in prop_oneof![Just(None), Just(Some(0)), any::<Option<u8>>()],
    ) -> SegmentView {
        SegmentView { number, capacity, live, writes, modified: modified.into(), youngest, written, group }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Look(Vec<SegmentView>),
    Write(BlockView),
    Collect(SegmentView),
    Remount(Option<Vec<f64>>),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        proptest::collection::vec(segment(), 0..12).prop_map(Step::Look),
        block().prop_map(Step::Write),
        segment().prop_map(Step::Collect),
        proptest::option::of(proptest::collection::vec(any::<f64>(), 0..20)).prop_map(Step::Remount),
    ]
}

proptest! {
    #[test]
    fn every_block_gets_one_of_the_groups(
        term in prop_oneof![
            Just("sfs:groups=1"), Just("sfs:groups=16"), Just("sfs:quantizer=equi-height"),
            Just("sfs:quantizer=equi-width"), Just("sfs:grouping=sepbit"), Just("sfs:grouping=dac"), Just("sfs:grouping=none"),
            Just("sfs:grouping=lifetime"), Just("sfs:grouping=midas"), Just("sfs:grouping=oracle"),
        ],
        steps in proptest::collection::vec((step(), tick()), 1..80),
    ) {
        let mut groups = policy(term);
        for (step, now) in steps {
            match step {
                Step::Look(segments) => {
                    groups.observe(&segments, now);
                    groups.victim_group(&mut segments.iter().copied(), now);
                }
                Step::Write(block) => {
                    let group = groups.group_of(&block, now);
                    prop_assert!(group < groups.groups());
                    groups.written(&block, Some(group as u8), now);
                }
                Step::Collect(segment) => groups.cleaning_begins(&segment, now),
                Step::Remount(garbage) => {
                    let memory = garbage.unwrap_or_else(|| groups.state());
                    groups = policy(term);
                    groups.restore(&memory);
                }
            }
            let memory = groups.state();
            prop_assert!(memory.len() <= 32 && memory.iter().all(|value| value.is_finite()), "{:?}", memory);
        }
    }

    #[test]
    fn hotness_is_always_finite(block in block(), segment in segment(), now in tick()) {
        for hotness in [hotness::of_block(&block, now), hotness::of_file(block.file, now), hotness::of_segment(&segment, now)] {
            prop_assert!(hotness.is_finite() && hotness >= 0.0);
        }
    }

    #[test]
    fn the_victim_always_frees_space(segments in proptest::collection::vec(segment(), 0..12), now in tick()) {
        let frees: Vec<&SegmentView> = segments.iter().filter(|segment| segment.live < segment.capacity).collect();
        let empty = frees.iter().filter(|segment| segment.live == 0).map(|segment| segment.number).min();
        let mut lives = Lives::default();
        lives.observe(&segments, now);
        for policy in [&CostHotness as &dyn Cleaner, &CostBenefit, &CostLifetime, &Fifo, &Greedy] {
            let found = victim::choose(policy, segments.iter().copied(), &lives, now);
            prop_assert_eq!(found.is_some(), !frees.is_empty());
            prop_assert!(found.is_none_or(|number| frees.iter().any(|segment| segment.number == number)));
            if empty.is_some() {
                prop_assert_eq!(found, empty);
            }
            prop_assert_eq!(found, victim::choose(policy, segments.iter().rev().copied(), &lives, now));
        }
    }
}
