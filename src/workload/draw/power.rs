//! Powers from two small tables: less than half the time of `libm::pow`, and ranks need no more than eleven digits.

use std::f64::consts::LN_2;

const TABLE_BITS: u32 = 7;
const TABLE_LENGTH: usize = 1 << TABLE_BITS;
const MANTISSA_BITS: u32 = 52;
const EXPONENT_BIAS: i64 = 1023;
/// Powers of two below this are taken as zero.
const LOG_MIN: f64 = -1000.0;

/// Computes powers with sums, products and bit patterns alone, which are the same on every machine.
#[derive(Clone, Debug)]
pub struct Powers {
    /// For each value of a mantissa's leading bits: 1 / c and log2 c, with c the midpoint of the mantissas that start
    /// so.
    logarithms: Box<[(f64, f64); TABLE_LENGTH]>,
    /// 2^(i / length).
    exponentials: Box<[f64; TABLE_LENGTH]>,
}

impl Default for Powers {
    fn default() -> Powers {
        Powers::new()
    }
}

impl Powers {
    /// The tables, 3 KiB.
    pub fn new() -> Powers {
        let middle = |index: usize| 1.0 + (index as f64 + 0.5) / TABLE_LENGTH as f64;
        let logarithm = |index| (1.0 / middle(index), libm::log2(middle(index)));
        let exponential = |index| libm::exp2(index as f64 / TABLE_LENGTH as f64);
        Powers {
            logarithms: Box::new(std::array::from_fn(logarithm)),
            exponentials: Box::new(std::array::from_fn(exponential)),
        }
    }

    /// `base` to the power of `exponent`, to about 1e-12 of its value times the size of `exponent`. The base is not
    /// negative; the result is below 2^1000 (it is cut off there), and 0 stands for anything below 2^-999.
    #[inline]
    pub fn power(&self, base: f64, exponent: f64) -> f64 {
        self.exp2(exponent * self.log2(base))
    }

    #[inline]
    fn log2(&self, x: f64) -> f64 {
        let bits = x.to_bits();
        let exponent = (bits >> MANTISSA_BITS) as i64 - EXPONENT_BIAS;
        let index = (bits >> (MANTISSA_BITS - TABLE_BITS)) as usize & (TABLE_LENGTH - 1);
        let mantissa = f64::from_bits(bits & ((1 << MANTISSA_BITS) - 1) | (EXPONENT_BIAS as u64) << MANTISSA_BITS);
        let (inverse, log_middle) = self.logarithms[index];
        // r is at most 2^-8, so that the series of ln(1 + r) converges fast.
        let r = mantissa * inverse - 1.0;
        // Two independent halves, for instruction-level parallelism.
        let series = r * (1.0 - r * (1.0 / 2.0)) + (r * r) * r * (1.0 / 3.0 - r * (1.0 / 4.0));
        exponent as f64 + log_middle + series * (1.0 / LN_2)
    }

    #[inline]
    fn exp2(&self, y: f64) -> f64 {
        let y = y.min(-LOG_MIN);
        if y < LOG_MIN {
            return 0.0;
        }
        // Towards zero: t may have either sign.
        let steps = (y * TABLE_LENGTH as f64) as i32;
        let t = (y - f64::from(steps) * (1.0 / TABLE_LENGTH as f64)) * LN_2;
        let scale = f64::from_bits((i64::from(steps >> TABLE_BITS) + EXPONENT_BIAS) as u64 * (1 << MANTISSA_BITS));
        let series = (1.0 + t) + (t * t) * (1.0 / 2.0 + t * (1.0 / 6.0 + t * (1.0 / 24.0)));
        scale * self.exponentials[steps as usize & (TABLE_LENGTH - 1)] * series
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn powers_agree_with_libm_to_eleven_digits() {
        let powers = Powers::new();
        let mut random = Random::new(1, "powers");
        for _ in 0..200_000 {
            let base = libm::exp2(200.0 * (random.unit() - 0.5));
            let exponent = 10.0 * (random.unit() - 0.5);
            let (got, due) = (powers.power(base, exponent), libm::pow(base, exponent));
            assert!((got / due - 1.0).abs() < 1e-11, "{base}^{exponent} is {got}, not {due}");
        }
    }

    #[test]
    fn powers_of_the_extremes_are_cut_off() {
        let powers = Powers::new();
        assert_eq!(powers.power(0.0, 7000.0), 0.0);
        assert!(powers.power(1e300, 10.0).is_finite());
        assert!((powers.power(1.0, 5.0) - 1.0).abs() < 1e-12);
    }
}
