//! The operations that are under way: what each waits for, and who waits for it.

use crate::device::nand::cells::PageKind;
use crate::device::nand::geometry::EraseBlock;
use crate::device::wait_log::Purpose;
use crate::tables::prefetch;
use crate::time::Time;

/// No operation.
pub(super) const NONE: u32 = u32::MAX;

/// The end of an operation or of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// At an instant.
    At(Time),
    /// The end of an operation.
    When(Handle),
}

/// An operation. It stays valid: its place in the table has another count of uses once the operation is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handle {
    node: u32,
    uses: u32,
}

impl Handle {
    pub(super) fn node(self) -> u32 {
        self.node
    }
}

/// The kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Program,
    Erase,
    /// A read that becomes a program of another block when it is done.
    Copy,
    /// Nothing: it is done when all that it waits for is.
    Sum,
}

/// An operation, in a line of the processor's cache.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub(super) struct Node {
    /// The order of issue.
    pub number: u64,
    /// The instant from which on nothing but its turn in the block, its plane and its channel is waited for.
    pub asked: Time,
    /// The first that waits for its end: most have no other.
    waiter: Option<Waiter>,
    /// The others.
    waiters: u32,
    /// The number of operations and instants that it waits for; a copy, that its read waits for.
    missing: u32,
    uses: u32,
    /// The plane that it needs.
    pub plane: u32,
    /// The block that it programs or erases.
    pub block: EraseBlock,
    /// The next program or erase of the block.
    next_of_block: u32,
    /// The issuer, if waits are recorded.
    pub asker: u32,
    pub kind: Kind,
    pub purpose: Purpose,
    /// The units that it transfers, in the low bits, and the kind of its page.
    shape: u8,
    /// False while an earlier program or erase of the block has not entered the queue of its plane.
    has_turn: bool,
}

const _: () = assert!(size_of::<Node>() == 64);

/// The low bits of a shape, for up to eight units of a page of flash.
const UNIT_BITS: u32 = 4;

/// The units that an operation transfers and the kind of its page, in one number. A page whose pages are alike has the number
/// of its units.
#[inline]
pub(super) fn shape(units: u8, kind: PageKind) -> u8 {
    debug_assert!(units < 1 << UNIT_BITS, "a page of flash has {units} units");
    units | kind.0 << UNIT_BITS
}

impl Node {
    /// The units that it transfers and the kind of its page, in one number.
    #[inline]
    pub fn shape(&self) -> u8 {
        self.shape
    }

    /// The units of a page of flash that it transfers.
    #[inline]
    pub fn units(&self) -> u8 {
        self.shape & ((1 << UNIT_BITS) - 1)
    }

    /// The kind of the page that it reads, or of what it programs.
    #[inline]
    pub fn page_kind(&self) -> PageKind {
        PageKind(self.shape >> UNIT_BITS)
    }

    /// True for a read that a request waits for.
    #[inline]
    pub fn is_read_of_request(&self) -> bool {
        self.kind == Kind::Read && self.purpose != Purpose::Collection
    }
}

/// The waiters of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiter {
    Node(u32),
    Request(u64),
}

#[derive(Debug, Clone, Copy)]
struct Edge {
    waiter: Waiter,
    next: u32,
}

/// All operations under way.
#[derive(Debug, Clone, Default)]
pub(super) struct Graph {
    nodes: Vec<Node>,
    free_nodes: Vec<u32>,
    edges: Vec<Edge>,
    free_edges: Vec<u32>,
    issued: u64,
}

impl Graph {
    /// A new operation that waits for nothing.
    #[inline]
    pub fn add(&mut self, (kind, shape): (Kind, u8), plane: u32, block: EraseBlock, purpose: Purpose) -> u32 {
        self.issued += 1;
        let fresh = Node {
            number: self.issued,
            asked: Time::ZERO,
            waiter: None,
            waiters: NONE,
            missing: 0,
            uses: 0,
            plane,
            block,
            next_of_block: NONE,
            asker: 0,
            kind,
            purpose,
            shape,
            has_turn: true,
        };
        match self.free_nodes.pop() {
            Some(node) => {
                let place = &mut self.nodes[node as usize];
                *place = Node { uses: place.uses, ..fresh };
                node
            }
            None => {
                self.nodes.push(fresh);
                self.nodes.len() as u32 - 1
            }
        }
    }

    /// A new sum of nothing.
    pub fn add_sum(&mut self) -> u32 {
        self.add((Kind::Sum, 1), 0, EraseBlock(0), Purpose::Host)
    }

    #[inline]
    pub fn node(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    /// Prefetches an operation into the processor's cache.
    #[inline]
    pub fn prefetch(&self, node: u32) {
        prefetch(&self.nodes, node as usize);
    }

    /// Notes who issued an operation.
    pub fn set_asker(&mut self, node: u32, asker: u32) {
        self.nodes[node as usize].asker = asker;
    }

    #[inline]
    pub fn moment(&self, node: u32) -> Moment {
        Moment::When(Handle { node, uses: self.nodes[node as usize].uses })
    }

    /// The moment as it is known now: what is done was done at the latest now.
    #[inline]
    pub fn current(&self, moment: Moment, now: Time) -> Moment {
        match moment {
            Moment::When(Handle { node, uses }) if self.nodes[node as usize].uses != uses => Moment::At(now),
            moment => moment,
        }
    }

    /// The operation also waits for `moment`.
    #[inline(always)]
    pub fn wait_for(&mut self, node: u32, moment: Moment, now: Time) {
        match self.current(moment, now) {
            Moment::At(at) => {
                let asked = &mut self.nodes[node as usize].asked;
                *asked = (*asked).max(at.max(now));
            }
            Moment::When(handle) => {
                self.nodes[node as usize].missing += 1;
                self.add_waiter(handle.node, Waiter::Node(node));
            }
        }
    }

    /// The request is done with the operation.
    #[inline]
    pub fn watch(&mut self, node: u32, number: u64) {
        self.add_waiter(node, Waiter::Request(number));
    }

    #[inline]
    fn add_waiter(&mut self, node: u32, waiter: Waiter) {
        let place = &mut self.nodes[node as usize];
        if place.waiter.is_none() {
            place.waiter = Some(waiter);
            return;
        }
        let edge = Edge { waiter, next: place.waiters };
        place.waiters = match self.free_edges.pop() {
            Some(free) => {
                self.edges[free as usize] = edge;
                free
            }
            None => {
                self.edges.push(edge);
                self.edges.len() as u32 - 1
            }
        };
    }

    /// `node` programs or erases a block after `before`, which has not entered its queue.
    #[inline]
    pub fn follow(&mut self, before: u32, node: u32) {
        debug_assert_eq!(self.nodes[before as usize].next_of_block, NONE, "the last of a block has no next one");
        self.nodes[before as usize].next_of_block = node;
        self.nodes[node as usize].has_turn = false;
    }

    /// Gives the turn in the block to the next one. Returns that, if it waited for nothing else.
    #[inline]
    pub fn give_turn(&mut self, node: u32) -> Option<u32> {
        let next = std::mem::replace(&mut self.nodes[node as usize].next_of_block, NONE);
        let place = self.nodes.get_mut(next as usize)?;
        place.has_turn = true;
        // A copy needs its turn when it has become a program.
        (place.kind != Kind::Copy && place.missing == 0).then_some(next)
    }

    /// True if it waits for no operation.
    #[inline]
    pub fn is_ready(&self, node: u32) -> bool {
        let node = &self.nodes[node as usize];
        node.missing == 0 && (node.has_turn || node.kind == Kind::Copy)
    }

    /// The instant until which it waits, if that is still to come.
    #[inline]
    pub fn waits_until(&self, node: u32, now: Time) -> Option<Time> {
        let asked = self.nodes[node as usize].asked;
        (asked > now).then_some(asked)
    }

    /// It waits for an instant; [`Graph::has_come`] says that it has come.
    pub fn wait_for_instant(&mut self, node: u32) {
        self.nodes[node as usize].missing += 1;
    }

    /// One of the things that it waits for has come. True if it was the last.
    #[inline]
    pub fn has_come(&mut self, node: u32, now: Time) -> bool {
        let place = &mut self.nodes[node as usize];
        debug_assert!(place.missing > 0, "what has come was waited for");
        place.missing -= 1;
        place.asked = place.asked.max(now);
        self.is_ready(node)
    }

    /// The read of a copy is done, and its program needs `plane` from now on. True if it waits for no turn.
    #[inline]
    pub fn become_program(&mut self, node: u32, plane: u32, now: Time) -> bool {
        let place = &mut self.nodes[node as usize];
        debug_assert!(place.kind == Kind::Copy && place.missing == 0, "a copy has begun");
        (place.kind, place.plane, place.asked) = (Kind::Program, plane, now);
        place.has_turn
    }

    /// The operation is done: its place is free, and its handle is that of something done. Returns the first who waits for
    /// it, and the list of the others, for [`Graph::next_waiter`].
    #[inline]
    pub fn release(&mut self, node: u32) -> (Option<Waiter>, u32) {
        let place = &mut self.nodes[node as usize];
        place.uses = place.uses.wrapping_add(1);
        self.free_nodes.push(node);
        (place.waiter, place.waiters)
    }

    /// Takes the next of a list of waiters.
    #[inline]
    pub fn next_waiter(&mut self, list: &mut u32) -> Option<Waiter> {
        if *list == NONE {
            return None;
        }
        self.free_edges.push(*list);
        let Edge { waiter, next } = self.edges[*list as usize];
        *list = next;
        Some(waiter)
    }

    /// The later of both moments. A sum that nobody waits for yet is extended.
    #[inline]
    pub fn later(&mut self, sum: Moment, other: Moment, now: Time) -> Moment {
        let (sum, other) = (self.current(sum, now), self.current(other, now));
        match (sum, other) {
            (Moment::At(one), Moment::At(other)) => Moment::At(one.max(other)),
            (Moment::At(at), moment) | (moment, Moment::At(at)) if at <= now => moment,
            (one, Moment::When(handle)) | (Moment::When(handle), one)
                if self.is_open_sum(handle.node) && one != Moment::When(handle) =>
            {
                self.wait_for(handle.node, one, now);
                Moment::When(handle)
            }
            (one, other) => {
                let node = self.add_sum();
                self.wait_for(node, one, now);
                self.wait_for(node, other, now);
                self.moment(node)
            }
        }
    }

    /// The later of a moment that only this method returns, if there is one, and of any other. Unlike
    /// [`Graph::later`] it extends no sum but its own.
    pub fn gather(&mut self, sum: Option<Moment>, other: Moment, now: Time) -> Moment {
        let other = self.current(other, now);
        match (sum.map(|sum| self.current(sum, now)), other) {
            (None, Moment::At(_)) => other,
            (Some(Moment::At(one)), Moment::At(other)) => Moment::At(one.max(other)),
            (Some(Moment::When(own)), _) => {
                self.wait_for(own.node, other, now);
                Moment::When(own)
            }
            (earlier, Moment::When(_)) => {
                let node = self.add_sum();
                earlier.into_iter().chain([other]).for_each(|one| self.wait_for(node, one, now));
                self.moment(node)
            }
        }
    }

    /// A sum that nobody waits for yet, of `sum` and what will be added.
    #[inline(always)]
    pub fn open_sum(&mut self, sum: Moment, now: Time) -> u32 {
        match self.current(sum, now) {
            Moment::When(handle) if self.is_open_sum(handle.node) => handle.node,
            sum => {
                let node = self.add_sum();
                self.wait_for(node, sum, now);
                node
            }
        }
    }

    /// A sum also waits for a new operation, for which nobody else waits.
    #[inline(always)]
    pub fn add_to_sum(&mut self, sum: u32, node: u32) {
        self.nodes[sum as usize].missing += 1;
        self.nodes[node as usize].waiter = Some(Waiter::Node(sum));
    }

    #[inline]
    fn is_open_sum(&self, node: u32) -> bool {
        let node = &self.nodes[node as usize];
        node.kind == Kind::Sum && node.waiter.is_none()
    }
}
