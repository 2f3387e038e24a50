//! The log of a volume that is checked: found, replayed, and its file mended.
//!
//! The descriptors and the journal's inode on the medium may be older than those in the log: they serve to find it, mended
//! as far as that needs, and are looked at again when the log's blocks are there.
//!
//! | the journal's file is | if |
//! |---|---|
//! | the inode that the superblock names | it is sound, and a log begins in it |
//! | made anew from the copy of its map in the superblock | a log begins there, and the inode is damaged, or another file |
//! | that inode with fields that a journal has | its map is whole, and there is no copy |
//! | a new one | none of these can be |

use super::Check;
use super::maps::FileMap;
use crate::fs::ext::blocks::Bytes;
use crate::fs::ext::error::{OpenExtError, damaged};
use crate::fs::ext::format::extents::{self, Extent};
use crate::fs::ext::format::fast_commit;
use crate::fs::ext::format::features::{HAS_JOURNAL, NEEDS_RECOVERY};
use crate::fs::ext::format::inode::{Inode, flag};
use crate::fs::ext::format::log::{LogSuperblock, head, kind};
use crate::fs::ext::format::shape::JOURNAL;
use crate::fs::ext::format::superblock::{JOURNAL_INODE, Superblock, state};
use crate::fs::ext::found_log::{FoundLog, find_log_on_device, read_log_superblock};
use crate::fs::ext::journal::{Jbd2, Log as _, LogPlace, Logged, Transaction, TransactionId};
use crate::fs::ext::journal_device::first_record;
use crate::fs::ext::recovery::fast_scan::clear_fast;
use crate::fs::ext::recovery::open::adapt_log;
use crate::fs::ext::recovery::replay::replayed;
use crate::fs::volume::{FileKind, VolumeError};
use crate::label::{Cause, Content, Label};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The copy of the journal's inode in the superblock: its map, and its size. Before it is the copy's type.
const COPY: usize = 268;
const COPY_TYPE: usize = 253;
const MAP_BYTES: usize = 60;
const LABEL: Label = Label::first(Cause::JournalCommit, Content::Journal);
const CHECKPOINT: Label = Label::first(Cause::Checkpoint, Content::Metadata);

/// A file that is the journal.
struct JournalFile {
    number: u32,
    inode: Inode,
    /// The blocks of the log.
    runs: Vec<Range<u64>>,
    /// The fault of the stored inode, and its mend.
    fault: Option<(String, &'static str)>,
}

/// The log of the volume.
pub(super) struct Log {
    found: FoundLog,
    /// The number of the next transaction.
    next: u32,
    /// Its superblock is made anew: it is empty.
    is_new: bool,
    is_damaged: bool,
}

impl Log {
    fn of(found: FoundLog, is_new: bool) -> Log {
        Log { next: found.superblock.sequence(), found, is_new, is_damaged: false }
    }
}

/// Mended blocks, and the log that makes them durable together.
pub(super) struct Mends {
    log: Jbd2,
    /// The last block is the superblock's.
    transaction: Transaction,
}

impl Check<'_> {
    /// Takes the blocks of the log into memory. The descriptors are right only then: until then they serve to
    /// find the log.
    pub(super) fn replay(&mut self, writes: bool) -> Result<(), OpenExtError> {
        if !self.parts.metadata.shape.features.has(HAS_JOURNAL) {
            return self.below.refuse_device("it has no journal");
        }
        self.replay_region(writes)?;
        let known = self.walk.findings.len();
        self.load_groups()?;
        let place = match self.parts.metadata.shape.journal_inode {
            0 => Some(self.below.find_device(self.task)?),
            _ => {
                self.below.refuse_device("its journal is in a file of its own")?;
                let runs = self.journal_file()?.map(|file| file.runs);
                runs.and_then(|runs| LogPlace::in_file(Arc::clone(&self.parts.metadata.media), runs))
            }
        };
        // The mended descriptors may be older than those in the log.
        self.walk.findings.truncate(known);
        for block in std::mem::take(&mut self.changed) {
            self.parts.metadata.blocks.forget(block);
        }
        let Some(place) = place else { return Ok(()) };
        let log = self.log_at(place)?;
        let (found, is_new) = (&log.found, log.is_new);
        let replayed = replayed(self.task, &self.parts.metadata.shape, found)?;
        let mut is_damaged = !replayed.damage.is_empty() || replayed.fast.damage.is_some();
        for damage in replayed.damage {
            self.found(damage.what, damage.repair);
        }
        let is_empty = found.superblock.start() == 0 && !is_new && !is_damaged;
        self.take_blocks(replayed.blocks.clone(), writes)?;
        let mut next = replayed.next;
        if let Some(after) = self.replay_fast(found, &replayed.fast, &replayed.blocks, writes)? {
            (next, is_damaged) = (after.next, is_damaged || after.is_damaged);
        }
        let (fixed, doubtful) = replayed.doubtful.into_iter().partition(|(block, _)| self.is_fixed(*block));
        self.take_blocks(fixed, writes)?;
        self.take_doubtful(doubtful);
        if writes && !is_empty {
            self.log = Some(Log { next: next.0, is_damaged: is_damaged || is_new, ..log });
        }
        Ok(())
    }

    /// True if a block is one of a group's own, which is never freed.
    fn is_fixed(&self, block: u64) -> bool {
        let shape = &self.parts.metadata.shape;
        block == shape.superblock_block(0)
            || (0..).zip(&self.groups).any(|(group, descriptor)| {
                let start = shape.group_start(group);
                let table = descriptor.inode_table..descriptor.inode_table + shape.table_blocks();
                (start..start + shape.blocks_before(group)).contains(&block)
                    || [descriptor.block_bitmap, descriptor.inode_bitmap].contains(&block)
                    || table.contains(&block)
            })
    }

    /// Takes blocks that a lost record may have revoked, in memory: those that turn out to have bytes of a file go back.
    fn take_doubtful(&mut self, blocks: BTreeMap<u64, Bytes>) {
        for (block, bytes) in blocks {
            self.parts.metadata.blocks.set(block, &bytes);
            self.doubtful.insert(block);
        }
    }

    /// Takes the blocks of a file's bytes back that a lost record may have revoked.
    pub(super) fn settle_doubtful(&mut self, number: u32, map: &FileMap) {
        let is_in = |block: &u64| {
            map.extents.iter().any(|extent| (extent.place..extent.place + u64::from(extent.count)).contains(block))
        };
        let here: Vec<u64> = self.doubtful.iter().copied().filter(is_in).collect();
        for block in here {
            self.doubtful.remove(&block);
            self.parts.metadata.blocks.forget(block);
            let what =
                format!("the journal has a copy of block {block}, of bytes of inode {number}, that may be revoked");
            self.found(what, "the block stays as it is on the volume, and may be older than the file");
        }
    }

    /// Writes the rest of the log home, and empties it: all structures have been looked at.
    pub(super) fn leave_log(&mut self) -> Result<(), OpenExtError> {
        let Some(log) = self.log.take() else { return Ok(()) };
        for block in std::mem::take(&mut self.doubtful) {
            self.parts.metadata.media.write(self.task, block, &self.read(block)?, CHECKPOINT)?;
        }
        if log.is_damaged {
            // Before the log that says so is emptied: a repair that is cut off is repeated.
            self.superblock.set16(58, state::ERRORS);
            self.superblock.sum();
            self.write_superblock()?;
        }
        self.parts.metadata.media.flush(self.task)?;
        Ok(self.empty_log(log)?)
    }

    /// The log, for the mended blocks: with it they are written all or not at all, wherever a repair is killed. `None` if it
    /// has no room for them, or is not as it was.
    pub(super) fn log_of_mends(&mut self) -> Result<Option<Mends>, OpenExtError> {
        // The superblock of before must find it, too.
        let names = |superblock: &Superblock| (superblock.features().has(HAS_JOURNAL), superblock.u32(JOURNAL_INODE));
        let found = match names(&self.superblock) {
            own if own != names(&self.begun) => return Ok(None),
            (false, _) => return Ok(None),
            (true, 0) => find_log_on_device(self.task, &self.below),
            (true, _) => {
                let Some(JournalFile { runs, fault: None, .. }) = self.journal_file()? else { return Ok(None) };
                let blocks = runs.iter().map(|run| run.end - run.start).sum();
                let is_mended = runs.iter().any(|run| self.changed.range(run.clone()).next().is_some());
                let place = LogPlace::in_file(Arc::clone(&self.parts.metadata.media), runs).filter(|_| !is_mended);
                let Some(place) = place else { return Ok(None) };
                read_log_superblock(self.task, place, blocks).map_err(OpenExtError::from)
            }
        };
        let (mut superblock, place) = match found {
            Ok(FoundLog { superblock, place, flipped: None }) if superblock.start() == 0 => (superblock, place),
            Ok(_) | Err(OpenExtError::Volume(VolumeError::Damaged { .. })) => return Ok(None),
            Err(error) => return Err(error),
        };
        if superblock.is_old() {
            return Ok(None);
        }
        clear_fast(self.task, &place, &superblock)?;
        adapt_log(&self.parts.metadata.shape, &mut superblock);
        let id = TransactionId(superblock.sequence());
        let records = superblock.records_end() - superblock.first();
        let log = Jbd2::new(&self.parts.metadata.media, place, superblock, records);
        let place = self.parts.metadata.shape.superblock_block(0);
        let mut blocks = Vec::new();
        for block in self.changed.iter().copied().filter(|block| *block != place).chain([place]) {
            blocks.push(Logged { block, bytes: self.read(block)?, content: Content::Metadata });
        }
        let transaction = Transaction { id, blocks, revokes: Vec::new() };
        Ok(log.has_room(&transaction).then_some(Mends { log, transaction }))
    }

    /// Makes the mended blocks durable, as a transaction of the log. The superblock says before that there is one.
    pub(super) fn commit_mends(&mut self, mends: &mut Mends) -> Result<(), OpenExtError> {
        let mended = std::mem::replace(&mut self.superblock, self.begun.clone());
        self.mark_unfinished();
        self.write_superblock()?;
        self.superblock = mended;
        self.mark_unfinished();
        let (place, bytes) = self.superblock_block()?;
        self.write(place, bytes.clone());
        let superblock = mends.transaction.blocks.last_mut().expect("the superblock is the last");
        superblock.bytes = bytes.into();
        Ok(mends.log.store(self.task, &mut mends.transaction, self.now.0)?)
    }

    /// Lets the superblock say that there is a log, and that a check is to follow.
    fn mark_unfinished(&mut self) {
        let features = self.superblock.features().with(NEEDS_RECOVERY);
        self.superblock.set_features(features);
        self.superblock.set16(58, state::ERRORS);
        self.superblock.sum();
    }

    /// The mended blocks are home: empties the log.
    pub(super) fn leave_mends(&self, mends: &Mends) -> Result<(), VolumeError> {
        mends.log.let_go(self.task, mends.transaction.id.next(), true)
    }

    /// Writes an empty log. Records in a new one would be taken for its own.
    fn empty_log(&mut self, log: Log) -> Result<(), VolumeError> {
        let Log { found: FoundLog { mut superblock, place, .. }, next, is_new, .. } = log;
        let media = &place.media;
        let mut block = vec![0; self.parts.metadata.shape.block_bytes];
        if is_new {
            for number in superblock.first()..superblock.blocks() {
                let (at, _) = place.find(number).expect("the log has been found to have these blocks");
                media.read(self.task, at, &mut block)?;
                if head(&block).is_some() || fast_commit::begins(&block) {
                    block.fill(0);
                    media.write_metadata(self.task, at, &block, LABEL)?;
                }
            }
            media.flush(self.task)?;
        }
        clear_fast(self.task, &place, &superblock)?;
        superblock.set_start(0, next);
        block.fill(0);
        block[..superblock.bytes().len()].copy_from_slice(superblock.bytes());
        media.write_metadata(self.task, place.superblock, &block, LABEL)?;
        Ok(media.flush(self.task)?)
    }

    /// The log in this place. One whose own superblock is damaged is made anew.
    fn log_at(&mut self, place: LogPlace) -> Result<Log, OpenExtError> {
        let blocks: u64 = place.runs.iter().map(|run| run.end - run.start).sum();
        let on_device = self.parts.metadata.shape.journal_inode == 0;
        let found = match on_device {
            true => find_log_on_device(self.task, &self.below),
            false => read_log_superblock(self.task, place.clone(), blocks).map_err(OpenExtError::from),
        };
        let error = match found {
            Ok(found) => return Ok(Log::of(found, false)),
            Err(OpenExtError::Volume(error @ VolumeError::Damaged { .. })) => error,
            Err(error) => return Err(error),
        };
        self.found(error.to_string(), "the log becomes empty: what it had that is not home is lost");
        let (block_bytes, uuid) = (self.parts.metadata.shape.block_bytes, self.superblock.uuid());
        let made = LogSuperblock::new(block_bytes as u32, blocks.min(u32::MAX.into()) as u32, 0, uuid);
        let superblock = match on_device {
            true => {
                let own = LogSuperblock::new(block_bytes as u32, made.blocks(), 0, self.below.journal);
                own.on_device(first_record(block_bytes), self.below.volume)
            }
            false => made,
        };
        if superblock.first() >= superblock.blocks() {
            return Err(damaged("the journal", format!("it has {blocks} blocks, and no room for records")).into());
        }
        Ok(Log::of(FoundLog { superblock, place, flipped: None }, true))
    }

    /// Mends the journal's file, when all blocks are as the log has them. A journal that lies nowhere is given up.
    pub(super) fn mend_journal(&mut self) -> Result<(), VolumeError> {
        if !self.parts.metadata.shape.features.has(HAS_JOURNAL) || self.parts.metadata.shape.journal_inode == 0 {
            return Ok(());
        }
        let Some(JournalFile { number, inode, fault, .. }) = self.journal_file()? else {
            self.give_up_journal();
            return Ok(());
        };
        let Some((what, mend)) = fault else { return Ok(()) };
        self.found(what, mend);
        if number != self.parts.metadata.shape.journal_inode {
            self.superblock.set32(JOURNAL_INODE, number);
            self.superblock.sum();
            self.parts.metadata.shape.journal_inode = number;
        }
        self.put_inode(number, &inode)
    }

    fn give_up_journal(&mut self) {
        let what = "the journal has no file, and the superblock no copy of its map";
        self.found(what, "a new one is made if there is room: what the old one had that is not home is lost");
        let features = self.superblock.features().without(HAS_JOURNAL).without(NEEDS_RECOVERY);
        self.superblock.set_features(features);
        self.superblock.set32(JOURNAL_INODE, 0);
        self.superblock.sum();
        self.parts.metadata.shape.features = features;
        self.parts.metadata.shape.journal_inode = 0;
        self.wants_journal = true;
    }

    /// Makes a new journal in free blocks, if one was given up and there is room. All blocks in use are marked.
    pub(super) fn make_journal(&mut self) -> Result<(), OpenExtError> {
        if !std::mem::take(&mut self.wants_journal) {
            return Ok(());
        }
        let blocks = self.parts.settings.journal_blocks(self.parts.metadata.shape.blocks);
        let mut map = FileMap::default();
        for first in 0..blocks as u32 {
            let Some(place) = self.take_block() else { return Ok(()) };
            map.push(Extent { first, count: 1, place, is_written: true });
        }
        let shape = &self.parts.metadata.shape;
        let mut inode = Inode::empty(shape.inode_bytes, shape.extra_bytes);
        inode.set_mode(FileKind::Regular, 0o600);
        inode.set_links(1);
        inode.set_flags(if shape.has_extents() { flag::EXTENTS } else { 0 });
        inode.set_size(blocks * shape.block_bytes as u64);
        let block_bytes = shape.block_bytes;
        let Some(nodes) = self.write_map(JOURNAL, &mut inode, &map.extents) else { return Ok(()) };
        inode.set_blocks(blocks + nodes, block_bytes);
        self.put_inode(JOURNAL, &inode)?;
        let runs = map.extents.iter().map(|extent| extent.place..extent.place + u64::from(extent.count)).collect();
        let place = LogPlace::in_file(Arc::clone(&self.parts.metadata.media), runs);
        let superblock = LogSuperblock::new(block_bytes as u32, blocks as u32, 0, self.superblock.uuid());
        let place = place.expect("a journal has blocks");
        self.empty_log(Log::of(FoundLog { superblock, place, flipped: None }, true))?;
        let features = self.superblock.features().with(HAS_JOURNAL);
        self.superblock.set_features(features);
        self.superblock.name_memory(None);
        self.superblock.set_bytes(COPY_TYPE, &[1]);
        self.superblock.set_bytes(COPY, inode.map());
        self.superblock.set32(COPY + MAP_BYTES, (inode.size() >> 32) as u32);
        self.superblock.set32(COPY + MAP_BYTES + 4, inode.size() as u32);
        self.superblock.sum();
        self.parts.metadata.shape.features = features;
        self.parts.metadata.shape.journal_inode = JOURNAL;
        Ok(())
    }

    /// Finds the journal's file: of those that can be it, the first in which a log begins.
    fn journal_file(&mut self) -> Result<Option<JournalFile>, VolumeError> {
        let named = self.parts.metadata.shape.journal_inode;
        let is_there = (1..=self.parts.metadata.shape.inodes).contains(&named);
        let stored = if is_there { Some(self.inode(named)?) } else { None };
        let is_sound = stored.as_ref().is_some_and(|inode| self.can_be_a_journal(named, inode));
        let mut files = Vec::new();
        if let Some(inode) = stored.as_ref().filter(|_| is_sound)
            && let Some(runs) = self.log_runs(named, inode)?
        {
            files.push(JournalFile { number: named, inode: inode.clone(), runs, fault: None });
        }
        // An inode of somebody else is not written over.
        let is_others = is_sound || !is_there || named < self.parts.metadata.shape.first_inode;
        let number = if named != JOURNAL && is_others { JOURNAL } else { named };
        files.extend(self.copied_file(number, stored.as_ref())?);
        if let Some(inode) = stored.as_ref().filter(|_| number == named) {
            files.extend(self.mended_file(named, inode)?);
        }
        let mut best = None;
        for file in files {
            let likeness = self.likeness(&file.runs)?;
            if best.as_ref().is_none_or(|(most, _)| likeness > *most) {
                best = Some((likeness, file));
            }
        }
        Ok(best.map(|(_, file)| file))
    }

    /// True if the fields of an inode can be those of a journal.
    fn can_be_a_journal(&self, number: u32, inode: &Inode) -> bool {
        let sum = inode.checksum(number, self.parts.metadata.shape.checksums);
        inode.kind() == Some(FileKind::Regular)
            && inode.links() > 0
            && inode.deleted() == 0
            && !inode.has(flag::ENCRYPTED)
            && inode.size().is_multiple_of(self.parts.metadata.shape.block_bytes as u64)
            && sum.is_none_or(|sum| sum == inode.said_checksum())
    }

    /// How much of a log begins in these blocks: 2 if a whole superblock of one, which has no more blocks; 1 if what may
    /// have been one.
    fn likeness(&self, runs: &[Range<u64>]) -> Result<u32, VolumeError> {
        let blocks = runs.iter().map(|run| run.end - run.start).sum();
        let Some(first) = runs.first() else { return Ok(0) };
        let mut bytes = vec![0; self.parts.metadata.shape.block_bytes];
        self.parts.metadata.media.read(self.task, first.start, &mut bytes)?;
        if LogSuperblock::read(&bytes, blocks).is_ok() || LogSuperblock::mended(&bytes, blocks).is_some() {
            return Ok(2);
        }
        let is_head = head(&bytes).is_some_and(|(kind, _)| [kind::SUPERBLOCK, kind::OLD_SUPERBLOCK].contains(&kind));
        Ok(u32::from(is_head))
    }

    /// The blocks of a log in a file: all of them, from the first on. The map may have more of them than the size.
    fn log_runs(&mut self, number: u32, inode: &Inode) -> Result<Option<Vec<Range<u64>>>, VolumeError> {
        let known = self.walk.findings.len();
        let map = self.read_map(number, inode)?;
        self.walk.findings.truncate(known);
        let blocks = inode.size() / self.parts.metadata.shape.block_bytes as u64;
        let is_whole = !map.is_damaged && map.is_gapless() && map.end() >= blocks && blocks > 0;
        let parts = map.extents.iter().filter_map(|extent| extent.part(0, blocks));
        Ok(is_whole.then(|| parts.map(|part| part.place..part.place + u64::from(part.count)).collect()))
    }

    /// The journal's file, made anew from the copy in the superblock. `None` if that is none.
    fn copied_file(&mut self, number: u32, stored: Option<&Inode>) -> Result<Option<JournalFile>, VolumeError> {
        let bytes = self.superblock.bytes();
        if bytes[COPY_TYPE] != 1 {
            return Ok(None);
        }
        let copy = bytes[COPY..COPY + MAP_BYTES].to_vec();
        let (high, low) = (self.superblock.u32(COPY + MAP_BYTES), self.superblock.u32(COPY + MAP_BYTES + 4));
        let shape = &self.parts.metadata.shape;
        let mut inode = Inode::empty(shape.inode_bytes, shape.extra_bytes);
        inode.set_mode(FileKind::Regular, 0o600);
        inode.set_links(1);
        inode.map_mut().copy_from_slice(&copy);
        inode.set_size(u64::from(high) << 32 | u64::from(low));
        let is_extents = copy[..2] == extents::MAGIC.to_le_bytes();
        inode.set_flags(if is_extents { flag::EXTENTS } else { 0 });
        // The checksums of a deep map begin from the generation.
        for generation in [0, stored.map_or(0, Inode::generation)] {
            inode.set_generation(generation);
            if let Some(runs) = self.log_runs(number, &inode)? {
                self.count_blocks(number, &mut inode)?;
                let what = format!("inode {number}, which should be the journal, is damaged, or another file");
                let fault = Some((what, "the journal's inode is made anew from the copy of its map in the superblock"));
                return Ok(Some(JournalFile { number, inode, runs, fault }));
            }
        }
        Ok(None)
    }

    /// The stored inode, with the fields of a journal. `None` if its map is not whole.
    fn mended_file(&mut self, number: u32, stored: &Inode) -> Result<Option<JournalFile>, VolumeError> {
        let mut inode = stored.clone();
        inode.set_mode(FileKind::Regular, 0o600);
        inode.set_links(1);
        inode.set_deleted(0);
        let is_extents = inode.map()[..2] == extents::MAGIC.to_le_bytes();
        inode.set_flags(if is_extents { flag::EXTENTS } else { 0 });
        inode.set_size(u64::from(u32::MAX));
        let known = self.walk.findings.len();
        let map = self.read_map(number, &inode)?;
        self.walk.findings.truncate(known);
        let block_bytes = self.parts.metadata.shape.block_bytes as u64;
        let fits =
            stored.size().is_multiple_of(block_bytes) && (1..=map.end()).contains(&(stored.size() / block_bytes));
        inode.set_size(if fits { stored.size() } else { map.end() * block_bytes });
        let Some(runs) = self.log_runs(number, &inode)? else { return Ok(None) };
        self.count_blocks(number, &mut inode)?;
        let fault = Some((format!("inode {number}, the journal, is damaged"), "it gets the fields of a journal"));
        Ok(Some(JournalFile { number, inode, runs, fault }))
    }

    /// Puts the number of its blocks into an inode whose map is whole.
    fn count_blocks(&mut self, number: u32, inode: &mut Inode) -> Result<(), VolumeError> {
        let known = self.walk.findings.len();
        let blocks = self.read_map(number, inode)?.blocks();
        self.walk.findings.truncate(known);
        inode.set_blocks(blocks, self.parts.metadata.shape.block_bytes);
        Ok(())
    }
}
