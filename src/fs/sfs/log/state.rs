//! The log of a mounted volume: its open ends, and its durable part.

use super::packing::Packer;
use super::sync_heads::SyncHeads;
use crate::fs::sfs::media::format::{BlockRecord, MOST_HEADS};

/// The end of the log in an open segment.
#[derive(Clone, Copy, Debug)]
pub(in crate::fs::sfs) struct Head {
    pub segment: u32,
    pub block: u32,
}

/// The log.
pub(in crate::fs::sfs) struct Log {
    /// Compresses the bytes of log records.
    pub packer: Packer,
    /// The positions in the open segments of data: one for each group, or for neighbouring groups.
    pub heads: [Option<Head>; MOST_HEADS],
    /// Maximum open segments of data.
    pub most_heads: usize,
    /// True if blocks that fill no segment of their group have a head of their own, whatever their group.
    pub is_rest_mixed: bool,
    /// The choice of heads for syncs.
    pub sync_heads: SyncHeads,
    /// Data blocks written since the grouping observed the segments.
    pub unobserved_blocks: u64,
    /// The position in the open segment of metadata.
    pub of_metadata: Option<Head>,
    /// With stamps: the block records of each segment, as they cannot be read back.
    pub contents: Vec<Vec<(u32, BlockRecord)>>,
    /// Segments completed since the last checkpoint.
    pub segments_since_checkpoint: u32,
    /// Number of checkpoints since the mount. A segment written since the last one holds a part of the log.
    pub epoch: u64,
    /// True if anything was written since the last flush.
    pub is_unflushed: bool,
    /// Blocks, without summaries, written since the last flush.
    pub unflushed_blocks: u64,
    /// The sequence number of the next partial segment at the last flush: all earlier ones are durable.
    pub flushed: u64,
    /// True if anything was written since the last seal.
    pub is_unsealed: bool,
    /// True while a flush or a checkpoint is in progress outside the gate: nothing is written to the log, and no
    /// segment is freed.
    pub is_flushing: bool,
}

impl Log {
    /// The log of a volume. `next` is the sequence number of the next partial segment.
    pub fn new(segments: u32, holds_stamps: bool, next: u64) -> Log {
        Log {
            packer: Packer::new(),
            heads: [None; MOST_HEADS],
            most_heads: MOST_HEADS,
            is_rest_mixed: false,
            sync_heads: SyncHeads::default(),
            unobserved_blocks: u64::MAX,
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

    /// The head of a group of `groups`. If there are fewer heads, neighbouring groups share one.
    pub fn head_of(&self, group: usize, groups: usize) -> u8 {
        let groups = groups.clamp(1, MOST_HEADS);
        let heads = self.most_heads - usize::from(self.rest_head().is_some());
        (group.min(groups - 1) * heads.clamp(1, groups) / groups) as u8
    }

    /// The head of blocks that fill no segment of their group, if it is that of no group: the last one. A volume of one head
    /// mixes all groups in it.
    pub fn rest_head(&self) -> Option<u8> {
        (self.is_rest_mixed && self.most_heads > 1).then_some((self.most_heads - 1) as u8)
    }

    /// With stamps, the block records of a segment.
    pub fn contents_of(&self, segment: u32) -> Option<&[(u32, BlockRecord)]> {
        self.contents.get(segment as usize).map(Vec::as_slice)
    }

    /// The open segments of data: the number of each head, and its position.
    pub fn open_heads(&self) -> impl Iterator<Item = (u8, Head)> + '_ {
        (0..).zip(&self.heads).filter_map(|(number, head)| head.map(|head| (number, head)))
    }

    /// Begins a flush of the device if anything was written since the last one; true if so. Nothing may be written
    /// before it ends.
    pub fn begin_flush(&mut self) -> bool {
        assert!(!self.is_flushing, "flushes do not overlap");
        self.is_flushing = self.is_unflushed;
        self.is_flushing
    }

    /// Ends a flush: all writes are durable. `next` is the sequence number of the next partial segment.
    pub fn end_flush(&mut self, next: u64) {
        self.is_unflushed = false;
        self.unflushed_blocks = 0;
        self.flushed = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_begins_only_after_a_write() {
        let mut log = Log::new(24, false, 7);
        assert!(!log.begin_flush() && !log.is_flushing);
        (log.is_unflushed, log.unflushed_blocks) = (true, 3);
        assert!(log.begin_flush() && log.is_flushing);
        log.is_flushing = false;
        log.end_flush(9);
        assert_eq!((log.is_unflushed, log.unflushed_blocks, log.flushed), (false, 0, 9));
        assert!(!log.begin_flush());
    }

    #[test]
    fn neighbouring_groups_share_a_head_if_there_are_fewer_heads() {
        let mut log = Log::new(24, false, 1);
        let heads = |log: &Log, groups: usize| (0..groups).map(|group| log.head_of(group, groups)).collect::<Vec<_>>();
        assert_eq!(heads(&log, 6), [0, 1, 2, 3, 4, 5]);
        log.most_heads = 4;
        assert_eq!((heads(&log, 4), heads(&log, 6)), (vec![0, 1, 2, 3], vec![0, 0, 1, 2, 2, 3]));
        log.most_heads = 1;
        assert_eq!(heads(&log, 6), [0; 6]);
        assert_eq!((log.head_of(9, 6), log.head_of(3, 0)), (0, 0), "a policy may answer anything");
    }

    #[test]
    fn a_mixed_rest_has_the_last_head_which_no_group_has() {
        let mut log = Log { is_rest_mixed: true, ..Log::new(24, false, 1) };
        for most in 1..=MOST_HEADS {
            log.most_heads = most;
            let of_groups: Vec<u8> = (0..MOST_HEADS).map(|group| log.head_of(group, MOST_HEADS)).collect();
            assert!(of_groups.iter().all(|head| Some(*head) != log.rest_head() && usize::from(*head) < most));
            assert_eq!(log.rest_head().map_or(1, |rest| usize::from(rest) + 1), most);
        }
        assert_eq!((0..4).map(|group| log.head_of(group, 4)).collect::<Vec<_>>(), [0, 1, 2, 3]);
        log.is_rest_mixed = false;
        assert_eq!((log.rest_head(), log.head_of(15, 16)), (None, 15));
    }

    #[test]
    #[should_panic(expected = "flushes do not overlap")]
    fn overlapping_flushes_are_a_bug() {
        let mut log = Log::new(24, false, 1);
        log.is_unflushed = true;
        log.begin_flush();
        log.begin_flush();
    }
}
