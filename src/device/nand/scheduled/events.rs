//! The events to come, in the order of time.
//!
//! Stages of one kind mostly take equally long, so that they end in the order in which they begin: an event goes to the end
//! of the queue of its kind, and the next event is the first of one of the queues. Reads of one unit or several differ in
//! their transfers, pages of a word line in their reads and programs, and erases in the commands for several planes.

use super::ring::Ring;
use crate::time::Time;

/// What happens. The order of events of one instant does not matter: what begins then begins after all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// A plane's stage ends.
    Plane(u32),
    /// A channel is free.
    Channel(u32),
    /// A register of a plane is free.
    Register(u32),
    /// The instant that an operation waits for has come.
    Operation(u32),
}

/// What took its time until an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    Read,
    Transfer,
    Program,
    Erase,
    /// Anything: these come in any order.
    Wait,
}

const KINDS: usize = After::Wait as usize + 1;

/// The time of no event.
const NEVER: Time = Time(u64::MAX);

/// The events to come.
#[derive(Debug, Clone)]
pub(super) struct Events {
    queues: [Ring<(Time, Event)>; KINDS],
    /// The time of the first event of each queue.
    firsts: [Time; KINDS],
    /// The time of the first event of all.
    next: Time,
}

impl Events {
    /// None.
    pub fn new() -> Events {
        Events { queues: [const { Ring::new() }; KINDS], firsts: [NEVER; KINDS], next: NEVER }
    }

    /// An event comes at `at`, after that.
    #[inline(always)]
    pub fn expect(&mut self, after: After, at: Time, event: Event) {
        let queue = &mut self.queues[after as usize];
        match queue.back() {
            Some((last, _)) if last > at => self.insert(after, at, event),
            Some(_) => queue.push_back((at, event)),
            None => {
                queue.push_back((at, event));
                self.firsts[after as usize] = at;
                self.next = self.next.min(at);
            }
        }
    }

    /// An event that comes before others of its kind.
    #[cold]
    fn insert(&mut self, after: After, at: Time, event: Event) {
        let queue = &mut self.queues[after as usize];
        let later = queue.iter().rev().take_while(|(other, _)| *other > at).count();
        queue.insert(queue.len() - later, (at, event));
        self.look_at_first(after as usize);
    }

    /// Notes the first event of a queue, after one was taken out.
    #[inline(always)]
    fn look_at_first(&mut self, kind: usize) {
        self.firsts[kind] = self.queues[kind].front().map_or(NEVER, |(next, _)| next);
        self.next = self.firsts.iter().fold(NEVER, |first, at| first.min(*at));
    }

    /// An event that was expected at `at`, after that, does not come.
    pub fn withdraw(&mut self, after: After, at: Time, event: Event) {
        let queue = &mut self.queues[after as usize];
        let place = queue.iter().position(|other| other == (at, event));
        queue.remove(place.expect("what is withdrawn was expected"));
        self.look_at_first(after as usize);
    }

    /// The time of the next event.
    #[inline(always)]
    pub fn next(&self) -> Option<Time> {
        (self.next != NEVER).then_some(self.next)
    }

    /// True if an event comes at `at`, before which none comes.
    #[inline(always)]
    pub fn comes_at(&self, at: Time) -> bool {
        self.next == at
    }

    /// Takes an event that comes at `at`, before which none comes.
    #[inline(always)]
    pub fn take(&mut self, at: Time) -> Option<Event> {
        if self.next != at {
            return None;
        }
        let kind = self.firsts.iter().position(|first| *first == at)?;
        let (_, event) = self.queues[kind].pop_front()?;
        self.look_at_first(kind);
        Some(event)
    }
}
