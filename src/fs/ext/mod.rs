//! `ext`: a journaling file system that writes in place, and whose images are ext4's.
//!
//! `docs/stations/ext.md` has the design: the rooms, the way of a change, the gates and their order.
//!
//! | room | content |
//! |---|---|
//! | `format` | the structures on the medium |
//! | `media` | the device below, in blocks of the volume |
//! | `blocks` | blocks in memory |
//! | `memory` | the bound of the memory, and its shares |
//! | `journal` | transactions, and the log that stores them |
//! | `journal_device` | a device that the journal has for itself: made, and found |
//! | `found_log` | the log of a volume, found |
//! | `files` | inodes, maps, bytes, extended attributes |
//! | `names` | directories |
//! | `allocation` | free blocks and inodes |
//! | `recovery` | opening: the log, its replay, orphans |
//! | `make`, `inspect` | a new volume; the description of one |
//! | `syncing` | dirty files become durable; background work; the end of a mount |
//! | `fast_tags` | the changes of a transaction in the tags of a fast commit |
//! | `volume` | the calls of a mounted volume |
//! | `settings`, `station`, `error` | the options; the station; why a volume cannot be opened |

mod allocation;
mod blocks;
mod error;
mod fast_tags;
mod files;
pub(crate) mod format;
mod found_log;
mod inspect;
mod journal;
mod journal_device;
mod make;
mod media;
mod memory;
mod names;
mod recovery;
mod settings;
mod station;
mod syncing;
mod volume;

pub use error::OpenExtError;
pub use format::superblock::{LENGTH as SUPERBLOCK_BYTES, PLACE as SUPERBLOCK_PLACE};
pub use memory::MemoryUse;
pub use recovery::hold_memory_of;
pub use settings::{DataMode, ExtSettings, KIND};

use super::volume::{Damage, Timestamp, VolumeError};
use crate::label::Content;
use crate::task::{Gate, SharedGate, Task};
use crate::time::Time;
use allocation::own_blocks::OwnBlocks;
use allocation::space::Free;
use allocation::windows::Windows;
use blocks::{Blocks, Bytes};
use error::damaged;
use files::node::{File, Node, Nodes};
use files::orphans::Head;
use files::storing::Waiting;
use format::group::{Descriptor, checksum};
use format::inode::Inode;
use format::mount_number::MountNumber;
use format::shape::Shape;
use journal::{Handle, Journal};
use media::JournalMemory;
use media::Media;
use memory::Shares;
use names::known::KnownNames;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// A mounted volume.
pub struct Ext {
    settings: ExtSettings,
    /// The bounds of the memory.
    shares: Shares,
    media: Arc<Media>,
    /// The device that the journal has for itself.
    journal_media: Option<Arc<Media>>,
    /// The memory in which the journal is.
    memory: Option<JournalMemory>,
    /// The UUID by which the superblock names that, while the volume is mounted with it.
    memory_name: Option<[u8; 16]>,
    blocks: Arc<Blocks>,
    /// The page cache: clean pages of files, by their blocks on the volume. Its readers and writers are behind the gate of
    /// its file. A block that is freed may stay: it is written before it is read for another file.
    pages: Option<Blocks>,
    shape: Shape,
    head: Gate<Head>,
    /// The gates of allocation groups: some groups share one.
    groups: Vec<Gate<()>>,
    /// Renames across directories go through it.
    renames: Gate<()>,
    /// A task that takes a file out of those that share a block of attributes goes through it.
    shared_attributes: Gate<()>,
    free: Free,
    own_blocks: OwnBlocks,
    windows: Windows,
    waiting: Waiting,
    /// Files made since the mount.
    generations: AtomicU64,
    /// `None` if the volume can only be read.
    journal: Option<Box<dyn Journal>>,
    nodes: Nodes,
    /// As many as inodes.
    known_names: KnownNames,
    /// Each call is a reader of it; false once the volume is unmounted.
    mounted: SharedGate<bool>,
    /// Why it can only be read.
    read_only: Option<String>,
    /// The findings of the mount.
    damage: Vec<Damage>,
    /// Bytes of files may be in [`blocks`](Ext::blocks), newer than on the device.
    has_logged_data: AtomicBool,
    /// Blocks of 4 KiB that calls have written and read.
    received_blocks: AtomicU64,
    /// The time on the wall clock at [`Time::ZERO`].
    origin: Timestamp,
    uuid: [u8; 16],
    /// The UUID of the journal's own device; zeros if it has none.
    journal_uuid: [u8; 16],
    /// The number of the mount that the superblock says when the volume is opened; from the beginning of a journal outside of
    /// the volume on, that of this mount.
    mount_number: MountNumber,
}

impl Ext {
    /// The time on the wall clock.
    fn wall(&self, at: Time) -> Timestamp {
        Timestamp(self.origin.0.saturating_add(i64::try_from(at.0).unwrap_or(i64::MAX)))
    }

    fn has_logged_data(&self) -> bool {
        self.has_logged_data.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// A block of metadata, from memory or from the device. `check` looks at a block that comes from the device, and says what
    /// is wrong.
    fn block(
        &self,
        task: &Task<'_>,
        block: u64,
        what: &dyn Fn() -> String,
        check: &dyn Fn(&[u8]) -> Result<(), String>,
    ) -> Result<Bytes, VolumeError> {
        loop {
            let before = match self.blocks.get(block) {
                Ok(bytes) => return Ok(bytes),
                Err(before) => before,
            };
            if !self.shape.holds(block, 1) && block != self.shape.superblock_block(0) {
                return Err(damaged(what(), format!("a volume of {} blocks has no block {block}", self.shape.blocks)));
            }
            assert!(!self.media.holds_stamps(), "block {block}, {}: metadata of stamps stays in memory", what());
            let mut bytes = vec![0; self.shape.block_bytes];
            self.media.read(task, block, &mut bytes)?;
            check(&bytes).map_err(|why| damaged(what(), why))?;
            if let Some(bytes) = self.blocks.insert(block, bytes.into(), before) {
                return Ok(bytes);
            }
        }
    }

    /// The transactions of a volume that can be written.
    fn journal(&self) -> Result<&dyn Journal, VolumeError> {
        let read_only = || VolumeError::ReadOnly(self.read_only.clone().unwrap_or_default());
        self.journal.as_deref().ok_or_else(read_only)
    }

    /// Does work within a handle that changes `blocks` at the most, and ends the handle, however the work has ended. The task
    /// has no handle yet.
    fn within<T>(
        &self,
        task: &Task<'_>,
        blocks: usize,
        work: impl FnOnce(&Handle<'_>) -> Result<T, VolumeError>,
    ) -> Result<T, VolumeError> {
        let handle = self.journal()?.begin(task, blocks)?;
        let done = work(&handle);
        handle.end();
        done
    }

    /// Makes changes that belong together, within a handle. If they fail halfway, nothing more is changed: a
    /// crash leaves the last commit.
    fn changing<T>(&self, change: impl FnOnce() -> Result<T, VolumeError>) -> Result<T, VolumeError> {
        let changed = change();
        if let Err(error) = &changed
            && !matches!(error, VolumeError::NoSpace { .. })
        {
            self.journal()?.common().abort(&format!("a change failed halfway: {error}"));
        }
        changed
    }

    /// Changes a block of metadata, which `read` reads if it is not in memory.
    fn change_block(
        &self,
        handle: &Handle<'_>,
        block: u64,
        read: &dyn Fn(&Task<'_>) -> Result<(), VolumeError>,
        change: impl Fn(&mut [u8]),
    ) -> Result<(), VolumeError> {
        while !handle.change(block, Content::Metadata, &change) {
            read(handle.task)?;
        }
        Ok(())
    }

    /// The block in which the superblock lies.
    fn superblock_block(&self, task: &Task<'_>) -> Result<Bytes, VolumeError> {
        self.block(task, self.shape.superblock_block(0), &|| "the superblock".to_string(), &|_| Ok(()))
    }

    /// The block of a group's descriptor, and its first byte there.
    fn descriptor_block(&self, task: &Task<'_>, group: u32) -> Result<(u64, usize, Bytes), VolumeError> {
        let (place, at) = self.shape.place_of_descriptor(group);
        let what = || format!("block {place}, group descriptors");
        let first = group - (at / self.shape.descriptor_bytes) as u32;
        let bytes = self.block(task, place, &what, &|bytes| self.check_descriptors(first, bytes))?;
        Ok((place, at, bytes))
    }

    /// The descriptor of a group.
    fn descriptor(&self, task: &Task<'_>, group: u32) -> Result<Descriptor, VolumeError> {
        let (_, at, bytes) = self.descriptor_block(task, group)?;
        Ok(Descriptor::read(&bytes[at..at + self.shape.descriptor_bytes]))
    }

    /// Looks at the descriptors in a block, of which the first is that of group `first`.
    fn check_descriptors(&self, first: u32, bytes: &[u8]) -> Result<(), String> {
        let shape = &self.shape;
        for (group, bytes) in (first..shape.groups).zip(bytes.chunks_exact(shape.descriptor_bytes)) {
            let (sum, said) = (checksum(bytes, group, shape.checksums), format::bytes::le16(bytes, 30));
            if sum != said && shape.checksums.cover_groups() {
                return Err(format!("the checksum of group {group} is {said:04x}, and should be {sum:04x}"));
            }
            let descriptor = Descriptor::read(bytes);
            let is_inside = shape.holds(descriptor.block_bitmap, 1)
                && shape.holds(descriptor.inode_bitmap, 1)
                && shape.holds(descriptor.inode_table, shape.table_blocks());
            let fits = descriptor.free_inodes <= shape.group_inodes && descriptor.never_used <= shape.group_inodes;
            if !is_inside || !fits {
                return Err(format!("group {group} is not as it can be: {descriptor:?}"));
            }
        }
        Ok(())
    }

    /// True if blocks can be a file's: they are on the volume, and not its own.
    fn can_be_a_files(&self, first: u64, count: u64) -> bool {
        self.shape.holds(first, count) && !self.own_blocks.overlaps(&(first..first + count))
    }

    /// The block of an inode in its table, and its first byte there.
    fn place_of_inode(&self, task: &Task<'_>, number: u32) -> Result<(u64, usize), VolumeError> {
        let (group, at) = self.shape.place_of_inode(number);
        let table = self.descriptor(task, group)?.inode_table;
        let in_block = self.shape.inodes_of_block();
        Ok((table + u64::from(at / in_block), (at % in_block) as usize * self.shape.inode_bytes))
    }

    /// The block of the inode table at `place`.
    fn table_block(&self, task: &Task<'_>, place: u64) -> Result<Bytes, VolumeError> {
        self.block(task, place, &|| format!("block {place}, inodes"), &|_| Ok(()))
    }

    /// Reads an inode from its table, without a check of its content.
    fn read_inode(&self, task: &Task<'_>, number: u32) -> Result<Inode, VolumeError> {
        let (place, at) = self.place_of_inode(task, number)?;
        let block = self.table_block(task, place)?;
        let inode = Inode::new(&block[at..at + self.shape.inode_bytes]);
        let is_unused = inode.mode() == 0 && inode.links() == 0;
        if let Some(sum) = inode.checksum(number, self.shape.checksums).filter(|_| !is_unused)
            && sum != inode.said_checksum()
        {
            let why = format!("its checksum is {:08x}, and should be {sum:08x}", inode.said_checksum());
            return Err(damaged(format!("inode {number}"), why));
        }
        if inode.bytes().len() > 128 && !is_unused && 128 + inode.extra() > inode.bytes().len() {
            return Err(damaged(format!("inode {number}"), format!("it says {} extra bytes", inode.extra())));
        }
        Ok(inode)
    }

    /// An inode that is in use.
    fn node(&self, task: &Task<'_>, number: u32) -> Result<Arc<Node>, VolumeError> {
        if number == 0 || number > self.shape.inodes || self.shape.is_reserved(number) {
            return Err(VolumeError::NotFound);
        }
        loop {
            let before = match self.nodes.get(number) {
                Ok(node) => return Ok(node),
                Err(before) => before,
            };
            let inode = self.read_inode(task, number)?;
            // Without a name, one that is held is in use.
            let is_orphan = inode.links() == 0;
            if is_orphan && !self.is_orphan(task, number) {
                return Err(VolumeError::NotFound);
            }
            self.check_inode(number, &inode)?;
            let file = File { is_orphan, ..File::new(number, inode) };
            if let Some(node) = self.nodes.insert(file, before) {
                return Ok(node);
            }
        }
    }

    /// True if a file is in the list of orphans.
    fn is_orphan(&self, task: &Task<'_>, number: u32) -> bool {
        self.head.enter(task).orphans.has(number)
    }

    /// Refuses an inode that no file can have.
    fn check_inode(&self, number: u32, inode: &Inode) -> Result<(), VolumeError> {
        use super::volume::FileKind::{Directory, Regular};
        use format::inode::flag;
        let refuse = |why: String| Err(damaged(format!("inode {number}"), why));
        let Some(kind) = inode.kind() else {
            return refuse(format!("its mode is {:#o}", inode.mode()));
        };
        for (bit, what) in [(flag::INLINE, "inline data"), (flag::ENCRYPTED, "encrypted")] {
            if inode.has(bit) {
                return refuse(format!("it is flagged as {what}, and the volume has no such feature"));
            }
        }
        if inode.has(flag::EXTENTS) && !self.shape.has_extents() {
            return refuse("it has extents, and the volume has no such feature".to_string());
        }
        let size = inode.size();
        if kind == Directory && (size == 0 || !size.is_multiple_of(self.shape.block_bytes as u64)) {
            return refuse(format!("it is a directory of {size} bytes"));
        }
        let longest = self.shape.longest_map(inode.has(flag::EXTENTS));
        if matches!(kind, Regular | Directory) && size > longest {
            return refuse(format!("it has {size} bytes, and {longest} are the most"));
        }
        Ok(())
    }
}
