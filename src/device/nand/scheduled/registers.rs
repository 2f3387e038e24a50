//! Cache programs: the next page of a block is transferred while its die programs the page before it.
//!
//! ```text
//! plane     |-- transfer 0 --|-- program 0 ------------|-- program 1 ------------|
//! register                   |-- transfer 1 --|        |-- transfer 2 --|
//! ```
//!
//! A register takes the next operation of its die if that is a program of a block that the die programs at the time. It waits for
//! the channel as others do.

use super::events::{After, Event};
use super::graph::{Kind, NONE};
use super::{Scheduled, Stage};
use crate::device::nand::geometry::EraseBlock;
use crate::time::Time;

/// The register of a die, beside that of the page under way.
#[derive(Debug, Clone)]
pub(super) struct Register {
    /// The program whose page it takes, or [`NONE`].
    pub node: u32,
    /// The programs that joined it.
    pub joined: Vec<u32>,
    /// The end of the transfer; `None` while it waits for the channel.
    until: Option<Time>,
}

impl Register {
    /// Free.
    pub fn new() -> Register {
        Register { node: NONE, joined: Vec::new(), until: None }
    }

    /// True if it waits for the channel.
    pub fn waits(&self) -> bool {
        self.node != NONE && self.until.is_none()
    }
}

impl Scheduled {
    /// The next program of a busy die asks for the channel, if the register is free and may take it.
    pub(super) fn load_next(&mut self, number: u32) {
        let Some(registers) = &self.registers else { return };
        let plane = &self.planes[number as usize];
        let is_programming = plane.stage == Stage::Ending
            && self.graph.node(plane.current).kind == Kind::Program
            && plane.until.0 - self.program_ns(plane.current) <= self.now.0;
        if !is_programming || registers[number as usize].node != NONE {
            return;
        }
        let Some(next) = plane.queue.front() else { return };
        let node = self.graph.node(next);
        if node.kind != Kind::Program || !self.blocks_of(number).contains(&node.block) {
            return;
        }
        self.planes[number as usize].queue.pop_front();
        if let Some(registers) = &mut self.registers {
            registers[number as usize].node = next;
        }
        if let Some(waits) = &mut self.waits {
            waits.begin_load(number, self.now);
        }
        self.queue_for_channel(number, next);
    }

    /// The blocks that a die programs.
    fn blocks_of(&self, number: u32) -> Vec<EraseBlock> {
        let joined = self.joined.get(number as usize).into_iter().flatten();
        [&self.planes[number as usize].current]
            .into_iter()
            .chain(joined)
            .map(|node| self.graph.node(*node).block)
            .collect()
    }

    /// Transfers to the register of a die that waits for the channel; false if none does.
    pub(super) fn load(&mut self, (number, channel): (u32, u32), since: Time) -> bool {
        let Some(mut registers) = self.registers.take() else { return false };
        let register = &mut registers[number as usize];
        let is_load = register.waits();
        if is_load {
            let blocks = self.blocks_of(number);
            if let Some(commands) = &mut self.commands {
                let queue = &mut self.planes[number as usize].queue;
                commands.join(register.node, queue, &self.graph, Some(&blocks), &mut register.joined);
            }
            let until = self.now + self.loading_ns(register.node) * (1 + register.joined.len() as u64);
            register.until = Some(until);
            if let Some(waits) = &mut self.waits {
                waits.transfer_load((number, channel), self.graph.node(register.node), (since, self.now, until));
            }
            self.hold_channel(channel, until);
        }
        self.registers = Some(registers);
        is_load
    }

    /// The die has ended a program: that in its register is the next, if there is one.
    pub(super) fn take_loaded(&mut self, number: u32) {
        let Some(registers) = &mut self.registers else { return };
        let register = &mut registers[number as usize];
        if register.node == NONE {
            return;
        }
        let node = std::mem::replace(&mut register.node, NONE);
        let until = register.until.take();
        if let Some(joined) = self.joined.get_mut(number as usize) {
            std::mem::swap(joined, &mut register.joined);
        }
        if let Some(waits) = &mut self.waits {
            waits.take_loaded(number);
        }
        let program_ns = self.program_ns(node);
        let plane = &mut self.planes[number as usize];
        plane.current = node;
        let Some(loaded) = until else {
            plane.stage = Stage::Ready;
            return;
        };
        plane.stage = Stage::Ending;
        plane.until = loaded.max(self.now) + program_ns;
        let done = plane.until;
        self.expect(After::Program, done, Event::Plane(number));
        if loaded > self.now {
            self.expect(After::Wait, loaded, Event::Register(number));
        }
    }
}
