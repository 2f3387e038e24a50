//! Results in the text format of OpenMetrics 1.0, for what stores and draws metrics: a run's numbers are gauges with the path as a
//! label.

use super::{Percentiles, RunResult};
use std::fmt::Write;

/// The text, which a line `# EOF` ends.
struct Page(String);

/// A label and its value.
type Labels<'a> = &'a [(&'a str, &'a str)];

impl Page {
    fn family(&mut self, name: &str, unit: Option<&str>, help: &str) {
        let mut line = |text: String| self.0.push_str(&text);
        line(format!("# TYPE {name} gauge\n"));
        if let Some(unit) = unit {
            line(format!("# UNIT {name} {unit}\n"));
        }
        line(format!("# HELP {name} {help}\n"));
    }

    fn sample(&mut self, name: &str, result: &RunResult, labels: Labels, value: f64) {
        let own = [("path", result.label())];
        let all: Vec<String> =
            own.iter().chain(labels).map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "{name}{{{}}} {value}", all.join(","));
    }

    /// A family with one sample of each result that has the number.
    fn gauge(
        &mut self,
        (name, unit, help): (&str, Option<&str>, &str),
        results: &[RunResult],
        value: impl Fn(&RunResult) -> Option<f64>,
    ) {
        if results.iter().all(|result| value(result).is_none()) {
            return;
        }
        self.family(name, unit, help);
        for result in results {
            if let Some(value) = value(result) {
                self.sample(name, result, &[], value);
            }
        }
    }
}

/// A label's value: backslashes, quotes and line ends are escaped.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// The numbers of all results.
pub fn open_metrics(results: &[RunResult]) -> String {
    let mut page = Page(String::new());
    page.family("flashpath_run_info", None, "A run: its path with all options, its workload and its seed.");
    for result in results {
        let seed = result.seed.to_string();
        let labels = [("in_full", &*result.path_in_full), ("workload", &*result.workload.name), ("seed", &*seed)];
        page.sample("flashpath_run_info", result, &labels, 1.0);
    }
    let help = "Warnings of a run: what they say may void its numbers.";
    page.gauge(("flashpath_run_warnings", None, help), results, |result| Some(result.warnings.len() as f64));
    let help = "1 if the run was interrupted.";
    page.gauge(("flashpath_run_interrupted", None, help), results, |r| Some(f64::from(u8::from(r.interrupted))));
    let name = "flashpath_write_amplification";
    page.family(
        name,
        None,
        "Bytes stored by all media over bytes written: by the host, in the steady state, by applications.",
    );
    for result in results {
        let amplification = &result.write_amplification;
        let all = [
            ("total", amplification.total),
            ("steady", amplification.steady),
            ("application", amplification.application),
        ];
        for (of, value) in all.into_iter().filter_map(|(of, value)| Some((of, value?))) {
            page.sample(name, result, &[("of", of)], value);
        }
    }
    let name = "flashpath_blocks";
    page.family(name, None, "Blocks of 4 KiB that each station passed on, or stored.");
    for result in results {
        for row in &result.ledger {
            let labels = [
                ("station", &*row.station),
                ("cause", &*row.cause),
                ("origin", &*row.origin),
                ("content", &*row.content),
            ];
            page.sample(name, result, &labels, row.blocks);
        }
    }
    let name = "flashpath_flash_operations";
    page.family(name, None, "Pages programmed and read by flash, and blocks erased.");
    for result in results.iter().filter(|result| result.flash.blocks > 0) {
        let flash = &result.flash;
        for (operation, count) in
            [("program", flash.programmed_pages), ("read", flash.read_pages), ("erase", flash.erased_blocks)]
        {
            page.sample(name, result, &[("operation", operation)], count as f64);
        }
    }
    let help = "Erases of the most worn block, since the flash was new.";
    let of_flash = |result: &RunResult| (result.flash.blocks > 0).then(|| f64::from(result.wear.erase_count_max));
    page.gauge(("flashpath_most_erases", None, help), results, of_flash);
    let help = "Bytes that the host writes until the flash is worn out, with even wear.";
    let lifetime = |result: &RunResult| result.wear.lifetime_host_tib.map(|tib| tib * (1u64 << 40) as f64);
    page.gauge(("flashpath_lifetime_host_bytes", Some("bytes"), help), results, lifetime);
    let help = "Simulated time.";
    page.gauge(("flashpath_simulated_seconds", Some("seconds"), help), results, |result| result.seconds_simulated);
    let name = "flashpath_latency_seconds";
    page.family(name, Some("seconds"), "Latencies of requests, by class and quantile, in simulated time.");
    for result in results {
        for (class, latency) in result.latency_ns.iter().flat_map(|latencies| latencies.classes()) {
            let Percentiles { p50, p99, p999, max, .. } = latency;
            for (quantile, ns) in [("0.5", p50), ("0.99", p99), ("0.999", p999), ("1", max)] {
                page.sample(name, result, &[("class", class), ("quantile", quantile)], *ns as f64 / 1e9);
            }
        }
    }
    page.0.push_str("# EOF\n");
    page.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn each_number_is_a_line_with_its_path_and_families_are_not_mixed() {
        let results = [sample::page_level("page/nand", 1), sample::without_timing("dftl/\"nand\"", 1)];
        let text = open_metrics(&results);
        assert!(text.ends_with("# EOF\n") && text.matches("# EOF").count() == 1);
        assert!(text.contains("flashpath_run_info{path=\"dftl/\\\"nand\\\"\",in_full="), "{text}");
        let latency = |line: &&str| line.starts_with("flashpath_latency_seconds{");
        assert!(text.lines().filter(latency).all(|line| line.contains("path=\"page/nand\"")), "{text}");
        let (mut family, mut ended) = (String::new(), std::collections::BTreeSet::new());
        for line in text.lines().filter(|line| *line != "# EOF") {
            let words: Vec<&str> = line.split_whitespace().collect();
            if line.starts_with("# TYPE") {
                assert!(ended.insert(std::mem::replace(&mut family, words[2].to_string())), "{line}");
            } else if line.starts_with('#') {
                assert_eq!(words[2], family, "{line}");
            } else {
                assert!(line.starts_with(&format!("{family}{{")), "{line}");
                assert!(words.last().unwrap().parse::<f64>().is_ok(), "{line}");
            }
        }
    }
}
