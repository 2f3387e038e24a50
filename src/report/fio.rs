//! Results in the form of fio's JSON (`--output-format=json`), for the programs that read it: a job for each path, with reads and
//! writes, bandwidth, completion latencies and their percentiles.
//!
//! Times are simulated. What fio measures of a machine and a simulation does not have (CPU, submission, sizes of queues) is left
//! out. Beside fio's fields each job has `flashpath`: the path, its write amplification, and its warnings.

use super::{Environment, Percentiles, RunResult};
use crate::units::BLOCK_BYTES;
use serde_json::{Map, Value, json};

/// The percentiles that fio prints unless it is told others.
const PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

/// One document with a job for each result, as fio writes; indented.
pub fn fio_json(results: &[RunResult], environment: &Environment) -> String {
    let document = json!({
        "fio version": format!("{} {}", environment.program.name, environment.program.version),
        "global options": {},
        "jobs": results.iter().map(job).collect::<Vec<_>>(),
        "disk_util": [],
    });
    serde_json::to_string_pretty(&document).expect("it holds only text, numbers and lists")
}

fn job(result: &RunResult) -> Value {
    let latencies = result.latency_ns.as_ref();
    let of = |class: &str| latencies.and_then(|latencies| latencies.classes().get(class).copied());
    let (read, written) = moved_bytes(result);
    let runtime_ms = result.seconds_simulated.map_or(0.0, |seconds| seconds * 1e3);
    json!({
        "jobname": result.label(),
        "groupid": 0,
        "error": 0,
        "eta": 0,
        "elapsed": result.seconds_simulated.map_or(0, |seconds| seconds.ceil() as u64),
        "job options": options(result),
        "read": direction(read, runtime_ms, of("read")),
        "write": direction(written, runtime_ms, of("write")),
        "trim": direction(result.workload.discarded_blocks * BLOCK_BYTES, runtime_ms, of("discard")),
        "sync": { "total_ios": of("fsync").map_or(0, |fsync| fsync.count), "lat_ns": distribution(of("fsync")) },
        "job_runtime": runtime_ms.round() as u64,
        "flashpath": {
            "path": result.path_in_full,
            "workload": result.workload.name,
            "seed": result.seed,
            "write_amplification": result.write_amplification,
            "warnings": result.warnings,
            "interrupted": result.interrupted,
        },
    })
}

/// Bytes read and written: of files, where the workload is in files.
fn moved_bytes(result: &RunResult) -> (u64, u64) {
    match &result.files {
        Some(files) => (files.bytes.read, files.bytes.written),
        None => (result.workload.read_blocks * BLOCK_BYTES, result.workload.written_blocks * BLOCK_BYTES),
    }
}

/// The options of the command, by fio's names where fio has the option.
fn options(result: &RunResult) -> Value {
    let mut options = Map::new();
    options.insert("name".to_string(), result.label().into());
    options.insert("filename".to_string(), result.path.clone().into());
    for option in &result.options {
        if let Some((name, value)) = option.strip_prefix("--").and_then(|option| option.split_once(' ')) {
            let name = if name == "depth" { "iodepth" } else { name };
            options.insert(name.to_string(), value.into());
        }
    }
    Value::Object(options)
}

/// Reads or writes. fio counts bandwidth in KiB a second.
fn direction(bytes: u64, runtime_ms: f64, latencies: Option<&Percentiles>) -> Value {
    let seconds = runtime_ms / 1e3;
    let rate = |amount: f64| if seconds > 0.0 { amount / seconds } else { 0.0 };
    let requests = latencies.map_or(0, |latencies| latencies.count);
    let bandwidth = rate(bytes as f64);
    json!({
        "io_bytes": bytes,
        "io_kbytes": bytes >> 10,
        "bw_bytes": bandwidth.round() as u64,
        "bw": (bandwidth / 1024.0).round() as u64,
        "iops": rate(requests as f64),
        "runtime": if bytes > 0 { runtime_ms.round() as u64 } else { 0 },
        "total_ios": requests,
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": distribution(None),
        "clat_ns": with_percentiles(latencies),
        "lat_ns": distribution(latencies),
    })
}

fn distribution(latencies: Option<&Percentiles>) -> Value {
    match latencies {
        None => json!({ "min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0 }),
        Some(Percentiles { min, max, mean, stddev, count, .. }) => {
            json!({ "min": min, "max": max, "mean": mean, "stddev": stddev, "N": count })
        }
    }
}

/// A distribution with its percentiles, and the counts of its bins as fio's `json+` has them.
fn with_percentiles(latencies: Option<&Percentiles>) -> Value {
    let mut value = distribution(latencies);
    let Some(latencies) = latencies else { return value };
    let reaches = |percent: f64| {
        let reached = latencies.cumulative.iter().find(|(_, share)| *share >= percent / 100.0 - 1e-12);
        reached.map_or(latencies.max, |(ns, _)| *ns)
    };
    let percentiles = PERCENTILES.map(|percent| (format!("{percent:.6}"), Value::from(reaches(percent))));
    let mut before = 0;
    let bins = latencies.cumulative.iter().map(|(ns, share)| {
        let seen = (share * latencies.count as f64).round() as u64;
        let count = seen.saturating_sub(before);
        before = seen;
        (ns.to_string(), Value::from(count))
    });
    value["percentile"] = Value::Object(percentiles.into_iter().collect());
    value["bins"] = Value::Object(bins.collect());
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn a_path_is_a_job_with_the_numbers_of_its_result() {
        let results = [sample::page_level("page/nand", 1)];
        let text = fio_json(&results, &Environment::default());
        let document: Value = serde_json::from_str(&text).unwrap();
        let (job, result) = (&document["jobs"][0], &results[0]);
        assert_eq!(job["jobname"], "page/nand");
        let write = result.latency_ns.as_ref().unwrap().write.as_ref().unwrap();
        assert_eq!(job["write"]["io_bytes"], result.workload.written_blocks * 4096);
        assert_eq!(job["write"]["total_ios"], write.count);
        assert_eq!(job["write"]["clat_ns"]["percentile"]["50.000000"], write.p50);
        assert_eq!(job["write"]["clat_ns"]["mean"], write.mean);
        let bins = job["write"]["clat_ns"]["bins"].as_object().unwrap();
        assert_eq!(bins.values().map(|count| count.as_u64().unwrap()).sum::<u64>(), write.count);
        assert_eq!(job["flashpath"]["warnings"].as_array().unwrap().len(), result.warnings.len());
    }
}
