//! Which group a block is written in, and which segment is cleaned: the policies, behind two small seams.
//!
//! | file | what it is |
//! |---|---|
//! | [`hotness`] | how likely a block, a file, a segment is to be written again (section 3.3) |
//! | [`quantize`] | the centres of the groups, from the hotness of all segments (section 3.4) |
//! | [`by_hotness`] | SFS: the group whose centre is nearest |
//! | [`sepbit`], [`dac`], [`one`] | the policies beside it |
//! | [`victim`], [`cleaners`] | which segment is cleaned (section 3.6) |
//! | [`table`] | the words that name the policies, and what reads their options |
//!
//! Nothing here fails, whatever it is shown.

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

/// The largest number of groups: the format stores a group in this range.
pub const MOST_GROUPS: usize = 16;

/// A point of the clock by which hotness is measured: microseconds, or blocks written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tick(pub u64);

/// What is known of a block or a file of the past.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Writes since it was made: W of section 3.3. 0 of a block that is new.
    pub writes: u64,
    /// When it was last written: T^m of section 3.3.
    pub modified: Tick,
}

/// A block that is about to be written.
#[derive(Clone, Copy, Debug)]
pub struct BlockView {
    /// Its own history, before this write.
    pub block: History,
    /// That of its file.
    pub file: History,
    /// The group in which it was written last; `None` if it never was.
    pub group: Option<u8>,
    /// The group of the segment that it is cleaned out of; `None` if the host writes it.
    pub cleaned_from: Option<u8>,
}

/// A segment that has been written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SegmentView {
    /// Its number.
    pub number: u32,
    /// Blocks that it can hold beside its summary.
    pub capacity: u32,
    /// Blocks that are live.
    pub live: u32,
    /// The sum of the writes of its live blocks.
    pub writes: u64,
    /// The sum of the times of modification of its live blocks.
    pub modified: u128,
    /// When the youngest of its blocks was modified.
    pub youngest: Tick,
    /// When it was written.
    pub written: Tick,
    /// The group whose blocks it holds; `None` if they are of several.
    pub group: Option<u8>,
}

/// Which group a block is written in.
pub trait Grouping: Send {
    /// How many groups there are, at least 1.
    fn groups(&self) -> usize;

    /// Blocks will be grouped now: a look at all segments that hold live blocks.
    fn look(&mut self, _segments: &[SegmentView], _now: Tick) {}

    /// The group of a block.
    fn group_of(&mut self, block: &BlockView, now: Tick) -> usize;

    /// A segment is being cleaned.
    fn collects(&mut self, _segment: &SegmentView, _now: Tick) {}

    /// The groups' hotness in writes per tick, ascending; none if it does not group by hotness.
    fn centres(&self) -> &[f64] {
        &[]
    }

    /// What it would want to know again after the next mount: at most 32 numbers, in the superblock.
    fn memory(&self) -> Vec<f64> {
        Vec::new()
    }

    /// What [`memory`](Grouping::memory) said before the last unmount. What it cannot have said is ignored.
    fn remember(&mut self, _memory: &[f64]) {}
}

/// A grouping's options: what makes one for each volume that is opened.
pub trait GroupingSettings: Debug + Send + Sync {
    /// A grouping that has seen nothing yet. The seed is that of its choices.
    fn start(&self, seed: u64) -> Box<dyn Grouping>;
}

/// A grouping that needs neither options nor a seed stands for its options.
impl<G: Grouping + Clone + Debug + Sync + 'static> GroupingSettings for G {
    fn start(&self, _seed: u64) -> Box<dyn Grouping> {
        Box::new(self.clone())
    }
}

/// Which segment is cleaned: the one with the highest score of those that would free anything.
pub trait Cleaner: Debug + Send + Sync {
    /// The score of a segment that is not full. It need not be finite; where nothing is live, it is not asked for.
    fn score(&self, segment: &SegmentView, now: Tick) -> f64;
}
