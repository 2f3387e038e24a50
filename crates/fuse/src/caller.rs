//! The caller of a request, as the kernel says.

use flashpath::fs::volume::Caller;
use fuser::Request;
use std::fs::read_to_string;

/// The caller of a request, whose supplementary groups are `more_groups`. `umask` is that of a request that makes a file.
///
/// A request does not carry capabilities: only root is taken to keep set-id bits (CAP_FSETID).
pub fn caller<'a>(request: &Request, umask: u32, more_groups: &'a dyn Fn(u32) -> bool) -> Caller<'a> {
    let user = request.uid();
    Caller { user, group: request.gid(), more_groups, umask: (umask & 0o777) as u16, keeps_set_id: user == 0 }
}

/// Answers for a group whether the caller of a request is in it.
///
/// A request does not carry supplementary groups. They are read from /proc, where the calling thread waits for its
/// answer; a thread that is not visible there is in none.
pub fn more_groups(request: &Request) -> impl Fn(u32) -> bool + use<> {
    let thread = request.pid();
    move |group| thread_is_in(thread, group)
}

/// True if the thread is in this supplementary group. The number 0 stands for a thread of another PID namespace.
fn thread_is_in(thread: u32, group: u32) -> bool {
    thread != 0
        && read_to_string(format!("/proc/{thread}/status"))
            .is_ok_and(|status| groups(&status).any(|other| other == group))
}

/// The supplementary groups in the text of /proc/.../status.
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
        assert!(!thread_is_in(0, 7));
    }
}
