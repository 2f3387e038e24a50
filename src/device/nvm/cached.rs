//! Flash behind a cache of DRAM, as memory: an access to a page that the cache does not have waits for the flash.
//!
//! The cache holds whole pages, of which the one that was used longest ago goes first. A page that was stored to goes back to
//! the flash then: its place is free when the flash has taken it, behind all that it took before. A page that is missing is read
//! from the flash, unless a store covers all of it. Misses of one access are served side by side, as far as the flash's
//! bandwidth allows. What the cache holds survives a loss of power, by a battery.

use super::channel::{Channel, Direction};
use crate::time::Time;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The flash behind a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashTimes {
    /// Of reads of pages.
    pub read: Direction,
    /// Of pages that leave the cache. The latency is not waited for: the flash has a buffer of its own.
    pub write: Direction,
    /// Bytes of a page.
    pub page_bytes: u64,
}

impl FlashTimes {
    /// Round figures of the flash of this project's drives and of an interface of four lanes: a read in 50 us, 3.2 GB/s of
    /// reads and 1.2 GB/s of programs, in pages of 4 KiB. They are no one's measurement.
    pub const MODULE: FlashTimes = FlashTimes {
        read: Direction { latency_ns: 50_000, megabytes_per_second: 3_200 },
        write: Direction { latency_ns: 0, megabytes_per_second: 1_200 },
        page_bytes: 4096,
    };
}

/// What the cache has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Pages of accesses that were there.
    pub hits: u64,
    /// Pages of accesses that were not.
    pub misses: u64,
    /// Bytes that were read from the flash.
    pub read_bytes: u64,
    /// Bytes that were written to the flash.
    pub written_bytes: u64,
}

/// A page in the cache.
#[derive(Clone, Copy, Debug)]
struct Held {
    used: u64,
    is_changed: bool,
}

/// The pages of the cache, by number and by their last use.
#[derive(Debug, Default)]
struct Pages {
    held: FxHashMap<u64, Held>,
    by_use: BTreeMap<u64, u64>,
    uses: u64,
    counts: CacheCounts,
}

/// A cache at work.
#[derive(Debug)]
pub struct Cached {
    page_bytes: u64,
    most_pages: u64,
    read: Channel,
    write: Channel,
    pages: Mutex<Pages>,
}

impl Cached {
    /// An empty cache of so many bytes.
    ///
    /// # Panics
    ///
    /// If it holds no page, or the flash transfers nothing.
    pub fn new(bytes: u64, flash: FlashTimes) -> Cached {
        let most_pages = bytes / flash.page_bytes;
        assert!(most_pages > 0, "a cache of {bytes} bytes holds no page of {}", flash.page_bytes);
        Cached {
            page_bytes: flash.page_bytes,
            most_pages,
            read: Channel::new(flash.read, flash.page_bytes),
            write: Channel::new(flash.write, flash.page_bytes),
            pages: Mutex::default(),
        }
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        // Nothing that changes them can panic in between.
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time at which all pages of these bytes are in the cache, if they are asked for `at`.
    pub fn there_by(&self, at: Time, bytes: &Range<u64>, is_store: bool) -> Time {
        if bytes.is_empty() {
            return at;
        }
        let mut pages = self.pages();
        let mut there = at;
        for page in bytes.start / self.page_bytes..bytes.end.div_ceil(self.page_bytes) {
            let own = page * self.page_bytes..(page + 1) * self.page_bytes;
            let is_whole = is_store && bytes.start <= own.start && own.end <= bytes.end;
            let was_there = pages.touch(page, is_store);
            pages.count(was_there);
            if was_there {
                continue;
            }
            let mut ready = at;
            if pages.held.len() as u64 > self.most_pages && pages.drop_oldest() {
                pages.counts.written_bytes += self.page_bytes;
                ready = self.write.done_at(ready, self.page_bytes);
            }
            if !is_whole {
                pages.counts.read_bytes += self.page_bytes;
                ready = self.read.done_at(ready, self.page_bytes);
            }
            there = there.max(ready);
        }
        there
    }

    /// What it has done so far.
    pub fn counts(&self) -> CacheCounts {
        self.pages().counts
    }
}

impl Pages {
    /// Uses a page, which is in the cache from now on. True if it was.
    fn touch(&mut self, page: u64, is_store: bool) -> bool {
        self.uses += 1;
        let before = self.held.get(&page).copied();
        let is_changed = is_store || before.is_some_and(|held| held.is_changed);
        if let Some(held) = before {
            self.by_use.remove(&held.used);
        }
        self.held.insert(page, Held { used: self.uses, is_changed });
        self.by_use.insert(self.uses, page);
        before.is_some()
    }

    fn count(&mut self, was_there: bool) {
        *(if was_there { &mut self.counts.hits } else { &mut self.counts.misses }) += 1;
    }

    /// Drops the page that was used longest ago. True if it was stored to.
    fn drop_oldest(&mut self) -> bool {
        let Some((_, page)) = self.by_use.pop_first() else { return false };
        self.held.remove(&page).is_some_and(|held| held.is_changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const PAGE: u64 = 4096;
    /// A page is read in 50,000 ns and 4,096 of transfer, and written in 8,192.
    const FLASH: FlashTimes = FlashTimes {
        read: Direction { latency_ns: 50_000, megabytes_per_second: 1000 },
        write: Direction { latency_ns: 0, megabytes_per_second: 500 },
        page_bytes: PAGE,
    };

    fn cache(pages: u64) -> Cached {
        Cached::new(pages * PAGE, FLASH)
    }

    fn line(page: u64) -> Range<u64> {
        page * PAGE + 64..page * PAGE + 128
    }

    #[test]
    fn a_miss_waits_for_the_flash_and_a_hit_for_nothing() {
        let cache = cache(2);
        assert_eq!(cache.there_by(Time(1000), &line(7), false), Time(1000 + 4096 + 50_000));
        assert_eq!(cache.there_by(Time(90_000), &line(7), true), Time(90_000));
        assert_eq!(cache.there_by(Time(90_000), &(8 * PAGE..9 * PAGE), true), Time(90_000), "a whole page is not read");
        // Both are changed: the oldest goes to the flash first, and then the missing one is read.
        assert_eq!(cache.there_by(Time(100_000), &line(9), false), Time(100_000 + 8192 + 4096 + 50_000));
        assert_eq!(
            cache.counts(),
            CacheCounts { hits: 1, misses: 3, read_bytes: 2 * PAGE, written_bytes: PAGE },
            "page 7 was written back"
        );
        assert_eq!(cache.there_by(Time(500_000), &(3..3), true), Time(500_000), "no bytes");
    }

    /// Two misses of one access wait side by side, and for the transfer one behind the other.
    #[test]
    fn misses_of_an_access_share_the_flash() {
        let both = 5 * PAGE - 64..5 * PAGE + 64;
        assert_eq!(cache(4).there_by(Time(0), &both, true), Time(2 * 4096 + 50_000));
    }

    /// The ring of a journal: in the order of its pages, a cache that holds all misses each once, and one that holds one less
    /// misses always, since the next page is always the one that has just left.
    #[test]
    fn a_ring_hits_if_it_fits_and_never_otherwise() {
        const RING: u64 = 100;
        const ROUNDS: u64 = 5;
        for (pages, hits) in [(RING, RING * (ROUNDS - 1)), (RING + 1, RING * (ROUNDS - 1)), (RING - 1, 0)] {
            let cache = cache(pages);
            for page in (0..ROUNDS).flat_map(|_| 0..RING) {
                cache.there_by(Time(0), &line(page), true);
            }
            let counts = cache.counts();
            assert_eq!((counts.hits, counts.hits + counts.misses), (hits, RING * ROUNDS), "{pages} pages");
            let left = if hits == 0 { RING * ROUNDS - pages } else { 0 };
            assert_eq!(counts.written_bytes, left * PAGE, "each page that left had been stored to");
            assert_eq!(counts.read_bytes, counts.misses * PAGE);
        }
    }

    /// Uniform accesses to P pages through a cache of C hit C / P of the time once it is full.
    #[test]
    fn uniform_accesses_hit_the_cached_share() {
        const ALL: u64 = 1000;
        const COUNT: u64 = 200_000;
        for pages in [100, 500, 900] {
            let cache = cache(pages);
            let mut random = Random::new(5, "uniform pages");
            let mut access = |count: u64| {
                for _ in 0..count {
                    cache.there_by(Time(0), &line(random.below(ALL)), false);
                }
            };
            access(20 * ALL);
            let before = cache.counts();
            access(COUNT);
            let hits = (cache.counts().hits - before.hits) as f64 / COUNT as f64;
            let share = pages as f64 / ALL as f64;
            // Four standard deviations of a binomial share.
            let within = 4.0 * (share * (1.0 - share) / COUNT as f64).sqrt();
            assert!((hits - share).abs() < within, "{pages} pages: {hits}");
            assert_eq!(cache.counts().written_bytes, 0, "nothing was stored to");
        }
    }

    /// A stream of stores through a full cache has the bandwidth of the flash's writes, not that of the DRAM.
    #[test]
    fn a_stream_of_stores_has_the_bandwidth_of_the_flash() {
        let cache = cache(10);
        let done: Vec<Time> =
            (0..1010).map(|page| cache.there_by(Time(0), &(page * PAGE..(page + 1) * PAGE), true)).collect();
        assert_eq!((done[9], done[10]), (Time(0), Time(8192)), "the first that has to wait is the eleventh");
        assert_eq!(done[1009], Time(1000 * 8192));
    }
}
