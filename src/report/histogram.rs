//! Distributions: latencies recorded by request, and erase counts at the end of a run.

use hdrhistogram::Histogram;

use super::{Percentiles, WearBin};

/// The significant digits of a recorded latency: a percentile is at most 0.1 % above the true one.
const SIGNIFICANT_DIGITS: u8 = 3;

/// The largest latency recorded, in nanoseconds (thirteen days); larger ones count as this.
const LARGEST_NS: u64 = 1 << 50;

/// The most bins of a wear histogram.
const WEAR_BINS: u64 = 64;

/// Latencies of requests, in constant space (360 KiB).
///
/// Percentiles are upper bounds. The mean, its standard deviation, the extremes and the count are exact.
#[derive(Debug, Clone)]
pub struct LatencyHistogram {
    counts: Histogram<u64>,
    sum_ns: u128,
    sum_of_squares: u128,
    min_ns: u64,
    max_ns: u64,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self::new()
    }
}

impl LatencyHistogram {
    /// An empty histogram.
    pub fn new() -> Self {
        let counts = Histogram::new_with_bounds(1, LARGEST_NS, SIGNIFICANT_DIGITS).expect("these bounds are valid");
        LatencyHistogram { counts, sum_ns: 0, sum_of_squares: 0, min_ns: u64::MAX, max_ns: 0 }
    }

    /// Counts one request that took `latency_ns`.
    #[inline]
    pub fn record(&mut self, latency_ns: u64) {
        self.counts.saturating_record(latency_ns);
        self.sum_ns += u128::from(latency_ns);
        let square = u128::from(latency_ns) * u128::from(latency_ns);
        self.sum_of_squares = self.sum_of_squares.saturating_add(square);
        self.min_ns = self.min_ns.min(latency_ns);
        self.max_ns = self.max_ns.max(latency_ns);
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &LatencyHistogram) {
        self.counts.add(&other.counts).expect("all have the same bounds");
        self.sum_ns += other.sum_ns;
        self.sum_of_squares = self.sum_of_squares.saturating_add(other.sum_of_squares);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// The number of requests.
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// The distribution; `None` if it is empty.
    pub fn percentiles(&self) -> Option<Percentiles> {
        let count = self.count();
        let at = |quantile| self.counts.value_at_quantile(quantile).min(self.max_ns);
        let mean = self.sum_ns as f64 / count as f64;
        (count > 0).then(|| Percentiles {
            min: self.min_ns,
            p50: at(0.50),
            p99: at(0.99),
            p999: at(0.999),
            max: self.max_ns,
            mean,
            stddev: (self.sum_of_squares as f64 / count as f64 - mean * mean).max(0.0).sqrt(),
            count,
            cumulative: self.cumulative(),
            parts: None,
        })
    }

    /// The cumulative distribution at no more than 200 of the recorded values: the first that reaches each rung of
    /// [`rungs`], and the last.
    fn cumulative(&self) -> Vec<(u64, f64)> {
        let mut points = Vec::new();
        let mut rungs = rungs().peekable();
        let mut seen = 0;
        for step in self.counts.iter_recorded() {
            seen += step.count_at_value();
            let share = seen as f64 / self.count() as f64;
            let is_last = seen == self.count();
            let mut reaches_rung = false;
            while rungs.next_if(|rung| share >= *rung).is_some() {
                reaches_rung = true;
            }
            if is_last {
                points.push((self.max_ns, 1.0));
            } else if reaches_rung {
                points.push((step.value_iterated_to().min(self.max_ns), share));
            }
        }
        points
    }
}

/// The shares at which the cumulative distribution is sampled, ascending: every hundredth, then every tenth of the
/// remainder, down to one request in ten million. The tail gets as many points as the body.
fn rungs() -> impl Iterator<Item = f64> {
    let body = (0..100).map(|percent| f64::from(percent) / 100.0);
    let tail = (2..7).flat_map(|nines| {
        let left = 0.1f64.powi(nines);
        (1..10).map(move |tenth| 1.0 - left + f64::from(tenth) * left / 10.0)
    });
    body.chain(tail)
}

/// The number of erase blocks by erase count, ascending: a bin for each count if 64 bins suffice, else ranges of equal
/// width. Empty bins are omitted.
pub fn wear_bins(erase_counts: &[u32]) -> Vec<WearBin> {
    let (Some(&lowest), Some(&highest)) = (erase_counts.iter().min(), erase_counts.iter().max()) else {
        return Vec::new();
    };
    let width = (u64::from(highest - lowest) + 1).div_ceil(WEAR_BINS);
    let mut blocks = [0u64; WEAR_BINS as usize];
    for count in erase_counts {
        blocks[(u64::from(count - lowest) / width) as usize] += 1;
    }
    let bounds = |bin: usize| {
        let from = u64::from(lowest) + bin as u64 * width;
        (from as u32, (from + width - 1).min(u64::from(highest)) as u32)
    };
    let bins = blocks.iter().enumerate().filter(|(_, blocks)| **blocks > 0);
    bins.map(|(bin, &blocks)| WearBin { from: bounds(bin).0, to: bounds(bin).1, blocks }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_one_to_a_million_are_within_a_thousandth() {
        let mut histogram = LatencyHistogram::new();
        for nanoseconds in 1..=1_000_000 {
            histogram.record(nanoseconds);
        }
        let percentiles = histogram.percentiles().unwrap();
        for (got, exact) in [(percentiles.p50, 500_000.0), (percentiles.p99, 990_000.0), (percentiles.p999, 999_000.0)]
        {
            assert!(got as f64 >= exact && got as f64 <= exact * 1.001, "{got} for {exact}");
        }
        assert_eq!(percentiles.max, 1_000_000);
        assert_eq!(percentiles.count, 1_000_000);
        assert_eq!(percentiles.mean, 500_000.5);
    }

    #[test]
    fn the_cumulative_curve_ascends_to_all_requests_in_at_most_200_points() {
        let mut histogram = LatencyHistogram::new();
        let mut latency_ns = 1u64;
        for _ in 0..3_000_000 {
            latency_ns = latency_ns.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            histogram.record(latency_ns >> 34);
        }
        let curve = histogram.percentiles().unwrap().cumulative;
        assert!((100..=200).contains(&curve.len()), "{} points", curve.len());
        assert!(curve.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
        assert_eq!(curve.last().unwrap().1, 1.0);
        let (at, share) = curve[curve.len() / 2];
        let below = histogram.counts.count_between(0, at) as f64 / 3e6;
        assert!((below - share).abs() < 1e-9, "{below} of the requests took at most {at}, the curve says {share}");
    }

    #[test]
    fn no_request_has_no_percentiles_and_one_request_is_all_of_them() {
        let mut histogram = LatencyHistogram::new();
        assert!(histogram.percentiles().is_none());
        histogram.record(123_457);
        let only = histogram.percentiles().unwrap();
        assert_eq!((only.p50, only.p999, only.max), (123_457, 123_457, 123_457));
        assert_eq!(only.cumulative, [(123_457, 1.0)]);
    }

    #[test]
    fn latencies_of_zero_and_of_centuries_are_counted() {
        let mut histogram = LatencyHistogram::new();
        histogram.record(0);
        histogram.record(u64::MAX);
        let percentiles = histogram.percentiles().unwrap();
        assert_eq!((percentiles.p50, percentiles.max, percentiles.count), (0, u64::MAX, 2));
        assert_eq!(percentiles.cumulative, [(0, 0.5), (u64::MAX, 1.0)]);
    }

    #[test]
    fn few_erase_counts_get_a_bin_each() {
        let bins = wear_bins(&[7, 5, 5, 68, 7, 7]);
        let expected = [(5, 2), (7, 3), (68, 1)].map(|(count, blocks)| WearBin { from: count, to: count, blocks });
        assert_eq!(bins, expected);
    }

    #[test]
    fn wear_bins_hold_every_block_once_and_never_exceed_64() {
        let spread: Vec<u32> = (0..10_000u32).map(|block| (block * 7919) % 100_003).collect();
        for counts in [&[][..], &[0], &[0, 64], &[0, u32::MAX], &[u32::MAX; 3], &spread] {
            let bins = wear_bins(counts);
            assert!(bins.len() <= 64);
            assert_eq!(bins.iter().map(|bin| bin.blocks).sum::<u64>(), counts.len() as u64);
            assert!(bins.windows(2).all(|pair| pair[0].to < pair[1].from));
            for bin in &bins {
                let inside = counts.iter().filter(|count| (bin.from..=bin.to).contains(count)).count();
                assert_eq!(bin.blocks, inside as u64);
            }
        }
    }
}
