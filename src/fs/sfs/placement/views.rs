//! Views for the tests.

use super::{BlockView, History, SegmentView, Tick};

/// A block that the host writes, of a file of which nothing is known.
pub fn block(writes: u64, modified: u64) -> BlockView {
    BlockView {
        block: History { writes, modified: Tick(modified) },
        file: History::default(),
        group: None,
        cleaned_from: None,
    }
}

/// A segment of 100 blocks (more if more are live), of which nothing else is known.
pub fn segment(number: u32, live: u32) -> SegmentView {
    SegmentView {
        number,
        capacity: live.max(100),
        live,
        writes: 0,
        modified: 0,
        youngest: Tick(0),
        written: Tick(0),
        group: None,
    }
}
