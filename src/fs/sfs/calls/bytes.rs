//! Calls that read and change the data and the allocation of a file.

use crate::fs::nodes::parts::parts;
use crate::fs::sfs::files::attributes::InodeNumber;
use crate::fs::sfs::log::records::Record;
use crate::fs::sfs::media::format::{BLOCK, MOST_BLOCKS};
use crate::fs::sfs::placement::Hint;
use crate::fs::sfs::{Sfs, SfsError};
use crate::label::{Content, Label};
use crate::task::Task;
use std::ops::Range;

/// Bytes of a block, as a number.
const BLOCK_BYTES: u64 = BLOCK as u64;

impl Sfs {
    /// Writes all of `bytes` at `offset`. The file grows as needed. With stamps, a block's stamp is the first bytes
    /// written to it.
    pub fn write(&mut self, task: &Task<'_>, inode: InodeNumber, offset: u64, bytes: &[u8]) -> Result<(), SfsError> {
        self.check_writable()?;
        self.files.regular(task, inode.0)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let end = offset.checked_add(bytes.len() as u64).filter(|end| end.div_ceil(BLOCK_BYTES) <= MOST_BLOCKS);
        let end = end.ok_or(SfsError::TooLarge)?;
        let (first, last) = (offset / BLOCK_BYTES, (end - 1) / BLOCK_BYTES);
        self.check_new(task, inode.0, first..last + 1)?;
        self.files.clear_tail(task, inode.0, offset)?;
        for part in parts(offset, bytes.len(), BLOCK) {
            let slot = match part.within.len() {
                BLOCK => self.files.slot_to_fill(task, inode.0, part.block)?,
                _ => self.files.slot_to_change(task, inode.0, part.block)?,
            };
            let (at, most) = match self.files.media.holds_stamps() {
                true => (0, self.files.media.block_width()),
                false => (part.within.start, BLOCK),
            };
            let bytes = &bytes[part.from];
            self.files.dirty_blocks.overwrite(slot, at, &bytes[..bytes.len().min(most)]);
        }
        self.files.note_write(task, inode.0, end)?;
        self.received.add(Label::host(Content::Data), last + 1 - first);
        self.relieve(task)
    }

    /// Writes whole blocks from block `first`, of [`block_width`](Sfs::block_width) bytes each. `content` is the label
    /// of the workload, and `hint` the lifetime that it states.
    pub fn write_whole(
        &mut self,
        task: &Task<'_>,
        inode: InodeNumber,
        first: u64,
        buffer: &[u8],
        content: Content,
        hint: Hint,
    ) -> Result<(), SfsError> {
        self.check_writable()?;
        self.files.regular(task, inode.0)?;
        let width = self.files.media.block_width();
        debug_assert!(buffer.len().is_multiple_of(width), "the buffer holds whole blocks");
        let count = (buffer.len() / width) as u64;
        let end = first.checked_add(count).filter(|end| *end <= MOST_BLOCKS).ok_or(SfsError::TooLarge)?;
        self.check_new(task, inode.0, first..end)?;
        self.files.clear_tail(task, inode.0, first * BLOCK_BYTES)?;
        for (place, block) in (first..end).zip(buffer.chunks_exact(width)) {
            let slot = self.files.slot_to_fill(task, inode.0, place)?;
            self.files.dirty_blocks.slot_mut(slot).hint = hint;
            self.files.dirty_blocks.overwrite(slot, 0, block);
        }
        self.files.note_write(task, inode.0, end * BLOCK_BYTES)?;
        self.received.add(Label::host(content), count);
        self.relieve(task)
    }

    /// Fails if the new blocks of a range do not fit.
    fn check_new(&mut self, task: &Task<'_>, inode: u64, places: Range<u64>) -> Result<(), SfsError> {
        // Usually all blocks of the range fit, new or not.
        if self.writer.limits.fits(&self.files.metadata, places.end - places.start, 0) {
            return Ok(());
        }
        let mut new = 0;
        for place in places {
            new += u64::from(self.files.mapped(task, inode, place)? == 0);
        }
        if new == 0 { Ok(()) } else { self.check_space(task, new) }
    }

    /// Fails unless the blocks of a range can be reserved. Returns their block indexes.
    pub(in crate::fs::sfs) fn check_reservation(
        &mut self,
        task: &Task<'_>,
        inode: InodeNumber,
        offset: u64,
        length: u64,
    ) -> Result<Range<u64>, SfsError> {
        self.check_writable()?;
        self.files.regular(task, inode.0)?;
        let end = offset.checked_add(length).filter(|end| end.div_ceil(BLOCK_BYTES) <= MOST_BLOCKS);
        let end = end.ok_or(SfsError::TooLarge)?;
        if length == 0 {
            return Err(SfsError::Invalid("a range has at least one byte"));
        }
        let places = offset / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES);
        if self.writer.limits.fits(&self.files.metadata, places.end - places.start, 0) {
            return Ok(places);
        }
        // Existing blocks need no space.
        let (mut new, mut at) = (0, places.start);
        while at < places.end {
            match self.files.next_mapped(task, inode.0, at, places.end)? {
                Some((next, _)) => {
                    new += next - at;
                    at = next + 1;
                }
                None => {
                    new += places.end - at;
                    break;
                }
            }
        }
        self.check_space(task, new)?;
        Ok(places)
    }

    /// Reserves blocks from `offset`, which read as zeros. The file grows to their end unless `keep_size`.
    pub fn allocate(
        &mut self,
        task: &Task<'_>,
        inode: InodeNumber,
        offset: u64,
        length: u64,
        keep_size: bool,
    ) -> Result<(), SfsError> {
        let places = self.check_reservation(task, inode, offset, length)?;
        let (size, end) = (self.files.regular(task, inode.0)?, offset + length);
        // A long range is reserved in parts, so that a checkpoint never exceeds its space.
        let mut from = places.start;
        while from < places.end {
            let to = places.end.min(from + self.writer.limits.most_reserved_at_once());
            self.files.reserve(task, inode.0, from..to)?;
            self.log_record(&Record::Reserve { inode: inode.0, places: from..to });
            self.files.records.touch(inode.0);
            self.files.records.end();
            self.relieve(task)?;
            from = to;
        }
        if !keep_size {
            self.files.clear_tail(task, inode.0, end)?;
        }
        let now = self.files.clock.wall(task);
        let file = self.files.inode_mut(task, inode.0)?;
        if !keep_size && end > size {
            file.size = end;
        }
        file.times.written(now);
        file.is_unlogged = true;
        self.files.records.touch(inode.0);
        self.relieve(task)
    }

    /// Frees the blocks of these bytes, which then read as zeros. The size stays.
    pub fn punch(&mut self, task: &Task<'_>, inode: InodeNumber, offset: u64, length: u64) -> Result<(), SfsError> {
        self.check_writable()?;
        self.files.regular(task, inode.0)?;
        let end = offset.saturating_add(length).min(MOST_BLOCKS * BLOCK_BYTES);
        if length == 0 {
            return Err(SfsError::Invalid("a range has at least one byte"));
        }
        let (first, last) = (offset.div_ceil(BLOCK_BYTES), end / BLOCK_BYTES);
        if first > last {
            // The range is within one block.
            self.files.zero(task, inode.0, offset, end)?;
        } else {
            self.files.zero(task, inode.0, offset, first * BLOCK_BYTES)?;
            self.files.zero(task, inode.0, last * BLOCK_BYTES, end)?;
            let unmapped = self.files.unmap(task, inode.0, first..last);
            self.writer.all_or_fail(&self.files, "a punch", unmapped)?;
            self.log_record(&Record::Unmap { inode: inode.0, places: first..last });
            self.files.records.end();
            // An fdatasync must record it, too.
            self.files.records.touch(inode.0);
        }
        let now = self.files.clock.wall(task);
        let file = self.files.inode_mut(task, inode.0)?;
        file.times.written(now);
        file.is_unlogged = true;
        self.relieve(task)
    }

    /// Truncates a file to `size` bytes, or extends it with zeros.
    pub(super) fn resize(&mut self, task: &Task<'_>, inode: u64, size: u64) -> Result<(), SfsError> {
        let before = self.files.regular(task, inode)?;
        if size.div_ceil(BLOCK_BYTES) > MOST_BLOCKS {
            return Err(SfsError::TooLarge);
        }
        // A truncation to the current size frees the blocks reserved after it.
        let first = size.div_ceil(BLOCK_BYTES);
        let is_cut =
            size < before || size == before && self.files.next_mapped(task, inode, first, MOST_BLOCKS)?.is_some();
        if is_cut {
            let unmapped = self.files.unmap(task, inode, first..u64::MAX);
            self.writer.all_or_fail(&self.files, "a truncation", unmapped)?;
            self.log_record(&Record::Unmap { inode, places: first..u64::MAX });
            self.files.records.end();
        }
        self.files.clear_tail(task, inode, size)?;
        let now = self.files.clock.wall(task);
        let file = self.files.inode_mut(task, inode)?;
        file.size = size;
        file.safe_size = file.safe_size.min(size);
        file.times.written(now);
        file.is_unlogged = true;
        if is_cut {
            self.files.records.touch(inode);
        }
        Ok(())
    }

    /// The next stored (`data`) or unstored byte from `offset`; `None` if there is none before the end (ENXIO). The end
    /// of the file counts as a hole.
    pub fn seek(
        &mut self,
        task: &Task<'_>,
        inode: InodeNumber,
        offset: u64,
        data: bool,
    ) -> Result<Option<u64>, SfsError> {
        let size = self.files.regular(task, inode.0)?;
        if offset >= size {
            return Ok(None);
        }
        let end = size.div_ceil(BLOCK_BYTES);
        let mut place = offset / BLOCK_BYTES;
        while place < end {
            let (next, number) = match self.files.next_mapped(task, inode.0, place, end)? {
                Some(found) => found,
                None => (end, 0),
            };
            if !data && next > place {
                return Ok(Some(offset.max(place * BLOCK_BYTES)));
            }
            if number == 0 {
                break;
            }
            // A reserved block that was never written is a hole; a block lost in a repair is not.
            let entry = self.files.metadata.dat.get(task, number)?;
            let is_stored = entry.address.get() != 0 || entry.is_given_up();
            if is_stored == data {
                return Ok(Some(offset.max(next * BLOCK_BYTES)));
            }
            place = next + 1;
        }
        Ok(if data { None } else { Some(size) })
    }

    /// The next written or reserved block of a file, from block `place`; `None` if there is none.
    pub fn next_block(&mut self, task: &Task<'_>, inode: InodeNumber, place: u64) -> Result<Option<u64>, SfsError> {
        self.files.regular(task, inode.0)?;
        Ok(self.files.next_mapped(task, inode.0, place, MOST_BLOCKS)?.map(|(place, _)| place))
    }

    /// Reads from `offset`, and returns the number of bytes: fewer than requested only at the end of the file. With
    /// stamps the bytes are zeros. Callers update the access time with [`change`](Sfs::change).
    pub fn read(
        &mut self,
        task: &Task<'_>,
        inode: InodeNumber,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<usize, SfsError> {
        let covered = self.files.covered(task, inode, offset, bytes.len())?;
        let bytes = &mut bytes[..covered.length];
        if bytes.is_empty() {
            return Ok(0);
        }
        if covered.is_whole() && !self.files.media.holds_stamps() {
            self.read_blocks(task, inode.0, covered.blocks.start, bytes)?;
        } else {
            let count = (covered.blocks.end - covered.blocks.start) as usize;
            let mut whole = vec![0; count * self.files.media.block_width()];
            self.read_blocks(task, inode.0, covered.blocks.start, &mut whole)?;
            match self.files.media.holds_stamps() {
                true => bytes.fill(0),
                false => covered.copy(&whole, bytes),
            }
        }
        Ok(covered.length)
    }

    /// Reads whole blocks from block `first`, of [`block_width`](Sfs::block_width) bytes each; holes read as zeros.
    pub fn read_blocks(&mut self, task: &Task<'_>, inode: u64, first: u64, buffer: &mut [u8]) -> Result<(), SfsError> {
        self.files.read_blocks(task, inode, first, buffer)
    }
}
