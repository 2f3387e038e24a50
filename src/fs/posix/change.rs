//! setattr: modes, owners, sizes, times.

use super::Posix;
use super::access_list::following_mode;
use super::permission::{Wanted, check, check_owner};
use super::privileges::{SET_GROUP, keeps_group_bit, without_set_id};
use crate::fs::volume::{Attributes, Call, Change, InodeNumber, Locked, Timestamp, VolumeError};

/// A time stamp that is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewTime {
    /// Now.
    Now,
    /// Another time.
    At(Timestamp),
}

/// A request of setattr: chmod, chown, truncate and utimensat in one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// The mode; its low twelve bits count.
    pub mode: Option<u32>,
    /// The owner.
    pub user: Option<u32>,
    /// The owning group.
    pub group: Option<u32>,
    /// Bytes.
    pub size: Option<u64>,
    /// The file is open to be written, and may be cut off whatever its mode says now.
    pub is_open: bool,
    /// When it was read.
    pub accessed: Option<NewTime>,
    /// When its bytes changed.
    pub modified: Option<NewTime>,
    /// When anything of it changed: only where the caller keeps these times itself.
    pub changed: Option<Timestamp>,
}

impl Wish {
    /// A chown that changes neither comes without anything at all, and takes set-id bits away all the same.
    fn is_chown(&self) -> bool {
        self.user.is_some() || self.group.is_some() || Wish { is_open: false, ..*self } == Wish::default()
    }
}

impl Posix {
    /// Changes what is known of a file.
    pub fn change(&self, call: &Call, inode: InodeNumber, wish: &Wish) -> Result<Attributes, VolumeError> {
        let mut rule = |locked: &mut dyn Locked| {
            if self.checks(call) {
                check_wish(locked, call, inode, wish)?;
            }
            self.granted(locked, call, inode, wish).map(Some)
        };
        self.volume.change(call, inode, &mut rule)
    }

    /// The change that a permitted wish comes to.
    fn granted(
        &self,
        locked: &mut dyn Locked,
        call: &Call,
        inode: InodeNumber,
        wish: &Wish,
    ) -> Result<Change<'static>, VolumeError> {
        let now = self.timestamp(call);
        let time = |time: NewTime| match time {
            NewTime::Now => now,
            NewTime::At(time) => time,
        };
        let mut change = Change {
            permissions: wish.mode.map(|mode| (mode & 0o7777) as u16),
            user: wish.user,
            group: wish.group,
            size: wish.size,
            accessed: wish.accessed.map(time),
            // An ftruncate comes without it.
            modified: wish.modified.map(time).or(wish.size.map(|_| now)),
            changed: wish.changed,
            extended: Vec::new(),
        };
        if wish.is_chown() || wish.size.is_some() {
            let attributes = locked.attributes(inode)?;
            if (wish.is_chown() || !call.caller.keeps_set_id) && wish.mode.is_none() {
                change.permissions = without_set_id(&attributes, &call.caller);
            }
            change.extended.extend(self.lost_capability(locked, &attributes)?);
        }
        if let (Some(_), Some(permissions)) = (wish.mode, &mut change.permissions) {
            if self.checks(call) && !keeps_group_bit(&call.caller, locked.attributes(inode)?.group) {
                *permissions &= !SET_GROUP;
            }
            change.extended.extend(following_mode(locked, inode, *permissions)?);
        }
        Ok(change)
    }
}

/// Fails unless the caller may change all of it.
fn check_wish(locked: &mut dyn Locked, call: &Call, inode: InodeNumber, wish: &Wish) -> Result<(), VolumeError> {
    let (caller, attributes) = (&call.caller, locked.attributes(inode)?);
    if wish.size.is_some() && !wish.is_open {
        check(locked, caller, inode, Wanted::WRITE)?;
    }
    let is_given_away = wish.user.is_some_and(|user| user != attributes.user);
    let joins = wish.group.is_some_and(|group| group != attributes.group && !caller.is_in(group));
    if is_given_away || joins {
        return Err(VolumeError::NotPermitted("only root gives files away"));
    }
    if wish.mode.is_some() || wish.user.is_some() || wish.group.is_some() {
        check_owner(caller, &attributes)?;
    }
    match (wish.accessed, wish.modified) {
        (None, None) => Ok(()),
        // Who may write may say that it was used now.
        (Some(NewTime::Now), Some(NewTime::Now)) if caller.user != attributes.user => {
            check(locked, caller, inode, Wanted::WRITE)
        }
        _ => check_owner(caller, &attributes),
    }
}
