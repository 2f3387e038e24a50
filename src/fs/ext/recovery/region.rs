//! A volume whose journal is in non-volatile memory.
//!
//! | | volume's superblock | region's superblock |
//! |---|---|---|
//! | unmounted | journal inode 8, clean | not in use |
//! | a mount begins | | in use, new generation, the volume's UUID |
//! | mounted | journal inode 0, UUID of the region, needs recovery | |
//! | a replay ends | journal inode 8, empty log | before: in use, new generation; after: not in use |
//! | an unmount ends | journal inode 8, clean | |
//! | unmounted | | not in use |
//!
//! Both have the number of the mount, which goes up with each mount: a region in use is taken only with the number that the
//! volume has. The copies of the superblock in other groups name the region, too: they are written, and durable, before the
//! superblock is, so that one of the two is whole at any cut, and leads to the region as long as something is there alone.

use super::memory::refused;
use super::opening::Opening;
use super::replay::Replayed;
use crate::device::nvm::Nvm;
use crate::fs::ext::ExtSettings;
use crate::fs::ext::error::{GIVE_UP, OpenExtError, damaged};
use crate::fs::ext::format::bytes::uuid;
use crate::fs::ext::format::mount_number::{MountNumber, mismatch};
use crate::fs::ext::format::shape::Shape;
use crate::fs::ext::journal::{FoundRegion, NvmJournal, NvmOptions, RegionShape, RegionSuperblock, TransactionId};
use crate::fs::ext::journal_below::JournalBelow;
use crate::fs::ext::marking::mark_superblock;
use crate::fs::ext::metadata::Metadata;
use crate::fs::station::Access;
use crate::task::Task;
use std::sync::Arc;

/// The region in this memory that `volume` would use, and the shape that it would get. Fails with the steps to be done
/// before, and changes nothing.
pub fn usable_region(
    nvm: &dyn Nvm,
    options: &NvmOptions,
    (volume, mount): ([u8; 16], MountNumber),
    (block_bytes, width): (usize, usize),
) -> Result<(Option<FoundRegion>, RegionShape), OpenExtError> {
    let found = match FoundRegion::find(nvm) {
        Ok(found) => found,
        Err(_) if options.renews => None,
        Err(why) => return Err(refused(format!("the region: {why}; renew=on formats it"))),
    };
    if let Some(found) = &found {
        refuse_unreplayed(nvm, options, found, (volume, mount))?;
    } else if !options.renews && !FoundRegion::is_blank(nvm) {
        let why = "the memory holds something that is no region, or a damaged one: renew=on formats it";
        return Err(refused(why.to_string()));
    }
    let shape = options
        .shape(nvm.bytes(), block_bytes, width, found.as_ref().map(|found| found.superblock.shape))
        .map_err(refused)?;
    Ok((found, shape))
}

/// Refuses a region with transactions that are not home, which this volume has not taken in.
fn refuse_unreplayed(
    nvm: &dyn Nvm,
    options: &NvmOptions,
    found: &FoundRegion,
    (own, mount): ([u8; 16], MountNumber),
) -> Result<(), OpenExtError> {
    let is_home = || {
        let left = found.replayable(nvm);
        left.blocks.is_empty() && left.damaged.is_empty()
    };
    if options.renews || !found.superblock.is_in_use || is_home() {
        return Ok(());
    }
    let (region, volume) = (uuid(found.superblock.region), uuid(found.superblock.volume));
    let whose = match found.superblock.volume == own {
        true => {
            let older = mismatch(mount, found.superblock.mount, "it").map(|why| format!(" ({why})"));
            let older = older.unwrap_or_default();
            format!("this volume, which does not name it: it was restored, or its journal was removed{older}")
        }
        false => format!("volume {volume}: mount that one with it first"),
    };
    Err(refused(format!("region {region} has transactions of {whose}; renew=on drops them")))
}

impl JournalBelow {
    /// Refuses memory that cannot become the journal of this volume, before anything is written.
    pub fn check_region(&self, metadata: &Metadata, settings: &ExtSettings) -> Result<(), OpenExtError> {
        let Some(nvm) = self.nvm() else { return Ok(()) };
        if self.is_named(&metadata.shape) {
            let found = self.named_region(metadata, &**nvm)?;
            let widths = (metadata.shape.block_bytes, metadata.media.width());
            settings.nvm.shape(nvm.bytes(), widths.0, widths.1, Some(found.superblock.shape)).map_err(refused)?;
            return Ok(());
        }
        self.usable_region(metadata, settings, &**nvm).map(drop)
    }

    /// The region in this memory that the volume would use, and the shape that it would get.
    fn usable_region(
        &self,
        metadata: &Metadata,
        settings: &ExtSettings,
        nvm: &dyn Nvm,
    ) -> Result<(Option<FoundRegion>, RegionShape), OpenExtError> {
        let volume = (self.volume, self.mount_number);
        usable_region(nvm, &settings.nvm, volume, (metadata.shape.block_bytes, metadata.media.width()))
    }

    /// The region in the memory below, which must be the one that the volume names.
    pub fn named_region(&self, metadata: &Metadata, nvm: &dyn Nvm) -> Result<FoundRegion, OpenExtError> {
        let wanted = uuid(self.journal);
        let found = FoundRegion::find(nvm).map_err(|why| refused(format!("the region: {why}")))?;
        let Some(found) = found else {
            let why = "the memory has no superblock of a region: it is empty, of something else, or damaged";
            return Err(refused(format!("the volume's journal is region {wanted}; {why}; if it is lost, {GIVE_UP}")));
        };
        let RegionSuperblock { region, volume, .. } = found.superblock;
        if uuid(region) != wanted {
            return Err(refused(format!("it is region {}, and the volume's journal is {wanted}", uuid(region))));
        }
        if volume != self.volume {
            let (of, own) = (uuid(volume), uuid(self.volume));
            return Err(refused(format!("region {wanted} is in use by volume {of}, and this one is {own}")));
        }
        if !found.superblock.is_in_use {
            let why = "the volume is a copy from before its last unmount, or the region's superblock is damaged";
            let what = format!("restore both from the same time, or {GIVE_UP}");
            return Err(refused(format!(
                "the volume's journal is region {wanted}, which is not in use: {why}; {what}"
            )));
        }
        if let Some(why) = mismatch(self.mount_number, found.superblock.mount, &format!("region {wanted}")) {
            return Err(refused(format!("{why}, or {GIVE_UP}")));
        }
        let (made_for, block_bytes) = (found.superblock.shape.block_bytes as usize, metadata.shape.block_bytes);
        if (made_for, found.superblock.shape.width as usize) != (block_bytes, metadata.media.width()) {
            let what = format!("was made for blocks of {made_for} bytes, and those of the volume have {block_bytes}");
            return Err(refused(format!("region {wanted} {what}: its superblock is damaged")));
        }
        Ok(found)
    }
}

/// Committed blocks of a region that are not home. Blocks that the volume does not have are damage.
pub fn replayed_region(shape: &Shape, nvm: &dyn Nvm, region: &FoundRegion) -> Replayed {
    let mut found = region.replayable(nvm);
    let superblock_block = shape.superblock_block(0);
    found.blocks.retain(|block, _| {
        let is_there = shape.holds(*block, 1) || *block == superblock_block;
        if !is_there {
            let why = format!("an image of block {block}: the volume has no such block");
            found.damaged.push(damaged("the journal in non-volatile memory", why));
        }
        is_there
    });
    let last = found.last.unwrap_or(TransactionId(region.superblock.next.wrapping_sub(1)));
    Replayed { blocks: found.blocks, next: last.next(), damaged: found.damaged }
}

impl Opening {
    /// If the volume's journal is in a region: takes in its blocks that are not home. From then on the volume is one with
    /// a log in its own inode, which is empty.
    pub fn replay_region(&mut self, task: &Task<'_>, access: Access) -> Result<(), OpenExtError> {
        let Some(nvm) = self.below.nvm().map(Arc::clone) else { return Ok(()) };
        if !self.below.is_named(&self.parts.metadata.shape) {
            return Ok(());
        }
        let region = self.below.named_region(&self.parts.metadata, &*nvm)?;
        let mut replayed = replayed_region(&self.parts.metadata.shape, &*nvm, &region);
        if let Some(error) = replayed.damaged.pop() {
            return Err(error.into());
        }
        self.notice_errors(&replayed.blocks, access);
        self.keep_replayed(task, replayed)?;
        self.names_own_log();
        if self.parts.changes.read_only.is_none() {
            self.parts.has_logged_data = false.into();
            // A crash on the way leaves a volume that names a region without transactions, or does not name it.
            let region = region.let_go(&*nvm);
            mark_superblock(task, &self.parts, &self.below, true)?;
            region.emptied().write(&*nvm);
        }
        Ok(())
    }

    /// Begins the journal in the memory below, with transaction `next`.
    pub fn begin_region(&mut self, next: TransactionId) -> Result<Option<NvmJournal>, OpenExtError> {
        let Some(nvm) = self.below.nvm().map(Arc::clone) else { return Ok(None) };
        let (options, checkpointing) = (self.parts.settings.nvm, self.parts.settings.checkpointing);
        let (found, shape) = self.below.usable_region(&self.parts.metadata, &self.parts.settings, &*nvm)?;
        if found.is_none() {
            // Records of an older life could be taken for those of the new one.
            RegionSuperblock::clear(&*nvm);
        }
        let superblock = RegionSuperblock::in_use(
            found.as_ref().map(|found| &found.superblock),
            shape,
            (self.new_memory_name(), self.below.volume),
            next,
            self.below.mount_number,
        );
        superblock.write(&*nvm);
        self.parts.head.get_mut().memory_name = Some(superblock.region);
        let below = (Arc::clone(&self.parts.metadata.media), Arc::clone(&self.parts.metadata.blocks));
        Ok(Some(NvmJournal::new(nvm, superblock, (&options, checkpointing), below, self.parts.origin)))
    }
}
