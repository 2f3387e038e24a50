//! Free segments and dirty memory against their limits: what writeback has to do next.

use super::writer::Writer;
use crate::fs::sfs::Sfs;
use crate::fs::sfs::files::Files;
use crate::fs::sfs::log::Log;
use crate::fs::sfs::log::segments::Segment;
use crate::fs::sfs::media::format::BLOCK;
use crate::fs::sfs::memory::changed_bytes;

/// The next step of freeing segments.
pub(super) enum Piece {
    /// Enough segments are free.
    None,
    /// Frees segments whose live blocks were read. `true`: this is the last step.
    FreeCleaned(bool),
    /// Cleans segments.
    Clean,
}

/// True if an emptied segment becomes free when the log records are durable: it holds no log since the last checkpoint,
/// and no metadata. Rolling forward starts from that checkpoint's directories and maps, and reads them, even those of
/// files that were deleted since.
pub(super) fn is_freed_by_log(segment: &Segment, epoch: u64) -> bool {
    segment.epoch < epoch && !segment.is_metadata
}

/// Emptied segments that become free when the log records are durable.
pub(super) fn freed_by_log(files: &Files, log: &Log) -> u32 {
    files.segments.count_emptied(|segment| is_freed_by_log(segment, log.epoch))
}

/// Frees, in memory, the emptied segments covered by log records. The records must be durable before the segments
/// are written.
pub(in crate::fs::sfs) fn release_by_log(files: &mut Files, log: &Log) -> Vec<u32> {
    files.segments.release(|segment| is_freed_by_log(segment, log.epoch))
}

/// The segments that are free or become free, and the memory that is dirty, against their limits.
pub(in crate::fs::sfs) struct Room<'r> {
    files: &'r mut Files,
    writer: &'r Writer,
    watermark: f64,
}

impl<'r> Room<'r> {
    /// Of this volume.
    pub fn of(volume: &'r mut Sfs) -> Room<'r> {
        Room { files: &mut volume.files, writer: &volume.writer, watermark: volume.settings.watermark }
    }

    /// The next step of freeing segments, begun in this epoch.
    pub(super) fn next_piece(&mut self, epoch: u64) -> Piece {
        let is_plenty = self.expected_free() >= self.cleaning_threshold();
        // A call that has taken one checkpoint leaves further steps to later calls.
        if self.has_room() && (is_plenty || self.writer.log.epoch != epoch) {
            return Piece::None;
        }
        let is_too_much = !self.has_room_for_cleaned()
            || self.files.metadata.blocks.dirty() >= self.writer.limits.metadata
            || changed_bytes(self.files) > self.writer.limits.shares.changed;
        if is_plenty || is_too_much { Piece::FreeCleaned(is_plenty) } else { Piece::Clean }
    }

    /// True if all dirty data fits, and checkpoints after it: see [`Limits::low`](crate::fs::sfs::Limits).
    pub(super) fn has_room(&self) -> bool {
        self.files.segments.free() >= self.writer.limits.low() + self.segments_to_write()
    }

    /// True if all dirty data fits, and one checkpoint after it.
    pub(super) fn can_write_without_checkpoint(&self) -> bool {
        self.files.segments.free() >= self.writer.limits.lowest() + self.segments_to_write()
    }

    /// True if the live blocks of one more victim fit. When fewer segments are free than a checkpoint may need, all dirty
    /// data must fit into what it counts for that: [`Limits::of_checkpoint`](crate::fs::sfs::Limits).
    pub fn has_room_for_cleaned(&self) -> bool {
        let most = 2 * self.writer.limits.dirty_blocks;
        let is_short = self.files.segments.free() < self.writer.limits.of_checkpoint();
        let more = if is_short { self.writer.limits.segment_capacity as usize } else { 1 };
        self.files.dirty_blocks.len() + more <= most.max(more)
    }

    /// Segments free after the next checkpoint, less those needed for dirty data.
    fn expected_free(&self) -> u32 {
        let free = self.files.segments.free() + self.files.segments.emptied() + self.files.segments.cleaning();
        free.saturating_sub(self.segments_to_write())
    }

    fn segments_to_write(&self) -> u32 {
        self.files.dirty_blocks.len().div_ceil(self.writer.limits.segment_capacity as usize) as u32
    }

    /// Number of free segments below which cleaning starts: those above the watermark, but at most half of the space
    /// that is not live, so that cleaning gains something on a full volume, too.
    fn cleaning_threshold(&self) -> u32 {
        let count = self.files.segments.count();
        let above = (f64::from(count) * (1.0 - self.watermark)) as u32;
        let live = self.files.segments.live().div_ceil(u64::from(self.writer.limits.segment_capacity)) as u32;
        above.min(count.saturating_sub(live) / 2).max(self.writer.limits.floor)
    }

    /// True if the dirty metadata requires a checkpoint.
    pub fn is_metadata_full(&mut self) -> bool {
        let changed = self.files.metadata.blocks.dirty()
            + self.files.metadata.dat.file().dirty_pages()
            + self.files.metadata.inode_file.file().dirty_pages();
        let is_much = changed + self.files.records.len() / BLOCK > self.writer.limits.metadata;
        is_much || changed_bytes(self.files) > self.writer.limits.shares.changed
    }

    pub(super) fn is_data_full(&self) -> bool {
        self.files.dirty_blocks.len() >= self.writer.limits.dirty_blocks
    }

    /// True if dirty data or metadata exceeds its limit.
    pub fn is_memory_short(&mut self) -> bool {
        self.is_metadata_full() || self.is_data_full()
    }
}
