//! The copies of the superblock in other groups, and the sound fields of a damaged superblock.

use crate::fs::ext::format::features::METADATA_CSUM;
use crate::fs::ext::format::shape::{ROOT, Shape};
use crate::fs::ext::format::superblock::{LENGTH, MAGIC, Superblock};
use crate::fs::ext::media::Media;
use crate::fs::ext::metadata::Metadata;
use crate::fs::volume::VolumeError;
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
/// [`check_fixed_fields`] says whether it is to be believed.
pub fn summed_anew(damaged: &Superblock, device_bytes: u64) -> Option<Superblock> {
    let mut mended = damaged.clone();
    if damaged.u16(56) != MAGIC || !damaged.features().has(METADATA_CSUM) {
        return None;
    }
    mended.sum();
    Shape::of(&mended, device_bytes).is_ok().then_some(mended)
}

/// Fails unless the fields of the superblock that never change are those with which the volume was made: the checksums
/// of descriptors and inodes are over its UUID too, and they lie where its numbers say.
pub fn check_fixed_fields(task: &Task<'_>, metadata: &Metadata) -> Result<(), String> {
    if !metadata.shape.checksums.cover_groups() {
        return Err("the descriptors of groups have no checksums".to_string());
    }
    let check = || {
        (0..metadata.shape.groups).try_for_each(|group| metadata.descriptor(task, group).map(drop))?;
        metadata.read_inode(task, ROOT)?;
        metadata.read_inode(task, metadata.shape.first_inode).map(drop)
    };
    check().map_err(|error: VolumeError| error.to_string())
}
