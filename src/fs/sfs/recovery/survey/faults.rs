//! Faults that a survey can find, and their mends.

use super::super::finding::Finding;
use crate::fs::sfs::files::attributes::FileKind;

/// The stage in which a fault is mended: before all that could follow from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::fs::sfs::recovery) enum Stage {
    /// Inodes that cannot be.
    Inodes,
    /// Blocks and maps.
    Blocks,
    /// Blocks of directories.
    Directories,
    /// Names.
    Names,
    /// Inodes without a name.
    Tree,
    /// Counts and parent of an inode.
    Inode,
    /// DAT entries that nothing names.
    Leaks,
    /// Usage and counts of the volume.
    Sums,
}

/// The place of a number in a map.
#[derive(Clone, Copy, Debug)]
pub(in crate::fs::sfs::recovery) enum Via {
    /// In a root of the inode.
    Root(usize),
    /// In a map block.
    Block(u64, usize),
}

/// The mend of a fault.
#[derive(Clone, Debug)]
pub(in crate::fs::sfs::recovery) enum Mend {
    /// None: a lenient opener has corrected it in memory, and the next checkpoint writes it.
    Nothing,
    /// A new root is made.
    MakeRoot,
    /// The inode is freed, and with it all that nothing else names.
    ClearInode(u64),
    /// The block is given up: reading it fails until it is written anew.
    GiveUp(u64),
    /// A block that is given up takes the place of a number that cannot be.
    Replace { inode: u64, number: u64, via: Via },
    /// A map block is rebuilt from block records, or given up.
    MapBlock { inode: u64, number: u64 },
    /// A directory has these blocks, in this order.
    Line { directory: u64, blocks: Vec<u64> },
    /// A block of a directory is rewritten with the names that it still holds.
    Rewrite { directory: u64, number: u64, place: u64 },
    /// Extended attributes are taken away.
    DropAttributes(u64),
    /// The name at a place of a directory is taken away.
    DropName { directory: u64, place: u64 },
    /// The name at a place of a directory gets this kind.
    SetKind { directory: u64, place: u64, inode: u64, kind: FileKind },
    /// A directory lies in this one.
    SetParent { directory: u64, parent: u64 },
    /// An inode gets a name in lost+found.
    Reconnect(u64),
    /// An inode has so many names.
    SetLinks { inode: u64, links: u32 },
    /// An inode has so many blocks.
    SetBlocks { inode: u64, blocks: u64 },
    /// Virtual blocks are freed.
    Free(Vec<u64>),
    /// The usage of a segment is set as the survey counted it.
    SetUsage(u32),
    /// So many entries of a page of the DAT are not free.
    CountPage { page: usize, counted: u8 },
    /// So many virtual blocks are in use.
    CountUsed(u64),
    /// Inodes in use are counted anew.
    CountInodes,
}

/// A finding, its stage and its mend.
#[derive(Clone, Debug)]
pub(in crate::fs::sfs::recovery) struct Fault {
    pub stage: Stage,
    pub finding: Finding,
    pub mend: Mend,
}
