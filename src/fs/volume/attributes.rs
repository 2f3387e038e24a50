//! Attributes of a file, and changes of them.

use super::times::{Times, Timestamp};
use std::borrow::Cow;

/// The number of an inode. 1 is the root's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InodeNumber(pub u64);

impl InodeNumber {
    /// The root directory.
    pub const ROOT: InodeNumber = InodeNumber(1);
}

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FileKind {
    /// Bytes.
    Regular = 1,
    /// Names.
    Directory = 2,
    /// Another path.
    Symlink = 3,
    /// A pipe.
    Fifo = 4,
    /// A socket.
    Socket = 5,
    /// A device of characters.
    CharacterDevice = 6,
    /// A device of blocks.
    BlockDevice = 7,
}

impl FileKind {
    /// The kind with this number.
    pub fn of_number(number: u8) -> Option<FileKind> {
        Some(match number {
            1 => FileKind::Regular,
            2 => FileKind::Directory,
            3 => FileKind::Symlink,
            4 => FileKind::Fifo,
            5 => FileKind::Socket,
            6 => FileKind::CharacterDevice,
            7 => FileKind::BlockDevice,
            _ => return None,
        })
    }
}

/// The attributes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Its inode.
    pub inode: InodeNumber,
    /// The generation, which tells it from all files that had the inode's number before.
    pub generation: u32,
    /// The kind.
    pub kind: FileKind,
    /// The low twelve bits of its mode: permissions, set-id and sticky bits.
    pub permissions: u16,
    /// Names it has; of a directory 2 and one for each directory in it.
    pub links: u32,
    /// The owner.
    pub user: u32,
    /// The owning group.
    pub group: u32,
    /// The device that it stands for (`st_rdev`).
    pub device: u64,
    /// Bytes.
    pub size: u64,
    /// 4 KiB blocks that it has.
    pub blocks: u64,
    /// Its time stamps.
    pub times: Times,
}

/// A change of attributes; those that are `None` stay. The time of change becomes now, unless it is given.
#[derive(Clone, Debug, Default)]
pub struct Change<'c> {
    /// The low twelve bits of the mode.
    pub permissions: Option<u16>,
    /// The owner.
    pub user: Option<u32>,
    /// The owning group.
    pub group: Option<u32>,
    /// Bytes: it is cut off, or lengthened by zeros.
    pub size: Option<u64>,
    /// When it was read.
    pub accessed: Option<Timestamp>,
    /// When its bytes changed.
    pub modified: Option<Timestamp>,
    /// When anything of it changed.
    pub changed: Option<Timestamp>,
    /// Extended attributes that are set or taken away, together with the permissions: a crash leaves both or neither.
    pub extended: Vec<ExtendedChange<'c>>,
}

/// An extended attribute that is set or taken away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtendedChange<'c> {
    /// Its name, with its namespace.
    pub name: &'c [u8],
    /// Its new value; `None`: it is taken away. One that is not there stays away, which is no error.
    pub value: Option<Cow<'c, [u8]>>,
}

/// A file that is to be made.
#[derive(Clone, Copy, Debug)]
pub struct NewFile<'a> {
    /// The kind.
    pub kind: FileKind,
    /// The low twelve bits of its mode.
    pub permissions: u16,
    /// The owner.
    pub user: u32,
    /// The owning group, unless the directory's set-group-id bit says otherwise.
    pub group: u32,
    /// The device that it stands for.
    pub device: u64,
    /// The target of a symbolic link; empty for all else.
    pub target: &'a [u8],
    /// Extended attributes that it has from the beginning, each a name and a value.
    pub attributes: &'a [(&'a [u8], &'a [u8])],
}

/// The outcome of a rename to a name that is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The file that has it loses it.
    Replace,
    /// Nothing: it fails (`RENAME_NOREPLACE`).
    Refuse,
    /// Both change names (`RENAME_EXCHANGE`).
    Exchange,
}

/// An entry of a directory, as it is listed.
#[derive(Clone, Copy, Debug)]
pub struct DirectoryEntry<'a> {
    /// The place in the listing behind it.
    pub next: u64,
    /// The inode.
    pub inode: InodeNumber,
    /// The kind.
    pub kind: FileKind,
    /// The name.
    pub name: &'a [u8],
}

impl DirectoryEntry<'_> {
    /// True if it is the directory itself, or its parent.
    pub fn is_dot(&self) -> bool {
        self.name == b"." || self.name == b".."
    }
}

/// The space of a volume, in blocks of 4 KiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// Blocks that files can have.
    pub blocks: u64,
    /// Of which so many are free.
    pub free_blocks: u64,
    /// Of which a file can have so many, beside what its map and the entries of its blocks take.
    pub available_blocks: u64,
    /// Inodes that there can be.
    pub inodes: u64,
    /// Of which so many are free, for files with names of up to 12 bytes.
    pub free_inodes: u64,
}
