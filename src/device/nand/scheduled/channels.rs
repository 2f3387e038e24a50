//! Channels: each goes to the plane that was ready first, for a transfer or for the command of an operation.
//!
//! ```text
//! read      |-- command --| plane: read --|-- transfer --|
//! program   |-- command, transfer --| plane: program --|
//! erase     |-- command --| plane: erase --|
//! ```
//!
//! A plane whose operation waits for the channel for its command has not begun it.

use super::events::{After, Event};
use super::graph::Kind;
use super::{Channel, Scheduled, Stage};
use crate::time::Time;

impl Scheduled {
    /// The transfer of a channel has ended.
    pub(super) fn free(&mut self, number: u32) {
        let channel = &mut self.channels[number as usize];
        channel.is_awaited = false;
        if !channel.queue.is_empty() {
            self.idle_channels.push(number);
        }
    }

    /// A plane's operation needs the channel from now on. Planes that need it since the same instant keep the order of
    /// issue.
    #[inline(always)]
    pub(super) fn ask_for_channel(&mut self, number: u32) {
        let channel = self.planes[number as usize].channel;
        // Whoever else asks at this instant may have been issued before it.
        if self.have_own_channels
            || self.idle_planes.is_empty()
                && self.channels[channel as usize].is_free(self.now)
                && !self.events.comes_at(self.now)
        {
            self.transfer((number, channel), self.now);
        } else {
            self.wait_for_channel(number, Stage::Ready);
        }
    }

    /// The operation that a plane begins needs the channel for its command.
    #[inline(never)]
    pub(super) fn ask_for_command(&mut self, number: u32) {
        self.wait_for_channel(number, Stage::Asking);
    }

    /// A plane waits for its channel.
    #[inline(never)]
    fn wait_for_channel(&mut self, number: u32, stage: Stage) {
        let plane = &mut self.planes[number as usize];
        plane.stage = stage;
        let node = plane.current;
        self.queue_for_channel(number, node);
    }

    /// An operation of a plane waits for the channel.
    #[inline(always)]
    pub(super) fn queue_for_channel(&mut self, number: u32, node: u32) {
        let channel = self.planes[number as usize].channel;
        let issued = self.graph.node(node).number;
        let Channel { until, is_awaited, queue } = &mut self.channels[channel as usize];
        let (planes, registers, graph, now) = (&self.planes, &self.registers, &self.graph, self.now);
        match queue.back() {
            Some((since, _)) if since == now => {
                let asking = |plane: u32| match registers {
                    Some(registers) if registers[plane as usize].waits() => registers[plane as usize].node,
                    _ => planes[plane as usize].current,
                };
                let is_later =
                    |&(since, other): &(Time, u32)| since == now && graph.node(asking(other)).number > issued;
                let later = queue.iter().rev().take_while(is_later).count();
                queue.insert(queue.len() - later, (now, number));
            }
            _ => queue.push_back((now, number)),
        }
        if *until <= now {
            self.idle_channels.push(channel);
        } else if !std::mem::replace(is_awaited, true) {
            let until = *until;
            self.expect(After::Wait, until, Event::Channel(channel));
        }
    }

    /// A plane that waits for its channel does so no more.
    pub(super) fn leave_channel(&mut self, number: u32) {
        let queue = &mut self.channels[self.planes[number as usize].channel as usize].queue;
        let place = queue.iter().position(|(_, waits)| waits == number);
        queue.remove(place.expect("a plane that is ready waits for its channel"));
    }

    /// Begins the operation of a plane that needs its channel since that instant for a command; false if it needs it for a
    /// transfer.
    pub(super) fn give_command(&mut self, (number, channel): (u32, u32), since: Time) -> bool {
        if self.planes[number as usize].stage != Stage::Asking {
            return false;
        }
        let node = self.planes[number as usize].current;
        let command = self.latencies.command;
        let is_erase = self.graph.node(node).kind == Kind::Erase;
        let command_ns = if is_erase {
            if self.commands.is_some() {
                self.join_command(number);
            }
            let joined = self.joined.get(number as usize).map_or(0, Vec::len) as u64;
            command.erase_ns * (1 + joined)
        } else {
            command.read_ns
        };
        let given = self.now + command_ns;
        if let Some(waits) = &mut self.waits {
            waits.transfer((number, channel), self.graph.node(node), (since, self.now, given));
        }
        let (stage, after, until) = if is_erase {
            (Stage::Ending, After::Erase, given + self.latencies.erase_ns)
        } else {
            (Stage::Reading, After::Read, given + self.times[self.graph.node(node).page_kind().index()].read_ns)
        };
        let plane = &mut self.planes[number as usize];
        (plane.stage, plane.until) = (stage, until);
        self.expect(after, until, Event::Plane(number));
        self.hold_channel(channel, given);
        true
    }

    /// A plane that needs its channel since that instant has it from now on.
    #[inline(always)]
    pub(super) fn transfer(&mut self, (plane, number): (u32, u32), since: Time) {
        let node = self.planes[plane as usize].current;
        if self.graph.node(node).kind == Kind::Program {
            self.transfer_program((plane, number), since);
        } else {
            self.transfer_read((plane, number), (since, self.now));
        }
    }

    /// The time of the transfer of a page that was read, or of a part of it.
    #[inline]
    fn read_transfer_ns(&self, node: u32) -> u64 {
        let node = self.graph.node(node);
        if node.shape() == self.units {
            return self.latencies.read_transfer_ns;
        }
        self.latencies.read_transfer_of(node.units().into(), self.units.into())
    }

    /// The time of the transfer of what is programmed, with its commands.
    #[inline]
    pub(super) fn loading_ns(&self, node: u32) -> u64 {
        let node = self.graph.node(node);
        if node.shape() == self.units {
            return self.loading_ns;
        }
        self.loading_ns * u64::from(self.times[node.page_kind().index()].pages)
    }

    /// The time of a program after its transfer.
    #[inline]
    pub(super) fn program_ns(&self, node: u32) -> u64 {
        self.times[self.graph.node(node).page_kind().index()].program_ns
    }

    /// [`Scheduled::transfer`] of a read, from the second instant on, now or later.
    #[inline(always)]
    pub(super) fn transfer_read(&mut self, (plane, number): (u32, u32), (since, begin): (Time, Time)) {
        let node = self.planes[plane as usize].current;
        let until = begin + self.read_transfer_ns(node);
        debug_assert!(self.channels[number as usize].until <= begin, "channel {number} has one transfer at a time");
        self.planes[plane as usize].stage = Stage::Ending;
        if let Some(waits) = &mut self.waits {
            waits.transfer((plane, number), self.graph.node(node), (since, begin, until));
        }
        // The end of a read is that of its transfer.
        let channel = &mut self.channels[number as usize];
        (channel.until, channel.is_awaited) = (until, true);
        self.expect(After::Transfer, until, Event::Plane(plane));
    }

    /// [`Scheduled::transfer`] of a program.
    #[inline(always)]
    fn transfer_program(&mut self, (plane, number): (u32, u32), since: Time) {
        let (node, begin) = (self.planes[plane as usize].current, self.now);
        let mut loading_ns = self.loading_ns(node);
        if self.commands.is_some() {
            self.join_command(plane);
            loading_ns *= 1 + self.joined[plane as usize].len() as u64;
        }
        let until = begin + loading_ns;
        debug_assert!(self.channels[number as usize].until <= begin, "channel {number} has one transfer at a time");
        self.planes[plane as usize].stage = Stage::Ending;
        if let Some(waits) = &mut self.waits {
            waits.transfer((plane, number), self.graph.node(node), (since, begin, until));
        }
        let done = until + self.program_ns(node);
        self.planes[plane as usize].until = done;
        self.expect(After::Program, done, Event::Plane(plane));
        self.hold_channel(number, until);
        if self.registers.is_some() {
            self.expect(After::Wait, until, Event::Register(plane));
        }
    }

    /// A channel transfers until then. Nobody is told of the end unless a plane waits for it.
    #[inline(always)]
    pub(super) fn hold_channel(&mut self, number: u32, until: Time) {
        let channel = &mut self.channels[number as usize];
        channel.until = until;
        channel.is_awaited = !channel.queue.is_empty();
        if channel.is_awaited {
            self.expect(After::Wait, until, Event::Channel(number));
        }
    }
}
