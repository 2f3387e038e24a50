//! What can be wrong with a volume, as a survey finds it, and what mends it.

use super::super::finding::Finding;
use crate::fs::sfs::attributes::FileKind;

/// When a fault is mended: before all that could follow from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::fs::sfs::recovery) enum Stage {
    /// Inodes that are none.
    Inodes,
    /// Blocks and maps.
    Blocks,
    /// Blocks of directories.
    Directories,
    /// Names.
    Names,
    /// Who hangs where.
    Tree,
    /// Counts of an inode.
    Inode,
    /// Entries that nobody names.
    Leaks,
    /// Usage and counts of the volume.
    Sums,
}

/// Where a number of a map stands.
#[derive(Clone, Copy, Debug)]
pub(in crate::fs::sfs::recovery) enum Via {
    /// In a root of the inode.
    Root(usize),
    /// In a map block.
    Block(u64, usize),
}

/// What mends a fault.
#[derive(Clone, Debug)]
pub(in crate::fs::sfs::recovery) enum Mend {
    /// Nothing that could be done to a volume in use.
    Nothing,
    /// There is no root.
    MakeRoot,
    /// The inode is freed, and with it all that nobody else names.
    ClearInode(u64),
    /// The block is given up: reading it fails until it is written anew.
    GiveUp(u64),
    /// A number of a map cannot be: a block that is given up takes its place.
    Replace { inode: u64, number: u64, via: Via },
    /// A map block is damaged: what it named is looked for in the log.
    MapBlock { inode: u64, number: u64 },
    /// A directory has these blocks, in this order.
    Line { directory: u64, blocks: Vec<u64> },
    /// A block of a directory is made anew, of the names that it still holds.
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
    /// What lives in a segment is as it was counted.
    SetUsage(u32),
    /// So many entries of a page of the DAT are not free.
    CountPage { page: usize, counted: u8 },
    /// So many virtual blocks are in use.
    CountUsed(u64),
    /// Which inodes are in use is counted anew.
    CountInodes,
}

/// Something that is wrong, and what mends it.
#[derive(Clone, Debug)]
pub(in crate::fs::sfs::recovery) struct Fault {
    pub stage: Stage,
    pub finding: Finding,
    pub mend: Mend,
}
