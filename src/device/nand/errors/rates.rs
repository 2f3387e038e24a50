//! The raw bit error rate of flash, by wear, retention and reads.
//!
//! The model is the sum of power laws of Kim, Choi and Min, "Design Tradeoffs for SSD Reliability" (FAST '19), section 3:
//!
//! ```text
//! rate = e + a c^k + b c^m t^n + g c^p r^q
//! ```
//!
//! with c program and erase cycles, t the time since the program and r reads. The constants are those of its 72-layer TLC
//! chip. They fit with t in days, and r as the mean number of reads of a page of the block since its program: that is our
//! reading of the table, with which the chip keeps data for a year at the strength of its code.

/// Cycles at which a chip of this kind is worn out: blocks of other endurances have the cycles of the same share of their
/// life.
const RATED_CYCLES: f64 = 3000.0;

/// a and k: wear.
const WEAR: (f64, f64) = (3.90e-10, 2.05);
/// b, m and n: loss of charge.
const RETENTION: (f64, f64, f64) = (6.28e-5, 0.14, 0.54);
/// g, p and q: disturbance by reads of the block.
const DISTURB: (f64, f64, f64) = (3.73e-9, 0.33, 1.71);

/// The most that a rate can be: each bit is drawn.
const MOST: f64 = 0.5;

/// The state of a block on which its error rate depends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BlockAge {
    /// Cycles over the endurance: 1 at the end of its life.
    pub life: f64,
    /// The time since its first program, in days.
    pub days: f64,
    /// Reads of the block since then, over its pages.
    pub reads_per_page: f64,
}

/// The parts of the raw bit error rate: e, and factors of the other three.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// The rate of an unworn block right after its program.
    pub fresh: f64,
    /// The factor of wear.
    pub wear: f64,
    /// The factor of the loss of charge.
    pub retention: f64,
    /// The factor of disturbance by reads.
    pub disturb: f64,
}

impl Rates {
    /// The raw bit error rate of a block, at most a half.
    pub fn at(&self, age: BlockAge) -> f64 {
        let BlockAge { life, days, reads_per_page } = age;
        debug_assert!(life >= 0.0 && days >= 0.0 && reads_per_page >= 0.0, "{age:?} is no age");
        let cycles = life * RATED_CYCLES;
        let wear = self.wear * WEAR.0 * cycles.powf(WEAR.1);
        let retention = self.retention * RETENTION.0 * cycles.powf(RETENTION.1) * days.powf(RETENTION.2);
        let disturb = self.disturb * DISTURB.0 * cycles.powf(DISTURB.1) * reads_per_page.powf(DISTURB.2);
        (self.fresh + wear + retention + disturb).min(MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: Rates = Rates { fresh: 1.48e-3, wear: 1.0, retention: 1.0, disturb: 1.0 };

    /// The published constants, written out once more with cycles, days and reads.
    #[test]
    fn the_rate_is_the_published_sum() {
        for (cycles, days, reads) in [(0.0, 0.0, 0.0), (1500.0f64, 365.0f64, 0.0f64), (3000.0, 30.0, 200.0)] {
            let published = 1.48e-3
                + 3.90e-10 * cycles.powf(2.05)
                + 6.28e-5 * cycles.powf(0.14) * days.powf(0.54)
                + 3.73e-9 * cycles.powf(0.33) * reads.powf(1.71);
            let rate = RATES.at(BlockAge { life: cycles / 3000.0, days, reads_per_page: reads });
            assert!((rate / published - 1.0).abs() < 1e-12, "{cycles} {days} {reads}: {rate} and {published}");
        }
    }

    #[test]
    fn each_part_grows_and_none_exceeds_a_half() {
        let age = BlockAge { life: 0.5, days: 100.0, reads_per_page: 50.0 };
        let rate = RATES.at(age);
        for worse in
            [BlockAge { life: 0.6, ..age }, BlockAge { days: 200.0, ..age }, BlockAge { reads_per_page: 90.0, ..age }]
        {
            assert!(RATES.at(worse) > rate, "{worse:?}");
        }
        let worst = BlockAge { life: 1.0, days: 1e9, reads_per_page: 1e9 };
        assert_eq!(RATES.at(worst), 0.5);
    }
}
