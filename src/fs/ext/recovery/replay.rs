//! The replay of a log: which blocks its committed transactions have changed, and where their newest copies lie.
//!
//! 1. *Scan*: transactions follow each other by number, each to its commit record; what has none was never committed.
//! 2. *Revokes*: a block that was freed by a transaction is not brought back by that one or those before it.
//! 3. *Copies*: of the others, the newest copy counts.

use crate::fs::ext::Ext;
use crate::fs::ext::blocks::Bytes;
use crate::fs::ext::error::{OpenExtError, damaged};
use crate::fs::ext::files::node::File;
use crate::fs::ext::format::features::HAS_JOURNAL;
use crate::fs::ext::format::log::{Dialect, LogSuperblock, Tag, feature, head, kind};
use crate::fs::ext::journal::{LogPlace, TransactionId};
use crate::fs::volume::VolumeError;
use crate::task::Task;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The log of a volume.
pub struct FoundLog {
    pub superblock: LogSuperblock,
    pub place: LogPlace,
}

/// What the log of a volume has that is not home.
pub struct Replayed {
    /// Blocks with their newest bytes.
    pub blocks: BTreeMap<u64, Bytes>,
    /// The number that the next transaction has.
    pub next: TransactionId,
    /// Copies that cannot be used.
    pub damaged: Vec<VolumeError>,
}

/// A copy in the log: its block there, its tag, its transaction.
struct Copy {
    at: u32,
    tag: Tag,
    id: TransactionId,
}

#[derive(Default)]
struct Scanned {
    copies: Vec<Copy>,
    /// The last transaction that has revoked a block.
    revoked: BTreeMap<u64, TransactionId>,
}

const NAME: &str = "the journal";

impl Ext {
    /// Finds the log: in the file that the superblock names, or on the device whose UUID it names. `None` if the volume
    /// has no journal.
    pub fn find_log(&self, task: &Task<'_>) -> Result<Option<FoundLog>, OpenExtError> {
        if !self.shape.features.has(HAS_JOURNAL) {
            return self.refuse_journal_device("it has no journal").map(|()| None);
        }
        if self.shape.journal_inode != 0 {
            self.refuse_journal_device("its journal is in a file of its own")?;
            return Ok(Some(self.find_log_in_file(task)?));
        }
        Ok(Some(self.find_log_on_device(task)?))
    }

    /// Finds the log in the file that the superblock names.
    fn find_log_in_file(&self, task: &Task<'_>) -> Result<FoundLog, VolumeError> {
        let inode = self.read_inode(task, self.shape.journal_inode)?;
        let file = File::new(self.shape.journal_inode, inode);
        let blocks = (file.inode.size() / self.shape.block_bytes as u64).min(u64::from(u32::MAX));
        let mut runs: Vec<Range<u64>> = Vec::new();
        let mut at = 0;
        while at < blocks {
            let run = self.run(task, &file, at)?;
            let place = run.place.ok_or_else(|| damaged(NAME, format!("its block {at} has no place")))?;
            let count = run.count.min(blocks - at);
            match runs.last_mut() {
                Some(last) if last.end == place => last.end += count,
                _ => runs.push(place..place + count),
            }
            at += count;
        }
        let place = LogPlace::in_file(Arc::clone(&self.media), runs);
        self.read_log_superblock(task, place.ok_or_else(|| damaged(NAME, "it has no blocks"))?, blocks)
    }

    /// Reads the superblock of the log that lies in these `blocks` blocks.
    pub fn read_log_superblock(&self, task: &Task<'_>, place: LogPlace, blocks: u64) -> Result<FoundLog, VolumeError> {
        let mut bytes = vec![0; self.shape.block_bytes];
        place.media.read(task, place.superblock, &mut bytes)?;
        let superblock = LogSuperblock::read(&bytes, blocks).map_err(|why| damaged("the journal's superblock", why))?;
        let unknown = superblock.features()
            & !(feature::REVOKES | feature::WIDE | feature::SUMS_V2 | feature::SUMS_V3 | feature::ASYNC_COMMIT);
        if unknown != 0 {
            let name = if unknown & feature::FAST_COMMIT != 0 { "fast_commit" } else { "unknown ones" };
            return Err(damaged("the journal's superblock", format!("it has features not known here: {name}")));
        }
        Ok(FoundLog { superblock, place })
    }

    /// Reads what the log has that is not home.
    pub fn replayed(&self, task: &Task<'_>, log: &FoundLog) -> Result<Replayed, VolumeError> {
        let mut next = TransactionId(log.superblock.sequence());
        if log.superblock.start() == 0 {
            return Ok(Replayed { blocks: BTreeMap::new(), next, damaged: Vec::new() });
        }
        let mut reader =
            Reader { ext: self, task, log, at: log.superblock.start(), left: u64::from(log.superblock.blocks()) };
        let dialect = Dialect::of(&log.superblock);
        let mut all = Scanned::default();
        while let Some(scanned) = reader.transaction(&dialect, next)? {
            for (block, id) in scanned.revoked {
                all.revoked.insert(block, id);
            }
            all.copies.extend(scanned.copies);
            next = next.next();
        }
        let (mut blocks, mut damaged_copies) = (BTreeMap::new(), Vec::new());
        for Copy { at, tag, id } in all.copies {
            if all.revoked.get(&tag.block).is_some_and(|revoked| !id.is_after(*revoked)) {
                continue;
            }
            let what = || format!("block {at} of the journal, a copy of block {}", tag.block);
            if !self.shape.holds(tag.block, 1) && tag.block != self.shape.superblock_block(0) {
                damaged_copies.push(damaged(what(), "the volume has no such block"));
                continue;
            }
            let mut copy = reader.read(at)?;
            if !dialect.is_copy(&tag, &copy, id.0) {
                damaged_copies.push(damaged(what(), "its checksum is wrong"));
                continue;
            }
            Dialect::unescape(&tag, &mut copy);
            blocks.insert(tag.block, copy.into());
        }
        Ok(Replayed { blocks, next, damaged: damaged_copies })
    }
}

/// Reads a log from its beginning on.
struct Reader<'r> {
    ext: &'r Ext,
    task: &'r Task<'r>,
    log: &'r FoundLog,
    at: u32,
    /// Blocks that may still follow: the log goes round once.
    left: u64,
}

impl Reader<'_> {
    /// A block of the log.
    fn read(&self, number: u32) -> Result<Vec<u8>, VolumeError> {
        let place = &self.log.place;
        let (at, _) = place.find(number).ok_or_else(|| damaged(NAME, format!("it has no block {number}")))?;
        let mut bytes = vec![0; self.ext.shape.block_bytes];
        place.media.read(self.task, at, &mut bytes)?;
        Ok(bytes)
    }

    /// Goes on by a block, and answers its number; `None` if the log has gone round.
    fn go_on(&mut self) -> Option<u32> {
        self.left = self.left.checked_sub(1)?;
        let at = self.at;
        self.at += 1;
        if self.at >= self.log.superblock.blocks() {
            self.at = self.log.superblock.first();
        }
        Some(at)
    }

    /// The transaction with this number; `None` if the log has no commit of it.
    fn transaction(&mut self, dialect: &Dialect, id: TransactionId) -> Result<Option<Scanned>, VolumeError> {
        let mut scanned = Scanned::default();
        loop {
            let Some(at) = self.go_on() else { return Ok(None) };
            let block = self.read(at)?;
            let kind = head(&block).filter(|(_, number)| *number == id.0).map(|(kind, _)| kind);
            match kind {
                Some(kind::DESCRIPTOR) => {
                    let Some(tags) = dialect.read_descriptor(&block) else { return Ok(None) };
                    for tag in tags {
                        let Some(at) = self.go_on() else { return Ok(None) };
                        scanned.copies.push(Copy { at, tag, id });
                    }
                }
                Some(kind::REVOKES) => {
                    let Some(revoked) = dialect.read_revokes(&block) else { return Ok(None) };
                    scanned.revoked.extend(revoked.into_iter().map(|block| (block, id)));
                }
                Some(kind::COMMIT) => return Ok(dialect.is_commit(&block).then_some(scanned)),
                _ => return Ok(None),
            }
        }
    }
}
