//! The state of a volume, of which each component borrows the part that it needs: while the volume is opened, and while it is
//! mounted.

use super::allocation::{Allocation, FreeSpace};
use super::blocks::Blocks;
use super::changes::Changes;
use super::error::damaged;
use super::files::head::Head;
use super::files::inodes::Inodes;
use super::files::map::Maps;
use super::files::node::Nodes;
use super::files::waiting::Waiting;
use super::files::write_back::WriteBack;
use super::files::writing::Writes;
use super::format::group::Descriptor;
use super::memory::Shares;
use super::metadata::Metadata;
use super::names::known::KnownNames;
use super::names::{Directories, Names};
use super::own_blocks::OwnBlocks;
use super::settings::ExtSettings;
use crate::fs::volume::{Timestamp, VolumeError};
use crate::task::{Gate, Task};
use crate::time::Time;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// The state of a volume.
pub struct Parts {
    pub settings: ExtSettings,
    /// The bounds of the memory.
    pub shares: Shares,
    pub metadata: Metadata,
    /// The page cache: clean pages of files, by their blocks on the volume. Its readers and writers are behind the gate of
    /// its file. A block that is freed may stay: it is written before it is read for another file.
    pub pages: Option<Blocks>,
    pub head: Gate<Head>,
    pub space: FreeSpace,
    /// Renames across directories go through it.
    pub renames: Gate<()>,
    /// A task that takes a file out of those that share a block of attributes goes through it.
    pub shared_attributes: Gate<()>,
    pub waiting: Waiting,
    /// Files made since the mount.
    pub generations: AtomicU64,
    pub changes: Changes,
    pub nodes: Nodes,
    /// As many as inodes.
    pub known_names: KnownNames,
    /// Bytes of files may be in [`Metadata::blocks`], newer than on the device.
    pub has_logged_data: AtomicBool,
    /// The time on the wall clock at [`Time::ZERO`].
    pub origin: Timestamp,
}

impl Parts {
    /// The time on the wall clock.
    pub fn wall(&self, at: Time) -> Timestamp {
        self.origin.after(at)
    }

    /// Free blocks and inodes.
    pub fn allocation(&self) -> Allocation<'_> {
        Allocation { metadata: &self.metadata, changes: &self.changes, space: &self.space }
    }

    /// The maps of files.
    pub fn maps(&self) -> Maps<'_> {
        Maps { metadata: &self.metadata, allocation: self.allocation(), has_logged_data: &self.has_logged_data }
    }

    /// The blocks of directories.
    pub fn directories(&self) -> Directories<'_> {
        Directories { metadata: &self.metadata, maps: self.maps(), known_names: &self.known_names }
    }

    /// Inodes, orphans, extended attributes.
    pub fn inodes(&self) -> Inodes<'_> {
        Inodes {
            metadata: &self.metadata,
            changes: &self.changes,
            maps: self.maps(),
            nodes: &self.nodes,
            head: &self.head,
            shared_attributes: &self.shared_attributes,
        }
    }

    /// The way of dirty pages to the device.
    pub fn write_back(&self) -> WriteBack<'_> {
        WriteBack {
            settings: &self.settings,
            metadata: &self.metadata,
            changes: &self.changes,
            inodes: self.inodes(),
            pages: self.pages.as_ref(),
            waiting: &self.waiting,
        }
    }

    /// The changes of files.
    pub fn writes(&self) -> Writes<'_> {
        Writes {
            settings: &self.settings,
            metadata: &self.metadata,
            changes: &self.changes,
            write_back: self.write_back(),
            origin: self.origin,
        }
    }

    /// Names of files.
    pub fn names(&self) -> Names<'_> {
        Names {
            settings: &self.settings,
            metadata: &self.metadata,
            changes: &self.changes,
            writes: self.writes(),
            known_names: &self.known_names,
            generations: &self.generations,
            renames: &self.renames,
        }
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
}
