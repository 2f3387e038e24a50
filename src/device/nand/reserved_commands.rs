//! Commands for several planes, and registers for the next page, where the end of an operation is told when it is issued.
//!
//! ```text
//! program   |-- transfer: plane 0 --|-- transfer: plane 1 --|-- program: both planes --|
//! die       |-- transfer 0 --|-- program 0 ------------|-- program 1 ------------|
//! register                   |-- transfer 1 --|
//! ```
//!
//! An operation joins a command that is reserved and has not begun when it comes, by the same rules as with queues. It lengthens
//! the command by its transfer, so that the ends of those before it were told early by so much: each later one of a request that
//! writes a stripe tells the right end. An operation joins nothing if its command would then run into what is reserved after it.
//!
//! A register takes the next page of a block whose program is the last that is reserved on its die.

use super::cells::PageKind;
use super::die_commands::{DieCommands, PlaneCommands};
use super::geometry::{EraseBlock, Geometry};
use crate::time::Time;
use std::collections::VecDeque;

/// The commands of a die that are remembered: those that a drive would have in its queue.
const MOST: usize = 256;

/// What a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// Programs pages of a number and a kind.
    Program(u32, PageKind),
    /// Erases blocks.
    Erase,
}

/// A command that is reserved.
#[derive(Debug, Clone)]
pub(super) struct Reserved {
    work: Work,
    /// Its blocks, of different planes.
    blocks: Vec<EraseBlock>,
    /// When its first transfer or, of an erase, its command or itself begins.
    pub begin: Time,
    /// The end of its transfers.
    pub loaded: Time,
    /// When the die works on it: when it is loaded and the command before it is done.
    pub works: Time,
    pub done: Time,
    /// Of a program whose pages went to the register: the blocks and the end of the command before it.
    after: Option<(Vec<EraseBlock>, Time)>,
}

impl Reserved {
    /// A command of one block.
    pub fn new(work: Work, block: EraseBlock, [begin, loaded, works, done]: [Time; 4]) -> Reserved {
        Reserved { work, blocks: vec![block], begin, loaded, works, done, after: None }
    }

    /// The same, loaded while the die does that command.
    pub fn behind(self, before: &Reserved) -> Reserved {
        Reserved { after: Some((before.blocks.clone(), before.done)), ..self }
    }

    /// True if an operation on a block whose last one is done at `ready` may join when it comes at `at`.
    fn may_join(&self, block: EraseBlock, at: Time, ready: Time) -> bool {
        at <= self.begin
            && match &self.after {
                None => ready <= self.begin,
                Some((blocks, done)) => ready <= *done && blocks.contains(&block),
            }
    }

    /// When the die would work on it if its transfers ended then.
    pub fn works_if_loaded(&self, loaded: Time) -> Time {
        self.after.as_ref().map_or(loaded, |(_, done)| loaded.max(*done))
    }
}

/// The commands of all dies.
#[derive(Debug, Clone)]
pub(super) struct ReservedCommands {
    commands: DieCommands,
    geometry: Geometry,
    /// The commands of each die, in the order of issue.
    dies: Vec<VecDeque<Reserved>>,
    /// The programs of each block since its last erase.
    programmed: Vec<u32>,
    /// The number of operations that joined another one.
    pub joined: u64,
}

impl ReservedCommands {
    /// None so far; `None` if no operation ever joins another or goes to a register.
    pub fn new(geometry: &Geometry, commands: DieCommands, blocks: usize) -> Option<ReservedCommands> {
        let dies = vec![VecDeque::new(); commands.lanes(geometry) as usize];
        let all = || ReservedCommands { commands, geometry: *geometry, dies, programmed: vec![0; blocks], joined: 0 };
        commands.depend_on_later().then(all)
    }

    /// True if a command may be for several planes.
    pub fn joins(&self) -> bool {
        matches!(self.commands.planes, PlaneCommands::Multi | PlaneCommands::SameBlock)
    }

    /// The next program of a block.
    pub fn program(&mut self, block: EraseBlock, kind: PageKind) -> Work {
        let programmed = &mut self.programmed[block.index()];
        *programmed += 1;
        Work::Program(*programmed - 1, kind)
    }

    /// An erase of a block.
    pub fn erase(&mut self, block: EraseBlock) -> Work {
        self.programmed[block.index()] = 0;
        Work::Erase
    }

    /// The first command of a die that an operation may join, if it comes at `at` and the last one of its block is done at
    /// `ready`.
    pub fn open(
        &mut self,
        die: u32,
        (work, block): (Work, EraseBlock),
        at: Time,
        ready: Time,
    ) -> Option<&mut Reserved> {
        if !self.joins() {
            return None;
        }
        let (needs_same_block, units) = (self.commands.planes == PlaneCommands::SameBlock, self.geometry.units());
        let fits = |other: &EraseBlock| {
            other.0 % units != block.0 % units && (!needs_same_block || other.0 / units == block.0 / units)
        };
        let commands = self.dies[die as usize].iter_mut();
        commands
            .filter(|command| command.work == work && command.may_join(block, at, ready))
            .find(|command| command.blocks.iter().all(fits))
    }

    /// An operation on a block has joined a command, which is loaded, worked on and done then.
    pub fn join(command: &mut Reserved, block: EraseBlock, [loaded, works, done]: [Time; 3]) {
        command.blocks.push(block);
        (command.loaded, command.works, command.done) = (loaded, works, done);
    }

    /// The command of a die during which the page of a program of this block goes to the register: the last one, if it programs
    /// the block and ends as the last of all that is reserved on the die, at `end`.
    pub fn before(&self, die: u32, block: EraseBlock, end: Time) -> Option<&Reserved> {
        let last = self.dies[die as usize].back().filter(|_| self.commands.cache_program)?;
        let programs = matches!(last.work, Work::Program(..)) && last.blocks.contains(&block);
        (programs && last.done == end).then_some(last)
    }

    /// A command is reserved.
    pub fn reserve(&mut self, die: u32, command: Reserved) {
        let commands = &mut self.dies[die as usize];
        if commands.len() == MOST {
            commands.pop_front();
        }
        commands.push_back(command);
    }
}
