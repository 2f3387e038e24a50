//! Time stamps of files, and the events that set them.

use crate::time::Time;

/// Wall-clock time in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The wall-clock time at a time of the path, if this is that at [`Time::ZERO`].
    pub fn after(self, passed: Time) -> Timestamp {
        Timestamp(self.0.saturating_add(i64::try_from(passed.0).unwrap_or(i64::MAX)))
    }
}

/// The time stamps of a file. Each method is named by an event: together they are POSIX's table of time stamps, for all
/// file systems.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Access time (atime).
    pub accessed: Timestamp,
    /// Modification time: the last change of the bytes, or of the names in a directory (mtime).
    pub modified: Timestamp,
    /// Change time: the last change of data or attributes (ctime).
    pub changed: Timestamp,
    /// Creation time (btime).
    pub created: Timestamp,
}

impl Times {
    /// Time stamps of a file created at `now`.
    pub fn made(now: Timestamp) -> Times {
        Times { accessed: now, modified: now, changed: now, created: now }
    }

    /// Data changed: written, truncated, extended, reserved or punched. In a directory: a name changed.
    pub fn written(&mut self, now: Timestamp) {
        (self.modified, self.changed) = (now, now);
    }

    /// Mode, owner, extended attributes or a name of the file changed, but not its data.
    pub fn changed(&mut self, now: Timestamp) {
        self.changed = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_sets_mtime_and_ctime_and_a_change_of_attributes_only_ctime() {
        let mut times = Times::made(Timestamp(1));
        times.written(Timestamp(2));
        times.changed(Timestamp(3));
        let (accessed, created) = (Timestamp(1), Timestamp(1));
        assert_eq!(times, Times { accessed, modified: Timestamp(2), changed: Timestamp(3), created });
    }
}
