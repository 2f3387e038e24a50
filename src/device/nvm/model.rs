//! The timing model of memory: a latency for each access, and a bandwidth that all accesses of one direction share.
//!
//! An access begins when the memory has transferred the earlier accesses of its direction, in the order of calls; it is
//! done a latency after its own bytes are transferred. Bytes are transferred in whole units of the medium: a store of one
//! line to a medium of 256-byte units takes the bandwidth of four. Reads and stores do not delay each other, and no
//! address is faster than another one.

use crate::time::Time;
use std::sync::{Mutex, PoisonError};

const PS_PER_NS: u128 = 1000;
/// A byte at one MB/s takes so many picoseconds.
const PS_OF_A_BYTE: u128 = 1_000_000;

/// The times of one direction: reads, or stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Direction {
    /// The time of an access of one line to idle memory, in nanoseconds, without its transfer.
    pub latency_ns: u64,
    /// Bytes that all threads together transfer in a second, in units of 10^6 bytes.
    pub megabytes_per_second: u64,
}

/// The times of a kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryTimes {
    /// Of reads.
    pub read: Direction,
    /// Of stores with their fence.
    pub store: Direction,
    /// Bytes that the medium transfers at once.
    pub unit_bytes: u64,
}

impl MemoryTimes {
    /// DRAM: six channels of DDR4-2666 of one socket, loads 101 ns at random, a non-temporal store with its fence 86 ns.
    /// Izraelevitz et al., "Basic Performance Measurements of the Intel Optane DC Persistent Memory Module",
    /// arXiv 1903.05714 (2019): idle latencies, and bandwidths rounded to 100 and 50 GB/s.
    pub const DRAM: MemoryTimes = MemoryTimes {
        read: Direction { latency_ns: 101, megabytes_per_second: 100_000 },
        store: Direction { latency_ns: 86, megabytes_per_second: 50_000 },
        unit_bytes: 64,
    };

    /// Six interleaved modules of Optane DC persistent memory: loads 305 ns at random, a non-temporal store with its fence
    /// 90 ns, since it is done in the queue of the memory controller, which survives a loss of power; 39.4 GB/s of reads
    /// and 13.9 GB/s of stores, in units of 256 bytes. Izraelevitz et al. (as above); Yang et al., "An Empirical Guide to
    /// the Behavior and Use of Scalable Persistent Memory", FAST'20, for the unit.
    pub const OPTANE: MemoryTimes = MemoryTimes {
        read: Direction { latency_ns: 305, megabytes_per_second: 39_400 },
        store: Direction { latency_ns: 90, megabytes_per_second: 13_900 },
        unit_bytes: 256,
    };

    /// One CXL module with a channel of DDR5-4800, round figures after Sun et al., "Demystifying CXL Memory with Genuine
    /// CXL-Ready Systems and Devices", MICRO'23 (device A): twice the latency of local DRAM in both directions, and half
    /// of the channel's 38.4 GB/s.
    pub const CXL: MemoryTimes = MemoryTimes {
        read: Direction { latency_ns: 200, megabytes_per_second: 19_200 },
        store: Direction { latency_ns: 200, megabytes_per_second: 19_200 },
        unit_bytes: 64,
    };
}

/// A direction at work.
#[derive(Debug)]
struct Channel {
    times: Direction,
    unit_bytes: u64,
    /// The time, in picoseconds, at which all earlier accesses are transferred.
    free_at_ps: Mutex<u128>,
}

impl Channel {
    fn new(times: Direction, unit_bytes: u64) -> Channel {
        assert!(times.megabytes_per_second > 0 && unit_bytes > 0, "memory transfers something");
        Channel { times, unit_bytes, free_at_ps: Mutex::new(0) }
    }

    /// The end of an access of so many bytes that is asked for `at`.
    fn done_at(&self, at: Time, bytes: u64) -> Time {
        if bytes == 0 {
            return at;
        }
        let units = u128::from(bytes.div_ceil(self.unit_bytes));
        let rate = u128::from(self.times.megabytes_per_second);
        let takes_ps = (units * u128::from(self.unit_bytes) * PS_OF_A_BYTE).div_ceil(rate);
        let mut free_at_ps = self.free_at_ps.lock().unwrap_or_else(PoisonError::into_inner);
        *free_at_ps = (u128::from(at.0) * PS_PER_NS).max(*free_at_ps) + takes_ps;
        Time(free_at_ps.div_ceil(PS_PER_NS) as u64) + self.times.latency_ns
    }
}

/// Memory at work: both directions.
#[derive(Debug)]
pub struct MemoryModel {
    read: Channel,
    store: Channel,
}

impl MemoryModel {
    /// Idle memory.
    ///
    /// # Panics
    ///
    /// If a bandwidth or the unit is 0.
    pub fn new(times: MemoryTimes) -> MemoryModel {
        let channel = |direction| Channel::new(direction, times.unit_bytes);
        MemoryModel { read: channel(times.read), store: channel(times.store) }
    }

    /// The end of a read of so many bytes that is asked for `at`.
    pub fn read_by(&self, at: Time, bytes: u64) -> Time {
        self.read.done_at(at, bytes)
    }

    /// The end of a store of so many bytes, with its fence, that is asked for `at`.
    pub fn stored_by(&self, at: Time, bytes: u64) -> Time {
        self.store.done_at(at, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A byte takes a nanosecond.
    fn model(unit_bytes: u64) -> MemoryModel {
        let direction = Direction { latency_ns: 100, megabytes_per_second: 1000 };
        MemoryModel::new(MemoryTimes { read: direction, store: direction, unit_bytes })
    }

    #[test]
    fn an_access_to_idle_memory_takes_its_transfer_and_the_latency() {
        assert_eq!(model(64).stored_by(Time(1000), 4096), Time(1000 + 4096 + 100));
        assert_eq!(model(64).read_by(Time(1000), 64), Time(1000 + 64 + 100));
        assert_eq!(model(64).stored_by(Time(7), 0), Time(7), "nothing is transferred");
    }

    #[test]
    fn concurrent_stores_queue_for_the_bandwidth_and_not_for_the_latency() {
        let model = model(64);
        assert_eq!(model.stored_by(Time(0), 640), Time(740));
        assert_eq!(
            model.stored_by(Time(0), 640),
            Time(1380),
            "behind the transfer of the first, latencies side by side"
        );
        assert_eq!(model.read_by(Time(0), 64), Time(164), "reads have a queue of their own");
        assert_eq!(model.stored_by(Time(5000), 64), Time(5164), "the memory was idle");
        assert_eq!(model.stored_by(Time(4000), 64), Time(5228), "the order of calls decides");
    }

    #[test]
    fn a_part_of_a_unit_takes_the_bandwidth_of_a_unit() {
        assert_eq!(model(256).stored_by(Time(0), 64), Time(356));
        assert_eq!(model(256).stored_by(Time(0), 257), Time(612));
    }

    /// A line takes 1.28 ns: rounded up each time, the bandwidth would be 36 % too small.
    #[test]
    fn fractions_of_a_nanosecond_add_up() {
        let model = MemoryModel::new(MemoryTimes::DRAM);
        let done: Vec<Time> = (0..1000).map(|_| model.stored_by(Time(0), 64)).collect();
        assert_eq!(done[999], Time(1280 + 86));
    }

    #[test]
    fn a_journal_on_slower_memory_takes_longer() {
        let block = |times| MemoryModel::new(times).stored_by(Time(0), 4160).0;
        assert!(block(MemoryTimes::DRAM) < block(MemoryTimes::OPTANE));
        let line = |times| MemoryModel::new(times).read_by(Time(0), 64).0;
        assert!(line(MemoryTimes::DRAM) < line(MemoryTimes::CXL) && line(MemoryTimes::CXL) < line(MemoryTimes::OPTANE));
    }
}
