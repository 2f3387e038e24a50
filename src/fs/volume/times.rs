//! The time stamps of a file, and which event sets which of them.

/// Nanoseconds since 1970, on the wall clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub i64);

/// The time stamps of a file. The methods are named by the event; that is POSIX's table of time stamps, for all file
/// systems.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// When it was read.
    pub accessed: Timestamp,
    /// When its bytes, or the names in it, changed.
    pub modified: Timestamp,
    /// When anything of it changed.
    pub changed: Timestamp,
    /// When it was made.
    pub created: Timestamp,
}

impl Times {
    /// Those of a file that is made now.
    pub fn made(now: Timestamp) -> Times {
        Times { accessed: now, modified: now, changed: now, created: now }
    }

    /// Its bytes changed: written, cut off, lengthened, reserved, punched. Of a directory: the names in it.
    pub fn written(&mut self, now: Timestamp) {
        (self.modified, self.changed) = (now, now);
    }

    /// Its mode, owner, extended attributes, or one of its names changed, and not its bytes.
    pub fn changed(&mut self, now: Timestamp) {
        self.changed = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_a_change_and_a_change_is_no_write() {
        let mut times = Times::made(Timestamp(1));
        times.written(Timestamp(2));
        times.changed(Timestamp(3));
        let (accessed, created) = (Timestamp(1), Timestamp(1));
        assert_eq!(times, Times { accessed, modified: Timestamp(2), changed: Timestamp(3), created });
    }
}
