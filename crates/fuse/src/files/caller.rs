//! Who makes a request.

use std::fs::read_to_string;

/// Who makes a request, as the kernel says.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// The user.
    pub user: u32,
    /// The group that its new files have.
    pub group: u32,
    /// The thread; 0 if it cannot be seen from here.
    pub thread: u32,
}

impl Caller {
    /// True if it is in this group. Of the groups beside the first a request tells nothing, and /proc does: the thread
    /// waits for its answer. One that cannot be looked at is in none.
    pub fn is_in(&self, group: u32) -> bool {
        self.group == group
            || self.thread != 0
                && read_to_string(format!("/proc/{}/status", self.thread))
                    .is_ok_and(|status| groups(&status).any(|other| other == group))
    }

    /// True if it may leave a set-group-id bit on a file of this group. Root may (CAP_FSETID: of that a request tells
    /// only the user).
    pub fn keeps_group_bit(&self, group: u32) -> bool {
        self.user == 0 || self.is_in(group)
    }
}

/// The groups beside the first, as /proc/.../status lists them.
fn groups(status: &str) -> impl Iterator<Item = u32> + '_ {
    let listed = status.lines().find_map(|line| line.strip_prefix("Groups:")).unwrap_or("");
    listed.split_whitespace().filter_map(|group| group.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_groups_of_a_thread_are_read_from_its_status() {
        let status = "Name:\tcat\nGid:\t5\t5\t5\t5\nGroups:\t4 24 1000 \nNStgid:\t7\n";
        assert_eq!(groups(status).collect::<Vec<_>>(), [4, 24, 1000]);
        assert_eq!(groups("Name:\tcat\n").count(), 0);
        let nobody = Caller { user: 1, group: 7, thread: 0 };
        assert!(nobody.is_in(7) && !nobody.is_in(8) && !nobody.keeps_group_bit(8));
        assert!(Caller { user: 0, ..nobody }.keeps_group_bit(8));
    }
}
