//! Reads the bytes of a file, and the target of a link.

use crate::fs::ext::Ext;
use crate::fs::ext::error::damaged;
use crate::fs::ext::files::node::File;
use crate::fs::volume::{FileKind, LONGEST_TARGET, Seek, VolumeError};
use crate::task::Task;

impl Ext {
    /// Reads from `offset` on, and says how much: less than asked for only at the end of the file. Of stamps, no bytes
    /// can be had: they are zeros.
    pub fn read_file(&self, task: &Task<'_>, file: &File, offset: u64, bytes: &mut [u8]) -> Result<usize, VolumeError> {
        let length = file.inode.size().saturating_sub(offset).min(bytes.len() as u64) as usize;
        let bytes = &mut bytes[..length];
        if bytes.is_empty() {
            return Ok(0);
        }
        let block = self.shape.block_bytes;
        let (first, end) = (offset / block as u64, (offset + length as u64).div_ceil(block as u64));
        let head = (offset % block as u64) as usize;
        if head == 0 && length.is_multiple_of(block) && !self.media.holds_stamps() {
            self.read_blocks(task, file, first, bytes)?;
        } else {
            let mut whole = vec![0; (end - first) as usize * self.media.width()];
            self.read_blocks(task, file, first, &mut whole)?;
            match self.media.holds_stamps() {
                true => bytes.fill(0),
                false => bytes.copy_from_slice(&whole[head..head + length]),
            }
        }
        Ok(length)
    }

    /// Reads whole blocks from block `first` on, each as wide as on the device.
    pub fn read_blocks(&self, task: &Task<'_>, file: &File, first: u64, buffer: &mut [u8]) -> Result<(), VolumeError> {
        let width = self.media.width();
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
                    let run = self.run(task, file, at)?;
                    let count = run.count.min(most);
                    let part = &mut rest[..count as usize * width];
                    match run.stored() {
                        Some(place) => self.read_stored(task, place, part)?,
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

    /// Reads blocks of a file that lie one behind the other; those that the journal has, from memory.
    fn read_stored(&self, task: &Task<'_>, place: u64, buffer: &mut [u8]) -> Result<(), VolumeError> {
        if !self.has_logged_data() {
            return Ok(self.media.read(task, place, buffer)?);
        }
        let width = self.media.width();
        let newest: Vec<_> = (place..).take(buffer.len() / width).map(|block| self.blocks.get(block).ok()).collect();
        if newest.iter().any(Option::is_none) {
            self.media.read(task, place, buffer)?;
        }
        for (part, bytes) in buffer.chunks_exact_mut(width).zip(newest) {
            if let Some(bytes) = bytes {
                part.copy_from_slice(&bytes[..width]);
            }
        }
        Ok(())
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
        let run = self.run(task, file, 0)?;
        let what = || format!("the target of the symbolic link with inode {}", file.number);
        let place = run.stored().ok_or_else(|| damaged(what(), "it has no block"))?;
        let block = self.block(task, place, &what, &|_| Ok(()))?;
        block.get(..length).map(<[u8]>::to_vec).ok_or_else(|| damaged(what(), format!("it has {length} bytes")))
    }

    /// The next byte from `offset` on that is stored, or that is not.
    pub fn seek_file(&self, task: &Task<'_>, file: &File, offset: u64, what: Seek) -> Result<Option<u64>, VolumeError> {
        let (size, block) = (file.inode.size(), self.shape.block_bytes as u64);
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
                let run = self.run(task, file, at)?;
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
