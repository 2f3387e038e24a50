//! Privileges that a change takes away: bits that run a program as someone else, and capabilities.
//!
//! Another owner takes the set-user-id bit away from whatever is no directory, and the set-group-id bit where the
//! group may execute, or who changes it is not in the group; so does a write or a truncation by anyone who may not
//! leave the bits where they are (CAP_FSETID). All of them take the file's capabilities away.

use super::Posix;
use crate::fs::volume::{Attributes, Call, Caller, Change, ExtendedChange, FileKind, InodeNumber, Locked, VolumeError};
use std::sync::atomic::{AtomicU64, Ordering};

/// The capabilities of a program, as an extended attribute.
pub const CAPABILITY: &[u8] = b"security.capability";
const SET_USER: u16 = 0o4000;
pub const SET_GROUP: u16 = 0o2000;
pub const GROUP_EXECUTES: u16 = 0o0010;
/// Inodes of which it is known at the most that they have no capabilities. Of others it is looked up.
const MOST_KNOWN: usize = 1 << 14;

impl Posix {
    /// True if it is known that a write takes no privilege from a file.
    pub(super) fn is_harmless(&self, call: &Call, inode: InodeNumber) -> bool {
        call.caller.keeps_set_id && self.without_capability.contains(inode)
    }

    /// The change that goes with a write to a file.
    pub(super) fn without_privileges(
        &self,
        locked: &mut dyn Locked,
        caller: &Caller,
        inode: InodeNumber,
    ) -> Result<Option<Change<'static>>, VolumeError> {
        let attributes = locked.attributes(inode)?;
        let permissions = if caller.keeps_set_id { None } else { without_set_id(&attributes, caller) };
        let extended: Vec<_> = self.lost_capability(locked, &attributes)?.into_iter().collect();
        let is_change = permissions.is_some() || !extended.is_empty();
        Ok(is_change.then(|| Change { permissions, extended, ..Change::default() }))
    }

    /// Takes the capabilities of a file away, if it has any.
    pub(super) fn lost_capability(
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
        // Behind the file's gate: who gives it one waits, and then takes it out again.
        self.without_capability.insert(inode);
        Ok(None)
    }
}

/// The permissions without the bits that run a program as someone else, when `caller` changes it; `None` if nothing
/// changes.
pub fn without_set_id(attributes: &Attributes, caller: &Caller) -> Option<u16> {
    if attributes.kind == FileKind::Directory {
        return None;
    }
    let mut permissions = attributes.permissions & !SET_USER;
    let runs = permissions & GROUP_EXECUTES != 0;
    if permissions & SET_GROUP != 0 && (runs || !keeps_group_bit(caller, attributes.group)) {
        permissions &= !SET_GROUP;
    }
    (permissions != attributes.permissions).then_some(permissions)
}

/// True if the caller may leave or set a set-group-id bit on a file of this group.
pub fn keeps_group_bit(caller: &Caller, group: u32) -> bool {
    caller.is_root() || caller.is_in(group)
}

/// Files of which it is known that they have no capabilities, which a write would take away: some of those that were
/// written. A table without locks, as each write looks into it; each inode has one place, which it shares with others.
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

    /// It has some now. Called behind the file's gate.
    pub fn remove(&self, inode: InodeNumber) {
        // Another inode may have the place: then nothing is known of this one.
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
    fn a_changed_program_runs_as_nobody_else_and_a_directory_keeps_its_bits() {
        let member = Caller { user: 5, group: 1, keeps_set_id: false, ..Caller::ROOT };
        let left = |kind, permissions| without_set_id(&file(kind, permissions), &member);
        assert_eq!(left(FileKind::Regular, 0o6755), Some(0o755));
        assert_eq!(left(FileKind::Regular, 0o6745), Some(0o2745), "the group does not execute it");
        let by = |caller| without_set_id(&file(FileKind::Regular, 0o2745), &caller);
        assert_eq!(by(Caller { group: 2, ..member }), Some(0o745), "someone outside the group");
        let also = |group| group == 1;
        assert_eq!(by(Caller { group: 2, more_groups: &also, ..member }), None, "it is another group of the caller's");
        assert_eq!(by(Caller::ROOT), None, "root may leave it");
        assert_eq!(left(FileKind::Regular, 0o1755), None);
        assert_eq!(left(FileKind::Directory, 0o6755), None);
    }

    #[test]
    fn an_inode_is_known_until_it_is_taken_out_or_another_takes_its_place() {
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
