//! The threads that are ready, in the order of their clocks, and each thread's place among the others.

use super::gate_waits::GateWaits;
use super::gates::Gates;
use crate::task::{Access, GateId, Turns};
use crate::time::Time;
use corosensei::Yielder;
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The threads of a run.
pub(super) struct Schedule {
    /// The threads that are ready and do not run, with their clocks.
    ready: RefCell<BinaryHeap<Reverse<(Time, u32)>>>,
    gates: RefCell<Gates>,
    waits: RefCell<GateWaits>,
}

impl Schedule {
    /// A number of threads, which are ready at `begin`.
    pub fn new(begin: Time, threads: u32) -> Schedule {
        let ready = (0..threads).map(|number| Reverse((begin, number))).collect();
        Schedule { ready: RefCell::new(ready), gates: RefCell::default(), waits: RefCell::default() }
    }

    /// The thread that goes next; `None` if none is ready.
    pub fn next(&self) -> Option<u32> {
        self.ready.borrow_mut().pop().map(|Reverse((_, number))| number)
    }

    /// The waits at gates so far.
    pub fn into_waits(self) -> GateWaits {
        self.waits.into_inner()
    }

    /// The waits of all threads, in words.
    pub fn who_waits(&self) -> String {
        self.gates.borrow().who_waits()
    }
}

/// A thread's place among the threads of a run.
pub(super) struct Place<'a> {
    pub schedule: &'a Schedule,
    /// From 0.
    pub number: u32,
    pub switch: &'a Yielder<(), ()>,
}

impl Turns for Place<'_> {
    fn give_way(&self, at: Time) {
        let is_behind = |Reverse(next): &Reverse<(Time, u32)>| *next < (at, self.number);
        // A thread that unwinds is not left: what it drops belongs to it.
        if self.schedule.ready.borrow().peek().is_some_and(is_behind) && !std::thread::panicking() {
            self.schedule.ready.borrow_mut().push(Reverse((at, self.number)));
            self.switch.suspend(());
        }
    }

    fn enter(&self, gate: GateId, access: Access, at: Time) {
        self.give_way(at);
        if !self.schedule.gates.borrow_mut().enter(gate, access, self.number, at) {
            assert!(!std::thread::panicking(), "a thread that unwinds waits at the gate {}", gate.name);
            // Who leaves the gate lets it in, and says when it is ready.
            self.switch.suspend(());
        }
    }

    fn has_waited(&self, gate: &'static str, ns: u64) {
        self.schedule.waits.borrow_mut().add(gate, ns);
    }

    fn leave(&self, gate: GateId, at: Time) {
        let mut ready = self.schedule.ready.borrow_mut();
        let goes_on = |number, from| ready.push(Reverse((from, number)));
        self.schedule.gates.borrow_mut().leave(gate, self.number, at, goes_on);
    }
}
