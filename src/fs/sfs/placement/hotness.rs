//! Hotness: writes divided by age, an estimate of the likelihood of further writes (section 3.3).
//!
//! The unit is writes per tick. Ages below one tick, including negative ones, count as one tick: a block written in the
//! current tick is hot, but finite. No input gives an infinite value or NaN.

use super::{BlockView, History, SegmentView, Tick};

/// T - T^m in ticks, at least 1.
#[inline]
pub fn age(modified: Tick, now: Tick) -> u64 {
    now.0.saturating_sub(modified.0).max(1)
}

/// Hotness of a file: Hf = Wf / (T - T^m_f).
#[inline]
pub fn of_file(file: History, now: Tick) -> f64 {
    file.writes as f64 / age(file.modified, now) as f64
}

/// Hotness of a block: Hb = Wb / (T - T^m_b), or that of its file, Hf, if Wb = 0.
#[inline]
pub fn of_block(view: &BlockView, now: Tick) -> f64 {
    let history = if view.block.writes > 0 { view.block } else { view.file };
    of_file(history, now)
}

/// Hotness of a segment, close to the mean hotness of its N live blocks: Hs = sum(Wb) / (N T - sum(T^m_b)). 0 without
/// live blocks.
///
/// The sum of the ages is a small difference of large numbers, so it is computed in integers; it is at least N ticks.
#[inline]
pub fn of_segment(segment: &SegmentView, now: Tick) -> f64 {
    if segment.live == 0 {
        return 0.0;
    }
    let live = u128::from(segment.live);
    let ages = (live * u128::from(now.0)).saturating_sub(segment.modified).max(live);
    segment.writes as f64 / ages as f64
}

#[cfg(test)]
mod tests {
    use super::super::views::{block, segment};
    use super::*;

    #[test]
    fn hotness_grows_with_writes_and_falls_with_age() {
        assert_eq!(of_block(&block(6, 70), Tick(100)), 0.2);
        assert_eq!(of_block(&block(6, 99), Tick(100)), 6.0);
        assert_eq!(of_block(&block(12, 70), Tick(100)), 0.4);
    }

    #[test]
    fn a_new_block_has_the_hotness_of_its_file() {
        let new = BlockView { file: History { writes: 40, modified: Tick(20) }, ..block(0, 90) };
        assert_eq!(of_block(&new, Tick(100)), 0.5);
        assert_eq!(of_file(new.file, Tick(100)), 0.5);
    }

    #[test]
    fn the_first_block_of_a_new_file_has_hotness_zero() {
        assert_eq!(of_block(&block(0, 0), Tick(100)), 0.0);
    }

    #[test]
    fn a_written_block_ignores_the_hotness_of_its_file() {
        let view = BlockView { file: History { writes: 1000, modified: Tick(99) }, ..block(1, 50) };
        assert_eq!(of_block(&view, Tick(100)), 0.02);
    }

    #[test]
    fn a_zero_or_negative_age_counts_as_one_tick() {
        assert_eq!(of_block(&block(3, 100), Tick(100)), 3.0);
        assert_eq!(of_block(&block(3, 500), Tick(100)), 3.0);
        assert_eq!(of_segment(&SegmentView { writes: 8, modified: 400, ..segment(0, 4) }, Tick(100)), 2.0);
        assert_eq!(of_segment(&SegmentView { writes: 8, modified: 900, ..segment(0, 4) }, Tick(100)), 2.0);
    }

    #[test]
    fn the_hotness_of_a_segment_is_the_sum_of_writes_over_the_sum_of_ages() {
        // Blocks with 1, 2 and 9 writes, and ages 10, 20 and 30: 12 writes in 60 ticks.
        let view = SegmentView { writes: 12, modified: 90 + 80 + 70, ..segment(0, 3) };
        assert_eq!(of_segment(&view, Tick(100)), 0.2);
    }

    #[test]
    fn a_segment_without_live_blocks_is_cold() {
        assert_eq!(of_segment(&segment(0, 0), Tick(100)), 0.0);
    }

    #[test]
    fn a_segment_of_equal_blocks_has_the_hotness_of_each() {
        let view = SegmentView { writes: 5 * 64, modified: 60 * 64, ..segment(0, 64) };
        assert_eq!(of_segment(&view, Tick(100)), of_block(&block(5, 60), Tick(100)));
    }

    #[test]
    fn ages_are_exact_to_a_tick_after_a_thousand_years_of_microseconds() {
        // 8192 blocks, of which only the ages differ: in floating point, N T alone would be rounded by some thousand
        // ticks.
        let now = 1000 * 365 * 86_400 * 1_000_000;
        let of_age = |age: u64| of_segment(&aged(now, age), Tick(now));
        fn aged(now: u64, age: u64) -> SegmentView {
            SegmentView { writes: 512, modified: u128::from(now - age) * 512, ..segment(0, 512) }
        }
        assert_eq!((of_age(1), of_age(2), of_age(4)), (1.0, 0.5, 0.25));
    }
}
