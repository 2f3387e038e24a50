//! Compares figures that were made again with those of an earlier run: stored results that the program no longer makes are
//! found before a reader does.

use flashpath::report::figure::{Figure, Reproduction};
use std::fmt;

/// The share by which a number may differ: one that is simulated is the same to the three digits that are printed.
const ALLOWED: f64 = 0.005;

/// A number that is not what it was.
#[derive(Debug, Clone, PartialEq)]
pub struct Moved {
    /// The figure, and the place in it.
    pub place: String,
    /// The number of the earlier run; `None` if it had none.
    pub earlier: Option<f64>,
    /// The number now; `None` if there is none any more.
    pub now: Option<f64>,
}

impl fmt::Display for Moved {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |value: Option<f64>| value.map_or("nothing".to_string(), |value| format!("{value}"));
        write!(formatter, "{}: {} was stored, {} is made now", self.place, number(self.earlier), number(self.now))?;
        match (self.earlier, self.now) {
            (Some(earlier), Some(now)) if earlier != 0.0 => {
                write!(formatter, " ({:+.1} %)", (now / earlier - 1.0) * 100.0)
            }
            _ => Ok(()),
        }
    }
}

/// The numbers and claims in which figures differ from those of an earlier run. A figure that only one of them has is not
/// compared.
pub fn moved(earlier: &[Reproduction], now: &[Reproduction]) -> Vec<Moved> {
    let mut moved = Vec::new();
    for figure in now.iter().flat_map(|paper| &paper.figures) {
        let same = earlier.iter().flat_map(|paper| &paper.figures).find(|other| other.name == figure.name);
        let Some(same) = same else { continue };
        let (earlier, now) = (numbers(same), numbers(figure));
        let value = |all: &[(String, Option<f64>)], place: &str| {
            all.iter().find(|(other, _)| other == place).and_then(|(_, value)| *value)
        };
        for (place, value_now) in &now {
            let value_then = value(&earlier, place);
            if !are_equal(value_then, *value_now) {
                moved.push(Moved { place: format!("{}: {place}", figure.name), earlier: value_then, now: *value_now });
            }
        }
        for (place, value_then) in &earlier {
            if value_then.is_some() && !now.iter().any(|(other, _)| other == place) {
                moved.push(Moved { place: format!("{}: {place}", figure.name), earlier: *value_then, now: None });
            }
        }
    }
    moved
}

fn are_equal(earlier: Option<f64>, now: Option<f64>) -> bool {
    match (earlier, now) {
        (Some(earlier), Some(now)) => (earlier - now).abs() <= ALLOWED * earlier.abs().max(now.abs()),
        (None, None) => true,
        _ => false,
    }
}

/// All numbers of a figure, each with its place.
fn numbers(figure: &Figure) -> Vec<(String, Option<f64>)> {
    let mut all = Vec::new();
    for panel in &figure.panels {
        for (group, values) in &panel.groups {
            for (series, value) in panel.series.iter().zip(values) {
                let places = [&panel.title, group, series].into_iter().filter(|part| !part.is_empty());
                all.push((places.map(String::as_str).collect::<Vec<_>>().join(", "), *value));
            }
        }
    }
    all.extend(figure.claims.iter().map(|claim| (format!("the claim '{}'", claim.says), claim.ours)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashpath::report::figure::Panel;

    fn results(value: Option<f64>, group: &str) -> Vec<Reproduction> {
        let groups = vec![(group.to_string(), vec![value])];
        let figure = Figure {
            name: "vma-fig2".to_string(),
            title: String::new(),
            unit: String::new(),
            about: String::new(),
            panels: vec![Panel::new("", vec!["journal".to_string()], groups)],
            claims: Vec::new(),
            made_by: None,
        };
        vec![Reproduction {
            paper: "vma".to_string(),
            title: String::new(),
            command: String::new(),
            scale: 1.0,
            seed: 1,
            conditions: Vec::new(),
            figures: vec![figure],
        }]
    }

    #[test]
    fn a_number_that_moved_is_named_with_its_place() {
        let stored = results(Some(508.0), "untar");
        let said = |now: &[Reproduction]| moved(&stored, now).iter().map(Moved::to_string).collect::<Vec<_>>();
        assert!(said(&results(Some(509.0), "untar")).is_empty());
        assert_eq!(
            said(&results(Some(2340.0), "untar")),
            ["vma-fig2: untar, journal: 508 was stored, 2340 is made now (+360.6 %)"]
        );
        assert_eq!(said(&results(None, "untar")), ["vma-fig2: untar, journal: 508 was stored, nothing is made now"]);
        assert_eq!(
            said(&results(Some(508.0), "compile")),
            [
                "vma-fig2: compile, journal: nothing was stored, 508 is made now",
                "vma-fig2: untar, journal: 508 was stored, nothing is made now"
            ]
        );
    }
}
