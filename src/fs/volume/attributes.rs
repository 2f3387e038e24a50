//! Attributes of files, and changes of them.

use super::times::{Times, Timestamp};
use std::borrow::Cow;

/// An inode number. 1 is the root.
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
    /// A regular file: bytes.
    Regular = 1,
    /// A directory: names.
    Directory = 2,
    /// A symbolic link: a path.
    Symlink = 3,
    /// A pipe.
    Fifo = 4,
    /// A socket.
    Socket = 5,
    /// A character device.
    CharacterDevice = 6,
    /// A block device.
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
    /// The generation: distinguishes the file from earlier files with the same inode number.
    pub generation: u32,
    /// The kind.
    pub kind: FileKind,
    /// The low twelve bits of the mode: permissions, set-id and sticky bits.
    pub permissions: u16,
    /// Number of hard links; for a directory 2 plus the number of its subdirectories.
    pub links: u32,
    /// The owner.
    pub user: u32,
    /// The owning group.
    pub group: u32,
    /// The device number of a device file (`st_rdev`).
    pub device: u64,
    /// Size in bytes.
    pub size: u64,
    /// Allocated blocks of 4 KiB.
    pub blocks: u64,
    /// Time stamps.
    pub times: Times,
}

/// A change of attributes. Attributes that are `None` stay; the change time (ctime) becomes the current time unless
/// given.
#[derive(Clone, Debug, Default)]
pub struct Change<'c> {
    /// The low twelve bits of the mode.
    pub permissions: Option<u16>,
    /// The owner.
    pub user: Option<u32>,
    /// The owning group.
    pub group: Option<u32>,
    /// Size in bytes: the file is truncated, or extended with zeros.
    pub size: Option<u64>,
    /// Access time (atime).
    pub accessed: Option<Timestamp>,
    /// Modification time of the data (mtime).
    pub modified: Option<Timestamp>,
    /// Change time of data or attributes (ctime).
    pub changed: Option<Timestamp>,
    /// Extended attributes to set or remove, atomically with the permissions: a crash leaves both changes or neither.
    pub extended: Vec<ExtendedChange<'c>>,
}

/// An extended attribute to set or remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtendedChange<'c> {
    /// The name with its namespace.
    pub name: &'c [u8],
    /// The new value; `None` removes the attribute. Removing a missing attribute is no error.
    pub value: Option<Cow<'c, [u8]>>,
}

/// A file to create.
#[derive(Clone, Copy, Debug)]
pub struct NewFile<'a> {
    /// The kind.
    pub kind: FileKind,
    /// The low twelve bits of the mode.
    pub permissions: u16,
    /// The owner.
    pub user: u32,
    /// The owning group, unless the directory has the set-group-id bit.
    pub group: u32,
    /// The device number of a device file.
    pub device: u64,
    /// The target of a symbolic link; empty for other kinds.
    pub target: &'a [u8],
    /// Initial extended attributes: name and value.
    pub attributes: &'a [(&'a [u8], &'a [u8])],
}

/// The effect of a rename if the new name exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfExists {
    /// Unlink the file that has the name.
    Replace,
    /// Fail (`RENAME_NOREPLACE`).
    Refuse,
    /// Swap both names (`RENAME_EXCHANGE`).
    Exchange,
}

/// A directory entry in a listing.
#[derive(Clone, Copy, Debug)]
pub struct DirectoryEntry<'a> {
    /// The offset of the next entry in the listing.
    pub next: u64,
    /// The inode number.
    pub inode: InodeNumber,
    /// The kind.
    pub kind: FileKind,
    /// The name.
    pub name: &'a [u8],
}

impl DirectoryEntry<'_> {
    /// True for `.` and `..`.
    pub fn is_dot(&self) -> bool {
        self.name == b"." || self.name == b".."
    }
}

/// The space of a volume, in blocks of 4 KiB (statfs).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// Total blocks for files.
    pub blocks: u64,
    /// Free blocks.
    pub free_blocks: u64,
    /// Blocks that one file can still allocate, without its map and its entries in metadata.
    pub available_blocks: u64,
    /// Maximum number of inodes.
    pub inodes: u64,
    /// Free inodes, for files with names of up to 12 bytes.
    pub free_inodes: u64,
}
