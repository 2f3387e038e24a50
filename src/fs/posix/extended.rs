//! Extended attributes of the namespaces `user`, `trusted` and `security`, and the access control lists of `system`.

use super::Posix;
use super::access_list::{ACCESS, AccessList, DEFAULT};
use super::permission::{Wanted, check, check_owner};
use super::privileges::{CAPABILITY, SET_GROUP, may_keep_group_bit};
use crate::fs::volume::{Attributes, Call, Caller, Change, ExtendedChange, FileKind, InodeNumber, Locked, VolumeError};
use std::borrow::Cow;

/// The namespace that only root sees.
const TRUSTED: &[u8] = b"trusted.";
const USER: &[u8] = b"user.";
const NAMESPACES: [&[u8]; 3] = [USER, TRUSTED, b"security."];
const STICKY: u16 = 0o1000;

impl Posix {
    /// The value of an attribute.
    pub fn extended_attribute(&self, call: &Call, inode: InodeNumber, name: &[u8]) -> Result<Vec<u8>, VolumeError> {
        check_name(name)?;
        if self.checks(call) {
            if name.starts_with(TRUSTED) {
                return Err(VolumeError::NoAttribute);
            }
            if name.starts_with(USER) {
                self.check_before_read(call, inode, Wanted::READ)?;
            }
        }
        self.volume.extended_attribute(call, inode, name)
    }

    /// The names of all attributes visible to the caller, each with a terminating zero.
    pub fn extended_attributes(&self, call: &Call, inode: InodeNumber) -> Result<Vec<u8>, VolumeError> {
        let mut names = Vec::new();
        for name in self.volume.extended_attributes(call, inode)? {
            if call.caller.is_root() || !name.starts_with(TRUSTED) {
                names.extend_from_slice(&name);
                names.push(0);
            }
        }
        Ok(names)
    }

    /// Sets an attribute. `exists`: true if it must exist (`XATTR_REPLACE`), false if it must not (`XATTR_CREATE`).
    pub fn set_extended_attribute(
        &self,
        call: &Call,
        inode: InodeNumber,
        name: &[u8],
        value: &[u8],
        exists: Option<bool>,
    ) -> Result<(), VolumeError> {
        check_name(name)?;
        if is_access_list(name) {
            return self.set_access_list(call, inode, name, value);
        }
        self.change_extended(call, inode, name, Some(value), exists)
    }

    /// Removes an attribute.
    pub fn remove_extended_attribute(&self, call: &Call, inode: InodeNumber, name: &[u8]) -> Result<(), VolumeError> {
        check_name(name)?;
        self.change_extended(call, inode, name, None, Some(true))
    }

    fn change_extended(
        &self,
        call: &Call,
        inode: InodeNumber,
        name: &[u8],
        value: Option<&[u8]>,
        exists: Option<bool>,
    ) -> Result<(), VolumeError> {
        let mut rule = |locked: &mut dyn Locked| {
            if self.checks(call) {
                check_set(locked, &call.caller, inode, name)?;
            }
            if let Some(exists) = exists {
                match (exists, locked.extended_attribute(inode, name)?.is_some()) {
                    (true, false) => return Err(VolumeError::NoAttribute),
                    (false, true) => return Err(VolumeError::Exists),
                    _ => {}
                }
            }
            if name == CAPABILITY {
                self.without_capability.remove(inode);
            }
            let extended = vec![ExtendedChange { name, value: value.map(Cow::Borrowed) }];
            Ok(Some(Change { extended, ..Change::default() }))
        };
        self.volume.change(call, inode, &mut rule).map(drop)
    }

    /// Sets an access control list. A file's list changes its mode, and is not stored if it is equivalent to the mode.
    fn set_access_list(&self, call: &Call, inode: InodeNumber, name: &[u8], value: &[u8]) -> Result<(), VolumeError> {
        let mut list =
            AccessList::read(value).ok_or(VolumeError::Invalid("the entries are not a valid access control list"))?;
        let mut rule = |locked: &mut dyn Locked| {
            let attributes = locked.attributes(inode)?;
            if self.checks(call) {
                check_owner(&call.caller, &attributes)?;
            }
            if name == DEFAULT {
                return match attributes.kind {
                    FileKind::Directory => Ok(Some(set(DEFAULT, Some(value), None))),
                    _ => Err(VolumeError::Denied),
                };
            }
            let mut permissions = attributes.permissions & !0o777 | list.mode();
            if !may_keep_group_bit(&call.caller, attributes.group) {
                permissions &= !SET_GROUP;
            }
            Ok(Some(set(ACCESS, (!list.is_mode()).then_some(value), Some(permissions))))
        };
        self.volume.change(call, inode, &mut rule).map(drop)
    }
}

fn set<'c>(name: &'static [u8], value: Option<&'c [u8]>, permissions: Option<u16>) -> Change<'c> {
    let extended = vec![ExtendedChange { name, value: value.map(Cow::Borrowed) }];
    Change { permissions, extended, ..Change::default() }
}

/// Fails unless the caller may set or remove an attribute of this name (xattr(7)).
fn check_set(locked: &mut dyn Locked, caller: &Caller, inode: InodeNumber, name: &[u8]) -> Result<(), VolumeError> {
    let attributes: Attributes = locked.attributes(inode)?;
    if is_access_list(name) {
        return check_owner(caller, &attributes);
    }
    if !name.starts_with(USER) {
        return Err(VolumeError::NotPermitted("only root may set attributes of this namespace"));
    }
    match attributes.kind {
        FileKind::Regular => {}
        FileKind::Directory if attributes.permissions & STICKY != 0 => check_owner(caller, &attributes)?,
        FileKind::Directory => {}
        _ => return Err(VolumeError::NotPermitted("only regular files and directories have user attributes")),
    }
    check(locked, caller, inode, Wanted::WRITE)
}

fn is_access_list(name: &[u8]) -> bool {
    name == ACCESS || name == DEFAULT
}

fn check_name(name: &[u8]) -> Result<(), VolumeError> {
    if is_access_list(name) {
        return Ok(());
    }
    match NAMESPACES.iter().find(|namespace| name.starts_with(namespace)) {
        None => Err(VolumeError::Unsupported(
            "supported are attributes of user, trusted and security, and access control lists",
        )),
        Some(namespace) if name.len() == namespace.len() => {
            Err(VolumeError::Invalid("an attribute needs a name after its namespace"))
        }
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn an_attribute_without_a_known_namespace_or_a_name_is_refused() {
        for (name, errno) in [
            (&b"user.x"[..], None),
            (CAPABILITY, None),
            (ACCESS, None),
            (b"system.posix_acl_of_another_kind", Some(Errno::OPNOTSUPP)),
            (b"x", Some(Errno::OPNOTSUPP)),
            (b"user.", Some(Errno::INVAL)),
        ] {
            assert_eq!(check_name(name).err().map(|error| error.errno()), errno);
        }
    }
}
