//! POSIX access control lists. The kernel checks them and keeps them in mind; here they are kept, in step with the mode
//! of the file, and handed down to what is made in a directory. They are extended attributes, in the kernel's form:
//!
//! ```text
//!  0  u32  2, the version      then, for each entry: u16 tag, u16 permissions, u32 user or group
//! ```

use super::Files;
use super::caller::Caller;
use super::names::Made;
use crate::error::CallError;
use flashpath::fs::sfs::{FileKind, InodeNumber, SfsError};
use fuser::Errno;

/// The list of a file.
pub const ACCESS: &[u8] = b"system.posix_acl_access";
/// The list that a directory hands down.
pub const DEFAULT: &[u8] = b"system.posix_acl_default";

const VERSION: [u8; 4] = 2u32.to_le_bytes();
const ENTRY: usize = 8;
const OWNER: u16 = 1;
const USER: u16 = 2;
const OWNING_GROUP: u16 = 4;
const GROUP: u16 = 8;
const MASK: u16 = 16;
const OTHERS: u16 = 32;
const SET_GROUP: u16 = 0o2000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    tag: u16,
    permissions: u16,
    id: [u8; 4],
}

/// A list of who may do what. It has an entry for the owner, the owning group and all others each.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AccessList(Vec<Entry>);

impl AccessList {
    /// The list in these bytes; `None` if they are none.
    fn read(bytes: &[u8]) -> Option<AccessList> {
        let entries = bytes.strip_prefix(&VERSION)?.chunks(ENTRY);
        let entries: Option<Vec<Entry>> = entries
            .map(|entry| {
                let entry: [u8; ENTRY] = entry.try_into().ok()?;
                let (tag, permissions) =
                    (u16::from_le_bytes([entry[0], entry[1]]), u16::from_le_bytes([entry[2], entry[3]]));
                let is_one = [OWNER, USER, OWNING_GROUP, GROUP, MASK, OTHERS].contains(&tag) && permissions <= 7;
                is_one.then_some(Entry { tag, permissions, id: [entry[4], entry[5], entry[6], entry[7]] })
            })
            .collect();
        let list = AccessList(entries?);
        let count = |tag| list.0.iter().filter(|entry| entry.tag == tag).count();
        let needs_mask = count(USER) + count(GROUP) > 0;
        let is_whole = [OWNER, OWNING_GROUP, OTHERS].into_iter().all(|tag| count(tag) == 1)
            && (count(MASK) == 1 || count(MASK) == 0 && !needs_mask);
        is_whole.then_some(list)
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = VERSION.to_vec();
        for entry in &self.0 {
            bytes.extend_from_slice(&entry.tag.to_le_bytes());
            bytes.extend_from_slice(&entry.permissions.to_le_bytes());
            bytes.extend_from_slice(&entry.id);
        }
        bytes
    }

    /// The permissions of the one entry with this tag.
    fn of(&mut self, tag: u16) -> &mut u16 {
        &mut self.0.iter_mut().find(|entry| entry.tag == tag).expect("a list has such an entry").permissions
    }

    /// The tag whose permissions are those of the group in a mode: the mask, if there is one.
    fn group_tag(&self) -> u16 {
        if self.0.iter().any(|entry| entry.tag == MASK) { MASK } else { OWNING_GROUP }
    }

    /// True if it says no more than a mode does.
    fn is_mode(&self) -> bool {
        self.0.len() == 3
    }

    /// The permissions of a mode that stand for it.
    fn mode(&mut self) -> u16 {
        let group = self.group_tag();
        *self.of(OWNER) << 6 | *self.of(group) << 3 | *self.of(OTHERS)
    }

    /// chmod was called.
    fn set_mode(&mut self, mode: u16) {
        let group = self.group_tag();
        for (tag, shift) in [(OWNER, 6), (group, 3), (OTHERS, 0)] {
            *self.of(tag) = mode >> shift & 7;
        }
    }

    /// The list of a file that is made with this mode: each may do what both say.
    fn narrow(&mut self, mode: u16) {
        let both = self.mode() & mode;
        self.set_mode(both);
    }
}

/// What a file that is being made has of the directory's default list.
#[derive(Debug, Default)]
pub struct Inherited {
    /// The low twelve bits of its mode.
    pub permissions: u16,
    /// Its own list, if that says more than the mode.
    access: Option<Vec<u8>>,
    /// What it hands down.
    default: Option<Vec<u8>>,
}

impl Inherited {
    /// Its extended attributes.
    pub fn attributes(&self) -> Vec<(&[u8], &[u8])> {
        let lists = [(ACCESS, &self.access), (DEFAULT, &self.default)];
        lists.into_iter().filter_map(|(name, list)| Some((name, list.as_deref()?))).collect()
    }
}

impl Files {
    /// What a file that is made in `directory` has of its default list. Without one, the umask counts.
    pub(super) fn inherit(&mut self, directory: InodeNumber, made: &Made) -> Result<Inherited, CallError> {
        let mode = (made.mode & 0o7777) as u16;
        if made.kind == FileKind::Symlink {
            return Ok(Inherited { permissions: mode, ..Inherited::default() });
        }
        let Some(default) = self.access_list(directory, DEFAULT)? else {
            return Ok(Inherited { permissions: mode & !(made.umask as u16 & 0o777), ..Inherited::default() });
        };
        let mut access = default.clone();
        access.narrow(mode);
        Ok(Inherited {
            permissions: mode & !0o777 | access.mode(),
            access: (!access.is_mode()).then(|| access.bytes()),
            default: (made.kind == FileKind::Directory).then(|| default.bytes()),
        })
    }

    /// Sets a list. The list of a file changes its mode, and is not kept if it says no more than that.
    pub(super) fn set_access_list(
        &mut self,
        inode: InodeNumber,
        name: &[u8],
        value: &[u8],
        caller: &Caller,
    ) -> Result<(), CallError> {
        let mut list = AccessList::read(value).ok_or(Errno::EINVAL)?;
        let attributes = self.volume.attributes(inode)?;
        if name == DEFAULT {
            if attributes.kind != FileKind::Directory {
                return Err(Errno::EACCES.into());
            }
            return Ok(self.volume.set_extended_attribute(inode, name, value, None)?);
        }
        let mut permissions = attributes.permissions & !0o777 | list.mode();
        if !caller.keeps_group_bit(attributes.group) {
            permissions &= !SET_GROUP;
        }
        let kept = (!list.is_mode()).then_some(value);
        Ok(self.volume.set_access_list(inode, ACCESS, kept, permissions)?)
    }

    /// Puts a file's list in step with its new permissions, if it has one. Both are changed at once.
    pub(super) fn follow_mode(&mut self, inode: InodeNumber, permissions: u16) -> Result<(), CallError> {
        if let Some(mut list) = self.access_list(inode, ACCESS)? {
            list.set_mode(permissions);
            self.volume.set_access_list(inode, ACCESS, Some(&list.bytes()), permissions)?;
        }
        Ok(())
    }

    fn access_list(&mut self, inode: InodeNumber, name: &[u8]) -> Result<Option<AccessList>, CallError> {
        match self.volume.extended_attribute(inode, name) {
            Ok(bytes) => AccessList::read(&bytes).map(Some).ok_or_else(|| {
                let what = format!("the access control list of inode {}", inode.0);
                SfsError::Damaged { what, why: "its entries make no list".to_string() }.into()
            }),
            Err(SfsError::NoAttribute) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[(u16, u16)]) -> AccessList {
        AccessList(
            entries
                .iter()
                .map(|(tag, permissions)| Entry { tag: *tag, permissions: *permissions, id: [9; 4] })
                .collect(),
        )
    }

    #[test]
    fn a_list_has_one_entry_for_the_owner_the_group_and_others_and_a_mask_where_it_names_someone() {
        let three = [(OWNER, 6), (OWNING_GROUP, 4), (OTHERS, 0)];
        let with = |more: &[(u16, u16)]| list(&[&three[..], more].concat()).bytes();
        for bytes in [with(&[]), with(&[(MASK, 7)]), with(&[(USER, 7), (GROUP, 1), (MASK, 5)])] {
            assert_eq!(AccessList::read(&bytes).unwrap().bytes(), bytes);
        }
        let whole = with(&[]);
        let bad = [with(&[(USER, 7)]), with(&[(OWNER, 1)]), with(&[(MASK, 8)]), with(&[(64, 1)]), whole[..20].to_vec()];
        for bytes in bad.iter().map(|bytes| &bytes[..]).chain([&whole[..27], b"", b"\x01\0\0\0"]) {
            assert_eq!(AccessList::read(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn the_mode_shows_the_mask_for_the_group_and_a_new_file_gets_what_both_allow() {
        let mut named = list(&[(OWNER, 7), (USER, 7), (OWNING_GROUP, 5), (MASK, 6), (OTHERS, 1)]);
        assert_eq!((named.mode(), named.is_mode()), (0o761, false));
        named.narrow(0o640);
        assert_eq!(named, list(&[(OWNER, 6), (USER, 7), (OWNING_GROUP, 5), (MASK, 4), (OTHERS, 0)]));
        named.set_mode(0o777);
        assert_eq!(named, list(&[(OWNER, 7), (USER, 7), (OWNING_GROUP, 5), (MASK, 7), (OTHERS, 7)]));
        let mut plain = list(&[(OWNER, 7), (OWNING_GROUP, 5), (OTHERS, 5)]);
        plain.narrow(0o666);
        assert_eq!((plain.mode(), plain.is_mode()), (0o644, true));
    }
}
