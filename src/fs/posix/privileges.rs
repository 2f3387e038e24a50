//! Privileges that a change clears: set-id bits and capabilities.
//!
//! A change of owner clears the set-user-id bit of a file that is not a directory. It clears the set-group-id bit if
//! the group may execute the file, or if the caller is not in the group. A write or truncation by a caller without
//! CAP_FSETID does the same. All of them remove the file's capabilities.

use super::Posix;
use crate::fs::volume::{Attributes, Call, Caller, Change, ExtendedChange, FileKind, InodeNumber, Locked, VolumeError};
use std::sync::atomic::{AtomicU64, Ordering};

/// The extended attribute that holds a program's capabilities.
pub const CAPABILITY: &[u8] = b"security.capability";
const SET_USER: u16 = 0o4000;
pub const SET_GROUP: u16 = 0o2000;
pub const GROUP_EXECUTES: u16 = 0o0010;
/// Size of the table of inodes known to have no capabilities. Other inodes are looked up.
const MOST_KNOWN: usize = 1 << 14;

impl Posix {
    /// True if the file is known to have no privileges that a write clears.
    pub(super) fn has_no_privileges(&self, call: &Call, inode: InodeNumber) -> bool {
        call.caller.keeps_set_id && self.without_capability.contains(inode)
    }

    /// The change of attributes made with a write to a file.
    pub(super) fn privileges_cleared(
        &self,
        locked: &mut dyn Locked,
        caller: &Caller,
        inode: InodeNumber,
    ) -> Result<Option<Change<'static>>, VolumeError> {
        let attributes = locked.attributes(inode)?;
        let permissions = if caller.keeps_set_id { None } else { without_set_id(&attributes, caller) };
        let extended: Vec<_> = self.capability_removal(locked, &attributes)?.into_iter().collect();
        let is_change = permissions.is_some() || !extended.is_empty();
        Ok(is_change.then(|| Change { permissions, extended, ..Change::default() }))
    }

    /// The removal of a file's capabilities, if it has any.
    pub(super) fn capability_removal(
        &self,
        locked: &mut dyn Locked,
        attributes: &Attributes,
    ) -> Result<Option<ExtendedChange<'static>>, VolumeError> {
        let inode = attributes.inode;
        if attributes.kind != FileKind::Regular || self.without_capability.contains(inode) {
            return Ok(None);
        }
        if locked.extended_attribute(inode, CAPABILITY)?.is_some() {
            return Ok(Some(ExtendedChange { name: CAPABILITY, value: None }));
        }
        // Under the file's lock: a concurrent setxattr waits, and then removes the inode from the table.
        self.without_capability.insert(inode);
        Ok(None)
    }
}

/// The permissions without set-id bits after a change by `caller`; `None` if they do not change.
pub fn without_set_id(attributes: &Attributes, caller: &Caller) -> Option<u16> {
    if attributes.kind == FileKind::Directory {
        return None;
    }
    let mut permissions = attributes.permissions & !SET_USER;
    let runs = permissions & GROUP_EXECUTES != 0;
    if permissions & SET_GROUP != 0 && (runs || !may_keep_group_bit(caller, attributes.group)) {
        permissions &= !SET_GROUP;
    }
    (permissions != attributes.permissions).then_some(permissions)
}

/// True if the caller may keep or set the set-group-id bit on a file of this group.
pub fn may_keep_group_bit(caller: &Caller, group: u32) -> bool {
    caller.is_root() || caller.is_in(group)
}

/// Recently written files known to have no capabilities. The table has no locks, since each write reads it. Each inode
/// has one slot, which it shares with other inodes.
pub(super) struct WithoutCapability(Box<[AtomicU64]>);

impl Default for WithoutCapability {
    fn default() -> WithoutCapability {
        WithoutCapability((0..MOST_KNOWN).map(|_| AtomicU64::new(0)).collect())
    }
}

impl WithoutCapability {
    fn place(&self, inode: InodeNumber) -> &AtomicU64 {
        &self.0[inode.0 as usize % MOST_KNOWN]
    }

    fn contains(&self, inode: InodeNumber) -> bool {
        self.place(inode).load(Ordering::Relaxed) == inode.0
    }

    fn insert(&self, inode: InodeNumber) {
        self.place(inode).store(inode.0, Ordering::Relaxed);
    }

    /// Removes an inode that gets capabilities. Called under the file's lock.
    pub fn remove(&self, inode: InodeNumber) {
        // The slot may hold another inode; then this one is unknown.
        let _ = self.place(inode).compare_exchange(inode.0, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::volume::Times;

    fn file(kind: FileKind, permissions: u16) -> Attributes {
        let times = Times::default();
        let (inode, generation, links, user, group) = (InodeNumber(7), 0, 1, 1, 1);
        Attributes { inode, generation, kind, permissions, links, user, group, device: 0, size: 0, blocks: 0, times }
    }

    #[test]
    fn a_changed_program_loses_its_set_id_bits_and_a_directory_keeps_them() {
        let member = Caller { user: 5, group: 1, keeps_set_id: false, ..Caller::ROOT };
        let left = |kind, permissions| without_set_id(&file(kind, permissions), &member);
        assert_eq!(left(FileKind::Regular, 0o6755), Some(0o755));
        assert_eq!(left(FileKind::Regular, 0o6745), Some(0o2745), "the group may not execute it");
        let by = |caller| without_set_id(&file(FileKind::Regular, 0o2745), &caller);
        assert_eq!(by(Caller { group: 2, ..member }), Some(0o745), "the caller is not in the group");
        let also = |group| group == 1;
        assert_eq!(
            by(Caller { group: 2, more_groups: &also, ..member }),
            None,
            "it is a supplementary group of the caller"
        );
        assert_eq!(by(Caller::ROOT), None, "root keeps the bit");
        assert_eq!(left(FileKind::Regular, 0o1755), None);
        assert_eq!(left(FileKind::Directory, 0o6755), None);
    }

    #[test]
    fn an_inode_is_known_until_it_is_removed_or_another_takes_its_slot() {
        let known = WithoutCapability::default();
        let (one, other) = (InodeNumber(5), InodeNumber(5 + MOST_KNOWN as u64));
        known.insert(one);
        known.remove(other);
        assert!(known.contains(one) && !known.contains(other));
        known.insert(other);
        assert!(!known.contains(one) && known.contains(other));
        known.remove(other);
        assert!(!known.contains(other));
    }
}
