//! The timing model with queues: each plane has one, in the order in which its operations can begin, and a channel goes
//! to the plane that was ready first. A plane or a channel is idle only if nobody waits for it.
//!
//! An operation that is issued later may still come first at a channel. So the end of an operation is not known when it is
//! issued: a [`Moment`] stands for it, which other operations can wait for. The clock goes on when the engine asks for the
//! next completion, event by event, and no further.
//!
//! Ties: of two operations that can begin at the same instant, the one that was issued first begins. All that ends at an
//! instant ends before anything begins at it.
//!
//! | file | role |
//! |---|---|
//! | `mod.rs` | the model: events, planes, channels |
//! | `graph` | the operations that are under way, and who waits for them |
//! | `waits` | records what operations waited for |

mod graph;
mod waits;

pub use graph::Moment;

use super::geometry::{EraseBlock, Geometry};
use super::timing::{Latencies, Places, Telling, Timing};
use crate::device::wait_log::{Purpose, WaitLog};
use crate::time::Time;
use graph::{Graph, Kind, NONE, Waiter};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use waits::RecordedWaits;

/// The work of a plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Idle,
    /// It reads from the array, and needs the channel afterwards.
    Reading,
    /// It waits for the channel.
    Ready,
    /// Nothing more is waited for until the end of its operation.
    Ending,
}

#[derive(Debug, Clone)]
struct Plane {
    stage: Stage,
    /// The operation that it does.
    current: u32,
    /// The operations that can begin.
    queue: VecDeque<u32>,
    channel: u32,
}

#[derive(Debug, Clone, Default)]
struct Channel {
    /// The end of its transfer.
    until: Time,
    /// True if an event comes at its end.
    is_awaited: bool,
    /// The planes that are ready, with the instant since when.
    queue: VecDeque<(Time, u32)>,
}

/// An event: the instant, and what happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A plane's stage ends.
    Plane(u32),
    /// A channel is free.
    Channel(u32),
    /// The instant that an operation waits for has come.
    Operation(u32),
}

/// The model with queues.
#[derive(Debug, Clone)]
pub struct Scheduled {
    latencies: Latencies,
    places: Places,
    planes: Vec<Plane>,
    channels: Vec<Channel>,
    graph: Graph,
    /// The last program or erase of each block, until it can begin.
    last_of_block: Vec<u32>,
    events: BinaryHeap<Reverse<(Time, Event)>>,
    /// Up to when all has happened.
    now: Time,
    /// Watched requests that are done, and not told, in order.
    done: VecDeque<(Time, u64)>,
    /// The planes and channels that may begin something at `now`.
    idle_planes: Vec<u32>,
    idle_channels: Vec<u32>,
    waits: Option<RecordedWaits>,
}

impl Scheduled {
    /// All planes and channels idle; records the waits of operations in `log`, if there is one.
    pub fn new(geometry: Geometry, latencies: Latencies, log: Option<&WaitLog>) -> Scheduled {
        let places = Places::new(&geometry);
        let plane = |unit| Plane {
            stage: Stage::Idle,
            current: NONE,
            queue: VecDeque::new(),
            channel: geometry.channel_of(unit),
        };
        Scheduled {
            latencies,
            planes: (0..geometry.units()).map(plane).collect(),
            channels: vec![Channel::default(); geometry.channels as usize],
            graph: Graph::default(),
            last_of_block: vec![NONE; places.blocks()],
            places,
            events: BinaryHeap::new(),
            now: Time::ZERO,
            done: VecDeque::new(),
            idle_planes: Vec::new(),
            idle_channels: Vec::new(),
            waits: log.map(|log| RecordedWaits::new(&geometry, latencies, log)),
        }
    }

    fn expect(&mut self, at: Time, event: Event) {
        debug_assert!(at >= self.now, "an event at {at:?} is not before {:?}", self.now);
        self.events.push(Reverse((at, event)));
    }

    /// The time of the next event.
    fn next_event(&self) -> Option<Time> {
        self.events.peek().map(|Reverse((at, _))| *at)
    }

    /// All that happens at the next instant at which something does.
    fn step(&mut self) {
        let Some(at) = self.next_event() else { return };
        self.now = at;
        while let Some(Reverse((time, event))) = self.events.peek().copied()
            && time == at
        {
            self.events.pop();
            match event {
                Event::Plane(plane) => self.end_stage(plane),
                Event::Channel(channel) => {
                    self.channels[channel as usize].is_awaited = false;
                    self.idle_channels.push(channel);
                }
                Event::Operation(node) => {
                    if self.graph.has_come(node) {
                        self.can_begin(node);
                    }
                }
            }
        }
        self.begin_all();
    }

    /// All that happens up to `until`.
    fn run(&mut self, until: Time) {
        while self.next_event().is_some_and(|at| at <= until) {
            self.step();
        }
    }

    fn end_stage(&mut self, number: u32) {
        let plane = &mut self.planes[number as usize];
        match plane.stage {
            Stage::Reading => self.ask_for_channel(number),
            Stage::Ending => {
                plane.stage = Stage::Idle;
                let node = std::mem::replace(&mut plane.current, NONE);
                self.idle_planes.push(number);
                if let Some(waits) = &mut self.waits {
                    waits.end(number, self.graph.node(node), self.now);
                }
                self.complete(node);
            }
            Stage::Idle | Stage::Ready => unreachable!("plane {number} expects no event while {:?}", plane.stage),
        }
    }

    /// A plane's operation needs the channel from now on. Planes that need it since the same instant keep the order of
    /// issue.
    fn ask_for_channel(&mut self, number: u32) {
        let plane = &mut self.planes[number as usize];
        plane.stage = Stage::Ready;
        let (channel, issued) = (plane.channel, self.graph.node(plane.current).number);
        let queue = &mut self.channels[channel as usize].queue;
        let (planes, graph, now) = (&self.planes, &self.graph, self.now);
        let is_later =
            |&(since, other): &(Time, u32)| since == now && graph.node(planes[other as usize].current).number > issued;
        let place = queue.len() - queue.iter().rev().take_while(|waiting| is_later(waiting)).count();
        queue.insert(place, (now, number));
        self.idle_channels.push(channel);
    }

    /// The operation is done: tells those who wait for it.
    fn complete(&mut self, node: u32) {
        let mut waiters = self.graph.release(node);
        while let Some(waiter) = self.graph.next_waiter(&mut waiters) {
            match waiter {
                Waiter::Request(number) => self.tell(number),
                Waiter::Node(node) => {
                    if self.graph.dependency_done(node, self.now) {
                        self.can_begin(node);
                    }
                }
            }
        }
    }

    fn tell(&mut self, number: u64) {
        let later = self.done.iter().rev().take_while(|(at, other)| *at == self.now && *other > number).count();
        self.done.insert(self.done.len() - later, (self.now, number));
    }

    /// Nothing that the operation waits for is left.
    fn can_begin(&mut self, node: u32) {
        let Some(earliest) = self.graph.waits_until(node, self.now) else { return self.enter(node) };
        self.graph.wait_for_instant(node);
        self.expect(earliest, Event::Operation(node));
    }

    /// Puts an operation in the queue of its plane, and gives its turn in the block to the next one.
    fn enter(&mut self, node: u32) {
        if self.graph.node(node).kind == Kind::Sum {
            return self.complete(node);
        }
        let mut node = node;
        loop {
            let (block, number) = (self.graph.node(node).block, self.graph.node(node).number);
            let plane = self.places.of(block).plane;
            self.graph.enter(node, self.now);
            let graph = &self.graph;
            let queue = &mut self.planes[plane as usize].queue;
            let is_later = |&other: &u32| {
                let other = graph.node(other);
                other.entered == self.now && other.number > number
            };
            let place = queue.len() - queue.iter().rev().take_while(|other| is_later(other)).count();
            queue.insert(place, node);
            self.idle_planes.push(plane);
            let last = &mut self.last_of_block[block.index()];
            if *last == node {
                *last = NONE;
            }
            // The next one of the block may only have waited for its turn.
            let next = self.graph.take_next_of_block(node);
            if next == NONE || !self.graph.has_come(next) {
                return;
            }
            if let Some(earliest) = self.graph.waits_until(next, self.now) {
                self.graph.wait_for_instant(next);
                return self.expect(earliest, Event::Operation(next));
            }
            node = next;
        }
    }

    /// Begins what can begin now, at planes that are idle, and then at channels.
    fn begin_all(&mut self) {
        while let Some(number) = self.idle_planes.pop() {
            self.begin(number);
        }
        while let Some(number) = self.idle_channels.pop() {
            self.transfer(number);
        }
    }

    fn begin(&mut self, number: u32) {
        let plane = &mut self.planes[number as usize];
        if plane.stage != Stage::Idle {
            return;
        }
        let Some(node) = plane.queue.pop_front() else { return };
        plane.current = node;
        if let Some(waits) = &mut self.waits {
            waits.begin(number, self.graph.node(node), self.now);
        }
        match self.graph.node(node).kind {
            Kind::Read => {
                plane.stage = Stage::Reading;
                self.expect(self.now + self.latencies.read_ns, Event::Plane(number));
            }
            Kind::Program => self.ask_for_channel(number),
            Kind::Erase => {
                plane.stage = Stage::Ending;
                self.expect(self.now + self.latencies.erase_ns, Event::Plane(number));
            }
            Kind::Sum => unreachable!("a sum needs no plane"),
        }
    }

    /// The channel goes to the plane that is ready first.
    fn transfer(&mut self, number: u32) {
        let channel = &mut self.channels[number as usize];
        if channel.queue.is_empty() {
            return;
        }
        if channel.until <= self.now {
            let (since, plane) = channel.queue.pop_front().expect("somebody is ready");
            channel.until = self.now + self.latencies.transfer_ns;
            let until = channel.until;
            let node = self.planes[plane as usize].current;
            self.planes[plane as usize].stage = Stage::Ending;
            if let Some(waits) = &mut self.waits {
                waits.transfer((plane, number), self.graph.node(node), (since, self.now));
            }
            let programs = if self.graph.node(node).kind == Kind::Program { self.latencies.program_ns } else { 0 };
            self.expect(until + programs, Event::Plane(plane));
        }
        let channel = &mut self.channels[number as usize];
        if !channel.queue.is_empty() && !channel.is_awaited {
            channel.is_awaited = true;
            let until = channel.until;
            self.expect(until, Event::Channel(number));
        }
    }

    /// Issues an operation.
    fn issue(&mut self, kind: Kind, block: EraseBlock, purpose: Purpose, at: Moment) -> Moment {
        let node = self.graph.add(kind, block, purpose);
        if let Some(waits) = &self.waits {
            self.graph.set_asker(node, waits.asker());
        }
        self.graph.wait_for(node, at, self.now);
        if kind != Kind::Read {
            let before = std::mem::replace(&mut self.last_of_block[block.index()], node);
            if before != NONE {
                self.graph.follow(before, node);
            }
        }
        let moment = self.graph.moment(node);
        if self.graph.is_ready(node) {
            self.can_begin(node);
            self.begin_all();
        }
        moment
    }
}

impl Timing for Scheduled {
    const TIMED: bool = true;

    type Moment = Moment;

    /// All that happens up to `at` has happened afterwards.
    fn instant(&mut self, at: Time) -> Moment {
        self.run(at);
        self.now = self.now.max(at);
        Moment::At(at)
    }

    fn later(&mut self, sum: Moment, other: Moment) -> Moment {
        self.graph.later(sum, other, self.now)
    }

    fn settle(&mut self, moment: Moment, until: Time) -> Option<Time> {
        loop {
            match self.graph.current(moment, self.now) {
                Moment::At(at) => return (at <= until).then_some(at),
                Moment::When(_) if self.next_event()? <= until => self.step(),
                Moment::When(_) => return None,
            }
        }
    }

    fn read(&mut self, block: EraseBlock, purpose: Purpose, at: Moment) -> Moment {
        self.issue(Kind::Read, block, purpose, at)
    }

    fn program(&mut self, block: EraseBlock, purpose: Purpose, at: Moment) -> Moment {
        self.issue(Kind::Program, block, purpose, at)
    }

    fn erase(&mut self, block: EraseBlock, at: Moment) -> Moment {
        self.issue(Kind::Erase, block, Purpose::Collection, at)
    }
}

impl Telling for Scheduled {
    fn watch(&mut self, number: u64, moment: Moment) {
        match self.graph.current(moment, self.now) {
            Moment::At(at) if at <= self.now => self.tell(number),
            Moment::At(at) => {
                let node = self.graph.add(Kind::Sum, EraseBlock(0), Purpose::Host);
                self.graph.wait_for(node, Moment::At(at), self.now);
                self.graph.watch(node, number);
                self.can_begin(node);
            }
            Moment::When(handle) => self.graph.watch(handle.node(), number),
        }
    }

    fn next_done(&mut self, until: Time) -> Option<(u64, Time)> {
        loop {
            if let Some(&(at, number)) = self.done.front()
                && at <= until
            {
                self.done.pop_front();
                return Some((number, at));
            }
            if self.next_event()? > until {
                return None;
            }
            self.step();
        }
    }
}
