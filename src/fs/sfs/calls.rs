//! What a caller can ask for, by the names of the system calls.
//!
//! Each call is one operation at [`Sfs::now`], which device requests move on. A call that fails leaves everything as it was.

use super::attributes::{Attributes, Change, DirectoryEntry, InodeNumber, NewFile, Space, Taken};
use super::{Sfs, SfsError};
use crate::fs::Durable;

impl Sfs {
    /// The inode that has this name in a directory. (`.` and `..` are names, too.)
    pub fn lookup(&mut self, directory: InodeNumber, name: &[u8]) -> Result<InodeNumber, SfsError> {
        todo!()
    }

    /// What is known of a file.
    pub fn attributes(&mut self, inode: InodeNumber) -> Result<Attributes, SfsError> {
        todo!()
    }

    /// Changes what is known of a file, its size among it. Who may is for the caller to check; set-id bits are taken away
    /// where the caller says so in the permissions.
    pub fn change(&mut self, inode: InodeNumber, change: &Change) -> Result<Attributes, SfsError> {
        todo!()
    }

    /// Makes a file, a directory, a symbolic link, a pipe, a socket or a device.
    pub fn make(&mut self, directory: InodeNumber, name: &[u8], new: &NewFile) -> Result<InodeNumber, SfsError> {
        todo!()
    }

    /// Gives a file one more name.
    pub fn link(&mut self, inode: InodeNumber, directory: InodeNumber, name: &[u8]) -> Result<(), SfsError> {
        todo!()
    }

    /// Takes the name of what is no directory away.
    pub fn unlink(&mut self, directory: InodeNumber, name: &[u8]) -> Result<(), SfsError> {
        todo!()
    }

    /// Removes an empty directory.
    pub fn remove_directory(&mut self, directory: InodeNumber, name: &[u8]) -> Result<(), SfsError> {
        todo!()
    }

    /// Renames.
    pub fn rename(
        &mut self,
        from: (InodeNumber, &[u8]),
        to: (InodeNumber, &[u8]),
        taken: Taken,
    ) -> Result<(), SfsError> {
        todo!()
    }

    /// Holds on to an inode: it stays while anyone does, even without a name.
    pub fn retain(&mut self, inode: InodeNumber) -> Result<(), SfsError> {
        todo!()
    }

    /// Lets an inode go, `times` times. Without a name, and with nobody holding it, it is freed.
    pub fn release(&mut self, inode: InodeNumber, times: u64) -> Result<(), SfsError> {
        todo!()
    }

    /// Reads from `offset` on, and says how much: less than asked for only at the end of the file.
    pub fn read(&mut self, inode: InodeNumber, offset: u64, bytes: &mut [u8]) -> Result<usize, SfsError> {
        todo!()
    }

    /// Writes all of `bytes` from `offset` on. The file grows where it must.
    pub fn write(&mut self, inode: InodeNumber, offset: u64, bytes: &[u8]) -> Result<(), SfsError> {
        todo!()
    }

    /// Reserves the blocks from `offset` on, which read as zeros; the file grows to their end unless `keep_size`.
    pub fn allocate(&mut self, inode: InodeNumber, offset: u64, length: u64, keep_size: bool) -> Result<(), SfsError> {
        todo!()
    }

    /// Gives back the blocks of these bytes, which read as zeros from then on. The size stays.
    pub fn punch(&mut self, inode: InodeNumber, offset: u64, length: u64) -> Result<(), SfsError> {
        todo!()
    }

    /// The next byte from `offset` on that is stored (`data`), or that is not. `None`: there is none before the end
    /// (ENXIO). The end of the file counts as a hole.
    pub fn seek(&mut self, inode: InodeNumber, offset: u64, data: bool) -> Result<Option<u64>, SfsError> {
        todo!()
    }

    /// Lists a directory from `from` on (0, or an entry's `next`), `.` and `..` first, until `take` answers false.
    pub fn list(
        &mut self,
        directory: InodeNumber,
        from: u64,
        take: &mut dyn FnMut(DirectoryEntry) -> bool,
    ) -> Result<(), SfsError> {
        todo!()
    }

    /// What a symbolic link points at.
    pub fn target(&mut self, inode: InodeNumber) -> Result<Vec<u8>, SfsError> {
        todo!()
    }

    /// The value of an extended attribute.
    pub fn extended_attribute(&mut self, inode: InodeNumber, name: &[u8]) -> Result<Vec<u8>, SfsError> {
        todo!()
    }

    /// The names of all extended attributes.
    pub fn extended_attributes(&mut self, inode: InodeNumber) -> Result<Vec<Vec<u8>>, SfsError> {
        todo!()
    }

    /// Sets an extended attribute. `exists`: it must be there (`XATTR_REPLACE`), or must not (`XATTR_CREATE`).
    pub fn set_extended_attribute(
        &mut self,
        inode: InodeNumber,
        name: &[u8],
        value: &[u8],
        exists: Option<bool>,
    ) -> Result<(), SfsError> {
        todo!()
    }

    /// Takes an extended attribute away.
    pub fn remove_extended_attribute(&mut self, inode: InodeNumber, name: &[u8]) -> Result<(), SfsError> {
        todo!()
    }

    /// Makes a file durable, with its name.
    pub fn sync_file(&mut self, inode: InodeNumber, what: Durable) -> Result<(), SfsError> {
        todo!()
    }

    /// Makes everything durable: a checkpoint.
    pub fn sync(&mut self) -> Result<(), SfsError> {
        todo!()
    }

    /// How much there is, and how much is left.
    pub fn space(&self) -> Space {
        todo!()
    }
}
