//! A device that the journal has for itself, as `mke2fs -O journal_dev` makes it. Its blocks are those of the volume:
//!
//! ```text
//! | ext superblock, at byte 1024: feature journal_dev, UUID, blocks | jbd2 superblock, with the volume's UUID | records ... |
//! ```
//!
//! Block `n` of the log is block `n` of the device. The volume's superblock names the UUID (and a device number, which
//! means nothing here). One volume uses a journal; jbd2 has room for more, which neither the kernel nor e2fsck allows.

use super::error::OpenExtError;
use super::format::bytes::uuid;
use super::format::features::{Features, JOURNAL_DEV, METADATA_CSUM};
use super::format::log::LogSuperblock;
use super::format::superblock::{LENGTH, MAGIC, PLACE, Superblock, state};
use super::journal::LogPlace;
use super::journal_below::JournalBelow;
use super::media::Media;
use crate::fs::volume::{Timestamp, VolumeError};
use crate::label::{Cause, Content, Label};
use crate::task::Task;
use std::sync::Arc;

const LABEL: Label = Label::first(Cause::JournalCommit, Content::Journal);

/// The block of jbd2's superblock: behind that with byte 1024.
fn log_superblock(block_bytes: usize) -> u64 {
    PLACE / block_bytes as u64 + 1
}

/// The first block of records.
pub fn first_record(block_bytes: usize) -> u32 {
    log_superblock(block_bytes) as u32 + 1
}

/// The place of a log that takes the first `blocks` blocks of a device.
fn place(media: &Arc<Media>, blocks: u64) -> LogPlace {
    let superblock = log_superblock(media.block_bytes());
    let run = 0..blocks;
    LogPlace { media: Arc::clone(media), superblock, runs: vec![run] }
}

/// Makes a journal on a device, with this superblock of its log.
pub fn make(
    task: &Task<'_>,
    media: &Arc<Media>,
    log: &LogSuperblock,
    now: Timestamp,
) -> Result<LogPlace, OpenExtError> {
    let block_bytes = media.block_bytes();
    let superblock = superblock_of(log, block_bytes, now.0.div_euclid(1_000_000_000) as u32);
    let place = place(media, log.blocks().into());
    let mut blocks = vec![0; place.superblock as usize * block_bytes];
    blocks[PLACE as usize..PLACE as usize + LENGTH].copy_from_slice(superblock.bytes());
    blocks.extend_from_slice(log.bytes());
    blocks.resize(first_record(block_bytes) as usize * block_bytes, 0);
    media.write_metadata(task, 0, &blocks, LABEL)?;
    media.flush(task)?;
    Ok(place)
}

/// The superblock at byte 1024 of a journal's device: that of a file system without groups.
fn superblock_of(log: &LogSuperblock, block_bytes: usize, seconds: u32) -> Superblock {
    let mut made = Superblock::empty();
    let block_log = block_bytes.ilog2() - 10;
    for (at, number) in [
        (4, log.blocks()),
        (20, u32::from(block_bytes == 1024)),
        (24, block_log),
        (28, block_log),
        (32, 8 * block_bytes as u32),
        (36, 8 * block_bytes as u32),
        (48, seconds),
        (64, seconds),
        (76, 1),
        (84, 11),
        (264, seconds),
    ] {
        made.set32(at, number);
    }
    for (at, number) in [(54, u16::MAX), (56, MAGIC), (58, state::CLEAN), (60, 1), (88, 256)] {
        made.set16(at, number);
    }
    made.set_bytes(104, &log.uuid());
    made.set_features(Features::of(&[JOURNAL_DEV]));
    made
}

impl JournalBelow {
    /// Refuses a second device, which a volume such as this one does not use.
    pub fn refuse_device(&self, why: &str) -> Result<(), OpenExtError> {
        match self.media {
            Some(_) => {
                let what = format!("the volume does not use one, as {why}: leave the second device out");
                Err(OpenExtError::JournalDevice(what))
            }
            None => Ok(()),
        }
    }

    /// The place of the log on the second device, which must be that of this volume.
    pub fn find_device(&self, task: &Task<'_>) -> Result<LogPlace, OpenExtError> {
        let wanted = self.journal;
        if wanted == [0; 16] {
            let why = "it says that there is a journal, and names neither its inode nor its device".to_string();
            return Err(OpenExtError::Superblock(why));
        }
        let wanted = uuid(wanted);
        let Some(media) = &self.media else {
            self.hold_memory_name()?;
            let what = format!(
                "the volume uses journal {wanted}: give its device or memory as the second one, as in ext/conv+conv or \
                     ext/conv+nvm:image=FILE. If it is lost, 'flashpath fsck ext:journal=inline/DATA' gives it up, with what was not home"
            );
            return Err(OpenExtError::JournalDevice(what));
        };
        let superblock = read_device(task, media).map_err(OpenExtError::JournalDevice)?;
        if uuid(superblock.uuid()) != wanted {
            let found = uuid(superblock.uuid());
            return Err(OpenExtError::JournalDevice(format!("it is journal {found}, and the volume uses {wanted}")));
        }
        Ok(place(media, superblock.blocks(false)))
    }
}

/// Reads the superblock at byte 1024 of the second device; fails with the fault.
fn read_device(task: &Task<'_>, media: &Media) -> Result<Superblock, String> {
    let (block_bytes, size_bytes) = (media.block_bytes(), media.size_bytes());
    let mut blocks = vec![0; first_record(block_bytes) as usize * block_bytes];
    if size_bytes <= blocks.len() as u64 {
        return Err(format!("it has {size_bytes} bytes, which is too small for a journal"));
    }
    media.read(task, 0, &mut blocks).map_err(|error| VolumeError::from(error).to_string())?;
    let superblock = Superblock::new(&blocks[PLACE as usize..PLACE as usize + LENGTH]);
    let features = superblock.features();
    if superblock.u16(56) != MAGIC {
        return Err("the second device has no superblock at byte 1024: it is no journal".to_string());
    }
    if !features.has(JOURNAL_DEV) {
        let found = uuid(superblock.uuid());
        return Err(format!("the second device is no journal: it holds volume {found}"));
    }
    if features.has(METADATA_CSUM) && superblock.checksum() != superblock.said_checksum() {
        let (found, said) = (superblock.checksum(), superblock.said_checksum());
        return Err(format!("the checksum of its superblock is {found:08x}, and should be {said:08x}"));
    }
    let log_block = superblock.u32(24);
    if log_block != block_bytes.ilog2() - 10 {
        let found = 10 + u64::from(log_block);
        return Err(format!("its blocks have 2^{found} bytes, and those of the volume {block_bytes}"));
    }
    let (blocks, most) = (superblock.blocks(false), size_bytes / block_bytes as u64);
    if blocks > most {
        return Err(format!("it counts {blocks} blocks, and has {most}"));
    }
    Ok(superblock)
}
