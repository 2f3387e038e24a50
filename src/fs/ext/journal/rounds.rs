//! Rounds: a checkpoint that several threads work on, each with a clock of its own.
//!
//! A *round* has a goal: the committed transactions that it writes home. The goal is divided into parts. A checkpoint thread
//! takes a part, writes it home piece by piece, and takes the next. The thread that ends the last part ends the round: it makes all
//! parts durable and frees their room in the journal.
//!
//! A checkpoint thread is a place for a lent thread: a thread of a front end, or a call that needs room. In a
//! simulated run each place has a clock. It works while its clock is behind that of the call that looks, and a call waits
//! for a round only if it needs the blocks that the round frees.

use super::atomic::{AtomicBool, AtomicU64, AtomicUsize, Mutex, locked, relax_longer};
use crate::fs::volume::VolumeError;
use crate::task::Task;
use crate::time::Time;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::{Arc, TryLockError};

/// The checkpoint threads of a journal, and the round that they work on.
pub(super) struct Rounds<G, P> {
    workers: Vec<Mutex<Worker<G, P>>>,
    current: Mutex<Option<Arc<Round<G>>>>,
}

/// A checkpoint thread.
pub(super) struct Worker<G, P> {
    clock: Time,
    part: Option<(Arc<Round<G>>, P)>,
}

/// A round.
pub(super) struct Round<G> {
    pub(super) goal: G,
    begin: Time,
    parts: usize,
    handed_out: AtomicUsize,
    ended: AtomicUsize,
    end: AtomicU64,
    is_over: AtomicBool,
    has_failed: AtomicBool,
    /// The first error, until somebody has returned it.
    failure: Mutex<Option<VolumeError>>,
}

impl<G> Round<G> {
    fn new(goal: G, parts: usize, begin: Time) -> Round<G> {
        assert!(parts > 0, "who ends the last part ends the round");
        Round {
            goal,
            begin,
            parts,
            handed_out: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
            end: AtomicU64::new(begin.0),
            is_over: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
            failure: Mutex::default(),
        }
    }

    fn fail(&self, error: VolumeError) {
        self.has_failed.store(true, Release);
        locked(&self.failure).get_or_insert(error);
    }

    fn has_failed(&self) -> bool {
        self.has_failed.load(Acquire)
    }

    fn has_more(&self) -> bool {
        self.handed_out.load(Relaxed) < self.parts
    }

    fn take_failure(&self) -> Result<(), VolumeError> {
        locked(&self.failure).take().map_or(Ok(()), Err)
    }
}

impl<G, P> Rounds<G, P> {
    /// So many checkpoint threads.
    pub(super) fn new(threads: usize) -> Rounds<G, P> {
        let worker = || Mutex::new(Worker { clock: Time::ZERO, part: None });
        Rounds { workers: (0..threads.max(1)).map(|_| worker()).collect(), current: Mutex::new(None) }
    }

    pub(super) fn threads(&self) -> usize {
        self.workers.len()
    }

    fn current(&self) -> Option<Arc<Round<G>>> {
        locked(&self.current).clone()
    }

    /// The round under way, or a new one if `goal` has one for it.
    fn join(&self, at: Time, goal: impl FnOnce() -> Option<(G, usize)>) -> Option<Arc<Round<G>>> {
        let mut current = locked(&self.current);
        if current.is_none() {
            *current = goal().map(|(goal, parts)| Arc::new(Round::new(goal, parts, at)));
        }
        current.clone()
    }
}

/// A journal whose checkpoints are rounds.
pub(super) trait Checkpointed {
    /// The transactions of a round.
    type Goal;
    /// A part of them, for one thread.
    type Part;

    fn rounds(&self) -> &Rounds<Self::Goal, Self::Part>;

    /// The goal of the round that is due, and its number of parts, which is not 0.
    fn due_goal(&self) -> Option<(Self::Goal, usize)>;

    /// True if a round is due. It costs less than the goal.
    fn is_round_due(&self) -> bool;

    /// Takes a part.
    fn part(&self, goal: &Self::Goal, number: usize) -> Self::Part;

    /// Writes a piece of a part home; false if nothing of it was left.
    fn write_piece(&self, task: &Task<'_>, goal: &Self::Goal, part: &mut Self::Part) -> Result<bool, VolumeError>;

    /// All parts have ended. Unless one has failed, makes them durable, and frees their room.
    fn end_round(&self, task: &Task<'_>, goal: &Self::Goal, has_failed: bool) -> Result<(), VolumeError>;

    /// True if a checkpoint thread would find something to do.
    fn wants_thread(&self) -> bool {
        match self.rounds().current() {
            Some(round) => round.has_more(),
            None => self.is_round_due(),
        }
    }

    /// Lends a thread to the round that is under way or due, while it has parts to hand out. In a simulated run, all
    /// checkpoint threads work up to now.
    fn lend_thread(&self, task: &Task<'_>) -> Result<(), VolumeError> {
        if task.is_simulated() {
            return self.simulate(task).map(drop);
        }
        let goal = || self.is_round_due().then(|| self.due_goal()).flatten();
        self.rounds().join(task.now(), goal).map_or(Ok(()), |round| self.work_on(task, &round))
    }

    /// Waits for the round under way, or for a new one with this goal if there is none.
    fn finish_with(
        &self,
        task: &Task<'_>,
        goal: impl FnOnce() -> Option<(Self::Goal, usize)>,
    ) -> Result<(), VolumeError> {
        self.rounds().join(task.now(), goal).map_or(Ok(()), |round| self.finish(task, &round))
    }

    /// Waits for the end of a round. A thread that is not simulated works on it meanwhile.
    fn finish(&self, task: &Task<'_>, round: &Arc<Round<Self::Goal>>) -> Result<(), VolumeError> {
        let mut looks = 0;
        while !round.is_over.load(Acquire) {
            if task.is_simulated() {
                if let Some(next) = self.simulate(task)? {
                    task.wait_until(next);
                }
                continue;
            }
            self.work_on(task, round)?;
            looks += 1;
            relax_longer(task, looks);
        }
        task.wait_until(Time(round.end.load(Acquire)));
        round.take_failure()
    }

    /// Works on a round while it has something to hand out.
    fn work_on(&self, task: &Task<'_>, round: &Arc<Round<Self::Goal>>) -> Result<(), VolumeError> {
        for worker in &self.rounds().workers {
            let mut worker = match worker.try_lock() {
                Ok(worker) => worker,
                Err(TryLockError::WouldBlock) => continue,
                Err(TryLockError::Poisoned(broken)) => broken.into_inner(),
            };
            // When the round has no more to hand out, another may have a part that a thread has left in a panic.
            while self.step(&mut worker, task, round)? {}
        }
        Ok(())
    }

    /// Lets all checkpoint threads work up to the clock of `task`. Returns when the next of them goes on, if one has
    /// something to do.
    fn simulate(&self, task: &Task<'_>) -> Result<Option<Time>, VolumeError> {
        loop {
            let goal = || self.is_round_due().then(|| self.due_goal()).flatten();
            let Some(round) = self.rounds().join(task.now(), goal) else { return Ok(None) };
            let workers = self.rounds().workers.iter().map(locked);
            let able = workers.filter(|worker| worker.part.is_some() || round.has_more());
            let Some(mut worker) = able.min_by_key(|worker| worker.clock.max(round.begin)) else { return Ok(None) };
            let begin = worker.clock.max(round.begin);
            if begin > task.now() {
                return Ok(Some(begin));
            }
            let thread = task.beside(begin);
            let stepped = self.step(&mut worker, &thread, &round);
            worker.clock = thread.now();
            stepped?;
        }
    }

    /// A step of a checkpoint thread: it takes a part, writes a piece of it, or ends it. False if there is nothing to do.
    fn step(
        &self,
        worker: &mut Worker<Self::Goal, Self::Part>,
        task: &Task<'_>,
        round: &Arc<Round<Self::Goal>>,
    ) -> Result<bool, VolumeError> {
        let Some((round, part)) = &mut worker.part else {
            let number = round.handed_out.fetch_add(1, AcqRel);
            if number < round.parts {
                worker.part = Some((Arc::clone(round), self.part(&round.goal, number)));
            }
            return Ok(number < round.parts);
        };
        if !round.has_failed() {
            match self.write_piece(task, &round.goal, part) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(error) => round.fail(error),
            }
        }
        let round = Arc::clone(round);
        worker.part = None;
        round.end.fetch_max(task.now().0, AcqRel);
        if round.ended.fetch_add(1, AcqRel) + 1 == round.parts {
            task.wait_until(Time(round.end.load(Acquire)));
            if let Err(error) = self.end_round(task, &round.goal, round.has_failed()) {
                round.fail(error);
            }
            round.end.fetch_max(task.now().0, AcqRel);
            *locked(&self.rounds().current) = None;
            round.is_over.store(true, Release);
            round.take_failure()?;
        }
        Ok(true)
    }
}
