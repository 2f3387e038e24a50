//! The reads that are noted in a file's time of access.

use super::Posix;
use crate::fs::volume::{Call, Change, FileKind, InodeNumber, Locked, Times, Timestamp};

/// After so long, a read is noted although the file has not changed since the last (relatime).
const STALE_NS: i64 = 24 * 3600 * 1_000_000_000;

/// The reads that are noted in a file's time of access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessTimes {
    /// The first after each change, and one a day.
    #[default]
    Relative,
    /// All that come here.
    Strict,
    /// None.
    Never,
}

impl Posix {
    /// Notes that a file was read that had these time stamps, if that is due.
    pub(super) fn note_read(&self, call: &Call, inode: InodeNumber, kind: FileKind, times: Times) {
        let now = self.timestamp(call);
        let is_ignored = self.usage.ignores_directory_reads && kind == FileKind::Directory;
        if self.usage.read_only || is_ignored || !is_noted(self.usage.access_times, &times, now) {
            return;
        }
        let mut rule = |locked: &mut dyn Locked| {
            // Somebody else may have noted it meanwhile.
            let times = locked.attributes(inode)?.times;
            let change = Change { accessed: Some(now), changed: Some(times.changed), ..Change::default() };
            Ok((times.accessed < now && is_noted(self.usage.access_times, &times, now)).then_some(change))
        };
        // What was read was read, whether or not it can be noted.
        let _ = self.volume.change(call, inode, &mut rule);
    }
}

fn is_noted(access_times: AccessTimes, times: &Times, now: Timestamp) -> bool {
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
    fn a_read_is_noted_once_after_each_change_and_once_a_day() {
        let is_due = |times: &Times, now| is_noted(AccessTimes::Relative, times, now);
        let mut read = Times::made(Timestamp(5));
        assert!(is_due(&read, Timestamp(6)));
        read.accessed = Timestamp(6);
        assert!(!is_due(&read, Timestamp(7)));
        read.changed = Timestamp(8);
        assert!(is_due(&read, Timestamp(9)));
        read.accessed = Timestamp(9);
        assert!(!is_due(&read, Timestamp(8 + STALE_NS)) && is_due(&read, Timestamp(9 + STALE_NS)));
        assert!(is_noted(AccessTimes::Strict, &read, Timestamp(9)));
        assert!(!is_noted(AccessTimes::Never, &read, Timestamp(9 + STALE_NS)));
    }
}
