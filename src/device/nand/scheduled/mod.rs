//! The timing model with queues: each plane has one, in the order in which its operations can begin, and a channel goes
//! to the plane that was ready first. A plane or a channel is idle only if nobody waits for it.
//!
//! An operation that is issued later may still come first at a channel. So the end of an operation is not known when it is
//! issued: a [`Moment`] stands for it, which other operations can wait for. The clock goes on when the engine asks for the
//! next completion, event by event, and no further.
//!
//! Ties: of two operations that can begin at the same instant, the one that was issued first begins. All that ends at an
//! instant ends before anything begins at it. So the order of events of one instant does not matter.
//!
//! | file | role |
//! |---|---|
//! | `mod.rs` | the model: planes and channels |
//! | `channels` | who a channel goes to, and commands on it |
//! | `commands` | commands for several planes of a die |
//! | `events` | what happens next |
//! | `graph` | the operations that are under way, and who waits for them |
//! | `reads_first` | reads that go before other operations, and interrupt them |
//! | `registers` | pages that are transferred while their die programs |
//! | `ring` | a queue whose push is inlined |
//! | `waits` | records what operations waited for |

mod channels;
mod commands;
mod events;
mod graph;
mod reads_first;
mod registers;
mod ring;
mod waits;

pub use graph::Moment;

use super::cells::{Cells, KindTimes, PageKind};
use super::die_commands::{DieCommands, PlaneCommands};
use super::geometry::{EraseBlock, Geometry};
use super::suspension::Suspension;
use super::timing::{Latencies, Places, Telling, Timing};
use crate::device::wait_log::{Purpose, WaitLog};
use crate::time::Time;
use commands::Commands;
use events::{After, Event, Events};
use graph::{Graph, Kind, NONE, Waiter};
use reads_first::ReadsFirst;
use registers::Register;
use ring::Ring;
use std::collections::VecDeque;
use waits::RecordedWaits;

/// The work of a plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Idle,
    /// Its operation waits for the channel for its command.
    Asking,
    /// It reads from the array, and needs the channel afterwards.
    Reading,
    /// It waits for the channel.
    Ready,
    /// Nothing more is waited for until the end of its operation.
    Ending,
    /// It suspends an operation, and can read afterwards.
    Suspending,
}

#[derive(Debug, Clone)]
struct Plane {
    stage: Stage,
    /// The operation that it does.
    current: u32,
    /// The end of a program or an erase that is under way.
    until: Time,
    /// The operations that can begin.
    queue: Ring<u32>,
    /// When the last one joined the queue, how many did at that instant, and the number of the last of these.
    joined_at: Time,
    joined_then: usize,
    last_joined: u64,
    channel: u32,
}

impl Plane {
    /// So many, all idle: the planes of a drive, or its dies.
    fn all(geometry: &Geometry, lanes: u32) -> Vec<Plane> {
        let plane = |number| Plane {
            stage: Stage::Idle,
            current: NONE,
            until: Time::ZERO,
            queue: Ring::new(),
            joined_at: Time::ZERO,
            joined_then: 0,
            last_joined: 0,
            channel: geometry.channel_of(number),
        };
        (0..lanes).map(plane).collect()
    }
}

#[derive(Debug, Clone)]
struct Channel {
    /// The end of its transfer.
    until: Time,
    /// True if an event comes at its end.
    is_awaited: bool,
    /// The planes that are ready, with the instant since when.
    queue: Ring<(Time, u32)>,
}

impl Channel {
    /// True if it transfers nothing, and nobody waits for it.
    #[inline]
    fn is_free(&self, now: Time) -> bool {
        self.until <= now && self.queue.is_empty()
    }
}

/// The model with queues.
#[derive(Debug, Clone)]
pub struct Scheduled {
    geometry: Geometry,
    latencies: Latencies,
    /// The channel's time for a page to program.
    loading_ns: u64,
    /// True if a read or an erase needs its channel before it begins.
    have_commands: bool,
    /// True if planes need channels for their transfers alone: for no commands, and no pages for registers.
    transfers_alone: bool,
    /// The times of reads and programs, by kind of page.
    times: KindTimes,
    /// The units of a page of flash.
    units: u8,
    places: Places,
    /// The planes or, if these do not work independently, the dies.
    planes: Vec<Plane>,
    channels: Vec<Channel>,
    /// True if each plane has its channel for itself, and needs it for no commands: it never waits for it, so that a read is one
    /// event.
    have_own_channels: bool,
    graph: Graph,
    /// The last program or erase of each block, until it can begin.
    last_of_block: Vec<u32>,
    events: Events,
    /// Up to when all has happened.
    now: Time,
    /// Watched requests that are done, and not told, in order.
    done: VecDeque<(Time, u64)>,
    /// The planes and channels that may begin something at `now`.
    idle_planes: Vec<u32>,
    idle_channels: Vec<u32>,
    reads_first: Option<Box<ReadsFirst>>,
    commands: Option<Box<Commands>>,
    /// The operations that joined that under way, by die; empty without commands for several planes.
    joined: Vec<Vec<u32>>,
    /// The register of each die for the next page; none without cache programs.
    registers: Option<Box<[Register]>>,
    waits: Option<RecordedWaits>,
}

impl Scheduled {
    /// All planes and channels idle; records the waits of operations in `log`, if there is one.
    pub fn new(geometry: Geometry, latencies: Latencies, log: Option<&WaitLog>) -> Scheduled {
        let places = Places::new(&geometry, geometry.units());
        Scheduled {
            geometry,
            latencies,
            loading_ns: latencies.loading_ns(),
            have_commands: latencies.command.need_channel(),
            transfers_alone: !latencies.command.need_channel(),
            times: latencies.of_kinds(),
            units: geometry.pages_per_program as u8,
            planes: Plane::all(&geometry, geometry.units()),
            channels: vec![
                Channel { until: Time::ZERO, is_awaited: false, queue: Ring::new() };
                geometry.channels as usize
            ],
            have_own_channels: geometry.units() == geometry.channels && !latencies.command.need_channel(),
            graph: Graph::default(),
            last_of_block: vec![NONE; places.blocks()],
            places,
            events: Events::new(),
            now: Time::ZERO,
            done: VecDeque::new(),
            idle_planes: Vec::new(),
            idle_channels: Vec::new(),
            reads_first: None,
            commands: None,
            joined: Vec::new(),
            registers: None,
            waits: log.map(|log| RecordedWaits::new(&geometry, latencies, log)),
        }
    }

    /// The same model of a drive whose dies take these commands.
    pub fn with_commands(self, commands: DieCommands) -> Scheduled {
        let lanes = commands.lanes(&self.geometry);
        let places = Places::new(&self.geometry, lanes);
        let joins = matches!(commands.planes, PlaneCommands::Multi | PlaneCommands::SameBlock);
        let needs_same_block = commands.planes == PlaneCommands::SameBlock;
        Scheduled {
            planes: Plane::all(&self.geometry, lanes),
            have_own_channels: lanes == self.geometry.channels && !self.have_commands,
            commands: joins.then(|| Box::new(Commands::new(&self.geometry, places.blocks(), needs_same_block))),
            joined: vec![Vec::new(); if joins { lanes as usize } else { 0 }],
            transfers_alone: self.transfers_alone && !commands.cache_program,
            registers: commands.cache_program.then(|| (0..lanes).map(|_| Register::new()).collect()),
            places,
            ..self
        }
    }

    /// The same model, in which reads go first by these rules, if there are any.
    pub fn with_suspension(self, rules: Option<Suspension>) -> Scheduled {
        let planes = self.planes.len();
        Scheduled { reads_first: rules.map(|rules| Box::new(ReadsFirst::new(rules, planes))), ..self }
    }

    /// The same model of flash with these cells, if they are known.
    pub fn with_cells(self, cells: Option<&Cells>) -> Scheduled {
        let Some(cells) = cells else { return self };
        let waits = self.waits.map(|waits| waits.with_times(cells.times()));
        Scheduled { times: cells.times(), waits, ..self }
    }

    /// Calls with the reads that go first, if there are such.
    #[inline]
    fn with_first<R>(&mut self, call: impl FnOnce(&mut Scheduled, &mut ReadsFirst) -> R) -> Option<R> {
        let mut first = self.reads_first.take()?;
        let result = call(self, &mut first);
        self.reads_first = Some(first);
        Some(result)
    }

    #[inline(always)]
    fn expect(&mut self, after: After, at: Time, event: Event) {
        debug_assert!(at >= self.now, "an event at {at:?} is not before {:?}", self.now);
        self.events.expect(after, at, event);
    }

    /// All that happens at the instant of the next event.
    fn step(&mut self, at: Time) {
        self.now = at;
        while let Some(event) = self.events.take(at) {
            match event {
                Event::Plane(plane) => self.end_stage(plane),
                Event::Channel(channel) => self.free(channel),
                Event::Register(plane) => self.idle_planes.push(plane),
                Event::Operation(node) => {
                    if self.graph.has_come(node, at) {
                        self.can_begin(node);
                    }
                }
            }
        }
        self.begin_all();
    }

    /// All that happens up to `until`.
    #[inline]
    fn run(&mut self, until: Time) {
        while let Some(at) = self.events.next().filter(|at| *at <= until) {
            self.step(at);
        }
    }

    fn end_stage(&mut self, number: u32) {
        let plane = &mut self.planes[number as usize];
        match plane.stage {
            Stage::Reading => self.ask_for_channel(number),
            Stage::Ending => {
                plane.stage = Stage::Idle;
                let (node, channel) = (std::mem::replace(&mut plane.current, NONE), plane.channel);
                let kind = self.graph.node(node).kind;
                if self.commands.is_some() && matches!(kind, Kind::Program | Kind::Erase) {
                    self.end_joined(number);
                }
                if let Some(waits) = &mut self.waits {
                    waits.end(number, self.graph.node(node), self.now);
                }
                if matches!(kind, Kind::Read | Kind::Copy) {
                    self.free(channel);
                }
                if let Some(first) = &mut self.reads_first
                    && !self.graph.node(node).is_read_of_request()
                {
                    Scheduled::has_ended(first, number);
                }
                if kind == Kind::Copy {
                    self.end_read_of_copy(node)
                } else {
                    self.complete(node)
                }
                if self.registers.is_some() {
                    self.take_loaded(number);
                }
                // The last in the list begins first. A plane whose next operation is a read needs no channel now, so that the
                // plane that programs this copy asks alone.
                self.idle_planes.push(number);
            }
            Stage::Suspending => {
                self.with_first(|timing, first| timing.end_suspending(first, number));
            }
            Stage::Idle | Stage::Asking | Stage::Ready => {
                unreachable!("plane {number} expects no event while {:?}", plane.stage)
            }
        }
    }

    /// The operations that joined that of a die are done.
    #[inline(never)]
    fn end_joined(&mut self, number: u32) {
        let mut joined = std::mem::take(&mut self.joined[number as usize]);
        for node in joined.drain(..) {
            if let Some(waits) = &mut self.waits {
                waits.end_joined(number, self.graph.node(node), self.now);
            }
            self.complete(node);
        }
        self.joined[number as usize] = joined;
    }

    /// Takes the operations that join the one that a die begins.
    #[inline(never)]
    fn join_command(&mut self, number: u32) {
        let Some(commands) = &mut self.commands else { return };
        let Plane { current, queue, .. } = &mut self.planes[number as usize];
        commands.join(*current, queue, &self.graph, None, &mut self.joined[number as usize]);
    }

    /// A copy needs the plane of its program from now on.
    fn end_read_of_copy(&mut self, node: u32) {
        let plane = self.places.of(self.graph.node(node).block).plane;
        if self.graph.become_program(node, plane, self.now) {
            self.enter(node);
        }
    }

    /// The operation is done: tells those who wait for it.
    #[inline(always)]
    fn complete(&mut self, node: u32) {
        let (waiter, mut others) = self.graph.release(node);
        if let Some(waiter) = waiter {
            self.end_wait(waiter);
            while let Some(waiter) = self.graph.next_waiter(&mut others) {
                self.end_wait(waiter);
            }
        }
    }

    /// The operation that a waiter waits for is done.
    #[inline(always)]
    fn end_wait(&mut self, waiter: Waiter) {
        match waiter {
            Waiter::Request(number) => self.tell(number),
            Waiter::Node(node) => {
                if self.graph.has_come(node, self.now) {
                    self.can_begin(node);
                }
            }
        }
    }

    fn tell(&mut self, number: u64) {
        let later = self.done.iter().rev().take_while(|(at, other)| *at == self.now && *other > number).count();
        self.done.insert(self.done.len() - later, (self.now, number));
    }

    /// Nothing that the operation waits for is left, but perhaps an instant.
    #[inline(never)]
    fn can_begin(&mut self, node: u32) {
        match self.graph.waits_until(node, self.now) {
            None => self.enter(node),
            Some(earliest) => {
                self.graph.wait_for_instant(node);
                self.expect(After::Wait, earliest, Event::Operation(node));
            }
        }
    }

    /// Puts an operation in the queue of its plane, and gives its turn in the block to the next one.
    #[inline(always)]
    fn enter(&mut self, node: u32) {
        let (kind, block) = (self.graph.node(node).kind, self.graph.node(node).block);
        match kind {
            Kind::Sum => return self.complete(node),
            Kind::Read | Kind::Copy | Kind::Program | Kind::Erase => self.join(node),
        }
        if matches!(kind, Kind::Read | Kind::Copy) {
            return;
        }
        let last = &mut self.last_of_block[block.index()];
        if *last == node {
            *last = NONE;
        } else if let Some(next) = self.graph.give_turn(node) {
            self.can_begin(next);
        }
    }

    /// Puts an operation in the queue of its plane. Those that join at the same instant keep the order of issue.
    #[inline(always)]
    fn join(&mut self, node: u32) {
        if self.reads_first.is_some() && self.graph.node(node).is_read_of_request() {
            self.with_first(|timing, first| timing.join_first(first, node));
            return;
        }
        let graph = &self.graph;
        let (number, issued) = (graph.node(node).plane, graph.node(node).number);
        let plane = &mut self.planes[number as usize];
        if plane.joined_at < self.now {
            (plane.joined_at, plane.joined_then, plane.last_joined) = (self.now, 0, 0);
        }
        if plane.last_joined <= issued {
            plane.last_joined = issued;
            plane.queue.push_back(node);
        } else {
            let is_later = |other: &u32| graph.node(*other).number > issued;
            let later = plane.queue.iter().rev().take(plane.joined_then).take_while(is_later).count();
            plane.queue.insert(plane.queue.len() - later, node);
        }
        plane.joined_then += 1;
        if plane.stage == Stage::Idle || self.registers.is_some() {
            self.idle_planes.push(number);
        }
    }

    /// Begins what can begin now, at planes that are idle, and then at channels.
    #[inline(always)]
    fn begin_all(&mut self) {
        if !self.idle_planes.is_empty() || !self.idle_channels.is_empty() {
            self.begin_ready();
        }
    }

    /// [`Scheduled::begin_all`], where a plane or a channel may begin something.
    fn begin_ready(&mut self) {
        while let Some(number) = self.idle_planes.pop() {
            self.begin(number);
        }
        while let Some(number) = self.idle_channels.pop() {
            self.serve(number);
        }
    }

    fn begin(&mut self, number: u32) {
        let plane = &mut self.planes[number as usize];
        let next = if self.reads_first.is_some() {
            self.with_first(|timing, first| timing.next_after_interrupt(first, number)).flatten()
        } else if plane.stage == Stage::Idle {
            plane.queue.pop_front()
        } else {
            if self.registers.is_some() {
                self.load_next(number);
            }
            None
        };
        let Some(node) = next else { return };
        let plane = &mut self.planes[number as usize];
        plane.current = node;
        if let Some(next) = plane.queue.front() {
            self.graph.prefetch(next);
        }
        if let Some(waits) = &mut self.waits {
            waits.begin(number, self.graph.node(node), self.now);
        }
        match self.graph.node(node).kind {
            Kind::Read | Kind::Copy => {
                let read = self.now + self.times[self.graph.node(node).page_kind().index()].read_ns;
                if self.have_own_channels {
                    self.transfer_read((number, self.planes[number as usize].channel), (read, read));
                } else if self.have_commands {
                    self.ask_for_command(number);
                } else {
                    self.planes[number as usize].stage = Stage::Reading;
                    self.expect(After::Read, read, Event::Plane(number));
                }
            }
            Kind::Program => self.ask_for_channel(number),
            Kind::Erase if self.have_commands => self.ask_for_command(number),
            Kind::Erase => {
                if self.commands.is_some() {
                    self.join_command(number);
                }
                let until = self.now + self.latencies.erase_ns;
                let plane = &mut self.planes[number as usize];
                (plane.stage, plane.until) = (Stage::Ending, until);
                self.expect(After::Erase, until, Event::Plane(number));
            }
            Kind::Sum => unreachable!("a sum needs no plane"),
        }
    }

    /// A channel that is free goes to the plane that is ready first.
    fn serve(&mut self, number: u32) {
        let channel = &mut self.channels[number as usize];
        if channel.until <= self.now
            && let Some((since, plane)) = channel.queue.pop_front()
            && (self.transfers_alone || !self.give_other((plane, number), since))
        {
            self.transfer((plane, number), since);
        }
    }

    /// Gives a channel to a plane that needs it since that instant for a command, or for the page that its register takes; false
    /// if it needs it for a transfer.
    #[inline(never)]
    fn give_other(&mut self, places: (u32, u32), since: Time) -> bool {
        self.have_commands && self.give_command(places, since) || self.registers.is_some() && self.load(places, since)
    }

    /// Issues an operation on a page of flash.
    fn issue(&mut self, kind: Kind, plane: u32, block: EraseBlock, purpose: Purpose, at: Moment) -> Moment {
        self.issue_shape((kind, self.units), plane, block, purpose, at)
    }

    /// Issues an operation on so many units of a page of flash, of a kind.
    #[inline]
    fn issue_shape(
        &mut self,
        (kind, shape): (Kind, u8),
        plane: u32,
        block: EraseBlock,
        purpose: Purpose,
        at: Moment,
    ) -> Moment {
        let node = self.prepare((kind, shape), plane, block, purpose, at);
        let moment = self.graph.moment(node);
        self.begin_issued(node);
        moment
    }

    /// A new operation, with all that it waits for.
    #[inline(always)]
    fn prepare(
        &mut self,
        (kind, shape): (Kind, u8),
        plane: u32,
        block: EraseBlock,
        purpose: Purpose,
        at: Moment,
    ) -> u32 {
        let node = self.graph.add((kind, shape), plane, block, purpose);
        if let Some(commands) = &mut self.commands {
            commands.issue(node, kind, block);
        }
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
        node
    }

    /// Lets a new operation begin, if it waits for nothing.
    #[inline(always)]
    fn begin_issued(&mut self, node: u32) {
        if self.graph.is_ready(node) {
            match self.graph.waits_until(node, self.now) {
                None => self.enter(node),
                Some(_) => self.can_begin(node),
            }
            // The operations that are issued next may join it.
            if self.commands.is_none() {
                self.begin_all();
            }
        }
    }
}

impl Timing for Scheduled {
    const TIMED: bool = true;

    type Moment = Moment;

    /// All that happens up to `at` has happened afterwards.
    fn instant(&mut self, at: Time) -> Moment {
        if self.commands.is_some() && at > self.now {
            self.begin_all();
        }
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
                Moment::When(_) => {
                    if self.commands.is_some() {
                        self.begin_all();
                    }
                    self.step(self.events.next().filter(|at| *at <= until)?);
                }
            }
        }
    }

    fn read(&mut self, block: EraseBlock, purpose: Purpose, at: Moment) -> Moment {
        self.issue(Kind::Read, self.places.of(block).plane, block, purpose, at)
    }

    fn read_units(&mut self, block: EraseBlock, units: u32, purpose: Purpose, at: Moment) -> Moment {
        self.issue_shape((Kind::Read, units as u8), self.places.of(block).plane, block, purpose, at)
    }

    fn read_kind(&mut self, block: EraseBlock, units: u32, kind: PageKind, purpose: Purpose, at: Moment) -> Moment {
        let shape = graph::shape(units as u8, kind);
        self.issue_shape((Kind::Read, shape), self.places.of(block).plane, block, purpose, at)
    }

    fn program_kind(&mut self, block: EraseBlock, kind: PageKind, purpose: Purpose, at: Moment) -> Moment {
        let shape = graph::shape(self.units, kind);
        self.issue_shape((Kind::Program, shape), self.places.of(block).plane, block, purpose, at)
    }

    fn gather(&mut self, sum: Option<Moment>, other: Moment) -> Moment {
        self.graph.gather(sum, other, self.now)
    }

    fn program(&mut self, block: EraseBlock, purpose: Purpose, at: Moment) -> Moment {
        self.issue(Kind::Program, self.places.of(block).plane, block, purpose, at)
    }

    fn copy(&mut self, source: EraseBlock, target: EraseBlock, purpose: Purpose, at: Moment) -> Moment {
        self.issue(Kind::Copy, self.places.of(source).plane, target, purpose, at)
    }

    fn copy_into(
        &mut self,
        source: EraseBlock,
        target: EraseBlock,
        purpose: Purpose,
        at: Moment,
        sum: Moment,
    ) -> Moment {
        let node = self.prepare((Kind::Copy, self.units), self.places.of(source).plane, target, purpose, at);
        // From now on `at` is waited for, and so no open sum, even if `sum` is the same.
        let sum = self.graph.open_sum(sum, self.now);
        self.graph.add_to_sum(sum, node);
        self.begin_issued(node);
        self.graph.moment(sum)
    }

    fn erase(&mut self, block: EraseBlock, at: Moment) -> Moment {
        self.issue(Kind::Erase, self.places.of(block).plane, block, Purpose::Erase, at)
    }

    fn about(&self, _moment: Moment) -> Time {
        self.now
    }

    fn events(&self) -> Vec<(&'static str, u64)> {
        let suspensions = self.reads_first.as_ref().map(|first| ("suspensions", first.suspensions()));
        let joined = self.commands.as_ref().map(|commands| ("joined_operations", commands.joined()));
        suspensions.into_iter().chain(joined).collect()
    }
}

impl Telling for Scheduled {
    fn watch(&mut self, number: u64, moment: Moment) {
        match self.graph.current(moment, self.now) {
            Moment::At(at) if at <= self.now => self.tell(number),
            Moment::At(at) => {
                let node = self.graph.add_sum();
                self.graph.wait_for(node, Moment::At(at), self.now);
                self.graph.watch(node, number);
                self.can_begin(node);
            }
            Moment::When(handle) => self.graph.watch(handle.node(), number),
        }
    }

    fn next_done(&mut self, until: Time) -> Option<(u64, Time)> {
        if self.commands.is_some() && self.done.is_empty() {
            self.begin_all();
        }
        loop {
            if let Some(&(at, number)) = self.done.front()
                && at <= until
            {
                self.done.pop_front();
                return Some((number, at));
            }
            self.step(self.events.next().filter(|at| *at <= until)?);
        }
    }
}
