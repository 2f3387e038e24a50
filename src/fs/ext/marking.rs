//! The superblock says whether the volume is in use, and where its journal is; and the copies of it in other groups name
//! that journal, too.
//!
//! While a volume is mounted with a journal outside of it, its copies name that journal as the superblock does. They are
//! durable before the superblock is written: a cut leaves one of the two whole, and either leads to the journal as long as
//! something is there alone. At an unmount all is home before, and both orders would do.
//!
//! ```text
//! begin    journal in use, empty  | copies name it         | superblock names it
//! end      all is home            | copies name the log    | superblock names the log | journal not in use
//! ```

use super::format::features::NEEDS_RECOVERY;
use super::format::shape::Shape;
use super::format::superblock::{LENGTH, PLACE, Superblock, state};
use super::journal_below::JournalBelow;
use super::metadata::Metadata;
use super::parts::Parts;
use crate::fs::volume::VolumeError;
use crate::label::{Cause, Content, Label};
use crate::task::Task;
use std::sync::atomic::Ordering::SeqCst;

const LABEL: Label = Label::first(Cause::Checkpoint, Content::Metadata);

/// Marks the superblock as that of a volume in use, whose log may have to be replayed, or of a clean one. It is
/// written past the journal, which is empty.
pub fn mark_superblock(
    task: &Task<'_>,
    parts: &Parts,
    below: &JournalBelow,
    is_in_use: bool,
) -> Result<(), VolumeError> {
    let (metadata, free) = (&parts.metadata, &parts.space.free);
    let now = parts.wall(task.now()).0.div_euclid(1_000_000_000) as u32;
    let mut head = parts.head.enter(task);
    let features = head.superblock.features();
    let features = if is_in_use { features.with(NEEDS_RECOVERY) } else { features.without(NEEDS_RECOVERY) };
    let named = head.named_memory(&parts.changes).filter(|_| is_in_use);
    let superblock = &mut head.superblock;
    superblock.set_features(features);
    superblock.set32(48, now);
    if is_in_use {
        superblock.set32(44, now);
        superblock.set16(52, superblock.u16(52).saturating_add(1));
    } else {
        superblock.set_free(free.blocks.load(SeqCst), free.inodes.load(SeqCst) as u32);
        superblock.set16(58, superblock.state() | state::CLEAN);
    }
    if below.memory.is_some() {
        superblock.name_memory(named);
    }
    superblock.set_mount_number(below.mount_number);
    superblock.sum();
    let superblock = &*superblock;
    tell_copies(task, metadata, below.volume, superblock)?;
    let (place, at) = (metadata.shape.superblock_block(0), PLACE as usize % metadata.shape.block_bytes);
    metadata.superblock_block(task)?;
    metadata.blocks.change(place, |block| block[at..at + LENGTH].copy_from_slice(superblock.bytes()));
    let bytes = metadata.superblock_block(task)?;
    metadata.media.write_metadata(task, place, &bytes, LABEL)?;
    metadata.media.flush(task)?;
    metadata.blocks.release(place);
    Ok(())
}

/// Has the copies of the superblock of `volume` name the journal that it names, if they do not. They are durable then.
pub fn tell_copies(
    task: &Task<'_>,
    metadata: &Metadata,
    volume: [u8; 16],
    superblock: &Superblock,
) -> Result<(), VolumeError> {
    let (shape, media) = (&metadata.shape, &metadata.media);
    if media.holds_stamps() || !superblock.mount_number().is_counted() {
        return Ok(());
    }
    let mut is_written = false;
    for group in (1..shape.groups).filter(|group| shape.has_superblock(*group)) {
        let place = shape.superblock_block(group);
        let mut block = vec![0; shape.block_bytes];
        media.read(task, place, &mut block)?;
        let mut copy = Superblock::new(&block[..LENGTH]);
        let is_one = copy.u16(90) == group as u16 && copy.uuid() == volume;
        if !is_one || Shape::of(&copy, media.size_bytes()).is_err() || !copy.take_naming(superblock) {
            continue;
        }
        block[..LENGTH].copy_from_slice(copy.bytes());
        media.write(task, place, &block, LABEL)?;
        metadata.blocks.forget(place);
        is_written = true;
    }
    match is_written {
        true => Ok(media.flush(task)?),
        false => Ok(()),
    }
}
