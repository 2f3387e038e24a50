//! The spill file: the held blocks between two servers.
//!
//! ```text
//! header, 4 KiB   0 magic "FLPHSPIL"   8 u32 version 1   12 u32 state   16 [16] id of the hold   32 u64 blocks of the device
//!                 40 u64 held blocks   48 u32 CRC-32C of the table   52 u32 markers   56 markers' places (u64 each)
//!                 4092 u32 CRC-32C of the header
//! table           16 bytes a block: u64 place, u32 CRC-32C of the block, u8 cause, u8 origin, u8 content, zero; padded to 4 KiB
//! blocks          4 KiB each
//! ```
//!
//! All little-endian. The state is 1 while a server holds the journal in memory, and 2 when the file holds it. The header
//! is written last and after a sync, so a spill that ended early leaves state 1.

use super::blocks::HeldBlocks;
use super::journals::HoldId;
use crate::crc::crc32c;
use crate::device::{ImageError, Lba};
use crate::label::{Cause, Content, Label};
use crate::units::BLOCK_BYTES;
use rustix::fs::FallocateFlags;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

const BLOCK: usize = BLOCK_BYTES as usize;
const MAGIC: &[u8; 8] = b"FLPHSPIL";
const VERSION: u32 = 1;
const RUNNING: u32 = 1;
const SPILLED: u32 = 2;
const ENTRY: usize = 16;
const MARKERS_FROM: usize = 56;
/// The maximum number of markers: journals of one device.
pub(super) const MOST_MARKERS: usize = (BLOCK - 4 - MARKERS_FROM) / 8;
/// Blocks that are written to the file at once.
const PIECE: usize = 256;

/// What a spill file belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    /// The number that is also in the markers.
    pub id: HoldId,
    /// The number of blocks of the device.
    pub device_blocks: u64,
    /// The places of the markers.
    pub markers: Vec<Lba>,
}

/// A held journal that a file returns.
pub(super) struct Spilled {
    pub owner: Owner,
    pub held: HeldBlocks,
}

/// An open spill file, locked (flock) against other servers.
#[derive(Debug)]
pub(super) struct SpillFile {
    file: File,
    name: String,
}

impl Drop for SpillFile {
    /// Releases the lock at once: a process that was just forked elsewhere holds a copy of the descriptor until it
    /// executes another program, and with it the lock.
    fn drop(&mut self) {
        // It is released with the last descriptor in any case.
        let _ = self.file.unlock();
    }
}

impl SpillFile {
    /// Opens a spill file, or creates it.
    pub fn open(path: &Path) -> Result<SpillFile, ImageError> {
        let name = path.display().to_string();
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let file = file.map_err(ImageError::io(&name, "open"))?;
        if !file.metadata().map_err(ImageError::io(&name, "look at"))?.is_file() {
            let (found, expected) = ("no file".to_string(), "a regular file".to_string());
            return Err(ImageError::Field { image: name, field: "its kind".to_string(), found, expected });
        }
        match file.try_lock() {
            Ok(()) => Ok(SpillFile { file, name }),
            Err(TryLockError::WouldBlock) => {
                let user = "another server spills to it; each needs a file of its own".to_string();
                Err(ImageError::InUse { image: name, user })
            }
            Err(TryLockError::Error(source)) => Err(ImageError::Io { image: name, doing: "lock", source }),
        }
    }

    /// A file of which every write fails.
    #[cfg(test)]
    pub fn failing(directory: &Path) -> SpillFile {
        let path = directory.join("read-only");
        File::create(&path).expect("a temporary directory is writable");
        SpillFile { file: File::open(&path).expect("it was just made"), name: path.display().to_string() }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Takes the space of `blocks` held blocks, so that a spill does not fail for want of it.
    pub fn reserve(&self, blocks: u64) -> Result<(), ImageError> {
        let bytes = (1 + table_blocks(blocks) + blocks) * BLOCK_BYTES;
        match rustix::fs::fallocate(&self.file, FallocateFlags::KEEP_SIZE, 0, bytes) {
            // Without preallocation, a spill that finds no space is written home.
            Ok(()) | Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Ok(()),
            Err(error) => Err(ImageError::io(&self.name, "take the space of the journal in")(error.into())),
        }
    }

    /// Records that the journal is in memory: the file holds nothing from now on.
    pub fn mark_running(&self, owner: &Owner) -> io::Result<()> {
        self.write_header(RUNNING, owner, 0, 0)
    }

    /// Stores the held blocks, durably.
    pub fn spill(&self, owner: &Owner, held: &HeldBlocks) -> io::Result<()> {
        self.write_header(RUNNING, owner, 0, 0)?;
        let mut table = Vec::with_capacity(held.count() as usize * ENTRY);
        for (place, block) in held.iter() {
            table.extend_from_slice(&place.0.to_le_bytes());
            table.extend_from_slice(&crc32c(&block.bytes).to_le_bytes());
            table.extend_from_slice(&[block.label.cause as u8, block.label.origin as u8, block.label.content as u8, 0]);
        }
        let sum = crc32c(&table);
        let mut at = BLOCK_BYTES;
        self.file.write_all_at(&table, at)?;
        at += table_blocks(held.count()) * BLOCK_BYTES;
        let mut piece = Vec::with_capacity(PIECE * BLOCK);
        for (number, (_, block)) in (1..).zip(held.iter()) {
            piece.extend_from_slice(&block.bytes);
            if piece.len() == PIECE * BLOCK || number == held.count() {
                self.file.write_all_at(&piece, at)?;
                at += piece.len() as u64;
                piece.clear();
            }
        }
        self.file.sync_all()?;
        self.write_header(SPILLED, owner, held.count(), sum)
    }

    fn write_header(&self, state: u32, owner: &Owner, held: u64, table_sum: u32) -> io::Result<()> {
        assert!(owner.markers.len() <= MOST_MARKERS, "more journals are refused earlier");
        let mut header = vec![0; BLOCK];
        header[..8].copy_from_slice(MAGIC);
        header[8..12].copy_from_slice(&VERSION.to_le_bytes());
        header[12..16].copy_from_slice(&state.to_le_bytes());
        header[16..32].copy_from_slice(&owner.id);
        header[32..40].copy_from_slice(&owner.device_blocks.to_le_bytes());
        header[40..48].copy_from_slice(&held.to_le_bytes());
        header[48..52].copy_from_slice(&table_sum.to_le_bytes());
        header[52..56].copy_from_slice(&(owner.markers.len() as u32).to_le_bytes());
        for (at, marker) in (MARKERS_FROM..).step_by(8).zip(&owner.markers) {
            header[at..at + 8].copy_from_slice(&marker.0.to_le_bytes());
        }
        let sum = crc32c(&header[..BLOCK - 4]);
        header[BLOCK - 4..].copy_from_slice(&sum.to_le_bytes());
        self.file.write_all_at(&header, 0)?;
        self.file.sync_all()
    }

    /// The held journal in the file; `None` if it holds none: it is new, or its last server did not end in order.
    ///
    /// At most `most` blocks are read.
    pub fn load(&self, most: u64) -> Result<Option<Spilled>, ImageError> {
        let length = self.file.metadata().map_err(ImageError::io(&self.name, "look at"))?.len();
        if length == 0 {
            return Ok(None);
        }
        let header = self.read(0, BLOCK, length)?;
        let u32_at = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
        let u64_at = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
        if &header[..8] != MAGIC {
            return Err(self.wrong("its magic", "another", "that of a spill file: this file is something else"));
        }
        if crc32c(&header[..BLOCK - 4]) != u32_at(BLOCK - 4) {
            return Err(self.wrong("the checksum of its header", "wrong", "that of an intact spill file"));
        }
        if u32_at(8) != VERSION {
            return Err(self.wrong("its version", u32_at(8), VERSION));
        }
        match u32_at(12) {
            RUNNING => return Ok(None),
            SPILLED => {}
            other => return Err(self.wrong("its state", other, "1 or 2")),
        }
        let (device_blocks, count, markers) = (u64_at(32), u64_at(40), u32_at(52) as usize);
        if markers > MOST_MARKERS {
            return Err(self.wrong("its number of markers", markers, format!("at most {MOST_MARKERS}")));
        }
        if count > most {
            let expected = format!("at most {most}, those of memory=; give more");
            return Err(self.wrong("its number of blocks", count, expected));
        }
        let markers: Vec<Lba> = (0..markers).map(|number| Lba(u64_at(MARKERS_FROM + number * 8))).collect();
        let table = self.read(BLOCK_BYTES, count as usize * ENTRY, length)?;
        if crc32c(&table) != u32_at(48) {
            return Err(self.wrong("the checksum of its table", "wrong", "that of an intact spill file"));
        }
        let held = self.load_blocks(&table, length, device_blocks)?;
        if let Some(lost) = markers.iter().find(|marker| !held.contains(**marker)) {
            return Err(self.wrong("the block of a marker", lost.0, "one of its blocks"));
        }
        let owner = Owner { id: header[16..32].try_into().expect("sixteen bytes"), device_blocks, markers };
        Ok(Some(Spilled { owner, held }))
    }

    fn load_blocks(&self, table: &[u8], length: u64, device_blocks: u64) -> Result<HeldBlocks, ImageError> {
        let mut held = HeldBlocks::default();
        let mut at = (1 + table_blocks((table.len() / ENTRY) as u64)) * BLOCK_BYTES;
        let mut least = 0;
        for entries in table.chunks(PIECE * ENTRY) {
            let blocks = self.read(at, entries.len() / ENTRY * BLOCK, length)?;
            at += blocks.len() as u64;
            for (entry, block) in entries.chunks_exact(ENTRY).zip(blocks.chunks_exact(BLOCK)) {
                let place = u64::from_le_bytes(entry[..8].try_into().expect("eight bytes"));
                if !(least..device_blocks).contains(&place) {
                    let expected = format!("in order, and below {device_blocks}");
                    return Err(self.wrong("the place of a block", place, expected));
                }
                least = place + 1;
                if crc32c(block) != u32::from_le_bytes(entry[8..12].try_into().expect("four bytes")) {
                    return Err(self.wrong(
                        &format!("the checksum of block {place}"),
                        "wrong",
                        "that of an intact one",
                    ));
                }
                let [cause, origin] = [entry[12], entry[13]].map(Cause::from_number);
                held.put(Lba(place), block, Label { cause, origin, content: Content::from_low_bits(entry[14]) });
            }
        }
        Ok(held)
    }

    fn read(&self, at: u64, bytes: usize, length: u64) -> Result<Vec<u8>, ImageError> {
        if at + bytes as u64 > length {
            return Err(self.wrong("its length", length, format!("at least {}", at + bytes as u64)));
        }
        let mut buffer = vec![0; bytes];
        self.file.read_exact_at(&mut buffer, at).map_err(ImageError::io(&self.name, "read"))?;
        Ok(buffer)
    }

    fn wrong(&self, field: &str, found: impl ToString, expected: impl ToString) -> ImageError {
        let (found, expected) = (found.to_string(), expected.to_string());
        ImageError::Field { image: self.name.clone(), field: field.to_string(), found, expected }
    }
}

/// Blocks of the table of `count` held blocks.
fn table_blocks(count: u64) -> u64 {
    (count * ENTRY as u64).div_ceil(BLOCK_BYTES)
}
