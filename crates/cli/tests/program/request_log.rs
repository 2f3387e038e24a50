//! The log of requests: `run --log`.

use super::bench::{Answer, Bench, DRIVE, TIMED};
use super::stopped::wait_until_it_catches_interrupts;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use std::fs::File;
use std::process::{Command, Stdio};

#[test]
fn a_log_has_a_row_for_each_request_of_the_result_and_nothing_else_is_left() {
    let bench = Bench::new();
    let result = bench.json("uniform:writes=2x,reads=20%", TIMED, &["--precondition", "1x", "--log", "log.parquet"]);
    assert_eq!(bench.files(), ["log.parquet"]);
    let file = SerializedFileReader::new(File::open(bench.path("log.parquet")).unwrap()).unwrap();
    let rows: Vec<_> = file.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    assert_eq!(rows.len() as u64, result["workload"]["requests"], "none of the preconditioning");
    let max = rows.iter().filter(|row| row.get_string(3).unwrap() == "write");
    let max = max.map(|row| row.get_ulong(1).unwrap() - row.get_ulong(0).unwrap()).max();
    assert_eq!(max, result["latency_ns"]["write"]["max"].as_u64());
}

#[test]
fn a_log_of_files_and_of_an_untimed_drive_are_written_too() {
    let bench = Bench::new();
    for (workload, path) in [("uniform", DRIVE), ("varmail:files=50,loops=50", "sfs/page/nand:size=64M")] {
        let result = bench.json(workload, path, &["--log", "log.parquet"]);
        let file = SerializedFileReader::new(File::open(bench.path("log.parquet")).unwrap()).unwrap();
        assert_eq!(file.metadata().file_metadata().num_rows() as u64, result["workload"]["requests"], "{path}");
    }
}

/// A log is complete when its footer is written: that of a run of hours must be, too, when the run is interrupted.
#[test]
fn a_log_of_an_interrupted_run_has_the_requests_so_far() {
    let bench = Bench::new();
    let lasting = format!("{DRIVE},endurance=10000000");
    let endless = ["run", "uniform:writes=1000000x", "--on", &lasting, "--json", "r.json", "--log", "log.parquet"];
    let child = bench.command(&endless).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until_it_catches_interrupts(child.id());
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let answer = Answer::of(child.wait_with_output().unwrap());
    assert_eq!(answer.code, Some(130), "{answer:?}");
    let file = SerializedFileReader::new(File::open(bench.path("log.parquet")).unwrap()).unwrap();
    let rows = file.metadata().file_metadata().num_rows() as u64;
    assert_eq!(rows, bench.result("r.json")["workload"]["requests"]);
    assert!(rows > 0);
}

/// A run may take hours, and its log must not be lost at the end.
#[test]
fn a_log_that_could_not_be_written_is_refused_before_the_run_and_leaves_nothing() {
    let bench = Bench::new();
    fn run<'a>(more: &[&'a str]) -> Vec<&'a str> {
        [&["run", "uniform:writes=1000x", "--on", DRIVE][..], more].concat()
    }
    bench.refuses(&run(&["--log", "-"]), &["--log cannot be written to standard output"]);
    bench.refuses(&run(&["--log", "no/log.parquet"]), &["no/log.parquet"]);
    bench.refuses(&run(&["--log", "."]), &["directory"]);
    bench.refuses(&run(&["--log", "a", "--json", "a"]), &["both write a"]);
    bench.refuses(
        &run(&["--log", "a", "--on", TIMED]),
        &["--log writes the requests of one path", "each path on its own"],
    );
    let directory = ["run", "varmail", "--in", ".", "--log", "a"];
    bench.refuses(&directory, &["--log is for simulated runs", "leave it out"]);
    let kernel = ["run", "varmail", "--on", "kernel-ext4/conv:size=1G", "--log", "a"];
    bench.refuses(&kernel, &["--log is for simulated runs"]);
    let program = ["run", "sh:true", "--on", "kernel-ext4/conv:size=1G", "--log", "a"];
    bench.refuses(&program, &["--log is for workloads of this program"]);
    assert!(bench.files().is_empty(), "{:?}", bench.files());
}

#[test]
fn an_earlier_log_stays_until_the_new_one_is_complete() {
    let bench = Bench::new();
    bench.write("log.parquet", "earlier");
    let answer = bench.flashpath(&["run", "nothing.csv", "--on", DRIVE, "--log", "log.parquet"]);
    assert_eq!(answer.code, Some(2), "{answer:?}");
    assert_eq!(std::fs::read_to_string(bench.path("log.parquet")).unwrap(), "earlier");
    assert_eq!(bench.files(), ["log.parquet"]);
}
