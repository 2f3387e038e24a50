//! The workload of every generator: a pattern's places as operations.

use super::ROUNDING;
use super::pattern::{Pattern, Place};
use crate::label::Content;
use crate::random::Random;
use crate::workload::{Action, Operation, Workload, WorkloadError};

/// The longest batch, whatever the caller's limit: 64 Ki operations.
const BATCH_LIMIT: u64 = 1 << 16;

/// The kinds and number of a generator's requests.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The size of a request, in bytes.
    pub request_bytes: u64,
    /// The share of the requests that read.
    pub read_share: f64,
    /// The share of the requests that discard.
    pub discard_share: f64,
    /// The content of the writes.
    pub content: Content,
    /// The number of writes; without writes, of all requests.
    pub counted_requests: u64,
}

impl Plan {
    fn writes_only(&self) -> bool {
        self.read_share == 0.0 && self.discard_share == 0.0
    }

    /// True if reads and discards are all requests. Without the tolerance, `reads=7.9%,discards=92.1%` would wait for a
    /// write for ever.
    fn never_writes(&self) -> bool {
        self.read_share + self.discard_share >= 1.0 - ROUNDING
    }

    #[inline]
    fn operation(&self, action: Action, place: Place) -> Operation {
        let (content, stream) = match action {
            Action::Write => (self.content, place.stream),
            _ => (Content::Data, 0),
        };
        debug_assert!(
            place
                .index
                .checked_mul(self.request_bytes)
                .is_some_and(|offset| offset.checked_add(self.request_bytes).is_some()),
            "place {} lies on the device",
            place.index
        );
        Operation {
            time_ns: 0,
            offset_bytes: place.index * self.request_bytes,
            length_bytes: self.request_bytes,
            action,
            content,
            stream,
            device: 0,
        }
    }
}

/// A pattern's places as operations. Generic, so that a batch is one loop without dynamic calls.
pub struct Stream<P> {
    name: String,
    plan: Plan,
    pattern: P,
    random: Random,
    /// The number of the plan's counted requests emitted so far.
    counted: u64,
}

impl<P: Pattern> Stream<P> {
    /// The workload `name`: the requests of `plan` at the places of `pattern`.
    pub fn new(name: String, plan: Plan, pattern: P, random: Random) -> Stream<P> {
        Stream { name, plan, pattern, random, counted: 0 }
    }

    fn append_writes(&mut self, batch: &mut Vec<Operation>, count: u64) {
        // A local copy: its state stays in registers while the batch is written.
        let mut random = self.random.clone();
        let (plan, pattern) = (&self.plan, &mut self.pattern);
        batch.extend((0..count as usize).map(|_| plan.operation(Action::Write, pattern.place(&mut random))));
        self.random = random;
        self.counted += count;
    }

    /// Appends `limit` operations, fewer at the end of the plan, and returns their number.
    fn append_mixed(&mut self, batch: &mut Vec<Operation>, limit: u64) -> u64 {
        let counts_all = self.plan.never_writes();
        let not_writes = self.plan.read_share + self.plan.discard_share;
        let mut appended = 0;
        while appended < limit && self.counted < self.plan.counted_requests {
            let draw = self.random.unit();
            let action = if draw < self.plan.read_share {
                Action::Read
            } else if counts_all || draw < not_writes {
                Action::Discard
            } else {
                Action::Write
            };
            let place = match action {
                Action::Write => self.pattern.place(&mut self.random),
                _ => self.pattern.other_place(&mut self.random),
            };
            batch.push(self.plan.operation(action, place));
            self.counted += u64::from(counts_all || action == Action::Write);
            appended += 1;
        }
        appended
    }
}

impl<P: Pattern> Workload for Stream<P> {
    fn name(&self) -> &str {
        &self.name
    }

    fn next_batch(&mut self, batch: &mut Vec<Operation>, limit: usize) -> Result<usize, WorkloadError> {
        let limit = BATCH_LIMIT.min(limit as u64);
        let appended = if self.plan.writes_only() {
            let count = limit.min(self.plan.counted_requests - self.counted);
            self.append_writes(batch, count);
            count
        } else {
            self.append_mixed(batch, limit)
        };
        Ok(appended as usize)
    }

    fn stream_at(&self, offset_bytes: u64) -> u8 {
        self.pattern.stream_at(offset_bytes / self.plan.request_bytes)
    }

    fn progress(&self) -> Option<f64> {
        Some(self.counted as f64 / self.plan.counted_requests as f64)
    }
}
