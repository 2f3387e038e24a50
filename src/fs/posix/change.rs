//! setattr: modes, owners, sizes, times.

use super::Posix;
use super::access_list::list_after_chmod;
use super::permission::{Wanted, check, check_owner};
use super::privileges::{SET_GROUP, may_keep_group_bit, without_set_id};
use crate::fs::volume::{Attributes, Call, Change, InodeNumber, Locked, Timestamp, VolumeError};

/// A new time stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewTime {
    /// The current time.
    Now,
    /// This time.
    At(Timestamp),
}

/// The attributes set by setattr: chmod, chown, truncate and utimensat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetAttributes {
    /// The mode, of which the low twelve bits are used.
    pub mode: Option<u32>,
    /// The owner.
    pub user: Option<u32>,
    /// The owning group.
    pub group: Option<u32>,
    /// Size in bytes.
    pub size: Option<u64>,
    /// True if the file is open for writing: its mode is not checked again.
    pub is_open: bool,
    /// Access time (atime).
    pub accessed: Option<NewTime>,
    /// Modification time (mtime).
    pub modified: Option<NewTime>,
    /// Change time (ctime); only from callers that keep time stamps themselves.
    pub changed: Option<Timestamp>,
}

impl SetAttributes {
    /// True for a chown. A chown to the same owner and group sets no attribute, but clears the set-id bits.
    fn is_chown(&self) -> bool {
        self.user.is_some()
            || self.group.is_some()
            || SetAttributes { is_open: false, ..*self } == SetAttributes::default()
    }
}

impl Posix {
    /// Changes attributes of a file.
    pub fn change(&self, call: &Call, inode: InodeNumber, request: &SetAttributes) -> Result<Attributes, VolumeError> {
        let mut rule = |locked: &mut dyn Locked| {
            if self.checks(call) {
                check_request(locked, call, inode, request)?;
            }
            self.permitted_change(locked, call, inode, request).map(Some)
        };
        self.volume.change(call, inode, &mut rule)
    }

    /// The change of a permitted request, with its side effects.
    fn permitted_change(
        &self,
        locked: &mut dyn Locked,
        call: &Call,
        inode: InodeNumber,
        request: &SetAttributes,
    ) -> Result<Change<'static>, VolumeError> {
        let now = self.timestamp(call);
        let time = |time: NewTime| match time {
            NewTime::Now => now,
            NewTime::At(time) => time,
        };
        let mut change = Change {
            permissions: request.mode.map(|mode| (mode & 0o7777) as u16),
            user: request.user,
            group: request.group,
            size: request.size,
            accessed: request.accessed.map(time),
            // An ftruncate sends no modification time.
            modified: request.modified.map(time).or(request.size.map(|_| now)),
            changed: request.changed,
            extended: Vec::new(),
        };
        if request.is_chown() || request.size.is_some() {
            let attributes = locked.attributes(inode)?;
            if (request.is_chown() || !call.caller.keeps_set_id) && request.mode.is_none() {
                change.permissions = without_set_id(&attributes, &call.caller);
            }
            change.extended.extend(self.capability_removal(locked, &attributes)?);
        }
        if let (Some(_), Some(permissions)) = (request.mode, &mut change.permissions) {
            if self.checks(call) && !may_keep_group_bit(&call.caller, locked.attributes(inode)?.group) {
                *permissions &= !SET_GROUP;
            }
            change.extended.extend(list_after_chmod(locked, inode, *permissions)?);
        }
        Ok(change)
    }
}

/// Fails unless the caller may change all requested attributes.
fn check_request(
    locked: &mut dyn Locked,
    call: &Call,
    inode: InodeNumber,
    request: &SetAttributes,
) -> Result<(), VolumeError> {
    let (caller, attributes) = (&call.caller, locked.attributes(inode)?);
    if request.size.is_some() && !request.is_open {
        check(locked, caller, inode, Wanted::WRITE)?;
    }
    let is_given_away = request.user.is_some_and(|user| user != attributes.user);
    let joins = request.group.is_some_and(|group| group != attributes.group && !caller.is_in(group));
    if is_given_away || joins {
        return Err(VolumeError::NotPermitted(
            "only root may change the owner, or the group to one that the caller is not in",
        ));
    }
    if request.mode.is_some() || request.user.is_some() || request.group.is_some() {
        check_owner(caller, &attributes)?;
    }
    match (request.accessed, request.modified) {
        (None, None) => Ok(()),
        // A caller with write permission may set both times to the current time.
        (Some(NewTime::Now), Some(NewTime::Now)) if caller.user != attributes.user => {
            check(locked, caller, inode, Wanted::WRITE)
        }
        _ => check_owner(caller, &attributes),
    }
}
