//! Splits a run into windows of equal host writes; their number is bounded.

use crate::report::Window;
use crate::time::Time;

/// The state at the end of a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mark {
    /// Blocks written by the host.
    pub written_blocks: u64,
    /// Bytes programmed by the flash.
    pub programmed_bytes: u64,
    /// The time.
    pub at: Time,
}

/// The marks of a run. At [`Windows::MOST`] marks, every second is dropped and windows become twice as long.
#[derive(Debug)]
pub struct Windows {
    blocks: u64,
    marks: Vec<Mark>,
    next: u64,
}

impl Windows {
    const MOST: usize = 1024;
    const FIRST_BLOCKS: u64 = 64;

    /// No windows.
    pub fn new() -> Windows {
        Windows { blocks: Self::FIRST_BLOCKS, marks: Vec::new(), next: Self::FIRST_BLOCKS }
    }

    /// The number of written blocks that ends the open window.
    #[inline]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Ends the window that is open.
    pub fn mark(&mut self, mark: Mark) {
        debug_assert!(
            self.marks.last().is_none_or(
                |last| last.written_blocks < mark.written_blocks && last.programmed_bytes <= mark.programmed_bytes
            ),
            "{mark:?} is after all others"
        );
        self.marks.push(mark);
        if self.marks.len() == Self::MOST {
            let mut kept = 0;
            self.marks.retain(|_| {
                kept += 1;
                kept % 2 == 0
            });
            self.blocks *= 2;
        }
        self.next = mark.written_blocks + self.blocks;
    }

    /// The marks so far.
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// The windows, for a report. `start` is the start of the count.
    pub fn report(&self, start: Time, timed: bool) -> Vec<Window> {
        let mut before = Mark { written_blocks: 0, programmed_bytes: 0, at: start };
        let mut windows = Vec::with_capacity(self.marks.len());
        for mark in &self.marks {
            let written = (mark.written_blocks - before.written_blocks) * crate::units::BLOCK_BYTES;
            windows.push(Window {
                written_blocks: mark.written_blocks,
                seconds_simulated: timed.then(|| mark.at.since_ns(start) as f64 / 1e9),
                write_amplification: (mark.programmed_bytes - before.programmed_bytes) as f64 / written as f64,
            });
            before = *mark;
        }
        windows
    }
}
