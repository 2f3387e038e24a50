//! The times of background work.

use crate::fs::sfs::SfsSettings;
use crate::time::Time;

/// Background work that is due.
pub(super) enum Due {
    Nothing,
    WriteOut,
    Checkpoint,
}

/// The times of background work.
#[derive(Clone, Copy, Debug)]
pub(in crate::fs::sfs) struct Schedule {
    flush_ns: u64,
    checkpoint_ns: u64,
    next_flush: Time,
    next_checkpoint: Time,
}

impl Schedule {
    /// The times of a volume that is mounted at [`Time::ZERO`].
    pub fn new(settings: &SfsSettings) -> Schedule {
        let SfsSettings { flush_ns, checkpoint_ns, .. } = *settings;
        let (next_flush, next_checkpoint) = (Time::ZERO + flush_ns, Time::ZERO + checkpoint_ns);
        Schedule { flush_ns, checkpoint_ns, next_flush, next_checkpoint }
    }

    /// Notes a checkpoint.
    pub fn checkpoint_taken(&mut self, now: Time) {
        self.next_checkpoint = now + self.checkpoint_ns;
    }

    /// The time of the next work.
    pub fn next(&self) -> Time {
        self.next_flush.min(self.next_checkpoint)
    }

    /// The work that is due, which then counts as done. `is_changed`: a checkpoint would store something.
    pub(super) fn take_due(&mut self, now: Time, is_changed: bool) -> Due {
        if now >= self.next_checkpoint {
            self.next_checkpoint = now + self.checkpoint_ns;
            self.next_flush = now + self.flush_ns;
            if is_changed { Due::Checkpoint } else { Due::Nothing }
        } else if now >= self.next_flush {
            self.next_flush = now + self.flush_ns;
            Due::WriteOut
        } else {
            Due::Nothing
        }
    }
}
