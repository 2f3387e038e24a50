//! From where on a run is steady.

use super::windows::Mark;
use crate::units::BLOCK_BYTES;

/// Batches that the run is judged by: few enough that one holds many victims, many enough to see a trend.
const BATCHES: usize = 50;
/// How far the halves of the steady part may lie apart, as a share of its write amplification.
const TOLERANCE: f64 = 0.02;

/// The written blocks after which the write amplification is steady, and its value from there on; `None` if it still
/// moves.
///
/// The marks are joined to [`BATCHES`] batches of equal host writes. The warm-up is cut where the squared standard error
/// of the rest is least (the marginal standard error rule, White 1997); if that takes more than half the run, or the
/// first and second half of the rest differ by more than [`TOLERANCE`], the run is not steady.
pub(super) fn steady_from(marks: &[Mark]) -> Option<(u64, f64)> {
    let batches = batches(marks);
    let first = warm_up(&batches)?;
    let rest = &batches[first..];
    let middle = rest.len() / 2;
    let (early, late) = (amplification(&rest[..middle + 1])?, amplification(&rest[middle..])?);
    let whole = amplification(rest)?;
    ((early - late).abs() <= TOLERANCE * whole).then(|| (rest[0].written_blocks, whole))
}

/// The marks at the ends of the batches, and the run's beginning.
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

/// The number of batches to cut, by the marginal standard error rule.
fn warm_up(batches: &[Mark]) -> Option<usize> {
    if batches.len() < BATCHES / 2 {
        return None;
    }
    let values: Vec<f64> = batches.windows(2).map(|pair| amplification(pair).unwrap_or(0.0)).collect();
    let error = |cut: usize| {
        let rest = &values[cut..];
        let mean = rest.iter().sum::<f64>() / rest.len() as f64;
        rest.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (rest.len() as f64).powi(2)
    };
    let best = (0..values.len() - 5).min_by(|&a, &b| error(a).total_cmp(&error(b)))?;
    (best <= values.len() / 2).then_some(best)
}

/// Bytes programmed over bytes written between the first and the last of these marks.
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
        assert!((150_000..=260_000).contains(&from), "{from}");
    }

    #[test]
    fn what_still_grows_is_not_steady() {
        assert_eq!(steady_from(&marks(|x| 1.0 + 3.0 * x)), None);
    }

    #[test]
    fn a_run_that_is_steady_from_the_beginning_loses_little() {
        let (from, _) = steady_from(&marks(|_| 2.0)).unwrap();
        assert!(from <= 350_000, "{from}");
    }

    #[test]
    fn too_short_a_run_has_no_steady_state() {
        assert_eq!(steady_from(&marks(|_| 2.0)[..5]), None);
        assert_eq!(steady_from(&[]), None);
    }
}
