//! Finding, making, linking, renaming and removing.

use super::Files;
use crate::error::CallError;
use flashpath::fs::sfs::{Attributes, FileKind, InodeNumber, NewFile, SfsError, Taken};
use fuser::{Errno, RenameFlags};

/// A file that is to be made: what of it a request says.
#[derive(Clone, Copy)]
pub struct Made<'a> {
    /// What it is.
    pub kind: FileKind,
    /// Its mode, as it was asked for.
    pub mode: u32,
    /// What is taken away from it, if the directory says nothing of new files (`FUSE_DONT_MASK`).
    pub umask: u32,
    /// Who makes it, and with which group.
    pub owner: (u32, u32),
    /// The device that it stands for.
    pub device: u32,
    /// What a symbolic link points at.
    pub target: &'a [u8],
}

impl Files {
    /// The file of this name, which the kernel knows from now on; `None` if there is none. The name `.` is asked for of
    /// any inode, by its number alone: somebody kept a file handle longer than the kernel its inode.
    pub fn lookup(&mut self, directory: InodeNumber, name: &[u8]) -> Result<Option<Attributes>, CallError> {
        let found = match name {
            b"." => self.volume.attributes(directory).map(|attributes| attributes.inode),
            name => self.volume.lookup(directory, name),
        };
        match found {
            Ok(inode) => self.introduce(inode).map(Some),
            Err(SfsError::NotFound) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes a file, which the kernel knows from now on.
    pub fn make(&mut self, directory: InodeNumber, name: &[u8], made: &Made) -> Result<Attributes, CallError> {
        let inherited = self.inherit(directory, made)?;
        let (permissions, (user, group)) = (inherited.permissions, made.owner);
        let (device, attributes) = (u64::from(made.device), inherited.attributes());
        let (kind, target, attributes) = (made.kind, made.target, &attributes[..]);
        let new = NewFile { kind, permissions, user, group, device, target, attributes };
        let inode = self.volume.make(directory, name, &new)?;
        self.introduce(inode)
    }

    /// Gives a file one more name.
    pub fn link(&mut self, inode: InodeNumber, directory: InodeNumber, name: &[u8]) -> Result<Attributes, CallError> {
        self.volume.link(inode, directory, name)?;
        self.introduce(inode)
    }

    /// Takes a name away.
    pub fn unlink(&mut self, directory: InodeNumber, name: &[u8]) -> Result<(), CallError> {
        Ok(self.volume.unlink(directory, name)?)
    }

    /// Removes an empty directory.
    pub fn remove_directory(&mut self, directory: InodeNumber, name: &[u8]) -> Result<(), CallError> {
        Ok(self.volume.remove_directory(directory, name)?)
    }

    /// Renames, as renameat2 does. A whiteout belongs to `owner`, a user and a group.
    pub fn rename(
        &mut self,
        from: (InodeNumber, &[u8]),
        to: (InodeNumber, &[u8]),
        flags: RenameFlags,
        owner: (u32, u32),
    ) -> Result<(), CallError> {
        let leaves_whiteout = flags.contains(RenameFlags::RENAME_WHITEOUT);
        let flags = flags - RenameFlags::RENAME_WHITEOUT;
        let taken = if flags.is_empty() {
            Taken::Replace
        } else if flags == RenameFlags::RENAME_NOREPLACE {
            Taken::Refuse
        } else if flags == RenameFlags::RENAME_EXCHANGE {
            Taken::Exchange
        } else {
            return Err(Errno::EINVAL.into());
        };
        match leaves_whiteout {
            true => Ok(self.volume.rename_with_whiteout(from, to, taken, owner)?),
            false => Ok(self.volume.rename(from, to, taken)?),
        }
    }

    /// What a symbolic link points at.
    pub fn target(&mut self, inode: InodeNumber) -> Result<Vec<u8>, CallError> {
        let target = self.volume.target(inode)?;
        self.touch(inode);
        Ok(target)
    }

    fn introduce(&mut self, inode: InodeNumber) -> Result<Attributes, CallError> {
        let attributes = self.volume.attributes(inode)?;
        self.hold(inode)?;
        Ok(attributes)
    }
}
