//! A permutation of `0..n` without a table: it scatters ranks over a device and visits every block exactly once.

use crate::random::Random;

const ROUNDS: usize = 4;

/// A bijection of `0..n` onto itself, chosen by a random generator.
///
/// It permutes the next power of two and walks on until it is inside `0..n` again, which takes less than two steps on
/// average ("cycle walking": Black and Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002). A
/// round multiplies by an odd number, adds, and folds the upper half of the bits onto the lower: three bijections.
#[derive(Clone, Debug)]
pub struct Permutation {
    n: u64,
    mask: u64,
    fold_bits: u32,
    rounds: [(u64, u64); ROUNDS],
}

impl Permutation {
    /// A permutation of `0..n`; `n` is at least 1.
    pub fn new(n: u64, random: &mut Random) -> Permutation {
        assert!(n > 0, "an empty range has no permutation");
        let mask = n.checked_next_power_of_two().map_or(u64::MAX, |power| power - 1);
        let bits = 64 - mask.leading_zeros();
        let rounds = std::array::from_fn(|_| (random.bits() | 1, random.bits()));
        Permutation { n, mask, fold_bits: bits.div_ceil(2).max(1), rounds }
    }

    /// The place of `index`, which is below `n`.
    #[inline]
    pub fn apply(&self, index: u64) -> u64 {
        debug_assert!(index < self.n, "{index} is not below {}: the walk might not end", self.n);
        let mut at = index;
        loop {
            for (factor, summand) in self.rounds {
                at = at.wrapping_mul(factor).wrapping_add(summand) & self.mask;
                at ^= at >> self.fold_bits;
            }
            // The walk follows a cycle that contains `index`, which is below n: it ends.
            if at < self.n {
                return at;
            }
        }
    }
}

impl Permutation {
    /// The inverse of [`Permutation::apply`]: the index of `place`, which is below `n`.
    pub fn find(&self, place: u64) -> u64 {
        debug_assert!(place < self.n, "{place} is not below {}: the walk might not end", self.n);
        let mut at = place;
        loop {
            for (factor, summand) in self.rounds.iter().rev() {
                // The fold is its own inverse: it changes none of the bits that it shifts down.
                at ^= at >> self.fold_bits;
                at = at.wrapping_sub(*summand).wrapping_mul(inverse(*factor)) & self.mask;
            }
            if at < self.n {
                return at;
            }
        }
    }
}

/// The inverse of an odd `factor` modulo 2^64, by Newton's method: three bits are right at first, and each step doubles
/// them.
fn inverse(factor: u64) -> u64 {
    (0..5).fold(factor, |inverse, _| inverse.wrapping_mul(2u64.wrapping_sub(factor.wrapping_mul(inverse))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_is_hit_exactly_once() {
        for n in (1..=70).chain([1000, 4096, 4097, 65_535]) {
            let permutation = Permutation::new(n, &mut Random::new(n, "permutation"));
            let mut hit = vec![false; n as usize];
            for index in 0..n {
                let at = permutation.apply(index) as usize;
                assert!(!hit[at], "n={n}: {at} is hit twice");
                hit[at] = true;
                assert_eq!(permutation.find(at as u64), index, "n={n}");
            }
        }
    }

    #[test]
    fn neighbours_are_parted() {
        let n = 100_000;
        let permutation = Permutation::new(n, &mut Random::new(7, "permutation"));
        let distances = (1..n).map(|index| permutation.apply(index).abs_diff(permutation.apply(index - 1)));
        let mean = distances.sum::<u64>() as f64 / (n - 1) as f64 / n as f64;
        // Two independent uniform places are a third of the space apart on average.
        assert!((mean - 1.0 / 3.0).abs() < 0.01, "mean distance {mean}");
    }

    #[test]
    fn the_first_half_of_the_indices_is_spread_evenly() {
        let n = 1 << 16;
        let permutation = Permutation::new(n, &mut Random::new(3, "permutation"));
        let mut counts = [0u64; 16];
        (0..n / 2).for_each(|index| counts[(permutation.apply(index) >> 12) as usize] += 1);
        assert!(counts.iter().all(|count| (1900..2200).contains(count)), "{counts:?}");
    }
}
