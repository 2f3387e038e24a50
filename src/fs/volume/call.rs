//! A call to a volume: who makes it, and when.

use crate::task::Task;

/// A call to a volume.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The thread of work that makes it. Its clock says when the call begins, and once it is answered, when it is done.
    pub task: &'a Task<'a>,
    /// The caller.
    pub caller: Caller<'a>,
}

impl<'a> Call<'a> {
    /// One that root makes: nothing is denied to it.
    pub fn by_root(task: &'a Task<'a>) -> Call<'a> {
        Call { task, caller: Caller::ROOT }
    }
}

/// The user that makes a call.
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    /// The user. 0 is root, who may do everything.
    pub user: u32,
    /// The group that its new files have.
    pub group: u32,
    /// True if it is in this other group, too. Asked only where it matters, as it may be slow to find out.
    pub more_groups: &'a dyn Fn(u32) -> bool,
    /// The permissions that its new files do not have, unless the directory says more of them.
    pub umask: u16,
    /// True if what it writes to keeps its set-id bits (CAP_FSETID).
    pub keeps_set_id: bool,
}

impl Caller<'_> {
    /// Root, in no other group.
    pub const ROOT: Caller<'static> =
        Caller { user: 0, group: 0, more_groups: &|_| false, umask: 0o022, keeps_set_id: true };

    /// True if it is in this group.
    pub fn is_in(&self, group: u32) -> bool {
        self.group == group || (self.more_groups)(group)
    }

    /// True if it is root.
    pub fn is_root(&self) -> bool {
        self.user == 0
    }
}
