//! The steps of a mount.
//!
//! 1. The superblock, at byte 1024, and whether its features are known here.
//! 2. All group descriptors.
//! 3. The log: its blocks that are not home, and the fast commits behind it. A volume that can only be read keeps it in memory; another writes it home.
//! 4. The journal begins, and the superblock says that the volume is in use.
//! 5. Orphans: files without a name are freed, and those that were being cut off are.
//!
//! A volume that is opened to be read alone is not changed, with any log.

use super::fast_replay::{FastReplayed, FastReplaying, fast_transaction};
use super::fast_scan::{FastCommits, clear_fast};
use super::opening::Opening;
use super::orphans::FoundOrphans;
use super::replay::{Replayed, ReplayedLog, replayed};
use crate::device::{BlockDevice, Medium};
use crate::fs::ext::error::OpenExtError;
use crate::fs::ext::format::bytes::uuid;
use crate::fs::ext::format::features::{FAST_COMMIT, HAS_JOURNAL, JOURNAL_DEV, WIDE};
use crate::fs::ext::format::log::{LogSuperblock, feature};
use crate::fs::ext::format::shape::Shape;
use crate::fs::ext::format::superblock::{LENGTH, MAGIC, PLACE, Superblock, state};
use crate::fs::ext::found_log::{FoundLog, find_log};
use crate::fs::ext::journal::{Jbd2, Journal, Log, LoggedJournal, OrderBelow, TransactionId, VmAwareLog};
use crate::fs::ext::marking::mark_superblock;
use crate::fs::ext::media::{Below, Media};
use crate::fs::ext::recovery::memory::wanted_memory;
use crate::fs::ext::settings::LEAST_LOG;
use crate::fs::ext::{DataMode, Ext, ExtSettings};
use crate::fs::station::{Access, Mounting};
use crate::fs::volume::Damage;
use crate::label::{Cause, Content, Label};
use crate::task::Task;
use crate::time::Time;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The state from which a mount goes on.
struct Begun {
    replayed: Replayed,
    fast: FastCommits,
    /// Changes in the log are lost.
    has_lost: bool,
}

/// Blocks of a transaction with which the largest call fits into one.
const LEAST_JOURNAL: usize = 192;

/// Opens the volume on these devices.
pub fn open(
    below: Vec<Medium>,
    settings: &ExtSettings,
    mounting: &Mounting,
    access: Access,
) -> Result<Ext, OpenExtError> {
    let task = Task::at(Time::ZERO);
    let mut opening = with_memory_home(&task, below, settings, mounting, access)?;
    if opening.parts.changes.read_only.is_none() {
        opening.check_journal_options()?;
    }
    opening.parts.sum_groups(&task)?;
    if let Some(log) = find_log(&task, &opening.parts, &opening.below)? {
        let replayed = replayed(&task, &opening.parts.metadata.shape, &log)?;
        // The superblock in the log is the newest one.
        opening.notice_errors(&replayed.blocks, access);
        let begun = opening.settle_log(replayed, access);
        opening.start(&task, log, begun, access)?;
    }
    Ok(opening.mounted())
}

/// Writes the blocks of a journal in memory home, and ends that. The volume is not begun.
pub fn recover(below: Vec<Medium>, settings: &ExtSettings, mounting: &Mounting) -> Result<(), OpenExtError> {
    let task = Task::at(Time::ZERO);
    with_memory_home(&task, below, settings, mounting, Access::DespiteDamage).map(drop)
}

/// The volume on these devices, with the blocks of a journal in memory at their places.
fn with_memory_home(
    task: &Task<'_>,
    below: Vec<Medium>,
    settings: &ExtSettings,
    mounting: &Mounting,
    access: Access,
) -> Result<Opening, OpenExtError> {
    let Below { volume, journal, memory } = Below::of(below)?;
    let (media, superblock) = read_superblock(volume, task)?;
    if superblock.u16(56) == MAGIC && superblock.features().has(JOURNAL_DEV) {
        let what = format!("the first device is journal {}: write the volume's before it", uuid(superblock.uuid()));
        return Err(OpenExtError::JournalDevice(what));
    }
    let memory = wanted_memory(settings, memory, journal.is_some(), false)?;
    let mut opening = Opening::on(media, (journal, memory), superblock, settings, mounting)?;
    opening.parts.changes.read_only = opening.refuses_writing(access);
    if opening.parts.changes.read_only.is_none() {
        opening.below.check_region(&opening.parts.metadata, &opening.parts.settings)?;
    }
    opening.replay_region(task, access)?;
    opening.recover_memory(task, access)?;
    Ok(opening)
}

impl Opening {
    /// Why the volume can only be read, if so.
    fn refuses_writing(&mut self, access: Access) -> Option<String> {
        if access == Access::ReadOnly {
            return Some("it was mounted so".to_string());
        }
        let unwritable = self.parts.metadata.shape.features.unwritable();
        if !unwritable.is_empty() {
            return Some(format!("it has features that cannot be written here: {}", unwritable.join(", ")));
        }
        if !self.parts.metadata.shape.features.has(HAS_JOURNAL) {
            return Some("it has no journal".to_string());
        }
        let state = self.parts.head.get_mut().superblock.state();
        self.refuses_errors(state, access)
    }

    /// Tells the damage of the log: the volume can only be read then, unless its user knows. Blocks that a lost record
    /// may have revoked are left out, but for those that no file can have.
    fn settle_log(&mut self, log: ReplayedLog, access: Access) -> Begun {
        let ReplayedLog { mut blocks, doubtful, next, damage, has_lost, mut fast } = log;
        let superblock_block = self.parts.metadata.shape.superblock_block(0);
        let is_fixed =
            |block: u64| block == superblock_block || self.parts.metadata.own_blocks.overlaps(&(block..block + 1));
        blocks.extend(doubtful.into_iter().filter(|(block, _)| is_fixed(*block)));
        let has_lost = has_lost || fast.damage.is_some();
        damage.into_iter().chain(fast.damage.take()).for_each(|damage| self.tell_of_log(damage, access));
        Begun { replayed: Replayed { blocks, next, damaged: Vec::new() }, fast, has_lost }
    }

    /// Tells that the log is damaged.
    fn tell_of_log(&mut self, damage: Damage, access: Access) {
        if access != Access::DespiteDamage {
            self.parts.changes.read_only.get_or_insert("its journal is damaged".to_string());
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
            fast_replayed =
                FastReplaying { parts: &mut self.parts, task, fast: &fast, logged: &replayed.blocks }.replay()?;
            has_lost |= fast_replayed.damage.is_some();
            fast_replayed.damage.take().into_iter().for_each(|damage| self.tell_of_log(damage, access));
        }
        let transaction = match fast_transaction(&self.parts.metadata.media, &log, fast.id, &fast_replayed.blocks) {
            Ok(transaction) => Some(transaction),
            Err(why) => {
                self.parts.changes.read_only.get_or_insert(why);
                None
            }
        };
        if self.parts.changes.read_only.is_some() {
            // With fast commits they are in memory already.
            if fast.commits.is_empty() {
                return Ok(self.keep_replayed(task, replayed)?);
            }
            self.parts.has_logged_data = AtomicBool::new(true);
            return Ok(());
        }
        let is_replayed = !replayed.blocks.is_empty();
        self.keep_replayed(task, replayed)?;
        if is_replayed {
            self.parts.has_logged_data = AtomicBool::new(false);
        }
        if has_lost {
            // Before the log that says so is emptied.
            let superblock = &mut self.parts.head.get_mut().superblock;
            superblock.set16(58, superblock.state() | state::ERRORS);
            mark_superblock(task, &self.parts, &self.below, true)?;
        }
        if let Some(transaction) = transaction.filter(|_| !fast_replayed.blocks.is_empty()) {
            next = transaction.store(task, self.parts.wall(task.now()).0)?;
            self.keep_copies(task, &fast_replayed.blocks, true)?;
        }
        self.begin_journal(task, log, next)?;
        FoundOrphans { task, writes: self.parts.writes() }.free()?;
        Ok(())
    }

    /// Refuses fast commits and an order of commits that are asked for, and cannot be.
    pub fn check_journal_options(&self) -> Result<(), OpenExtError> {
        let refuse = |why: &str| Err(OpenExtError::Unsupported(why.to_string()));
        let below = OrderBelow {
            device: self.parts.metadata.media.device(),
            has_journal_device: self.below.media.is_some(),
            is_in_memory: self.below.memory.is_some(),
            has_sums: self.parts.metadata.shape.has_checksums(),
        };
        if let Some(why) = self.parts.settings.order.refused(&below) {
            return refuse(why);
        }
        match self.parts.settings.fast_commits {
            Some(true) if !self.parts.metadata.shape.features.has(FAST_COMMIT) => refuse(
                "fast-commit=on is of volumes with the feature fast_commit, which this one has not: leave it out, or set the \
                 feature with 'tune2fs -O fast_commit'",
            ),
            Some(true) if self.below.memory.is_some() => {
                refuse("fast-commit=on is of a journal in blocks of a device, and this one is in memory: leave it out")
            }
            _ => Ok(()),
        }
    }

    /// Gives a log that is empty an area for fast commits, if the volume has the feature and the options do not say
    /// otherwise. False if it has none: without the feature, in memory, where the bytes of files go through the journal, or if
    /// the log is too small.
    fn add_fast_area(&self, superblock: &mut LogSuperblock) -> Result<bool, OpenExtError> {
        let wanted = self.parts.settings.fast_commits;
        let can_be = self.parts.metadata.shape.features.has(FAST_COMMIT) && self.below.memory.is_none();
        if !can_be || wanted == Some(false) || self.parts.settings.data == DataMode::Journal {
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

    /// Begins the journal of a volume whose log is home.
    pub fn begin_journal(&mut self, task: &Task<'_>, log: FoundLog, next: TransactionId) -> Result<(), OpenExtError> {
        let mut superblock = log.superblock;
        if superblock.is_old() {
            return Err(OpenExtError::Unsupported(
                "its journal is of version 1, which is not written here".to_string(),
            ));
        }
        adapt_log(&self.parts.metadata.shape, &mut superblock);
        let has_fast_area = self.add_fast_area(&mut superblock)?;
        superblock.set_start(0, next.0);
        let [a, b, c, d, ..] = self.new_memory_name();
        self.below.count_mount(&mut superblock, u32::from_le_bytes([a, b, c, d]));
        let most =
            u32::try_from(self.parts.shares.changed_blocks(self.parts.metadata.shape.block_bytes)).unwrap_or(u32::MAX);
        let records = (superblock.records_end() - superblock.first()).min(most);
        let place = log.place;
        match self.below.media {
            Some(_) => self.parts.metadata.media.set_journal(&[])?,
            None => {
                self.parts.metadata.own_blocks = std::mem::take(&mut self.parts.metadata.own_blocks).with(&place.runs)
            }
        }
        if self.below.memory.is_none() {
            place.media.set_journal(&place.runs)?;
        }
        let mut bytes = superblock.bytes().to_vec();
        bytes.resize(self.parts.metadata.shape.block_bytes, 0);
        clear_fast(task, &place, &superblock)?;
        let label = Label::first(Cause::JournalCommit, Content::Journal);
        place.media.write_metadata(task, place.superblock, &bytes, label)?;
        place.media.flush(task)?;
        let journal: Box<dyn Journal> = match self.begin_region(next)? {
            Some(journal) => Box::new(journal),
            None => {
                let (media, blocks) = (Arc::clone(&self.parts.metadata.media), Arc::clone(&self.parts.metadata.blocks));
                let most_kept = self.parts.settings.kept_bytes.map(|bytes| self.blocks_of(bytes));
                let log: Box<dyn Log> = match self.begin_memory(next, most_kept.unwrap_or(records))? {
                    Some(monitor) => {
                        let inline = Jbd2::new(&media, place, superblock, records);
                        let superblock = self.parts.metadata.shape.superblock_block(0);
                        Box::new(VmAwareLog::new(&media, monitor, inline, superblock, most_kept))
                    }
                    None => Box::new(Jbd2::new(&media, place, superblock, records).in_order(self.parts.settings.order)),
                };
                let ExtSettings { checkpointing, has_commit_thread, .. } = self.parts.settings;
                let below = (media, blocks);
                let journal = LoggedJournal::new(log, below, next, self.parts.origin, checkpointing, has_commit_thread);
                Box::new(if has_fast_area { journal.with_fast_commits() } else { journal })
            }
        };
        if journal.most_blocks() < LEAST_JOURNAL {
            return Err(OpenExtError::Unsupported(format!(
                "its journal has room for {} blocks in a transaction, and {LEAST_JOURNAL} are needed",
                journal.most_blocks()
            )));
        }
        self.parts.changes.journal = Some(journal);
        self.parts.metadata.media.write_behind(self.parts.shares.dirty / 4);
        Ok(mark_superblock(task, &self.parts, &self.below, true)?)
    }

    /// The number of blocks of so many bytes.
    fn blocks_of(&self, bytes: u64) -> u32 {
        u32::try_from(bytes / self.parts.metadata.shape.block_bytes as u64).unwrap_or(u32::MAX)
    }
}

/// Gives a log that is empty the features that this volume's has.
pub fn adapt_log(shape: &Shape, superblock: &mut LogSuperblock) {
    superblock.add_feature(feature::REVOKES);
    if shape.features.has(WIDE) {
        superblock.add_feature(feature::WIDE);
    }
    if shape.has_checksums() {
        superblock.use_sums();
    }
}

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
