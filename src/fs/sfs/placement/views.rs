//! Blocks and segments for tests.

use super::{BlockView, Hint, History, SegmentView, Tick};

/// A block written by the host, of a file without history.
pub fn block(writes: u64, modified: u64) -> BlockView {
    BlockView {
        block: History { writes, modified: Tick(modified) },
        file: History::default(),
        group: None,
        cleaned_from: None,
        inode: 1,
        place: 0,
        hint: Hint::None,
        memory: 0,
    }
}

/// A segment of 100 blocks (or of `live`, if more), without history.
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
