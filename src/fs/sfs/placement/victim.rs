//! Victim selection (section 3.6).
//!
//! The victim is the segment with the highest score of a [`Cleaner`], among those that would free space.

use super::lives::Lives;
use super::{Cleaner, SegmentView, Tick};
use std::cmp::Ordering;

/// The number of the next victim.
///
/// A segment without live blocks precedes all others, since cleaning it costs nothing. A full segment is never chosen,
/// since it frees nothing: `None` if all are full. Ties go to the segment with fewer live blocks, then to the lowest
/// number, whatever the order of the input.
pub fn choose(
    policy: &dyn Cleaner,
    segments: impl Iterator<Item = SegmentView>,
    lives: &Lives,
    now: Tick,
) -> Option<u32> {
    let candidates: Vec<SegmentView> = segments.filter(|segment| segment.live < segment.capacity).collect();
    let empty = candidates.iter().filter(|segment| segment.live == 0).map(|segment| segment.number).min();
    empty.or_else(|| {
        let scores = policy.scores(&candidates, lives, now);
        assert_eq!(scores.len(), candidates.len(), "each candidate has a score");
        candidates.iter().zip(scores).min_by(|a, b| better_first(*a, *b)).map(|(segment, _)| segment.number)
    })
}

fn better_first((a, score_a): (&SegmentView, f64), (b, score_b): (&SegmentView, f64)) -> Ordering {
    score_b.total_cmp(&score_a).then_with(|| (a.live, a.number).cmp(&(b.live, b.number)))
}

#[cfg(test)]
mod tests {
    use super::super::cleaners::{CostBenefit, CostHotness, Greedy};
    use super::super::views::segment;
    use super::*;

    const NOW: Tick = Tick(1000);
    const POLICIES: [&dyn Cleaner; 3] = [&CostHotness, &CostBenefit, &Greedy];

    /// A segment of 100 blocks, whose live ones were written `writes` times and last at `modified`.
    fn of(number: u32, live: u32, writes: u64, modified: u64) -> SegmentView {
        let blocks = u64::from(live);
        SegmentView {
            writes: writes * blocks,
            modified: (modified * blocks).into(),
            youngest: Tick(modified),
            ..segment(number, live)
        }
    }

    fn chosen(segments: &[SegmentView]) -> [Option<u32>; 3] {
        POLICIES.map(|policy| choose(policy, segments.iter().copied(), &Lives::default(), NOW))
    }

    #[test]
    fn scores_match_the_papers() {
        // u = 0.2, and 3 writes in 100 ticks.
        let view = of(0, 20, 3, 900);
        assert_eq!(CostHotness.score(&view, &Lives::default(), NOW), 0.8 / 0.4 / 0.03);
        assert_eq!(CostBenefit.score(&view, &Lives::default(), NOW), 0.8 / 0.4 * 100.0);
    }

    #[test]
    fn without_segments_none_is_chosen() {
        assert_eq!(chosen(&[]), [None; 3]);
    }

    #[test]
    fn a_full_segment_is_never_chosen() {
        assert_eq!(chosen(&[of(1, 100, 1, 1)]), [None; 3]);
        assert_eq!(chosen(&[of(1, 100, 1, 1), of(2, 99, 500, 999)]), [Some(2); 3]);
        assert_eq!(chosen(&[SegmentView { capacity: 0, ..of(1, 0, 0, 0) }]), [None; 3]);
    }

    #[test]
    fn a_segment_without_live_blocks_is_the_best() {
        // Segment 1 has hotness 0, so its score is infinite, too.
        assert_eq!(chosen(&[of(1, 1, 0, 1), of(9, 0, 0, 0), of(2, 1, 1, 1)]), [Some(9); 3]);
    }

    #[test]
    fn ties_go_to_the_lowest_number_in_any_order() {
        assert_eq!(chosen(&[of(7, 30, 2, 500), of(4, 30, 2, 500), of(6, 30, 2, 500)]), [Some(4); 3]);
        assert_eq!(chosen(&[of(4, 30, 2, 500), of(6, 30, 2, 500), of(7, 30, 2, 500)]), [Some(4); 3]);
        assert_eq!(chosen(&[of(8, 0, 0, 0), of(5, 0, 0, 0)]), [Some(5); 3]);
    }

    #[test]
    fn among_segments_of_hotness_zero_the_emptiest_is_chosen() {
        assert_eq!(chosen(&[of(1, 50, 0, 500), of(2, 10, 0, 500)])[0], Some(2));
    }

    #[test]
    fn among_equally_hot_and_old_segments_all_policies_choose_the_emptiest() {
        assert_eq!(chosen(&[of(1, 60, 3, 500), of(2, 20, 3, 500), of(3, 40, 3, 500)]), [Some(2); 3]);
    }

    #[test]
    fn among_equally_full_segments_the_coldest_is_chosen() {
        assert_eq!(chosen(&[of(1, 30, 5, 990), of(2, 30, 1, 100)]), [Some(2), Some(2), Some(1)]);
    }

    #[test]
    fn three_policies_choose_three_segments() {
        // 1: the fewest live blocks, but hot. 2: old, but written often. 3: younger, but written only once.
        // cost-hotness: 2.0/0.5 = 4; 0.75/0.1 = 7.5; 0.75/(1/600) = 450. cost-benefit: 2.0*20 = 40; 0.75*900 = 675; 0.75*600 = 450.
        let segments = [of(1, 20, 10, 980), of(2, 40, 90, 100), of(3, 40, 1, 400)];
        assert_eq!(chosen(&segments), [Some(3), Some(2), Some(1)]);
    }

    #[test]
    fn cost_benefit_sees_only_the_youngest_block_where_cost_hotness_sees_all() {
        // Segment 2 is old, except for one block written just now.
        let touched = SegmentView { youngest: Tick(999), ..of(2, 40, 1, 100) };
        assert_eq!(chosen(&[of(1, 40, 1, 700), touched])[..2], [Some(2), Some(1)]);
    }

    #[test]
    fn cost_benefit_handles_an_age_of_zero() {
        let segments = [of(1, 60, 1, 1000), of(2, 50, 1, 1000)];
        assert_eq!(choose(&CostBenefit, segments.into_iter(), &Lives::default(), NOW), Some(2));
    }
}
