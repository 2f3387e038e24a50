//! The steps of a mount.
//!
//! 1. The superblock, at byte 1024, and whether its features are known here.
//! 2. All group descriptors.
//! 3. The log: its blocks that are not home, and the fast commits behind it. A volume that can only be read keeps it in memory; another writes it home.
//! 4. The journal begins, and the superblock says that the volume is in use.
//! 5. Orphans: files without a name are freed, and those that were being cut off are.
//!
//! A volume that is opened to be read alone is not changed, with any log.

use super::fast_replay::FastReplayed;
use super::fast_scan::FastCommits;
use super::replay::{Replayed, ReplayedLog};
use crate::device::{BlockDevice, Medium};
use crate::fs::ext::allocation::FreeSpace;
use crate::fs::ext::blocks::{Blocks, Bytes};
use crate::fs::ext::changes::Changes;
use crate::fs::ext::error::{OpenExtError, damaged};
use crate::fs::ext::files::head::Head;
use crate::fs::ext::files::node::Nodes;
use crate::fs::ext::files::waiting::Waiting;
use crate::fs::ext::format::features::{FAST_COMMIT, HAS_JOURNAL, JOURNAL_DEV, WIDE};
use crate::fs::ext::format::group::Descriptor;
use crate::fs::ext::format::log::{LogSuperblock, feature};
use crate::fs::ext::format::shape::Shape;
use crate::fs::ext::format::superblock::{LENGTH, MAGIC, PLACE, Superblock, state};
use crate::fs::ext::found_log::FoundLog;
use crate::fs::ext::inspect::uuid;
use crate::fs::ext::journal::{Jbd2, Journal, Log, LoggedJournal, OrderBelow, TransactionId, VmAwareLog};
use crate::fs::ext::media::{Below, Media};
use crate::fs::ext::memory::Shares;
use crate::fs::ext::metadata::Metadata;
use crate::fs::ext::names::known::KnownNames;
use crate::fs::ext::own_blocks::OwnBlocks;
use crate::fs::ext::recovery::memory::wanted_memory;
use crate::fs::ext::settings::LEAST_LOG;
use crate::fs::ext::{DataMode, Ext, ExtSettings};
use crate::fs::station::{Access, Mounting};
use crate::fs::volume::{Damage, VolumeError};
use crate::label::{Cause, Content, Label};
use crate::task::{Gate, SharedGate, Task};
use crate::time::Time;
use crate::units::BLOCK_BYTES;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// The state from which a mount goes on.
struct Begun {
    replayed: Replayed,
    fast: FastCommits,
    /// Changes in the log are lost.
    has_lost: bool,
}

/// Blocks of a transaction with which the largest call fits into one.
const LEAST_JOURNAL: usize = 192;

impl Ext {
    /// Opens the volume on these devices.
    pub fn open(
        below: Vec<Medium>,
        settings: &ExtSettings,
        mounting: &Mounting,
        access: Access,
    ) -> Result<Ext, OpenExtError> {
        let task = Task::at(Time::ZERO);
        let mut ext = Ext::with_memory_home(&task, below, settings, mounting, access)?;
        if ext.changes.read_only.is_none() {
            ext.check_journal_options()?;
        }
        ext.sum_groups(&task)?;
        if let Some(log) = ext.find_log(&task)? {
            let replayed = ext.replayed(&task, &log)?;
            // The superblock in the log is the newest one.
            if let Some(bytes) = replayed.blocks.get(&ext.metadata.shape.superblock_block(0)) {
                let at = PLACE as usize % ext.metadata.shape.block_bytes;
                let state = Superblock::new(&bytes[at..at + LENGTH]).state();
                ext.changes.read_only = ext.changes.read_only.take().or_else(|| ext.refuses_errors(state, access));
            }
            let begun = ext.settle_log(replayed, access);
            ext.start(&task, log, begun, access)?;
        }
        Ok(ext)
    }

    /// Writes the blocks of a journal in memory home, and ends that. The volume is not begun.
    pub fn recover(below: Vec<Medium>, settings: &ExtSettings, mounting: &Mounting) -> Result<(), OpenExtError> {
        let task = Task::at(Time::ZERO);
        Ext::with_memory_home(&task, below, settings, mounting, Access::DespiteDamage).map(drop)
    }

    /// The volume on these devices, with the blocks of a journal in memory at their places.
    fn with_memory_home(
        task: &Task<'_>,
        below: Vec<Medium>,
        settings: &ExtSettings,
        mounting: &Mounting,
        access: Access,
    ) -> Result<Ext, OpenExtError> {
        let Below { volume, journal, memory } = Below::of(below)?;
        let (media, superblock) = read_superblock(volume, task)?;
        if superblock.u16(56) == MAGIC && superblock.features().has(JOURNAL_DEV) {
            let what = format!("the first device is journal {}: write the volume's before it", uuid(superblock.uuid()));
            return Err(OpenExtError::JournalDevice(what));
        }
        let memory = wanted_memory(settings, memory, journal.is_some(), false)?;
        let mut ext = Ext::on(media, journal, superblock, settings, mounting)?;
        ext.take_memory(memory);
        ext.changes.read_only = ext.refuses_writing(access);
        if ext.changes.read_only.is_none() {
            ext.check_region()?;
        }
        ext.replay_region(task, access)?;
        ext.recover_memory(task, access)?;
        Ok(ext)
    }

    /// The volume with this superblock, before anything else is read.
    pub fn on(
        media: Media,
        journal: Option<Box<dyn BlockDevice>>,
        superblock: Superblock,
        settings: &ExtSettings,
        mounting: &Mounting,
    ) -> Result<Ext, OpenExtError> {
        let shape = Shape::of(&superblock, media.size_bytes()).map_err(OpenExtError::Superblock)?;
        let unreadable = shape.features.unreadable();
        if !unreadable.is_empty() {
            return Err(OpenExtError::Unreadable(unreadable.join(", ")));
        }
        if shape.block_bytes > BLOCK_BYTES as usize {
            let what = format!("its blocks have {} bytes; 1, 2 and 4 KiB are known here", shape.block_bytes);
            return Err(OpenExtError::Unsupported(what));
        }
        // The writes that made it count, too.
        let media = match media.block_bytes() == shape.block_bytes {
            true => media,
            false => Media::new(media.into_device(), shape.block_bytes),
        };
        let shares = Shares::of(settings, mounting.memory_bytes)?;
        let most = (shares.blocks / shape.block_bytes as u64) as usize;
        let most_changed = shares.changed_blocks(shape.block_bytes);
        let blocks = Blocks::new((!media.holds_stamps()).then_some(most), most_changed);
        let pages = (shares.pages / shape.block_bytes as u64) as usize;
        Ok(Ext {
            pages: (pages > 0).then(|| Blocks::new(Some(pages), usize::MAX)),
            settings: settings.clone(),
            shares,
            memory: None,
            journal_media: journal.map(|device| Arc::new(Media::new(device, shape.block_bytes))),
            metadata: Metadata {
                shape,
                media: Arc::new(media),
                blocks: Arc::new(blocks),
                own_blocks: OwnBlocks::default(),
            },
            uuid: superblock.uuid(),
            journal_uuid: superblock.journal_uuid(),
            mount_number: superblock.mount_number(),
            head: Gate::new("superblock", Head::new(superblock)),
            space: FreeSpace::default(),
            renames: Gate::new("renames", ()),
            shared_attributes: Gate::new("shared attributes", ()),
            waiting: Waiting::new(shares.dirty, shares.waiting_count()),
            generations: AtomicU64::new(mounting.seed),
            changes: Changes::default(),
            nodes: Nodes::new(shares.inode_count()),
            known_names: KnownNames::new(shares.inode_count()),
            mounted: SharedGate::new("mounted", true),
            damage: Vec::new(),
            has_logged_data: AtomicBool::new(false),
            received_blocks: AtomicU64::new(0),
            origin: mounting.origin,
        })
    }

    /// Why the volume can only be read, if so.
    fn refuses_writing(&mut self, access: Access) -> Option<String> {
        if access == Access::ReadOnly {
            return Some("it was mounted so".to_string());
        }
        let unwritable = self.metadata.shape.features.unwritable();
        if !unwritable.is_empty() {
            return Some(format!("it has features that cannot be written here: {}", unwritable.join(", ")));
        }
        if !self.metadata.shape.features.has(HAS_JOURNAL) {
            return Some("it has no journal".to_string());
        }
        let state = self.head.get_mut().superblock.state();
        self.refuses_errors(state, access)
    }

    /// Why the volume can only be read, if its superblock has this state.
    pub fn refuses_errors(&mut self, state: u16, access: Access) -> Option<String> {
        if state & state::ERRORS != 0 && self.damage.is_empty() {
            let what = "the superblock says that errors were found".to_string();
            self.damage
                .push(Damage { what: what.clone(), repair: "'flashpath fsck' checks all structures".to_string() });
            if access != Access::DespiteDamage {
                return Some(what);
            }
        }
        None
    }

    /// Reads all group descriptors, counts free blocks and inodes, and notes the blocks of the volume itself.
    pub fn sum_groups(&mut self, task: &Task<'_>) -> Result<(), VolumeError> {
        let (mut blocks, mut inodes, mut own) = (0, 0, Vec::new());
        // Those of the first group follow below, but for the boot record.
        own.push(0..self.metadata.shape.first_data_block);
        for group in 0..self.metadata.shape.groups {
            let descriptor = self.metadata.descriptor(task, group)?;
            blocks += u64::from(descriptor.free_blocks);
            inodes += u64::from(descriptor.free_inodes);
            let start = self.metadata.shape.group_start(group);
            let Descriptor { block_bitmap, inode_bitmap, inode_table, .. } = descriptor;
            own.extend([
                start..start + self.metadata.shape.blocks_before(group),
                block_bitmap..block_bitmap + 1,
                inode_bitmap..inode_bitmap + 1,
                inode_table..inode_table + self.metadata.shape.table_blocks(),
            ]);
        }
        let count: u64 = own.iter().map(|range| range.end - range.start).sum();
        self.metadata.own_blocks = OwnBlocks::of(own);
        if self.metadata.own_blocks.count() != count {
            let why = "two of superblocks, descriptors, bitmaps and inode tables have the same blocks";
            return Err(damaged("the group descriptors", why));
        }
        self.space.free.blocks.store(blocks, SeqCst);
        self.space.free.inodes.store(inodes, SeqCst);
        Ok(())
    }

    /// Tells the damage of the log: the volume can only be read then, unless its user knows. Blocks that a lost record
    /// may have revoked are left out, but for those that no file can have.
    fn settle_log(&mut self, log: ReplayedLog, access: Access) -> Begun {
        let ReplayedLog { mut blocks, doubtful, next, damage, has_lost, mut fast } = log;
        let superblock_block = self.metadata.shape.superblock_block(0);
        let is_fixed = |block: u64| block == superblock_block || self.metadata.own_blocks.overlaps(&(block..block + 1));
        blocks.extend(doubtful.into_iter().filter(|(block, _)| is_fixed(*block)));
        let has_lost = has_lost || fast.damage.is_some();
        damage.into_iter().chain(fast.damage.take()).for_each(|damage| self.tell_of_log(damage, access));
        Begun { replayed: Replayed { blocks, next, damaged: Vec::new() }, fast, has_lost }
    }

    /// Tells that the log is damaged.
    fn tell_of_log(&mut self, damage: Damage, access: Access) {
        if access != Access::DespiteDamage {
            self.changes.read_only.get_or_insert("its journal is damaged".to_string());
        }
        self.damage.push(damage);
    }

    /// Goes on from the end of the log.
    fn start(&mut self, task: &Task<'_>, log: FoundLog, begun: Begun, access: Access) -> Result<(), OpenExtError> {
        let Begun { replayed, fast, mut has_lost } = begun;
        let mut next = replayed.next;
        let mut fast_replayed = FastReplayed::default();
        if !fast.commits.is_empty() {
            self.keep_copies(task, &replayed.blocks, false)?;
            fast_replayed = self.replay_fast(task, &fast, &replayed.blocks)?;
            has_lost |= fast_replayed.damage.is_some();
            fast_replayed.damage.take().into_iter().for_each(|damage| self.tell_of_log(damage, access));
        }
        let transaction = match self.fast_transaction(&log, fast.id, &fast_replayed.blocks) {
            Ok(transaction) => Some(transaction),
            Err(why) => {
                self.changes.read_only.get_or_insert(why);
                None
            }
        };
        if self.changes.read_only.is_some() {
            // With fast commits they are in memory already.
            if fast.commits.is_empty() {
                return Ok(self.keep_replayed(task, replayed)?);
            }
            self.has_logged_data = AtomicBool::new(true);
            return Ok(());
        }
        let is_replayed = !replayed.blocks.is_empty();
        self.keep_replayed(task, replayed)?;
        if is_replayed {
            self.has_logged_data = AtomicBool::new(false);
        }
        if has_lost {
            // Before the log that says so is emptied.
            let superblock = &mut self.head.get_mut().superblock;
            superblock.set16(58, superblock.state() | state::ERRORS);
            self.mark_superblock(task, true)?;
        }
        if let Some(transaction) = transaction.filter(|_| !fast_replayed.blocks.is_empty()) {
            next = transaction.store(task, self.wall(task.now()).0)?;
            self.keep_copies(task, &fast_replayed.blocks, true)?;
        }
        self.begin_journal(task, log, next)?;
        self.free_orphans(task)?;
        Ok(())
    }

    /// Refuses fast commits and an order of commits that are asked for, and cannot be.
    pub fn check_journal_options(&self) -> Result<(), OpenExtError> {
        let refuse = |why: &str| Err(OpenExtError::Unsupported(why.to_string()));
        let below = OrderBelow {
            device: self.metadata.media.device(),
            has_journal_device: self.journal_media.is_some(),
            is_in_memory: self.memory.is_some(),
            has_sums: self.metadata.shape.has_checksums(),
        };
        if let Some(why) = self.settings.order.refused(&below) {
            return refuse(why);
        }
        match self.settings.fast_commits {
            Some(true) if !self.metadata.shape.features.has(FAST_COMMIT) => refuse(
                "fast-commit=on is of volumes with the feature fast_commit, which this one has not: leave it out, or set the \
                 feature with 'tune2fs -O fast_commit'",
            ),
            Some(true) if self.memory.is_some() => {
                refuse("fast-commit=on is of a journal in blocks of a device, and this one is in memory: leave it out")
            }
            _ => Ok(()),
        }
    }

    /// Gives a log that is empty an area for fast commits, if the volume has the feature and the options do not say
    /// otherwise. False if it has none: without the feature, in memory, where the bytes of files go through the journal, or if
    /// the log is too small.
    fn add_fast_area(&self, superblock: &mut LogSuperblock) -> Result<bool, OpenExtError> {
        let wanted = self.settings.fast_commits;
        let can_be = self.metadata.shape.features.has(FAST_COMMIT) && self.memory.is_none();
        if !can_be || wanted == Some(false) || self.settings.data == DataMode::Journal {
            return Ok(false);
        }
        let is_added = superblock.add_fast_area(LEAST_LOG as u32);
        if !is_added && wanted == Some(true) {
            let what = format!(
                "its journal has {} blocks, and fast-commit=on needs {LEAST_LOG} beside those for fast commits: leave it out",
                superblock.blocks()
            );
            return Err(OpenExtError::Unsupported(what));
        }
        Ok(is_added)
    }

    /// Gives a log that is empty the features that this volume's has.
    pub fn adapt_log(&self, superblock: &mut LogSuperblock) {
        superblock.add_feature(feature::REVOKES);
        if self.metadata.shape.features.has(WIDE) {
            superblock.add_feature(feature::WIDE);
        }
        if self.metadata.shape.has_checksums() {
            superblock.use_sums();
        }
    }

    /// Begins the journal of a volume whose log is home.
    pub fn begin_journal(&mut self, task: &Task<'_>, log: FoundLog, next: TransactionId) -> Result<(), OpenExtError> {
        let mut superblock = log.superblock;
        if superblock.is_old() {
            return Err(OpenExtError::Unsupported(
                "its journal is of version 1, which is not written here".to_string(),
            ));
        }
        self.adapt_log(&mut superblock);
        let has_fast_area = self.add_fast_area(&mut superblock)?;
        superblock.set_start(0, next.0);
        self.count_mount(&mut superblock);
        let most = u32::try_from(self.shares.changed_blocks(self.metadata.shape.block_bytes)).unwrap_or(u32::MAX);
        let records = (superblock.records_end() - superblock.first()).min(most);
        let place = log.place;
        match self.journal_media {
            Some(_) => self.metadata.media.set_journal(&[])?,
            None => self.metadata.own_blocks = std::mem::take(&mut self.metadata.own_blocks).with(&place.runs),
        }
        if self.memory.is_none() {
            place.media.set_journal(&place.runs)?;
        }
        let mut bytes = superblock.bytes().to_vec();
        bytes.resize(self.metadata.shape.block_bytes, 0);
        self.clear_fast(task, &place, &superblock)?;
        let label = Label::first(Cause::JournalCommit, Content::Journal);
        place.media.write_metadata(task, place.superblock, &bytes, label)?;
        place.media.flush(task)?;
        let journal: Box<dyn Journal> = match self.begin_region(next)? {
            Some(journal) => Box::new(journal),
            None => {
                let (media, blocks) = (Arc::clone(&self.metadata.media), Arc::clone(&self.metadata.blocks));
                let most_kept = self.settings.kept_bytes.map(|bytes| self.blocks_of(bytes));
                let log: Box<dyn Log> = match self.begin_memory(next, most_kept.unwrap_or(records))? {
                    Some(monitor) => {
                        let inline = Jbd2::new(&media, place, superblock, records);
                        let superblock = self.metadata.shape.superblock_block(0);
                        Box::new(VmAwareLog::new(&media, monitor, inline, superblock, most_kept))
                    }
                    None => Box::new(Jbd2::new(&media, place, superblock, records).in_order(self.settings.order)),
                };
                let ExtSettings { checkpointing, has_commit_thread, .. } = self.settings;
                let below = (media, blocks);
                let journal = LoggedJournal::new(log, below, next, self.origin, checkpointing, has_commit_thread);
                Box::new(if has_fast_area { journal.with_fast_commits() } else { journal })
            }
        };
        if journal.most_blocks() < LEAST_JOURNAL {
            return Err(OpenExtError::Unsupported(format!(
                "its journal has room for {} blocks in a transaction, and {LEAST_JOURNAL} are needed",
                journal.most_blocks()
            )));
        }
        self.changes.journal = Some(journal);
        self.metadata.media.write_behind(self.shares.dirty / 4);
        Ok(self.mark_superblock(task, true)?)
    }

    /// The number of blocks of so many bytes.
    fn blocks_of(&self, bytes: u64) -> u32 {
        u32::try_from(bytes / self.metadata.shape.block_bytes as u64).unwrap_or(u32::MAX)
    }

    /// Takes the blocks of the log for newer than those on the device. A volume that can only be read keeps it in memory;
    /// of another it is written home.
    pub fn keep_replayed(&mut self, task: &Task<'_>, replayed: Replayed) -> Result<(), VolumeError> {
        if replayed.blocks.is_empty() {
            return Ok(());
        }
        self.has_logged_data = AtomicBool::new(true);
        self.keep_copies(task, &replayed.blocks, self.changes.read_only.is_none())
    }

    /// Takes these bytes of blocks: home, where they are durable then, or in memory.
    fn keep_copies(
        &mut self,
        task: &Task<'_>,
        blocks: &BTreeMap<u64, Bytes>,
        is_written: bool,
    ) -> Result<(), VolumeError> {
        let superblock_block = self.metadata.shape.superblock_block(0);
        let label = Label::first(Cause::Checkpoint, Content::Metadata);
        for (block, bytes) in blocks.iter().map(|(block, bytes)| (*block, bytes)) {
            if block == superblock_block {
                let at = PLACE as usize % self.metadata.shape.block_bytes;
                self.head.get_mut().superblock = Superblock::new(&bytes[at..at + LENGTH]);
            }
            if is_written {
                self.metadata.media.write(task, block, bytes, label)?;
                // Blocks that were read before are older.
                self.metadata.blocks.forget(block);
            } else {
                self.metadata.blocks.set(block, bytes);
            }
        }
        if is_written {
            self.metadata.media.flush(task)?;
        }
        let shape = Shape::of(&self.head.get_mut().superblock, self.metadata.media.size_bytes());
        let shape = shape.map_err(|why| damaged("the superblock in the journal", why))?;
        if (shape.blocks, shape.block_bytes) != (self.metadata.shape.blocks, self.metadata.shape.block_bytes) {
            return Err(damaged("the superblock in the journal", "it is one of another volume"));
        }
        self.metadata.shape = shape;
        self.sum_groups(task)
    }
}

impl Ext {
    /// Marks the volume with this number as one in which errors were found: the next mount and check say so, here and
    /// elsewhere.
    pub fn mark_errors(below: Vec<Medium>, number: [u8; 16]) -> Result<(), OpenExtError> {
        let task = Task::at(Time::ZERO);
        let (media, mut superblock) = read_superblock(Below::of(below)?.volume, &task)?;
        if superblock.uuid() != number || Shape::of(&superblock, media.size_bytes()).is_err() {
            return Err(OpenExtError::Superblock("it is that of another volume".to_string()));
        }
        superblock.set16(58, superblock.state() | state::ERRORS);
        superblock.sum();
        let label = Label::first(Cause::Checkpoint, Content::Metadata);
        media.write(&task, PLACE / LENGTH as u64, superblock.bytes(), label)?;
        Ok(media.flush(&task)?)
    }
}

/// Reads the superblock of a device.
pub fn read_superblock(device: Box<dyn BlockDevice>, task: &Task<'_>) -> Result<(Media, Superblock), OpenExtError> {
    let media = Media::new(device, LENGTH);
    if media.size_bytes() < PLACE + LENGTH as u64 {
        return Err(OpenExtError::Superblock(format!("the device has {} bytes", media.size_bytes())));
    }
    let mut bytes = [0; LENGTH];
    media.read(task, PLACE / LENGTH as u64, &mut bytes)?;
    Ok((media, Superblock::new(&bytes)))
}
