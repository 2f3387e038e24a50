//! The timing model that answers at once: each operation takes the first gap that is long enough for it.
//!
//! Nothing that is issued later delays an operation, so that its end is known when it is issued. With queues an operation
//! that is issued later may come first at a channel: `tests/flash_clock.rs` compares both.

use super::calendar::Calendar;
use super::cells::{Cells, KindTimes, PageKind, PageTimes};
use super::die_commands::DieCommands;
use super::geometry::{EraseBlock, Geometry};
use super::timing::{Latencies, Place, Places, Timing};
use crate::device::wait_log::{Purpose, WaitLog, Waits};
use crate::time::Time;

/// The model that reserves planes and channels.
#[derive(Debug, Clone)]
pub struct Reserving {
    latencies: Latencies,
    /// The times of reads and programs, by kind of page.
    times: KindTimes,
    pages_per_program: u32,
    places: Places,
    planes: Vec<Calendar>,
    channels: Vec<Calendar>,
    /// The end of the last program or erase of each block.
    blocks: Vec<Time>,
    log: Option<WaitLog>,
}

impl Reserving {
    /// All planes and channels idle; records the waits of operations in `log`, if there is one.
    pub fn new(geometry: Geometry, latencies: Latencies, log: Option<&WaitLog>) -> Reserving {
        let places = Places::new(&geometry, geometry.units());
        Reserving {
            latencies,
            times: latencies.of_kinds(),
            pages_per_program: geometry.pages_per_program,
            planes: vec![Calendar::default(); geometry.units() as usize],
            channels: vec![Calendar::default(); geometry.channels as usize],
            blocks: vec![Time::ZERO; places.blocks()],
            places,
            log: log.cloned(),
        }
    }

    /// The same model of a drive whose dies take these commands.
    ///
    /// # Panics
    ///
    /// If later operations join a command or wait in a register: [`NandSettings::needs_queues`](super::NandSettings::needs_queues)
    /// says so.
    pub fn with_commands(self, geometry: &Geometry, commands: DieCommands) -> Reserving {
        assert_eq!(commands.needs_later(), None, "the end of an operation is known when it is issued");
        Reserving { places: Places::new(geometry, commands.lanes(geometry)), ..self }
    }

    /// The same model of flash with these cells, if they are known.
    pub fn with_cells(self, cells: Option<&Cells>) -> Reserving {
        let times = cells.map_or(self.times, Cells::times);
        Reserving { times, ..self }
    }

    fn resources(&mut self, block: EraseBlock) -> (&mut Calendar, &mut Calendar) {
        let Place { plane, channel } = self.places.of(block);
        (&mut self.planes[plane as usize], &mut self.channels[channel as usize])
    }

    /// The parts of a wait for the plane, from `at` until `begin`.
    fn wait_for_plane(&self, block: EraseBlock, at: Time, begin: Time) -> Waits {
        self.planes[self.places.of(block).plane as usize].wait(at, begin, |waits| &mut waits.die_ns)
    }

    /// The parts of a wait for the channel.
    fn wait_for_channel(&self, block: EraseBlock, at: Time, begin: Time) -> Waits {
        self.channels[self.places.of(block).channel as usize].wait(at, begin, |waits| &mut waits.channel_ns)
    }
}

/// The first instant from `begin` on at which a channel takes a command of so many nanoseconds.
fn first_command(channel: &Calendar, begin: Time, command_ns: u64) -> Time {
    if command_ns == 0 { begin } else { channel.first_free(begin, command_ns) }
}

fn serviced(mut waits: Waits, service_ns: u64) -> Waits {
    waits.service_ns += service_ns;
    waits
}

impl Timing for Reserving {
    const TIMED: bool = true;

    type Moment = Time;

    #[inline]
    fn instant(&mut self, at: Time) -> Time {
        at
    }

    #[inline]
    fn later(&mut self, sum: Time, other: Time) -> Time {
        sum.max(other)
    }

    #[inline]
    fn settle(&mut self, moment: Time, until: Time) -> Option<Time> {
        (moment <= until).then_some(moment)
    }

    fn about(&self, moment: Time) -> Time {
        moment
    }

    fn read(&mut self, block: EraseBlock, purpose: Purpose, at: Time) -> Time {
        self.read_units(block, self.pages_per_program, purpose, at)
    }

    fn read_units(&mut self, block: EraseBlock, units: u32, purpose: Purpose, at: Time) -> Time {
        self.read_kind(block, units, PageKind::ALIKE, purpose, at)
    }

    fn read_kind(&mut self, block: EraseBlock, units: u32, kind: PageKind, purpose: Purpose, at: Time) -> Time {
        let read_ns = self.times[kind.index()].read_ns;
        let transfer_ns = self.latencies.read_transfer_of(units, self.pages_per_program);
        let command_ns = self.latencies.command.read_ns;
        let (plane, channel) = self.resources(block);
        let fits = |(begin, end): (Time, Time)| {
            let command = first_command(channel, begin, command_ns);
            let transfer = channel.first_free(command + command_ns + read_ns, transfer_ns);
            (transfer + transfer_ns <= end).then_some((begin, command, transfer))
        };
        let (begin, command, transfer) = plane.gaps(at).find_map(fits).expect("the last gap has no end");
        let (commanded, done) = (command + command_ns, transfer + transfer_ns);
        if let Some(log) = &self.log {
            let mut waits = self.wait_for_plane(block, at, begin);
            waits.add(self.wait_for_channel(block, begin, command));
            waits.add(self.wait_for_channel(block, commanded + read_ns, transfer));
            log.record(purpose, at, done, serviced(waits, command_ns + read_ns + transfer_ns));
        }
        let (plane, channel) = self.resources(block);
        plane.take(command, done, purpose);
        channel.take(command, commanded, purpose);
        channel.take(transfer, done, purpose);
        done
    }

    fn program(&mut self, block: EraseBlock, purpose: Purpose, at: Time) -> Time {
        self.program_kind(block, PageKind::ALIKE, purpose, at)
    }

    /// Recorded as two: who waits for a place in a drive's buffer goes on from the end of the transfer.
    fn program_kind(&mut self, block: EraseBlock, kind: PageKind, purpose: Purpose, at: Time) -> Time {
        let PageTimes { program_ns, pages, .. } = self.times[kind.index()];
        let transfer_ns = self.latencies.loading_ns() * u64::from(pages);
        let from = at.max(self.blocks[block.index()]);
        let (plane, channel) = self.resources(block);
        let fits = |(begin, end): (Time, Time)| {
            let transfer = channel.first_free(begin, transfer_ns);
            (transfer + transfer_ns + program_ns <= end).then_some((begin, transfer))
        };
        let (begin, transfer) = plane.gaps(from).find_map(fits).expect("the last gap has no end");
        let loaded = transfer + transfer_ns;
        let done = loaded + program_ns;
        if let Some(log) = &self.log {
            let mut waits = self.wait_for_plane(block, at, begin);
            waits.add(self.wait_for_channel(block, begin, transfer));
            let purpose = log.purpose_of_program(purpose);
            log.record(purpose, at, loaded, serviced(waits, transfer_ns));
            log.record(purpose, loaded, done, serviced(Waits::default(), program_ns));
        }
        let (plane, channel) = self.resources(block);
        plane.take(transfer, done, purpose);
        channel.take(transfer, loaded, purpose);
        self.blocks[block.index()] = done;
        done
    }

    fn erase(&mut self, block: EraseBlock, at: Time) -> Time {
        let (erase_ns, command_ns) = (self.latencies.erase_ns, self.latencies.command.erase_ns);
        let from = at.max(self.blocks[block.index()]);
        let (plane, channel) = self.resources(block);
        let fits = |(begin, end): (Time, Time)| {
            let command = first_command(channel, begin, command_ns);
            (command + command_ns + erase_ns <= end).then_some((begin, command))
        };
        let (begin, command) = plane.gaps(from).find_map(fits).expect("the last gap has no end");
        let (commanded, done) = (command + command_ns, command + command_ns + erase_ns);
        if let Some(log) = &self.log {
            let mut waits = self.wait_for_plane(block, at, begin);
            waits.add(self.wait_for_channel(block, begin, command));
            log.record(Purpose::Erase, at, done, serviced(waits, command_ns + erase_ns));
        }
        let (plane, channel) = self.resources(block);
        plane.take(command, done, Purpose::Erase);
        channel.take(command, commanded, Purpose::Erase);
        self.blocks[block.index()] = done;
        done
    }
}
