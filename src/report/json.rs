//! Results as JSON, with the stable names of [`RunResult`].

use super::RunResult;

/// One object for one result, else an array; indented. Numbers that are not finite are `null`.
pub fn json(results: &[RunResult]) -> String {
    let text = match results {
        [only] => serde_json::to_string_pretty(only),
        several => serde_json::to_string_pretty(several),
    };
    text.expect("a result holds only text, numbers and lists")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::report::sample;

    /// The stable names, as JSON pointers.
    const PROMISED: [&str; 33] = [
        "/path",
        "/seed",
        "/seconds_wall",
        "/seconds_simulated",
        "/workload/name",
        "/workload/requests",
        "/workload/read_blocks",
        "/workload/written_blocks",
        "/workload/discarded_blocks",
        "/workload/rejected_lines",
        "/flash/programmed_pages",
        "/flash/read_pages",
        "/flash/erased_blocks",
        "/flash/effective_overprovisioning",
        "/write_amplification/total",
        "/write_amplification/steady",
        "/write_amplification/steady_from_fraction",
        "/ledger/0/station",
        "/ledger/0/cause",
        "/ledger/0/origin",
        "/ledger/0/content",
        "/ledger/0/blocks",
        "/wear/erase_count_min",
        "/wear/erase_count_mean",
        "/wear/erase_count_max",
        "/wear/lifetime_host_tib",
        "/latency_ns/read/p50",
        "/latency_ns/read/p99",
        "/latency_ns/write/p50",
        "/latency_ns/write/p99",
        "/latency_ns/write/p999",
        "/latency_ns/write/max",
        "/throughput_mib_s",
    ];

    fn parsed(results: &[RunResult]) -> Value {
        serde_json::from_str(&json(results)).unwrap()
    }

    #[test]
    fn one_path_is_an_object_with_every_promised_name() {
        let value = parsed(&[sample::page_level("page/nand", 42)]);
        for pointer in PROMISED {
            assert!(value.pointer(pointer).is_some_and(|at| !at.is_null()), "{pointer}");
        }
    }

    #[test]
    fn several_paths_are_an_array_in_their_order() {
        let value = parsed(&[sample::page_level("page/nand", 1), sample::without_timing("dftl/nand", 1)]);
        assert_eq!(value.as_array().unwrap().len(), 2);
        assert_eq!(value[1]["path"], "dftl/nand");
        assert!(value[1]["latency_ns"].is_null());
        assert_eq!(parsed(&[]), Value::Array(Vec::new()));
    }

    #[test]
    fn numbers_that_are_not_finite_are_null() {
        let mut result = sample::page_level("page/nand", 42);
        result.write_amplification.total = Some(f64::NAN);
        result.seconds_wall = f64::INFINITY;
        result.windows[0].write_amplification = f64::NEG_INFINITY;
        let value = parsed(&[result]);
        assert!(value["write_amplification"]["total"].is_null());
        assert!(value["seconds_wall"].is_null());
        assert!(value["windows"][0]["write_amplification"].is_null());
    }
}
