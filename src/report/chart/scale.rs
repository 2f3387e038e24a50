//! Axes: titles, scales from values to pixels, ticks.

use crate::report::number;

/// The relation of values to places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal distances for equal differences.
    Linear,
    /// Equal distances for equal ratios. Values that are not positive are left out.
    Log,
    /// The same, with the least value at the far end: `1 - share` has equal space for each nine.
    LogDown,
}

/// An axis of a panel.
#[derive(Clone, Debug)]
pub struct Axis {
    /// The title with the unit; may be empty for names that speak for themselves.
    pub title: String,
    /// The scale; ignored for names.
    pub scale: Scale,
    /// The names of an axis of names; empty for an axis of numbers.
    pub names: Vec<String>,
    /// Ticks and their labels in place of round numbers.
    pub ticks: Option<Vec<(f64, String)>>,
    /// The label of a round number.
    pub label: fn(f64) -> String,
    /// Values that are on the axis in any case.
    pub includes: Vec<f64>,
}

impl Axis {
    /// An axis of numbers that begins at 0. The title names the unit.
    pub fn linear(title: &str) -> Axis {
        Axis {
            title: title.to_string(),
            scale: Scale::Linear,
            names: Vec::new(),
            ticks: None,
            label: plain,
            includes: vec![0.0],
        }
    }

    /// A logarithmic axis.
    pub fn log(title: &str) -> Axis {
        Axis { scale: Scale::Log, includes: Vec::new(), ..Axis::linear(title) }
    }

    /// An axis of names, for bars.
    pub fn names(title: &str, names: Vec<String>) -> Axis {
        Axis { names, ..Axis::linear(title) }
    }

    /// The axis with labels of this form at its ticks.
    pub fn labelled(self, label: fn(f64) -> String) -> Axis {
        Axis { label, ..self }
    }

    /// The axis with these ticks.
    pub fn with_ticks(self, ticks: Vec<(f64, String)>) -> Axis {
        Axis { ticks: Some(ticks), ..self }
    }

    /// True if `value` can be placed on it.
    pub fn holds(&self, value: f64) -> bool {
        value.is_finite() && (self.scale == Scale::Linear || value > 0.0)
    }

    /// The least and the greatest value to be shown: those of `values` and what the axis includes, never equal.
    pub fn range(&self, values: impl Iterator<Item = f64>) -> (f64, f64) {
        let shown = values.chain(self.includes.iter().copied()).filter(|value| self.holds(*value));
        let (low, high) = shown.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        match self.scale {
            _ if low > high => (0.0, 1.0),
            Scale::Linear => match high - low {
                0.0 if low == 0.0 => (0.0, 1.0),
                0.0 => (low.min(0.0), high.max(0.0)),
                _ => (low, high),
            },
            _ if low == high => (low / 2.0, high * 2.0),
            _ => (low, high),
        }
    }
}

/// A number without zeros at the end: `0.5`, `1`, `1,200`.
fn plain(value: f64) -> String {
    let text = number::three_digits(value);
    match text.contains('.') && !text.contains('e') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

/// A range of values with a little room at its ends, so that marks do not touch the frame.
pub fn roomy((low, high): (f64, f64), scale: Scale) -> (f64, f64) {
    let room = (high - low) * 0.06;
    match scale {
        Scale::Linear => (if low < 0.0 { low - room } else { low }, if high > 0.0 { high + room } else { high }),
        Scale::Log | Scale::LogDown => (low, high),
    }
}

/// A scale with its range and its place in the figure.
pub struct Placed<'a> {
    /// The axis.
    pub axis: &'a Axis,
    /// The values at both ends.
    pub range: (f64, f64),
    /// The pixels at both ends.
    pub pixels: (f64, f64),
}

impl Placed<'_> {
    /// The pixel of a value that the axis holds.
    pub fn at(&self, value: f64) -> f64 {
        let (low, high) = self.range;
        let share = match self.axis.scale {
            Scale::Linear => (value - low) / (high - low),
            Scale::Log => (value / low).ln() / (high / low).ln(),
            Scale::LogDown => 1.0 - (value / low).ln() / (high / low).ln(),
        };
        self.pixels.0 + share.clamp(0.0, 1.0) * (self.pixels.1 - self.pixels.0)
    }

    /// The slot of the name with this number: its first pixel and its size.
    pub fn slot(&self, name: usize) -> (f64, f64) {
        let size = (self.pixels.1 - self.pixels.0) / self.axis.names.len().max(1) as f64;
        (self.pixels.0 + name as f64 * size, size)
    }

    /// The ticks within the range and their labels, about `wanted` of them.
    pub fn ticks(&self, wanted: usize) -> Vec<(f64, String)> {
        let (low, high) = self.range;
        let slack = (high - low) * 1e-9;
        let all = match &self.axis.ticks {
            Some(ticks) => ticks.clone(),
            None => {
                let values =
                    if self.axis.scale == Scale::Linear { linear(low, high, wanted) } else { log(low, high, wanted) };
                values.into_iter().map(|value| (value, (self.axis.label)(value))).collect()
            }
        };
        all.into_iter().filter(|(value, _)| (low - slack..=high + slack).contains(value)).collect()
    }
}

/// Multiples of 1, 2 or 5 times a power of ten.
fn linear(low: f64, high: f64, wanted: usize) -> Vec<f64> {
    let rough = (high - low) / wanted.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= rough * 0.999);
    let step = step.unwrap_or(10.0 * power);
    if !step.is_finite() || step <= 0.0 {
        return vec![low];
    }
    let first = (low / step - 1e-9).ceil();
    let count = ((high / step + 1e-9).floor() - first).max(0.0) as usize;
    // Sums of steps would show 0.30000000000000004.
    (0..=count.min(100)).map(|number| round((first + number as f64) * step, step)).collect()
}

fn round(value: f64, step: f64) -> f64 {
    let digits = (2.0 - step.log10().floor()).clamp(0.0, 15.0);
    let factor = 10f64.powf(digits);
    (value * factor).round() / factor
}

/// Powers of ten, with 2 and 5, or 3, between them where there is room; every other power where there is none.
fn log(low: f64, high: f64, wanted: usize) -> Vec<f64> {
    let decades = (high / low).log10().max(0.01);
    let between: &[f64] = match wanted as f64 / decades {
        room if room >= 3.0 => &[1.0, 2.0, 5.0],
        room if room >= 2.0 => &[1.0, 3.0],
        _ => &[1.0],
    };
    let every = (decades / wanted.max(1) as f64).ceil().max(1.0) as i32;
    let first = low.log10().floor() as i32;
    let powers = (first..=high.log10().ceil() as i32).filter(|power| (power - first) % every == 0);
    powers.flat_map(|power| between.iter().map(move |factor| factor * 10f64.powi(power))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(axis: &Axis, range: (f64, f64), wanted: usize) -> Vec<String> {
        let placed = Placed { axis, range, pixels: (0.0, 100.0) };
        placed.ticks(wanted).into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(ticks(&Axis::linear(""), (0.0, 3.2), 5), ["0", "1", "2", "3"]);
        assert_eq!(ticks(&Axis::linear(""), (0.0, 0.7), 4), ["0", "0.2", "0.4", "0.6"]);
        assert_eq!(ticks(&Axis::log(""), (30.0, 4000.0), 3), ["100", "1,000"]);
        for (low, high) in [(0.0, 1e-300), (0.0, 1e300), (-5.0, -4.0), (0.0, 17.3)] {
            let count = ticks(&Axis::linear(""), (low, high), 5).len();
            assert!((2..=12).contains(&count), "{count} ticks from {low} to {high}");
        }
    }

    #[test]
    fn a_range_holds_all_finite_values_and_is_never_empty() {
        let of = |axis: Axis, values: &[f64]| axis.range(values.iter().copied());
        let (low, high) = of(Axis::linear(""), &[1.0, f64::NAN, 3.0, f64::INFINITY]);
        assert_eq!((low, high), (0.0, 3.0));
        assert!((3.0..3.5).contains(&roomy((low, high), Scale::Linear).1));
        for values in [&[][..], &[0.0], &[7.0], &[-7.0], &[f64::NAN]] {
            for axis in [Axis::linear(""), Axis::log("")] {
                let (low, high) = of(axis, values);
                assert!(low < high && low.is_finite() && high.is_finite(), "{values:?}: {low} to {high}");
            }
        }
    }

    #[test]
    fn a_scale_reaches_from_end_to_end() {
        for (axis, least) in [(Axis::linear(""), 10.0), (Axis::log(""), 10.0)] {
            let placed = Placed { axis: &axis, range: (1.0, 100.0), pixels: (50.0, 250.0) };
            assert_eq!((placed.at(1.0), placed.at(100.0)), (50.0, 250.0));
            assert!(placed.at(least) > 50.0 && placed.at(least) < 250.0);
        }
        let down = Axis { scale: Scale::LogDown, ..Axis::log("") };
        let placed = Placed { axis: &down, range: (0.001, 1.0), pixels: (0.0, 90.0) };
        assert!((placed.at(0.1) - 30.0).abs() < 1e-9 && placed.at(1.0) == 0.0);
    }
}
