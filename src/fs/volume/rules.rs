//! Rules that a volume calls while it holds its locks, so that no other call changes a file between check and
//! operation.
//!
//! One call may ask its rule more than once. A rule changes nothing itself; the volume does nothing that its rule
//! refuses.

use super::Renaming;
use super::attributes::{Attributes, Change, InodeNumber};
use super::error::VolumeError;

/// The files of a call, under the locks of that call.
pub trait Locked {
    /// The attributes of a file.
    fn attributes(&mut self, inode: InodeNumber) -> Result<Attributes, VolumeError>;

    /// The value of an extended attribute; `None` if there is none.
    fn extended_attribute(&mut self, inode: InodeNumber, name: &[u8]) -> Result<Option<Vec<u8>>, VolumeError>;
}

/// Returns the change of the call's file; `None` for no change. It may inspect only that file.
pub type ChangeRule<'r, 'c> = &'r mut dyn FnMut(&mut dyn Locked) -> Result<Option<Change<'c>>, VolumeError>;

/// The files that the names of a call refer to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The file of the name; of a rename, the old name. `None` if the name is free.
    pub file: Option<InodeNumber>,
    /// The file of a rename's new name; `None` if it is free.
    pub existing: Option<InodeNumber>,
}

/// Permits or refuses a change of names. It may inspect the directories of the call and the files found in them. The
/// volume asks it before its own checks, except those of invalid names.
pub type NameRule<'r> = &'r mut dyn FnMut(&mut dyn Locked, Found) -> Result<(), VolumeError>;

/// Permits or refuses a rename, or changes its options: the owner of a whiteout depends on the directory. It may
/// inspect the same files as a [`NameRule`], and is asked at the same point.
pub type RenameRule<'r> = &'r mut dyn FnMut(&mut dyn Locked, Found) -> Result<Renaming, VolumeError>;

/// Properties that a new file inherits from its directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inherited {
    /// The low twelve bits of the mode.
    pub permissions: u16,
    /// The owning group.
    pub group: u32,
    /// Initial extended attributes: name and value.
    pub attributes: Vec<(&'static [u8], Vec<u8>)>,
}

/// Returns what a new file inherits, or refuses it. It may inspect the directory and the file of the name.
pub type NewFileRule<'r> = &'r mut dyn FnMut(&mut dyn Locked, Found) -> Result<Inherited, VolumeError>;
