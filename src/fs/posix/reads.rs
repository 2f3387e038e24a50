//! Updates of access times by reads.

use super::Posix;
use crate::fs::volume::{Call, Change, FileKind, InodeNumber, Locked, Times, Timestamp};

/// Age of the access time, in nanoseconds, after which a read updates it even if the file has not changed (relatime).
const STALE_NS: i64 = 24 * 3600 * 1_000_000_000;

/// The policy for updates of the access time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessTimes {
    /// The first read after each change, and one a day (relatime).
    #[default]
    Relative,
    /// Every read that reaches the file system (strictatime).
    Strict,
    /// No read (noatime).
    Never,
}

impl Posix {
    /// Updates the access time of a file that was read at `times`, if the policy says so.
    pub(super) fn update_access_time(&self, call: &Call, inode: InodeNumber, kind: FileKind, times: Times) {
        let now = self.timestamp(call);
        let is_ignored = self.usage.ignores_directory_reads && kind == FileKind::Directory;
        if self.usage.read_only || is_ignored || !is_access_time_due(self.usage.access_times, &times, now) {
            return;
        }
        let mut rule = |locked: &mut dyn Locked| {
            // Another task may have updated it since.
            let times = locked.attributes(inode)?.times;
            let change = Change { accessed: Some(now), changed: Some(times.changed), ..Change::default() };
            Ok((times.accessed < now && is_access_time_due(self.usage.access_times, &times, now)).then_some(change))
        };
        // A read succeeds even if its access time cannot be stored.
        let _ = self.volume.change(call, inode, &mut rule);
    }
}

fn is_access_time_due(access_times: AccessTimes, times: &Times, now: Timestamp) -> bool {
    match access_times {
        AccessTimes::Never => false,
        AccessTimes::Strict => true,
        AccessTimes::Relative => {
            times.accessed <= times.modified
                || times.accessed <= times.changed
                || now.0.saturating_sub(times.accessed.0) >= STALE_NS
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_time_is_updated_once_after_each_change_and_once_a_day() {
        let is_due = |times: &Times, now| is_access_time_due(AccessTimes::Relative, times, now);
        let mut read = Times::made(Timestamp(5));
        assert!(is_due(&read, Timestamp(6)));
        read.accessed = Timestamp(6);
        assert!(!is_due(&read, Timestamp(7)));
        read.changed = Timestamp(8);
        assert!(is_due(&read, Timestamp(9)));
        read.accessed = Timestamp(9);
        assert!(!is_due(&read, Timestamp(8 + STALE_NS)) && is_due(&read, Timestamp(9 + STALE_NS)));
        assert!(is_access_time_due(AccessTimes::Strict, &read, Timestamp(9)));
        assert!(!is_access_time_due(AccessTimes::Never, &read, Timestamp(9 + STALE_NS)));
    }
}
