//! The clocks of a mounted volume: wall-clock time, and the clock of hotness.

use super::placement::Tick;
use crate::fs::volume::Timestamp;
use crate::task::Task;

/// The clocks of a mounted volume.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// Wall-clock time at [`Time::ZERO`](crate::time::Time::ZERO).
    pub origin: Timestamp,
    /// Wall-clock time of mkfs, in nanoseconds: the clock of hotness continues over mounts.
    pub created: i64,
    /// True if the clock of hotness counts written blocks; else it shows microseconds since mkfs.
    pub counts_writes: bool,
    /// The clock of hotness.
    pub tick: Tick,
}

impl Clock {
    /// The wall-clock time.
    pub fn wall(&self, task: &Task<'_>) -> Timestamp {
        self.origin.after(task.now())
    }

    /// Advances the clock of hotness by one written block.
    pub fn advance(&mut self, task: &Task<'_>) {
        let passed = match self.counts_writes {
            true => 0,
            false => (self.wall(task).0.saturating_sub(self.created)).max(0) as u64 / 1000,
        };
        self.tick = Tick((self.tick.0 + 1).max(passed));
    }
}
