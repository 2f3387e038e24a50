//! A volume that is being opened: the state that the steps of a mount change. It ends as a mounted volume.

use super::replay::Replayed;
use crate::device::BlockDevice;
use crate::fs::ext::allocation::FreeSpace;
use crate::fs::ext::blocks::{Blocks, Bytes};
use crate::fs::ext::changes::Changes;
use crate::fs::ext::error::{OpenExtError, damaged};
use crate::fs::ext::files::head::Head;
use crate::fs::ext::files::node::Nodes;
use crate::fs::ext::files::waiting::Waiting;
use crate::fs::ext::format::bytes::uuid;
use crate::fs::ext::format::shape::{JOURNAL, Shape};
use crate::fs::ext::format::superblock::{LENGTH, PLACE, Superblock, state};
use crate::fs::ext::journal_below::JournalBelow;
use crate::fs::ext::media::{JournalMemory, Media};
use crate::fs::ext::memory::Shares;
use crate::fs::ext::metadata::Metadata;
use crate::fs::ext::names::known::KnownNames;
use crate::fs::ext::own_blocks::OwnBlocks;
use crate::fs::ext::parts::Parts;
use crate::fs::ext::{DataMode, Ext, ExtSettings};
use crate::fs::station::{Access, Mounting};
use crate::fs::volume::{Damage, VolumeError};
use crate::label::{Cause, Content, Label};
use crate::random::Random;
use crate::task::{Gate, SharedGate, Task};
use crate::units::BLOCK_BYTES;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// A volume that is being opened.
pub struct Opening {
    pub parts: Parts,
    pub below: JournalBelow,
    /// The findings so far.
    pub damage: Vec<Damage>,
}

impl Opening {
    /// The volume with this superblock, before anything else is read, and what its journal has below.
    pub fn on(
        media: Media,
        (journal, memory): (Option<Box<dyn BlockDevice>>, Option<JournalMemory>),
        superblock: Superblock,
        settings: &ExtSettings,
        mounting: &Mounting,
    ) -> Result<Opening, OpenExtError> {
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
        let mut settings = settings.clone();
        if memory.is_some() && settings.is_data_open {
            settings.data = DataMode::Journal;
        }
        let below = JournalBelow {
            media: journal.map(|device| Arc::new(Media::new(device, shape.block_bytes))),
            memory,
            volume: superblock.uuid(),
            journal: superblock.journal_uuid(),
            mount_number: superblock.mount_number(),
        };
        let metadata =
            Metadata { shape, media: Arc::new(media), blocks: Arc::new(blocks), own_blocks: OwnBlocks::default() };
        let parts = Parts {
            settings,
            shares,
            metadata,
            pages: (pages > 0).then(|| Blocks::new(Some(pages), usize::MAX)),
            head: Gate::new("superblock", Head::new(superblock)),
            space: FreeSpace::default(),
            renames: Gate::new("renames", ()),
            shared_attributes: Gate::new("shared attributes", ()),
            waiting: Waiting::new(shares.dirty, shares.waiting_count()),
            generations: AtomicU64::new(mounting.seed),
            changes: Changes::default(),
            nodes: Nodes::new(shares.inode_count()),
            known_names: KnownNames::new(shares.inode_count()),
            has_logged_data: AtomicBool::new(false),
            origin: mounting.origin,
        };
        Ok(Opening { parts, below, damage: Vec::new() })
    }

    /// The mounted volume.
    pub fn mounted(self) -> Ext {
        let Opening { parts, below, damage } = self;
        let mounted = SharedGate::new("mounted", true);
        Ext { parts, below, mounted, damage, received_blocks: AtomicU64::new(0) }
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

    /// The volume can only be read if the newest superblock, which may be among these blocks of the journal, says that errors
    /// were found.
    pub fn notice_errors(&mut self, blocks: &BTreeMap<u64, Bytes>, access: Access) {
        let shape = &self.parts.metadata.shape;
        if let Some(bytes) = blocks.get(&shape.superblock_block(0)) {
            let at = PLACE as usize % shape.block_bytes;
            let state = Superblock::new(&bytes[at..at + LENGTH]).state();
            let read_only = self.parts.changes.read_only.take().or_else(|| self.refuses_errors(state, access));
            self.parts.changes.read_only = read_only;
        }
    }

    /// The volume is one with a log in its own inode from now on: in memory, not yet on the device.
    pub fn names_own_log(&mut self) {
        self.parts.metadata.shape.journal_inode = JOURNAL;
        self.parts.head.get_mut().superblock.name_memory(None);
    }

    /// A UUID for new memory.
    pub fn new_memory_name(&self) -> [u8; 16] {
        let seed = self.parts.generations.load(Relaxed) ^ self.parts.origin.0 as u64;
        let mut random = Random::new(seed, &uuid(self.below.volume));
        std::array::from_fn(|_| random.below(256) as u8)
    }

    /// Takes the blocks of the log for newer than those on the device. A volume that can only be read keeps it in memory;
    /// of another it is written home.
    pub fn keep_replayed(&mut self, task: &Task<'_>, replayed: Replayed) -> Result<(), VolumeError> {
        if replayed.blocks.is_empty() {
            return Ok(());
        }
        self.parts.has_logged_data = AtomicBool::new(true);
        self.keep_copies(task, &replayed.blocks, self.parts.changes.read_only.is_none())
    }

    /// Takes these bytes of blocks: home, where they are durable then, or in memory.
    pub fn keep_copies(
        &mut self,
        task: &Task<'_>,
        blocks: &BTreeMap<u64, Bytes>,
        is_written: bool,
    ) -> Result<(), VolumeError> {
        let Parts { metadata, head, .. } = &mut self.parts;
        let superblock_block = metadata.shape.superblock_block(0);
        let label = Label::first(Cause::Checkpoint, Content::Metadata);
        for (block, bytes) in blocks.iter().map(|(block, bytes)| (*block, bytes)) {
            if block == superblock_block {
                let at = PLACE as usize % metadata.shape.block_bytes;
                head.get_mut().superblock = Superblock::new(&bytes[at..at + LENGTH]);
            }
            if is_written {
                metadata.media.write(task, block, bytes, label)?;
                // Blocks that were read before are older.
                metadata.blocks.forget(block);
            } else {
                metadata.blocks.set(block, bytes);
            }
        }
        if is_written {
            metadata.media.flush(task)?;
        }
        let shape = Shape::of(&head.get_mut().superblock, metadata.media.size_bytes());
        let shape = shape.map_err(|why| damaged("the superblock in the journal", why))?;
        if (shape.blocks, shape.block_bytes) != (metadata.shape.blocks, metadata.shape.block_bytes) {
            return Err(damaged("the superblock in the journal", "it is one of another volume"));
        }
        metadata.shape = shape;
        self.parts.sum_groups(task)
    }
}
