//! Finding the log of a volume: in a file of it, or on a device of its own.

use super::error::{GIVE_UP, OpenExtError, damaged};
use super::files::node::File;
use super::format::bytes::uuid;
use super::format::features::HAS_JOURNAL;
use super::format::log::{LogSuperblock, feature};
use super::format::mount_number::mismatch;
use super::journal::LogPlace;
use super::journal_below::JournalBelow;
use super::parts::Parts;
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

/// Finds the log: in the file that the superblock names, or on the device whose UUID it names. `None` if the volume
/// has no journal.
pub fn find_log(task: &Task<'_>, parts: &Parts, below: &JournalBelow) -> Result<Option<FoundLog>, OpenExtError> {
    let shape = &parts.metadata.shape;
    if !shape.features.has(HAS_JOURNAL) {
        return below.refuse_device("it has no journal").map(|()| None);
    }
    if shape.journal_inode != 0 {
        below.refuse_device("its journal is in a file of its own")?;
        return Ok(Some(find_log_in_file(task, parts)?));
    }
    Ok(Some(find_log_on_device(task, below)?))
}

/// Finds the log in the file that the superblock names.
fn find_log_in_file(task: &Task<'_>, parts: &Parts) -> Result<FoundLog, VolumeError> {
    let (metadata, number) = (&parts.metadata, parts.metadata.shape.journal_inode);
    let file = File::new(number, metadata.read_inode(task, number)?);
    let blocks = (file.inode.size() / metadata.shape.block_bytes as u64).min(u64::from(u32::MAX));
    let mut runs: Vec<Range<u64>> = Vec::new();
    let mut at = 0;
    while at < blocks {
        let run = parts.maps().run(task, &file, at)?;
        let place = run.place.ok_or_else(|| damaged(NAME, format!("its block {at} has no place")))?;
        let count = run.count.min(blocks - at);
        match runs.last_mut() {
            Some(last) if last.end == place => last.end += count,
            _ => runs.push(place..place + count),
        }
        at += count;
    }
    let place = LogPlace::in_file(Arc::clone(&metadata.media), runs);
    read_log_superblock(task, place.ok_or_else(|| damaged(NAME, "it has no blocks"))?, blocks)
}

/// Finds the log on the second device, which must be the volume's.
pub fn find_log_on_device(task: &Task<'_>, below: &JournalBelow) -> Result<FoundLog, OpenExtError> {
    let place = below.find_device(task)?;
    let blocks = place.runs.iter().map(|run| run.end - run.start).sum();
    let found = read_log_superblock(task, place, blocks)?;
    let (wanted, refused) = (uuid(below.journal), |why: String| OpenExtError::JournalDevice(why));
    match found.superblock.users() {
        (1, user) if user == below.volume => {
            // An empty one has nothing that could be older or newer than the volume.
            let numbers = (below.mount_number, found.superblock.mount_number());
            match mismatch(numbers.0, numbers.1, &format!("journal {wanted}")).filter(|_| found.superblock.start() != 0)
            {
                Some(why) => Err(refused(format!("{why}, or {GIVE_UP}"))),
                None => Ok(found),
            }
        }
        (1, user) => {
            let (user, own) = (uuid(user), uuid(below.volume));
            Err(refused(format!("journal {wanted} is in use by volume {user}, and this one is {own}")))
        }
        (count, _) => Err(refused(format!("journal {wanted} is that of {count} volumes, and should be of one"))),
    }
}

/// Reads the superblock of the log that lies in these `blocks` blocks.
pub fn read_log_superblock(task: &Task<'_>, place: LogPlace, blocks: u64) -> Result<FoundLog, VolumeError> {
    let mut bytes = vec![0; place.media.block_bytes()];
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
