//! The windows of a file workload: all lanes together, in simulated time.

use super::tally::{CLASSES, class_index, moved};
use crate::run::accounts::Stored;
use crate::run::windows::{Asked, Windows, WindowsReport};
use crate::time::Time;
use crate::workload::files::FileOperation;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the media below a file system have stored. It may be asked between any two steps of a lane, and enters no gate.
pub type WhatIsStored<'a> = &'a (dyn Fn() -> Stored + Sync);

/// The windows of a run, from the beginning of counting on.
pub(super) struct OverTime<'a> {
    stored: WhatIsStored<'a>,
    counting: Mutex<Option<Counting>>,
}

struct Counting {
    windows: Windows,
    asked: Asked,
    start: Time,
    /// The latest end of an operation.
    end: Time,
}

impl<'a> OverTime<'a> {
    pub fn new(stored: WhatIsStored<'a>) -> OverTime<'a> {
        OverTime { stored, counting: Mutex::new(None) }
    }

    fn counting(&self) -> MutexGuard<'_, Option<Counting>> {
        self.counting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counting begins at `start`.
    pub fn begin(&self, start: Time) {
        let windows = Windows::new(&CLASSES, &(self.stored)());
        let asked = Asked { written_blocks: 0, read_blocks: 0 };
        *self.counting() = Some(Counting { windows, asked, start, end: start });
    }

    /// Counts an operation that ended at `at`.
    pub fn count(&self, operation: &FileOperation, latency_ns: u64, at: Time) {
        let mut counting = self.counting();
        let Some(counting) = counting.as_mut() else { return };
        counting.windows.record(class_index(operation), latency_ns);
        let moved = moved(operation);
        counting.asked.written_blocks += moved.written_blocks;
        counting.asked.read_blocks += moved.read_blocks;
        counting.end = counting.end.max(at);
        if counting.asked.written_blocks >= counting.windows.next() {
            counting.windows.mark(counting.asked, &(self.stored)(), counting.end);
        }
    }

    pub fn report(&self) -> WindowsReport {
        self.counting()
            .as_ref()
            .map_or_else(WindowsReport::default, |counting| counting.windows.report(counting.start, true))
    }
}
