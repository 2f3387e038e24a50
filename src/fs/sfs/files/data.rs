//! The data of files. A write fills dirty blocks.
//!
//! A read has three steps: look up the addresses of its blocks, read them, verify their checksums.
//!
//! Only the first step needs the volume: a caller that shares it leaves its gate before it reads the device. Meanwhile
//! a block may be written back or cleaned, and its segment freed, discarded and overwritten. The bytes read then have
//! another checksum. So a wrong checksum is damage only if the DAT still holds the same address and checksum
//! ([`Files::is_unmoved`]); otherwise the block is looked up again. A right checksum at an address that the DAT held when
//! the read began proves the content of that time.

use crate::crc;
use crate::fs::sfs::SfsError;
use crate::fs::sfs::files::Files;
use crate::fs::sfs::files::attributes::InodeNumber;
use crate::fs::sfs::media::Media;
use crate::fs::sfs::media::format::{BLOCK, DIRTY, DatEntry};
use crate::task::Task;
use std::ops::Range;

/// Bytes of a block, as a number.
const BLOCK_BYTES: u64 = BLOCK as u64;

/// Blocks looked up in one turn.
const TOUCHED_AT_ONCE: u32 = 4096;

/// Consecutive blocks of a file that are read in the same way.
enum Stretch {
    /// Blocks stored consecutively from an address, with their checksums.
    Stored(u64, Vec<u32>),
    /// One dirty block, by its slot.
    Dirty(u32),
    /// Number of blocks that are zeros.
    Hole(u64),
}

/// Consecutive blocks read by one request.
struct Run {
    /// Index of the first block in the file.
    place: u64,
    /// Address of the first block in the log.
    address: u64,
    /// The checksum of each block.
    checksums: Vec<u32>,
    /// The blocks' bytes in the buffer.
    bytes: Range<usize>,
}

/// A block with a wrong checksum.
#[derive(Clone, Copy, Debug)]
pub(in crate::fs::sfs) struct WrongBlock {
    place: u64,
    address: u64,
    expected: u32,
    found: u32,
}

/// A read with its blocks looked up. Dirty blocks and holes are already in the buffer.
pub(in crate::fs::sfs) struct PlannedRead {
    runs: Vec<Run>,
}

impl PlannedRead {
    /// Reads the stored blocks into the buffer of the planned read. Returns those with wrong checksums.
    ///
    /// # Errors
    ///
    /// If the device fails.
    pub fn fetch(&self, task: &Task<'_>, media: &Media, buffer: &mut [u8]) -> Result<Vec<WrongBlock>, SfsError> {
        let (width, mut done, mut wrong) = (media.block_width(), task.now(), Vec::new());
        for run in &self.runs {
            let bytes = &mut buffer[run.bytes.clone()];
            // All requests are issued at once.
            done = done.max(media.begin_read(task, run.address, bytes)?);
            for (at, (block, expected)) in (0..).zip(bytes.chunks_exact(width).zip(&run.checksums)) {
                // The checksum of a stamp is that of its bytes.
                let found = crc::crc32c(block);
                if found != *expected {
                    let (place, address) = (run.place + at, run.address + at);
                    wrong.push(WrongBlock { place, address, expected: *expected, found });
                }
            }
        }
        task.wait_until(done);
        Ok(wrong)
    }
}

/// The blocks that hold a range of a file's bytes.
#[derive(Clone, Debug)]
pub(in crate::fs::sfs) struct Covered {
    /// Number of bytes: fewer than requested at the end of the file.
    pub length: usize,
    /// The blocks of the file.
    pub blocks: Range<u64>,
    /// Offset of the first byte in the first block.
    head: usize,
}

impl Covered {
    /// True if the range is whole blocks, which can be read in place.
    pub fn is_whole(&self) -> bool {
        self.head == 0 && self.length.is_multiple_of(BLOCK)
    }

    /// Copies the range out of its blocks.
    pub fn copy(&self, blocks: &[u8], bytes: &mut [u8]) {
        bytes[..self.length].copy_from_slice(&blocks[self.head..self.head + self.length]);
    }
}

impl Files {
    /// Reads whole blocks from block `first`, of the media's block width; holes read as zeros.
    pub(in crate::fs::sfs) fn read_blocks(
        &mut self,
        task: &Task<'_>,
        inode: u64,
        first: u64,
        buffer: &mut [u8],
    ) -> Result<(), SfsError> {
        let planned = self.plan_read(task, inode, first, buffer)?;
        let wrong = planned.fetch(task, &self.media, buffer)?;
        // The volume is not shared here, so no block has moved.
        wrong.first().map_or(Ok(()), |wrong| Err(self.damaged_block(inode, wrong)))
    }

    /// The blocks of `length` bytes from `offset` of a regular file, up to its end.
    pub(in crate::fs::sfs) fn covered(
        &mut self,
        task: &Task<'_>,
        inode: InodeNumber,
        offset: u64,
        length: usize,
    ) -> Result<Covered, SfsError> {
        let size = self.regular(task, inode.0)?;
        let length = (size.saturating_sub(offset)).min(length as u64);
        let blocks = offset / BLOCK_BYTES..offset.saturating_add(length).div_ceil(BLOCK_BYTES);
        Ok(Covered { length: length as usize, blocks, head: (offset % BLOCK_BYTES) as usize })
    }

    /// Looks up whole blocks from block `first`. Copies dirty blocks, and zeroes holes.
    pub(in crate::fs::sfs) fn plan_read(
        &mut self,
        task: &Task<'_>,
        inode: u64,
        first: u64,
        buffer: &mut [u8],
    ) -> Result<PlannedRead, SfsError> {
        let width = self.media.block_width();
        debug_assert!(buffer.len().is_multiple_of(width), "the buffer holds whole blocks");
        let count = (buffer.len() / width) as u64;
        let (mut at, mut runs) = (0, Vec::new());
        while at < count {
            let from = at as usize * width;
            at += match self.stretch(task, inode, first + at, count - at)? {
                Stretch::Hole(blocks) => {
                    buffer[from..from + blocks as usize * width].fill(0);
                    blocks
                }
                Stretch::Dirty(slot) => {
                    let block = &mut buffer[from..from + width];
                    block.copy_from_slice(self.dirty_blocks.bytes(slot));
                    let waits = self.dirty_blocks.slot(slot);
                    if waits.is_cleaned() {
                        let (address, expected) = (waits.before, waits.crc_before);
                        let found = crc::crc32c(block);
                        if found != expected {
                            let wrong = WrongBlock { place: first + at, address, expected, found };
                            return Err(self.damaged_block(inode, &wrong));
                        }
                    }
                    1
                }
                Stretch::Stored(address, checksums) => {
                    let blocks = checksums.len();
                    let bytes = from..from + blocks * width;
                    runs.push(Run { place: first + at, address, checksums, bytes });
                    blocks as u64
                }
            };
        }
        self.reads.blocks += runs.iter().map(|run| run.checksums.len() as u64).sum::<u64>();
        Ok(PlannedRead { runs })
    }

    /// Loads the metadata for a write of these bytes: maps, entries of the DAT, and partly written blocks.
    pub(in crate::fs::sfs) fn touch_bytes(
        &mut self,
        task: &Task<'_>,
        inode: InodeNumber,
        offset: u64,
        length: u64,
    ) -> Result<(), SfsError> {
        let end = offset.saturating_add(length);
        let size = self.regular(task, inode.0)?;
        // The tail of the last block is zeroed when the file grows.
        let tail = (end > size && !size.is_multiple_of(BLOCK_BYTES)).then_some(size / BLOCK_BYTES);
        let head = (!offset.is_multiple_of(BLOCK_BYTES)).then_some(offset / BLOCK_BYTES);
        let last = (!end.is_multiple_of(BLOCK_BYTES)).then_some(end / BLOCK_BYTES);
        for place in [tail, head, last].into_iter().flatten() {
            if let Stretch::Stored(address, _) = self.stretch(task, inode.0, place, 1)? {
                self.media.note_missing(address);
            }
        }
        for place in offset / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES) {
            let number = self.mapped(task, inode.0, place)?;
            if number != 0 {
                let _ = self.metadata.dat.get(task, number);
            }
        }
        Ok(())
    }

    /// Loads the map of a range of blocks, and their entries in the DAT. Returns the block index to continue from.
    pub(in crate::fs::sfs) fn touch_blocks(
        &mut self,
        task: &Task<'_>,
        inode: u64,
        places: Range<u64>,
    ) -> Result<Option<u64>, SfsError> {
        let mut from = places.start;
        for _ in 0..TOUCHED_AT_ONCE {
            let Some((place, number)) = self.next_mapped(task, inode, from, places.end)? else { return Ok(None) };
            let _ = self.metadata.dat.get(task, number);
            from = place + 1;
        }
        Ok(Some(from))
    }

    /// True if the DAT still holds the address and checksum of a wrong block: the block is damaged.
    pub(in crate::fs::sfs) fn is_unmoved(
        &mut self,
        task: &Task<'_>,
        inode: u64,
        wrong: &WrongBlock,
    ) -> Result<bool, SfsError> {
        let number = self.mapped(task, inode, wrong.place)?;
        if number == 0 {
            return Ok(false);
        }
        let entry = self.metadata.dat.get(task, number)?;
        Ok(entry.address.get() == wrong.address && entry.crc.get() == wrong.expected)
    }

    /// Counts a damaged block, and returns its error.
    pub(in crate::fs::sfs) fn damaged_block(&mut self, inode: u64, wrong: &WrongBlock) -> SfsError {
        self.reads.damaged += 1;
        let WrongBlock { place, address, expected, found } = wrong;
        let what = format!("block {place} of the file with inode {inode}");
        let why = format!("its checksum is {found:08x}, and should be {expected:08x} (block {address} of the log)");
        SfsError::Damaged { what, why }
    }

    /// The longest stretch from block `place`, at most `most` blocks.
    fn stretch(&mut self, task: &Task<'_>, inode: u64, place: u64, most: u64) -> Result<Stretch, SfsError> {
        let end = place + most;
        let number = self.mapped(task, inode, place)?;
        if number == 0 {
            let next = self.next_mapped(task, inode, place, end)?;
            return Ok(Stretch::Hole(next.map_or(end, |(next, _)| next) - place));
        }
        let entry = self.metadata.dat.get(task, number)?;
        let address = entry.address.get();
        self.check_referenced(inode, number, &entry)?;
        if entry.is_given_up() {
            let why = "its content was lost in a repair: it is readable after it is overwritten".to_string();
            return Err(SfsError::Damaged { what: format!("block {place} of the file with inode {inode}"), why });
        }
        if address == 0 {
            return Ok(Stretch::Hole(1));
        }
        if address & DIRTY != 0 {
            return Ok(Stretch::Dirty((address & !DIRTY) as u32));
        }
        crate::fs::sfs::metadata::paged::check_address(&self.media, "DAT", address)?;
        let mut checksums = vec![entry.crc.get()];
        let segment_blocks = u64::from(self.media.segment_blocks());
        for next in 1..most {
            // A request stays within one segment.
            if (address + next).is_multiple_of(segment_blocks) {
                break;
            }
            let number = self.mapped(task, inode, place + next)?;
            if number == 0 {
                break;
            }
            let entry = self.metadata.dat.get(task, number)?;
            if entry.address.get() != address + next {
                break;
            }
            checksums.push(entry.crc.get());
        }
        Ok(Stretch::Stored(address, checksums))
    }

    /// Fails if a virtual block in a map is free.
    pub(in crate::fs::sfs) fn check_referenced(
        &self,
        inode: u64,
        number: u64,
        entry: &DatEntry,
    ) -> Result<(), SfsError> {
        if entry.is_taken == 1 {
            return Ok(());
        }
        let why = format!("it refers to virtual block {number}, which is free");
        Err(SfsError::Damaged { what: format!("the map of inode {inode}"), why })
    }

    /// The slot of a block that is overwritten completely.
    pub(in crate::fs::sfs) fn slot_to_fill(
        &mut self,
        task: &Task<'_>,
        inode: u64,
        place: u64,
    ) -> Result<u32, SfsError> {
        self.clock.advance(task);
        self.slot(task, inode, place, None)
    }

    /// The slot of a block that is overwritten partly. It holds the block's other bytes.
    pub(in crate::fs::sfs) fn slot_to_change(
        &mut self,
        task: &Task<'_>,
        inode: u64,
        place: u64,
    ) -> Result<u32, SfsError> {
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
    pub(in crate::fs::sfs) fn clear_tail(&mut self, task: &Task<'_>, inode: u64, to: u64) -> Result<(), SfsError> {
        let size = self.inode(task, inode)?.size;
        match to > size {
            true => self.zero(task, inode, size, to.min(size.next_multiple_of(BLOCK_BYTES))),
            false => Ok(()),
        }
    }

    /// Zeroes bytes of one block, if it is allocated.
    pub(in crate::fs::sfs) fn zero(&mut self, task: &Task<'_>, inode: u64, from: u64, to: u64) -> Result<(), SfsError> {
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

    /// Updates size and times after a write up to `end`.
    pub(in crate::fs::sfs) fn note_write(&mut self, task: &Task<'_>, inode: u64, end: u64) -> Result<(), SfsError> {
        let now = self.clock.wall(task);
        let file = self.inode_mut(task, inode)?;
        file.size = file.size.max(end);
        file.times.written(now);
        file.is_unlogged = true;
        Ok(())
    }
}
