//! The timing model with a record of its waits. It computes the times of [`Reserving`], and costs nothing where nobody asks
//! for waits, as it is a type of its own.

use super::geometry::{EraseBlock, Geometry};
use super::timing::{Latencies, Reserving, Timing};
use crate::device::wait_log::{Holds, Purpose, WaitLog, Waits};
use crate::time::Time;

/// A [`Reserving`] that records its operations.
#[derive(Debug, Clone)]
pub struct Recording {
    model: Reserving,
    log: WaitLog,
    planes: Vec<Holds>,
    channels: Vec<Holds>,
}

impl Recording {
    /// All planes and channels idle.
    pub fn new(geometry: Geometry, latencies: Latencies, log: WaitLog) -> Recording {
        Recording {
            model: Reserving::new(geometry, latencies),
            log,
            planes: vec![Holds::default(); geometry.units() as usize],
            channels: vec![Holds::default(); geometry.channels as usize],
        }
    }

    /// The waits from `at` on until first the plane and then the channel are free, and the instant when they are.
    fn wait(&self, (plane, channel): (usize, usize), (plane_free, channel_free): (Time, Time), at: Time) -> Waits {
        let from = at.max(plane_free);
        let mut waits = self.planes[plane].wait(at, from, |waits| &mut waits.die_ns);
        let for_channel = self.channels[channel].wait(from, from.max(channel_free), |waits| &mut waits.channel_ns);
        waits.channel_ns += for_channel.channel_ns;
        waits.collection_ns += for_channel.collection_ns;
        waits.mapping_ns += for_channel.mapping_ns;
        waits
    }
}

fn serviced(mut waits: Waits, service_ns: u64) -> Waits {
    waits.service_ns += service_ns;
    waits
}

impl Timing for Recording {
    const TIMED: bool = true;

    fn read(&mut self, block: EraseBlock, purpose: Purpose, at: Time) -> Time {
        let ((plane, channel), (plane_free, channel_free)) = self.model.state(block);
        let (read_ns, transfer_ns) = (self.model.latencies().read_ns, self.model.latencies().transfer_ns);
        let loaded = at.max(plane_free) + read_ns;
        let mut waits = self.planes[plane].wait(at, at.max(plane_free), |waits| &mut waits.die_ns);
        let for_channel = self.channels[channel].wait(loaded, loaded.max(channel_free), |waits| &mut waits.channel_ns);
        waits.channel_ns += for_channel.channel_ns;
        waits.collection_ns += for_channel.collection_ns;
        waits.mapping_ns += for_channel.mapping_ns;
        let done = self.model.read(block, purpose, at);
        let oldest = self.log.oldest();
        self.planes[plane].hold(done, purpose, oldest);
        self.channels[channel].hold(done, purpose, oldest);
        self.log.record(purpose, at, done, serviced(waits, read_ns + transfer_ns));
        done
    }

    /// Recorded as two: who waits for a place in a drive's buffer goes on from the end of the transfer.
    fn program(&mut self, block: EraseBlock, purpose: Purpose, at: Time) -> Time {
        let ((plane, channel), free) = self.model.state(block);
        let Latencies { program_ns, transfer_ns, .. } = *self.model.latencies();
        let waits = self.wait((plane, channel), free, at);
        let done = self.model.program(block, purpose, at);
        let loaded = Time(done.0 - program_ns);
        let oldest = self.log.oldest();
        self.planes[plane].hold(done, purpose, oldest);
        self.channels[channel].hold(loaded, purpose, oldest);
        self.log.record(purpose, at, loaded, serviced(waits, transfer_ns));
        self.log.record(purpose, loaded, done, serviced(Waits::default(), program_ns));
        done
    }

    fn erase(&mut self, block: EraseBlock, at: Time) -> Time {
        let ((plane, _), (plane_free, _)) = self.model.state(block);
        let waits = self.planes[plane].wait(at, at.max(plane_free), |waits| &mut waits.die_ns);
        let done = self.model.erase(block, at);
        let (purpose, oldest) = (Purpose::Collection, self.log.oldest());
        self.planes[plane].hold(done, purpose, oldest);
        self.log.record(purpose, at, done, serviced(waits, self.model.latencies().erase_ns));
        done
    }
}

/// A timing model that records if it is asked to: for a device whose code is not generic over it.
#[derive(Debug, Clone)]
pub enum MaybeRecording {
    /// It does not.
    Plain(Reserving),
    /// It does.
    Recording(Box<Recording>),
}

impl MaybeRecording {
    /// All planes and channels idle; records in `log`, if there is one.
    pub fn new(geometry: Geometry, latencies: Latencies, log: Option<&WaitLog>) -> MaybeRecording {
        match log {
            None => MaybeRecording::Plain(Reserving::new(geometry, latencies)),
            Some(log) => MaybeRecording::Recording(Box::new(Recording::new(geometry, latencies, log.clone()))),
        }
    }
}

impl Timing for MaybeRecording {
    const TIMED: bool = true;

    #[inline]
    fn read(&mut self, block: EraseBlock, purpose: Purpose, at: Time) -> Time {
        match self {
            MaybeRecording::Plain(model) => model.read(block, purpose, at),
            MaybeRecording::Recording(model) => model.read(block, purpose, at),
        }
    }

    #[inline]
    fn program(&mut self, block: EraseBlock, purpose: Purpose, at: Time) -> Time {
        match self {
            MaybeRecording::Plain(model) => model.program(block, purpose, at),
            MaybeRecording::Recording(model) => model.program(block, purpose, at),
        }
    }

    #[inline]
    fn erase(&mut self, block: EraseBlock, at: Time) -> Time {
        match self {
            MaybeRecording::Plain(model) => model.erase(block, at),
            MaybeRecording::Recording(model) => model.erase(block, at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const LATENCIES: Latencies = Latencies { read_ns: 50, program_ns: 500, erase_ns: 3000, transfer_ns: 10 };

    #[test]
    fn its_times_are_those_of_the_model_that_records_nothing() {
        let geometry = Geometry::new(1 << 20, 4096, 4, (2, 2, 1)).unwrap();
        let (mut random, log) = (Random::new(1, "operations"), WaitLog::default());
        let mut plain = Reserving::new(geometry, LATENCIES);
        let mut recording = Recording::new(geometry, LATENCIES, log.clone());
        for number in 0..10_000u64 {
            let (block, at) = (EraseBlock(random.below(16) as u32), Time(number * random.below(200)));
            let purpose = [Purpose::Host, Purpose::Collection, Purpose::Mapping][random.below(3) as usize];
            log.issue(at);
            let (expected, found) = match random.below(10) {
                0 => (plain.erase(block, at), recording.erase(block, at)),
                1..5 => (plain.read(block, purpose, at), recording.read(block, purpose, at)),
                _ => (plain.program(block, purpose, at), recording.program(block, purpose, at)),
            };
            assert_eq!(expected, found);
            assert_eq!(log.of_request(at, found).other_ns, 0, "all of its time was on the flash");
        }
    }

    #[test]
    fn a_write_that_waits_for_a_collection_says_so() {
        let geometry = Geometry::new(1 << 20, 4096, 4, (1, 1, 1)).unwrap();
        let log = WaitLog::default();
        let mut flash = Recording::new(geometry, LATENCIES, log.clone());
        let read = flash.read(EraseBlock(0), Purpose::Collection, Time(0));
        let copied = flash.program(EraseBlock(1), Purpose::Collection, read);
        flash.erase(EraseBlock(0), copied);
        let first = flash.program(EraseBlock(2), Purpose::Host, Time(0));
        let second = flash.program(EraseBlock(2), Purpose::Host, Time(0));
        let made = 60 + 510 + 3000;
        let waits = log.of_request(Time(0), first);
        assert_eq!(waits, Waits { collection_ns: made, service_ns: 510, ..Waits::default() });
        let waits = log.of_request(Time(0), second);
        assert_eq!(waits, Waits { collection_ns: made, die_ns: 510, service_ns: 510, ..Waits::default() });
    }
}
