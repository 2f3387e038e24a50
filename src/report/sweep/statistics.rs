//! Means over seeds, and their confidence intervals by Student's t.

/// The level of the confidence intervals.
pub const LEVEL: f64 = 0.95;

/// The degrees of freedom from which on the series in 1/n is exact to seven digits.
const MANY: u64 = 1000;

/// The quantile of the normal distribution for [`LEVEL`], two-sided.
const NORMAL: f64 = 1.959_963_984_540_054;

/// A mean of independent values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The number of values.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Half of the width of the interval that contains the true mean with a probability of 95 %, for values that are
    /// distributed normally; `None` of a single value.
    pub half_width: Option<f64>,
}

impl Mean {
    /// The mean of values; `None` without any.
    pub fn of(values: &[f64]) -> Option<Mean> {
        let count = values.len() as u64;
        // A shift keeps equal values equal: their deviation is 0, not a rounding error.
        let first = *values.first()?;
        let mean = first + values.iter().map(|value| value - first).sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let half_width = (count > 1).then(|| {
            let variance = squares / (count - 1) as f64;
            student_t(count - 1) * (variance / count as f64).sqrt()
        });
        Some(Mean { count, mean, half_width })
    }
}

/// The two-sided quantile of Student's t for [`LEVEL`], with these degrees of freedom (at least 1).
pub fn student_t(freedom: u64) -> f64 {
    if freedom > MANY {
        // Abramowitz and Stegun 26.7.5.
        let (z, n) = (NORMAL, freedom as f64);
        let z2 = z * z;
        return z + z * (z2 + 1.0) / (4.0 * n) + z * ((5.0 * z2 + 16.0) * z2 + 3.0) / (96.0 * n * n);
    }
    let (mut low, mut high) = (0.0, 16.0);
    while high - low > 1e-12 * high {
        let middle = (low + high) / 2.0;
        if middle == low || middle == high {
            break;
        }
        if probability_within(middle, freedom) < LEVEL { low = middle } else { high = middle }
    }
    high
}

/// The probability that Student's t lies between -`t` and `t`: Abramowitz and Stegun 26.7.3 and 26.7.4.
fn probability_within(t: f64, freedom: u64) -> f64 {
    let angle = libm::atan(t / (freedom as f64).sqrt());
    let (sine, cosine) = (libm::sin(angle), libm::cos(angle));
    let is_odd = freedom % 2 == 1;
    // The terms are cos^k with k of the parity of `freedom`, up to k = freedom - 2.
    let (mut term, mut power) = if is_odd { (cosine, 1) } else { (1.0, 0) };
    let mut sum = 0.0;
    while power + 2 <= freedom {
        sum += term;
        power += 2;
        term *= cosine * cosine * (power - 1) as f64 / power as f64;
    }
    match is_odd {
        true => std::f64::consts::FRAC_2_PI * (angle + sine * sum),
        false => sine * sum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the tables of the distribution.
    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, quantile) in [
            (1, 12.7062),
            (2, 4.3027),
            (3, 3.1824),
            (4, 2.7764),
            (5, 2.5706),
            (9, 2.2622),
            (10, 2.2281),
            (29, 2.0452),
            (30, 2.0423),
            (60, 2.0003),
            (120, 1.9799),
            (1_000_000, 1.9600),
        ] {
            assert!((student_t(freedom) - quantile).abs() < 6e-5, "{freedom}: {}", student_t(freedom));
        }
        assert!((student_t(MANY) - student_t(MANY + 1)).abs() < 1e-5);
    }

    #[test]
    fn a_mean_has_an_interval_from_two_values_on() {
        assert_eq!(Mean::of(&[]), None);
        assert_eq!(Mean::of(&[3.0]), Some(Mean { count: 1, mean: 3.0, half_width: None }));
        assert_eq!(Mean::of(&[0.1; 7]), Some(Mean { count: 7, mean: 0.1, half_width: Some(0.0) }));
        let mean = Mean::of(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        // s = 1.29099, t(3) = 3.18245, sqrt(4) = 2.
        assert!((mean.mean - 2.5).abs() < 1e-12 && (mean.half_width.unwrap() - 2.05426).abs() < 1e-4);
    }

    /// Of normal values, 95 % of the intervals contain the true mean.
    #[test]
    fn an_interval_contains_the_mean_as_often_as_it_says() {
        let mut random = crate::random::Random::new(1, "confidence intervals");
        let mut uniform = || random.unit().max(f64::MIN_POSITIVE);
        let mut normal = || (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
        let samples = 4000;
        let inside = (0..samples).filter(|_| {
            let values: Vec<f64> = (0..5).map(|_| normal()).collect();
            let mean = Mean::of(&values).unwrap();
            mean.mean.abs() <= mean.half_width.unwrap()
        });
        let share = inside.count() as f64 / f64::from(samples);
        assert!((share - LEVEL).abs() < 0.015, "{share}");
    }
}
