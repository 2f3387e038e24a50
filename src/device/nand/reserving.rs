//! The timing model that answers at once: each operation takes the first gap that is long enough for it.
//!
//! Nothing that is issued later delays an operation, so that its end is known when it is issued. With queues an operation
//! that is issued later may come first at a channel: `tests/flash_clock.rs` compares both. Only what joins a command for several
//! planes lengthens it.

use super::calendar::Calendar;
use super::cells::{Cells, KindTimes, PageKind, PageTimes};
use super::die_commands::DieCommands;
use super::geometry::{EraseBlock, Geometry};
use super::reserved_commands::{Reserved, ReservedCommands, Work};
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
    /// The commands that operations join, and those behind which they are loaded.
    commands: Option<Box<ReservedCommands>>,
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
            commands: None,
            places,
            log: log.cloned(),
        }
    }

    /// The same model of a drive whose dies take these commands. What joins a command lengthens it, after the ends of those before
    /// it were told.
    pub fn with_commands(self, geometry: &Geometry, commands: DieCommands) -> Reserving {
        let reserved = ReservedCommands::new(geometry, commands, self.places.blocks()).map(Box::new);
        Reserving { places: Places::new(geometry, commands.lanes(geometry)), commands: reserved, ..self }
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

    /// An operation of a command of its own is reserved: when its transfer begins and ends, and when its die works on it and is
    /// done.
    fn reserve(&mut self, work: Option<Work>, block: EraseBlock, times: [Time; 4]) {
        self.blocks[block.index()] = times[3];
        if let Some((commands, work)) = self.commands.as_mut().zip(work) {
            commands.reserve(self.places.of(block).plane, Reserved::new(work, block, times));
        }
    }

    /// A program that joins a command, or whose page goes to the register of its die. Its end, if it does.
    #[inline(never)]
    fn program_with(
        &mut self,
        work: Work,
        block: EraseBlock,
        times: (u64, u64),
        purpose: Purpose,
        at: Time,
    ) -> Option<Time> {
        self.join(work, block, times, purpose, at).or_else(|| self.load(work, block, times, purpose, at))
    }

    /// An operation joins a command, with a transfer and the work of these times, if it can. Its end.
    fn join(
        &mut self,
        work: Work,
        block: EraseBlock,
        (transfer_ns, work_ns): (u64, u64),
        purpose: Purpose,
        at: Time,
    ) -> Option<Time> {
        let Place { plane: die, channel } = self.places.of(block);
        let (die_calendar, channel_calendar) = (&self.planes[die as usize], &self.channels[channel as usize]);
        let commands = self.commands.as_mut()?;
        let command = commands.open(die, (work, block), at, self.blocks[block.index()])?;
        let transfer = first_command(channel_calendar, command.loaded, transfer_ns);
        let loaded = transfer + transfer_ns;
        let works = command.works_if_loaded(loaded);
        let (before, done) = (command.done, works + work_ns);
        // A command that waits longer for the page than it works on it is better off without it.
        if !die_calendar.is_free(before, done) || transfer > command.loaded + work_ns {
            return None;
        }
        let begin = command.begin;
        ReservedCommands::join(command, block, [loaded, works, done]);
        commands.joined += 1;
        if let Some(log) = &self.log {
            let mut waits = self.wait_for_plane(block, at, begin);
            waits.add(self.wait_for_channel(block, begin, transfer));
            self.record(log, purpose, waits, [at, loaded, works, done], (transfer_ns, work_ns));
        }
        let (plane, channel) = self.resources(block);
        plane.take(before, done, purpose);
        channel.take(transfer, loaded, purpose);
        self.blocks[block.index()] = done;
        Some(done)
    }

    /// The page of a program goes to the register of its die, if it can. The program's end.
    fn load(
        &mut self,
        work: Work,
        block: EraseBlock,
        (transfer_ns, program_ns): (u64, u64),
        purpose: Purpose,
        at: Time,
    ) -> Option<Time> {
        let Place { plane: die, channel } = self.places.of(block);
        let end = self.planes[die as usize].end();
        let commands = self.commands.as_mut()?;
        let last = commands.before(die, block, end).filter(|last| last.done > at)?;
        let begin = at.max(last.works);
        let transfer = self.channels[channel as usize].first_free(begin, transfer_ns);
        let (before, loaded) = (last.done, transfer + transfer_ns);
        let works = loaded.max(before);
        let done = works + program_ns;
        let reserved = Reserved::new(work, block, [transfer, loaded, works, done]).behind(last);
        commands.reserve(die, reserved);
        if let Some(log) = &self.log {
            let mut waits = self.wait_for_plane(block, at, begin);
            waits.add(self.wait_for_channel(block, begin, transfer));
            self.record(log, purpose, waits, [at, loaded, works, done], (transfer_ns, program_ns));
        }
        let (plane, channel) = self.resources(block);
        plane.take(before, done, purpose);
        channel.take(transfer, loaded, purpose);
        self.blocks[block.index()] = done;
        Some(done)
    }

    /// Records an operation that joined a command or was loaded during one: an erase as one, a program as two.
    fn record(
        &self,
        log: &WaitLog,
        purpose: Purpose,
        waits: Waits,
        [at, loaded, works, done]: [Time; 4],
        (transfer_ns, work_ns): (u64, u64),
    ) {
        let of_die = Waits { die_ns: works.since_ns(loaded), ..Waits::default() };
        if purpose == Purpose::Erase {
            let mut waits = serviced(waits, transfer_ns + work_ns);
            waits.add(of_die);
            return log.record(purpose, at, done, waits);
        }
        let purpose = log.purpose_of_program(purpose);
        log.record(purpose, at, loaded, serviced(waits, transfer_ns));
        log.record(purpose, loaded, done, serviced(of_die, work_ns));
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
        let work = self.commands.as_mut().map(|commands| commands.program(block, kind));
        if let Some(work) = work
            && let Some(done) = self.program_with(work, block, (transfer_ns, program_ns), purpose, at)
        {
            return done;
        }
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
        self.reserve(work, block, [transfer, loaded, loaded, done]);
        done
    }

    fn events(&self) -> Vec<(&'static str, u64)> {
        let joins = self.commands.as_ref().filter(|commands| commands.joins());
        joins.map(|commands| ("joined_operations", commands.joined)).into_iter().collect()
    }

    fn erase(&mut self, block: EraseBlock, at: Time) -> Time {
        let (erase_ns, command_ns) = (self.latencies.erase_ns, self.latencies.command.erase_ns);
        let work = self.commands.as_mut().map(|commands| commands.erase(block));
        if let Some(work) = work
            && let Some(done) = self.join(work, block, (command_ns, erase_ns), Purpose::Erase, at)
        {
            return done;
        }
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
        self.reserve(work, block, [command, commanded, commanded, done]);
        done
    }
}
