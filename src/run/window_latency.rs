//! Latencies of one window: fewer buckets than [`LatencyHistogram`](crate::report::LatencyHistogram), as a run has
//! thousands of windows, and each ends with a scan of the octaves that it used.

use crate::report::WindowLatency;
use std::collections::BTreeMap;

/// Buckets for each doubling of the latency: a percentile is at most a 64th above the true one.
const BUCKETS_OF_OCTAVE: u64 = 64;
const OCTAVE_BITS: u32 = BUCKETS_OF_OCTAVE.trailing_zeros();
/// All buckets: exact up to the first octave, then as many for each doubling.
const BUCKETS: usize = ((64 - OCTAVE_BITS as usize) + 1) * BUCKETS_OF_OCTAVE as usize;
const _: () = assert!(BUCKETS as u64 / BUCKETS_OF_OCTAVE <= u64::BITS as u64, "an octave has a bit in a word");

/// The latencies of the open window.
#[derive(Debug, Clone)]
pub struct OpenLatencies {
    counts: Box<[u32]>,
    /// A bit for each octave of buckets that counted one: the rest need no scan.
    octaves: u64,
    max_ns: u64,
}

impl OpenLatencies {
    /// No latencies.
    pub fn new() -> OpenLatencies {
        OpenLatencies { counts: vec![0; BUCKETS].into(), octaves: 0, max_ns: 0 }
    }

    /// Counts one request that took `latency_ns`.
    #[inline]
    pub fn record(&mut self, latency_ns: u64) {
        let bucket = bucket(latency_ns);
        self.counts[bucket] = self.counts[bucket].saturating_add(1);
        self.octaves |= 1 << (bucket as u64 / BUCKETS_OF_OCTAVE);
        self.max_ns = self.max_ns.max(latency_ns);
    }

    /// The latencies of the window, which is empty again.
    pub fn take(&mut self) -> ClosedLatencies {
        let mut counts = BTreeMap::new();
        while self.octaves != 0 {
            let first = self.octaves.trailing_zeros() as usize * BUCKETS_OF_OCTAVE as usize;
            self.octaves &= self.octaves - 1;
            let octave = &mut self.counts[first..first + BUCKETS_OF_OCTAVE as usize];
            for (within, count) in octave.iter_mut().enumerate().filter(|(_, count)| **count > 0) {
                counts.insert((first + within) as u16, u64::from(std::mem::take(count)));
            }
        }
        ClosedLatencies { counts, max_ns: std::mem::take(&mut self.max_ns) }
    }
}

/// The latencies of an ended window: the nonempty buckets.
#[derive(Debug, Clone, Default)]
pub struct ClosedLatencies {
    counts: BTreeMap<u16, u64>,
    max_ns: u64,
}

impl ClosedLatencies {
    /// Adds those of another window.
    pub fn merge(&mut self, other: &ClosedLatencies) {
        for (bucket, count) in &other.counts {
            *self.counts.entry(*bucket).or_default() += count;
        }
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// The latencies, for a report; `None` without any.
    pub fn report(&self) -> Option<WindowLatency> {
        let count: u64 = self.counts.values().sum();
        (count > 0).then(|| WindowLatency { p50: self.at(count, 50), p99: self.at(count, 99), max: self.max_ns, count })
    }

    /// The latency that `percent` of 100 requests do not exceed.
    fn at(&self, count: u64, percent: u64) -> u64 {
        let wanted = (count * percent).div_ceil(100);
        let mut seen = 0;
        let reached = self.counts.iter().find(|(_, count)| {
            seen += **count;
            seen >= wanted
        });
        reached.map_or(self.max_ns, |(bucket, _)| last_of(*bucket).min(self.max_ns))
    }
}

/// The bucket of a latency.
#[inline]
pub(super) fn bucket(latency_ns: u64) -> usize {
    match latency_ns.checked_ilog2() {
        Some(log) if log >= OCTAVE_BITS => {
            let shift = log - OCTAVE_BITS;
            let within = (latency_ns >> shift) - BUCKETS_OF_OCTAVE;
            ((u64::from(shift) + 1) * BUCKETS_OF_OCTAVE + within) as usize
        }
        _ => latency_ns as usize,
    }
}

/// The largest latency of a bucket.
fn last_of(bucket: u16) -> u64 {
    let (octave, within) = (u64::from(bucket) / BUCKETS_OF_OCTAVE, u64::from(bucket) % BUCKETS_OF_OCTAVE);
    match octave {
        0 => within,
        octave => (((within + BUCKETS_OF_OCTAVE) << (octave - 1)) - 1).saturating_add(1 << (octave - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn each_latency_lies_in_its_bucket_and_no_bucket_is_wider_than_a_64th() {
        let mut random = Random::new(3, "latencies");
        let random = (0..10_000).map(|_| random.bits() >> (random.bits() % 64));
        for latency in (0..1000).chain(random).chain([u64::MAX, 1 << 63]) {
            let last = last_of(bucket(latency) as u16);
            assert!(last >= latency && last - latency <= latency / BUCKETS_OF_OCTAVE, "{latency} in {last}");
        }
    }

    #[test]
    fn percentiles_of_merged_windows_are_those_of_all_requests() {
        let mut random = Random::new(4, "latencies");
        let (mut all, mut open, mut merged) = (Vec::new(), OpenLatencies::new(), ClosedLatencies::default());
        for _ in 0..10 {
            for _ in 0..100 {
                let latency = random.bits() % 5_000_000;
                all.push(latency);
                open.record(latency);
            }
            merged.merge(&open.take());
        }
        all.sort_unstable();
        let found = merged.report().unwrap();
        assert_eq!((found.max, found.count), (all[999], 1000));
        for (found, exact) in [(found.p50, all[499]), (found.p99, all[989])] {
            assert!((exact..=exact + exact / BUCKETS_OF_OCTAVE).contains(&found), "{found} and {exact}");
        }
        assert!(open.take().report().is_none(), "a window ends with its mark");
    }
}
