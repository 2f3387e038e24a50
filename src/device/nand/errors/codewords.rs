//! The correction of a page: codewords, and reads again at shifted voltages.
//!
//! The number of wrong bits of a codeword is binomial. A page is read when each of its codewords has at most as many as the
//! code corrects. A retry reads at voltages nearer to the optimum, which takes away a share of the rate. The probability
//! that a page fails at a step is exact for its rate; one draw decides all steps, as a page that a step corrects is corrected
//! by the later ones, too.
//!
//! Rates are rounded to steps of a 128th of an octave (0.3 % at most), so that the probabilities are a table.

/// Bytes of data in a codeword.
pub const CODEWORD_BYTES: u32 = 1024;

/// Bits of a codeword in which errors are counted: those of the data.
const BITS: u32 = 8 * CODEWORD_BYTES;

/// Rates in the table, for each factor of two.
const PER_OCTAVE: f64 = 128.0;

/// The least rate of the table, as a power of two: with a lower one no page fails.
const LEAST: f64 = -40.0;

/// The rates of the table: up to a half.
const RATES: usize = ((-1.0 - LEAST) * PER_OCTAVE) as usize + 1;

/// The strength of a drive's error correction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Correction {
    /// Wrong bits that the code corrects in a codeword of 1 KiB.
    pub bits: u32,
    /// The reads at shifted voltages after the first read.
    pub retries: u32,
    /// The share of the error rate that each of them takes away.
    pub gain: f64,
}

/// The probabilities of a page of a drive.
#[derive(Debug)]
pub struct Codewords {
    correction: Correction,
    /// The probability that a read of a page fails, by rate.
    fails: Vec<f64>,
    /// The steps of the table that a retry goes down.
    down: usize,
}

/// The result of reading a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Retries that were made.
    pub retries: u32,
    /// False if the last one failed, too.
    pub is_corrected: bool,
}

impl Codewords {
    /// Those of pages of `page_bytes`.
    pub fn new(correction: Correction, page_bytes: u32) -> Codewords {
        let codewords = f64::from(page_bytes.div_ceil(CODEWORD_BYTES));
        let tails = Tails::new();
        let fails_at = |index: usize| {
            let all_are_right = codewords * (-tails.above(correction.bits, rate_of(index))).ln_1p();
            -all_are_right.exp_m1()
        };
        Codewords {
            fails: (0..RATES).map(fails_at).collect(),
            down: (-(1.0 - correction.gain).log2() * PER_OCTAVE).round() as usize,
            correction,
        }
    }

    /// The share of what the code corrects that a codeword is expected to have wrong, at this rate.
    pub fn load(&self, rate: f64) -> f64 {
        rate * f64::from(BITS) / f64::from(self.correction.bits)
    }

    /// The probability that a read fails at this rate, after so many retries.
    pub fn failure(&self, rate: f64, retries: u32) -> f64 {
        let down = self.down * retries as usize;
        index_of(rate).and_then(|index| index.checked_sub(down)).map_or(0.0, |index| self.fails[index])
    }

    /// Reads a page with this rate; `draw` is uniform in [0, 1).
    pub fn read(&self, rate: f64, draw: f64) -> Reading {
        let mut retries = 0;
        while draw < self.failure(rate, retries) {
            if retries == self.correction.retries {
                return Reading { retries, is_corrected: false };
            }
            retries += 1;
        }
        Reading { retries, is_corrected: true }
    }

    /// The reading of a page that no step corrects.
    pub fn none_helps(&self) -> Reading {
        Reading { retries: self.correction.retries, is_corrected: false }
    }
}

fn rate_of(index: usize) -> f64 {
    (LEAST + index as f64 / PER_OCTAVE).exp2()
}

/// The place of a rate in the table; `None` below it.
fn index_of(rate: f64) -> Option<usize> {
    let index = ((rate.log2() - LEAST) * PER_OCTAVE).round();
    (index >= 0.0).then(|| (index as usize).min(RATES - 1))
}

/// Tails of the binomial distribution of wrong bits in a codeword.
struct Tails {
    /// The logarithms of factorials.
    ln_factorial: Vec<f64>,
}

impl Tails {
    fn new() -> Tails {
        let mut ln_factorial = vec![0.0];
        let mut sum = 0.0;
        for factor in 1..=BITS {
            sum += f64::from(factor).ln();
            ln_factorial.push(sum);
        }
        Tails { ln_factorial }
    }

    /// The probability that exactly `wrong` bits are wrong.
    fn exactly(&self, wrong: u32, rate: f64) -> f64 {
        let ln = &self.ln_factorial;
        let ways = ln[BITS as usize] - ln[wrong as usize] - ln[(BITS - wrong) as usize];
        (ways + f64::from(wrong) * rate.ln() + f64::from(BITS - wrong) * (-rate).ln_1p()).exp()
    }

    /// The probability that more than `most` bits are wrong. Sums the side that does not have the mean, from its largest
    /// term on.
    fn above(&self, most: u32, rate: f64) -> f64 {
        let odds = rate / (1.0 - rate);
        let is_above_the_mean = f64::from(most) + 1.0 > f64::from(BITS) * rate;
        if is_above_the_mean {
            let mut term = self.exactly(most + 1, rate);
            let mut sum = term;
            for wrong in most + 1..BITS {
                term *= f64::from(BITS - wrong) / f64::from(wrong + 1) * odds;
                sum += term;
                if term <= sum * 1e-17 {
                    break;
                }
            }
            return sum.min(1.0);
        }
        let mut term = self.exactly(most, rate);
        let mut sum = term;
        for wrong in (1..=most).rev() {
            term *= f64::from(wrong) / f64::from(BITS - wrong + 1) / odds;
            sum += term;
            if term <= sum * 1e-17 {
                break;
            }
        }
        (1.0 - sum).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const CORRECTION: Correction = Correction { bits: 72, retries: 3, gain: 0.15 };

    /// Bits of a codeword are drawn one by one, and more than the code corrects are wrong as often as the table says.
    #[test]
    fn a_codeword_of_drawn_bits_fails_as_often_as_the_table_says() {
        const DRAWN: u32 = 4000;
        let codewords = Codewords::new(CORRECTION, CODEWORD_BYTES);
        let mut random = Random::new(1, "bits");
        for rate in [0.0075, 0.00875, 0.0095] {
            // The nearest rate of the table.
            let rate = rate_of(index_of(rate).unwrap());
            let below = (rate * 2f64.powi(64)) as u64;
            let fails = |random: &mut Random| (0..BITS).filter(|_| random.bits() < below).count() > 72;
            let failed = (0..DRAWN).filter(|_| fails(&mut random)).count() as f64;
            let expected = codewords.failure(rate, 0) * f64::from(DRAWN);
            let deviation = (expected * (1.0 - codewords.failure(rate, 0))).sqrt();
            assert!((failed - expected).abs() < 4.0 * deviation, "{rate}: {failed} of {expected} +- {deviation}");
            assert!(expected > 30.0, "{rate}: the rate is not trivial");
        }
    }

    #[test]
    fn a_page_fails_unless_all_its_codewords_are_right() {
        let (one, sixteen) = (Codewords::new(CORRECTION, 1024), Codewords::new(CORRECTION, 16384));
        for rate in [0.003, 0.006, 0.009, 0.02] {
            let (one, page) = (one.failure(rate, 0), sixteen.failure(rate, 0));
            assert!((page - (1.0 - (1.0 - one).powi(16))).abs() <= 1e-9 + page * 1e-9, "{rate}: {one} {page}");
        }
        assert_eq!(sixteen.failure(0.5, 0), 1.0);
        assert_eq!(sixteen.failure(1e-13, 0), 0.0);
        assert_eq!(sixteen.failure(0.0, 0), 0.0);
    }

    /// The frequency of each number of retries is the difference of two probabilities.
    #[test]
    fn retries_are_as_frequent_as_their_steps_fail() {
        const DRAWN: u32 = 40_000;
        let codewords = Codewords::new(CORRECTION, 4096);
        let mut random = Random::new(2, "pages");
        for rate in [0.0072, 0.0085, 0.0125] {
            let mut counts = [0u32; 5];
            for _ in 0..DRAWN {
                let reading = codewords.read(rate, random.unit());
                let place = if reading.is_corrected { reading.retries as usize } else { 4 };
                assert!(reading.is_corrected || reading.retries == 3);
                counts[place] += 1;
            }
            let fails: Vec<f64> = (0..4).map(|retries| codewords.failure(rate, retries)).collect();
            let shares = [1.0 - fails[0], fails[0] - fails[1], fails[1] - fails[2], fails[2] - fails[3], fails[3]];
            for (count, share) in counts.into_iter().zip(shares) {
                let expected = share * f64::from(DRAWN);
                let bound = 4.0 * expected.sqrt() + 1.0;
                assert!((f64::from(count) - expected).abs() < bound, "{rate}: {counts:?} and {shares:?}");
            }
        }
    }

    #[test]
    fn the_tail_is_right_on_both_sides_of_the_mean() {
        let tails = Tails::new();
        for rate in [1e-4, 0.004, 0.0088, 0.02, 0.4] {
            let whole: f64 = (0..=BITS).map(|wrong| tails.exactly(wrong, rate)).sum();
            assert!((whole - 1.0).abs() < 1e-9, "{rate}: {whole}");
            for most in [0, 10, 72, 200, 4000] {
                let summed: f64 = (most + 1..=BITS).map(|wrong| tails.exactly(wrong, rate)).sum();
                let tail = tails.above(most, rate);
                assert!((tail - summed).abs() < 1e-9, "{rate}, {most}: {tail} and {summed}");
            }
        }
    }
}
