//! What latencies are made of: the waits of the requests at each percentile, by class.
//!
//! A percentile is told by the mean waits of the requests in its bucket, whose latencies differ by a 64th at most; the
//! maximum by those of the longest request.

use super::window_latency::bucket;
use crate::device::wait_log::Waits;
use crate::report::{LatencyParts, PercentileParts};
use std::collections::BTreeMap;

/// The waits of the requests of one class.
#[derive(Debug, Default)]
pub(super) struct LatencyWaits {
    /// By bucket of latency: the number of requests, and the sum of their waits.
    buckets: BTreeMap<usize, (u64, Waits)>,
    longest: (u64, Waits),
}

impl LatencyWaits {
    /// Counts one request.
    pub fn record(&mut self, latency_ns: u64, waits: Waits) {
        let (count, sum) = self.buckets.entry(bucket(latency_ns)).or_default();
        *count += 1;
        sum.add(waits);
        if latency_ns >= self.longest.0 {
            self.longest = (latency_ns, waits);
        }
    }

    /// The parts of the percentiles.
    pub fn report(&self) -> PercentileParts {
        let (mut count, mut sum) = (0, Waits::default());
        for (of_bucket, waits) in self.buckets.values() {
            count += of_bucket;
            sum.add(*waits);
        }
        let at = |per_mille: u64| {
            let (wanted, mut seen) = ((count * per_mille).div_ceil(1000), 0);
            let reached = self.buckets.values().find(|(of_bucket, _)| {
                seen += of_bucket;
                seen >= wanted
            });
            reached.map_or(LatencyParts::default(), |(of_bucket, waits)| mean(*of_bucket, *waits))
        };
        PercentileParts {
            p50: at(500),
            p99: at(990),
            p999: at(999),
            max: mean(1, self.longest.1),
            mean: mean(count, sum),
        }
    }
}

fn mean(count: u64, sum: Waits) -> LatencyParts {
    let mean = |ns: u64| ns as f64 / count.max(1) as f64;
    LatencyParts {
        die_wait: mean(sum.die_ns),
        channel_wait: mean(sum.channel_ns),
        collection: mean(sum.collection_ns),
        erase: mean(sum.erase_ns),
        mapping: mean(sum.mapping_ns),
        buffer: mean(sum.buffer_ns),
        retry: mean(sum.retry_ns),
        service: mean(sum.service_ns),
        other: mean(sum.other_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_has_the_waits_of_the_requests_at_it() {
        let mut waits = LatencyWaits::default();
        let service = Waits { service_ns: 100, ..Waits::default() };
        (0..985).for_each(|_| waits.record(100, service));
        for _ in 0..14 {
            waits.record(1100, Waits { collection_ns: 1000, ..service });
        }
        waits.record(9100, Waits { erase_ns: 9000, ..service });
        let parts = waits.report();
        let of_service = LatencyParts { service: 100.0, ..LatencyParts::default() };
        assert_eq!(parts.p50, of_service);
        assert_eq!(parts.p99, LatencyParts { collection: 1000.0, ..of_service });
        assert_eq!(parts.p999, parts.p99, "999 of 1,000 are no longer");
        assert_eq!(parts.max, LatencyParts { erase: 9000.0, ..of_service });
        assert_eq!(parts.mean, LatencyParts { collection: 14.0, erase: 9.0, ..of_service });
    }
}
