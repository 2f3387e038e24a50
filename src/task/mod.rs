//! A thread of work and its clock: the seam between code that threads share and what its threads are.
//!
//! A [`Task`] is one thread of work with a clock of its own. What tasks share stands behind a [`Gate`] or a
//! [`SharedGate`], which remembers until when it was held. The same code then runs
//!
//! | where | a task is | a gate is |
//! |---|---|---|
//! | mounted or served | a request on a system thread; it begins at the wall clock | a lock |
//! | simulated | a coroutine of a run; [`Turns`] decides who goes next | a lock that nobody waits in: who comes to it waits for its turn |
//!
//! `docs/threads.md` is the design, with a drawing.
//!
//! | file | role |
//! |---|---|
//! | `gate` | [`Gate`]: one task at a time |
//! | `shared_gate` | [`SharedGate`]: many readers or one writer |
//! | `lock` | the locks below both: the system's, or a model checker's |
//! | `step` | [`Step`], [`Costs`] and [`CpuTable`]: the CPU time of each kind of work |
//!
//! Two rules hold for whoever is handed a `&Task`:
//!
//! - A lock that is no gate is never held across a call that may give way ([`Task::wait_until`], [`Task::ask`],
//!   [`Task::give_way`], a gate): the tasks of a simulated run share one system thread, which would wait for itself.
//! - Nothing enters a gate where a value is dropped: a task that unwinds does not wait.

mod gate;
mod lock;
mod shared_gate;
mod step;

pub use gate::{Gate, GateGuard};
pub use shared_gate::{ReadGuard, SharedGate, WriteGuard};
pub use step::{Costs, CpuTable, Step};

use crate::time::Time;
use std::cell::Cell;

/// One thread of work, and its clock. It is handed down by reference.
pub struct Task<'run> {
    now: Cell<Time>,
    simulated: Option<Simulated<'run>>,
}

struct Simulated<'run> {
    costs: &'run Costs,
    turns: &'run dyn Turns,
}

impl<'run> Task<'run> {
    /// A task on a system thread, whose work begins at `at`. Its CPU time passes by itself: [`spend`](Task::spend) adds
    /// nothing.
    pub fn at(at: Time) -> Task<'run> {
        Task { now: Cell::new(at), simulated: None }
    }

    /// A task of a simulated run, whose work begins at `at` and costs CPU time by this table. `turns` is its own place
    /// among the tasks of the run.
    pub fn simulated(at: Time, costs: &'run Costs, turns: &'run dyn Turns) -> Task<'run> {
        Task { now: Cell::new(at), simulated: Some(Simulated { costs, turns }) }
    }

    /// Another thread of the same run, whose work begins at `at` and costs CPU time by the same table. It has no place among
    /// the tasks of the run: it may ask devices, and enters no gate.
    pub fn beside(&self, at: Time) -> Task<'run> {
        let simulated = self.simulated.as_ref();
        let simulated = simulated.map(|Simulated { costs, .. }| Simulated { costs, turns: &Alone });
        Task { now: Cell::new(at), simulated }
    }

    /// The instant up to which it has worked.
    pub fn now(&self) -> Time {
        self.now.get()
    }

    /// Waits until `at`: its clock goes on to then, and never back. Those who are behind go first, so that it does nothing
    /// before its time, behind a gate or not.
    pub fn wait_until(&self, at: Time) {
        if at > self.now() {
            self.now.set(at);
            self.give_way();
        }
    }

    /// Its clock goes on to `at`, without a wait: it gives way where it next comes to a gate or a device. For work at the end
    /// of a value's life.
    pub fn pass_until(&self, at: Time) {
        self.now.set(self.now().max(at));
    }

    /// True if its clock is that of a simulated run.
    pub fn is_simulated(&self) -> bool {
        self.simulated.is_some()
    }

    /// Asks a device: lets those go first that are behind, so that a device is asked in the order of time; then hands `call`
    /// the time at which it is asked, and waits until the time that it answers.
    ///
    /// Fails as `call` does, and then has not waited.
    pub fn ask<E>(&self, call: impl FnOnce(Time) -> Result<Time, E>) -> Result<(), E> {
        self.give_way();
        self.wait_until(call(self.now())?);
        Ok(())
    }

    /// Spends the CPU time of `times` steps.
    pub fn spend(&self, step: Step, times: u64) {
        if let Some(simulated) = &self.simulated {
            self.now.set(self.now() + simulated.costs.of(step).saturating_mul(times));
        }
    }

    /// Lets those go first that are ready and whose clock is behind. Gates, [`wait_until`](Task::wait_until) and
    /// [`ask`](Task::ask) do that themselves.
    pub fn give_way(&self) {
        if let Some(simulated) = &self.simulated {
            simulated.turns.give_way(self.now());
        }
    }

    /// Waits for its turn at `gate`, if it is simulated; false if it is not, and waits in the lock.
    fn enter(&self, gate: GateId, access: Access) -> bool {
        if let Some(simulated) = &self.simulated {
            simulated.turns.enter(gate, access, self.now());
        }
        self.simulated.is_some()
    }

    /// It came to `gate` at `came` and is inside now: what lies between it has waited.
    fn has_waited(&self, gate: &'static str, came: Time) {
        if let Some(simulated) = &self.simulated
            && self.now() > came
        {
            simulated.turns.has_waited(gate, self.now().since_ns(came));
        }
    }

    /// This task has left `gate`.
    fn leave(&self, gate: GateId) {
        if let Some(simulated) = &self.simulated {
            simulated.turns.leave(gate, self.now());
        }
    }
}

/// The way in which a task goes through a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Beside others who share it.
    Shared,
    /// With nobody else inside.
    Alone,
}

/// A gate, by its place in memory, which stays while somebody is inside or waits at it; and its name.
#[derive(Clone, Copy, Debug)]
pub struct GateId {
    /// Its address: no two gates have the same at once.
    pub address: usize,
    /// As messages call it.
    pub name: &'static str,
}

impl GateId {
    fn of<T>(gate: &T, name: &'static str) -> GateId {
        GateId { address: std::ptr::from_ref(gate).addr(), name }
    }
}

/// A task's place among the tasks of a simulated run, which share one system thread. The one furthest behind goes next.
pub trait Turns {
    /// Its clock is at `at`: lets those go first that are ready and behind. It returns when none is.
    fn give_way(&self, at: Time);

    /// It comes to `gate` at `at`. It gives way, and returns when it may go in: nobody is inside with whom it does not share
    /// the gate, and nobody came before it who still waits. From then on it is inside.
    fn enter(&self, gate: GateId, access: Access, at: Time);

    /// It has waited so many nanoseconds at a gate of this name. For counts.
    fn has_waited(&self, _gate: &'static str, _ns: u64) {}

    /// It has left `gate` at `at`: who comes next there is ready. It does not give way, as it is called where a guard is
    /// dropped.
    fn leave(&self, gate: GateId, at: Time);
}

/// The place of a task that is the only one of a simulated run.
#[derive(Debug)]
pub struct Alone;

impl Turns for Alone {
    fn give_way(&self, _: Time) {}

    fn enter(&self, _: GateId, _: Access, _: Time) {}

    fn leave(&self, _: GateId, _: Time) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_is_free_for_the_next_when_the_one_before_has_left_it() {
        let (first, second) = (Task::at(Time(20)), Task::at(Time(22)));
        let gate = Gate::new("one", 1);
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
        let gate = SharedGate::new("one", ());
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
        let costs = Costs::none().with(Step::BlockCopied, 300);
        let (real, simulated) = (Task::at(Time(5)), Task::simulated(Time(5), &costs, &Alone));
        for task in [&real, &simulated] {
            task.spend(Step::BlockCopied, 2);
            task.spend(Step::NameLookedUp, 2);
        }
        assert_eq!((real.now(), simulated.now()), (Time(5), Time(605)));
    }
}
