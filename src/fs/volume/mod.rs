//! [`Volume`]: the seam of a mounted file system, by inode and name.
//!
//! Threads share a volume by `&self`; it locks internally. Each call names its caller and its task ([`Call`]); the
//! task's clock gives the start of the call, and is advanced to its completion. Rules common to all file systems are
//! not part of a volume: permissions, set-id bits cleared by a change, inheritance from a directory. They are in
//! [`posix`](super::posix). Where a rule inspects a file before an operation, the volume receives the rule and calls it
//! while it holds its own locks (`rules`), so that no other call intervenes.
//!
//! | file | content |
//! |---|---|
//! | `call` | the caller and the time of a call |
//! | `attributes` | attributes of files, and changes of them |
//! | `times` | time stamps, and the events that set them |
//! | `limits` | limits of Linux, and the rules for names |
//! | `rules` | rules that a volume calls while it holds its locks |
//! | `error` | errors of calls |
//! | `steps` | the CPU time of each kind of call |

mod attributes;
mod call;
mod error;
mod limits;
mod rules;
pub mod steps;
mod times;

pub use attributes::{
    Attributes, Change, DirectoryEntry, ExtendedChange, FileKind, IfExists, InodeNumber, NewFile, Space,
};
pub use call::{Call, Caller};
pub use error::{Lost, VolumeError};
pub use limits::{
    LONGEST_FILE, LONGEST_LIST, LONGEST_NAME, LONGEST_TARGET, LONGEST_VALUE, MOST_LINKS, check_name, check_removed_name,
};
pub use rules::{ChangeRule, Found, Inherited, Locked, NameRule, NewFileRule, RenameRule};
pub use times::{Times, Timestamp};

use super::Durable;
use crate::device::Account;
use crate::time::Time;

/// A name in a directory: the directory and the name.
pub type Name<'n> = (InodeNumber, &'n [u8]);

/// Chooses whether a call takes a reference to the inode it returns, until [`forget`](Volume::forget) drops it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Takes a reference: the inode exists until it is dropped, even without a name.
    Yes,
    /// Takes no reference.
    No,
}

/// The operation of fallocate on a range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// Reserves blocks; unwritten bytes read as zeros. The file is extended to the end of the range unless `keep_size`.
    Reserve {
        /// True if the file keeps its size.
        keep_size: bool,
    },
    /// Punches a hole: bytes read as zeros, and whole blocks are freed.
    Punch,
    /// Zeroes the range and keeps its blocks reserved.
    Zero {
        /// True if the file keeps its size.
        keep_size: bool,
    },
}

/// The kind of byte that a seek finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seek {
    /// A stored byte.
    Data,
    /// A byte that is not stored. The end of the file counts as a hole.
    Hole,
}

/// The options of a rename.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renaming {
    /// The effect if the new name exists.
    pub if_exists: IfExists,
    /// User and group of a whiteout left under the old name (`RENAME_WHITEOUT`): character device 0, which for
    /// overlayfs hides the name in lower layers. An exchange leaves none.
    pub whiteout: Option<(u32, u32)>,
}

/// The answer to a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadBytes {
    /// Bytes read: fewer than requested only at the end of the file.
    pub length: usize,
    /// Time stamps at the time of the read. A volume does not update the access time; callers do, with
    /// [`Volume::change`].
    pub times: Times,
}

/// A directory entry with the attributes of its file.
#[derive(Clone, Copy, Debug)]
pub struct FullEntry<'a> {
    /// The entry.
    pub entry: DirectoryEntry<'a>,
    /// The attributes of the file.
    pub attributes: Attributes,
}

/// Consumes entries of a directory; false ends the listing.
pub type TakeEntry<'t> = &'t mut dyn FnMut(DirectoryEntry<'_>) -> bool;
/// Consumes entries with attributes; false ends the listing.
pub type TakeFullEntry<'t> = &'t mut dyn FnMut(&FullEntry<'_>) -> bool;

/// The condition of a volume, for its user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The reason why the volume is read-only, if it is.
    pub read_only: Option<String>,
    /// Damage found by the mount.
    pub damage: Vec<Damage>,
    /// True if the previous mount lost changes and marked the volume.
    pub has_lost_before: bool,
}

/// A fault of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The structure, the stored value, and the right one.
    pub what: String,
    /// The action of a repair.
    pub repair: String,
}

/// A mounted file system, shared by threads: calls by inode and name.
///
/// A failed call leaves the volume unchanged. A name is one component of a path: 1 to 255 bytes without `/` and zero.
/// Acknowledged changes can be lost in a power cut until [`sync_file`](Volume::sync_file) or [`sync`](Volume::sync)
/// returns.
pub trait Volume: Send + Sync {
    /// Looks up a name in a directory. (`.` and `..` are names, too.)
    fn lookup(&self, call: &Call, name: Name, hold: Hold) -> Result<Attributes, VolumeError>;

    /// The attributes of a file.
    fn attributes(&self, call: &Call, inode: InodeNumber) -> Result<Attributes, VolumeError>;

    /// Changes the attributes of a file, including its size, as `rule` says.
    fn change(&self, call: &Call, inode: InodeNumber, rule: ChangeRule) -> Result<Attributes, VolumeError>;

    /// Creates a file, directory, symbolic link, pipe, socket or device. `rule` gives what it inherits from its
    /// directory; without a rule, `new` is used unchanged.
    fn make(
        &self,
        call: &Call,
        name: Name,
        new: &NewFile,
        hold: Hold,
        rule: Option<NewFileRule>,
    ) -> Result<Attributes, VolumeError>;

    /// Adds a hard link to a file.
    fn link(
        &self,
        call: &Call,
        inode: InodeNumber,
        name: Name,
        hold: Hold,
        rule: Option<NameRule>,
    ) -> Result<Attributes, VolumeError>;

    /// Removes the name of a file that is not a directory. A file without names and references is freed.
    fn unlink(&self, call: &Call, name: Name, rule: Option<NameRule>) -> Result<(), VolumeError>;

    /// Removes an empty directory.
    fn remove_directory(&self, call: &Call, name: Name, rule: Option<NameRule>) -> Result<(), VolumeError>;

    /// Renames atomically, for other calls and for a mount after a crash. `how` is used unless `rule` replaces it.
    fn rename(
        &self,
        call: &Call,
        from: Name,
        to: Name,
        how: Renaming,
        rule: Option<RenameRule>,
    ) -> Result<(), VolumeError>;

    /// The target of a symbolic link, and its time stamps at the time of the read.
    fn target(&self, call: &Call, inode: InodeNumber) -> Result<(Vec<u8>, Times), VolumeError>;

    /// Lists a directory from offset `from` (0, or an entry's `next`), `.` and `..` first, until `take` returns false.
    /// Entries that exist throughout are listed exactly once.
    fn list(&self, call: &Call, directory: InodeNumber, from: u64, take: TakeEntry) -> Result<Times, VolumeError>;

    /// Lists with attributes. With [`Hold::Yes`], takes a reference to each listed inode except `.` and `..`.
    fn list_with_attributes(
        &self,
        call: &Call,
        directory: InodeNumber,
        from: u64,
        hold: Hold,
        take: TakeFullEntry,
    ) -> Result<Times, VolumeError>;

    /// Reads from `offset`.
    fn read(&self, call: &Call, inode: InodeNumber, offset: u64, bytes: &mut [u8]) -> Result<ReadBytes, VolumeError>;

    /// Writes all of `bytes` at `offset`. The file grows as needed. `rule` gives a change of attributes made with the
    /// write.
    fn write(
        &self,
        call: &Call,
        inode: InodeNumber,
        offset: u64,
        bytes: &[u8],
        rule: Option<ChangeRule>,
    ) -> Result<(), VolumeError>;

    /// Reserves, zeroes or punches `length` bytes from `offset`. `rule` gives a change of attributes made with it.
    fn allocate(
        &self,
        call: &Call,
        inode: InodeNumber,
        range: (u64, u64),
        how: Allocation,
        rule: Option<ChangeRule>,
    ) -> Result<(), VolumeError>;

    /// The next stored or unstored byte from `offset`; `None` if there is none before the end (ENXIO).
    fn seek(&self, call: &Call, inode: InodeNumber, offset: u64, what: Seek) -> Result<Option<u64>, VolumeError>;

    /// The value of an extended attribute. [`change`](Volume::change) sets attributes.
    fn extended_attribute(&self, call: &Call, inode: InodeNumber, name: &[u8]) -> Result<Vec<u8>, VolumeError>;

    /// The names of all extended attributes of a file.
    fn extended_attributes(&self, call: &Call, inode: InodeNumber) -> Result<Vec<Vec<u8>>, VolumeError>;

    /// Makes a file and its names durable.
    fn sync_file(&self, call: &Call, inode: InodeNumber, what: Durable) -> Result<(), VolumeError>;

    /// Puts a file in order: after a crash it has what it has now, and its names, if anything is there that a call has changed
    /// which began after this one had returned. Nothing need be durable by then. By default it is, which promises more.
    fn order_file(&self, call: &Call, inode: InodeNumber, what: Durable) -> Result<(), VolumeError> {
        self.sync_file(call, inode, what)
    }

    /// Makes everything durable.
    fn sync(&self, call: &Call) -> Result<(), VolumeError>;

    /// Takes a reference to an inode, which then exists even without a name. (The root needs no reference.)
    fn hold(&self, call: &Call, inode: InodeNumber) -> Result<Attributes, VolumeError>;

    /// Drops `times` references to an inode.
    fn forget(&self, call: &Call, inode: InodeNumber, times: u64) -> Result<(), VolumeError>;

    /// Total and free space.
    fn space(&self, call: &Call) -> Result<Space, VolumeError>;

    /// Does a bounded piece of background work, and returns the time of the next one; `None` if none is due before the
    /// next call.
    fn work(&self, call: &Call) -> Result<Option<Time>, VolumeError>;

    /// Lends a thread that has no other work, for a while, to watch over something that other threads wait for. True if it
    /// is to be lent again at once. Most volumes need none.
    fn watch(&self, _call: &Call) -> bool {
        false
    }

    /// The number of threads that can do its background work, and watch, at the same time.
    fn workers(&self) -> usize {
        1
    }

    /// True if some change is not durable and can still be stored.
    fn is_changed(&self, call: &Call) -> bool;

    /// Unmounts: makes all changes durable and closes the devices. Later calls fail.
    ///
    /// # Errors
    ///
    /// [`VolumeError::Lost`] if a write or flush failed since the mount; it holds the lost changes.
    fn unmount(&self, call: &Call) -> Result<(), VolumeError>;

    /// The accounts of the volume and of the stations below since the mount.
    fn account(&self, call: &Call) -> Result<Account, VolumeError>;

    /// The condition of the volume, for its user.
    fn state(&self, call: &Call) -> Result<State, VolumeError>;

    /// The identifier of the volume.
    fn number(&self) -> [u8; 16];

    /// True if calls take their whole time: the device below has a timing model, or there is none.
    fn is_timed(&self) -> bool;

    /// The wall-clock time at a time of the volume.
    fn timestamp(&self, at: Time) -> Timestamp;
}
