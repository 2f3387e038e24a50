//! Changes of the older map of a file's blocks.

use crate::fs::ext::files::map::Maps;
use crate::fs::ext::files::node::File;
use crate::fs::ext::format::block_map::{DIRECT, Way};
use crate::fs::ext::format::bytes::{le32, put32};
use crate::fs::ext::journal::Handle;
use crate::fs::volume::VolumeError;
use crate::label::Content;
use std::ops::Range;

/// The findings of a cut.
struct Cut {
    blocks: Range<u64>,
    most: usize,
    freed: Vec<Range<u64>>,
    is_more: bool,
}

impl Cut {
    /// Takes a block, the ones behind it first. False if it is too much at once.
    fn take(&mut self, block: u64) -> bool {
        let count = self.freed.len();
        match self.freed.last_mut() {
            Some(last) if last.start == block + 1 => last.start = block,
            _ if count == self.most => {
                self.is_more = true;
                return false;
            }
            _ => self.freed.push(block..block + 1),
        }
        true
    }
}

impl Maps<'_> {
    /// Names a block of a file that has none.
    pub fn put_number(&self, handle: &Handle<'_>, file: &mut File, at: u64, block: u64) -> Result<(), VolumeError> {
        let pointers = self.metadata.shape.block_bytes as u64 / 4;
        let way = Way::to(at, pointers).filter(|_| block <= u64::from(u32::MAX)).ok_or(VolumeError::TooLarge)?;
        let mut holder = None;
        for (level, place) in way.places().iter().enumerate() {
            if level == way.levels {
                self.set_number(handle, file, holder, *place, block)?;
                break;
            }
            let numbers = match holder {
                None => file.inode.map().into(),
                Some(holder) => self.pointer_block(handle.task, file, holder)?,
            };
            let mut next = self.pointer(file, &numbers, *place)?;
            if next == 0 {
                let goal = file.goal;
                next = self.take_map_block(handle, file, goal)?;
                handle.set(next, Content::Metadata, &vec![0; self.metadata.shape.block_bytes]);
                self.set_number(handle, file, holder, *place, next)?;
            }
            holder = Some(next);
        }
        Ok(())
    }

    /// Sets a number in the inode, or in a block of numbers.
    fn set_number(
        &self,
        handle: &Handle<'_>,
        file: &mut File,
        holder: Option<u64>,
        place: u32,
        number: u64,
    ) -> Result<(), VolumeError> {
        let at = 4 * place as usize;
        match holder {
            None => put32(file.inode.map_mut(), at, number as u32),
            Some(holder) => {
                let read = |task: &crate::task::Task<'_>| self.pointer_block(task, file, holder).map(drop);
                handle.change_block(holder, &read, |bytes| put32(bytes, at, number as u32))?;
            }
        }
        Ok(())
    }

    /// Takes blocks out of a range of a file, at most `most` runs of them, the last first. Answers the runs, and true if
    /// there are more.
    pub fn cut_numbers(
        &self,
        handle: &Handle<'_>,
        file: &mut File,
        blocks: Range<u64>,
        most: usize,
    ) -> Result<(Vec<Range<u64>>, bool), VolumeError> {
        let pointers = self.metadata.shape.block_bytes as u64 / 4;
        let mut cut = Cut { blocks, most, freed: Vec::new(), is_more: false };
        let spans = [pointers, pointers.pow(2), pointers.pow(3)];
        for level in (1..=3).rev() {
            let first = DIRECT + spans[..level - 1].iter().sum::<u64>();
            let place = DIRECT as u32 + level as u32 - 1;
            let block = self.pointer(file, file.inode.map(), place)?;
            if block != 0 && !cut.is_more && self.cut_below(handle, file, block, level, first, &mut cut)? {
                put32(file.inode.map_mut(), 4 * place as usize, 0);
            }
        }
        for place in (0..DIRECT).rev().filter(|place| cut.blocks.contains(place)).collect::<Vec<_>>() {
            let block = self.pointer(file, file.inode.map(), place as u32)?;
            if block != 0 && !cut.is_more && cut.take(block) {
                put32(file.inode.map_mut(), 4 * place as usize, 0);
            }
        }
        Ok((cut.freed, cut.is_more))
    }

    /// The same below a block of numbers, of which the first is that of block `first` of the file. True if none is left,
    /// and the block is freed.
    fn cut_below(
        &self,
        handle: &Handle<'_>,
        file: &mut File,
        block: u64,
        level: usize,
        first: u64,
        cut: &mut Cut,
    ) -> Result<bool, VolumeError> {
        let pointers = self.metadata.shape.block_bytes as u64 / 4;
        let span = pointers.pow(level as u32 - 1);
        if cut.blocks.end <= first || cut.blocks.start >= first + span * pointers {
            return Ok(false);
        }
        let mut numbers = self.pointer_block(handle.task, file, block)?.to_vec();
        let mut is_changed = false;
        for place in (0..pointers).rev() {
            let at = first + place * span;
            let below = self.pointer(file, &numbers, place as u32)?;
            if below == 0 || cut.is_more || cut.blocks.end <= at || cut.blocks.start >= at + span {
                continue;
            }
            let is_gone = match level {
                1 => cut.take(below),
                _ => self.cut_below(handle, file, below, level - 1, at, cut)?,
            };
            if is_gone {
                put32(&mut numbers, 4 * place as usize, 0);
                is_changed = true;
            }
        }
        let is_empty = (0..pointers as usize).all(|place| le32(&numbers, 4 * place) == 0);
        if is_empty {
            self.free_map_block(handle, file, block)?;
        } else if is_changed {
            handle.set(block, Content::Metadata, &numbers);
        }
        Ok(is_empty)
    }
}
