//! Permissions, by mode and access control list (POSIX.1-2017 4.5; IEEE 1003.1e draft 17, 23.1.5).

use super::access_list::{self, ACCESS};
use super::{Checks, Posix};
use crate::fs::volume::{Attributes, Call, Caller, FileKind, InodeNumber, Locked, Volume, VolumeError};
use std::ops::BitOr;

const STICKY: u16 = 0o1000;
const ANY_EXECUTE: u16 = 0o111;

/// An access to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted(u16);

impl Wanted {
    /// Read; for a directory, list its names.
    pub const READ: Wanted = Wanted(4);
    /// Write; for a directory, change its names.
    pub const WRITE: Wanted = Wanted(2);
    /// Execute; for a directory, look up a name.
    pub const EXECUTE: Wanted = Wanted(1);

    /// True if these three bits of a mode grant it.
    fn is_in(self, bits: u16) -> bool {
        bits & self.0 == self.0
    }
}

impl BitOr for Wanted {
    type Output = Wanted;

    fn bitor(self, other: Wanted) -> Wanted {
        Wanted(self.0 | other.0)
    }
}

impl Posix {
    /// True if permissions of this call are checked here. Root's are not.
    pub(super) fn checks(&self, call: &Call) -> bool {
        self.usage.checks == Checks::Here && !call.caller.is_root()
    }

    /// Fails unless the caller may open a file. An open file stays readable and writable whatever its mode becomes:
    /// later calls do not check again.
    pub fn check_open(&self, call: &Call, inode: InodeNumber, wanted: Wanted) -> Result<(), VolumeError> {
        match self.usage.checks {
            Checks::Kernel => Ok(()),
            Checks::Here => check(&mut Unlocked(&*self.volume, call), &call.caller, inode, wanted),
        }
    }

    /// Checks permissions before a call that changes nothing.
    pub(super) fn check_before_read(&self, call: &Call, inode: InodeNumber, wanted: Wanted) -> Result<(), VolumeError> {
        if self.checks(call) { self.check_open(call, inode, wanted) } else { Ok(()) }
    }
}

/// Access to files without locks: successive answers need not be consistent.
struct Unlocked<'v>(&'v dyn Volume, &'v Call<'v>);

impl Locked for Unlocked<'_> {
    fn attributes(&mut self, inode: InodeNumber) -> Result<Attributes, VolumeError> {
        self.0.attributes(self.1, inode)
    }

    fn extended_attribute(&mut self, inode: InodeNumber, name: &[u8]) -> Result<Option<Vec<u8>>, VolumeError> {
        match self.0.extended_attribute(self.1, inode, name) {
            Ok(value) => Ok(Some(value)),
            Err(VolumeError::NoAttribute) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Fails unless the caller has this access.
pub fn check(locked: &mut dyn Locked, caller: &Caller, inode: InodeNumber, wanted: Wanted) -> Result<(), VolumeError> {
    let attributes = locked.attributes(inode)?;
    let is_allowed = if caller.is_root() {
        // Root may execute a file if any execute bit is set.
        wanted != Wanted::EXECUTE || attributes.kind == FileKind::Directory || attributes.permissions & ANY_EXECUTE != 0
    } else if caller.user == attributes.user {
        wanted.is_in(attributes.permissions >> 6)
    } else {
        match access_list::of(locked, inode, ACCESS)? {
            Some(list) => list.allows(caller, attributes.group, |bits| wanted.is_in(bits)),
            None if caller.is_in(attributes.group) => wanted.is_in(attributes.permissions >> 3),
            None => wanted.is_in(attributes.permissions),
        }
    };
    if is_allowed { Ok(()) } else { Err(VolumeError::Denied) }
}

/// Fails unless the caller may remove or replace a file's name in a directory.
pub fn check_delete(
    locked: &mut dyn Locked,
    caller: &Caller,
    directory: InodeNumber,
    file: InodeNumber,
) -> Result<(), VolumeError> {
    check(locked, caller, directory, Wanted::WRITE | Wanted::EXECUTE)?;
    let directory = locked.attributes(directory)?;
    let is_sticky = directory.permissions & STICKY != 0;
    if is_sticky && ![directory.user, locked.attributes(file)?.user].contains(&caller.user) && !caller.is_root() {
        return Err(VolumeError::NotPermitted("the directory is sticky, and the file has another owner"));
    }
    Ok(())
}

/// Fails unless the caller is the owner or root.
pub fn check_owner(caller: &Caller, attributes: &Attributes) -> Result<(), VolumeError> {
    match caller.is_root() || caller.user == attributes.user {
        true => Ok(()),
        false => Err(VolumeError::NotPermitted("only the owner or root may do this")),
    }
}
