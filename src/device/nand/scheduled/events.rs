//! The events to come, in the order of time.
//!
//! Stages of one kind mostly take equally long, so that they end in the order in which they begin: an event goes to the end
//! of the queue of its kind, and the next event is the first of one of the queues. Reads of one unit or several differ in
//! their transfers, and pages of a word line in their reads and programs.

use crate::time::Time;
use std::collections::VecDeque;

/// What happens; at one instant in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// A plane's stage ends.
    Plane(u32),
    /// A channel is free.
    Channel(u32),
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
    queues: [VecDeque<(Time, Event)>; KINDS],
    /// The time of the first event of each queue.
    firsts: [Time; KINDS],
    /// The time of the first event of all.
    next: Time,
}

impl Events {
    /// None.
    pub fn new() -> Events {
        Events { queues: Default::default(), firsts: [NEVER; KINDS], next: NEVER }
    }

    /// An event comes at `at`, after that.
    #[inline]
    pub fn expect(&mut self, after: After, at: Time, event: Event) {
        let queue = &mut self.queues[after as usize];
        match queue.back() {
            Some(last) if *last > (at, event) => {
                debug_assert!(after != After::Erase || last.0 == at, "erases end in the order of begins");
                queue.insert(queue.partition_point(|other| *other < (at, event)), (at, event));
            }
            _ => queue.push_back((at, event)),
        }
        let first = &mut self.firsts[after as usize];
        *first = at.min(*first);
        self.next = at.min(self.next);
    }

    /// Notes the first event of a queue, after one was taken out.
    #[inline]
    fn look_at_first(&mut self, kind: usize) {
        self.firsts[kind] = self.queues[kind].front().map_or(NEVER, |(next, _)| *next);
        self.next = self.firsts.iter().fold(NEVER, |first, at| first.min(*at));
    }

    /// An event that was expected at `at`, after that, does not come.
    pub fn withdraw(&mut self, after: After, at: Time, event: Event) {
        let queue = &mut self.queues[after as usize];
        let place = queue.partition_point(|other| *other < (at, event));
        assert_eq!(queue.remove(place), Some((at, event)), "what is withdrawn was expected");
        self.look_at_first(after as usize);
    }

    /// The time of the next event.
    #[inline]
    pub fn next(&self) -> Option<Time> {
        (self.next != NEVER).then_some(self.next)
    }

    /// Takes the next event, if it comes at `at`, before which none comes.
    #[inline]
    pub fn take(&mut self, at: Time) -> Option<Event> {
        if self.next != at {
            return None;
        }
        let mut next: Option<(usize, Event)> = None;
        for kind in 0..KINDS {
            if self.firsts[kind] == at
                && let Some((_, event)) = self.queues[kind].front()
                && next.is_none_or(|(_, next)| *event < next)
            {
                next = Some((kind, *event));
            }
        }
        let (kind, event) = next?;
        self.queues[kind].pop_front();
        self.look_at_first(kind);
        Some(event)
    }
}
