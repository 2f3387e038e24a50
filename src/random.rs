//! The only randomness in the program: a generator whose sequence is the same on every machine.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A seeded generator. Each user makes its own from the run's seed and a name, so that one more draw in one place does
/// not change the draws elsewhere.
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The generator for `purpose` in a run with this seed.
    pub fn new(seed: u64, purpose: &str) -> Random {
        // FNV-1a: stable, unlike the standard library's hasher.
        let hash = purpose
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        Random(Xoshiro256PlusPlus::seed_from_u64(seed ^ hash))
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A whole number below `bound`, at least 1. Uniform up to a bias of `bound` / 2^64 (Lemire's multiplication).
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// A real number in [0, 1), with 53 bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}
