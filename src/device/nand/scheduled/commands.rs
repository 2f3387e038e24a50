//! Commands that a die gets for several of its planes.
//!
//! ```text
//! program   |-- transfer: plane 0 --|-- transfer: plane 1 --|-- program: both planes --|
//! erase     |-- erase: both planes --|
//! ```
//!
//! A command has the first operation of its die and, of each other plane, the first program or erase that waits, if that may
//! join: a program of a page with the same number and of the same kind, or an erase; with `multi-same-block` in blocks of
//! the same number. A program that waits for its channel is joined by those that come meanwhile. Operations of one instant
//! are issued one by one: none begins before the clock moves on, so that they find each other. Reads are commands of their
//! own.

use super::graph::{Graph, Kind, Node};
use super::ring::Ring;
use crate::device::nand::geometry::{EraseBlock, Geometry};

/// The commands of all dies.
#[derive(Debug, Clone)]
pub(super) struct Commands {
    needs_same_block: bool,
    dies: u32,
    /// The planes of the drive.
    units: u32,
    planes_of_die: u32,
    /// The programs of each block since its last erase.
    programmed: Vec<u32>,
    /// The number of the page that each program under way writes, by its node.
    pages: Vec<u32>,
    /// The number of operations that joined another one.
    joined: u64,
}

impl Commands {
    /// No page is programmed.
    pub fn new(geometry: &Geometry, blocks: usize, needs_same_block: bool) -> Commands {
        Commands {
            needs_same_block,
            dies: geometry.channels * geometry.dies,
            units: geometry.units(),
            planes_of_die: geometry.planes,
            programmed: vec![0; blocks],
            pages: Vec::new(),
            joined: 0,
        }
    }

    /// The number of operations that joined another one.
    pub fn joined(&self) -> u64 {
        self.joined
    }

    /// An operation on a block is issued.
    pub fn issue(&mut self, node: u32, kind: Kind, block: EraseBlock) {
        let programmed = &mut self.programmed[block.index()];
        match kind {
            Kind::Program | Kind::Copy => {
                self.pages.resize(self.pages.len().max(node as usize + 1), 0);
                self.pages[node as usize] = *programmed;
                *programmed += 1;
            }
            Kind::Erase => *programmed = 0,
            Kind::Read | Kind::Sum => {}
        }
    }

    /// The plane of a block in its die.
    fn plane_of(&self, block: EraseBlock) -> u32 {
        block.0 % self.units / self.dies
    }

    /// True if an operation of another plane may join the first one.
    fn may_join(&self, (first, command): (u32, &Node), (node, other): (u32, &Node)) -> bool {
        if other.kind != command.kind || self.needs_same_block && !self.have_same_number(command.block, other.block) {
            return false;
        }
        let writes_same_page = || self.pages[node as usize] == self.pages[first as usize];
        command.kind == Kind::Erase || other.shape() == command.shape() && writes_same_page()
    }

    /// True if both blocks have the same number in their planes.
    fn have_same_number(&self, one: EraseBlock, other: EraseBlock) -> bool {
        one.0 / self.units == other.0 / self.units
    }

    /// Moves the operations that join a program or an erase from the queue of its die to `joined`: those in `blocks`, or all if these
    /// are all.
    pub fn join(
        &mut self,
        first: u32,
        queue: &mut Ring<u32>,
        graph: &Graph,
        blocks: Option<&[EraseBlock]>,
        joined: &mut Vec<u32>,
    ) {
        debug_assert!(joined.is_empty(), "the operations of the last command are done");
        let command = graph.node(first);
        // The planes whose first program or erase is known, by bit.
        let mut known = 1u32 << self.plane_of(command.block);
        let mut index = 0;
        while let Some(node) = queue.get(index)
            && known.count_ones() < self.planes_of_die
        {
            let other = graph.node(node);
            let plane = match other.kind {
                Kind::Program | Kind::Erase => 1 << self.plane_of(other.block),
                // A copy is still a read.
                Kind::Read | Kind::Copy | Kind::Sum => known,
            };
            let is_first = known & plane == 0;
            known |= plane;
            if is_first
                && self.may_join((first, command), (node, other))
                && blocks.is_none_or(|blocks| blocks.contains(&other.block))
            {
                joined.push(node);
                queue.remove(index);
            } else {
                index += 1;
            }
        }
        self.joined += joined.len() as u64;
    }
}
