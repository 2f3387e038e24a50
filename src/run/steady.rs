//! Finds the steady state of a run.

use super::windows::Mark;
use crate::units::BLOCK_BYTES;

/// The number of batches: few enough that each contains many victims, many enough to show a trend.
const BATCHES: usize = 64;
/// The number of parts of the steady run that must agree.
const PARTS: usize = 4;
/// The maximum deviation of a part from the whole, as a share of the whole's write amplification.
const TOLERANCE: f64 = 0.02;
/// The maximum change from the first half to the second, as a share of the whole's write amplification. An amplification
/// that approaches its limit exponentially is then at most 1.5 times this below it, if it halves its distance in a half.
const DRIFT: f64 = 0.003;

/// The number of written blocks from which the write amplification is steady, and its value from there on; `None` if it
/// still changes.
///
/// The marks are merged into [`BATCHES`] batches of equal host writes. The run is steady from the first batch after
/// which each of [`PARTS`] equal parts of the rest deviates by at most [`TOLERANCE`] from the whole rest, if the rest
/// is at least a quarter of the run, and the second half is like the first: a slow approach has parts that are alike, and
/// ends elsewhere.
pub(super) fn steady_from(marks: &[Mark]) -> Option<(u64, f64)> {
    let batches = batches(marks);
    let least = BATCHES / 4;
    let cuts = 0..batches.len().checked_sub(least)?;
    cuts.map(|cut| &batches[cut..])
        .find(|rest| is_even(rest) && !is_drifting(rest))
        .and_then(|rest| amplification(rest).map(|value| (rest[0].written_blocks, value)))
}

/// True if each part of the run between the first and the last of these marks is like the whole.
fn is_even(rest: &[Mark]) -> bool {
    let Some(whole) = amplification(rest) else { return false };
    (0..PARTS).all(|part| {
        let ends = |part: usize| part * (rest.len() - 1) / PARTS;
        let part = amplification(&rest[ends(part)..=ends(part + 1)]);
        part.is_some_and(|part| (part - whole).abs() <= TOLERANCE * whole)
    })
}

/// True if the second half of the run between these marks differs from the first by more than [`DRIFT`] and its standard
/// error.
fn is_drifting(rest: &[Mark]) -> bool {
    let batches: Vec<f64> = rest.windows(2).filter_map(amplification).collect();
    let (first, second) = batches.split_at(batches.len() / 2);
    let ((first, first_error), (second, second_error)) = (mean_and_error(first), mean_and_error(second));
    let change = (second - first).abs();
    change > DRIFT * first.max(second) && change > first_error.hypot(second_error)
}

/// The mean of values, and its standard error from the differences of neighbours, which a trend hardly changes.
fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let count = values.len().max(2) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let differences: f64 = values.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum();
    (mean, (differences / (2.0 * (count - 1.0)) / count).sqrt())
}

/// The marks at the ends of the batches, and the start of the run.
fn batches(marks: &[Mark]) -> Vec<Mark> {
    let Some(last) = marks.last() else { return Vec::new() };
    let mut batches = vec![Mark { written_blocks: 0, programmed_bytes: 0, at: crate::time::Time::ZERO }];
    for mark in marks {
        let due = last.written_blocks * batches.len() as u64 / BATCHES as u64;
        if mark.written_blocks >= due.max(1) {
            batches.push(*mark);
        }
    }
    batches
}

/// Bytes programmed per byte written, between the first and the last of these marks.
fn amplification(marks: &[Mark]) -> Option<f64> {
    let (first, last) = (marks.first()?, marks.last()?);
    let written = (last.written_blocks - first.written_blocks) * BLOCK_BYTES;
    (written > 0).then(|| (last.programmed_bytes - first.programmed_bytes) as f64 / written as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::time::Time;

    fn marks(amplification: impl Fn(f64) -> f64) -> Vec<Mark> {
        let mut random = Random::new(1, "noise");
        let mut programmed = 0.0;
        (1..=700)
            .map(|index| {
                let noise = 0.98 + 0.04 * random.unit();
                programmed += amplification(f64::from(index) / 700.0) * noise * 1000.0 * BLOCK_BYTES as f64;
                Mark { written_blocks: index as u64 * 1000, programmed_bytes: programmed as u64, at: Time::ZERO }
            })
            .collect()
    }

    #[test]
    fn the_warm_up_is_cut_and_the_rest_is_the_steady_value() {
        let (from, value) = steady_from(&marks(|x| if x < 0.25 { 1.0 + 12.0 * x } else { 4.0 })).unwrap();
        assert!((value - 4.0).abs() < 0.05, "{value}");
        assert!((120_000..=180_000).contains(&from), "{from}");
    }

    #[test]
    fn a_growing_write_amplification_is_not_steady() {
        assert_eq!(steady_from(&marks(|x| 1.0 + 3.0 * x)), None);
    }

    /// The first in, first out collection of a new drive was called steady at 5.109, while it rose to 5.203: no quarter of the
    /// rest differed from the whole by 2 %.
    #[test]
    fn a_slow_approach_is_steady_only_near_its_end() {
        for rate in 1..=60 {
            let (limit, rate) = (5.203, f64::from(rate) / 2.0);
            if let Some((_, value)) = steady_from(&marks(|x| limit - 4.2 * (-rate * x).exp())) {
                assert!((value / limit - 1.0).abs() < 0.008, "rate {rate}: {value}");
            }
        }
        assert!(steady_from(&marks(|x| 5.203 - 4.2 * (-15.0 * x).exp())).is_some());
    }

    #[test]
    fn a_run_that_is_steady_from_the_beginning_loses_little() {
        let (from, _) = steady_from(&marks(|_| 2.0)).unwrap();
        assert!(from <= 20_000, "{from}");
    }

    #[test]
    fn too_short_a_run_has_no_steady_state() {
        assert_eq!(steady_from(&marks(|_| 2.0)[..5]), None);
        assert_eq!(steady_from(&[]), None);
    }
}
