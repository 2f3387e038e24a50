//! One group: blocks are written in order of arrival, as in a log-structured file system without grouping.

use super::{BlockView, Grouping, Tick};

/// Puts all blocks into one group.
#[derive(Clone, Copy, Debug, Default)]
pub struct One;

impl Grouping for One {
    fn groups(&self) -> usize {
        1
    }

    fn group_of(&mut self, _block: &BlockView, _now: Tick) -> usize {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::super::views::block;
    use super::*;

    #[test]
    fn hot_and_cold_share_the_group() {
        assert_eq!(One.groups(), 1);
        assert_eq!((One.group_of(&block(1, 1), Tick(1000)), One.group_of(&block(900, 999), Tick(1000))), (0, 0));
    }
}
