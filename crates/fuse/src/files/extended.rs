//! Extended attributes.
//!
//! There are the namespaces `user`, `trusted` and `security`, and of `system` the access control lists; the kernel checks
//! who may use which.

use super::Files;
use super::access_list::{ACCESS, DEFAULT};
use super::caller::Caller;
use crate::error::CallError;
use flashpath::fs::sfs::InodeNumber;
use fuser::Errno;

/// The capabilities of a program.
pub const CAPABILITY: &[u8] = b"security.capability";
const NAMESPACES: [&[u8]; 3] = [b"user.", b"trusted.", b"security."];
/// Names that only root is told.
const TRUSTED: &[u8] = b"trusted.";
/// What setxattr is asked for (`linux/xattr.h`).
const XATTR_CREATE: i32 = 1;
const XATTR_REPLACE: i32 = 2;

impl Files {
    /// The value of an attribute.
    pub fn extended_attribute(&mut self, inode: InodeNumber, name: &[u8]) -> Result<Vec<u8>, CallError> {
        check(name)?;
        Ok(self.volume.extended_attribute(inode, name)?)
    }

    /// The names of all attributes that `user` may see, each with a zero behind it.
    pub fn extended_attributes(&mut self, inode: InodeNumber, user: u32) -> Result<Vec<u8>, CallError> {
        let mut names = Vec::new();
        for name in self.volume.extended_attributes(inode)? {
            if user == 0 || !name.starts_with(TRUSTED) {
                names.extend_from_slice(&name);
                names.push(0);
            }
        }
        Ok(names)
    }

    /// Sets an attribute.
    pub fn set_extended_attribute(
        &mut self,
        inode: InodeNumber,
        name: &[u8],
        value: &[u8],
        flags: i32,
        caller: &Caller,
    ) -> Result<(), CallError> {
        check(name)?;
        if is_access_list(name) {
            return self.set_access_list(inode, name, value, caller);
        }
        let exists = match flags {
            0 => None,
            XATTR_CREATE => Some(false),
            XATTR_REPLACE => Some(true),
            _ => return Err(Errno::EINVAL.into()),
        };
        self.volume.set_extended_attribute(inode, name, value, exists)?;
        if name == CAPABILITY {
            self.without_capability.remove(&inode);
        }
        Ok(())
    }

    /// Takes an attribute away.
    pub fn remove_extended_attribute(&mut self, inode: InodeNumber, name: &[u8]) -> Result<(), CallError> {
        check(name)?;
        Ok(self.volume.remove_extended_attribute(inode, name)?)
    }
}

fn is_access_list(name: &[u8]) -> bool {
    name == ACCESS || name == DEFAULT
}

fn check(name: &[u8]) -> Result<(), CallError> {
    if is_access_list(name) {
        return Ok(());
    }
    let namespace = NAMESPACES.iter().find(|namespace| name.starts_with(namespace)).ok_or(Errno::EOPNOTSUPP)?;
    if name.len() == namespace.len() { Err(Errno::EINVAL.into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_have_a_namespace_that_is_heeded() {
        for (name, errno) in [
            (&b"user.x"[..], None),
            (CAPABILITY, None),
            (ACCESS, None),
            (b"system.posix_acl_of_another_kind", Some(Errno::EOPNOTSUPP)),
            (b"x", Some(Errno::EOPNOTSUPP)),
            (b"user.", Some(Errno::EINVAL)),
        ] {
            assert_eq!(check(name).err().map(|error| error.errno()), errno);
        }
    }
}
