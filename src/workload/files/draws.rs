//! Random sizes: log-normal and gamma. Logarithms come from `libm`, so that a seed gives the same sizes everywhere.

use crate::random::Random;

/// A draw from the normal distribution with mean 0 and deviation 1 (Box and Muller 1958). Every draw takes two numbers;
/// the second result is discarded.
pub fn normal(random: &mut Random) -> f64 {
    // 1 - unit is above 0.
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - random.unit()));
    radius * libm::cos(2.0 * std::f64::consts::PI * random.unit())
}

/// A log-normal draw with this median; `sigma` is the deviation of the logarithm. The mean is median x e^(sigma^2 / 2).
pub fn log_normal(random: &mut Random, median: f64, sigma: f64) -> f64 {
    median * libm::exp(sigma * normal(random))
}

/// A draw from the gamma distribution with this mean and shape (Marsaglia and Tsang, "A simple method for generating
/// gamma variables", ACM TOMS 26(3), 2000).
pub fn gamma(random: &mut Random, mean: f64, shape: f64) -> f64 {
    // For a shape below 1: a draw of shape + 1 times a power of a uniform draw.
    let (raised, factor) =
        if shape < 1.0 { (shape + 1.0, libm::pow(1.0 - random.unit(), 1.0 / shape)) } else { (shape, 1.0) };
    let d = raised - 1.0 / 3.0;
    let c = 1.0 / libm::sqrt(9.0 * d);
    loop {
        let x = normal(random);
        let cube = libm::pow(1.0 + c * x, 3.0);
        if cube > 0.0 && libm::log(1.0 - random.unit()) < 0.5 * x * x + d - d * cube + d * libm::log(cube) {
            return mean / shape * d * cube * factor;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 200_000;

    #[test]
    fn a_log_normal_draw_has_its_median_and_mean() {
        let mut random = Random::new(1, "log-normal");
        let mut draws: Vec<f64> = (0..DRAWS).map(|_| log_normal(&mut random, 4096.0, 1.5)).collect();
        draws.sort_by(f64::total_cmp);
        assert!((draws[DRAWS / 2] / 4096.0 - 1.0).abs() < 0.02);
        let mean = draws.iter().sum::<f64>() / DRAWS as f64;
        assert!((mean / (4096.0 * (1.125f64).exp()) - 1.0).abs() < 0.05, "{mean}");
    }

    #[test]
    fn a_gamma_draw_has_its_mean_and_variance() {
        for shape in [0.5, 1.0, 1.5, 9.0] {
            let mut random = Random::new(2, "gamma");
            let draws: Vec<f64> = (0..DRAWS).map(|_| gamma(&mut random, 100.0, shape)).collect();
            let mean = draws.iter().sum::<f64>() / DRAWS as f64;
            let variance = draws.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>() / DRAWS as f64;
            assert!((mean / 100.0 - 1.0).abs() < 0.02, "shape {shape}: mean {mean}");
            assert!((variance / (10_000.0 / shape) - 1.0).abs() < 0.05, "shape {shape}: variance {variance}");
        }
    }
}
