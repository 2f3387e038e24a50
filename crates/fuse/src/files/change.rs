//! setattr, the times of access, and the bits that a change takes away.
//!
//! `FUSE_HANDLE_KILLPRIV_V2` leaves it to us that a changed program loses its privileges, as POSIX and Linux have it:
//! another owner takes the set-user-id bit away from whatever is no directory, and the set-group-id bit where the group
//! may execute, or who changes it is not in the group; so does a write or a truncation by anyone but root. All of them
//! take the file's capabilities away.
//! Without the flag, the kernel would ask for these capabilities before each write.

use super::attributes::timestamp;
use super::caller::Caller;
use super::extended::CAPABILITY;
use super::{Files, MOST_KNOWN};
use crate::error::CallError;
use crate::sharing::AccessTimes;
use flashpath::fs::sfs::{Attributes, Change, FileKind, InodeNumber, SfsError, Timestamp};
use fuser::TimeOrNow;
use std::time::SystemTime;

const SET_USER: u16 = 0o4000;
const SET_GROUP: u16 = 0o2000;
const GROUP_EXECUTES: u16 = 0o0010;
/// After so long, a read is noted although the file has not changed since the last (relatime).
const STALE_NS: i64 = 24 * 3600 * 1_000_000_000;

/// What setattr is asked for.
#[derive(Clone, Copy, Default)]
pub struct Wish {
    /// The mode; its low twelve bits count.
    pub mode: Option<u32>,
    /// Who owns it.
    pub user: Option<u32>,
    /// Which group owns it.
    pub group: Option<u32>,
    /// Bytes.
    pub size: Option<u64>,
    /// When it was read.
    pub accessed: Option<TimeOrNow>,
    /// When its bytes changed.
    pub modified: Option<TimeOrNow>,
    /// When anything of it changed: only where the kernel keeps these times itself.
    pub changed: Option<SystemTime>,
}

impl Files {
    /// Changes what is known of a file.
    pub fn change(&mut self, inode: InodeNumber, wish: &Wish, caller: &Caller) -> Result<Attributes, CallError> {
        let now = self.timestamp();
        let time = |time: TimeOrNow| match time {
            TimeOrNow::Now => now,
            TimeOrNow::SpecificTime(time) => timestamp(time),
        };
        let mut change = Change {
            permissions: wish.mode.map(|mode| (mode & 0o7777) as u16),
            user: wish.user,
            group: wish.group,
            size: wish.size,
            accessed: wish.accessed.map(time),
            // An ftruncate comes without it.
            modified: wish.modified.map(time).or(wish.size.map(|_| now)),
            changed: wish.changed.map(timestamp),
            extended: Vec::new(),
        };
        // A chown that changes neither comes without anything at all, and takes the bits away all the same.
        let is_chown = wish.user.is_some() || wish.group.is_some() || is_empty(wish);
        if is_chown || wish.size.is_some() {
            let attributes = self.volume.attributes(inode)?;
            if (is_chown || caller.user != 0) && change.permissions.is_none() {
                change.permissions = without_set_id(&attributes, caller);
            }
            self.kill_capability(&attributes)?;
        }
        if let (Some(_), Some(permissions)) = (wish.mode, change.permissions) {
            self.follow_mode(inode, permissions)?;
        }
        Ok(self.volume.change(inode, &change)?)
    }

    /// Takes away what a file may not keep when it is written to. `by`: who writes, unless it may leave the bits.
    pub fn kill_privileges(&mut self, inode: InodeNumber, by: Option<&Caller>) -> Result<(), CallError> {
        if by.is_none() && self.without_capability.contains(&inode) {
            return Ok(());
        }
        let attributes = self.volume.attributes(inode)?;
        let permissions = by.and_then(|caller| without_set_id(&attributes, caller));
        if permissions.is_some() {
            self.volume.change(inode, &Change { permissions, ..Change::default() })?;
        }
        self.kill_capability(&attributes)
    }

    fn kill_capability(&mut self, attributes: &Attributes) -> Result<(), CallError> {
        if attributes.kind == FileKind::Regular && !self.without_capability.contains(&attributes.inode) {
            match self.volume.remove_extended_attribute(attributes.inode, CAPABILITY) {
                Ok(()) | Err(SfsError::NoAttribute) => {}
                Err(error) => return Err(error.into()),
            }
            if self.without_capability.len() >= MOST_KNOWN {
                self.without_capability.clear();
            }
            self.without_capability.insert(attributes.inode);
        }
        Ok(())
    }

    /// Notes that a file was read; as `relatime` does, only if it has changed since it was last noted, or a day has
    /// passed.
    pub fn touch(&mut self, inode: InodeNumber) {
        if self.sharing.access_times == AccessTimes::Never || self.sharing.read_only {
            return;
        }
        let notes_all = self.sharing.access_times == AccessTimes::Strict;
        let now = self.timestamp();
        // What was read was read, whether or not it can be noted.
        if let Ok(attributes) = self.volume.attributes(inode)
            && (notes_all || is_due(&attributes, now))
            && !(self.sharing.ignores_directory_reads && attributes.kind == FileKind::Directory)
        {
            let changed = Some(attributes.times.changed);
            let _ = self.volume.change(inode, &Change { accessed: Some(now), changed, ..Change::default() });
        }
    }
}

fn is_empty(wish: &Wish) -> bool {
    matches!(
        wish,
        Wish { mode: None, user: None, group: None, size: None, accessed: None, modified: None, changed: None }
    )
}

/// The permissions without the bits that run a program as someone else, when `caller` changes it; `None` if nothing
/// changes.
fn without_set_id(attributes: &Attributes, caller: &Caller) -> Option<u16> {
    if attributes.kind == FileKind::Directory {
        return None;
    }
    let mut permissions = attributes.permissions & !SET_USER;
    let runs = permissions & GROUP_EXECUTES != 0;
    if permissions & SET_GROUP != 0 && (runs || !caller.keeps_group_bit(attributes.group)) {
        permissions &= !SET_GROUP;
    }
    (permissions != attributes.permissions).then_some(permissions)
}

fn is_due(attributes: &Attributes, now: Timestamp) -> bool {
    attributes.times.accessed <= attributes.times.modified
        || attributes.times.accessed <= attributes.times.changed
        || now.0.saturating_sub(attributes.times.accessed.0) >= STALE_NS
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashpath::fs::volume::Times;

    fn file(kind: FileKind, permissions: u16) -> Attributes {
        let time = Timestamp(5);
        Attributes {
            inode: InodeNumber(7),
            generation: 0,
            kind,
            permissions,
            links: 1,
            user: 1,
            group: 1,
            device: 0,
            size: 0,
            blocks: 0,
            times: Times::made(time),
        }
    }

    #[test]
    fn a_changed_program_runs_as_nobody_else_and_a_directory_keeps_its_bits() {
        let member = Caller { user: 5, group: 1, thread: 0 };
        let left = |kind, permissions| without_set_id(&file(kind, permissions), &member);
        assert_eq!(left(FileKind::Regular, 0o6755), Some(0o755));
        assert_eq!(left(FileKind::Regular, 0o6745), Some(0o2745), "the group does not execute it");
        let by = |caller| without_set_id(&file(FileKind::Regular, 0o2745), &caller);
        assert_eq!(by(Caller { group: 2, ..member }), Some(0o745), "someone outside the group");
        assert_eq!(by(Caller { user: 0, group: 0, ..member }), None, "root may leave it");
        assert_eq!(left(FileKind::Regular, 0o1755), None);
        assert_eq!(left(FileKind::Directory, 0o6755), None);
    }

    #[test]
    fn a_read_is_noted_once_after_each_change_and_once_a_day() {
        let mut read = file(FileKind::Regular, 0o644);
        assert!(is_due(&read, Timestamp(6)));
        read.times.accessed = Timestamp(6);
        assert!(!is_due(&read, Timestamp(7)));
        read.times.changed = Timestamp(8);
        assert!(is_due(&read, Timestamp(9)));
        read.times.accessed = Timestamp(9);
        assert!(!is_due(&read, Timestamp(8 + STALE_NS)) && is_due(&read, Timestamp(9 + STALE_NS)));
    }
}
