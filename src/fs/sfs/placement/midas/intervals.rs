//! The distribution of update intervals: for sampled blocks, the number of host writes between two writes of the same
//! block.

use super::VolumeShape;
use rustc_hash::FxHashMap;

/// The share of blocks that are sampled.
const SAMPLED: f64 = 0.01;
/// Blocks of the volume that are sampled at least: a hundredth of a small one says too little.
const LEAST: f64 = 16_384.0;
/// Units of intervals per segment.
const PER_SEGMENT: u64 = 4;

/// The intervals of one epoch.
#[derive(Clone, Debug)]
pub struct Intervals {
    /// The unit, in host writes.
    unit: u64,
    /// Blocks whose hash is below it are sampled.
    sampled: u64,
    /// The last write of each sampled block.
    last: FxHashMap<(u64, u64), u64>,
    /// Intervals by length in units.
    counts: Vec<u32>,
    now: u64,
    began: u64,
}

impl Intervals {
    /// None is known yet.
    pub fn new(volume: VolumeShape) -> Intervals {
        let share = (LEAST / volume.blocks().max(1) as f64).clamp(SAMPLED, 1.0);
        Intervals {
            unit: (u64::from(volume.segment_blocks) / PER_SEGMENT).max(1),
            sampled: (share * u64::MAX as f64) as u64,
            last: FxHashMap::default(),
            counts: Vec::new(),
            now: 0,
            began: 0,
        }
    }

    /// Host writes per unit.
    pub fn unit(&self) -> f64 {
        self.unit as f64
    }

    /// Counts host write number `now`.
    pub fn written(&mut self, inode: u64, place: u64, now: u64) {
        self.now = now;
        let mixed = (inode.rotate_left(32) ^ place).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        if (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) > self.sampled {
            return;
        }
        if let Some(before) = self.last.insert((inode, place), now) {
            let units = (now.saturating_sub(before) / self.unit) as usize;
            if self.counts.len() <= units {
                self.counts.resize(units + 1, 0);
            }
            self.counts[units] += 1;
        }
    }

    /// The share of written blocks that live for longer than each number of units (Kaplan and Meier's estimator: blocks not
    /// written again yet count as alive for as long as they were observed).
    pub fn survival(&self) -> Vec<f64> {
        let observed = self.last.values().map(|last| self.now.saturating_sub(*last) / self.unit);
        let mut still = vec![0u64; self.counts.len()];
        let mut at_risk = self.counts.iter().map(|count| u64::from(*count)).sum::<u64>();
        for units in observed {
            at_risk += 1;
            if let Some(count) = still.get_mut(units as usize) {
                *count += 1;
            }
        }
        let mut alive = 1.0;
        let ended = self.counts.iter().zip(still);
        ended
            .map(|(died, censored)| {
                alive *= 1.0 - f64::from(*died) / at_risk.max(1) as f64;
                at_risk = at_risk.saturating_sub(u64::from(*died) + censored);
                alive
            })
            .collect()
    }

    /// Forgets the intervals, and blocks that were not written in the epoch that ends.
    pub fn begin_epoch(&mut self) {
        let began = self.began;
        self.last.retain(|_, last| *last >= began);
        self.began = self.now;
        self.counts.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survival_follows_the_intervals() {
        let mut intervals = Intervals::new(VolumeShape { seed: 1, segments: 64, segment_blocks: 64 });
        // Every second write is of block 0 to 9 in turn: an interval of 20. The others are of new blocks.
        for at in 0..4000u64 {
            let place = if at % 2 == 0 { at / 2 % 10 } else { 1000 + at };
            intervals.written(1, place, at);
        }
        let survival = intervals.survival();
        assert_eq!(survival.len(), 2, "units of 16");
        assert_eq!(survival[0], 1.0);
        assert!((0.48..0.52).contains(&survival[1]), "{survival:?}");
        intervals.begin_epoch();
        assert!(intervals.survival().is_empty());
    }
}
