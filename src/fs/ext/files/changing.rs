//! Changes of a file's inode: its mode, its owner, its times, its size, its attributes.

use super::placing::MAP_BLOCKS;
use crate::fs::ext::files::node::File;
use crate::fs::ext::files::writing::Writes;
use crate::fs::ext::format::inode::Stamp;
use crate::fs::ext::journal::Reason;
use crate::fs::volume::{Change, FileKind, Timestamp, VolumeError};
use crate::task::Task;

impl File {
    /// Its bytes, or the names in it, changed.
    pub fn was_written(&mut self, now: Timestamp) {
        self.inode.set_stamp(Stamp::Modified, now);
        self.inode.set_stamp(Stamp::Changed, now);
        self.is_unstored = true;
    }

    /// Something else of it changed.
    pub fn was_changed(&mut self, now: Timestamp) {
        self.inode.set_stamp(Stamp::Changed, now);
        self.is_unstored = true;
    }
}

impl Writes<'_> {
    /// Applies a change to a file. The task is behind its gate.
    pub fn apply(&self, task: &Task<'_>, file: &mut File, change: &Change<'_>) -> Result<(), VolumeError> {
        let now = self.origin.after(task.now());
        if change.size.is_some() {
            file.check_regular()?;
        }
        let plan = match change.extended.is_empty() {
            true => None,
            false => Some(self.write_back.inodes.plan_attributes(task, file, &change.extended)?),
        };
        // Before anything changes.
        let promise = match plan.is_some() {
            true => Some(self.allocation().promise(task, 2, false)?),
            false => None,
        };
        if let Some(size) = change.size {
            self.resize(task, file, size)?;
            file.was_written(now);
        }
        set_fields(file, change, now);
        let is_times_alone = change.permissions.is_none()
            && change.user.is_none()
            && change.group.is_none()
            && change.size.is_none()
            && plan.is_none();
        if is_times_alone {
            // They wait for the next time that the inode is stored.
            return Ok(());
        }
        self.changes.within(task, MAP_BLOCKS, |handle| {
            handle.tracked(|tracker| match file.kind() {
                _ if plan.is_some() => tracker.exclude(Reason::Attributes),
                FileKind::Directory => tracker.exclude(Reason::Directory),
                _ => {}
            });
            self.changes.changing(|| {
                if let Some(plan) = plan {
                    self.write_back.inodes.store_attributes(handle, file, plan)?;
                }
                self.write_back.inodes.store_inode(handle, file, true)
            })
        })?;
        drop(promise);
        Ok(())
    }
}

fn set_fields(file: &mut File, change: &Change<'_>, now: Timestamp) {
    let kind = file.kind();
    if let Some(permissions) = change.permissions {
        file.inode.set_mode(kind, permissions);
    }
    if let Some(user) = change.user {
        file.inode.set_user(user);
    }
    if let Some(group) = change.group {
        file.inode.set_group(group);
    }
    file.was_changed(now);
    let stamps =
        [(Stamp::Accessed, change.accessed), (Stamp::Modified, change.modified), (Stamp::Changed, change.changed)];
    for (stamp, at) in stamps {
        if let Some(at) = at {
            file.inode.set_stamp(stamp, at);
        }
    }
}
