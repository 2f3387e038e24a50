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
//! | `journal_below` | what the journal has for itself, a device or memory, and the names by which it and the volume know each other |
//! | `journal_device` | a device that the journal has for itself: made, and found |
//! | `found_log` | the log of a volume, found |
//! | `files` | inodes, maps, bytes, extended attributes |
//! | `names` | directories |
//! | `allocation` | free blocks and inodes |
//! | `parts` | the state of a volume, of which each component borrows a part |
//! | `marking` | the superblock says that the volume is in use, or clean |
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
mod journal_below;
mod journal_device;
mod make;
mod marking;
mod media;
mod memory;
mod metadata;
mod names;
mod own_blocks;
mod parts;
mod recovery;
mod settings;
mod station;
mod syncing;
mod volume;

pub use error::OpenExtError;
pub use format::superblock::{LENGTH as SUPERBLOCK_BYTES, PLACE as SUPERBLOCK_PLACE};
pub use journal_below::hold_memory_of;
pub use make::create;
pub use memory::MemoryUse;
pub use settings::{DataMode, ExtSettings, KIND};

use super::volume::Damage;
use crate::task::SharedGate;
use journal_below::JournalBelow;
use parts::Parts;
use std::sync::atomic::AtomicU64;

/// A mounted volume.
pub struct Ext {
    parts: Parts,
    below: JournalBelow,
    /// Each call is a reader of it; false once the volume is unmounted.
    mounted: SharedGate<bool>,
    /// The findings of the mount.
    damage: Vec<Damage>,
    /// Blocks of 4 KiB that calls have written and read.
    received_blocks: AtomicU64,
}
