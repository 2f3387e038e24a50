//! `rate_iops`: the times before which a job issues no request.

use crate::random::Random;

const SECOND_NS: f64 = 1e9;

/// Requests a second of a job, for each direction; 0: no limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rate {
    pub iops: [f64; 3],
    /// True if requests come as a Poisson process, at exponential distances; false: at equal ones.
    pub is_poisson: bool,
}

/// The times of a job's requests.
pub(super) struct Arrivals {
    rate: Rate,
    random: Random,
    /// When the next request of each direction comes, in nanoseconds since the job began.
    next_ns: [f64; 3],
}

impl Arrivals {
    /// The first requests come at once.
    pub fn new(rate: Rate, random: Random) -> Arrivals {
        Arrivals { rate, random, next_ns: [0.0; 3] }
    }

    /// When a request of a direction comes, in nanoseconds since the job began.
    pub fn next(&mut self, direction: usize) -> u64 {
        let iops = self.rate.iops[direction];
        if iops == 0.0 {
            return 0;
        }
        let mean = SECOND_NS / iops;
        let distance = if self.rate.is_poisson { -mean * (1.0 - self.random.unit()).ln() } else { mean };
        let at = self.next_ns[direction];
        self.next_ns[direction] += distance;
        at as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_at_their_rate() {
        let arrivals = |iops: [f64; 3], is_poisson| Arrivals::new(Rate { iops, is_poisson }, Random::new(1, "rate"));
        let mut linear = arrivals([1000.0, 0.0, 500.0], false);
        assert_eq!([0, 0, 1, 2, 2].map(|direction| linear.next(direction)), [0, 1_000_000, 0, 0, 2_000_000]);
        let mut poisson = arrivals([1e6, 0.0, 0.0], true);
        let times: Vec<u64> = (0..100_001).map(|_| poisson.next(0)).collect();
        let mean = times[100_000] as f64 / 100_000.0;
        assert!((mean - 1000.0).abs() < 15.0, "{mean} ns between two of a million a second");
        let square = times.windows(2).map(|two| ((two[1] - two[0]) as f64 - mean).powi(2)).sum::<f64>() / 100_000.0;
        assert!((square.sqrt() / mean - 1.0).abs() < 0.03, "exponential distances vary as much as they are long");
    }
}
