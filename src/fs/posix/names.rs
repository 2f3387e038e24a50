//! Lookup, create, link, rename and unlink.

use super::Posix;
use super::access_list::{self, ACCESS, DEFAULT};
use super::permission::{Wanted, check, check_delete};
use super::privileges::{GROUP_EXECUTES, SET_GROUP, may_keep_group_bit};
use crate::fs::volume::{
    Attributes, Call, Caller, FileKind, Found, Hold, IfExists, Inherited, InodeNumber, Locked, Name, NameRule, NewFile,
    RenameRule, Renaming, VolumeError,
};

/// The properties of a file to create, as requested.
#[derive(Clone, Copy, Debug)]
pub struct CreateRequest<'a> {
    /// The kind.
    pub kind: FileKind,
    /// The requested mode, before the umask.
    pub mode: u32,
    /// The device number of a device file.
    pub device: u32,
    /// The target of a symbolic link.
    pub target: &'a [u8],
}

impl Posix {
    /// Looks up a name; `None` if it does not exist. The name `.` is accepted for any inode, by its number alone: an
    /// NFS client can keep a file handle longer than the kernel keeps the inode.
    pub fn lookup(&self, call: &Call, name: Name, hold: Hold) -> Result<Option<Attributes>, VolumeError> {
        let found = match name {
            (inode, b".") if hold == Hold::Yes => self.volume.hold(call, inode),
            (inode, b".") => self.volume.attributes(call, inode),
            name => {
                self.check_before_read(call, name.0, Wanted::EXECUTE)?;
                self.volume.lookup(call, name, hold)
            }
        };
        match found {
            Ok(attributes) => Ok(Some(attributes)),
            Err(VolumeError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates a file, owned by the caller.
    pub fn make(&self, call: &Call, name: Name, made: &CreateRequest, hold: Hold) -> Result<Attributes, VolumeError> {
        let Caller { user, group, .. } = call.caller;
        let (kind, device, target) = (made.kind, u64::from(made.device), made.target);
        let new = NewFile { kind, permissions: 0, user, group, device, target, attributes: &[] };
        let mut rule = |locked: &mut dyn Locked, found: Found| {
            if self.checks(call) {
                let is_device = matches!(kind, FileKind::CharacterDevice | FileKind::BlockDevice);
                check_make(locked, &call.caller, name.0, found.file)?;
                if is_device && found.file.is_none() {
                    return Err(VolumeError::NotPermitted("only root makes device files"));
                }
            }
            inherit(locked, call, name.0, made)
        };
        self.volume.make(call, name, &new, hold, Some(&mut rule))
    }

    /// Adds a hard link to a file.
    pub fn link(&self, call: &Call, inode: InodeNumber, name: Name, hold: Hold) -> Result<Attributes, VolumeError> {
        let mut rule = |locked: &mut dyn Locked, found: Found| check_make(locked, &call.caller, name.0, found.file);
        self.volume.link(call, inode, name, hold, self.if_checked(call, &mut rule))
    }

    /// Removes a name.
    pub fn unlink(&self, call: &Call, name: Name) -> Result<(), VolumeError> {
        let mut rule = |locked: &mut dyn Locked, found: Found| check_remove(locked, &call.caller, name.0, found.file);
        self.volume.unlink(call, name, self.if_checked(call, &mut rule))
    }

    /// Removes an empty directory.
    pub fn remove_directory(&self, call: &Call, name: Name) -> Result<(), VolumeError> {
        let mut rule = |locked: &mut dyn Locked, found: Found| check_remove(locked, &call.caller, name.0, found.file);
        self.volume.remove_directory(call, name, self.if_checked(call, &mut rule))
    }

    /// Renames. A whiteout gets the group of a new file in its directory.
    pub fn rename(&self, call: &Call, from: Name, to: Name, how: Renaming) -> Result<(), VolumeError> {
        let checks = self.checks(call);
        let mut rule = |locked: &mut dyn Locked, found: Found| {
            if checks {
                check_rename(locked, &call.caller, (from.0, to.0), found, how.if_exists)?;
            }
            let Some((user, group)) = how.whiteout else { return Ok(how) };
            let group = inherited_group(&locked.attributes(from.0)?).unwrap_or(group);
            Ok(Renaming { whiteout: Some((user, group)), ..how })
        };
        let rule: Option<RenameRule> = if checks || how.whiteout.is_some() { Some(&mut rule) } else { None };
        self.volume.rename(call, from, to, how, rule)
    }

    /// The target of a symbolic link.
    pub fn target(&self, call: &Call, inode: InodeNumber) -> Result<Vec<u8>, VolumeError> {
        let (target, times) = self.volume.target(call, inode)?;
        self.update_access_time(call, inode, FileKind::Symlink, times);
        Ok(target)
    }

    /// The rule, if permissions are checked here; else `None`.
    fn if_checked<'r>(&self, call: &Call, rule: NameRule<'r>) -> Option<NameRule<'r>> {
        if self.checks(call) { Some(rule) } else { None }
    }
}

/// The group of a directory with the set-group-id bit, which new files in it inherit.
fn inherited_group(directory: &Attributes) -> Option<u32> {
    (directory.permissions & SET_GROUP != 0).then_some(directory.group)
}

/// The mode, group and access control lists that a new file inherits from `directory`. The umask applies if there is no
/// default list.
fn inherit(
    locked: &mut dyn Locked,
    call: &Call,
    directory: InodeNumber,
    made: &CreateRequest,
) -> Result<Inherited, VolumeError> {
    let mut mode = (made.mode & 0o7777) as u16;
    let parent = locked.attributes(directory)?;
    let inherited = inherited_group(&parent);
    let group = inherited.unwrap_or(call.caller.group);
    if inherited.is_some() {
        if made.kind == FileKind::Directory {
            mode |= SET_GROUP;
        } else if mode & (SET_GROUP | GROUP_EXECUTES) == SET_GROUP | GROUP_EXECUTES
            && !may_keep_group_bit(&call.caller, group)
        {
            // The file would run as a group that its creator is not in.
            mode &= !SET_GROUP;
        }
    }
    if made.kind == FileKind::Symlink {
        return Ok(Inherited { permissions: mode, group, attributes: Vec::new() });
    }
    let Some(default) = access_list::of(locked, directory, DEFAULT)? else {
        let permissions = mode & !(call.caller.umask & 0o777);
        return Ok(Inherited { permissions, group, attributes: Vec::new() });
    };
    let mut access = default.clone();
    access.narrow(mode);
    let permissions = mode & !0o777 | access.mode();
    let mut attributes = Vec::new();
    if !access.is_mode() {
        attributes.push((ACCESS, access.bytes()));
    }
    if made.kind == FileKind::Directory {
        attributes.push((DEFAULT, default.bytes()));
    }
    Ok(Inherited { permissions, group, attributes })
}

/// Fails unless the caller may add a name to a directory. Adding an existing name fails later, as EEXIST.
fn check_make(
    locked: &mut dyn Locked,
    caller: &Caller,
    directory: InodeNumber,
    file: Option<InodeNumber>,
) -> Result<(), VolumeError> {
    let wanted = if file.is_some() { Wanted::EXECUTE } else { Wanted::WRITE | Wanted::EXECUTE };
    check(locked, caller, directory, wanted)
}

/// Fails unless the caller may remove a name. Removing a missing name fails later, as ENOENT.
fn check_remove(
    locked: &mut dyn Locked,
    caller: &Caller,
    directory: InodeNumber,
    file: Option<InodeNumber>,
) -> Result<(), VolumeError> {
    match file {
        Some(file) => check_delete(locked, caller, directory, file),
        None => check(locked, caller, directory, Wanted::EXECUTE),
    }
}

fn check_rename(
    locked: &mut dyn Locked,
    caller: &Caller,
    (from, to): (InodeNumber, InodeNumber),
    found: Found,
    taken: IfExists,
) -> Result<(), VolumeError> {
    for directory in [from, to] {
        check(locked, caller, directory, Wanted::EXECUTE)?;
    }
    let Some(file) = found.file else { return Ok(()) };
    if found.existing == Some(file) || found.existing.is_some() && taken == IfExists::Refuse {
        return Ok(());
    }
    check_delete(locked, caller, from, file)?;
    match found.existing {
        Some(there) => check_delete(locked, caller, to, there)?,
        None => check(locked, caller, to, Wanted::WRITE | Wanted::EXECUTE)?,
    }
    // A directory that gets another parent changes: its `..` entry.
    let exchanged = found.existing.filter(|_| taken == IfExists::Exchange);
    for moved in [Some(file), exchanged].into_iter().flatten() {
        if from != to && locked.attributes(moved)?.kind == FileKind::Directory {
            check(locked, caller, moved, Wanted::WRITE)?;
        }
    }
    Ok(())
}
