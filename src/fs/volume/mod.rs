//! [`Volume`]: the seam of a mounted file system, by inode and name.
//!
//! Many threads share a volume by `&self`, and it locks what it must, inside. Each call says who makes it and when it
//! begins ([`Call`]); when it is answered, the clock of its task says when it is done. A volume holds no rule that is
//! every file system's: who may do what, which bits a change takes away, what a new file inherits. They stand once, in
//! [`posix`](super::posix). Where a rule looks at a file and then something is done to it, the volume takes the rule
//! along, and asks it behind its own gates (`rules`): nobody comes between the look and the deed.
//!
//! | file | content |
//! |---|---|
//! | `call` | who makes a call, and when |
//! | `attributes` | what is known of a file, and what of it is changed |
//! | `times` | its time stamps, and which event sets which |
//! | `limits` | the limits that are Linux's, and what a name may be |
//! | `rules` | what a volume asks behind its gates |
//! | `error` | why a call fails |
//! | `steps` | the CPU time of each kind of call |

mod attributes;
mod call;
mod error;
mod limits;
mod rules;
pub mod steps;
mod times;

pub use attributes::{
    Attributes, Change, DirectoryEntry, ExtendedChange, FileKind, InodeNumber, NewFile, Space, Taken,
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

/// A name in a directory.
pub type Name<'n> = (InodeNumber, &'n [u8]);

/// True if the inodes of the answer are held until they are [forgotten](Volume::forget).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// They are: they stay, even without a name.
    Yes,
    /// They are not.
    No,
}

/// The work of fallocate on a range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// Its blocks are reserved, and what is not stored reads as zeros. The file grows to its end, or not.
    Reserve {
        /// The file does not grow.
        keep_size: bool,
    },
    /// Its bytes read as zeros, and its whole blocks are given back.
    Punch,
    /// Its bytes read as zeros, and its blocks are reserved.
    Zero {
        /// The file does not grow.
        keep_size: bool,
    },
}

/// The target of a seek.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seek {
    /// A byte that is stored.
    Data,
    /// One that is not. The end of a file counts as a hole.
    Hole,
}

/// The options of a rename.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renaming {
    /// The outcome if the new name is taken.
    pub taken: Taken,
    /// The user and the group of a whiteout that is left under the old name (`RENAME_WHITEOUT`): a character device 0,
    /// which overlayfs takes for "nothing is here, whatever a lower layer says". An exchange leaves none.
    pub whiteout: Option<(u32, u32)>,
}

/// The answer to a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadBytes {
    /// Bytes read: less than asked for only at the end of the file.
    pub length: usize,
    /// The time stamps as they were then. The volume notes no read: who reads does, with [`Volume::change`].
    pub times: Times,
}

/// An entry of a directory that is listed with what is known of its file.
#[derive(Clone, Copy, Debug)]
pub struct FullEntry<'a> {
    /// The entry.
    pub entry: DirectoryEntry<'a>,
    /// The attributes of the file.
    pub attributes: Attributes,
}

/// Takes entries of a directory, until it answers false.
pub type TakeEntry<'t> = &'t mut dyn FnMut(DirectoryEntry<'_>) -> bool;
/// The same with attributes.
pub type TakeFullEntry<'t> = &'t mut dyn FnMut(&FullEntry<'_>) -> bool;

/// The state of a volume that its user should know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Why it can only be read, if so.
    pub read_only: Option<String>,
    /// Damage that the mount has found.
    pub damage: Vec<Damage>,
    /// True if the mount before this one lost something, and could leave a mark.
    pub has_lost_before: bool,
}

/// Something that is wrong with a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The place, the value there, and the right one.
    pub what: String,
    /// The remedy that a repair applies.
    pub repair: String,
}

/// A mounted file system, as calls by inode and name, which threads share.
///
/// A call that fails leaves the volume as it was. A name is one component of a path: from 1 to 255 bytes, no `/` and no
/// zero. What is answered may still be lost in a cut of power until [`sync_file`](Volume::sync_file) or
/// [`sync`](Volume::sync) has returned.
pub trait Volume: Send + Sync {
    /// The file of this name in a directory. (`.` and `..` are names, too.)
    fn lookup(&self, call: &Call, name: Name, hold: Hold) -> Result<Attributes, VolumeError>;

    /// The attributes of a file.
    fn attributes(&self, call: &Call, inode: InodeNumber) -> Result<Attributes, VolumeError>;

    /// Changes what is known of a file, its size among it, as the rule says.
    fn change(&self, call: &Call, inode: InodeNumber, rule: ChangeRule) -> Result<Attributes, VolumeError>;

    /// Makes a file, a directory, a symbolic link, a pipe, a socket or a device. What it has of its directory the rule
    /// says; without one it is made as `new` says.
    fn make(
        &self,
        call: &Call,
        name: Name,
        new: &NewFile,
        hold: Hold,
        rule: Option<NewFileRule>,
    ) -> Result<Attributes, VolumeError>;

    /// Gives a file one more name.
    fn link(
        &self,
        call: &Call,
        inode: InodeNumber,
        name: Name,
        hold: Hold,
        rule: Option<NameRule>,
    ) -> Result<Attributes, VolumeError>;

    /// Takes the name of what is no directory away. Without a name, and with nobody holding it, a file is freed.
    fn unlink(&self, call: &Call, name: Name, rule: Option<NameRule>) -> Result<(), VolumeError>;

    /// Removes an empty directory.
    fn remove_directory(&self, call: &Call, name: Name, rule: Option<NameRule>) -> Result<(), VolumeError>;

    /// Renames, at once: nobody sees a half of it, nor does a mount after a crash. `how` counts without a rule.
    fn rename(
        &self,
        call: &Call,
        from: Name,
        to: Name,
        how: Renaming,
        rule: Option<RenameRule>,
    ) -> Result<(), VolumeError>;

    /// The target of a symbolic link, and its time stamps as they were then.
    fn target(&self, call: &Call, inode: InodeNumber) -> Result<(Vec<u8>, Times), VolumeError>;

    /// Lists a directory from `from` on (0, or an entry's `next`), `.` and `..` first, until `take` answers false.
    /// Entries that are there all the time are listed once each.
    fn list(&self, call: &Call, directory: InodeNumber, from: u64, take: TakeEntry) -> Result<Times, VolumeError>;

    /// The same with attributes. What is taken is held, if `hold` says so, but for `.` and `..`.
    fn list_with_attributes(
        &self,
        call: &Call,
        directory: InodeNumber,
        from: u64,
        hold: Hold,
        take: TakeFullEntry,
    ) -> Result<Times, VolumeError>;

    /// Reads from `offset` on.
    fn read(&self, call: &Call, inode: InodeNumber, offset: u64, bytes: &mut [u8]) -> Result<ReadBytes, VolumeError>;

    /// Writes all of `bytes` from `offset` on. The file grows where it must. `rule`: what else is changed with it.
    fn write(
        &self,
        call: &Call,
        inode: InodeNumber,
        offset: u64,
        bytes: &[u8],
        rule: Option<ChangeRule>,
    ) -> Result<(), VolumeError>;

    /// Reserves or gives back `length` bytes from `offset` on. `rule`: what else is changed with it.
    fn allocate(
        &self,
        call: &Call,
        inode: InodeNumber,
        range: (u64, u64),
        how: Allocation,
        rule: Option<ChangeRule>,
    ) -> Result<(), VolumeError>;

    /// The next byte from `offset` on that is stored, or that is not. `None`: there is none before the end (ENXIO).
    fn seek(&self, call: &Call, inode: InodeNumber, offset: u64, what: Seek) -> Result<Option<u64>, VolumeError>;

    /// The value of an extended attribute. They are set with [`change`](Volume::change).
    fn extended_attribute(&self, call: &Call, inode: InodeNumber, name: &[u8]) -> Result<Vec<u8>, VolumeError>;

    /// The names of all extended attributes of a file.
    fn extended_attributes(&self, call: &Call, inode: InodeNumber) -> Result<Vec<Vec<u8>>, VolumeError>;

    /// Makes a file durable, with its name.
    fn sync_file(&self, call: &Call, inode: InodeNumber, what: Durable) -> Result<(), VolumeError>;

    /// Makes everything durable.
    fn sync(&self, call: &Call) -> Result<(), VolumeError>;

    /// Holds on to an inode: it stays while anyone does, even without a name. (The root stays without being held.)
    fn hold(&self, call: &Call, inode: InodeNumber) -> Result<Attributes, VolumeError>;

    /// Lets an inode go that was held `times` times.
    fn forget(&self, call: &Call, inode: InodeNumber, times: u64) -> Result<(), VolumeError>;

    /// The space: all, and free.
    fn space(&self, call: &Call) -> Result<Space, VolumeError>;

    /// Does a bounded piece of what is due in the background. Answers when there will be more; `None`: not before it is
    /// asked for something.
    fn work(&self, call: &Call) -> Result<Option<Time>, VolumeError>;

    /// True if something has changed that is not durable, and can become so.
    fn is_changed(&self, call: &Call) -> bool;

    /// Ends in good order: all is durable, and the devices are let go. Each call that comes later fails.
    ///
    /// # Errors
    ///
    /// [`VolumeError::Lost`] if a write or flush has failed since the mount: what that has cost.
    fn unmount(&self, call: &Call) -> Result<(), VolumeError>;

    /// The account of it and of the stations below it since it was mounted.
    fn account(&self, call: &Call) -> Result<Account, VolumeError>;

    /// The state that its user should know.
    fn state(&self, call: &Call) -> Result<State, VolumeError>;

    /// The volume's own number, by which it is known from others.
    fn number(&self) -> [u8; 16];

    /// True if its calls take all of their time: what is below it has a timing model, or nothing is below it.
    fn is_timed(&self) -> bool;

    /// The wall clock's time at an instant of the volume's.
    fn timestamp(&self, at: Time) -> Timestamp;
}
