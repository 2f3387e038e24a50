//! Who works, and its clock: the seam between code that threads share and what its threads are.
//!
//! A [`Task`] is one thread of work with a clock of its own. What tasks share stands behind a [`Gate`] or a
//! [`SharedGate`], which remembers until when it was held. The same code then runs
//!
//! | where | a task is | a gate is |
//! |---|---|---|
//! | mounted or served | a request on a system thread; it begins at the wall clock | a lock |
//! | simulated | a coroutine of a run; [`Turns`] decides who goes next | a lock that nobody waits in: who finds it held sleeps |
//!
//! `docs/threads.md` is the design, with a drawing.
//!
//! | file | what it is |
//! |---|---|
//! | `gate` | [`Gate`]: one task at a time |
//! | `shared_gate` | [`SharedGate`]: many readers or one writer |
//! | `step` | [`Step`] and [`Costs`]: the CPU time of each kind of work |

mod gate;
mod shared_gate;
mod step;

pub use gate::{Gate, GateGuard};
pub use shared_gate::{ReadGuard, SharedGate, WriteGuard};
pub use step::{Costs, Step};

use crate::time::Time;
use std::cell::Cell;

/// One thread of work, and its clock. It is handed down by reference.
pub struct Task<'run> {
    now: Cell<Time>,
    costs: Option<&'run Costs>,
    turns: Option<(&'run dyn Turns, u32)>,
}

impl<'run> Task<'run> {
    /// A task on a system thread, whose work begins at `at`. Its CPU time passes by itself: [`spend`](Task::spend) adds
    /// nothing.
    pub fn at(at: Time) -> Task<'run> {
        Task { now: Cell::new(at), costs: None, turns: None }
    }

    /// Task `number` of a simulated run, whose work begins at `at` and costs CPU time by this table.
    pub fn simulated(number: u32, at: Time, costs: &'run Costs, turns: &'run dyn Turns) -> Task<'run> {
        Task { now: Cell::new(at), costs: Some(costs), turns: Some((turns, number)) }
    }

    /// The instant up to which it has worked.
    pub fn now(&self) -> Time {
        self.now.get()
    }

    /// What it waits for is there at `at`: its clock goes on to then, and never back.
    pub fn wait_until(&self, at: Time) {
        self.now.set(self.now.get().max(at));
    }

    /// Spends the CPU time of `times` steps.
    pub fn spend(&self, step: Step, times: u64) {
        if let Some(costs) = self.costs {
            self.now.set(self.now.get() + costs.of(step).saturating_mul(times));
        }
    }

    /// Lets those go first that are ready and whose clock is behind. It is called before each gate; who asks a device calls
    /// it before that.
    pub fn give_way(&self) {
        if let Some((turns, number)) = self.turns {
            turns.give_way(number, self.now());
        }
    }

    /// Sleeps until somebody leaves `gate`; false if this task does not sleep, but waits in the lock.
    fn sleep_at(&self, gate: GateId) -> bool {
        match self.turns {
            Some((turns, number)) => {
                turns.sleep(number, gate);
                true
            }
            None => false,
        }
    }

    /// This task has left `gate`.
    fn leave(&self, gate: GateId) {
        if let Some((turns, _)) = self.turns {
            turns.leave(gate);
        }
    }
}

/// Which gate: where it lies in memory, as it does not move while somebody is inside or sleeps at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GateId(usize);

impl GateId {
    fn of<T>(gate: &T) -> GateId {
        GateId(std::ptr::from_ref(gate).addr())
    }
}

/// Who of the tasks of a simulated run goes next. All of them run on one system thread.
pub trait Turns {
    /// Task `number`, whose clock is at `at`, lets those go first that are ready and behind. It returns when none is.
    fn give_way(&self, number: u32, at: Time);

    /// Task `number` found `gate` held. It returns once somebody has left the gate and this task is the furthest behind of
    /// those that are ready; then it tries again.
    fn sleep(&self, number: u32, gate: GateId);

    /// Somebody has left `gate`: who sleeps at it is ready. It does not switch, as it is called where a guard is dropped.
    fn leave(&self, gate: GateId);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_is_free_for_the_next_when_the_one_before_has_left_it() {
        let (first, second) = (Task::at(Time(20)), Task::at(Time(22)));
        let gate = Gate::new(1);
        let mut inside = gate.enter(&first);
        *inside += 1;
        first.wait_until(Time(25));
        drop(inside);
        assert_eq!(*gate.enter(&second), 2);
        assert_eq!(second.now(), Time(25), "it came at 22 and waited");
    }

    #[test]
    fn readers_do_not_wait_for_readers_and_a_writer_waits_for_all() {
        let (first, second, writer, late) =
            (Task::at(Time(1)), Task::at(Time(2)), Task::at(Time(3)), Task::at(Time(4)));
        let gate = SharedGate::new(());
        let (one, two) = (gate.read(&first), gate.read(&second));
        first.wait_until(Time(10));
        second.wait_until(Time(7));
        drop((one, two));
        assert_eq!((first.now(), second.now()), (Time(10), Time(7)));
        let inside = gate.write(&writer);
        assert_eq!(writer.now(), Time(10), "the last reader left at 10");
        writer.wait_until(Time(30));
        drop(inside);
        drop(gate.read(&late));
        assert_eq!(late.now(), Time(30), "it waited for the writer");
    }

    #[test]
    fn cpu_time_passes_by_itself_on_a_system_thread_and_by_the_table_in_a_simulation() {
        struct Alone;
        impl Turns for Alone {
            fn give_way(&self, _: u32, _: Time) {}
            fn sleep(&self, _: u32, _: GateId) {
                unreachable!("nobody else holds a gate")
            }
            fn leave(&self, _: GateId) {}
        }
        let costs = Costs::none().with(Step::BlockCopied, 300);
        let (real, simulated) = (Task::at(Time(5)), Task::simulated(0, Time(5), &costs, &Alone));
        for task in [&real, &simulated] {
            task.spend(Step::BlockCopied, 2);
            task.spend(Step::NameLookedUp, 2);
        }
        assert_eq!((real.now(), simulated.now()), (Time(5), Time(605)));
    }
}
