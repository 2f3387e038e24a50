//! Placement policies: the group of a written block, and the victims of cleaning.
//!
//! | file | content |
//! |---|---|
//! | [`hotness`] | hotness of blocks, files and segments (section 3.3) |
//! | `quantize` | the centres of the groups, from the hotness of all segments (section 3.4) |
//! | [`by_hotness`] | SFS's grouping: the nearest centre |
//! | [`lives`] | how long blocks of each group live, learned from those that died |
//! | [`lifetime`] | our grouping: by the lifetime expected of a block |
//! | [`sepbit`], [`dac`], [`midas`], [`one`] | other groupings |
//! | [`oracle`] | the bound: by the time at which a block will die |
//! | [`hint`] | what applications and the names of files say of lifetimes |
//! | [`victim`], [`cleaners`] | victim selection (section 3.6) |
//! | [`table`] | the policies' names, and readers of their options |
//!
//! No function here fails, whatever its input.

pub mod by_hotness;
pub mod cleaners;
pub mod dac;
pub mod hint;
pub mod hotness;
pub mod lifetime;
pub mod lives;
pub mod midas;
pub mod one;
pub mod oracle;
mod quantize;
pub mod sepbit;
pub mod table;
pub mod victim;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod views;
#[cfg(test)]
mod write_cost;

pub use hint::Hint;
use lives::Lives;
pub use oracle::Future;
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
    /// The inode of its file.
    pub inode: u64,
    /// Its index in the file.
    pub place: u64,
    /// The lifetime that the application or the file's name states.
    pub hint: Hint,
    /// The byte that the grouping keeps with the block: what [`Grouping::written`] returned at its last write. 0 for a
    /// new block.
    pub memory: u8,
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

/// A volume, for groupings that measure lifetimes by its size.
#[derive(Clone, Copy, Debug)]
pub struct VolumeShape {
    /// Seed of random choices.
    pub seed: u64,
    /// Number of segments.
    pub segments: u32,
    /// Blocks of a segment.
    pub segment_blocks: u32,
}

impl VolumeShape {
    /// Blocks of all segments.
    pub fn blocks(&self) -> u64 {
        u64::from(self.segments) * u64::from(self.segment_blocks)
    }
}

/// A grouping: the policy that assigns blocks to groups.
pub trait Grouping: Send {
    /// Number of groups, at least 1.
    fn groups(&self) -> usize;

    /// Called before a writeback with all segments that hold live blocks.
    fn observe(&mut self, _segments: &[SegmentView], _now: Tick) {}

    /// The group of a block. A dirty block may be grouped several times before it is written.
    fn group_of(&mut self, block: &BlockView, now: Tick) -> usize;

    /// The groups of the blocks of a writeback, in their order. A policy with a high cost for each call takes them together.
    fn groups_of(&mut self, blocks: &[BlockView], now: Tick) -> Vec<usize> {
        blocks.iter().map(|block| self.group_of(block, now)).collect()
    }

    /// Called once when a block is written to the log: into a segment of this group, or of several. Returns the byte to
    /// keep with the block: its [`memory`](BlockView::memory). It survives mounts; after a crash it may be older than
    /// the block.
    fn written(&mut self, block: &BlockView, _group: Option<u8>, _now: Tick) -> u8 {
        block.memory
    }

    /// The group from which to clean next, or the segments of several groups (`Some(None)`); `None` for any. The cleaner
    /// selects the victim among its segments, or among all if none of these frees space.
    fn victim_group(&mut self, _segments: &mut dyn Iterator<Item = SegmentView>, _now: Tick) -> Option<Option<u8>> {
        None
    }

    /// Tells the future of a file's blocks, if [`GroupingSettings::needs_future`].
    fn foresee(&mut self, _inode: u64, _future: Future) {}

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
    /// A grouping in its initial state.
    fn start(&self, volume: VolumeShape) -> Box<dyn Grouping>;

    /// True if it places blocks by writes that are still to come, which only a simulated block workload knows.
    fn needs_future(&self) -> bool {
        false
    }

    /// True if it reads the options `groups` and `quantizer`.
    fn quantizes(&self) -> bool {
        false
    }

    /// True if it reads the [`hint`](BlockView::hint) of a block.
    fn uses_hints(&self) -> bool {
        false
    }
}

/// A grouping without options and seed is its own settings.
impl<G: Grouping + Clone + Debug + Sync + 'static> GroupingSettings for G {
    fn start(&self, _volume: VolumeShape) -> Box<dyn Grouping> {
        Box::new(self.clone())
    }
}

/// A cleaner: the policy that selects victims. The victim is the highest-scoring segment among those that would free
/// space.
pub trait Cleaner: Debug + Send + Sync {
    /// The score of a segment that is not full. It need not be finite. Segments without live blocks are not scored.
    fn score(&self, segment: &SegmentView, lives: &Lives, now: Tick) -> f64;

    /// The scores of all candidates, in their order. A policy with a high cost for each call takes them together.
    fn scores(&self, segments: &[SegmentView], lives: &Lives, now: Tick) -> Vec<f64> {
        segments.iter().map(|segment| self.score(segment, lives, now)).collect()
    }
}
