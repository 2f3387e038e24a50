//! The check of a volume, and its repair: one walk over all structures that mends each fault in memory and reports it. A
//! check forgets the mended blocks; a repair writes them. So a check finds exactly the damage that a repair mends.
//!
//! The walk reads the medium through `format/` alone: it trusts nothing that a mount relies on.
//!
//! | pass | file | faults |
//! |---|---|---|
//! | groups | `groups` | descriptors; the places of bitmaps and inode tables |
//! | inodes | `inodes`, `maps`, `links`, `attributes`, `reserved` | inodes, their maps, symbolic links, extended attributes |
//! | shared | `rebuilding` | blocks that two files name, maps with damaged nodes: copies and new maps |
//! | names | `directories`, `index` | blocks of directories, their entries, hashed indexes |
//! | tree | `tree`, `indexing` | the root, directories and files without a name, `..`, counts of links; indexes of directories that were written anew |
//! | uses | `uses` | bad blocks; features that files use and the superblock does not name |
//! | sums | `sums` | bitmaps, and the counts of groups and of the superblock |
//!
//! A mend may lead to faults that an earlier pass finds, so a repair walks until a walk finds nothing. Bitmaps come last:
//! until then, blocks are free if no structure named them in this walk.

mod attributes;
mod directories;
mod fast;
mod groups;
mod index;
mod indexing;
mod inodes;
mod links;
mod log;
mod maps;
mod rebuilding;
mod repair;
mod reserved;
mod sums;
mod tree;
mod uses;

pub use repair::{check, repair};

use crate::device::HeldName;
use crate::fs::ext::allocation::bits;
use crate::fs::ext::blocks::Bytes;
use crate::fs::ext::format::group::Descriptor;
use crate::fs::ext::format::superblock::Superblock;
use crate::fs::ext::journal_below::JournalBelow;
use crate::fs::ext::parts::Parts;
use crate::fs::volume::{Damage, FileKind, Timestamp, VolumeError};
use crate::task::Task;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Findings at the most: a volume may be damaged all over.
const MOST_FINDINGS: usize = 1000;

/// A walk over a volume.
struct Check<'c> {
    parts: Parts,
    below: JournalBelow,
    task: &'c Task<'c>,
    now: Timestamp,
    superblock: Superblock,
    /// The superblock with which the check began.
    stored: Superblock,
    /// The superblock with the changes of the log, before anything was mended.
    begun: Superblock,
    /// The descriptors of all groups, mended.
    groups: Vec<Descriptor>,
    /// Blocks whose mended bytes are in memory.
    changed: BTreeSet<u64>,
    /// Inodes that a mount would free, or cut to their size.
    orphans: BTreeSet<u32>,
    /// Blocks in memory that the log has, and that a lost record of it may have revoked.
    doubtful: BTreeSet<u64>,
    /// The log that a repair leaves empty.
    log: Option<log::Log>,
    /// The journal was given up: a repair makes a new one.
    wants_journal: bool,
    walk: Walk,
    /// The name of memory that is given up.
    given_up: Option<HeldName>,
}

/// The state of one walk.
#[derive(Default)]
struct Walk {
    findings: Vec<Damage>,
    /// A bit for each block of the volume: a structure names it.
    used: Vec<u8>,
    /// A bit for each inode, from inode 1 on: it is in use.
    used_inodes: Vec<u8>,
    /// Files that a directory can name.
    files: BTreeMap<u32, FileEntry>,
    /// The number of names of an inode.
    named: BTreeMap<u32, u32>,
    /// Blocks of attributes, with the number of inodes that have them.
    attributes: BTreeMap<u64, u32>,
    /// Files whose map must be written anew, with the blocks in it that were already used by others.
    rebuilds: BTreeMap<u32, Vec<Range<u64>>>,
    /// Files whose block of attributes was already used by others.
    attribute_copies: Vec<u32>,
    /// The directories that name a directory.
    parents: BTreeMap<u32, Vec<u32>>,
    /// The `..` of each directory.
    dot_dots: BTreeMap<u32, u32>,
    /// Directories that were written anew, as lists.
    lists: BTreeSet<u32>,
    lost_and_found: Option<u32>,
    /// Files that are named by their inodes' numbers.
    numbered: BTreeSet<u32>,
    /// Groups whose inode tables lie in blocks of others.
    moved_tables: BTreeSet<u32>,
    /// Blocks that the device cannot hold.
    bad_blocks: Vec<Range<u64>>,
    /// Why the volume cannot be checked here after all.
    unknown: Option<String>,
    /// A file has extents, which the superblock may not say.
    has_extents: bool,
    /// A file has 2 GiB or more.
    has_long_files: bool,
    /// A directory has more links than its inode can count.
    has_many_links: bool,
    /// No block before this one is free.
    next_free: u64,
    /// Inodes are in use that the walk has not seen: it begins again.
    starts_again: bool,
}

/// A file in use.
#[derive(Clone, Copy, Debug)]
struct FileEntry {
    kind: FileKind,
    links: u16,
}

/// The seconds of a time, as inodes and superblocks keep them.
fn seconds(at: Timestamp) -> u32 {
    at.0.div_euclid(1_000_000_000).clamp(1, i64::from(u32::MAX)) as u32
}

impl Check<'_> {
    /// Notes a fault, and its mend.
    fn found(&mut self, what: impl Into<String>, mend: impl Into<String>) {
        if self.walk.findings.len() < MOST_FINDINGS {
            self.walk.findings.push(Damage { what: what.into(), repair: mend.into() });
        }
    }

    /// Reads a block, mended if it is. Its content is not checked.
    fn read(&self, block: u64) -> Result<Bytes, VolumeError> {
        self.parts.metadata.block(self.task, block, &|| format!("block {block}"), &|_| Ok(()))
    }

    /// Changes a block, in memory.
    fn write(&mut self, block: u64, bytes: Vec<u8>) {
        debug_assert_eq!(bytes.len(), self.parts.metadata.shape.block_bytes);
        self.parts.metadata.blocks.set(block, &bytes);
        self.changed.insert(block);
    }

    /// Marks blocks as used, and returns those of them that were used before.
    fn mark(&mut self, blocks: Range<u64>) -> Vec<Range<u64>> {
        let mut taken = Vec::new();
        let (mut at, end) = (blocks.start as u32, blocks.end as u32);
        while at < end {
            let first = bits::next_used(&self.walk.used, at, end).unwrap_or(end);
            bits::put(&mut self.walk.used, at..first, true);
            at = first;
            if first < end {
                at = bits::next_clear(&self.walk.used, first, end).unwrap_or(end);
                taken.push(u64::from(first)..u64::from(at));
            }
        }
        taken
    }

    /// Marks blocks as free.
    fn unmark(&mut self, blocks: Range<u64>) {
        bits::put(&mut self.walk.used, blocks.start as u32..blocks.end as u32, false);
        self.walk.next_free = self.walk.next_free.min(blocks.start);
    }

    fn is_used(&self, block: u64) -> bool {
        bits::is_set(&self.walk.used, block as u32)
    }

    /// Takes the first free block; `None` if no block is free.
    fn take_block(&mut self) -> Option<u64> {
        let end = self.parts.metadata.shape.blocks as u32;
        let block = bits::next_clear(&self.walk.used, self.walk.next_free as u32, end)?;
        bits::put(&mut self.walk.used, block..block + 1, true);
        self.walk.next_free = u64::from(block) + 1;
        Some(block.into())
    }

    /// Walks over the volume once. Mended blocks stay in memory.
    fn walk(&mut self) -> Result<(), VolumeError> {
        loop {
            let shape = &self.parts.metadata.shape;
            self.walk = Walk {
                used: vec![0; (shape.blocks as usize).div_ceil(8)],
                used_inodes: vec![0; shape.inodes as usize / 8],
                findings: std::mem::take(&mut self.walk.findings),
                next_free: shape.first_data_block,
                ..Walk::default()
            };
            self.place_groups()?;
            self.place_bad_blocks()?;
            self.inodes()?;
            self.place_missing()?;
            self.rebuild_maps()?;
            self.directories()?;
            if !self.walk.starts_again {
                break;
            }
        }
        self.tree()?;
        self.count_links()?;
        self.features();
        self.sums()
    }
}
