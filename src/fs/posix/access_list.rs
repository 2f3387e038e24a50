//! POSIX access control lists (IEEE 1003.1e draft 17): kept consistent with the file's mode, and inherited from the
//! directory. They are stored as extended attributes in Linux's format:
//!
//! ```text
//!  0  u32  2, the version      then, for each entry: u16 tag, u16 permissions, u32 user or group
//! ```

use crate::fs::volume::{Caller, ExtendedChange, InodeNumber, Locked, VolumeError};
use std::borrow::Cow;

/// The name of a file's access list.
pub const ACCESS: &[u8] = b"system.posix_acl_access";
/// The name of the list that new files inherit from a directory.
pub const DEFAULT: &[u8] = b"system.posix_acl_default";

const VERSION: [u8; 4] = 2u32.to_le_bytes();
const ENTRY: usize = 8;
const OWNER: u16 = 1;
const USER: u16 = 2;
const OWNING_GROUP: u16 = 4;
const GROUP: u16 = 8;
const MASK: u16 = 16;
const OTHERS: u16 = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    tag: u16,
    permissions: u16,
    id: [u8; 4],
}

/// An access control list. It has one entry each for the owner, the owning group and others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessList(Vec<Entry>);

impl AccessList {
    /// Decodes a list; `None` if the bytes are invalid.
    pub fn read(bytes: &[u8]) -> Option<AccessList> {
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

    pub fn bytes(&self) -> Vec<u8> {
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
        &mut self.0.iter_mut().find(|entry| entry.tag == tag).expect("a list has an entry for this tag").permissions
    }

    /// The tag that stands for the group bits of a mode: the mask, if there is one.
    fn group_tag(&self) -> u16 {
        if self.0.iter().any(|entry| entry.tag == MASK) { MASK } else { OWNING_GROUP }
    }

    /// True if the list is equivalent to a mode.
    pub fn is_mode(&self) -> bool {
        self.0.len() == 3
    }

    /// The permission bits of the equivalent mode.
    pub fn mode(&mut self) -> u16 {
        let group = self.group_tag();
        *self.of(OWNER) << 6 | *self.of(group) << 3 | *self.of(OTHERS)
    }

    /// Applies the permission bits of a chmod.
    pub fn set_mode(&mut self, mode: u16) {
        let group = self.group_tag();
        for (tag, shift) in [(OWNER, 6), (group, 3), (OTHERS, 0)] {
            *self.of(tag) = mode >> shift & 7;
        }
    }

    /// Restricts the list to the bits of a new file's mode.
    pub fn narrow(&mut self, mode: u16) {
        let both = self.mode() & mode;
        self.set_mode(both);
    }

    /// True if the list grants access to a caller other than the owner. `is_enough` tests permission bits; `group` is
    /// the owning group of the file.
    pub fn allows(&self, caller: &Caller, group: u32, is_enough: impl Fn(u16) -> bool) -> bool {
        let mask = self.0.iter().find(|entry| entry.tag == MASK).map_or(7, |entry| entry.permissions);
        let id = |entry: &Entry| u32::from_le_bytes(entry.id);
        if let Some(user) = self.0.iter().find(|entry| entry.tag == USER && id(entry) == caller.user) {
            return is_enough(user.permissions & mask);
        }
        let mut is_in_one = false;
        for entry in &self.0 {
            let is_its = match entry.tag {
                OWNING_GROUP => caller.is_in(group),
                GROUP => caller.is_in(id(entry)),
                _ => false,
            };
            if is_its && is_enough(entry.permissions & mask) {
                return true;
            }
            is_in_one |= is_its;
        }
        // A caller that matches a group entry never gets the permissions of others.
        !is_in_one && self.0.iter().any(|entry| entry.tag == OTHERS && is_enough(entry.permissions))
    }
}

/// The list of a file under this attribute name, if any.
pub fn of(locked: &mut dyn Locked, inode: InodeNumber, name: &[u8]) -> Result<Option<AccessList>, VolumeError> {
    match locked.extended_attribute(inode, name)? {
        Some(bytes) => AccessList::read(&bytes).map(Some).ok_or_else(|| {
            let what = format!("the access control list of inode {}", inode.0);
            VolumeError::Damaged { what, why: "its entries make no list".to_string() }
        }),
        None => Ok(None),
    }
}

/// The change of a file's list after a chmod to `permissions`; `None` if the file has no list.
pub fn list_after_chmod(
    locked: &mut dyn Locked,
    inode: InodeNumber,
    permissions: u16,
) -> Result<Option<ExtendedChange<'static>>, VolumeError> {
    Ok(of(locked, inode, ACCESS)?.map(|mut list| {
        list.set_mode(permissions);
        ExtendedChange { name: ACCESS, value: Some(Cow::Owned(list.bytes())) }
    }))
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
    fn the_mask_is_the_group_bits_of_the_mode_and_a_new_file_gets_the_bits_of_both() {
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

    #[test]
    fn a_named_user_or_group_is_limited_by_the_mask_and_never_gets_the_bits_of_others() {
        let named = |tag, permissions, id: u32| Entry { tag, permissions, id: id.to_le_bytes() };
        let list = AccessList(vec![
            named(OWNER, 7, 0),
            named(USER, 7, 10),
            named(USER, 0, 11),
            named(OWNING_GROUP, 4, 0),
            named(GROUP, 6, 20),
            named(MASK, 5, 0),
            named(OTHERS, 2, 0),
        ]);
        let may = |user, group, wanted: u16| {
            let caller = Caller { user, group, ..Caller::ROOT };
            list.allows(&caller, 99, |bits| bits & wanted == wanted)
        };
        assert!(may(10, 1, 5) && !may(10, 1, 2), "the mask removes the write permission");
        assert!(!may(11, 20, 4), "a user entry precedes group entries");
        assert!(may(12, 99, 4) && may(12, 20, 4) && !may(12, 20, 2));
        assert!(may(12, 1, 2) && !may(12, 1, 4), "the mask does not apply to others");
    }
}
