//! fio's skewed distributions over the ranks `0..n`, rank 0 being the likeliest: [`Zipf`], [`SelfSimilar`] (fio's
//! "pareto") and [`Bell`] (fio's "normal").
//!
//! They follow the published formulas and the observed behaviour of fio 3.33; `tests/fio_distributions.rs` compares
//! them with fio. Logarithms and powers come from `libm` and [`Powers`] rather than from the system, whose last bit
//! differs between machines: a seed gives the same requests everywhere.

use super::power::Powers;
use super::zeta::zeta;
use crate::random::Random;

/// Draws ranks below `n`.
pub trait Distribution: Send {
    /// The next rank.
    fn rank(&mut self, random: &mut Random) -> u64;
}

/// Rank k (from 1) has a weight of about `k^-theta`: the approximation in constant time by Gray et al., "Quickly
/// generating billion-record synthetic databases", SIGMOD 1994. The first two ranks are exact, the others
/// follow a power of the draw.
#[derive(Clone, Debug)]
pub struct Zipf {
    n: u64,
    /// The sum of all weights.
    zeta_n: f64,
    /// The weight of the first two ranks.
    zeta_2: f64,
    /// 1 - theta.
    exponent: f64,
    /// The paper's eta; for theta = 1, eta / (1 - theta) as theta goes to 1.
    eta: f64,
    powers: Powers,
}

/// Within this distance of theta = 1, the slower formula is used, which stays exact there.
const NEAR_POLE: f64 = 1e-3;

impl Zipf {
    /// The distribution over `0..n` with exponent `theta` from 0 (uniform) to 10. The paper's formula has a pole at
    /// theta = 1; here its limit is taken.
    pub fn new(n: u64, theta: f64) -> Zipf {
        assert!(n > 0, "there is a rank to draw");
        let (zeta_n, zeta_2) = (zeta(n, theta), 1.0 + libm::pow(0.5, theta));
        let exponent = 1.0 - theta;
        let rest = 1.0 - zeta_2 / zeta_n;
        let log_half_n = libm::log(n as f64 / 2.0);
        let eta = if n <= 2 {
            0.0
        } else if exponent == 0.0 {
            log_half_n / rest
        } else {
            -libm::expm1(-exponent * log_half_n) / rest
        };
        Zipf { n, zeta_n, zeta_2, exponent, eta, powers: Powers::new() }
    }
}

impl Distribution for Zipf {
    #[inline]
    fn rank(&mut self, random: &mut Random) -> u64 {
        let unit = random.unit();
        let weight = unit * self.zeta_n;
        if weight < 1.0 {
            return 0;
        }
        if weight < self.zeta_2 {
            return 1.min(self.n - 1);
        }
        let grade = self.eta * (unit - 1.0);
        // The paper's (eta u - eta + 1)^(1 / (1 - theta)).
        let part = if self.exponent == 0.0 {
            libm::exp(grade)
        } else if self.exponent.abs() < NEAR_POLE {
            libm::exp(libm::log1p(grade) / self.exponent)
        } else {
            self.powers.power(1.0 + grade, 1.0 / self.exponent)
        };
        ((self.n as f64 * part) as u64).min(self.n - 1)
    }
}

/// The first `h` of the ranks get `1 - h` of the draws, and so on inside every part: the self-similar distribution of
/// Gray et al., "the 80-20 rule" for h = 0.2. fio calls it pareto.
#[derive(Clone, Debug)]
pub struct SelfSimilar {
    n: u64,
    exponent: f64,
    powers: Powers,
}

impl SelfSimilar {
    /// The distribution over `0..n`; `h` is between 0 and 1, without them. Above 0.5 the last ranks are the likely ones.
    pub fn new(n: u64, h: f64) -> SelfSimilar {
        assert!(n > 0 && h > 0.0 && h < 1.0, "a share of {h} of {n} ranks is between none and all");
        SelfSimilar { n, exponent: libm::log(h) / libm::log(1.0 - h), powers: Powers::new() }
    }
}

impl Distribution for SelfSimilar {
    #[inline]
    fn rank(&mut self, random: &mut Random) -> u64 {
        ((self.n as f64 * self.powers.power(random.unit(), self.exponent)) as u64).min(self.n - 1)
    }
}

/// A bell over `0..n` with its middle at n / 2, as fio draws it: the mean of twelve uniform draws, whose deviation is a
/// twelfth of the space, moved by one more uniform draw from a window of `window` of the space around it. Draws past
/// one end wrap around to the other.
///
/// This is an observation, not documented by fio: it fits the shares of the blocks that fio 3.33 writes to within 1 %
/// for the deviations 1, 20, 50 and 90. For 50, 75 and 99, fio's writes are the same.
#[derive(Clone, Debug)]
pub struct Bell {
    n: u64,
    window: f64,
}

/// The largest window of a [`Bell`], as a share of the space.
const WINDOW_MAX: f64 = 0.5;
const BELL_DRAWS: u64 = 12;

impl Bell {
    /// The distribution over `0..n` for fio's `normal:deviation`; `deviation` is fio's as a fraction, from 0 to 1.
    pub fn new(n: u64, deviation: f64) -> Bell {
        assert!(n > 0, "there is a rank to draw");
        Bell { n, window: deviation.clamp(0.0, WINDOW_MAX) }
    }
}

impl Distribution for Bell {
    #[inline]
    fn rank(&mut self, random: &mut Random) -> u64 {
        // Twelve numbers of 60 bits do not overflow.
        let sum: u64 = (0..BELL_DRAWS).map(|_| random.bits() >> 4).sum();
        let place = sum as f64 * (1.0 / (BELL_DRAWS << 60) as f64) + (random.unit() - 0.5) * self.window;
        let place = place + f64::from(u8::from(place < 0.0)) - f64::from(u8::from(place >= 1.0));
        ((self.n as f64 * place) as u64).min(self.n - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 400_000;

    fn ranks(mut distribution: impl Distribution) -> Vec<u64> {
        let mut random = Random::new(1, "distribution");
        (0..DRAWS).map(|_| distribution.rank(&mut random)).collect()
    }

    fn share_below(ranks: &[u64], end: u64) -> f64 {
        ranks.iter().filter(|rank| **rank < end).count() as f64 / ranks.len() as f64
    }

    #[test]
    fn zipf_gives_the_first_ranks_their_exact_weight_and_the_rest_nearly() {
        let n = 10_000;
        for theta in [0.0, 0.5, 0.8, 0.99, 1.0, 1.000_001, 1.2, 2.0] {
            let ranks = ranks(Zipf::new(n, theta));
            for (end, tolerance) in [(1, 0.003), (2, 0.003), (100, 0.03), (1000, 0.02), (n, 0.0)] {
                let (got, due) = (share_below(&ranks, end), zeta(end, theta) / zeta(n, theta));
                assert!((got - due).abs() <= tolerance, "theta={theta}, first {end}: {got}, not {due}");
            }
        }
    }

    #[test]
    fn the_pole_of_zipf_is_passed_smoothly() {
        let (below, at, above) =
            (Zipf::new(1 << 20, 1.0 - 1e-9), Zipf::new(1 << 20, 1.0), Zipf::new(1 << 20, 1.0 + 1e-9));
        for ((a, b), c) in ranks(below).into_iter().zip(ranks(at)).zip(ranks(above)) {
            assert!(a.abs_diff(b) <= 1 && b.abs_diff(c) <= 1, "{a} {b} {c}");
        }
    }

    #[test]
    fn self_similar_is_the_80_20_rule_inside_every_part() {
        let ranks = ranks(SelfSimilar::new(1_000_000, 0.2));
        assert!((share_below(&ranks, 200_000) - 0.8).abs() < 0.003);
        assert!((share_below(&ranks, 40_000) - 0.64).abs() < 0.003);
    }

    #[test]
    fn the_bell_has_its_mean_in_the_middle_and_the_deviation_of_its_parts() {
        let n = 1_000_000;
        for (deviation, window) in [(0.0, 0.0), (0.2, 0.2), (0.5, 0.5), (0.9, 0.5)] {
            let ranks = ranks(Bell::new(n, deviation));
            let mean = ranks.iter().sum::<u64>() as f64 / DRAWS as f64;
            let square = ranks.iter().map(|rank| (*rank as f64 - mean).powi(2)).sum::<f64>() / DRAWS as f64;
            let due = (1.0 / 144.0 + window * window / 12.0f64).sqrt();
            assert!((mean / n as f64 - 0.5).abs() < 0.002, "mean {mean}");
            assert!((square.sqrt() / n as f64 - due).abs() < 0.002, "deviation {} for {deviation}", square.sqrt());
        }
    }

    #[test]
    fn spaces_of_one_and_two_have_no_rank_outside() {
        for n in [1, 2, 3] {
            for ranks in [ranks(Zipf::new(n, 1.2)), ranks(SelfSimilar::new(n, 0.2)), ranks(Bell::new(n, 0.5))] {
                assert!(ranks.into_iter().all(|rank| rank < n), "n={n}");
            }
        }
    }
}
