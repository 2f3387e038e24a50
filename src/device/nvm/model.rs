//! The timing model of memory: a latency for each access, and a bandwidth that all accesses of one direction share.
//!
//! An access begins when the memory has transferred the earlier accesses of its direction, in the order of calls; it is
//! done a latency after its own bytes are transferred. Bytes are transferred in whole units of the medium: a store of one
//! line to a medium of 256-byte units takes the bandwidth of four. Reads and stores do not delay each other, and no
//! address is faster than another one, unless the memory is flash behind a [cache](super::cached).

use super::cached::{CacheCounts, Cached, FlashTimes};
use super::channel::{Channel, Direction};
use crate::time::Time;
use std::ops::Range;

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

    /// The same module behind a switch: 180 ns more, the least that Li et al., "Pond: CXL-Based Memory Pooling Systems for
    /// Cloud Platforms", ASPLOS'23, expect of pools behind switches beyond local DRAM, on top of [`DRAM`](MemoryTimes::DRAM).
    /// The bandwidth is the module's: one port of a switch carries more.
    pub const CXL_SWITCHED: MemoryTimes = MemoryTimes {
        read: Direction { latency_ns: 280, megabytes_per_second: 19_200 },
        store: Direction { latency_ns: 280, megabytes_per_second: 19_200 },
        unit_bytes: 64,
    };
}

/// A kind of memory: its times, and the flash behind it, if it is a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryKind {
    /// Of the memory that the processor reaches.
    pub times: MemoryTimes,
    /// Behind a cache that has these times.
    pub flash: Option<FlashTimes>,
}

impl From<MemoryTimes> for MemoryKind {
    fn from(times: MemoryTimes) -> MemoryKind {
        MemoryKind { times, flash: None }
    }
}

/// Memory at work: both directions, and its cache.
#[derive(Debug)]
pub struct MemoryModel {
    read: Channel,
    store: Channel,
    cache: Option<Cached>,
}

impl MemoryModel {
    /// Idle memory. `cache_bytes`: of the cache, if there is flash behind it.
    ///
    /// # Panics
    ///
    /// If a bandwidth or the unit is 0, or the cache holds no page.
    pub fn new(kind: MemoryKind, cache_bytes: u64) -> MemoryModel {
        let channel = |direction| Channel::new(direction, kind.times.unit_bytes);
        MemoryModel {
            read: channel(kind.times.read),
            store: channel(kind.times.store),
            cache: kind.flash.map(|flash| Cached::new(cache_bytes, flash)),
        }
    }

    /// The end of a read of these bytes that is asked for `at`.
    pub fn read_by(&self, at: Time, bytes: &mut dyn Iterator<Item = Range<u64>>) -> Time {
        let (at, length) = self.there_by(at, bytes, false);
        self.read.done_at(at, length)
    }

    /// The end of a store of these bytes, with its fence, that is asked for `at`.
    pub fn stored_by(&self, at: Time, bytes: &mut dyn Iterator<Item = Range<u64>>) -> Time {
        let (at, length) = self.there_by(at, bytes, true);
        self.store.done_at(at, length)
    }

    /// The time at which the memory has the pages of these bytes, and how many bytes they are.
    fn there_by(&self, at: Time, bytes: &mut dyn Iterator<Item = Range<u64>>, is_store: bool) -> (Time, u64) {
        bytes.fold((at, 0), |(there, length), bytes| {
            let ready = self.cache.as_ref().map_or(at, |cache| cache.there_by(at, &bytes, is_store));
            (there.max(ready), length + (bytes.end - bytes.start))
        })
    }

    /// What its cache has done, if it has one.
    pub fn cache_counts(&self) -> Option<CacheCounts> {
        self.cache.as_ref().map(Cached::counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A byte takes a nanosecond.
    fn model(unit_bytes: u64) -> MemoryModel {
        let direction = Direction { latency_ns: 100, megabytes_per_second: 1000 };
        MemoryModel::new(MemoryTimes { read: direction, store: direction, unit_bytes }.into(), 0)
    }

    fn stored(model: &MemoryModel, at: u64, bytes: u64) -> Time {
        model.stored_by(Time(at), &mut std::iter::once(0..bytes))
    }

    fn read(model: &MemoryModel, at: u64, bytes: u64) -> Time {
        model.read_by(Time(at), &mut std::iter::once(0..bytes))
    }

    #[test]
    fn an_access_to_idle_memory_takes_its_transfer_and_the_latency() {
        assert_eq!(stored(&model(64), 1000, 4096), Time(1000 + 4096 + 100));
        assert_eq!(read(&model(64), 1000, 64), Time(1000 + 64 + 100));
        assert_eq!(stored(&model(64), 7, 0), Time(7), "nothing is transferred");
    }

    #[test]
    fn concurrent_stores_queue_for_the_bandwidth_and_not_for_the_latency() {
        let model = model(64);
        assert_eq!(stored(&model, 0, 640), Time(740));
        assert_eq!(stored(&model, 0, 640), Time(1380), "behind the transfer of the first, latencies side by side");
        assert_eq!(read(&model, 0, 64), Time(164), "reads have a queue of their own");
        assert_eq!(stored(&model, 5000, 64), Time(5164), "the memory was idle");
        assert_eq!(stored(&model, 4000, 64), Time(5228), "the order of calls decides");
    }

    #[test]
    fn a_part_of_a_unit_takes_the_bandwidth_of_a_unit() {
        assert_eq!(stored(&model(256), 0, 64), Time(356));
        assert_eq!(stored(&model(256), 0, 257), Time(612));
    }

    /// A line takes 1.28 ns: rounded up each time, the bandwidth would be 36 % too small.
    #[test]
    fn fractions_of_a_nanosecond_add_up() {
        let model = MemoryModel::new(MemoryTimes::DRAM.into(), 0);
        let done: Vec<Time> = (0..1000).map(|_| stored(&model, 0, 64)).collect();
        assert_eq!(done[999], Time(1280 + 86));
    }

    #[test]
    fn a_journal_on_slower_memory_takes_longer() {
        let block = |times: MemoryTimes| stored(&MemoryModel::new(times.into(), 0), 0, 4160).0;
        assert!(block(MemoryTimes::DRAM) < block(MemoryTimes::OPTANE));
        let line = |times: MemoryTimes| read(&MemoryModel::new(times.into(), 0), 0, 64).0;
        assert!(
            line(MemoryTimes::DRAM) < line(MemoryTimes::CXL)
                && line(MemoryTimes::CXL) < line(MemoryTimes::CXL_SWITCHED)
        );
        assert!(line(MemoryTimes::CXL_SWITCHED) < line(MemoryTimes::OPTANE));
    }

    /// An access waits for the last of its pages, and then for its own transfer.
    #[test]
    fn an_access_behind_a_cache_waits_for_the_flash_first() {
        let flash = FlashTimes::MODULE;
        let model = MemoryModel::new(MemoryKind { times: MemoryTimes::CXL, flash: Some(flash) }, 1 << 20);
        // A page at 3.2 GB/s is 1,280 ns, a line at 19.2 GB/s 3.3.
        assert_eq!(read(&model, 0, 64), Time(1280 + 50_000 + 4 + 200));
        assert_eq!(read(&model, 100_000, 64), Time(100_000 + 4 + 200), "it is in the cache");
        let two = &mut [0..64, 9000..9064].into_iter();
        assert_eq!(model.stored_by(Time(200_000), two), Time(200_000 + 1280 + 50_000 + 7 + 200), "one of two is");
        let counts = model.cache_counts().unwrap();
        assert_eq!((counts.hits, counts.misses, counts.written_bytes), (2, 2, 0));
    }
}
