//! The timing model of flash: each operation reserves its plane and its channel, and returns its completion time.
//!
//! There are no events. Each plane and each channel has the time until which it is busy; an operation starts when it is
//! issued or when both are free, whichever is later, in the order of issue. Planes work independently of each other, as
//! with multi-plane commands at best. A plane is busy while its page register is in use: during the transfer after a
//! read, and during the one before a program.

use super::geometry::{EraseBlock, Geometry};
use crate::device::wait_log::Purpose;
use crate::time::Time;

/// The timing model of a drive.
pub trait Timing {
    /// True if completion times are modelled; otherwise every operation is done when it is issued.
    const TIMED: bool;

    /// Reads a page of `block` and transfers it over the channel. The purpose changes no time: a model may record it.
    fn read(&mut self, block: EraseBlock, purpose: Purpose, at: Time) -> Time;

    /// Transfers a page over the channel and programs it in `block`.
    fn program(&mut self, block: EraseBlock, purpose: Purpose, at: Time) -> Time;

    /// Reads a page of `source` and programs it in `target`.
    #[inline]
    fn copy(&mut self, source: EraseBlock, target: EraseBlock, purpose: Purpose, at: Time) -> Time {
        let read = self.read(source, purpose, at);
        self.program(target, purpose, read)
    }

    /// Erases `block`.
    fn erase(&mut self, block: EraseBlock, at: Time) -> Time;
}

/// Without a timing model: all calls are inlined away.
#[derive(Debug, Clone, Copy)]
pub struct Untimed;

impl Timing for Untimed {
    const TIMED: bool = false;

    #[inline(always)]
    fn read(&mut self, _block: EraseBlock, _purpose: Purpose, at: Time) -> Time {
        at
    }

    #[inline(always)]
    fn program(&mut self, _block: EraseBlock, _purpose: Purpose, at: Time) -> Time {
        at
    }

    #[inline(always)]
    fn erase(&mut self, _block: EraseBlock, at: Time) -> Time {
        at
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
    /// A page transfer over the channel.
    pub transfer_ns: u64,
}

/// The model that reserves planes and channels.
#[derive(Debug, Clone)]
pub struct Reserving {
    latencies: Latencies,
    /// Of each erase block. Two divisions an operation cost more than this table.
    places: Vec<Place>,
    planes_free_at: Vec<Time>,
    channels_free_at: Vec<Time>,
}

/// The plane and the channel of an erase block.
#[derive(Debug, Clone, Copy)]
struct Place {
    plane: u32,
    channel: u32,
}

impl Reserving {
    /// All planes and channels idle.
    pub fn new(geometry: Geometry, latencies: Latencies) -> Reserving {
        let place = |block| {
            let plane = geometry.unit_of(EraseBlock(block));
            Place { plane, channel: geometry.channel_of(plane) }
        };
        Reserving {
            latencies,
            // Zones have planes, and no blocks: a plane's number is that of its first block.
            places: (0..geometry.blocks.max(geometry.units())).map(place).collect(),
            planes_free_at: vec![Time::ZERO; geometry.units() as usize],
            channels_free_at: vec![Time::ZERO; geometry.channels as usize],
        }
    }

    /// The plane and the channel of a block, and until when they are taken.
    pub(super) fn state(&self, block: EraseBlock) -> ((usize, usize), (Time, Time)) {
        let Place { plane, channel } = self.places[block.index()];
        let (plane, channel) = (plane as usize, channel as usize);
        ((plane, channel), (self.planes_free_at[plane], self.channels_free_at[channel]))
    }

    /// The durations of the operations.
    pub(super) fn latencies(&self) -> &Latencies {
        &self.latencies
    }

    #[inline]
    fn resources(&mut self, block: EraseBlock) -> (&mut Time, &mut Time) {
        let Place { plane, channel } = self.places[block.index()];
        (&mut self.planes_free_at[plane as usize], &mut self.channels_free_at[channel as usize])
    }
}

impl Timing for Reserving {
    const TIMED: bool = true;

    #[inline]
    fn read(&mut self, block: EraseBlock, _purpose: Purpose, at: Time) -> Time {
        let Latencies { read_ns, transfer_ns, .. } = self.latencies;
        let (plane, channel) = self.resources(block);
        let loaded = at.max(*plane) + read_ns;
        let done = loaded.max(*channel) + transfer_ns;
        (*plane, *channel) = (done, done);
        done
    }

    #[inline]
    fn program(&mut self, block: EraseBlock, _purpose: Purpose, at: Time) -> Time {
        let Latencies { program_ns, transfer_ns, .. } = self.latencies;
        let (plane, channel) = self.resources(block);
        let loaded = at.max(*plane).max(*channel) + transfer_ns;
        *channel = loaded;
        *plane = loaded + program_ns;
        *plane
    }

    /// All times are loaded before any is stored, so that no load waits for a store: where both blocks share a plane or
    /// a channel, the read ends after the time that was loaded for the program.
    #[inline]
    fn copy(&mut self, source: EraseBlock, target: EraseBlock, _purpose: Purpose, at: Time) -> Time {
        let Latencies { read_ns, program_ns, transfer_ns, .. } = self.latencies;
        let (Place { plane: from, channel: over }, to) = (self.places[source.index()], self.places[target.index()]);
        let (planes, channels) = (&mut self.planes_free_at, &mut self.channels_free_at);
        let (from_free, over_free) = (planes[from as usize], channels[over as usize]);
        let (to_free, to_over_free) = (planes[to.plane as usize], channels[to.channel as usize]);
        let read = (at.max(from_free) + read_ns).max(over_free) + transfer_ns;
        let loaded = read.max(to_free).max(to_over_free) + transfer_ns;
        (planes[from as usize], channels[over as usize]) = (read, read);
        channels[to.channel as usize] = loaded;
        planes[to.plane as usize] = loaded + program_ns;
        loaded + program_ns
    }

    #[inline]
    fn erase(&mut self, block: EraseBlock, at: Time) -> Time {
        let erase_ns = self.latencies.erase_ns;
        let (plane, _) = self.resources(block);
        *plane = at.max(*plane) + erase_ns;
        *plane
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const LATENCIES: Latencies = Latencies { read_ns: 50, program_ns: 500, erase_ns: 3000, transfer_ns: 10 };

    fn drive(channels: u32, dies: u32) -> Reserving {
        Reserving::new(Geometry::new(1 << 20, 4096, 4, (channels, dies, 1)).unwrap(), LATENCIES)
    }

    #[test]
    fn one_die_does_one_thing_at_a_time() {
        let mut drive = drive(1, 1);
        assert_eq!(drive.program(EraseBlock(0), Purpose::Host, Time(0)), Time(510));
        assert_eq!(drive.program(EraseBlock(1), Purpose::Host, Time(0)), Time(1020));
        assert_eq!(drive.read(EraseBlock(0), Purpose::Host, Time(0)), Time(1080));
        assert_eq!(drive.erase(EraseBlock(0), Time(5000)), Time(8000));
    }

    #[test]
    fn dies_on_a_channel_share_only_the_transfer() {
        let mut drive = drive(1, 2);
        assert_eq!(drive.program(EraseBlock(0), Purpose::Host, Time(0)), Time(510));
        assert_eq!(drive.program(EraseBlock(1), Purpose::Host, Time(0)), Time(520));
    }

    /// Between any two blocks, on drives of every shape and in any state.
    #[test]
    fn a_copy_is_a_read_and_then_a_program() {
        let mut random = Random::new(1, "timing");
        for (channels, dies) in [(1, 1), (1, 2), (2, 1), (2, 2), (4, 2)] {
            let (mut whole, mut parts) = (drive(channels, dies), drive(channels, dies));
            for _ in 0..2000 {
                let [source, target] = [0; 2].map(|_| EraseBlock(random.below(16) as u32));
                let at = Time(random.below(1 << 20));
                let read = parts.read(source, Purpose::Host, at);
                let programmed = parts.program(target, Purpose::Host, read);
                assert_eq!(whole.copy(source, target, Purpose::Host, at), programmed);
                assert_eq!(
                    (&whole.planes_free_at, &whole.channels_free_at),
                    (&parts.planes_free_at, &parts.channels_free_at)
                );
            }
        }
    }

    #[test]
    fn channels_share_nothing() {
        let mut drive = drive(2, 1);
        assert_eq!(drive.program(EraseBlock(0), Purpose::Host, Time(0)), Time(510));
        assert_eq!(drive.program(EraseBlock(1), Purpose::Host, Time(0)), Time(510));
    }
}
