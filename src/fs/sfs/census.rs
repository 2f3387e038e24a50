//! What lives in the segments at an instant: what figures 4 and 10 of the paper show.

use super::Sfs;
use super::placement::{SegmentView, Tick};
use super::settings::GroupingKind;

/// The segments that hold live blocks of files, and the groups' centres.
#[derive(Clone, Debug, PartialEq)]
pub struct Census {
    /// When it was taken, on the clock of hotness.
    pub tick: Tick,
    /// Written segments with live blocks of files, by number.
    pub segments: Vec<SegmentView>,
    /// The groups' hotness in writes per tick, Hg of section 3.4, ascending; none where blocks are not grouped by hotness.
    pub centres: Vec<f64>,
}

impl Sfs {
    /// Counts what lives in the segments. Those that are free, open, empty or of metadata are left out.
    pub fn census(&self) -> Census {
        let is_by_hotness = self.settings.grouping == GroupingKind::Sfs;
        Census {
            tick: self.tick,
            segments: self.segments.views().filter(|view| !self.segments.get(view.number).is_metadata).collect(),
            centres: if is_by_hotness { self.grouping.memory() } else { Vec::new() },
        }
    }
}
