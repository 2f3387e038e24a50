//! The bound: blocks are grouped by the time at which they will die, which only a simulation knows.
//!
//! Class k holds blocks with at least 2^k units of life left, and less than twice as many; the first and the last class are
//! open. A unit is a 256th of the volume. With classes of one segment each, as the oracle FK of SepBIT's paper has, six or
//! sixteen classes reach no further than as many segments, and everything else is mixed: measured on sfs, that oracle
//! copies more than some policies that know nothing.

use super::{BlockView, Grouping, GroupingSettings, Tick, VolumeShape};
use std::sync::Arc;

/// Number of classes.
const CLASSES: usize = 8;
/// The parts of a volume: blocks that die while the next part is written are not distinguished.
const FINEST: u64 = 256;

/// The future of a file: for each of its blocks the times at which it will be overwritten or discarded, ascending.
///
/// Times are in ticks that count written blocks, as [`Tick`]s do without a timing model, from an origin.
#[derive(Clone, Debug)]
pub struct Future {
    /// The tick before the first write of the file.
    pub origin: Tick,
    /// For each block its times, in blocks of the file written since the origin.
    pub deaths: Arc<Vec<Vec<u32>>>,
}

impl Future {
    /// The ticks from `now` to the next death of a block; `None` if it never dies.
    fn left(&self, place: u64, now: Tick) -> Option<u64> {
        let passed = now.0.saturating_sub(self.origin.0);
        let times = self.deaths.get(place as usize)?;
        let next = times.get(times.partition_point(|time| u64::from(*time) <= passed))?;
        Some(u64::from(*next) - passed)
    }
}

/// The grouping has no options.
#[derive(Clone, Copy, Debug)]
pub struct OracleSettings;

impl GroupingSettings for OracleSettings {
    fn start(&self, volume: VolumeShape) -> Box<dyn Grouping> {
        Box::new(Oracle { unit: (volume.blocks() / FINEST).max(1), known: None })
    }

    fn needs_future(&self) -> bool {
        true
    }
}

/// The grouping by the true time of death.
#[derive(Clone, Debug)]
pub struct Oracle {
    /// In ticks.
    unit: u64,
    /// A file and its future. The blocks of other files never die.
    known: Option<(u64, Future)>,
}

impl Grouping for Oracle {
    fn groups(&self) -> usize {
        CLASSES
    }

    fn group_of(&mut self, block: &BlockView, now: Tick) -> usize {
        let future = self.known.as_ref().filter(|(inode, _)| *inode == block.inode).map(|(_, future)| future);
        let left = future.and_then(|future| future.left(block.place, now));
        left.map_or(CLASSES - 1, |left| ((left / self.unit).max(1).ilog2() as usize).min(CLASSES - 1))
    }

    fn foresee(&mut self, inode: u64, future: Future) {
        self.known = Some((inode, future));
    }
}

#[cfg(test)]
mod tests {
    use super::super::views::block;
    use super::*;

    #[test]
    fn a_block_is_grouped_by_the_time_that_it_has_left() {
        let volume = VolumeShape { seed: 1, segments: 256, segment_blocks: 100 };
        let mut oracle = OracleSettings.start(volume);
        let view = |place| BlockView { place, ..block(1, 1) };
        assert_eq!(oracle.group_of(&view(0), Tick(1000)), 7, "nothing is known yet");
        let deaths = Arc::new(vec![vec![5, 150, 2000], vec![], vec![450], vec![90_000]]);
        oracle.foresee(1, Future { origin: Tick(1000), deaths });
        let mut at = |place, now| oracle.group_of(&view(place), Tick(now));
        assert_eq!((at(0, 1000), at(0, 1005), at(0, 1150), at(0, 3000)), (0, 0, 4, 7), "5, 145, 1850 units, never");
        assert_eq!((at(1, 1000), at(2, 1000), at(3, 1000), at(9, 1000)), (7, 2, 7, 7));
        assert_eq!(oracle.group_of(&BlockView { inode: 2, ..view(2) }, Tick(1000)), 7, "another file");
    }
}
