//! Reads the bytes of a file, and the target of a link.

use super::map::Maps;
use crate::fs::ext::blocks::{Blocks, Bytes};
use crate::fs::ext::error::damaged;
use crate::fs::ext::files::node::File;
use crate::fs::ext::metadata::Metadata;
use crate::fs::ext::settings::ExtSettings;
use crate::fs::volume::{FileKind, LONGEST_TARGET, Seek, VolumeError};
use crate::task::Task;

/// The bytes of files: on the device, in the cache of clean pages, in the journal.
#[derive(Clone, Copy)]
pub struct Reads<'e> {
    pub settings: &'e ExtSettings,
    pub metadata: &'e Metadata,
    pub maps: Maps<'e>,
    /// Clean pages; `None` if none are kept.
    pub pages: Option<&'e Blocks>,
}

impl Reads<'_> {
    /// Reads from `offset` on, and says how much: less than asked for only at the end of the file. On a device
    /// of stamps a block reads as its stamp, and zeros behind it.
    pub fn read_file(&self, task: &Task<'_>, file: &File, offset: u64, bytes: &mut [u8]) -> Result<usize, VolumeError> {
        let length = file.inode.size().saturating_sub(offset).min(bytes.len() as u64) as usize;
        let bytes = &mut bytes[..length];
        if bytes.is_empty() {
            return Ok(0);
        }
        let block = self.metadata.shape.block_bytes;
        let (first, end) = (offset / block as u64, (offset + length as u64).div_ceil(block as u64));
        let head = (offset % block as u64) as usize;
        let most = if self.pages.is_some() { self.settings.readahead_bytes / block as u64 } else { 0 };
        let behind = file.inode.size().div_ceil(block as u64) - end;
        let ahead = file.reads.ahead(first..end, most).min(behind);
        if head == 0 && length.is_multiple_of(block) && !self.metadata.media.holds_stamps() {
            self.read_ahead(task, file, first, bytes, ahead)?;
        } else {
            let mut whole = vec![0; (end - first) as usize * self.metadata.media.width()];
            self.read_ahead(task, file, first, &mut whole, ahead)?;
            match self.metadata.media.holds_stamps() {
                true => self.show_stamps(&whole, head, bytes),
                false => bytes.copy_from_slice(&whole[head..head + length]),
            }
        }
        Ok(length)
    }

    /// The bytes of blocks that are known by their stamps, from byte `head` of the first one on.
    fn show_stamps(&self, stamps: &[u8], head: usize, bytes: &mut [u8]) {
        bytes.fill(0);
        for (number, stamp) in stamps.chunks_exact(self.metadata.media.width()).enumerate() {
            let Some(at) = (number * self.metadata.shape.block_bytes).checked_sub(head) else { continue };
            let count = stamp.len().min(bytes.len() - at);
            bytes[at..at + count].copy_from_slice(&stamp[..count]);
        }
    }

    /// Reads whole blocks from block `first` on, each as wide as on the device.
    pub fn read_blocks(&self, task: &Task<'_>, file: &File, first: u64, buffer: &mut [u8]) -> Result<(), VolumeError> {
        self.read_ahead(task, file, first, buffer, 0)
    }

    /// The same, and at the most `ahead` blocks behind them into the page cache, if the device must be read anyway.
    fn read_ahead(
        &self,
        task: &Task<'_>,
        file: &File,
        first: u64,
        buffer: &mut [u8],
        ahead: u64,
    ) -> Result<(), VolumeError> {
        let width = self.metadata.media.width();
        let end = first + (buffer.len() / width) as u64;
        let (mut at, mut rest) = (first, buffer);
        while at < end {
            let waiting = file.pages.range(at..end).next();
            let count = match waiting {
                Some((place, page)) if *place == at => {
                    rest[..width].copy_from_slice(&page.bytes);
                    1
                }
                waiting => {
                    let most = waiting.map_or(end, |(place, _)| *place) - at;
                    let run = self.maps.run(task, file, at)?;
                    let count = run.count.min(most);
                    let part = &mut rest[..count as usize * width];
                    match run.stored() {
                        Some(place) => self.read_stored(task, place, part, ahead.min(run.count - count))?,
                        None => part.fill(0),
                    }
                    count
                }
            };
            rest = &mut rest[count as usize * width..];
            at += count;
        }
        Ok(())
    }

    /// Reads blocks of a file that lie one behind the other: from the journal's blocks and the page cache, and otherwise
    /// from the device, there `ahead` blocks further if the last of them is read there.
    fn read_stored(&self, task: &Task<'_>, place: u64, buffer: &mut [u8], ahead: u64) -> Result<(), VolumeError> {
        let width = self.metadata.media.width();
        let count = (buffer.len() / width) as u64;
        let mut at = 0;
        while at < count {
            let part = &mut buffer[at as usize * width..];
            if let Some(bytes) = self.in_memory(place + at) {
                part[..width].copy_from_slice(&bytes[..width]);
                at += 1;
                continue;
            }
            let missing = 1 + (at + 1..count).take_while(|at| self.in_memory(place + at).is_none()).count() as u64;
            let ahead = if at + missing == count { ahead } else { 0 };
            self.read_missing(task, place + at, &mut part[..missing as usize * width], ahead)?;
            at += missing;
        }
        Ok(())
    }

    /// A block of a file that is newer in memory than on the device, or the same.
    fn in_memory(&self, block: u64) -> Option<Bytes> {
        let logged = self.maps.has_logged_data().then(|| self.metadata.blocks.get(block).ok()).flatten();
        logged.or_else(|| self.pages.as_ref().and_then(|pages| pages.get(block).ok()))
    }

    /// Reads blocks of a file from the device into the page cache.
    fn read_missing(&self, task: &Task<'_>, place: u64, buffer: &mut [u8], ahead: u64) -> Result<(), VolumeError> {
        let width = self.metadata.media.width();
        let ahead = (0..ahead).take_while(|at| self.in_memory(place + (buffer.len() / width) as u64 + at).is_none());
        let mut whole = vec![0; ahead.count() * width];
        if whole.is_empty() {
            self.metadata.media.read(task, place, buffer)?;
            self.cache_pages(place, buffer);
            return Ok(());
        }
        whole.resize(whole.len() + buffer.len(), 0);
        self.metadata.media.read(task, place, &mut whole)?;
        self.cache_pages(place, &whole);
        buffer.copy_from_slice(&whole[..buffer.len()]);
        Ok(())
    }

    /// Puts blocks that are on the device from `place` on into the page cache.
    pub fn cache_pages(&self, place: u64, bytes: &[u8]) {
        if let Some(pages) = &self.pages {
            (place..)
                .zip(bytes.chunks_exact(self.metadata.media.width()))
                .for_each(|(block, bytes)| pages.put(block, bytes.into()));
        }
    }

    /// The target of a symbolic link.
    pub fn target_of(&self, task: &Task<'_>, file: &File) -> Result<Vec<u8>, VolumeError> {
        if file.kind() != FileKind::Symlink {
            return Err(VolumeError::Invalid("not a symbolic link"));
        }
        let length = file.inode.size() as usize;
        if file.inode.is_short_link() {
            return Ok(file.inode.map()[..length].to_vec());
        }
        if file.inode.size() > LONGEST_TARGET as u64 || length == 0 {
            return Err(damaged(
                format!("the symbolic link with inode {}", file.number),
                format!("it has {length} bytes"),
            ));
        }
        // A target is metadata: it goes through the journal, and lies in one block.
        let run = self.maps.run(task, file, 0)?;
        let what = || format!("the target of the symbolic link with inode {}", file.number);
        let place = run.stored().ok_or_else(|| damaged(what(), "it has no block"))?;
        let block = self.metadata.block(task, place, &what, &|_| Ok(()))?;
        block.get(..length).map(<[u8]>::to_vec).ok_or_else(|| damaged(what(), format!("it has {length} bytes")))
    }

    /// The next byte from `offset` on that is stored, or that is not.
    pub fn seek_file(&self, task: &Task<'_>, file: &File, offset: u64, what: Seek) -> Result<Option<u64>, VolumeError> {
        let (size, block) = (file.inode.size(), self.metadata.shape.block_bytes as u64);
        if offset >= size {
            return Ok(None);
        }
        let end = size.div_ceil(block);
        let mut at = offset / block;
        while at < end {
            let waiting = file.pages.range(at..end).next().map(|(place, _)| *place);
            let (is_stored, next) = if waiting == Some(at) {
                (true, at + 1)
            } else {
                let run = self.maps.run(task, file, at)?;
                (run.stored().is_some(), (at + run.count).min(waiting.unwrap_or(u64::MAX)))
            };
            if is_stored == (what == Seek::Data) {
                return Ok(Some(offset.max(at * block)));
            }
            at = next;
        }
        Ok(if what == Seek::Hole { Some(size) } else { None })
    }
}
