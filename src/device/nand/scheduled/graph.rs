//! The operations that are under way: what each waits for, and who waits for it.

use crate::device::nand::geometry::EraseBlock;
use crate::device::wait_log::Purpose;
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
    /// Nothing: it is done when all that it waits for is.
    Sum,
}

/// An operation.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub kind: Kind,
    pub purpose: Purpose,
    pub block: EraseBlock,
    /// The issuer, if waits are recorded.
    pub asker: u32,
    /// The order of issue.
    pub number: u64,
    /// The instant from which on nothing but its turn in the block, its plane and its channel is waited for.
    pub asked: Time,
    /// The instant at which it joined the queue of its plane.
    pub entered: Time,
    /// The number of operations and instants that it waits for.
    missing: u32,
    uses: u32,
    waiters: u32,
    /// The next program or erase of the block.
    next_of_block: u32,
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
    pub fn add(&mut self, kind: Kind, block: EraseBlock, purpose: Purpose) -> u32 {
        self.issued += 1;
        let fresh = Node {
            kind,
            purpose,
            block,
            asker: 0,
            number: self.issued,
            asked: Time::ZERO,
            entered: Time::ZERO,
            missing: 0,
            uses: 0,
            waiters: NONE,
            next_of_block: NONE,
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

    #[inline]
    pub fn node(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    /// Notes who issued an operation.
    pub fn set_asker(&mut self, node: u32, asker: u32) {
        self.nodes[node as usize].asker = asker;
    }

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
    #[inline]
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
    pub fn watch(&mut self, node: u32, number: u64) {
        self.add_waiter(node, Waiter::Request(number));
    }

    #[inline]
    fn add_waiter(&mut self, node: u32, waiter: Waiter) {
        let edge = Edge { waiter, next: self.nodes[node as usize].waiters };
        let place = match self.free_edges.pop() {
            Some(place) => {
                self.edges[place as usize] = edge;
                place
            }
            None => {
                self.edges.push(edge);
                self.edges.len() as u32 - 1
            }
        };
        self.nodes[node as usize].waiters = place;
    }

    /// `node` is the program or erase of a block that is issued after `before`, which has not entered its queue.
    pub fn follow(&mut self, before: u32, node: u32) {
        debug_assert_eq!(self.nodes[before as usize].next_of_block, NONE, "the last of a block has no next one");
        self.nodes[before as usize].next_of_block = node;
        self.nodes[node as usize].missing += 1;
    }

    /// The next one of the block, which no longer waits for its turn; [`Graph::has_come`] follows.
    pub fn take_next_of_block(&mut self, node: u32) -> u32 {
        std::mem::replace(&mut self.nodes[node as usize].next_of_block, NONE)
    }

    /// True if it waits for no operation.
    pub fn is_ready(&self, node: u32) -> bool {
        self.nodes[node as usize].missing == 0
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

    /// One of the things that it waits for has come, which is no other operation's end. True if it was the last.
    pub fn has_come(&mut self, node: u32) -> bool {
        let missing = &mut self.nodes[node as usize].missing;
        debug_assert!(*missing > 0, "what has come was waited for");
        *missing -= 1;
        *missing == 0
    }

    /// One of the operations that it waits for is done. True if it was the last thing that it waits for.
    #[inline]
    pub fn dependency_done(&mut self, node: u32, now: Time) -> bool {
        let asked = &mut self.nodes[node as usize].asked;
        *asked = (*asked).max(now);
        self.has_come(node)
    }

    /// It joins the queue of its plane.
    #[inline]
    pub fn enter(&mut self, node: u32, now: Time) {
        self.nodes[node as usize].entered = now;
    }

    /// The operation is done: its place is free, and its handle is that of something done. Returns the list of those who
    /// wait for it, for [`Graph::next_waiter`].
    pub fn release(&mut self, node: u32) -> u32 {
        let place = &mut self.nodes[node as usize];
        place.uses = place.uses.wrapping_add(1);
        self.free_nodes.push(node);
        std::mem::replace(&mut place.waiters, NONE)
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
    pub fn later(&mut self, sum: Moment, other: Moment, now: Time) -> Moment {
        let (sum, other) = (self.current(sum, now), self.current(other, now));
        match (sum, other) {
            (Moment::At(one), Moment::At(other)) => Moment::At(one.max(other)),
            (Moment::At(at), moment) | (moment, Moment::At(at)) if at <= now => moment,
            (one, Moment::When(handle)) | (Moment::When(handle), one) if self.is_open_sum(handle.node) => {
                self.wait_for(handle.node, one, now);
                Moment::When(handle)
            }
            (one, other) => {
                let node = self.add(Kind::Sum, EraseBlock(0), Purpose::Host);
                self.wait_for(node, one, now);
                self.wait_for(node, other, now);
                self.moment(node)
            }
        }
    }

    fn is_open_sum(&self, node: u32) -> bool {
        let node = &self.nodes[node as usize];
        node.kind == Kind::Sum && node.waiters == NONE
    }
}
