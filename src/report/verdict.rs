//! The life of the drive in a comparison, in sentences: the numbers alone mislead where a journal counts as
//! writes of the host.

use super::RunResult;
use super::number;

/// Lives that differ by less are the same.
const ALIKE: f64 = 0.005;

/// The wear of a run's drive, by what applications write.
#[derive(Clone, Debug)]
pub(super) struct Life {
    /// The name of the run.
    pub name: String,
    /// TiB of applications until the drive is worn out.
    pub application_tib: f64,
    /// TiB of the host until then, if it is known.
    pub host_tib: Option<f64>,
}

/// Sentences on the lives of runs that can be compared; none if they are alike.
pub(super) fn sentences(results: &[RunResult]) -> Vec<String> {
    let life = |result: &RunResult| {
        let wear = &result.wear;
        let application_tib = wear.lifetime_application_tib.filter(|tib| *tib > 0.0 && !result.interrupted)?;
        Some(Life { name: result.label().to_string(), application_tib, host_tib: wear.lifetime_host_tib })
    };
    of_lives(&results.iter().filter_map(life).collect::<Vec<_>>())
}

/// The same, of these lives.
pub(super) fn of_lives(lives: &[Life]) -> Vec<String> {
    let Some(longest) = lives.iter().max_by(|a, b| a.application_tib.total_cmp(&b.application_tib)) else {
        return Vec::new();
    };
    let shorter: Vec<&Life> =
        lives.iter().filter(|life| longest.application_tib > life.application_tib * (1.0 + ALIKE)).collect();
    let mut sentences: Vec<String> = shorter
        .iter()
        .map(|life| {
            let times = longest.application_tib / life.application_tib;
            format!(
                "{} wears its drive out {} times as fast as {}, for each byte that applications write",
                life.name,
                number::decimal(times, 2),
                longest.name
            )
        })
        .collect();
    // Bytes of the host for each byte of an application.
    let host = |life: &Life| life.host_tib.map(|tib| tib / life.application_tib);
    let of_host: Vec<(&Life, f64)> = lives.iter().filter_map(|life| Some((life, host(life)?))).collect();
    let most = of_host.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let least = of_host.iter().min_by(|a, b| a.1.total_cmp(&b.1));
    if let (Some((most, high)), Some((least, low))) = (most, least)
        && *high > low * (1.0 + 2.0 * ALIKE)
    {
        sentences.push(format!(
            "the host bytes differ: {} has {} for each byte that applications write, and {} {}; lifetimes in host writes do not compare",
            most.name,
            number::decimal(*high, 2),
            least.name,
            number::decimal(*low, 2)
        ));
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    fn run(name: &str, application_tib: f64, host_tib: f64) -> RunResult {
        let mut result = sample::page_level(name, 1);
        result.wear.lifetime_application_tib = Some(application_tib);
        result.wear.lifetime_host_tib = Some(host_tib);
        result
    }

    /// A journal of data wrote each block twice, and the page said that the drive lives as long: 0.186 and 0.187 TiB of host
    /// writes.
    #[test]
    fn a_journal_that_counts_as_host_writes_is_told_by_what_applications_write() {
        let said = sentences(&[run("ordered", 0.150, 0.186), run("journal", 0.0909, 0.187)]);
        assert_eq!(said.len(), 2);
        assert!(said[0].starts_with("journal wears its drive out 1.65 times as fast as ordered"), "{said:?}");
        assert!(said[1].contains("journal has 2.06 for each byte") && said[1].contains("ordered 1.24"), "{said:?}");
    }

    #[test]
    fn runs_that_are_alike_or_unknown_are_not_judged() {
        assert!(sentences(&[run("a", 0.15, 0.18), run("b", 0.1501, 0.18)]).is_empty());
        assert!(sentences(&[run("a", 0.15, 0.18)]).is_empty());
        assert!(sentences(&[sample::page_level("a", 1), sample::journaled("b", 1)]).is_empty());
        let interrupted = RunResult { interrupted: true, ..run("b", 0.01, 0.18) };
        assert!(sentences(&[run("a", 0.15, 0.18), interrupted]).is_empty());
    }
}
