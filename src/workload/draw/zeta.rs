//! The generalised harmonic number zeta(n, theta), the normaliser of a Zipf distribution, in constant time.

/// The number of terms added one by one before the tail is integrated. From here on, the first term that the formula
/// omits is below 1e-12 of the sum for every theta up to 10.
const DIRECT_TERMS: u64 = 512;

/// The sum of `k^-theta` for k from 1 to `n`: exact to about 1e-12 of its value, whatever `n` is.
///
/// The tail is the Euler-Maclaurin formula (Abramowitz and Stegun, 23.1.30) with its first two derivative terms: a
/// device of 1 TiB has 2^28 blocks, too many to add up at the start of each run.
pub fn zeta(n: u64, theta: f64) -> f64 {
    let direct_end = n.min(DIRECT_TERMS);
    // From small to large, so that small terms are not lost to rounding.
    let direct: f64 = (1..=direct_end).rev().map(|k| libm::pow(k as f64, -theta)).sum();
    if n == direct_end {
        return direct;
    }
    let (from, to) = (direct_end as f64, n as f64);
    let value = |x: f64| libm::pow(x, -theta);
    let first = |x: f64| -theta * libm::pow(x, -theta - 1.0);
    let third = |x: f64| -theta * (theta + 1.0) * (theta + 2.0) * libm::pow(x, -theta - 3.0);
    // `direct` holds the whole term at `from`, of which the formula counts half.
    direct + integral(from, to, theta) + (value(to) - value(from)) / 2.0 + (first(to) - first(from)) / 12.0
        - (third(to) - third(from)) / 720.0
}

/// The integral of `x^-theta` between two positive bounds, smooth through its pole at theta = 1.
fn integral(from: f64, to: f64, theta: f64) -> f64 {
    let exponent = 1.0 - theta;
    let width = libm::log(to / from);
    if exponent == 0.0 { width } else { libm::pow(from, exponent) * libm::expm1(exponent * width) / exponent }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formula_agrees_with_the_sum() {
        for theta in [0.0, 0.3, 0.8, 0.99, 1.0, 1.0 + 1e-9, 1.2, 2.5, 10.0] {
            for n in [1, 2, 511, 512, 513, 1000, 300_000] {
                let sum: f64 = (1..=n).rev().map(|k| f64::powf(k as f64, -theta)).sum();
                let error = (zeta(n, theta) - sum).abs() / sum;
                assert!(error < 1e-11, "n={n} theta={theta}: off by {error:e}");
            }
        }
    }

    #[test]
    fn a_long_sum_approaches_riemanns_zeta() {
        let zeta_of_two = std::f64::consts::PI.powi(2) / 6.0;
        assert!((zeta(1 << 28, 2.0) - (zeta_of_two - 1.0 / (1u64 << 28) as f64)).abs() < 1e-12);
    }
}
