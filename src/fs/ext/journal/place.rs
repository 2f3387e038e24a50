//! Where a log lies: in blocks of the volume's device, or of a device of its own.

use crate::fs::ext::media::Media;
use std::ops::Range;
use std::sync::Arc;

/// Where a log lies.
#[derive(Clone)]
pub struct LogPlace {
    /// The device, in blocks of the volume.
    pub media: Arc<Media>,
    /// The block of the device with the log's superblock.
    pub superblock: u64,
    /// The log's blocks, in runs.
    pub runs: Vec<Range<u64>>,
}

impl LogPlace {
    /// A log in a file of the volume, whose first block is the log's superblock. `None` if it has no blocks.
    pub fn in_file(media: Arc<Media>, runs: Vec<Range<u64>>) -> Option<LogPlace> {
        let superblock = runs.first()?.start;
        Some(LogPlace { media, superblock, runs })
    }

    /// The block of the device where block `number` of the log lies, and how many follow there; `None` if there is none.
    pub fn find(&self, number: u32) -> Option<(u64, u64)> {
        let mut before = 0;
        for run in &self.runs {
            let count = run.end - run.start;
            if u64::from(number) < before + count {
                let place = run.start + u64::from(number) - before;
                return Some((place, run.end - place));
            }
            before += count;
        }
        None
    }
}
