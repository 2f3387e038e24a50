//! Placement policies: the group of a written block, and the victims of cleaning.
//!
//! | file | content |
//! |---|---|
//! | [`hotness`] | hotness of blocks, files and segments (section 3.3) |
//! | [`quantize`] | the centres of the groups, from the hotness of all segments (section 3.4) |
//! | [`by_hotness`] | SFS's grouping: the nearest centre |
//! | [`sepbit`], [`dac`], [`one`] | other groupings |
//! | [`victim`], [`cleaners`] | victim selection (section 3.6) |
//! | [`table`] | the policies' names, and readers of their options |
//!
//! No function here fails, whatever its input.

pub mod by_hotness;
pub mod cleaners;
pub mod dac;
pub mod hotness;
pub mod one;
pub mod quantize;
pub mod sepbit;
pub mod table;
pub mod victim;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod views;
#[cfg(test)]
mod write_cost;

use std::fmt::Debug;

/// Maximum number of groups: the format stores a group in this range.
pub const MOST_GROUPS: usize = 16;

/// A time on the clock of hotness: microseconds, or blocks written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tick(pub u64);

/// Past writes of a block or a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Writes since its creation: W of section 3.3. 0 for a new block.
    pub writes: u64,
    /// The last write: T^m of section 3.3.
    pub modified: Tick,
}

/// A block to be written.
#[derive(Clone, Copy, Debug)]
pub struct BlockView {
    /// The block's history, before this write.
    pub block: History,
    /// The file's history.
    pub file: History,
    /// The group of the last write; `None` if never written.
    pub group: Option<u8>,
    /// For a cleaned block, the group of its segment; `None` for a host write.
    pub cleaned_from: Option<u8>,
}

/// A written segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SegmentView {
    /// The segment's number.
    pub number: u32,
    /// Maximum blocks beside the summary.
    pub capacity: u32,
    /// Live blocks.
    pub live: u32,
    /// Sum of the write counts of its live blocks.
    pub writes: u64,
    /// Sum of the modification times of its live blocks.
    pub modified: u128,
    /// The latest modification time of its blocks.
    pub youngest: Tick,
    /// The time of its writing.
    pub written: Tick,
    /// The group of its blocks; `None` if of several groups.
    pub group: Option<u8>,
}

/// A grouping: the policy that assigns blocks to groups.
pub trait Grouping: Send {
    /// Number of groups, at least 1.
    fn groups(&self) -> usize;

    /// Called before a writeback with all segments that hold live blocks.
    fn observe(&mut self, _segments: &[SegmentView], _now: Tick) {}

    /// The group of a block.
    fn group_of(&mut self, block: &BlockView, now: Tick) -> usize;

    /// The groups of the blocks of a writeback, in their order. A policy with a high cost for each call takes them together.
    fn groups_of(&mut self, blocks: &[BlockView], now: Tick) -> Vec<usize> {
        blocks.iter().map(|block| self.group_of(block, now)).collect()
    }

    /// Called when cleaning of a segment begins.
    fn cleaning_begins(&mut self, _segment: &SegmentView, _now: Tick) {}

    /// The groups' hotness in writes per tick, ascending; empty if the policy does not use hotness.
    fn centres(&self) -> &[f64] {
        &[]
    }

    /// State to store in the superblock for the next mount: at most 32 numbers.
    fn state(&self) -> Vec<f64> {
        Vec::new()
    }

    /// Restores the [`state`](Grouping::state) of an earlier mount. Invalid state is ignored.
    fn restore(&mut self, _memory: &[f64]) {}
}

/// The options of a grouping, which create one for each mounted volume.
pub trait GroupingSettings: Debug + Send + Sync {
    /// A grouping in its initial state. The seed is that of its random choices.
    fn start(&self, seed: u64) -> Box<dyn Grouping>;
}

/// A grouping without options and seed is its own settings.
impl<G: Grouping + Clone + Debug + Sync + 'static> GroupingSettings for G {
    fn start(&self, _seed: u64) -> Box<dyn Grouping> {
        Box::new(self.clone())
    }
}

/// A cleaner: the policy that selects victims. The victim is the highest-scoring segment among those that would free
/// space.
pub trait Cleaner: Debug + Send + Sync {
    /// The score of a segment that is not full. It need not be finite. Segments without live blocks are not scored.
    fn score(&self, segment: &SegmentView, now: Tick) -> f64;

    /// The scores of all candidates, in their order. A policy with a high cost for each call takes them together.
    fn scores(&self, segments: &[SegmentView], now: Tick) -> Vec<f64> {
        segments.iter().map(|segment| self.score(segment, now)).collect()
    }
}
