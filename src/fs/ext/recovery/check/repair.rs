//! Opens a damaged volume, walks over it until a walk finds nothing, and writes what was mended.
//!
//! 1. The superblock, or a copy of it.
//! 2. The descriptors, and the log in the journal's file.
//! 3. The log: a repair writes its blocks home, as a mount does, and a check keeps them in memory. A damaged copy in it is
//!    left out.
//! 4. Walks over all structures; of a repair, orphans are freed between them.
//! 5. Of a repair: mended blocks are written, and the superblock last. Until then it says that there are errors: a repair
//!    that was cut off is repeated.

use super::{Check, Walk, seconds};
use crate::device::{Medium, Monitor};
use crate::fs::ext::blocks::Bytes;
use crate::fs::ext::error::{OpenExtError, damaged};
use crate::fs::ext::format::features::{
    BIGALLOC, FAST_COMMIT, HAS_JOURNAL, JOURNAL_DEV, META_BG, NEEDS_RECOVERY, ORPHAN_FILE, ORPHAN_PRESENT, WIDE,
};
use crate::fs::ext::format::inode::{Inode, flag};
use crate::fs::ext::format::log::LogSuperblock;
use crate::fs::ext::format::orphans;
use crate::fs::ext::format::shape::{JOURNAL, Shape};
use crate::fs::ext::format::superblock::{LENGTH, MAGIC, PLACE, Superblock, state};
use crate::fs::ext::inspect::uuid;
use crate::fs::ext::journal::LogPlace;
use crate::fs::ext::media::{Below, Media};
use crate::fs::ext::recovery::memory::wanted_memory;
use crate::fs::ext::recovery::open::read_superblock;
use crate::fs::ext::recovery::replay::FoundLog;
use crate::fs::ext::recovery::retention::unless_gone;
use crate::fs::ext::settings::JournalKind;
use crate::fs::ext::{Ext, ExtSettings};
use crate::fs::station::{Mounting, RepairOutcome};
use crate::fs::volume::{Damage, VolumeError};
use crate::label::{Cause, Content, Label};
use crate::task::Task;
use crate::time::Time;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// Walks until nothing is found: a mend may lead to faults of an earlier pass.
const MOST_WALKS: usize = 8;
const LABEL: Label = Label::first(Cause::Checkpoint, Content::Metadata);
/// Groups with copies of the superblock that are tried.
const COPIES: [u64; 8] = [1, 3, 5, 7, 9, 25, 27, 49];
/// The copy of the journal's inode in the superblock.
const JOURNAL_COPY: usize = 268;
const FIRST_META_GROUP: usize = 260;

impl Ext {
    /// Checks the volume on these devices, and changes nothing.
    pub fn check(below: Vec<Medium>, settings: &ExtSettings) -> Result<Vec<Damage>, OpenExtError> {
        let task = Task::at(Time::ZERO);
        let mut check = Check::open(&task, below, settings, &Mounting::at(0, 0), false)?;
        check.walk()?;
        check.known()?;
        Ok(check.walk.findings)
    }

    /// Checks the volume on these devices, and repairs it.
    pub fn repair(
        below: Vec<Medium>,
        settings: &ExtSettings,
        mounting: &Mounting,
    ) -> Result<RepairOutcome, OpenExtError> {
        let task = Task::at(Time::ZERO);
        let mut check = Check::open(&task, below, settings, mounting, true)?;
        check.walk()?;
        check.known()?;
        if let Some(why) = check.unwritable() {
            return match check.walk.findings.is_empty() {
                true => Ok(RepairOutcome { repaired: Vec::new(), left: Vec::new() }),
                false => Err(OpenExtError::Unrepairable(why)),
            };
        }
        let repaired = std::mem::take(&mut check.walk.findings);
        let mut left = Vec::new();
        check.free_orphans()?;
        for _ in 0..MOST_WALKS {
            check.walk.findings.clear();
            check.walk()?;
            left = std::mem::take(&mut check.walk.findings);
            if left.is_empty() {
                break;
            }
        }
        check.store()?;
        Ok(RepairOutcome { repaired, left })
    }
}

impl<'c> Check<'c> {
    /// Opens a volume as far as that is possible.
    fn open(
        task: &'c Task<'c>,
        below: Vec<Medium>,
        settings: &ExtSettings,
        mounting: &Mounting,
        writes: bool,
    ) -> Result<Check<'c>, OpenExtError> {
        let Below { volume, journal, memory } = Below::of(below)?;
        let (media, stored) = read_superblock(volume, task)?;
        if stored.u16(56) == MAGIC && stored.features().has(JOURNAL_DEV) {
            let what = format!("the first device is journal {}: write the volume's before it", uuid(stored.uuid()));
            return Err(OpenExtError::JournalDevice(what));
        }
        let (primary, mut findings) = (stored.clone(), Vec::new());
        let stored = without_empty_meta_groups(stored, &mut findings);
        let superblock = match Shape::of(&stored, media.size_bytes()) {
            Ok(_) => stored,
            Err(why) => {
                let (copy, group) = copy_of_superblock(&media, task)?
                    .ok_or_else(|| OpenExtError::Superblock(format!("{why}; no copy of it can be used")))?;
                let repair = format!("the copy in group {group} takes its place");
                findings.push(Damage { what: format!("the superblock: {why}"), repair });
                copy
            }
        };
        let memory = wanted_memory(settings, memory, journal.is_some(), false)?;
        let mut ext = match Ext::on(media, journal, superblock.clone(), settings, mounting) {
            Err(OpenExtError::Unreadable(features)) => {
                let why = format!("it has features that are not known here: {features}");
                return Err(OpenExtError::Uncheckable(why));
            }
            opened => opened?,
        };
        ext.take_memory(memory);
        ext.read_only = Some("it is checked".to_string());
        if superblock.state() & state::ERRORS != 0 {
            let what = "the superblock says that errors were found".to_string();
            findings.push(Damage { what, repair: "all structures are checked, and the mark is removed".to_string() });
        }
        let now = mounting.origin;
        let (groups, changed, orphans) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        let walk = Walk { findings, ..Walk::default() };
        let stored = primary;
        let mut check = Check { ext, task, now, superblock, stored, groups, changed, orphans, walk, given_up: None };
        check.refuse_uncheckable()?;
        let writes = writes && check.unwritable().is_none();
        check.replay(writes)?;
        check.load_groups()?;
        check.find_orphans()?;
        Ok(check)
    }

    /// Takes the blocks of the log into memory. What the descriptors say is right only then: until then they serve to
    /// find the log.
    fn replay(&mut self, writes: bool) -> Result<(), OpenExtError> {
        if !self.ext.shape.features.has(HAS_JOURNAL) {
            return self.ext.refuse_journal_device("it has no journal");
        }
        self.replay_region(writes)?;
        let known = self.walk.findings.len();
        self.load_groups()?;
        let found = match self.ext.shape.journal_inode {
            0 => Some((self.ext.find_log_on_device(self.task)?, false)),
            _ => {
                self.ext.refuse_journal_device("its journal is in a file of its own")?;
                self.log_in_file()?
            }
        };
        // The mended descriptors may be older than those in the log.
        let log_findings = self.walk.findings.split_off(known);
        for block in std::mem::take(&mut self.changed) {
            self.ext.blocks.forget(block);
        }
        let is_log = |finding: &&Damage| finding.what.starts_with("the journal");
        let log_findings: Vec<Damage> = log_findings.iter().filter(is_log).cloned().collect();
        self.walk.findings.extend(log_findings);
        let Some((log, is_made_anew)) = found else { return Ok(()) };
        let replayed = self.ext.replayed(self.task, &log)?;
        for error in replayed.damaged {
            self.found(error.to_string(), "the copy is left out, and the block stays as it was");
        }
        let is_empty = log.superblock.start() == 0 && replayed.blocks.is_empty() && !is_made_anew;
        self.take_blocks(replayed.blocks, writes)?;
        if writes && !is_empty {
            self.ext.media.flush(self.task)?;
            let mut superblock = log.superblock;
            superblock.set_start(0, replayed.next.0);
            let mut bytes = superblock.bytes().to_vec();
            bytes.resize(self.ext.shape.block_bytes, 0);
            let label = Label::first(Cause::JournalCommit, Content::Journal);
            log.place.media.write_metadata(self.task, log.place.superblock, &bytes, label)?;
            log.place.media.flush(self.task)?;
        }
        Ok(())
    }

    /// If the volume's journal is in memory: takes the blocks that it has. The volume is one with a log in its own inode then.
    fn replay_region(&mut self, writes: bool) -> Result<(), OpenExtError> {
        if !self.ext.names_a_journal() {
            return Ok(());
        }
        if self.ext.settings.journal == Some(JournalKind::Inline) && self.ext.journal_media.is_none() {
            // While this has the name, no monitor takes back the memory from its spill.
            self.given_up = Some(self.ext.hold_memory_name()?);
            let what = format!("the volume's journal is {}, which is given up", uuid(self.ext.journal_uuid));
            self.found(what, "the log in the volume takes its place: what the other had that is not home is lost");
            self.name_own_log();
            return Ok(());
        }
        if let Some(monitor) = self.ext.monitor().map(Arc::clone) {
            return self.recover_memory(&*monitor, writes);
        }
        let Some(nvm) = self.ext.nvm().map(Arc::clone) else { return Ok(()) };
        let region = self.ext.named_region(&*nvm)?;
        let replayed = self.ext.replayed_region(&*nvm, &region);
        for error in replayed.damaged {
            self.found(error.to_string(), "it is left out, and the block stays as it was");
        }
        self.take_blocks(replayed.blocks, writes)?;
        self.name_own_log();
        if writes {
            self.ext.media.flush(self.task)?;
            let region = region.let_go(&*nvm);
            self.write_superblock()?;
            region.emptied().write(&*nvm);
        }
        Ok(())
    }

    /// Takes the blocks that a monitor keeps.
    fn recover_memory(&mut self, monitor: &dyn Monitor, writes: bool) -> Result<(), OpenExtError> {
        let kept = self.ext.kept_memory(monitor)?;
        let replayed = self.ext.replayed_memory(&kept);
        for error in replayed.damaged {
            self.found(error.to_string(), "it is left out, and the block stays as it was");
        }
        self.take_blocks(replayed.blocks, writes)?;
        self.name_own_log();
        if writes {
            self.ext.media.flush(self.task)?;
            unless_gone(monitor, self.task.ask(|at| monitor.let_go(at, replayed.next.0)).map(drop))?;
            self.write_superblock()?;
            unless_gone(monitor, monitor.end())?;
        }
        Ok(())
    }

    /// Writes the superblock to its place, and makes it durable.
    fn write_superblock(&mut self) -> Result<(), OpenExtError> {
        let (place, at) = (self.ext.shape.superblock_block(0), PLACE as usize % self.ext.shape.block_bytes);
        let mut block = self.read(place)?.to_vec();
        block[at..at + LENGTH].copy_from_slice(self.superblock.bytes());
        self.ext.media.write(self.task, place, &block, LABEL)?;
        self.ext.blocks.set(place, &block);
        Ok(self.ext.media.flush(self.task)?)
    }

    /// Names the log in the volume's own inode as its journal.
    fn name_own_log(&mut self) {
        self.superblock.name_memory(None);
        self.superblock.sum();
        self.ext.shape.journal_inode = JOURNAL;
    }

    /// Takes the newest bytes of blocks from a journal.
    fn take_blocks(&mut self, blocks: BTreeMap<u64, Bytes>, writes: bool) -> Result<(), OpenExtError> {
        let superblock_block = self.ext.shape.superblock_block(0);
        for (block, bytes) in blocks {
            if block == superblock_block {
                let at = PLACE as usize % self.ext.shape.block_bytes;
                self.take_superblock(Superblock::new(&bytes[at..at + LENGTH]));
            }
            if writes {
                self.ext.media.write(self.task, block, &bytes, LABEL)?;
            }
            self.ext.blocks.set(block, &bytes);
        }
        Ok(())
    }

    /// Takes a superblock from the log, if it is one of this volume.
    fn take_superblock(&mut self, superblock: Superblock) {
        match Shape::of(&superblock, self.ext.media.size_bytes()) {
            Ok(shape) if (shape.blocks, shape.block_bytes) == (self.ext.shape.blocks, self.ext.shape.block_bytes) => {
                self.ext.shape = shape;
                self.superblock = superblock;
            }
            Ok(_) => self.found("the journal has a superblock of another volume", "it is left out"),
            Err(why) => self.found(format!("the journal has a superblock, and {why}"), "it is left out"),
        }
    }

    /// Finds the log in the journal's file: by its inode, or by the copy of its map in the superblock. A log whose own
    /// superblock is damaged is made anew; one that lies nowhere is given up. True:
    /// it is made anew.
    fn log_in_file(&mut self) -> Result<Option<(FoundLog, bool)>, OpenExtError> {
        let own = self.ext.shape.journal_inode;
        let stored = if own == JOURNAL { Some(self.inode(own)?) } else { None };
        let runs = match &stored {
            Some(inode) if inode.kind().is_some() && inode.links() > 0 => self.log_runs(inode)?,
            _ => None,
        };
        let runs = match runs {
            Some(runs) => Some(runs),
            None => self.restore_journal_inode()?,
        };
        let Some(runs) = runs else {
            let what = "the journal has no file, and the superblock no copy of its map";
            self.found(what, "the volume goes without a journal: 'tune2fs -j' makes one");
            let features = self.superblock.features().without(HAS_JOURNAL).without(NEEDS_RECOVERY);
            self.superblock.set_features(features);
            self.superblock.set32(224, 0);
            self.superblock.sum();
            self.ext.shape.features = features;
            self.ext.shape.journal_inode = 0;
            return Ok(None);
        };
        let blocks: u64 = runs.iter().map(|run| run.end - run.start).sum();
        let place = LogPlace::in_file(Arc::clone(&self.ext.media), runs);
        let place = place.ok_or_else(|| damaged("the journal", "it has no blocks"))?;
        match self.ext.read_log_superblock(self.task, place.clone(), blocks) {
            Ok(log) => Ok(Some((log, false))),
            Err(error @ VolumeError::Damaged { .. }) => {
                self.found(error.to_string(), "the log becomes empty: what it had that is not home is lost");
                let block_bytes = self.ext.shape.block_bytes as u32;
                let superblock = LogSuperblock::new(block_bytes, blocks as u32, 0, self.superblock.uuid());
                Ok(Some((FoundLog { superblock, place }, true)))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The blocks of a journal's inode, if it is one: all of them, from the first on.
    fn log_runs(&mut self, inode: &Inode) -> Result<Option<Vec<Range<u64>>>, VolumeError> {
        let known = self.walk.findings.len();
        let map = self.read_map(JOURNAL, inode)?;
        self.walk.findings.truncate(known);
        let blocks = inode.size() / self.ext.shape.block_bytes as u64;
        let is_whole = !map.is_damaged && map.is_gapless() && map.end() == blocks && blocks > 0;
        Ok(is_whole.then(|| map.extents.iter().map(|e| e.place..e.place + u64::from(e.count)).collect()))
    }

    /// Makes the journal's inode from the copy in the superblock. `None` if that is none.
    fn restore_journal_inode(&mut self) -> Result<Option<Vec<Range<u64>>>, VolumeError> {
        let bytes = self.superblock.bytes();
        if bytes[253] != 1 || self.ext.shape.journal_inode != JOURNAL {
            return Ok(None);
        }
        let copy = bytes[JOURNAL_COPY..JOURNAL_COPY + 60].to_vec();
        let (high, low) = (self.superblock.u32(JOURNAL_COPY + 60), self.superblock.u32(JOURNAL_COPY + 64));
        let shape = &self.ext.shape;
        let mut inode = Inode::empty(shape.inode_bytes, shape.extra_bytes);
        inode.set_mode(crate::fs::volume::FileKind::Regular, 0o600);
        inode.set_links(1);
        inode.map_mut().copy_from_slice(&copy);
        inode.set_size(u64::from(high) << 32 | u64::from(low));
        let is_extents = copy[..2] == crate::fs::ext::format::extents::MAGIC.to_le_bytes();
        inode.set_flags(if is_extents { flag::EXTENTS } else { 0 });
        let runs = self.log_runs(&inode)?;
        if runs.is_some() {
            let what = "the journal's inode is damaged";
            self.found(what, "it is made anew from the copy of its map in the superblock");
            let known = self.walk.findings.len();
            let blocks = self.read_map(JOURNAL, &inode)?.blocks();
            self.walk.findings.truncate(known);
            inode.set_blocks(blocks, self.ext.shape.block_bytes);
            self.put_inode(JOURNAL, &inode)?;
        }
        Ok(runs)
    }

    /// Reads the list of orphans, and the file of orphans.
    fn find_orphans(&mut self) -> Result<(), VolumeError> {
        let mut listed = Vec::new();
        let mut next = self.superblock.first_orphan();
        while next != 0 {
            let can_be = next <= self.ext.shape.inodes && !self.ext.shape.is_reserved(next) && !listed.contains(&next);
            let inode = if can_be { Some(self.inode(next)?) } else { None };
            let Some(inode) = inode.filter(|inode| inode.kind().is_some()) else {
                self.found(format!("the list of orphans names inode {next}"), "the list is cut off there");
                match listed.last().copied() {
                    Some(last) => {
                        let mut inode = self.inode(last)?;
                        inode.set_deleted(0);
                        self.put_inode(last, &inode)?;
                    }
                    None => self.superblock.set32(232, 0),
                }
                break;
            };
            listed.push(next);
            next = inode.deleted();
        }
        self.orphans.extend(listed);
        if self.ext.shape.features.has(ORPHAN_FILE) && self.ext.shape.orphan_file != 0 {
            self.find_filed_orphans()?;
        }
        Ok(())
    }

    fn find_filed_orphans(&mut self) -> Result<(), VolumeError> {
        let own = self.ext.shape.orphan_file;
        if own > self.ext.shape.inodes {
            return Err(damaged("the file of orphans", format!("it has inode {own}")));
        }
        for place in self.orphan_blocks()? {
            let (block, seed) = (self.read(place)?, self.orphan_seed()?);
            match orphans::read(&block, place, seed) {
                Ok(named) => {
                    let can_be =
                        |orphan: &u32| *orphan <= self.ext.shape.inodes && !self.ext.shape.is_reserved(*orphan);
                    let named: Vec<u32> = named.into_iter().filter(can_be).collect();
                    self.orphans.extend(named);
                }
                Err(why) => {
                    self.found(format!("block {place} of the file of orphans: {why}"), "the block is emptied");
                    self.empty_orphan_block(place)?;
                }
            }
        }
        Ok(())
    }

    fn orphan_blocks(&mut self) -> Result<Vec<u64>, VolumeError> {
        let own = self.ext.shape.orphan_file;
        let inode = self.inode(own)?;
        let known = self.walk.findings.len();
        let map = self.read_map(own, &inode)?;
        self.walk.findings.truncate(known);
        Ok((0..map.end()).filter_map(|at| map.place(at)).collect())
    }

    fn orphan_seed(&self) -> Result<Option<u32>, VolumeError> {
        let own = self.ext.shape.orphan_file;
        Ok(self.ext.shape.checksums.inode_seed(own, self.inode(own)?.generation()))
    }

    fn empty_orphan_block(&mut self, place: u64) -> Result<(), VolumeError> {
        let mut empty = vec![0; self.ext.shape.block_bytes];
        orphans::clear(&mut empty, place, self.orphan_seed()?);
        self.write(place, empty);
        Ok(())
    }

    /// Frees orphans without a name, and cuts the others to their size, as a mount does.
    fn free_orphans(&mut self) -> Result<(), VolumeError> {
        for number in std::mem::take(&mut self.orphans) {
            let mut inode = self.inode(number)?;
            if inode.links() == 0 {
                inode.set_deleted(seconds(self.now));
                self.put_inode(number, &inode)?;
                continue;
            }
            inode.set_deleted(0);
            self.put_inode(number, &inode)?;
            self.cut_to_size(number, &inode)?;
        }
        self.superblock.set32(232, 0);
        if self.ext.shape.features.has(ORPHAN_FILE) && self.ext.shape.orphan_file != 0 {
            for place in self.orphan_blocks()? {
                self.empty_orphan_block(place)?;
            }
            let features = self.superblock.features().without(ORPHAN_PRESENT);
            self.superblock.set_features(features);
        }
        Ok(())
    }

    /// Drops blocks of a file behind its end. What is left of the last one reads as zeros.
    fn cut_to_size(&mut self, number: u32, inode: &Inode) -> Result<(), VolumeError> {
        let block_bytes = self.ext.shape.block_bytes as u64;
        let (size, end) = (inode.size(), inode.size().div_ceil(block_bytes));
        if !inode.has_map() {
            return Ok(());
        }
        let mut map = self.read_map(number, inode)?;
        if !size.is_multiple_of(block_bytes)
            && let Some(place) = map.place(size / block_bytes)
        {
            let mut bytes = self.read(place)?.to_vec();
            bytes[(size % block_bytes) as usize..].fill(0);
            self.write(place, bytes);
        }
        if map.end() > end {
            map.extents = map.extents.iter().filter_map(|extent| extent.part(0, end)).collect();
            self.put_map(number, &map)?;
        }
        Ok(())
    }

    /// Refuses what a walk would call damaged, although it is sound.
    fn refuse_uncheckable(&self) -> Result<(), OpenExtError> {
        let shape = &self.ext.shape;
        let why = if shape.features.has(BIGALLOC) {
            "it has clusters (bigalloc)".to_string()
        } else if shape.blocks > u64::from(u32::MAX) {
            format!("it has {} blocks, and 2^32 - 1 are the most here", shape.blocks)
        } else if shape.features.has(FAST_COMMIT) && self.superblock.features().has(NEEDS_RECOVERY) {
            "its log has fast commits, which are not replayed here".to_string()
        } else {
            return Ok(());
        };
        Err(OpenExtError::Uncheckable(why))
    }

    /// Refuses a volume of which the walk has seen something that is not known here.
    fn known(&mut self) -> Result<(), OpenExtError> {
        self.walk.unknown.take().map_or(Ok(()), |why| Err(OpenExtError::Uncheckable(why)))
    }

    /// Why the volume cannot be repaired here, if so.
    fn unwritable(&self) -> Option<String> {
        let unwritable = self.ext.shape.features.unwritable();
        (!unwritable.is_empty()).then(|| unwritable.join(", "))
    }

    /// Writes what was mended.
    fn store(&mut self) -> Result<(), OpenExtError> {
        let (media, task) = (Arc::clone(&self.ext.media), self.task);
        let was_clean = self.superblock.state() == state::CLEAN && !self.superblock.features().has(NEEDS_RECOVERY);
        if self.changed.is_empty() && was_clean && self.superblock == self.stored {
            return Ok(());
        }
        self.superblock.set16(58, state::ERRORS);
        self.put_superblock()?;
        for block in &self.changed {
            media.write(task, *block, &self.read(*block)?, LABEL)?;
        }
        media.flush(task)?;
        let features = self.superblock.features().without(NEEDS_RECOVERY);
        self.superblock.set_features(features);
        self.superblock.set16(58, state::CLEAN);
        self.superblock.set16(52, 0);
        self.superblock.set32(64, seconds(self.now));
        self.put_superblock()
    }

    /// Writes the superblock to its place.
    fn put_superblock(&mut self) -> Result<(), OpenExtError> {
        self.superblock.sum();
        let (block, at) = (self.ext.shape.superblock_block(0), PLACE as usize % self.ext.shape.block_bytes);
        let mut bytes = self.read(block)?.to_vec();
        bytes[at..at + LENGTH].copy_from_slice(self.superblock.bytes());
        self.write(block, bytes.clone());
        self.ext.media.write(self.task, block, &bytes, LABEL)?;
        Ok(self.ext.media.flush(self.task)?)
    }
}

/// The superblock, without meta groups if their first one is behind the last group: then there are none.
fn without_empty_meta_groups(mut stored: Superblock, findings: &mut Vec<Damage>) -> Superblock {
    let first = stored.u32(FIRST_META_GROUP);
    let groups = u64::from(stored.u32(4).saturating_sub(stored.u32(20))).div_ceil(u64::from(stored.u32(32).max(1)));
    let each = if stored.features().has(WIDE) { u64::from(stored.u16(254).max(1)) } else { 32 };
    let last = (groups * each).div_ceil(1024 << stored.u32(24).min(6));
    if stored.u16(56) == MAGIC && stored.features().has(META_BG) && u64::from(first) > last {
        let what = format!("the superblock says that meta group {first} is the first, of a volume with {last} of them");
        findings.push(Damage { what, repair: "the volume has no meta groups".to_string() });
        stored.set_features(stored.features().without(META_BG));
        stored.set32(FIRST_META_GROUP, 0);
        stored.sum();
    }
    stored
}

/// A copy of the superblock that can be used, and its group.
fn copy_of_superblock(media: &Media, task: &Task<'_>) -> Result<Option<(Superblock, u64)>, VolumeError> {
    for block_bytes in [1024u64, 2048, 4096] {
        for group in COPIES {
            let at = group * 8 * block_bytes * block_bytes + if block_bytes == 1024 { 1024 } else { 0 };
            if at + LENGTH as u64 > media.size_bytes() {
                continue;
            }
            let mut bytes = [0; LENGTH];
            media.read(task, at / LENGTH as u64, &mut bytes)?;
            let mut copy = Superblock::new(&bytes);
            // Copies of the first revision do not have the number of their group.
            let is_numbered = u64::from(copy.u16(90)) == group || copy.u32(76) == 0 && copy.u16(90) == 0;
            let is_copy = copy.u32(24) == (block_bytes / 1024).ilog2() && is_numbered;
            if is_copy && Shape::of(&copy, media.size_bytes()).is_ok() {
                copy.set16(90, 0);
                copy.sum();
                return Ok(Some((copy, group)));
            }
        }
    }
    Ok(None)
}
