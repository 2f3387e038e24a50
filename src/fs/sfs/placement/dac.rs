//! DAC, dynamic data clustering (Chiang, Lee, Chang: "Using data clustering to improve cleaning performance for flash
//! memory", Software: Practice and Experience 1999): a block rises one level at each host write, and sinks one at each
//! cleaning.

use super::{BlockView, Grouping, Tick};

/// Levels, from the coldest, 0, to the hottest.
pub const LEVELS: u8 = 6;

/// The level of a block is the group of its last write, so no further state is needed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dac;

impl Grouping for Dac {
    fn groups(&self) -> usize {
        usize::from(LEVELS)
    }

    /// New blocks start at level 0. So do blocks of no known level: those from a segment of several groups, or written
    /// under another policy.
    fn group_of(&mut self, block: &BlockView, _now: Tick) -> usize {
        let level = block.group.filter(|group| *group < LEVELS);
        let next = match (block.cleaned_from, level) {
            (_, None) => 0,
            (None, Some(level)) => (level + 1).min(LEVELS - 1),
            (Some(_), Some(level)) => level.saturating_sub(1),
        };
        usize::from(next)
    }
}

#[cfg(test)]
mod tests {
    use super::super::views::block;
    use super::*;

    fn written(group: Option<u8>) -> usize {
        Dac.group_of(&BlockView { group, ..block(1, 1) }, Tick(100))
    }

    fn cleaned(group: Option<u8>) -> usize {
        Dac.group_of(&BlockView { group, cleaned_from: Some(group.unwrap_or(u8::MAX)), ..block(1, 1) }, Tick(100))
    }

    #[test]
    fn a_new_block_begins_at_the_coldest_level() {
        assert_eq!(Dac.group_of(&block(0, 0), Tick(100)), 0);
    }

    #[test]
    fn a_write_raises_a_block_by_one_level_up_to_the_hottest() {
        assert_eq!((0..6).map(|level| written(Some(level))).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 5]);
    }

    #[test]
    fn a_cleaning_lowers_a_block_by_one_level_down_to_the_coldest() {
        assert_eq!((0..6).map(|level| cleaned(Some(level))).collect::<Vec<_>>(), [0, 0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_block_of_no_known_level_starts_at_the_coldest() {
        for group in [None, Some(6), Some(u8::MAX)] {
            assert_eq!((written(group), cleaned(group)), (0, 0));
        }
    }
}
