//! The seam of the timing model of flash.
//!
//! A plane does one operation at a time, and a channel one transfer or command:
//!
//! ```text
//! read      |-- plane and channel: command --|-- plane: read --|-- plane and channel: transfer --|
//! program   |-- plane and channel: command, transfer --|-- plane: program --|
//! erase     |-- plane and channel: command --|-- plane: erase --|
//! ```
//!
//! Commands take no time unless [`Latencies::command`] says so.
//!
//! The times of reads and programs are those of the kind of the page ([`PageKind`]); a word line is transferred page by page
//! and then programmed.
//!
//! Planes are independent of each other, or share their die ([`DieCommands`](super::DieCommands)): it then does one command at a
//! time, which may be one for several planes, and is meant where this text says plane. The programs and erases of an erase block
//! keep the order in which they are issued; reads take no part in it, as what they would miss is still in the controller.
//! With [`Scheduled`](super::Scheduled) reads of requests may go first and suspend programs and erases
//! ([`Suspension`](super::Suspension)).
//!
//! | model | answers | for whom |
//! |---|---|---|
//! | [`Untimed`] | nothing | `timing=off` |
//! | [`Scheduled`](super::Scheduled) | when it is asked for the next completion, with queues at planes and channels | the engine |
//! | [`Reserving`](super::Reserving) | at once: an operation takes the first gap that is long enough | callers that need the time of one request before they issue the next: file systems, zones |

use super::cells::{KindTimes, PageKind, PageTimes};
use super::geometry::EraseBlock;
use crate::device::wait_log::Purpose;
use crate::time::Time;

/// The timing model of a drive.
pub trait Timing {
    /// True if completion times are modelled; otherwise every operation is done when it is issued.
    const TIMED: bool;

    /// The end of an operation: an instant, or the operation itself while its end is not known yet.
    type Moment: Copy + Send;

    /// The instant `at`.
    fn instant(&mut self, at: Time) -> Self::Moment;

    /// The later of both. A sum that grows by one operation after the other is cheap: it may change what `sum` stands for,
    /// so only the result may be used afterwards.
    fn later(&mut self, sum: Self::Moment, other: Self::Moment) -> Self::Moment;

    /// The instant at which `moment` is, if that is not after `until`, up to which no other operation is issued.
    fn settle(&mut self, moment: Self::Moment, until: Time) -> Option<Time>;

    /// Reads a page of `block` and transfers it over the channel, when `at` has come. A model may let reads that are not for
    /// collection go first, and record the purposes of all.
    fn read(&mut self, block: EraseBlock, purpose: Purpose, at: Self::Moment) -> Self::Moment;

    /// Reads a page of flash of `block`, and transfers so many of the units in it.
    #[inline]
    fn read_units(&mut self, block: EraseBlock, _units: u32, purpose: Purpose, at: Self::Moment) -> Self::Moment {
        self.read(block, purpose, at)
    }

    /// The same for a page of this kind, which determines the time.
    #[inline]
    fn read_kind(
        &mut self,
        block: EraseBlock,
        units: u32,
        _kind: PageKind,
        purpose: Purpose,
        at: Self::Moment,
    ) -> Self::Moment {
        self.read_units(block, units, purpose, at)
    }

    /// The later of a moment that only this method returns, if there is one, and of any other, which stays valid.
    #[inline]
    fn gather(&mut self, sum: Option<Self::Moment>, other: Self::Moment) -> Self::Moment {
        match sum {
            None => other,
            Some(sum) => self.later(sum, other),
        }
    }

    /// Transfers a page over the channel and programs it in `block`.
    fn program(&mut self, block: EraseBlock, purpose: Purpose, at: Self::Moment) -> Self::Moment;

    /// Programs what this kind says, a page or a word line, after the transfer of its pages.
    #[inline]
    fn program_kind(&mut self, block: EraseBlock, _kind: PageKind, purpose: Purpose, at: Self::Moment) -> Self::Moment {
        self.program(block, purpose, at)
    }

    /// Reads a page of `source` and programs it in `target`.
    #[inline]
    fn copy(&mut self, source: EraseBlock, target: EraseBlock, purpose: Purpose, at: Self::Moment) -> Self::Moment {
        let read = self.read(source, purpose, at);
        self.program(target, purpose, read)
    }

    /// [`Timing::copy`]; the later of its end and of `sum`, as [`Timing::later`] has it.
    #[inline]
    fn copy_into(
        &mut self,
        source: EraseBlock,
        target: EraseBlock,
        purpose: Purpose,
        at: Self::Moment,
        sum: Self::Moment,
    ) -> Self::Moment {
        let copied = self.copy(source, target, purpose, at);
        self.later(sum, copied)
    }

    /// Erases `block`.
    fn erase(&mut self, block: EraseBlock, at: Self::Moment) -> Self::Moment;

    /// An instant near `moment`, to tell ages of hours: the present, where the end of an operation is not known yet. Zero
    /// without times.
    fn about(&self, _moment: Self::Moment) -> Time {
        Time::ZERO
    }

    /// Its counts beside those of operations, by the names of results.
    fn events(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// A timing model that tells completions in their order.
pub trait Telling: Timing {
    /// Request `number` is done at `moment`, and will be told. Numbers ascend.
    fn watch(&mut self, number: u64, moment: Self::Moment);

    /// The next watched request that is done, and when, if that is not after `until`.
    fn next_done(&mut self, until: Time) -> Option<(u64, Time)>;
}

/// Without a timing model: all calls are inlined away.
#[derive(Debug, Clone, Copy)]
pub struct Untimed;

impl Timing for Untimed {
    const TIMED: bool = false;

    type Moment = ();

    #[inline(always)]
    fn instant(&mut self, _at: Time) {}

    #[inline(always)]
    fn later(&mut self, _sum: (), _other: ()) {}

    #[inline(always)]
    fn settle(&mut self, _moment: (), until: Time) -> Option<Time> {
        Some(until)
    }

    #[inline(always)]
    fn read(&mut self, _block: EraseBlock, _purpose: Purpose, _at: ()) {}

    #[inline(always)]
    fn program(&mut self, _block: EraseBlock, _purpose: Purpose, _at: ()) {}

    #[inline(always)]
    fn erase(&mut self, _block: EraseBlock, _at: ()) {}
}

/// Nobody asks for completions of a run without times.
impl Telling for Untimed {
    fn watch(&mut self, _number: u64, _moment: ()) {}

    fn next_done(&mut self, _until: Time) -> Option<(u64, Time)> {
        None
    }
}

/// The duration of each operation, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Latencies {
    /// A page read from the array to the register.
    pub read_ns: u64,
    /// A page program from the register to the array.
    pub program_ns: u64,
    /// A block erase.
    pub erase_ns: u64,
    /// The transfer of a page that was read over the channel.
    pub read_transfer_ns: u64,
    /// The transfer of a page to program.
    pub program_transfer_ns: u64,
    /// The command of an operation on the channel, before all else of it.
    pub command: CommandTimes,
}

/// The times of commands and addresses on the channel, by operation, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CommandTimes {
    /// Before a page is read from the array.
    pub read_ns: u64,
    /// Before each page that is transferred to be programmed.
    pub program_ns: u64,
    /// Before an erase; before each block that a command for several planes erases.
    pub erase_ns: u64,
}

impl CommandTimes {
    /// True if a read or an erase needs its channel before it begins.
    pub(super) fn need_channel(&self) -> bool {
        self.read_ns > 0 || self.erase_ns > 0
    }
}

impl Latencies {
    /// Transfers take equally long both ways, and commands no time. All in nanoseconds.
    pub const fn new(read_ns: u64, program_ns: u64, erase_ns: u64, transfer_ns: u64) -> Latencies {
        let command = CommandTimes { read_ns: 0, program_ns: 0, erase_ns: 0 };
        let (read_transfer_ns, program_transfer_ns) = (transfer_ns, transfer_ns);
        Latencies { read_ns, program_ns, erase_ns, read_transfer_ns, program_transfer_ns, command }
    }

    /// The times of all kinds of pages, if pages are alike.
    pub(super) fn of_kinds(&self) -> KindTimes {
        [PageTimes { read_ns: self.read_ns, program_ns: self.program_ns, pages: 1 }; PageKind::COUNT]
    }

    /// The transfer of so many of the units of a page of flash that was read, rounded up.
    pub fn read_transfer_of(&self, units: u32, pages_per_program: u32) -> u64 {
        (self.read_transfer_ns * u64::from(units)).div_ceil(u64::from(pages_per_program))
    }

    /// The channel's time for a page to program: its command and its transfer.
    pub(super) fn loading_ns(&self) -> u64 {
        self.command.program_ns + self.program_transfer_ns
    }
}

/// The lane and the channel of each erase block. Two divisions an operation cost more than this table.
#[derive(Debug, Clone)]
pub(super) struct Places(Vec<Place>);

/// The plane of an erase block, or its die if planes do not work independently, and its channel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub plane: u32,
    pub channel: u32,
}

impl Places {
    /// The places of blocks on so many lanes: all planes, or all dies.
    pub fn new(geometry: &super::Geometry, lanes: u32) -> Places {
        let place = |block| {
            let plane = geometry.unit_of(EraseBlock(block)) % lanes;
            Place { plane, channel: geometry.channel_of(plane) }
        };
        // Zones have planes, and no blocks: a plane's number is that of its first block.
        Places((0..geometry.blocks.max(geometry.units())).map(place).collect())
    }

    pub fn blocks(&self) -> usize {
        self.0.len()
    }

    #[inline]
    pub fn of(&self, block: EraseBlock) -> Place {
        self.0[block.index()]
    }
}
