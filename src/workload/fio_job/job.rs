//! A running job: the sequence of its operations.

use super::settings::{DIRECTIONS, JobSettings, Requests};
use super::skew::{Covering, PartlyRandom};
use crate::label::Content;
use crate::random::Random;
use crate::workload::generator::pattern::{Pattern, Sequential};
use crate::workload::{Action, Operation};

/// One clone of a job, and its progress.
pub(super) struct Job {
    requests: Requests,
    block_bytes: [u64; 3],
    start_bytes: u64,
    amount_bytes: u64,
    read_share: f64,
    flush_every: [u64; 2],
    stream: u8,
    queue_depth: u32,
    patterns: Vec<Box<dyn Pattern>>,
    random: Random,
    moved_bytes: u64,
    writes: u64,
    /// The write that follows a trim-write's discard.
    write_due: Option<Operation>,
    flush_due: bool,
    end_flush_due: bool,
}

impl Job {
    /// Clone number `clone` of section number `section`, in a run with `seed`.
    pub fn new(settings: &JobSettings, section: usize, clone: usize, seed: u64) -> Job {
        let seed = settings.seed.unwrap_or(seed);
        let purpose = format!("fio job {section}.{clone}");
        let portion = settings.portions[clone];
        Job {
            requests: settings.requests,
            block_bytes: settings.block_bytes,
            start_bytes: portion.start_bytes,
            amount_bytes: portion.amount_bytes,
            read_share: settings.read_share,
            flush_every: settings.flush_every,
            stream: settings.stream,
            queue_depth: settings.queue_depth,
            patterns: patterns(settings, portion.length_bytes, &Random::new(seed, &format!("{purpose} layout"))),
            random: Random::new(seed, &purpose),
            moved_bytes: 0,
            writes: 0,
            write_due: None,
            flush_due: false,
            end_flush_due: settings.flushes_at_end,
        }
    }

    pub fn queue_depth(&self) -> u32 {
        self.queue_depth
    }

    /// The bytes to move in all. A trim-write counts its discards only.
    pub fn amount_bytes(&self) -> u64 {
        self.amount_bytes
    }

    /// The bytes moved so far.
    pub fn moved_bytes(&self) -> u64 {
        self.moved_bytes.min(self.amount_bytes)
    }

    /// The next operation; `None` at the end.
    pub fn next(&mut self) -> Option<Operation> {
        if let Some(write) = self.write_due.take() {
            self.count_write();
            return Some(write);
        }
        if self.moved_bytes >= self.amount_bytes {
            return std::mem::take(&mut self.end_flush_due).then_some(FLUSH);
        }
        // fio flushes before the next request, so not after the last one.
        if std::mem::take(&mut self.flush_due) {
            return Some(FLUSH);
        }
        let action = match self.requests {
            Requests::Only(action) => action,
            Requests::Mixed if self.random.unit() < self.read_share => Action::Read,
            Requests::Mixed => Action::Write,
            Requests::TrimWrite => Action::Discard,
        };
        let operation = self.operation(action);
        self.moved_bytes = self.moved_bytes.saturating_add(operation.length_bytes);
        match (action, self.requests) {
            (Action::Write, _) => self.count_write(),
            (_, Requests::TrimWrite) => {
                self.write_due = Some(Operation { action: Action::Write, stream: self.stream, ..operation });
            }
            _ => {}
        }
        Some(operation)
    }

    fn operation(&mut self, action: Action) -> Operation {
        let direction = DIRECTIONS.iter().position(|known| *known == action).unwrap_or_default();
        let length_bytes = self.block_bytes[direction];
        let pattern = direction.min(self.patterns.len() - 1);
        let place = self.patterns[pattern].place(&mut self.random);
        Operation {
            offset_bytes: self.start_bytes + place.index * length_bytes,
            length_bytes,
            action,
            stream: if action == Action::Write { self.stream } else { 0 },
            ..FLUSH
        }
    }

    fn count_write(&mut self) {
        self.writes += 1;
        self.flush_due = self.flush_every.iter().any(|every| *every > 0 && self.writes.is_multiple_of(*every));
    }
}

const FLUSH: Operation = Operation {
    time_ns: 0,
    offset_bytes: 0,
    length_bytes: 0,
    action: Action::Flush,
    content: Content::Data,
    stream: 0,
    device: 0,
};

/// One pattern for each direction, or one for all if they share the random map. All have the same layout: blocks
/// popular with reads are popular with writes.
fn patterns(settings: &JobSettings, length: u64, layout: &Random) -> Vec<Box<dyn Pattern>> {
    if settings.covers {
        let action = DIRECTIONS.iter().position(|action| settings.requests.include(*action)).unwrap_or_default();
        return vec![Box::new(Covering::new(length / settings.block_bytes[action], &mut layout.clone()))];
    }
    let blocks = settings.block_bytes.into_iter().zip(settings.random_share);
    blocks
        .map(|(bytes, random_share)| -> Box<dyn Pattern> {
            // A direction that the job does not use may have blocks larger than the region.
            let n = (length / bytes).max(1);
            if !settings.is_random {
                return Box::new(Sequential::new(n));
            }
            let drawn = settings.skew.pattern(n, &mut layout.clone());
            if random_share == 1.0 { drawn } else { Box::new(PartlyRandom { drawn, random_share, n, next: 0 }) }
        })
        .collect()
}
