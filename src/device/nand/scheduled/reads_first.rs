//! Reads of requests go before what else their plane has to do, and interrupt its programs and erases.
//!
//! ```text
//! erase     |-- erase --|-- suspended: suspend-time | read | read | ... --|-- rest of the erase --|
//! ```
//!
//! - A read of a request is in a queue of its own. An idle plane takes from it first.
//! - An operation that waits for its channel for its command, or for the page that it programs, has not begun: it goes back to
//!   the head of its queue, and costs nothing.
//! - A program or an erase that is under way is suspended, unless its rest is no longer than a suspension takes. A page or
//!   a command is transferred to its end before.
//! - An operation lets so many reads go first, while it is the next of its plane and while it is suspended; from then on reads
//!   wait for its end. So none starves.

use super::events::{After, Event};
use super::graph::{Kind, NONE};
use super::{Scheduled, Stage};
use crate::device::nand::suspension::Suspension;
use crate::time::Time;
use std::collections::VecDeque;

/// An operation that its plane has suspended.
#[derive(Debug, Clone, Copy)]
struct Suspended {
    node: u32,
    /// The rest of it, in nanoseconds.
    left_ns: u64,
}

/// The reads that go first at a plane.
#[derive(Debug, Clone, Default)]
struct FirstOfPlane {
    /// The reads that can begin, and the instants at which they joined.
    queue: VecDeque<(Time, u32)>,
    suspended: Option<Suspended>,
    /// The reads that went before the operation that is suspended, under way or next.
    passed: u32,
    /// True if the operation under way was suspended before.
    is_resumed: bool,
}

/// The reads that go first, by plane.
#[derive(Debug, Clone)]
pub(super) struct ReadsFirst {
    rules: Suspension,
    planes: Vec<FirstOfPlane>,
    /// The number of suspensions.
    suspensions: u64,
}

impl ReadsFirst {
    /// None waits.
    pub fn new(rules: Suspension, planes: usize) -> ReadsFirst {
        assert!(rules.most_reads > 0, "a read goes first, or none ever waits apart");
        ReadsFirst { rules, planes: vec![FirstOfPlane::default(); planes], suspensions: 0 }
    }

    /// The number of suspensions.
    pub fn suspensions(&self) -> u64 {
        self.suspensions
    }
}

impl Scheduled {
    /// Puts a read in the queue of those that go first. Those that join at the same instant keep the order of issue.
    #[inline(never)]
    pub(super) fn join_first(&mut self, first: &mut ReadsFirst, node: u32) {
        let (graph, now) = (&self.graph, self.now);
        let (number, issued) = (graph.node(node).plane, graph.node(node).number);
        let queue = &mut first.planes[number as usize].queue;
        let is_later = |&&(at, other): &&(Time, u32)| at == now && graph.node(other).number > issued;
        let later = queue.iter().rev().take_while(is_later).count();
        queue.insert(queue.len() - later, (now, node));
        // It may interrupt a plane that is busy.
        self.idle_planes.push(number);
    }

    /// The operation that a plane begins now, if there is one: of an idle plane, or of one that a read interrupts.
    #[inline(never)]
    pub(super) fn next_after_interrupt(&mut self, first: &mut ReadsFirst, number: u32) -> Option<u32> {
        let is_idle = self.planes[number as usize].stage == Stage::Idle || self.interrupt(first, number);
        if is_idle { self.next_of(first, number) } else { None }
    }

    /// Lets a read interrupt a busy plane, if one waits and may. True if the plane is idle afterwards.
    fn interrupt(&mut self, first: &mut ReadsFirst, number: u32) -> bool {
        let (rules, of_plane) = (first.rules, &mut first.planes[number as usize]);
        let plane = &mut self.planes[number as usize];
        if of_plane.queue.is_empty() || of_plane.passed >= rules.most_reads {
            return false;
        }
        let operation = match plane.stage {
            Stage::Asking | Stage::Ready | Stage::Ending => self.graph.node(plane.current),
            Stage::Idle | Stage::Reading | Stage::Suspending => return false,
        };
        let kind = operation.kind;
        let has_not_begun = match plane.stage {
            Stage::Asking => !operation.is_read_of_request(),
            Stage::Ready => kind == Kind::Program,
            _ => false,
        };
        match (plane.stage, kind) {
            _ if has_not_begun => {
                plane.stage = Stage::Idle;
                plane.queue.push_front(std::mem::replace(&mut plane.current, NONE));
                self.leave_channel(number);
                true
            }
            (Stage::Ending, Kind::Program) if rules.programs => self.suspend(first, number),
            (Stage::Ending, Kind::Erase) if rules.erases => self.suspend(first, number),
            _ => false,
        }
    }

    /// Suspends the program or the erase of a plane, if that is sooner done than the rest of it. False: the plane is busy
    /// until it has.
    fn suspend(&mut self, first: &mut ReadsFirst, number: u32) -> bool {
        let program_ns = self.program_ns(self.planes[number as usize].current);
        let (rules, of_plane) = (first.rules, &mut first.planes[number as usize]);
        let plane = &mut self.planes[number as usize];
        let (after, begin) = match self.graph.node(plane.current).kind {
            _ if of_plane.is_resumed => (After::Wait, self.now),
            Kind::Program => (After::Program, self.now.max(Time(plane.until.0 - program_ns))),
            _ => (After::Erase, self.now.max(Time(plane.until.0 - self.latencies.erase_ns))),
        };
        let left_ns = plane.until.since_ns(begin);
        if left_ns <= rules.time_ns {
            return false;
        }
        debug_assert!(of_plane.suspended.is_none(), "plane {number} suspends one operation at a time");
        self.events.withdraw(after, plane.until, Event::Plane(number));
        of_plane.suspended = Some(Suspended { node: std::mem::replace(&mut plane.current, NONE), left_ns });
        (plane.stage, of_plane.is_resumed) = (Stage::Suspending, false);
        first.suspensions += 1;
        self.expect(After::Wait, begin + rules.time_ns, Event::Plane(number));
        false
    }

    /// A plane can read: it has suspended its operation.
    #[inline(never)]
    pub(super) fn end_suspending(&mut self, first: &ReadsFirst, number: u32) {
        let suspended = first.planes[number as usize].suspended.expect("an operation was suspended");
        self.planes[number as usize].stage = Stage::Idle;
        self.idle_planes.push(number);
        if let Some(waits) = &mut self.waits {
            waits.suspend(number, self.graph.node(suspended.node), self.now);
        }
    }

    /// The operation that an idle plane begins, if there is one: a read that goes first, or the next in order. Resumes a
    /// suspended one.
    fn next_of(&mut self, first: &mut ReadsFirst, number: u32) -> Option<u32> {
        let (rules, of_plane) = (first.rules, &mut first.planes[number as usize]);
        let plane = &mut self.planes[number as usize];
        let lets_go_first = of_plane.suspended.is_some() || !plane.queue.is_empty();
        if !(lets_go_first && of_plane.passed >= rules.most_reads)
            && let Some((_, read)) = of_plane.queue.pop_front()
        {
            of_plane.passed += u32::from(lets_go_first);
            return Some(read);
        }
        let Some(Suspended { node, left_ns }) = of_plane.suspended.take() else { return plane.queue.pop_front() };
        of_plane.is_resumed = true;
        (plane.stage, plane.current, plane.until) = (Stage::Ending, node, self.now + left_ns);
        let until = plane.until;
        self.expect(After::Wait, until, Event::Plane(number));
        if let Some(waits) = &mut self.waits {
            waits.resume(number);
        }
        None
    }

    /// A plane has ended an operation that is no read of a request: the next one has let none go first.
    pub(super) fn has_ended(first: &mut ReadsFirst, number: u32) {
        let of_plane = &mut first.planes[number as usize];
        debug_assert!(
            of_plane.suspended.is_none(),
            "plane {number} ends what it has suspended before it begins another"
        );
        (of_plane.passed, of_plane.is_resumed) = (0, false);
    }
}
