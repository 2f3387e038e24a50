//! The steps of a mount.
//!
//! 1. The superblock, at byte 1024, and whether its features are known here.
//! 2. All group descriptors.
//! 3. The log: what it has that is not home. A volume that can only be read keeps it in memory; another writes it home.
//!
//! A volume that is opened to be read alone is not changed, whatever its log says.

use super::replay::{FoundLog, Replayed};
use crate::device::{BlockDevice, Medium};
use crate::fs::ext::blocks::Blocks;
use crate::fs::ext::error::{OpenExtError, damaged};
use crate::fs::ext::files::node::Nodes;
use crate::fs::ext::format::features::HAS_JOURNAL;
use crate::fs::ext::format::shape::Shape;
use crate::fs::ext::format::superblock::{LENGTH, PLACE, Superblock, state};
use crate::fs::ext::media::Media;
use crate::fs::ext::{Ext, ExtSettings};
use crate::fs::station::{Access, Mounting};
use crate::fs::volume::{Damage, VolumeError};
use crate::task::{Gate, SharedGate, Task};
use crate::time::Time;
use crate::units::BLOCK_BYTES;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

impl Ext {
    /// Opens the volume on a medium.
    pub fn open(
        medium: Medium,
        settings: &ExtSettings,
        mounting: &Mounting,
        access: Access,
    ) -> Result<Ext, OpenExtError> {
        let Medium::Blocks(device) = medium else {
            return Err(OpenExtError::Unsupported("ext stands on blocks that can be written in any order".to_string()));
        };
        let task = Task::at(Time::ZERO);
        let (media, superblock) = read_superblock(device, &task)?;
        let mut ext = Ext::on(media, superblock, settings, mounting)?;
        ext.read_only = ext.refuses_writing(access);
        ext.sum_groups(&task)?;
        if ext.shape.features.has(HAS_JOURNAL) && ext.shape.journal_inode != 0 {
            let log = ext.find_log(&task)?;
            let replayed = ext.replayed(&task, &log)?;
            ext.start(&task, log, replayed, access)?;
        }
        Ok(ext)
    }

    /// The volume with this superblock, before anything else is read.
    pub fn on(
        media: Media,
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
        let media = Media::new(media.into_device(), shape.block_bytes);
        let most = (settings.cache_bytes / shape.block_bytes as u64) as usize;
        let blocks = Blocks::new((!media.holds_stamps()).then_some(most));
        Ok(Ext {
            settings: settings.clone(),
            media: Arc::new(media),
            blocks: Arc::new(blocks),
            shape,
            uuid: superblock.uuid(),
            superblock: Gate::new("superblock", superblock),
            journal: None,
            nodes: Nodes::default(),
            mounted: SharedGate::new("mounted", true),
            read_only: None,
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
        let unwritable = self.shape.features.unwritable();
        if !unwritable.is_empty() {
            return Some(format!("it has features that cannot be written here: {}", unwritable.join(", ")));
        }
        if !self.shape.features.has(HAS_JOURNAL) {
            return Some("it has no journal".to_string());
        }
        if self.superblock.get_mut().state() & state::ERRORS != 0 {
            let what = "the superblock says that errors were found".to_string();
            self.damage.push(Damage { what: what.clone(), repair: "e2fsck -f checks all of it".to_string() });
            if access != Access::DespiteDamage {
                return Some(what);
            }
        }
        None
    }

    /// Reads all group descriptors.
    fn sum_groups(&self, task: &Task<'_>) -> Result<(), VolumeError> {
        for group in (0..self.shape.groups).step_by(self.shape.descriptors_of_block() as usize) {
            self.descriptor(task, group)?;
        }
        Ok(())
    }

    /// Goes on from what the log says.
    fn start(
        &mut self,
        task: &Task<'_>,
        log: FoundLog,
        replayed: Replayed,
        _access: Access,
    ) -> Result<(), OpenExtError> {
        let _ = log;
        self.read_only.get_or_insert("writing is not built yet".to_string());
        self.keep_replayed(task, replayed)?;
        Ok(())
    }

    /// Keeps what the log has in memory, as newer than what is on the device.
    fn keep_replayed(&mut self, task: &Task<'_>, replayed: Replayed) -> Result<(), VolumeError> {
        let superblock_block = self.shape.superblock_block(0);
        if replayed.blocks.is_empty() {
            return Ok(());
        }
        self.has_logged_data = AtomicBool::new(true);
        for (block, bytes) in replayed.blocks {
            if block == superblock_block {
                let at = PLACE as usize % self.shape.block_bytes;
                *self.superblock.get_mut() = Superblock::new(&bytes[at..at + LENGTH]);
            }
            self.blocks.set(block, bytes);
        }
        let shape = Shape::of(self.superblock.get_mut(), self.media.size_bytes());
        let shape = shape.map_err(|why| damaged("the superblock in the journal", why))?;
        if (shape.blocks, shape.block_bytes) != (self.shape.blocks, self.shape.block_bytes) {
            return Err(damaged("the superblock in the journal", "it is one of another volume"));
        }
        self.shape = shape;
        self.sum_groups(task)
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
