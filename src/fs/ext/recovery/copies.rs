//! The copies of the superblock in other groups, and the sound fields of a damaged superblock.
//!
//! While a volume is mounted with a journal outside of it, its copies name that journal as the superblock does. They are
//! durable before the superblock is written: a cut leaves one of the two whole, and either leads to the journal as long as
//! something is there alone. At an unmount all is home before, and both orders would do.
//!
//! ```text
//! begin    journal in use, empty  | copies name it         | superblock names it
//! end      all is home            | copies name the log    | superblock names the log | journal not in use
//! ```

use crate::device::Monitor;
use crate::fs::ext::Ext;
use crate::fs::ext::format::features::METADATA_CSUM;
use crate::fs::ext::format::mount_number::MountNumber;
use crate::fs::ext::format::shape::{ROOT, Shape};
use crate::fs::ext::format::superblock::{LENGTH, MAGIC, Superblock};
use crate::fs::ext::journal::FoundRegion;
use crate::fs::ext::media::Media;
use crate::fs::volume::VolumeError;
use crate::label::{Cause, Content, Label};
use crate::task::Task;

/// Groups with copies of the superblock that are tried.
const COPIES: [u64; 8] = [1, 3, 5, 7, 9, 25, 27, 49];

/// A copy of the superblock that can be used, and its group.
pub fn copy_of_superblock(media: &Media, task: &Task<'_>) -> Result<Option<(Superblock, u64)>, VolumeError> {
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

/// A copy of the superblock, with the journal of the damaged one, if its parts agree on that.
pub fn named_as_in(mut copy: Superblock, damaged: &Superblock) -> Superblock {
    let is_same = damaged.u16(56) == MAGIC && damaged.uuid() == copy.uuid();
    match damaged.named_memory() {
        // Copies that an earlier version of this program has left name no memory.
        Some(name) if is_same && copy.named_memory() != Some(name) => {
            copy.name_memory(Some(name));
            copy.set_mount_number(damaged.mount_number());
        }
        // The journal of this mount has moved into the volume since the copy was written.
        None if is_same
            && damaged.names_own_log()
            && damaged.mount_number() == copy.mount_number()
            && copy.named_memory().is_some() =>
        {
            copy.name_memory(None);
        }
        _ => {}
    }
    copy.sum();
    copy
}

/// A superblock whose checksum alone is wrong, as when a cut left one of its two sectors older, with a right one.
/// [`Ext::check_fixed_fields`] says whether it is to be believed.
pub fn summed_anew(damaged: &Superblock, device_bytes: u64) -> Option<Superblock> {
    let mut mended = damaged.clone();
    if damaged.u16(56) != MAGIC || !damaged.features().has(METADATA_CSUM) {
        return None;
    }
    mended.sum();
    Shape::of(&mended, device_bytes).is_ok().then_some(mended)
}

impl Ext {
    /// Fails unless the fields of the superblock that never change are those with which the volume was made: the checksums
    /// of descriptors and inodes are over its UUID too, and they lie where its numbers say.
    pub fn check_fixed_fields(&self, task: &Task<'_>) -> Result<(), String> {
        if !self.metadata.shape.checksums.cover_groups() {
            return Err("the descriptors of groups have no checksums".to_string());
        }
        let check = || {
            (0..self.metadata.shape.groups).try_for_each(|group| self.metadata.descriptor(task, group).map(drop))?;
            self.metadata.read_inode(task, ROOT)?;
            self.metadata.read_inode(task, self.metadata.shape.first_inode).map(drop)
        };
        check().map_err(|error: VolumeError| error.to_string())
    }

    /// Has the copies of the superblock name the journal that it names, if they do not. They are durable then.
    pub fn tell_copies(&self, task: &Task<'_>, superblock: &Superblock) -> Result<(), VolumeError> {
        if self.metadata.media.holds_stamps() || !superblock.mount_number().is_counted() {
            return Ok(());
        }
        let label = Label::first(Cause::Checkpoint, Content::Metadata);
        let mut is_written = false;
        for group in (1..self.metadata.shape.groups).filter(|group| self.metadata.shape.has_superblock(*group)) {
            let place = self.metadata.shape.superblock_block(group);
            let mut block = vec![0; self.metadata.shape.block_bytes];
            self.metadata.media.read(task, place, &mut block)?;
            let mut copy = Superblock::new(&block[..LENGTH]);
            let is_one = copy.u16(90) == group as u16 && copy.uuid() == self.uuid;
            if !is_one || Shape::of(&copy, self.metadata.media.size_bytes()).is_err() || !copy.take_naming(superblock) {
                continue;
            }
            block[..LENGTH].copy_from_slice(copy.bytes());
            self.metadata.media.write(task, place, &block, label)?;
            self.metadata.blocks.forget(place);
            is_written = true;
        }
        match is_written {
            true => Ok(self.metadata.media.flush(task)?),
            false => Ok(()),
        }
    }

    /// The name and the number of memory below that has something of this volume which is not home: where the superblock
    /// and its copies do not tell, the memory does.
    pub fn naming_of_memory(&self) -> Option<([u8; 16], MountNumber)> {
        if let Some(nvm) = self.nvm() {
            let region = FoundRegion::find(&**nvm).ok().flatten()?;
            let is_needed = region.superblock.is_in_use && region.superblock.volume == self.uuid && {
                let left = region.replayable(&**nvm);
                !left.blocks.is_empty() || !left.damaged.is_empty()
            };
            return is_needed.then_some((region.superblock.region, region.superblock.mount));
        }
        let kept = self.monitor().and_then(|monitor: &std::sync::Arc<dyn Monitor>| monitor.kept_of(self.uuid).ok());
        let kept = kept.flatten().filter(|kept| kept.volume == self.uuid && !kept.blocks.is_empty())?;
        Some((kept.name, self.mount_number))
    }
}
