//! The threads inside of each gate, and those that wait there.

use crate::task::{Access, GateId};
use crate::time::Time;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// The gates with a thread inside.
#[derive(Default)]
pub(super) struct Gates {
    held: FxHashMap<usize, Held>,
    /// Lists of gates that nobody is inside of, for reuse.
    spare: Vec<Held>,
}

/// A gate with a thread inside.
struct Held {
    name: &'static str,
    access: Access,
    inside: Vec<u32>,
    /// In the order in which they came.
    waiting: VecDeque<Waiting>,
}

/// A thread that waits at a gate.
struct Waiting {
    number: u32,
    access: Access,
    came: Time,
}

impl Gates {
    /// Thread `number` comes to a gate at `at`. True if it is inside now; false if it waits.
    pub fn enter(&mut self, gate: GateId, access: Access, number: u32, at: Time) -> bool {
        let Some(held) = self.held.get_mut(&gate.address) else {
            let spare = self.spare.pop();
            let (mut inside, waiting) = spare.map_or_else(Default::default, |held| (held.inside, held.waiting));
            inside.push(number);
            self.held.insert(gate.address, Held { name: gate.name, access, inside, waiting });
            return true;
        };
        let shares = (held.access, access) == (Access::Shared, Access::Shared) && held.waiting.is_empty();
        match shares {
            true => held.inside.push(number),
            false => held.waiting.push_back(Waiting { number, access, came: at }),
        }
        shares
    }

    /// Thread `number` leaves a gate at `at`. The next threads are inside then; `goes_on` gets each with the time at which it
    /// goes on.
    pub fn leave(&mut self, gate: GateId, number: u32, at: Time, mut goes_on: impl FnMut(u32, Time)) {
        let held = self.held.get_mut(&gate.address).expect("who leaves a gate is inside");
        let place = held.inside.iter().position(|inside| *inside == number).expect("who leaves a gate is inside");
        held.inside.swap_remove(place);
        if !held.inside.is_empty() {
            return;
        }
        while let Some(next) = held.waiting.front() {
            if !held.inside.is_empty() && (held.access, next.access) != (Access::Shared, Access::Shared) {
                break;
            }
            let next = held.waiting.pop_front().expect("it is in front");
            held.access = next.access;
            held.inside.push(next.number);
            goes_on(next.number, next.came.max(at));
        }
        if held.inside.is_empty() {
            self.spare.extend(self.held.remove(&gate.address));
        }
    }

    /// The waits of all threads, in words: thread, gate and holders.
    pub fn who_waits(&self) -> String {
        let mut lines: Vec<(u32, String)> = Vec::new();
        for held in self.held.values() {
            let mut inside: Vec<String> = held.inside.iter().map(|number| format!("thread {}", number + 1)).collect();
            inside.sort();
            let (inside, name) = (inside.join(" and "), held.name);
            let line =
                |next: &Waiting| format!("thread {} waits at the gate {name}, held by {inside}", next.number + 1);
            lines.extend(held.waiting.iter().map(|next| (next.number, line(next))));
        }
        lines.sort();
        lines.into_iter().map(|(_, line)| line).collect::<Vec<_>>().join("; ")
    }
}
