//! The memory bound of a volume (`memory=`), and its shares.
//!
//! Bounded are the parts that grow with the workload: dirty bytes of files, changed blocks that are not home, clean blocks,
//! clean pages, and inodes. A part that exceeds its share is written out or evicted where it grows. References are not
//! bounded (8 bytes for each inode known to the kernel), nor are the parts that grow with the volume: the state of
//! each group.
//!
//! A volume of stamps has no bound: stamps cannot be read back as metadata, so metadata stays in memory. Its inodes leave
//! memory as those of any volume.

use super::Ext;
use super::error::OpenExtError;
use super::files::node::NODE_BYTES;
use super::settings::ExtSettings;
use crate::units::format_size;

/// The program, its threads' buffers, and the unbounded parts of a small volume, in bytes.
const FIXED: u64 = 16 << 20;
/// Minimum of all shares together, in bytes: three eighths of it have room for the smallest journal.
const LEAST: u64 = 16 << 20;
/// The allocator and the hash tables add 1 part in this many to the counted bytes.
const OVERHEAD: u64 = 8;

/// The share of each part of a volume, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// Bytes of files that wait. A quarter as many may be in flight to the device besides.
    pub dirty: u64,
    /// Blocks that transactions have changed and that are not home, with the copies that a commit makes; `None`: as much as the
    /// journal holds.
    pub changed: Option<u64>,
    /// Clean metadata.
    pub blocks: u64,
    /// Clean pages of files.
    pub pages: u64,
    /// Clean inodes.
    pub inodes: u64,
    /// Inodes of files that wait; `None` for no bound.
    pub waiting: Option<u64>,
}

/// Memory used by the bounded parts of a volume, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Bytes of files that wait.
    pub dirty: u64,
    /// Blocks that are changed, or not home.
    pub changed: u64,
    /// Clean blocks and pages.
    pub cached: u64,
    /// Inodes.
    pub inodes: u64,
}

impl MemoryUse {
    /// All of it.
    pub fn sum(&self) -> u64 {
        self.dirty + self.changed + self.cached + self.inodes
    }
}

/// Bytes of files that may wait, if the options do not say.
const DIRTY: u64 = 64 << 20;

impl Shares {
    /// The shares of a volume with these options, on a machine that has so many bytes for it.
    pub fn of(settings: &ExtSettings, machine: Option<u64>) -> Result<Shares, OpenExtError> {
        let least = ((FIXED + LEAST) * OVERHEAD).div_ceil(OVERHEAD - 1).next_multiple_of(1 << 20);
        let bytes = match (settings.memory_bytes, machine) {
            (Some(bytes), _) if bytes < least => {
                return Err(OpenExtError::Unsupported(format!(
                    "memory={} is too little: write memory={} or more, or omit it",
                    format_size(bytes),
                    format_size(least)
                )));
            }
            (Some(bytes), _) => Some(bytes),
            (None, machine) => machine.map(|bytes| bytes.max(least)),
        };
        let shares = Shares {
            // Programs on a mounted volume write in bursts. The kernel lets writers wait at a fifth of what it has free.
            dirty: settings.dirty_bytes.unwrap_or(if machine.is_some() { u64::MAX } else { DIRTY }),
            changed: None,
            blocks: settings.cache_bytes,
            pages: settings.page_cache_bytes,
            inodes: settings.cache_bytes / 4,
            waiting: None,
        };
        Ok(bytes.map_or(shares, |bytes| shares.within((bytes - bytes / OVERHEAD).saturating_sub(FIXED))))
    }

    /// Reduces the shares to so many bytes together.
    fn within(self, bytes: u64) -> Shares {
        Shares {
            dirty: self.dirty.min(bytes / 5),
            changed: Some(bytes / 8 * 3),
            blocks: self.blocks.min(bytes / 8),
            pages: self.pages.min(bytes / 8),
            inodes: self.inodes.min(bytes / 16),
            waiting: Some(bytes / 16),
        }
    }

    /// Blocks that transactions may have changed and that are not home.
    pub fn changed_blocks(&self, block_bytes: usize) -> usize {
        // Of a transaction, a quarter of them, there may be three more copies: of blocks that the next one changes while it is
        // committed, its records, and the copies from which they are made.
        self.changed.map_or(usize::MAX, |bytes| (bytes / 7 * 4) as usize / block_bytes)
    }

    /// Clean inodes in memory.
    pub fn inode_count(&self) -> usize {
        (self.inodes / NODE_BYTES).max(4) as usize
    }

    /// Files that may wait.
    pub fn waiting_count(&self) -> usize {
        self.waiting.map_or(usize::MAX, |bytes| (bytes / NODE_BYTES).max(4) as usize)
    }
}

impl Ext {
    /// Memory in use now.
    pub fn memory_use(&self) -> MemoryUse {
        let block = self.parts.metadata.media.width() as u64;
        let (all, changed) = self.parts.metadata.blocks.counts();
        let pages = self.parts.pages.as_ref().map_or(0, |pages| pages.counts().0);
        MemoryUse {
            dirty: self.parts.waiting.bytes(),
            changed: changed * block,
            cached: (all - changed + pages) * block,
            inodes: self.parts.nodes.len() as u64 * NODE_BYTES,
        }
    }
}
