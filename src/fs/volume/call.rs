//! A call to a volume: its caller and its time.

use crate::task::Task;

/// A call to a volume.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The task that makes the call. Its clock is the start time of the call; the call advances it to its completion.
    pub task: &'a Task<'a>,
    /// The caller.
    pub caller: Caller<'a>,
}

impl<'a> Call<'a> {
    /// A call by root, which passes all permission checks.
    pub fn by_root(task: &'a Task<'a>) -> Call<'a> {
        Call { task, caller: Caller::ROOT }
    }
}

/// The credentials of a caller.
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    /// The user. 0 is root, which passes all permission checks.
    pub user: u32,
    /// The group of its new files.
    pub group: u32,
    /// True if the caller is in this supplementary group. Called only when needed, since the answer can be slow.
    pub more_groups: &'a dyn Fn(u32) -> bool,
    /// Permission bits removed from new files, unless the directory has a default access control list.
    pub umask: u16,
    /// True if its writes preserve set-id bits (CAP_FSETID).
    pub keeps_set_id: bool,
}

impl Caller<'_> {
    /// Root, without supplementary groups.
    pub const ROOT: Caller<'static> =
        Caller { user: 0, group: 0, more_groups: &|_| false, umask: 0o022, keeps_set_id: true };

    /// True if the caller is in this group.
    pub fn is_in(&self, group: u32) -> bool {
        self.group == group || (self.more_groups)(group)
    }

    /// True if the caller is root.
    pub fn is_root(&self) -> bool {
        self.user == 0
    }
}
