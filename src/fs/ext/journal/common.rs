//! The state that every journal keeps: blocks that were freed and may not be used yet, counts, and why nothing is changed any more.

use super::withheld::Withheld;
use crate::fs::ext::blocks::Blocks;
use crate::fs::ext::media::Media;
use crate::fs::volume::{Timestamp, VolumeError};
use crate::time::Time;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts since the mount.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub commits: u64,
    pub checkpoints: u64,
    pub logged_blocks: u64,
    pub revokes: u64,
    /// Commits, or handles, that waited for a checkpoint because the journal had no room.
    pub waits: u64,
}

pub(super) fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    // Between two changes of the state behind these locks nothing can panic.
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The state that every journal keeps.
pub struct Common {
    pub(super) media: Arc<Media>,
    pub(super) blocks: Arc<Blocks>,
    /// Blocks that were freed, and may not be used before the transaction that freed them is committed.
    withheld: Mutex<Withheld>,
    /// Nothing is changed or committed any more, for a reason. The flag alone is looked at where nothing has failed.
    is_aborted: AtomicBool,
    aborted: Mutex<Option<String>>,
    /// The time on the wall clock at [`Time::ZERO`].
    origin: Timestamp,
}

impl Common {
    pub(super) fn new(media: Arc<Media>, blocks: Arc<Blocks>, origin: Timestamp) -> Common {
        Common {
            media,
            blocks,
            withheld: Mutex::default(),
            is_aborted: AtomicBool::new(false),
            aborted: Mutex::default(),
            origin,
        }
    }

    /// Nanoseconds on the wall clock.
    pub(super) fn wall_ns(&self, at: Time) -> i64 {
        self.origin.after(at).0
    }

    /// Keeps blocks from being used. A replay keeps some twice: those that files get, and lose again. They are one range then.
    pub fn withhold(&self, range: Range<u64>) {
        locked(&self.withheld).add(range);
    }

    /// Lets blocks be used again that were kept from it.
    pub fn unhold(&self, start: u64) {
        self.unhold_all([start]);
    }

    pub(super) fn unhold_all(&self, starts: impl IntoIterator<Item = u64>) {
        let mut withheld = locked(&self.withheld);
        for start in starts {
            withheld.remove(start);
        }
    }

    /// The parts of a range of blocks that may not be used yet.
    pub fn withheld(&self, range: Range<u64>) -> Vec<Range<u64>> {
        locked(&self.withheld).within(range)
    }

    /// The number of blocks that were freed and may not be used yet.
    pub fn withheld_blocks(&self) -> u64 {
        locked(&self.withheld).blocks()
    }

    /// Nothing more is changed or committed, for this reason.
    pub fn abort(&self, why: &str) {
        locked(&self.aborted).get_or_insert_with(|| why.to_string());
        self.is_aborted.store(true, Ordering::Release);
    }

    /// The reason why nothing more is changed, if so.
    pub fn aborted(&self) -> Option<String> {
        if self.is_aborted.load(Ordering::Acquire) { locked(&self.aborted).clone() } else { None }
    }

    pub(super) fn check(&self) -> Result<(), VolumeError> {
        self.aborted().map_or(Ok(()), |why| Err(VolumeError::ReadOnly(why)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::conv::Conventional;

    /// Of two ranges with the same first block the second took the place of the first, and one within another hid its end.
    #[test]
    #[allow(clippy::single_range_in_vec_init, reason = "lists of ranges")]
    fn blocks_that_are_kept_twice_stay_kept() {
        let media = Arc::new(Media::new(Box::new(Conventional::in_memory(64, 4096)), 4096));
        let common = Common::new(media, Arc::new(Blocks::new(None, 16)), Timestamp(0));
        for range in [10..14, 10..11, 12..13, 20..22, 13..21, 30..31] {
            common.withhold(range);
        }
        assert_eq!(common.withheld(0..64), [10..22, 30..31]);
        assert_eq!((common.withheld(13..15), common.withheld_blocks()), (vec![13..15], 13));
        common.unhold(10);
        assert_eq!(common.withheld(0..64), [30..31]);
    }
}
