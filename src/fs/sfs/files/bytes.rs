//! Calls that change a file's bytes, and where it is stored. Those that read are in `reading`.

use crate::fs::sfs::files::attributes::{FileKind, InodeNumber};
use crate::fs::sfs::log::records::Record;
use crate::fs::sfs::media::format::MOST_BLOCKS;
use crate::fs::sfs::media::format::{BLOCK, WAITS};
use crate::fs::sfs::{Sfs, SfsError};
use crate::label::{Content, Label};
use crate::task::Task;
use std::ops::Range;

/// Bytes of a block, as a number.
const BLOCK_BYTES: u64 = BLOCK as u64;

impl Sfs {
    /// Writes all of `bytes` from `offset` on. The file grows where it must. Of stamps, the first bytes stand for a
    /// block.
    pub fn write(&mut self, task: &Task<'_>, inode: InodeNumber, offset: u64, bytes: &[u8]) -> Result<(), SfsError> {
        self.check_writable()?;
        self.regular(task, inode.0)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let end = offset.checked_add(bytes.len() as u64).filter(|end| end.div_ceil(BLOCK_BYTES) <= MOST_BLOCKS);
        let end = end.ok_or(SfsError::TooLarge)?;
        let (first, last) = (offset / BLOCK_BYTES, (end - 1) / BLOCK_BYTES);
        self.check_new(task, inode.0, first..last + 1)?;
        self.clear_tail(task, inode.0, offset)?;
        let mut left = bytes;
        for place in first..=last {
            let from = if place == first { (offset % BLOCK_BYTES) as usize } else { 0 };
            let count = left.len().min(BLOCK - from);
            let (part, rest) = left.split_at(count);
            left = rest;
            let slot = match count {
                BLOCK => self.slot_to_fill(task, inode.0, place)?,
                _ => self.slot_to_change(task, inode.0, place)?,
            };
            match self.media.holds_stamps() {
                true => self.waiting.bytes_mut(slot).iter_mut().zip(part).for_each(|(to, from)| *to = *from),
                false => self.waiting.bytes_mut(slot)[from..from + count].copy_from_slice(part),
            }
        }
        self.was_written(task, inode.0, end, last + 1 - first, Content::Data)?;
        self.relieve(task)
    }

    /// Writes whole blocks from block `first` on, of [`block_width`](Sfs::block_width) bytes each. `content` is what
    /// the workload calls them.
    pub fn write_whole(
        &mut self,
        task: &Task<'_>,
        inode: InodeNumber,
        first: u64,
        buffer: &[u8],
        content: Content,
    ) -> Result<(), SfsError> {
        self.check_writable()?;
        self.regular(task, inode.0)?;
        let width = self.media.block_width();
        debug_assert!(buffer.len().is_multiple_of(width), "whole blocks are written");
        let count = (buffer.len() / width) as u64;
        let end = first.checked_add(count).filter(|end| *end <= MOST_BLOCKS).ok_or(SfsError::TooLarge)?;
        self.check_new(task, inode.0, first..end)?;
        self.clear_tail(task, inode.0, first * BLOCK_BYTES)?;
        for (place, block) in (first..end).zip(buffer.chunks_exact(width)) {
            let slot = self.slot_to_fill(task, inode.0, place)?;
            self.waiting.bytes_mut(slot).copy_from_slice(block);
        }
        self.was_written(task, inode.0, end * BLOCK_BYTES, count, content)?;
        self.relieve(task)
    }

    /// Fails if the blocks of a range that are new would not fit.
    fn check_new(&mut self, task: &Task<'_>, inode: u64, places: Range<u64>) -> Result<(), SfsError> {
        // Nearly always there is room for all of them, new or not.
        if self.has_space(places.end - places.start) {
            return Ok(());
        }
        let mut new = 0;
        for place in places {
            new += u64::from(self.mapped(task, inode, place)? == 0);
        }
        if new == 0 { Ok(()) } else { self.check_space(task, new) }
    }

    /// The slot of a block whose bytes will all be replaced.
    fn slot_to_fill(&mut self, task: &Task<'_>, inode: u64, place: u64) -> Result<u32, SfsError> {
        let mut number = self.mapped(task, inode, place)?;
        if number == 0 {
            number = self.metadata.dat.take(task)?;
            self.map(task, inode, place, number)?;
            self.inode_mut(task, inode)?.blocks += 1;
        }
        let mut entry = self.metadata.dat.get(task, number)?;
        let address = entry.address.get();
        self.check_named(inode, number, &entry)?;
        self.tick(task);
        if address & WAITS != 0 {
            let slot = (address & !WAITS) as u32;
            // It is no longer what was cleaned.
            self.waiting.slot_mut(slot).is_cleaned = false;
            return Ok(slot);
        }
        let slot = self.waiting.add(number, inode, place);
        let waits = self.waiting.slot_mut(slot);
        waits.before = address;
        waits.crc_before = entry.crc.get();
        entry.address = (WAITS | u64::from(slot)).into();
        self.metadata.dat.set(task, number, &entry)?;
        Ok(slot)
    }

    /// The slot of a block of which only some bytes will be replaced: the others are in it.
    fn slot_to_change(&mut self, task: &Task<'_>, inode: u64, place: u64) -> Result<u32, SfsError> {
        let mut old = vec![0; self.media.block_width()];
        self.read_blocks(task, inode, place, &mut old)?;
        let slot = self.slot_to_fill(task, inode, place)?;
        self.waiting.bytes_mut(slot).copy_from_slice(&old);
        Ok(slot)
    }

    /// A file was written as far as `end`.
    fn was_written(
        &mut self,
        task: &Task<'_>,
        inode: u64,
        end: u64,
        blocks: u64,
        content: Content,
    ) -> Result<(), SfsError> {
        let now = self.wall(task);
        let file = self.inode_mut(task, inode)?;
        file.size = file.size.max(end);
        file.times.written(now);
        file.is_unlogged = true;
        self.counts.received.add(Label::host(content), blocks);
        Ok(())
    }

    /// The size of what is a regular file.
    pub(in crate::fs::sfs) fn regular(&mut self, task: &Task<'_>, inode: u64) -> Result<u64, SfsError> {
        let file = self.inode(task, inode)?;
        match file.kind {
            FileKind::Regular => Ok(file.size),
            FileKind::Directory => Err(SfsError::IsDirectory),
            _ => Err(SfsError::Invalid("only a regular file has bytes")),
        }
    }

    /// Fails unless the blocks of a range can be reserved. Returns their places.
    pub(in crate::fs::sfs) fn check_reservation(
        &mut self,
        task: &Task<'_>,
        inode: InodeNumber,
        offset: u64,
        length: u64,
    ) -> Result<Range<u64>, SfsError> {
        self.check_writable()?;
        self.regular(task, inode.0)?;
        let end = offset.checked_add(length).filter(|end| end.div_ceil(BLOCK_BYTES) <= MOST_BLOCKS);
        let end = end.ok_or(SfsError::TooLarge)?;
        if length == 0 {
            return Err(SfsError::Invalid("nothing is to be reserved"));
        }
        let places = offset / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES);
        if self.has_space(places.end - places.start) {
            return Ok(places);
        }
        // What is there already takes nothing.
        let (mut new, mut at) = (0, places.start);
        while at < places.end {
            match self.next_mapped(task, inode.0, at, places.end)? {
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

    /// Bytes that are reserved at once: a checkpoint behind them is no larger than there is room for.
    pub(in crate::fs::sfs) fn most_reserved_at_once(&self) -> u64 {
        (self.limits.metadata as u64 * crate::fs::sfs::media::format::DAT_ENTRIES / 4).max(1) * BLOCK_BYTES
    }

    /// Reserves the blocks from `offset` on, which read as zeros; the file grows to their end unless `keep_size`.
    pub fn allocate(
        &mut self,
        task: &Task<'_>,
        inode: InodeNumber,
        offset: u64,
        length: u64,
        keep_size: bool,
    ) -> Result<(), SfsError> {
        let places = self.check_reservation(task, inode, offset, length)?;
        let (size, end) = (self.regular(task, inode.0)?, offset + length);
        // A long one is made in parts, so that a checkpoint is never larger than there is room for.
        let mut from = places.start;
        while from < places.end {
            let to = places.end.min(from + self.most_reserved_at_once() / BLOCK_BYTES);
            self.reserve(task, inode.0, from..to)?;
            self.tell(&Record::Reserve { inode: inode.0, places: from..to });
            self.log.records.touch(inode.0);
            self.log.records.end();
            self.relieve(task)?;
            from = to;
        }
        if !keep_size {
            self.clear_tail(task, inode.0, end)?;
        }
        let now = self.wall(task);
        let file = self.inode_mut(task, inode.0)?;
        if !keep_size && end > size {
            file.size = end;
        }
        file.times.written(now);
        file.is_unlogged = true;
        self.log.records.touch(inode.0);
        self.relieve(task)
    }

    /// Gives a file a virtual block at each place of a range that has none.
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

    /// Gives back the blocks of these bytes, which read as zeros from then on. The size stays.
    pub fn punch(&mut self, task: &Task<'_>, inode: InodeNumber, offset: u64, length: u64) -> Result<(), SfsError> {
        self.check_writable()?;
        self.regular(task, inode.0)?;
        let end = offset.saturating_add(length).min(MOST_BLOCKS * BLOCK_BYTES);
        if length == 0 {
            return Err(SfsError::Invalid("nothing is to be given back"));
        }
        let (first, last) = (offset.div_ceil(BLOCK_BYTES), end / BLOCK_BYTES);
        if first > last {
            // Within one block.
            self.zero(task, inode.0, offset, end)?;
        } else {
            self.zero(task, inode.0, offset, first * BLOCK_BYTES)?;
            self.zero(task, inode.0, last * BLOCK_BYTES, end)?;
            let unmapped = self.unmap(task, inode.0, first..last);
            self.all_or_fail("a punch", unmapped)?;
            self.tell(&Record::Unmap { inode: inode.0, places: first..last });
            self.log.records.end();
            // An fdatasync must tell it, too.
            self.log.records.touch(inode.0);
        }
        let now = self.wall(task);
        let file = self.inode_mut(task, inode.0)?;
        file.times.written(now);
        file.is_unlogged = true;
        self.relieve(task)
    }

    /// A file will reach as far as `to` without being written from its end to there: what its last block holds behind
    /// the end, of a time when the file was longer, must not come to light. It is zeroed only now, and not when the
    /// file is cut off: should that be lost in a crash, the block must still be what it was.
    fn clear_tail(&mut self, task: &Task<'_>, inode: u64, to: u64) -> Result<(), SfsError> {
        let size = self.inode(task, inode)?.size;
        match to > size {
            true => self.zero(task, inode, size, to.min(size.next_multiple_of(BLOCK_BYTES))),
            false => Ok(()),
        }
    }

    /// Fills bytes of one block with zeros, if the block is there.
    fn zero(&mut self, task: &Task<'_>, inode: u64, from: u64, to: u64) -> Result<(), SfsError> {
        let place = from / BLOCK_BYTES;
        if from >= to || self.mapped(task, inode, place)? == 0 {
            return Ok(());
        }
        let width = self.media.block_width();
        let slot = self.slot_to_change(task, inode, place)?;
        let bytes = self.waiting.bytes_mut(slot);
        debug_assert!(to <= (place + 1) * BLOCK_BYTES, "bytes {from} to {to} are in one block");
        if width == BLOCK {
            let first = place * BLOCK_BYTES;
            bytes[(from - first) as usize..(to - first) as usize].fill(0);
        }
        Ok(())
    }

    /// Cuts a file off at `size` bytes, or lengthens it by zeros.
    pub(in crate::fs::sfs) fn resize(&mut self, task: &Task<'_>, inode: u64, size: u64) -> Result<(), SfsError> {
        let before = self.regular(task, inode)?;
        if size.div_ceil(BLOCK_BYTES) > MOST_BLOCKS {
            return Err(SfsError::TooLarge);
        }
        // A file that is cut off where it ends loses what is reserved behind.
        let first = size.div_ceil(BLOCK_BYTES);
        let is_cut = size < before || size == before && self.next_mapped(task, inode, first, MOST_BLOCKS)?.is_some();
        if is_cut {
            let unmapped = self.unmap(task, inode, first..u64::MAX);
            self.all_or_fail("a truncation", unmapped)?;
            self.tell(&Record::Unmap { inode, places: first..u64::MAX });
            self.log.records.end();
        }
        self.clear_tail(task, inode, size)?;
        let now = self.wall(task);
        let file = self.inode_mut(task, inode)?;
        file.size = size;
        file.safe_size = file.safe_size.min(size);
        file.times.written(now);
        file.is_unlogged = true;
        if is_cut {
            self.log.records.touch(inode);
        }
        Ok(())
    }

    /// The next byte from `offset` on that is stored (`data`), or that is not. `None`: there is none before the end
    /// (ENXIO). The end of the file counts as a hole.
    pub fn seek(
        &mut self,
        task: &Task<'_>,
        inode: InodeNumber,
        offset: u64,
        data: bool,
    ) -> Result<Option<u64>, SfsError> {
        let size = self.regular(task, inode.0)?;
        if offset >= size {
            return Ok(None);
        }
        let end = size.div_ceil(BLOCK_BYTES);
        let mut place = offset / BLOCK_BYTES;
        while place < end {
            let (next, number) = match self.next_mapped(task, inode.0, place, end)? {
                Some(found) => found,
                None => (end, 0),
            };
            if !data && next > place {
                return Ok(Some(offset.max(place * BLOCK_BYTES)));
            }
            if number == 0 {
                break;
            }
            // A block that is reserved and was never written is a hole; one that was given up is not.
            let entry = self.metadata.dat.get(task, number)?;
            let is_stored = entry.address.get() != 0 || entry.is_given_up();
            if is_stored == data {
                return Ok(Some(offset.max(next * BLOCK_BYTES)));
            }
            place = next + 1;
        }
        Ok(if data { None } else { Some(size) })
    }

    /// The next block of a file from block `place` on, written or reserved. `None`: it has none there or behind.
    pub fn next_block(&mut self, task: &Task<'_>, inode: InodeNumber, place: u64) -> Result<Option<u64>, SfsError> {
        self.regular(task, inode.0)?;
        Ok(self.next_mapped(task, inode.0, place, MOST_BLOCKS)?.map(|(place, _)| place))
    }
}
