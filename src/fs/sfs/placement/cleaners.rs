//! Scores for victim selection (section 3.6); u is the share of a segment's blocks that are live.
//!
//! | policy | score |
//! |---|---|
//! | cost-hotness | (1 - u) / (2 u H), with H the segment's hotness |
//! | cost-benefit | (1 - u) / (2 u) age, with the age of its youngest block |
//! | cost-lifetime | (1 - u)^2 / (u r), with r the rate at which its live blocks are expected to die |
//! | greedy | the fewer live blocks, the higher |
//! | fifo | the earlier it was written, the higher |

use super::lives::Lives;
use super::{Cleaner, SegmentView, Tick, hotness};

/// SFS's policy: benefit over cost, where cold segments score higher. Infinite for a segment of hotness 0.
#[derive(Clone, Copy, Debug)]
pub struct CostHotness;

impl Cleaner for CostHotness {
    fn score(&self, segment: &SegmentView, _lives: &Lives, now: Tick) -> f64 {
        gain(segment) / hotness::of_segment(segment, now)
    }
}

/// Sprite LFS's policy: benefit over cost, where old segments score higher.
#[derive(Clone, Copy, Debug)]
pub struct CostBenefit;

impl Cleaner for CostBenefit {
    fn score(&self, segment: &SegmentView, _lives: &Lives, now: Tick) -> f64 {
        gain(segment) * hotness::age(segment.youngest, now) as f64
    }
}

/// Our policy: the segment whose cleaning would become cheaper most slowly, if it waited.
///
/// To free a block by cleaning a segment with the live share u costs c = 2 / (1 - u) blocks read and written. While the
/// segment waits, its live blocks die at a rate r each, and c falls by dc/dt = -2 u r / (1 - u)^2: the score is the
/// inverse, as in MDC (Lomet, Luo: "Efficiently reclaiming space in a log structured store", ICDE 2021), which
/// estimates r by the intervals of a segment's updates. Here r is learned from the blocks of the same group and age
/// that died ([`Lives::rate`]). Unlike (1 - u) / (2 u H) of cost-hotness, a nearly full segment is not cleaned only for
/// being cold: r is bounded by what was observed, and emptiness counts twice.
#[derive(Clone, Copy, Debug)]
pub struct CostLifetime;

impl Cleaner for CostLifetime {
    fn score(&self, segment: &SegmentView, lives: &Lives, now: Tick) -> f64 {
        let dead = f64::from(segment.capacity.saturating_sub(segment.live));
        gain(segment) * dead / lives.rate(segment, now)
    }
}

/// First in, first out: the segment written first, as NILFS2 and MiDAS (within a group) select.
#[derive(Clone, Copy, Debug)]
pub struct Fifo;

impl Cleaner for Fifo {
    fn score(&self, segment: &SegmentView, _lives: &Lives, _now: Tick) -> f64 {
        -(segment.written.0 as f64)
    }
}

/// Fewest live blocks first.
#[derive(Clone, Copy, Debug)]
pub struct Greedy;

impl Cleaner for Greedy {
    fn score(&self, segment: &SegmentView, _lives: &Lives, _now: Tick) -> f64 {
        -f64::from(segment.live)
    }
}

/// Benefit over cost, (1 - u) / 2u, in blocks.
fn gain(segment: &SegmentView) -> f64 {
    f64::from(segment.capacity - segment.live) / (2.0 * f64::from(segment.live))
}
