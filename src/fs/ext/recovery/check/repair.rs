//! Opens a damaged volume, walks over it until a walk finds nothing, and writes the mended blocks.
//!
//! 1. The superblock, or a copy of it.
//! 2. The descriptors, and the log (`log`): a repair writes its blocks home, as a mount does, and a check keeps them in
//!    memory. Damaged parts of it are left out.
//! 3. Walks over all structures; of a repair, orphans are freed between them.
//! 4. Of a repair: the log is emptied, mended blocks are written, and the superblock last. Until then it says that there are
//!    errors: a repair that was cut off is repeated. If the log has room for the mended blocks, they are a transaction
//!    of it: all are there then, or none.

use super::{Check, Walk, seconds};
use crate::device::{Medium, Monitor};
use crate::fs::ext::ExtSettings;
use crate::fs::ext::blocks::Bytes;
use crate::fs::ext::error::{OpenExtError, damaged};
use crate::fs::ext::format::bytes::uuid;
use crate::fs::ext::format::features::{
    BIGALLOC, JOURNAL_DEV, META_BG, NEEDS_RECOVERY, ORPHAN_FILE, ORPHAN_PRESENT, WIDE,
};
use crate::fs::ext::format::inode::Inode;
use crate::fs::ext::format::orphans;
use crate::fs::ext::format::shape::{JOURNAL, Shape};
use crate::fs::ext::format::superblock::{LENGTH, MAGIC, PLACE, Superblock, state};
use crate::fs::ext::journal::{FoundRegion, RegionSuperblock};
use crate::fs::ext::journal_below::JournalBelow;
use crate::fs::ext::marking::tell_copies;
use crate::fs::ext::media::Below;
use crate::fs::ext::recovery::copies::{check_fixed_fields, copy_of_superblock, named_as_in, summed_anew};
use crate::fs::ext::recovery::memory::wanted_memory;
use crate::fs::ext::recovery::open::read_superblock;
use crate::fs::ext::recovery::opening::Opening;
use crate::fs::ext::recovery::region::replayed_region;
use crate::fs::ext::recovery::vm_aware::{replayed_memory, unless_gone};
use crate::fs::ext::settings::JournalKind;
use crate::fs::station::{Mounting, RepairOutcome};
use crate::fs::volume::{Damage, VolumeError};
use crate::label::{Cause, Content, Label};
use crate::task::Task;
use crate::time::Time;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Walks until nothing is found: a mend may lead to faults of an earlier pass.
const MOST_WALKS: usize = 8;
const LABEL: Label = Label::first(Cause::Checkpoint, Content::Metadata);
const FIRST_META_GROUP: usize = 260;

/// The superblock with which a check goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Primary,
    /// A copy in another group.
    Copy,
    /// The damaged one, whose checksum was wrong.
    Mended,
}

/// Checks the volume on these devices, and changes nothing.
pub fn check(below: Vec<Medium>, settings: &ExtSettings) -> Result<Vec<Damage>, OpenExtError> {
    let task = Task::at(Time::ZERO);
    let mut check = Check::open(&task, below, settings, &Mounting::at(0, 0), false)?;
    check.walk()?;
    check.known()?;
    Ok(check.walk.findings)
}

/// Checks the volume on these devices, and repairs it.
pub fn repair(below: Vec<Medium>, settings: &ExtSettings, mounting: &Mounting) -> Result<RepairOutcome, OpenExtError> {
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
    check.make_journal()?;
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

/// Checks a superblock that takes the place of a damaged one, and has it name the memory below if that has something
/// of the volume: nothing in it is to be lost because the superblock was.
fn find_journal_again(
    task: &Task<'_>,
    opening: &mut Opening,
    superblock: &mut Superblock,
    source: Source,
) -> Result<Option<Damage>, OpenExtError> {
    if source == Source::Mended {
        check_fixed_fields(task, &opening.parts.metadata).map_err(|why| {
            OpenExtError::Superblock(format!(
                "its checksum is wrong, there is no copy of it, and it does not fit: {why}"
            ))
        })?;
    }
    let Some(memory) = opening.below.naming_of_memory() else {
        take_number_of_begun_region(&mut opening.below, superblock, source);
        return Ok(None);
    };
    // Since this program counts, superblock and copies name the journal that has blocks.
    if opening.below.is_named(&opening.parts.metadata.shape) || opening.below.mount_number.is_counted() {
        return Ok(None);
    }
    superblock.name_memory(Some(memory.0));
    superblock.set_mount_number(memory.1);
    superblock.sum();
    opening.parts.metadata.shape.journal_inode = 0;
    (opening.below.journal, opening.below.mount_number) = memory;
    opening.parts.head.get_mut().superblock = superblock.clone();
    let what = format!("memory {} has blocks of the volume, which does not name it", uuid(memory.0));
    Ok(Some(Damage { what, repair: "they are taken as those of its journal".to_string() }))
}

/// A cut in the first write of a mount may leave the name of a region without its number: nothing is in it.
fn take_number_of_begun_region(below: &mut JournalBelow, superblock: &mut Superblock, source: Source) {
    let region = below.nvm().and_then(|nvm| FoundRegion::find(&**nvm).ok().flatten());
    let Some(RegionSuperblock { volume, region, mount, .. }) = region.map(|found| found.superblock) else { return };
    let is_begun = mount.count() == below.mount_number.count() + 1;
    if source == Source::Mended && volume == below.volume && region == below.journal && is_begun {
        superblock.set_mount_number(mount);
        superblock.sum();
        below.mount_number = mount;
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
        let mut source_of = Source::Primary;
        let mut superblock = match Shape::of(&stored, media.size_bytes()) {
            Ok(_) => stored,
            Err(why) => {
                let what = format!("the superblock: {why}");
                let (superblock, repair, source) = match copy_of_superblock(&media, task)? {
                    Some((copy, group)) => {
                        let repair = format!("the copy in group {group} takes its place");
                        (named_as_in(copy, &stored), repair, Source::Copy)
                    }
                    None => {
                        let mended = summed_anew(&stored, media.size_bytes());
                        let none = || OpenExtError::Superblock(format!("{why}; no copy of it can be used"));
                        let repair = "there is no copy, and its numbers fit all descriptors: its checksum is made anew";
                        (mended.ok_or_else(none)?, repair.to_string(), Source::Mended)
                    }
                };
                source_of = source;
                findings.push(Damage { what, repair });
                superblock
            }
        };
        let memory = wanted_memory(settings, memory, journal.is_some(), false)?;
        let mut opening = match Opening::on(media, (journal, memory), superblock.clone(), settings, mounting) {
            Err(OpenExtError::Unreadable(features)) => {
                let why = format!("it has features that are not known here: {features}");
                return Err(OpenExtError::Uncheckable(why));
            }
            opened => opened?,
        };
        opening.parts.changes.read_only = Some("it is checked".to_string());
        if source_of != Source::Primary {
            findings.extend(find_journal_again(task, &mut opening, &mut superblock, source_of)?);
        }
        if superblock.state() & state::ERRORS != 0 {
            let what = "the superblock says that errors were found".to_string();
            findings.push(Damage { what, repair: "all structures are checked, and the mark is removed".to_string() });
        }
        let now = mounting.origin;
        let (groups, changed, orphans) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        let walk = Walk { findings, ..Walk::default() };
        let (stored, begun, doubtful, log, wants_journal) = (primary, superblock.clone(), BTreeSet::new(), None, false);
        let Opening { parts, below, .. } = opening;
        let mut check = Check {
            parts,
            below,
            task,
            now,
            superblock,
            stored,
            begun,
            groups,
            changed,
            orphans,
            doubtful,
            log,
            wants_journal,
            walk,
            given_up: None,
        };
        check.refuse_uncheckable()?;
        let writes = writes && check.unwritable().is_none();
        check.replay(writes)?;
        check.load_groups()?;
        check.mend_journal()?;
        check.begun = check.superblock.clone();
        check.find_orphans()?;
        Ok(check)
    }

    /// If the volume's journal is in memory: takes the blocks that it has. The volume is one with a log in its own inode then.
    pub(super) fn replay_region(&mut self, writes: bool) -> Result<(), OpenExtError> {
        if !self.below.is_named(&self.parts.metadata.shape) {
            return Ok(());
        }
        if self.parts.settings.journal == Some(JournalKind::Inline) && self.below.media.is_none() {
            // While this has the name, no monitor takes back the memory from its spill.
            self.given_up = Some(self.below.hold_memory_name()?);
            let what = format!("the volume's journal is {}, which is given up", uuid(self.below.journal));
            self.found(what, "the log in the volume takes its place: what the other had that is not home is lost");
            self.name_own_log();
            return Ok(());
        }
        if let Some(monitor) = self.below.monitor().map(Arc::clone) {
            return self.recover_memory(&*monitor, writes);
        }
        let Some(nvm) = self.below.nvm().map(Arc::clone) else { return Ok(()) };
        let region = self.below.named_region(&self.parts.metadata, &*nvm)?;
        let replayed = replayed_region(&self.parts.metadata.shape, &*nvm, &region);
        for error in replayed.damaged {
            self.found(error.to_string(), "it is left out, and the block stays as it was");
        }
        self.take_blocks(replayed.blocks, writes)?;
        self.name_own_log();
        if writes {
            self.parts.metadata.media.flush(self.task)?;
            let region = region.let_go(&*nvm);
            self.write_superblock()?;
            region.emptied().write(&*nvm);
        }
        Ok(())
    }

    /// Takes the blocks that a monitor keeps.
    fn recover_memory(&mut self, monitor: &dyn Monitor, writes: bool) -> Result<(), OpenExtError> {
        let kept = self.below.kept_memory(monitor)?;
        let replayed = replayed_memory(&self.parts.metadata, &kept);
        for error in replayed.damaged {
            self.found(error.to_string(), "it is left out, and the block stays as it was");
        }
        self.take_blocks(replayed.blocks, writes)?;
        self.name_own_log();
        if writes {
            self.parts.metadata.media.flush(self.task)?;
            unless_gone(monitor, self.task.ask(|at| monitor.let_go(at, replayed.next.0)).map(drop))?;
            self.write_superblock()?;
            unless_gone(monitor, monitor.end())?;
        }
        Ok(())
    }

    /// Writes the superblock to its place, and makes it durable.
    pub(super) fn write_superblock(&mut self) -> Result<(), OpenExtError> {
        tell_copies(self.task, &self.parts.metadata, self.below.volume, &self.superblock)?;
        let (place, block) = self.superblock_block()?;
        self.parts.metadata.media.write(self.task, place, &block, LABEL)?;
        self.parts.metadata.blocks.set(place, &block);
        Ok(self.parts.metadata.media.flush(self.task)?)
    }

    /// The block of the superblock, with that in it.
    pub(super) fn superblock_block(&self) -> Result<(u64, Vec<u8>), VolumeError> {
        let (place, at) =
            (self.parts.metadata.shape.superblock_block(0), PLACE as usize % self.parts.metadata.shape.block_bytes);
        let mut block = self.read(place)?.to_vec();
        block[at..at + LENGTH].copy_from_slice(self.superblock.bytes());
        Ok((place, block))
    }

    /// Names the log in the volume's own inode as its journal.
    fn name_own_log(&mut self) {
        self.superblock.name_memory(None);
        self.superblock.sum();
        self.parts.metadata.shape.journal_inode = JOURNAL;
    }

    /// Takes the newest bytes of blocks from a journal.
    pub(super) fn take_blocks(&mut self, blocks: BTreeMap<u64, Bytes>, writes: bool) -> Result<(), OpenExtError> {
        let superblock_block = self.parts.metadata.shape.superblock_block(0);
        for (block, bytes) in blocks {
            if block == superblock_block {
                let at = PLACE as usize % self.parts.metadata.shape.block_bytes;
                self.take_superblock(Superblock::new(&bytes[at..at + LENGTH]));
            }
            if writes {
                self.parts.metadata.media.write(self.task, block, &bytes, LABEL)?;
            }
            self.parts.metadata.blocks.set(block, &bytes);
        }
        Ok(())
    }

    /// Takes a superblock from the log, if it is one of this volume.
    fn take_superblock(&mut self, superblock: Superblock) {
        match Shape::of(&superblock, self.parts.metadata.media.size_bytes()) {
            Ok(shape)
                if (shape.blocks, shape.block_bytes)
                    == (self.parts.metadata.shape.blocks, self.parts.metadata.shape.block_bytes) =>
            {
                self.parts.metadata.shape = shape;
                self.superblock = superblock;
            }
            Ok(_) => self.found("the journal has a superblock of another volume", "it is left out"),
            Err(why) => self.found(format!("the journal has a superblock, and {why}"), "it is left out"),
        }
    }

    /// Reads the list of orphans, and the file of orphans.
    fn find_orphans(&mut self) -> Result<(), VolumeError> {
        let mut listed = Vec::new();
        let mut next = self.superblock.first_orphan();
        while next != 0 {
            let can_be = next <= self.parts.metadata.shape.inodes
                && !self.parts.metadata.shape.is_reserved(next)
                && !listed.contains(&next);
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
        if self.parts.metadata.shape.features.has(ORPHAN_FILE) && self.parts.metadata.shape.orphan_file != 0 {
            self.find_filed_orphans()?;
        }
        Ok(())
    }

    fn find_filed_orphans(&mut self) -> Result<(), VolumeError> {
        let own = self.parts.metadata.shape.orphan_file;
        if own > self.parts.metadata.shape.inodes {
            return Err(damaged("the file of orphans", format!("it has inode {own}")));
        }
        for place in self.orphan_blocks()? {
            let (block, seed) = (self.read(place)?, self.orphan_seed()?);
            match orphans::read(&block, place, seed) {
                Ok(named) => {
                    let can_be = |orphan: &u32| {
                        *orphan <= self.parts.metadata.shape.inodes && !self.parts.metadata.shape.is_reserved(*orphan)
                    };
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
        let own = self.parts.metadata.shape.orphan_file;
        let inode = self.inode(own)?;
        let known = self.walk.findings.len();
        let map = self.read_map(own, &inode)?;
        self.walk.findings.truncate(known);
        Ok((0..map.end()).filter_map(|at| map.place(at)).collect())
    }

    fn orphan_seed(&self) -> Result<Option<u32>, VolumeError> {
        let own = self.parts.metadata.shape.orphan_file;
        Ok(self.parts.metadata.shape.checksums.inode_seed(own, self.inode(own)?.generation()))
    }

    fn empty_orphan_block(&mut self, place: u64) -> Result<(), VolumeError> {
        let mut empty = vec![0; self.parts.metadata.shape.block_bytes];
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
        if self.parts.metadata.shape.features.has(ORPHAN_FILE) && self.parts.metadata.shape.orphan_file != 0 {
            for place in self.orphan_blocks()? {
                self.empty_orphan_block(place)?;
            }
            let features = self.superblock.features().without(ORPHAN_PRESENT);
            self.superblock.set_features(features);
        }
        Ok(())
    }

    /// Drops blocks of a file behind its end. The rest of the last one reads as zeros.
    fn cut_to_size(&mut self, number: u32, inode: &Inode) -> Result<(), VolumeError> {
        let block_bytes = self.parts.metadata.shape.block_bytes as u64;
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

    /// Refuses a volume that a walk would call damaged, although it is sound.
    fn refuse_uncheckable(&self) -> Result<(), OpenExtError> {
        let shape = &self.parts.metadata.shape;
        let why = if shape.features.has(BIGALLOC) {
            "it has clusters (bigalloc)".to_string()
        } else if shape.blocks > u64::from(u32::MAX) {
            format!("it has {} blocks, and 2^32 - 1 are the most here", shape.blocks)
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
        let unwritable = self.parts.metadata.shape.features.unwritable();
        (!unwritable.is_empty()).then(|| unwritable.join(", "))
    }

    /// Writes the mended blocks.
    fn store(&mut self) -> Result<(), OpenExtError> {
        self.leave_log()?;
        let (media, task) = (Arc::clone(&self.parts.metadata.media), self.task);
        let was_clean = self.superblock.state() == state::CLEAN && !self.superblock.features().has(NEEDS_RECOVERY);
        if self.changed.is_empty() && was_clean && self.superblock == self.stored {
            return Ok(());
        }
        let mut mends = self.log_of_mends()?;
        match &mut mends {
            Some(mends) => self.commit_mends(mends)?,
            None => {
                self.superblock.set16(58, state::ERRORS);
                self.put_superblock()?;
            }
        }
        for block in &self.changed {
            media.write(task, *block, &self.read(*block)?, LABEL)?;
        }
        media.flush(task)?;
        if let Some(mends) = &mends {
            self.leave_mends(mends)?;
        }
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
        tell_copies(self.task, &self.parts.metadata, self.below.volume, &self.superblock)?;
        let (block, bytes) = self.superblock_block()?;
        self.write(block, bytes.clone());
        self.parts.metadata.media.write(self.task, block, &bytes, LABEL)?;
        Ok(self.parts.metadata.media.flush(self.task)?)
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
