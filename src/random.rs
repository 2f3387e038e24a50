//! The only randomness in the program: a generator whose sequence is the same on every machine.

use rand_core::{Rng, SeedableRng};
pub use rand_xoshiro::Xoshiro256PlusPlus;

/// A seeded generator. Every user makes its own from the run's seed and a name, so that a draw more in one place does
/// not shift the draws in another.
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The generator for `purpose` in a run with this seed.
    pub fn new(seed: u64, purpose: &str) -> Random {
        // FNV-1a: stable for ever, unlike the standard library's hasher.
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

    /// A whole number below `bound`, uniform but for a bias of at most `bound` / 2^64 (Lemire's multiplication).
    /// `bound` is at least 1.
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
