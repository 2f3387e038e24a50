//! The log of a mounted volume: its segments, where it goes on, and how much of it is durable.

use super::Head;
use super::records::Records;
use super::segments::Segments;
use crate::fs::sfs::media::format::BlockRecord;

/// The log.
pub(in crate::fs::sfs) struct Log {
    pub segments: Segments,
    /// What it has yet to say.
    pub records: Records,
    /// Where it goes on with blocks of all groups.
    pub mixed: Option<Head>,
    /// Where it goes on with metadata.
    pub of_metadata: Option<Head>,
    /// Of stamps: what lies in each segment, as it cannot be read back.
    pub contents: Vec<Vec<(u32, BlockRecord)>>,
    /// Segments that were ended since the last checkpoint.
    pub segments_since_checkpoint: u32,
    /// Checkpoints since the mount: a segment that was written since the last one holds a part of the log.
    pub epoch: u64,
    /// True if anything was written since the device was last flushed.
    pub is_unflushed: bool,
    /// Blocks behind summaries that were written since then.
    pub unflushed_blocks: u64,
    /// The number that the next partial segment had when the device was last flushed: all before it are durable.
    pub flushed: u64,
    /// True if anything was written since the log was last sealed.
    pub is_unsealed: bool,
    /// True while a flush or a checkpoint is on its way beside the volume: nothing is written to the log, and no segment
    /// is freed.
    pub is_flushing: bool,
}

impl Log {
    /// The log of a volume with so many segments of so many blocks. `next` is the number of the next partial segment.
    pub fn new(segments: u32, segment_blocks: u32, holds_stamps: bool, next: u64) -> Log {
        Log {
            segments: Segments::new(segments, segment_blocks),
            records: Records::default(),
            mixed: None,
            of_metadata: None,
            contents: if holds_stamps { vec![Vec::new(); segments as usize] } else { Vec::new() },
            segments_since_checkpoint: 0,
            epoch: 1,
            is_unflushed: false,
            unflushed_blocks: 0,
            flushed: next,
            is_unsealed: false,
            is_flushing: false,
        }
    }

    /// Begins a flush of the device, if anything was written since the last one; true if so. Nothing may be written
    /// before it has ended.
    pub fn begin_flush(&mut self) -> bool {
        assert!(!self.is_flushing, "one flush after the other");
        self.is_flushing = self.is_unflushed;
        self.is_flushing
    }

    /// All that was written is durable. `next` is the number of the next partial segment.
    pub fn all_is_flushed(&mut self, next: u64) {
        self.is_unflushed = false;
        self.unflushed_blocks = 0;
        self.flushed = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_is_begun_only_if_something_was_written() {
        let mut log = Log::new(24, 16, false, 7);
        assert!(!log.begin_flush() && !log.is_flushing);
        (log.is_unflushed, log.unflushed_blocks) = (true, 3);
        assert!(log.begin_flush() && log.is_flushing);
        log.is_flushing = false;
        log.all_is_flushed(9);
        assert_eq!((log.is_unflushed, log.unflushed_blocks, log.flushed), (false, 0, 9));
        assert!(!log.begin_flush());
    }

    #[test]
    #[should_panic(expected = "one flush after the other")]
    fn two_flushes_at_once_are_a_bug() {
        let mut log = Log::new(24, 16, false, 1);
        log.is_unflushed = true;
        log.begin_flush();
        log.begin_flush();
    }
}
