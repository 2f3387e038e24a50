//! Rows of the comparison for the tenants of a device: what each asked for, and its latencies.

use super::row::{Better, Quantity, Row, make_row};
use super::{Percentiles, RunResult, TenantResult, number};
use crate::units::BLOCK_BYTES;

/// A class of requests of a tenant.
type OfClass = fn(&TenantResult) -> Option<&Percentiles>;

/// A rank of a distribution.
type Rank = fn(&Percentiles) -> u64;

/// The rows, by the names of tenants in the order in which they appear; none if no workload has several queues.
pub fn rows(results: &[RunResult]) -> Vec<Row> {
    let mut names: Vec<&str> = Vec::new();
    for tenant in results.iter().flat_map(|result| &result.tenants) {
        if !names.contains(&tenant.name.as_str()) {
            names.push(&tenant.name);
        }
    }
    names.into_iter().flat_map(|name| rows_of(results, name)).collect()
}

fn rows_of(results: &[RunResult], name: &str) -> Vec<Row> {
    let row = |label: &str, better: Better, of: &dyn Fn(&TenantResult) -> Quantity| {
        let tenant = |result: &'_ RunResult| result.tenants.iter().find(|tenant| tenant.name == name).and_then(of);
        make_row(results, format!("{name}, {label}"), better, &tenant)
    };
    let blocks = |blocks: u64| (blocks > 0).then(|| (blocks * BLOCK_BYTES) as f64).map(|b| (number::bytes(b), b));
    let mut rows = vec![
        row("requests", Better::Neither, &|tenant| Some((number::count(tenant.requests), tenant.requests as f64))),
        row("read", Better::Neither, &|tenant| blocks(tenant.read_blocks)),
        row("written", Better::Neither, &|tenant| blocks(tenant.written_blocks)),
        row("discarded", Better::Neither, &|tenant| blocks(tenant.discarded_blocks)),
        row("MiB/s", Better::Higher, &|tenant| {
            tenant.throughput_mib_s.map(|speed| (number::three_digits(speed), speed))
        }),
    ];
    let classes: [(&str, OfClass); 2] = [
        ("read", |tenant| tenant.latency_ns.as_ref()?.read.as_ref()),
        ("write", |tenant| tenant.latency_ns.as_ref()?.write.as_ref()),
    ];
    for (class, of_class) in classes {
        let ranks: [(&str, Rank); 4] =
            [("p50", |p| p.p50), ("p99", |p| p.p99), ("p99.9", |p| p.p999), ("max", |p| p.max)];
        for (rank, of) in ranks {
            rows.push(row(&format!("{class} {rank}"), Better::Lower, &|tenant| {
                of_class(tenant).map(of).map(|ns| (number::latency(ns), ns as f64))
            }));
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn each_tenant_has_rows_and_a_workload_with_one_queue_has_none() {
        let tenant = |name: &str, written_blocks| TenantResult {
            name: name.to_string(),
            queue_depth: 4,
            requests: written_blocks,
            read_blocks: 0,
            written_blocks,
            discarded_blocks: 0,
            throughput_mib_s: Some(1.5),
            latency_ns: None,
        };
        let mut with_tenants = sample::page_level("page", 1);
        with_tenants.tenants = vec![tenant("log", 1024), tenant("table", 0)];
        let rows = rows(&[with_tenants, sample::page_level("page", 1)]);
        let shown: Vec<(&str, &str)> = rows
            .iter()
            .filter(|row| !row.is_empty())
            .map(|row| (row.label.as_str(), row.cells[0].text.as_str()))
            .collect();
        let expected = [
            ("log, requests", "1,024"),
            ("log, written", "4.00 MiB"),
            ("log, MiB/s", "1.50"),
            ("table, requests", "0"),
            ("table, MiB/s", "1.50"),
        ];
        assert_eq!(shown, expected);
        assert!(rows.iter().all(|row| row.cells[1].text == number::NONE));
    }
}
