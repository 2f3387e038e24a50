//! Writes the bytes of a file: into memory, where they wait, or with `data=journal` into the running transaction, at once or
//! when the file is written out.

use super::map::Maps;
use super::placing::MAP_BLOCKS;
use super::reading::Reads;
use super::write_back::WriteBack;
use crate::fs::ext::allocation::Allocation;
use crate::fs::ext::blocks::Bytes;
use crate::fs::ext::changes::Changes;
use crate::fs::ext::files::map::Run;
use crate::fs::ext::files::node::{File, Page};
use crate::fs::ext::format::inode::flag;
use crate::fs::ext::journal::Journal;
use crate::fs::ext::metadata::Metadata;
use crate::fs::ext::settings::ExtSettings;
use crate::fs::nodes::parts::{Part, parts};
use crate::fs::volume::{Timestamp, VolumeError};
use crate::task::Task;
use std::borrow::Cow;
use std::ops::Range;

/// Blocks of files that one handle puts into a transaction, at most.
pub fn logged_at_once(journal: &dyn Journal) -> usize {
    (journal.most_blocks() / 4).clamp(1, 64)
}

/// The changes of files: bytes, sizes, inodes; and the end of files.
#[derive(Clone, Copy)]
pub struct Writes<'e> {
    pub settings: &'e ExtSettings,
    pub metadata: &'e Metadata,
    pub changes: &'e Changes,
    pub write_back: WriteBack<'e>,
    /// The time on the wall clock at [`Time::ZERO`](crate::time::Time::ZERO).
    pub origin: Timestamp,
}

impl<'e> Writes<'e> {
    pub fn maps(&self) -> Maps<'e> {
        self.write_back.maps()
    }

    pub fn allocation(&self) -> Allocation<'e> {
        self.write_back.allocation()
    }

    fn reads(&self) -> Reads<'e> {
        self.write_back.reads()
    }

    /// Writes all of `bytes` from `offset` on. The file grows where it must; its times are the caller's.
    pub fn write_file(&self, task: &Task<'_>, file: &mut File, offset: u64, bytes: &[u8]) -> Result<(), VolumeError> {
        let longest = self.metadata.shape.longest_file(file.inode.has(flag::EXTENTS));
        let end = offset.checked_add(bytes.len() as u64).filter(|end| *end <= longest).ok_or(VolumeError::TooLarge)?;
        if offset > file.inode.size() {
            self.clear_tail(task, file)?;
        }
        match self.settings.logs_at_once() {
            true => self.write_logged(task, file, offset, bytes)?,
            false => self.write_waiting(task, file, offset, bytes)?,
        }
        if end > file.inode.size() {
            file.inode.set_size(end);
        }
        file.is_unstored = true;
        Ok(())
    }

    /// Blocks of a range of a file that have neither a place nor the promise of one.
    pub fn missing(&self, task: &Task<'_>, file: &File, blocks: Range<u64>) -> Result<u64, VolumeError> {
        let mut missing = 0;
        let mut at = blocks.start;
        while at < blocks.end {
            let run = self.maps().run(task, file, at)?;
            let end = (at + run.count).min(blocks.end);
            if run.place.is_none() {
                let promised = file.pages.range(at..end).filter(|(_, page)| page.is_promised).count();
                missing += end - at - promised as u64;
            }
            at = end;
        }
        Ok(missing)
    }

    fn write_waiting(&self, task: &Task<'_>, file: &mut File, offset: u64, bytes: &[u8]) -> Result<(), VolumeError> {
        let block = self.metadata.shape.block_bytes;
        let blocks = offset / block as u64..(offset + bytes.len() as u64).div_ceil(block as u64);
        let missing = self.missing(task, file, blocks)?;
        let promise = self.allocation().promise(task, missing, true)?;
        // A read before any change may fail.
        let mut loaded = Vec::new();
        for part in parts(offset, bytes.len(), block).filter(|part| part.within.len() < block) {
            if !file.pages.contains_key(&part.block) {
                loaded.push((part.block, self.loaded(task, file, part.block)?.into()));
            }
        }
        let mut left = missing;
        for (at, bytes) in loaded {
            left -= u64::from(self.add_page(task, file, at, bytes)?);
        }
        let mut run = Run { place: None, is_written: false, count: 0 };
        let mut run_end = 0;
        for part in parts(offset, bytes.len(), block) {
            let from = &bytes[part.from.clone()];
            if let Some(page) = file.pages.get_mut(&part.block) {
                self.fill(page.bytes.make_mut(None), &part.within, from);
                continue;
            }
            if part.block >= run_end {
                run = self.maps().run(task, file, part.block)?;
                run_end = part.block + run.count;
            }
            left -= u64::from(run.place.is_none());
            self.insert_page(file, part.block, self.whole_page(from).into(), run.place.is_none());
        }
        debug_assert_eq!(left, 0, "each promise has a page");
        promise.keep();
        Ok(())
    }

    /// Adds a page; true if a place is promised to it.
    fn add_page(&self, task: &Task<'_>, file: &mut File, at: u64, bytes: Bytes) -> Result<bool, VolumeError> {
        let is_promised = self.maps().run(task, file, at)?.place.is_none();
        self.insert_page(file, at, bytes, is_promised);
        Ok(is_promised)
    }

    fn insert_page(&self, file: &mut File, at: u64, bytes: Bytes, is_promised: bool) {
        self.write_back.waiting.add_bytes(self.metadata.shape.block_bytes);
        file.pages.insert(at, Page { bytes, is_promised });
    }

    /// The page of a block that is written whole: its bytes, or those that stand for it.
    fn whole_page<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        debug_assert!(bytes.len() >= self.metadata.media.width(), "the block is written whole");
        &bytes[..self.metadata.media.width()]
    }

    /// Puts bytes into a block; of stamps, the first ones stand for it.
    fn fill(&self, block: &mut [u8], within: &Range<usize>, bytes: &[u8]) {
        match self.metadata.media.holds_stamps() {
            true => block.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from),
            false => block[within.clone()].copy_from_slice(bytes),
        }
    }

    /// The bytes of a block of a file; bytes behind its end are zero.
    fn loaded(&self, task: &Task<'_>, file: &File, at: u64) -> Result<Vec<u8>, VolumeError> {
        let mut bytes = vec![0; self.metadata.media.width()];
        self.reads().read_blocks(task, file, at, &mut bytes)?;
        let first = at * self.metadata.shape.block_bytes as u64;
        let kept = file.inode.size().saturating_sub(first);
        if !self.metadata.media.holds_stamps() && kept < bytes.len() as u64 {
            bytes[kept as usize..].fill(0);
        }
        Ok(bytes)
    }

    /// Writes into the running transaction.
    fn write_logged(&self, task: &Task<'_>, file: &mut File, offset: u64, bytes: &[u8]) -> Result<(), VolumeError> {
        let block = self.metadata.shape.block_bytes;
        let at_once = logged_at_once(self.changes.journal()?);
        let all: Vec<Part> = parts(offset, bytes.len(), block).collect();
        let missing = match (all.first(), all.last()) {
            (Some(first), Some(last)) => self.missing(task, file, first.block..last.block + 1)?,
            _ => 0,
        };
        let promise =
            self.allocation().promise(task, missing + u64::from(missing > 0) * MAP_BLOCKS as u64 / 4, true)?;
        for some in all.chunks(at_once) {
            let mut filled = Vec::with_capacity(some.len());
            for part in some {
                let from = &bytes[part.from.clone()];
                let page = match part.within.len() == block {
                    true => Cow::Borrowed(self.whole_page(from)),
                    false => {
                        let mut page = self.loaded(task, file, part.block)?;
                        self.fill(&mut page, &part.within, from);
                        Cow::Owned(page)
                    }
                };
                filled.push((part.block, page));
            }
            let end = offset + some.last().map_or(0, |part| part.from.end as u64);
            self.write_back.log_pages(task, file, filled, end)?;
        }
        drop(promise);
        Ok(())
    }

    /// Makes the bytes behind the end of a file zero in its last block, before the file grows.
    pub fn clear_tail(&self, task: &Task<'_>, file: &mut File) -> Result<(), VolumeError> {
        let block = self.metadata.shape.block_bytes as u64;
        let size = file.inode.size();
        self.clear_bytes(task, file, size..size.next_multiple_of(block))
    }

    /// Makes bytes within one block of a file zero, if they are not.
    pub fn clear_bytes(&self, task: &Task<'_>, file: &mut File, bytes: Range<u64>) -> Result<(), VolumeError> {
        let block = self.metadata.shape.block_bytes as u64;
        let at = bytes.start / block;
        if bytes.is_empty() || self.metadata.media.holds_stamps() {
            return Ok(());
        }
        if !file.pages.contains_key(&at) && self.maps().run(task, file, at)?.stored().is_none() {
            return Ok(());
        }
        let mut whole = vec![0; block as usize];
        self.reads().read_blocks(task, file, at, &mut whole)?;
        let cleared = &mut whole[(bytes.start % block) as usize..(bytes.end - at * block) as usize];
        if cleared.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        cleared.fill(0);
        match (file.pages.get_mut(&at), self.settings.logs_at_once()) {
            (Some(page), _) => page.bytes = whole.into(),
            (None, true) => {
                let end = file.stored_size;
                self.write_back.log_pages(task, file, vec![(at, whole)], end)?;
            }
            (None, false) => {
                self.add_page(task, file, at, whole.into())?;
                file.is_unstored = true;
            }
        }
        Ok(())
    }
}
