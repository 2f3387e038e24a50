//! Calls that change a file's data and allocation. Calls that read are in `reading`.

use crate::fs::sfs::files::Files;
use crate::fs::sfs::files::attributes::InodeNumber;
use crate::fs::sfs::log::records::Record;
use crate::fs::sfs::media::format::MOST_BLOCKS;
use crate::fs::sfs::media::format::{BLOCK, DIRTY};
use crate::fs::sfs::placement::Hint;
use crate::fs::sfs::{Sfs, SfsError};
use crate::label::{Content, Label};
use crate::task::Task;
use std::ops::Range;

/// Bytes of a block, as a number.
const BLOCK_BYTES: u64 = BLOCK as u64;

impl Files {
    /// The slot of a block that is overwritten completely.
    fn slot_to_fill(&mut self, task: &Task<'_>, inode: u64, place: u64) -> Result<u32, SfsError> {
        self.clock.advance(task);
        self.slot(task, inode, place, None)
    }

    /// The slot of a block that is overwritten partly. It holds the block's other bytes.
    fn slot_to_change(&mut self, task: &Task<'_>, inode: u64, place: u64) -> Result<u32, SfsError> {
        let mut old = vec![0; self.media.block_width()];
        self.read_blocks(task, inode, place, &mut old)?;
        self.clock.advance(task);
        self.slot(task, inode, place, Some(&old))
    }

    /// The slot of a block, which counts as changed. `version`: the bytes of the block, if it is not overwritten
    /// completely.
    pub(in crate::fs::sfs) fn slot(
        &mut self,
        task: &Task<'_>,
        inode: u64,
        place: u64,
        version: Option<&[u8]>,
    ) -> Result<u32, SfsError> {
        let mut number = self.mapped(task, inode, place)?;
        if number == 0 {
            number = self.metadata.dat.take(task)?;
            self.map(task, inode, place, number)?;
            self.inode_mut(task, inode)?.blocks += 1;
        }
        let mut entry = self.metadata.dat.get(task, number)?;
        let address = entry.address.get();
        self.check_referenced(inode, number, &entry)?;
        if address & DIRTY != 0 {
            let slot = (address & !DIRTY) as u32;
            self.dirty_blocks.change(slot, version.is_some());
            return Ok(slot);
        }
        let slot = self.dirty_blocks.add(number, inode, place, version.is_some());
        version.into_iter().for_each(|bytes| self.dirty_blocks.load(slot, bytes));
        let waits = self.dirty_blocks.slot_mut(slot);
        waits.before = address;
        waits.crc_before = entry.crc.get();
        entry.address = (DIRTY | u64::from(slot)).into();
        self.metadata.dat.set(task, number, &entry)?;
        Ok(slot)
    }

    /// Allocates a virtual block for each hole in a range.
    pub(in crate::fs::sfs) fn reserve(
        &mut self,
        task: &Task<'_>,
        inode: u64,
        places: Range<u64>,
    ) -> Result<(), SfsError> {
        for place in places {
            if self.mapped(task, inode, place)? == 0 {
                let number = self.metadata.dat.take(task)?;
                self.map(task, inode, place, number)?;
                self.inode_mut(task, inode)?.blocks += 1;
            }
        }
        Ok(())
    }

    /// Prepares for growth to `to` without a write from the end of the file on: stale bytes after the end in the last
    /// block, from a time when the file was longer, must not become visible. They are zeroed now, and not at the
    /// truncation: if a crash loses the truncation, the block must still have its old content.
    fn clear_tail(&mut self, task: &Task<'_>, inode: u64, to: u64) -> Result<(), SfsError> {
        let size = self.inode(task, inode)?.size;
        match to > size {
            true => self.zero(task, inode, size, to.min(size.next_multiple_of(BLOCK_BYTES))),
            false => Ok(()),
        }
    }

    /// Zeroes bytes of one block, if it is allocated.
    fn zero(&mut self, task: &Task<'_>, inode: u64, from: u64, to: u64) -> Result<(), SfsError> {
        let place = from / BLOCK_BYTES;
        if from >= to || self.mapped(task, inode, place)? == 0 {
            return Ok(());
        }
        let slot = self.slot_to_change(task, inode, place)?;
        debug_assert!(to <= (place + 1) * BLOCK_BYTES, "bytes {from} to {to} are in one block");
        if !self.media.holds_stamps() {
            let zeros = [0; BLOCK];
            self.dirty_blocks.overwrite(slot, (from % BLOCK_BYTES) as usize, &zeros[..(to - from) as usize]);
        }
        Ok(())
    }
}

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
        let mut left = bytes;
        for place in first..=last {
            let from = if place == first { (offset % BLOCK_BYTES) as usize } else { 0 };
            let count = left.len().min(BLOCK - from);
            let (part, rest) = left.split_at(count);
            left = rest;
            let slot = match count {
                BLOCK => self.files.slot_to_fill(task, inode.0, place)?,
                _ => self.files.slot_to_change(task, inode.0, place)?,
            };
            match self.files.media.holds_stamps() {
                true => self.files.dirty_blocks.overwrite(slot, 0, &part[..count.min(self.files.media.block_width())]),
                false => self.files.dirty_blocks.overwrite(slot, from, part),
            }
        }
        self.finish_write(task, inode.0, end, last + 1 - first, Content::Data)?;
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
        self.finish_write(task, inode.0, end * BLOCK_BYTES, count, content)?;
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

    /// Updates size, times and history after a write up to `end`.
    fn finish_write(
        &mut self,
        task: &Task<'_>,
        inode: u64,
        end: u64,
        blocks: u64,
        content: Content,
    ) -> Result<(), SfsError> {
        let now = self.files.clock.wall(task);
        let file = self.files.inode_mut(task, inode)?;
        file.size = file.size.max(end);
        file.times.written(now);
        file.is_unlogged = true;
        self.received.add(Label::host(content), blocks);
        Ok(())
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

    /// Maximum bytes reserved at once, so that the next checkpoint fits.
    pub(in crate::fs::sfs) fn most_reserved_at_once(&self) -> u64 {
        (self.writer.limits.metadata as u64 * crate::fs::sfs::media::format::DAT_ENTRIES / 4).max(1) * BLOCK_BYTES
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
            let to = places.end.min(from + self.most_reserved_at_once() / BLOCK_BYTES);
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
    pub(in crate::fs::sfs) fn resize(&mut self, task: &Task<'_>, inode: u64, size: u64) -> Result<(), SfsError> {
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
}
