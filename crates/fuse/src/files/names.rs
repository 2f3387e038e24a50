//! Finding, making, linking, renaming and removing.

use super::Files;
use crate::shared_volume::CallError;
use flashpath::fs::sfs::{Attributes, FileKind, InodeNumber, NewFile, SfsError, Taken};
use fuser::{Errno, RenameFlags};

/// The bit of a directory that hands its group down.
const SET_GROUP: u16 = 0o2000;

/// A file that is to be made: what of it a request says.
#[derive(Clone, Copy)]
pub struct Made<'a> {
    /// What it is.
    pub kind: FileKind,
    /// Its mode, of which the kernel has taken the umask away.
    pub mode: u32,
    /// Who makes it, and with which group.
    pub owner: (u32, u32),
    /// The device that it stands for.
    pub device: u32,
    /// What a symbolic link points at.
    pub target: &'a [u8],
}

impl Files {
    /// The file of this name, which the kernel knows from now on; `None` if there is none.
    pub fn lookup(&mut self, directory: InodeNumber, name: &[u8]) -> Result<Option<Attributes>, CallError> {
        match self.volume.lookup(directory, name) {
            Ok(inode) => self.introduce(inode).map(Some),
            Err(SfsError::NotFound) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes a file, which the kernel knows from now on.
    pub fn make(&mut self, directory: InodeNumber, name: &[u8], made: &Made) -> Result<Attributes, CallError> {
        let parent = self.volume.attributes(directory)?;
        let mut permissions = (made.mode & 0o7777) as u16;
        let (user, mut group) = made.owner;
        if parent.permissions & SET_GROUP != 0 {
            group = parent.group;
            if made.kind == FileKind::Directory {
                permissions |= SET_GROUP;
            }
        }
        let device = u64::from(made.device);
        let new = NewFile { kind: made.kind, permissions, user, group, device, target: made.target };
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

    /// Renames, as renameat2 does.
    pub fn rename(
        &mut self,
        from: (InodeNumber, &[u8]),
        to: (InodeNumber, &[u8]),
        flags: RenameFlags,
    ) -> Result<(), CallError> {
        let taken = if flags.is_empty() {
            Taken::Replace
        } else if flags == RenameFlags::RENAME_NOREPLACE {
            Taken::Refuse
        } else if flags == RenameFlags::RENAME_EXCHANGE {
            Taken::Exchange
        } else {
            return Err(Errno::EINVAL.into());
        };
        Ok(self.volume.rename(from, to, taken)?)
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
