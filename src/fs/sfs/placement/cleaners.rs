//! Scores for victim selection (section 3.6); u is the share of a segment's blocks that are live.
//!
//! | policy | score |
//! |---|---|
//! | cost-hotness | (1 - u) / (2 u H), with H the segment's hotness |
//! | cost-benefit | (1 - u) / (2 u) age, with the age of its youngest block |
//! | greedy | the fewer live blocks, the higher |

use super::{Cleaner, SegmentView, Tick, hotness};

/// SFS's policy: benefit over cost, where cold segments score higher. Infinite for a segment of hotness 0.
#[derive(Clone, Copy, Debug)]
pub struct CostHotness;

impl Cleaner for CostHotness {
    fn score(&self, segment: &SegmentView, now: Tick) -> f64 {
        gain(segment) / hotness::of_segment(segment, now)
    }
}

/// Sprite LFS's policy: benefit over cost, where old segments score higher.
#[derive(Clone, Copy, Debug)]
pub struct CostBenefit;

impl Cleaner for CostBenefit {
    fn score(&self, segment: &SegmentView, now: Tick) -> f64 {
        gain(segment) * hotness::age(segment.youngest, now) as f64
    }
}

/// Fewest live blocks first.
#[derive(Clone, Copy, Debug)]
pub struct Greedy;

impl Cleaner for Greedy {
    fn score(&self, segment: &SegmentView, _now: Tick) -> f64 {
        -f64::from(segment.live)
    }
}

/// Benefit over cost, (1 - u) / 2u, in blocks.
fn gain(segment: &SegmentView) -> f64 {
    f64::from(segment.capacity - segment.live) / (2.0 * f64::from(segment.live))
}
