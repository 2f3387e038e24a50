//! `ext`: a journaling file system that writes in place, and whose images are ext4's.
//!
//! `docs/stations/ext.md` has the design: the rooms, the way of a change, the gates and their order.
//!
//! | room | content |
//! |---|---|
//! | `format` | the structures on the medium |
//! | `media` | the device below, in blocks of the volume |
//! | `blocks` | blocks in memory |
//! | `own_blocks` | the blocks of the volume itself, which no file has |
//! | `metadata` | the place of each structure, and its block |
//! | `changes` | the handle within which a change is made |
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
mod changes;
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
mod metadata;
mod names;
mod own_blocks;
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

use super::volume::{Damage, Timestamp};
use crate::task::{Gate, SharedGate};
use crate::time::Time;
use allocation::{Allocation, FreeSpace};
use blocks::Blocks;
use changes::Changes;
use files::head::Head;
use files::inodes::Inodes;
use files::map::Maps;
use files::node::Nodes;
use files::waiting::Waiting;
use files::write_back::WriteBack;
use files::writing::Writes;
use format::mount_number::MountNumber;
use media::JournalMemory;
use media::Media;
use memory::Shares;
use metadata::Metadata;
use names::known::KnownNames;
use names::{Directories, Names};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// A mounted volume.
pub struct Ext {
    settings: ExtSettings,
    /// The bounds of the memory.
    shares: Shares,
    metadata: Metadata,
    /// The device that the journal has for itself.
    journal_media: Option<Arc<Media>>,
    /// The memory in which the journal is.
    memory: Option<JournalMemory>,
    /// The page cache: clean pages of files, by their blocks on the volume. Its readers and writers are behind the gate of
    /// its file. A block that is freed may stay: it is written before it is read for another file.
    pages: Option<Blocks>,
    head: Gate<Head>,
    space: FreeSpace,
    /// Renames across directories go through it.
    renames: Gate<()>,
    /// A task that takes a file out of those that share a block of attributes goes through it.
    shared_attributes: Gate<()>,
    waiting: Waiting,
    /// Files made since the mount.
    generations: AtomicU64,
    changes: Changes,
    nodes: Nodes,
    /// As many as inodes.
    known_names: KnownNames,
    /// Each call is a reader of it; false once the volume is unmounted.
    mounted: SharedGate<bool>,
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
        self.origin.after(at)
    }

    /// Free blocks and inodes.
    fn allocation(&self) -> Allocation<'_> {
        Allocation { metadata: &self.metadata, changes: &self.changes, space: &self.space }
    }

    /// The maps of files.
    fn maps(&self) -> Maps<'_> {
        Maps { metadata: &self.metadata, allocation: self.allocation(), has_logged_data: &self.has_logged_data }
    }

    /// The blocks of directories.
    fn directories(&self) -> Directories<'_> {
        Directories { metadata: &self.metadata, maps: self.maps(), known_names: &self.known_names }
    }

    /// Inodes, orphans, extended attributes.
    fn inodes(&self) -> Inodes<'_> {
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
    fn write_back(&self) -> WriteBack<'_> {
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
    fn writes(&self) -> Writes<'_> {
        Writes {
            settings: &self.settings,
            metadata: &self.metadata,
            changes: &self.changes,
            write_back: self.write_back(),
            origin: self.origin,
        }
    }

    /// Names of files.
    fn names(&self) -> Names<'_> {
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
}
