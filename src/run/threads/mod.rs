//! The threads of a simulated run: coroutines on one system thread, each with a clock of its own. The one furthest behind
//! goes next, of two the one with the lower number; so the same work comes out the same each time.
//!
//! | file | role |
//! |---|---|
//! | `schedule` | who is ready, who goes next, and each thread's place among the others |
//! | `gates` | who is inside of each gate, and who waits there |
//! | `gate_waits` | the time that threads have waited at gates |
//! | `tests` | small programs whose overlap is computed by hand, and random ones |
//! | `volume_tests` | threads on a volume whose device takes long |
//!
//! `docs/threads.md` is the design.

mod gate_waits;
mod gates;
mod schedule;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod volume_tests;

pub(super) use gate_waits::GateWaits;

use crate::task::{Costs, Task};
use crate::time::Time;
use corosensei::stack::DefaultStack;
use corosensei::{CoroutineResult, ScopedCoroutine, ScopedCoroutineRef};
use schedule::{Place, Schedule};
use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The stack of a thread: as much as Rust gives a thread of the system. Memory is taken as it is touched.
const STACK_BYTES: usize = 2 << 20;

/// The work of one thread.
pub(super) type Work<'a> = Box<dyn FnOnce(&Task<'_>) + 'a>;

/// A reason why simulated threads did not come to their end. Threads are counted from 1.
#[derive(Debug, thiserror::Error)]
pub enum ThreadsFault {
    /// A thread panicked: a bug of this program.
    #[error("thread {number} of the run panicked, which is a bug of this program: {said}")]
    Panicked {
        /// The number of the thread.
        number: u32,
        /// The message of the panic.
        said: String,
    },
    /// All remaining threads wait for each other.
    #[error("the threads of the run wait for each other, which is a bug of this program: {0}")]
    Circle(String),
    /// The system has no memory for a stack.
    #[error("cannot allocate a stack for thread {number} of the run: {source}")]
    Stack {
        /// The number of the thread.
        number: u32,
        /// The error of the system.
        source: io::Error,
    },
}

/// Runs threads that begin at `begin` and spend CPU time by this table; returns the time at which the last one ended.
///
/// Fails if one panics, if they wait for each other, or if there is no memory for a stack. The others are then unwound
/// where they are, and what is behind their gates must not be used any more.
#[cfg(test)]
pub(super) fn run_threads<'a>(begin: Time, costs: &'a Costs, works: Vec<Work<'a>>) -> Result<Time, ThreadsFault> {
    run_threads_told(begin, costs, works, &|_| {}).map(|(end, _)| end)
}

/// The same, with the waits at gates; `turn` is told the number of each thread, from 0, before it goes on.
pub(super) fn run_threads_told<'a>(
    begin: Time,
    costs: &'a Costs,
    works: Vec<Work<'a>>,
    turn: &dyn Fn(u32),
) -> Result<(Time, GateWaits), ThreadsFault> {
    let schedule = Schedule::new(begin, works.len() as u32);
    let mut coroutines = Vec::with_capacity(works.len());
    for (work, number) in works.into_iter().zip(0..) {
        let stack = DefaultStack::new(STACK_BYTES);
        let stack = stack.map_err(|source| ThreadsFault::Stack { number: number + 1, source })?;
        let schedule = &schedule;
        coroutines.push(Coroutine::with_stack(stack, move |switch, ()| {
            let place = Place { schedule, number, switch };
            let task = Task::simulated(begin, costs, &place);
            work(&task);
            task.now()
        }));
    }
    let end = in_scope(coroutines.into_iter(), Vec::new(), (&schedule, turn), begin)?;
    Ok((end, schedule.into_waits()))
}

type Coroutine<'a> = ScopedCoroutine<'a, (), (), Time>;
type Opened<'a> = ScopedCoroutineRef<'a, (), (), Time, DefaultStack>;

/// Opens the scope of one coroutine within that of the one before, and runs them in the innermost.
fn in_scope<'a>(
    mut coroutines: std::vec::IntoIter<Coroutine<'a>>,
    opened: Vec<Opened<'_>>,
    (schedule, turn): (&Schedule, &dyn Fn(u32)),
    begin: Time,
) -> Result<Time, ThreadsFault> {
    match coroutines.next() {
        Some(coroutine) => coroutine.scope(|coroutine| {
            // From here on all of them live as long as the innermost scope.
            let mut opened: Vec<Opened<'_>> = opened;
            opened.push(coroutine);
            in_scope(coroutines, opened, (schedule, turn), begin)
        }),
        None => run(opened, schedule, turn, begin),
    }
}

/// Resumes the coroutine that is furthest behind, until all have ended.
fn run(
    mut coroutines: Vec<Opened<'_>>,
    schedule: &Schedule,
    turn: &dyn Fn(u32),
    begin: Time,
) -> Result<Time, ThreadsFault> {
    let (mut left, mut end) = (coroutines.len(), begin);
    while left > 0 {
        let number = schedule.next().ok_or_else(|| ThreadsFault::Circle(schedule.who_waits()))?;
        turn(number);
        let coroutine = &mut coroutines[number as usize];
        match catch_unwind(AssertUnwindSafe(|| coroutine.resume(()))) {
            Ok(CoroutineResult::Yield(())) => {}
            Ok(CoroutineResult::Return(ended)) => {
                left -= 1;
                end = end.max(ended);
            }
            Err(panic) => return Err(ThreadsFault::Panicked { number: number + 1, said: said(&*panic) }),
        }
    }
    Ok(end)
}

/// The message of a panic.
fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("the panic has no message").to_string()
}
