//! Finding the log of a volume: in a file of it, or on a device of its own.

use super::Ext;
use super::error::{OpenExtError, damaged};
use super::files::node::File;
use super::format::features::HAS_JOURNAL;
use super::format::log::{LogSuperblock, feature};
use super::journal::LogPlace;
use crate::fs::volume::VolumeError;
use crate::task::Task;
use std::ops::Range;
use std::sync::Arc;

/// The log of a volume.
pub struct FoundLog {
    pub superblock: LogSuperblock,
    pub place: LogPlace,
    /// A bit of the log's superblock is flipped, which its checksum mends.
    pub flipped: Option<String>,
}

const NAME: &str = "the journal";

impl Ext {
    /// Finds the log: in the file that the superblock names, or on the device whose UUID it names. `None` if the volume
    /// has no journal.
    pub fn find_log(&self, task: &Task<'_>) -> Result<Option<FoundLog>, OpenExtError> {
        if !self.metadata.shape.features.has(HAS_JOURNAL) {
            return self.refuse_journal_device("it has no journal").map(|()| None);
        }
        if self.metadata.shape.journal_inode != 0 {
            self.refuse_journal_device("its journal is in a file of its own")?;
            return Ok(Some(self.find_log_in_file(task)?));
        }
        Ok(Some(self.find_log_on_device(task)?))
    }

    /// Finds the log in the file that the superblock names.
    fn find_log_in_file(&self, task: &Task<'_>) -> Result<FoundLog, VolumeError> {
        let inode = self.metadata.read_inode(task, self.metadata.shape.journal_inode)?;
        let file = File::new(self.metadata.shape.journal_inode, inode);
        let blocks = (file.inode.size() / self.metadata.shape.block_bytes as u64).min(u64::from(u32::MAX));
        let mut runs: Vec<Range<u64>> = Vec::new();
        let mut at = 0;
        while at < blocks {
            let run = self.maps().run(task, &file, at)?;
            let place = run.place.ok_or_else(|| damaged(NAME, format!("its block {at} has no place")))?;
            let count = run.count.min(blocks - at);
            match runs.last_mut() {
                Some(last) if last.end == place => last.end += count,
                _ => runs.push(place..place + count),
            }
            at += count;
        }
        let place = LogPlace::in_file(Arc::clone(&self.metadata.media), runs);
        self.read_log_superblock(task, place.ok_or_else(|| damaged(NAME, "it has no blocks"))?, blocks)
    }

    /// Reads the superblock of the log that lies in these `blocks` blocks.
    pub fn read_log_superblock(&self, task: &Task<'_>, place: LogPlace, blocks: u64) -> Result<FoundLog, VolumeError> {
        let mut bytes = vec![0; self.metadata.shape.block_bytes];
        place.media.read(task, place.superblock, &mut bytes)?;
        let (superblock, flipped) = match LogSuperblock::read(&bytes, blocks) {
            Ok(superblock) if !superblock.hides_sums() => (superblock, None),
            read => match (LogSuperblock::mended(&bytes, blocks), read) {
                (Some((superblock, why)), _) => (superblock, Some(why)),
                (None, Ok(superblock)) => (superblock, None),
                (None, Err(why)) => return Err(damaged("the journal's superblock", why)),
            },
        };
        let unknown = superblock.features() & !feature::ALL;
        if unknown != 0 {
            return Err(damaged("the journal's superblock", format!("it has features not known here: {unknown:#x}")));
        }
        Ok(FoundLog { superblock, place, flipped })
    }
}
