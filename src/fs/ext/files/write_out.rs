//! Writes out the dirty pages of a file.
//!
//! Places are found for whole runs. With `data=ordered`, blocks are kept for the run, the bytes are written there, and then
//! one handle marks the blocks as used and puts them into the file's map: a crash between leaves the file as it was. With
//! `data=writeback` the map comes first. With `data=journal` and `log-data=delayed` the pages join the transaction that has
//! their places; with `log-data=overwrites` only those do whose blocks have older bytes, and the others are as with
//! `data=ordered`.

use super::placing::{MAP_BLOCKS, NUMBERS_AT_ONCE};
use super::writing::logged_at_once;
use crate::fs::ext::blocks::Bytes;
use crate::fs::ext::files::node::{File, Node};
use crate::fs::ext::files::write_back::WriteBack;
use crate::fs::ext::format::inode::flag;
use crate::fs::ext::journal::{Handle, Reason};
use crate::fs::ext::settings::DataMode;
use crate::fs::volume::{FileKind, VolumeError};
use crate::label::{Content, Label};
use crate::task::Task;
use std::ops::{Deref, Range};

/// Bytes of a file that are written at once, and behind its gate if nobody syncs it.
const AT_ONCE: usize = 4 << 20;
/// The same where the device answers while a write is in flight: a larger piece gains nothing there, and a writer of the
/// file waits for the gate that much longer.
const BEHIND_AT_ONCE: usize = 1 << 20;

impl WriteBack<'_> {
    /// Writes out all that waits of a file, and its inode. The task is behind its gate.
    pub fn write_out(&self, task: &Task<'_>, node: &Node, file: &mut File) -> Result<(), VolumeError> {
        loop {
            self.write_piece(task, node, file, 0..u64::MAX)?;
            if file.pages.is_empty() {
                return Ok(());
            }
        }
    }

    /// Writes out a piece of the dirty pages in a range of a file's blocks, 1 or 4 MiB, and the inode with it if
    /// nothing more waits. Answers the block behind the piece, or the end of the range if nothing waits there any more. The
    /// task is behind the file's gate, and may leave it before the next piece.
    pub fn write_piece(
        &self,
        task: &Task<'_>,
        node: &Node,
        file: &mut File,
        range: Range<u64>,
    ) -> Result<u64, VolumeError> {
        assert!(file.flight.is_none(), "an older page in flight could be written after a newer one");
        let at_once = if self.metadata.media.is_written_behind() { BEHIND_AT_ONCE } else { AT_ONCE };
        let mut left = (at_once / self.metadata.shape.block_bytes) as u64;
        let (mut at, mut grown) = (range.start, file.stored_size);
        while left > 0 {
            let Some((first, _)) = file.pages.range(at..range.end.max(at)).next() else {
                at = range.end;
                break;
            };
            let first = *first;
            let most = left.min(range.end - first);
            let end = (first..first + most).take_while(|at| file.pages.contains_key(at)).count() as u64 + first;
            let written = self.write_pages(task, file, first..end)?;
            grown = grown.max(self.stored_to(file, &written));
            left -= written.end - written.start;
            at = written.end;
        }
        if file.pages.is_empty() {
            self.all_is_written(task, node, file)?;
        } else if grown > file.stored_size {
            self.store_rest(task, file, grown)?;
        }
        Ok(at)
    }

    /// Puts the inode of a file of which no pages wait any more into its table.
    pub fn all_is_written(&self, task: &Task<'_>, node: &Node, file: &mut File) -> Result<(), VolumeError> {
        self.store_rest(task, file, file.inode.size())?;
        self.waits_no_more(file);
        node.set_waits(false);
        Ok(())
    }

    /// Puts a file's inode into its table if the table has an older one. The bytes up to `stored_size` are written: what
    /// lay in blocks that the file had already has grown it, too.
    pub fn store_rest(&self, task: &Task<'_>, file: &mut File, stored_size: u64) -> Result<(), VolumeError> {
        let is_needed = file.stored_size != stored_size;
        if file.is_unstored || is_needed {
            file.stored_size = stored_size;
            self.changes.within(task, MAP_BLOCKS, |handle| {
                self.changes.changing(|| self.inodes.store_inode(handle, file, is_needed))?;
                handle.tracked(|tracker| {
                    if file.kind() == FileKind::Directory {
                        tracker.exclude(Reason::Directory);
                    }
                });
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Writes a run of pages that wait, or the first of them. Answers which.
    fn write_pages(&self, task: &Task<'_>, file: &mut File, blocks: Range<u64>) -> Result<Range<u64>, VolumeError> {
        let run = self.maps().run(task, file, blocks.start)?;
        let is_new = run.stored().is_none();
        let is_logged = if is_new { self.settings.logs_new_blocks() } else { self.settings.logs_overwrites() };
        let most = match is_new {
            _ if is_logged => logged_at_once(self.changes.journal()?) as u64,
            true => self.placed_at_once(file),
            false => u64::MAX,
        };
        let blocks = blocks.start..blocks.end.min(blocks.start.saturating_add(run.count.min(most)));
        let blocks = match run.place {
            _ if is_logged => {
                let pages =
                    file.pages.range(blocks.clone()).map(|(at, page)| (*at, Bytes::clone(&page.bytes))).collect();
                let end = self.stored_to(file, &blocks);
                self.log_pages(task, file, pages, end)?;
                blocks
            }
            Some(place) if run.is_written => {
                self.send_run(task, file, &blocks, place)?;
                blocks
            }
            Some(place) => self.write_reserved(task, file, blocks, place)?,
            None => self.write_new(task, file, blocks)?,
        };
        for at in blocks.clone() {
            let page = file.pages.remove(&at).expect("it was written");
            self.waiting.take_bytes(self.metadata.shape.block_bytes);
            if page.is_promised {
                self.inodes.maps.allocation.space.free.take_back(1);
            }
        }
        Ok(blocks)
    }

    fn send_run(&self, task: &Task<'_>, file: &File, blocks: &Range<u64>, place: u64) -> Result<(), VolumeError> {
        let pages = file.pages.range(blocks.clone()).map(|(_, page)| &page.bytes);
        self.send_pages(task, place, (blocks.end - blocks.start) as usize, pages)
    }

    /// Writes pages of a file to a run of blocks, and puts them into the cache.
    pub fn send_pages<'p>(
        &self,
        task: &Task<'_>,
        place: u64,
        count: usize,
        pages: impl Iterator<Item = &'p Bytes> + Clone,
    ) -> Result<(), VolumeError> {
        let label = Label::host(Content::Data);
        let written = self.metadata.media.write_pages(task, place, count, pages.clone().map(|page| &page[..]), label);
        match (&written, &self.pages) {
            (Ok(()), Some(cache)) => {
                (place..).zip(pages).for_each(|(block, page)| cache.put(block, Bytes::clone(page)))
            }
            (Ok(()), None) => {}
            // The device may hold the older bytes, the newer ones or neither.
            (Err(_), Some(cache)) => (place..place + count as u64).for_each(|block| cache.forget(block)),
            (Err(_), None) => {}
        }
        Ok(written?)
    }

    /// The bytes of the file that are stored when these blocks are.
    fn stored_to(&self, file: &File, blocks: &Range<u64>) -> u64 {
        file.stored_size.max(file.inode.size().min(blocks.end * self.metadata.shape.block_bytes as u64))
    }

    /// Writes pages whose blocks are reserved.
    fn write_reserved(
        &self,
        task: &Task<'_>,
        file: &mut File,
        blocks: Range<u64>,
        place: u64,
    ) -> Result<Range<u64>, VolumeError> {
        let is_ordered = self.settings.data != DataMode::Writeback;
        if is_ordered {
            self.send_run(task, file, &blocks, place)?;
        }
        self.changes.within(task, MAP_BLOCKS, |handle| {
            self.changes.changing(|| {
                self.maps().mark_written(handle, file, blocks.clone())?;
                file.stored_size = self.stored_to(file, &blocks);
                self.inodes.store_inode(handle, file, true)
            })?;
            handle.tracked(|tracker| tracker.range(file.number, blocks.clone()));
            Ok(())
        })?;
        if !is_ordered {
            self.send_run(task, file, &blocks, place)?;
        }
        Ok(blocks)
    }

    /// Writes pages that have no blocks yet: as many as lie in one run.
    fn write_new(&self, task: &Task<'_>, file: &mut File, blocks: Range<u64>) -> Result<Range<u64>, VolumeError> {
        let goal = self.maps().goal(task, file, blocks.start)?;
        let is_ordered = self.settings.data != DataMode::Writeback;
        let kept = self.allocation().keep_blocks(task, goal, (blocks.end - blocks.start) as u32)?;
        let run = kept.run();
        let blocks = blocks.start..blocks.start + (run.end - run.start);
        if is_ordered {
            self.send_run(task, file, &blocks, run.start)?;
        }
        self.changes.within(task, 2 * MAP_BLOCKS + super::placing::NUMBERS_AT_ONCE as usize / 8, |handle| {
            self.changes.changing(|| {
                kept.take(handle)?;
                self.maps().put_run(handle, file, blocks.start, run.clone(), true)?;
                file.stored_size = self.stored_to(file, &blocks);
                self.inodes.store_inode(handle, file, true)
            })?;
            handle.tracked(|tracker| tracker.range(file.number, blocks.clone()));
            Ok(())
        })?;
        if !is_ordered {
            self.send_run(task, file, &blocks, run.start)?;
        }
        Ok(blocks)
    }

    /// Puts blocks of a file into the running transaction, with places where they have none: the bytes up to `end` are stored
    /// then. They are as many as one handle can have.
    pub fn log_pages(
        &self,
        task: &Task<'_>,
        file: &mut File,
        pages: Vec<(u64, impl Deref<Target = [u8]>)>,
        end: u64,
    ) -> Result<(), VolumeError> {
        self.inodes.maps.has_logged_data.store(true, std::sync::atomic::Ordering::SeqCst);
        let blocks = pages.len() + 2 * MAP_BLOCKS;
        let log = |handle: &Handle<'_>| {
            let mut left = pages.into_iter().peekable();
            while let Some((first, _)) = left.peek() {
                let places = self.places_of(handle, file, *first, left.len() as u64)?;
                for (place, (_, bytes)) in places.zip(&mut left) {
                    // The newest bytes are in the journal's blocks from here on.
                    self.pages.iter().for_each(|pages| pages.forget(place));
                    handle.set(place, Content::Data, &bytes);
                }
            }
            file.stored_size = file.stored_size.max(end);
            file.inode.set_size(file.inode.size().max(end));
            self.inodes.store_inode(handle, file, true)
        };
        self.changes.within(task, blocks, |handle| self.changes.changing(|| log(handle)))
    }

    /// The places of blocks of a file from `first` on, `count` at most, in one run: those that it has, or new ones.
    pub fn places_of(
        &self,
        handle: &Handle<'_>,
        file: &mut File,
        first: u64,
        count: u64,
    ) -> Result<Range<u64>, VolumeError> {
        let run = self.maps().run(handle.task, file, first)?;
        let count = count.min(run.count);
        let Some(place) = run.place else {
            let goal = self.maps().goal(handle.task, file, first)?;
            let count = count.min(self.placed_at_once(file));
            let taken = self.allocation().take_blocks(handle, goal, count as u32)?;
            self.maps().put_run(handle, file, first, taken.clone(), true)?;
            return Ok(taken);
        };
        if !run.is_written {
            self.maps().mark_written(handle, file, first..first + count)?;
        }
        Ok(place..place + count)
    }

    /// Blocks of this file that get a place at once.
    pub fn placed_at_once(&self, file: &File) -> u64 {
        if file.inode.has(flag::EXTENTS) {
            8192
        } else {
            NUMBERS_AT_ONCE.min(self.metadata.shape.block_bytes as u64 / 4)
        }
    }

    /// Something of a file waits. The task is behind its gate.
    pub fn waits(&self, task: &Task<'_>, node: &Node) {
        node.set_waits(true);
        self.waiting.add(node.number, task.now());
    }

    /// Nothing of a file waits any more. The task is behind its gate.
    pub fn waits_no_more(&self, file: &File) {
        debug_assert!(file.pages.is_empty() && !file.is_unstored, "all of it was written");
        self.waiting.remove(file.number);
    }
}
