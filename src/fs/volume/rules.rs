//! Rules that a volume asks behind its gates: nobody changes a file between the look at it and the deed.
//!
//! A rule may be asked more than once for one call, and must not change anything itself. What it refuses is not done.

use super::Renaming;
use super::attributes::{Attributes, Change, InodeNumber};
use super::error::VolumeError;

/// The files of a call, as they are behind the gates that the call has gone through.
pub trait Locked {
    /// The attributes of a file.
    fn attributes(&mut self, inode: InodeNumber) -> Result<Attributes, VolumeError>;

    /// The value of an extended attribute; `None` if there is none of this name.
    fn extended_attribute(&mut self, inode: InodeNumber, name: &[u8]) -> Result<Option<Vec<u8>>, VolumeError>;
}

/// Says the change of the file that the call is about; `None`: there is none. It may look at that file alone.
pub type ChangeRule<'r, 'c> = &'r mut dyn FnMut(&mut dyn Locked) -> Result<Option<Change<'c>>, VolumeError>;

/// The files that the names of a call have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The one with the name; of a rename, with the old one. `None`: nothing has it.
    pub file: Option<InodeNumber>,
    /// Of a rename, the one with the new name.
    pub there: Option<InodeNumber>,
}

/// Refuses a change of names. It may look at the directories of the call and at the files that were found in them. It
/// is asked before the volume itself refuses anything but names that cannot be.
pub type NameRule<'r> = &'r mut dyn FnMut(&mut dyn Locked, Found) -> Result<(), VolumeError>;

/// Refuses a rename, or says how it is done: the owner of the whiteout that it leaves depends on the directory. It may
/// look at what a [`NameRule`] may look at, and is asked when that is.
pub type RenameRule<'r> = &'r mut dyn FnMut(&mut dyn Locked, Found) -> Result<Renaming, VolumeError>;

/// The part that a new file has of the directory in which it is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inherited {
    /// The low twelve bits of its mode.
    pub permissions: u16,
    /// The owning group.
    pub group: u32,
    /// Extended attributes that it has from the beginning, each a name and a value.
    pub attributes: Vec<(&'static [u8], Vec<u8>)>,
}

/// Says what a new file inherits, or refuses to make it. It may look at the directory, and at the file that has the
/// name.
pub type NewFileRule<'r> = &'r mut dyn FnMut(&mut dyn Locked, Found) -> Result<Inherited, VolumeError>;
