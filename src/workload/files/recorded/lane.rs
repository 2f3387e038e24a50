//! A lane of a recording, which waits for what it needs of others.

use super::plan::{Plan, Planned};
use crate::workload::WorkloadError;
use crate::workload::files::{FileOperation, Lane, Name};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A lane that needs what another has not done yet looks again after so many nanoseconds.
const LOOK_AGAIN_NS: u64 = 10_000;
/// The operations of the setup that are emitted at once.
const AT_ONCE: usize = 64;

/// The number of operations of each lane, and how many are done, in all replays.
type Done = Arc<[(u64, AtomicU64)]>;

/// A lane.
struct RecordedLane {
    number: usize,
    setup: std::vec::IntoIter<FileOperation>,
    planned: Vec<Planned>,
    /// What is between two replays, and how much of it was emitted.
    restore: (Vec<FileOperation>, usize),
    /// The replays before this one.
    replays: u64,
    /// The number of operations of this replay that were emitted.
    emitted: usize,
    has_idled: bool,
    done: Done,
    paths: Arc<[String]>,
    warning: Option<String>,
}

/// The lanes of a plan.
pub fn lanes(plan: Plan) -> Vec<Box<dyn Lane>> {
    let done: Done = plan.lanes.iter().map(|lane| (lane.len() as u64, AtomicU64::new(0))).collect();
    let paths: Arc<[String]> = plan.paths.into();
    let warning = (plan.unknown > 0).then(|| {
        format!(
            "{} calls were left out: the recording does not know their file or name, or they contradict earlier ones",
            plan.unknown
        )
    });
    let mut first = Some((plan.setup, plan.restore.unwrap_or_default(), warning));
    let lanes = plan.lanes.into_iter().enumerate().map(|(number, planned)| {
        let (setup, restore, warning) = first.take().unwrap_or_default();
        let (done, paths) = (Arc::clone(&done), Arc::clone(&paths));
        let lane = RecordedLane {
            number,
            setup: setup.into_iter(),
            planned,
            restore: (restore, 0),
            replays: 0,
            emitted: 0,
            has_idled: false,
            done,
            paths,
            warning,
        };
        Box::new(lane) as Box<dyn Lane>
    });
    lanes.collect()
}

impl RecordedLane {
    /// The next operation of a replay, or a wait before it.
    fn next(&mut self) -> Option<FileOperation> {
        // A step is asked for when the operations of the one before are done. Counts only grow: a lane that has not begun
        // this replay has not done anything in it.
        let done = |lane: u32, count: u32| {
            let (all, done) = &self.done[lane as usize];
            done.load(Ordering::Acquire) >= self.replays * all + u64::from(count)
        };
        let (all, own) = &self.done[self.number];
        own.store(self.replays * all + self.emitted as u64, Ordering::Release);
        let Planned { operation, idle_ns, after } = self.planned.get(self.emitted)?;
        if *idle_ns > 0 && !std::mem::replace(&mut self.has_idled, true) {
            return Some(FileOperation::Idle { ns: *idle_ns });
        }
        if after.iter().any(|(lane, count)| !done(*lane, *count)) {
            return Some(FileOperation::Idle { ns: LOOK_AGAIN_NS });
        }
        (self.emitted, self.has_idled) = (self.emitted + 1, false);
        Some(*operation)
    }
}

impl Lane for RecordedLane {
    fn step(&mut self, stage: usize, operations: &mut Vec<FileOperation>) -> Result<bool, WorkloadError> {
        match stage {
            0 => operations.extend(self.setup.by_ref().take(AT_ONCE)),
            _ if stage.is_multiple_of(2) => {
                let (restore, emitted) = &mut self.restore;
                operations.extend(restore.iter().skip(*emitted).take(AT_ONCE));
                *emitted += operations.len();
            }
            _ => {
                let replay = stage as u64 / 2;
                if replay != self.replays {
                    (self.replays, self.emitted, self.has_idled, self.restore.1) = (replay, 0, false, 0);
                }
                operations.extend(self.next());
            }
        }
        Ok(!operations.is_empty())
    }

    fn write_path(&self, name: Name, path: &mut String) {
        path.push_str(&self.paths[name as usize]);
    }

    fn progress(&self, stage: usize) -> Option<f64> {
        (!stage.is_multiple_of(2) && !self.planned.is_empty()).then(|| self.emitted as f64 / self.planned.len() as f64)
    }

    fn warnings(&self) -> Vec<String> {
        self.warning.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::format::{Call, Record};
    use super::*;

    #[test]
    fn a_lane_goes_on_when_the_other_has_done_what_it_needs() {
        let record = |thread, begin_ns, call| Record { thread, begin_ns, duration_ns: 1, call };
        let plan = Plan::of(&[
            record(1, 0, Call::Create { parent: 1, inode: 5, name: b"f".to_vec() }),
            record(2, 50, Call::Write { inode: 5, offset: 0, length: 9 }),
            record(1, 60, Call::Fsync { inode: 5 }),
        ]);
        let mut lanes = lanes(plan);
        let mut step = |lane: usize| {
            let mut operations = Vec::new();
            lanes[lane].step(1, &mut operations).unwrap();
            operations.first().copied()
        };
        assert_eq!(step(1), Some(FileOperation::Idle { ns: 50 }));
        assert_eq!(step(1), Some(FileOperation::Idle { ns: LOOK_AGAIN_NS }), "the file is not there");
        assert!(matches!(step(0), Some(FileOperation::Create(_))));
        assert_eq!(step(1), Some(FileOperation::Idle { ns: LOOK_AGAIN_NS }), "it is being created");
        assert_eq!(step(0), Some(FileOperation::Idle { ns: 59 }), "the create is done");
        assert!(matches!(step(1), Some(FileOperation::Open(_))));
        assert!(matches!(step(1), Some(FileOperation::Write { length: 9, .. })));
        assert_eq!(step(0), Some(FileOperation::Idle { ns: LOOK_AGAIN_NS }), "the write makes it longer");
        assert!(matches!(step(1), Some(FileOperation::Close(_))));
        assert!(matches!(step(0), Some(FileOperation::Fsync(_))));
        assert!(matches!(step(0), Some(FileOperation::Close(_))));
        assert_eq!((step(0), step(1)), (None, None));
    }
}
