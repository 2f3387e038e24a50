//! Workloads on an sfs volume inside the program, in simulated time.

use super::bench::{Bench, HEADER};
use flashpath::expression::{Amount, parse_term};
use flashpath::report::RunResult;
use flashpath::run::{InputFault, Job, NoMachine, Outcome, Path, Place, RunError, RunOptions, Work, run};
use flashpath::task::CpuTable;
use flashpath::workload::files::file_workload;
use serde_json::Value;
use std::process::Command;

const SMALL: &str = "varmail:files=200,size=8K,threads=4,loops=20";
const DRIVE: &str = "sfs:segment=1M/page/nand:size=256M";

fn blocks(result: &Value, station: &str) -> u64 {
    let rows = result["ledger"].as_array().unwrap().iter();
    rows.filter(|row| row["station"] == station).map(|row| row["blocks"].as_f64().unwrap() as u64).sum()
}

#[test]
fn a_file_workload_runs_in_simulated_time_and_comes_out_the_same_each_time() {
    let run = || {
        let mut result = Bench::new().json(SMALL, DRIVE, &["--seed", "7"]);
        result.as_object_mut().unwrap().remove("seconds_wall").unwrap();
        result
    };
    let result = run();
    assert_eq!(result, run());
    assert!(result["seconds_simulated"].as_f64().unwrap() > 0.0);
    assert!(result["latency_ns"]["read"]["p50"].as_u64().unwrap() > 0);
    let (asked, sent, stored) = (blocks(&result, "workload"), blocks(&result, "sfs"), blocks(&result, "nand"));
    assert!(0 < asked && asked <= sent && sent <= stored, "{asked} {sent} {stored}");
    assert!(result["sums"].as_array().unwrap().iter().all(|sum| sum["holds"] == true));
    assert!(result["translation"]["events"]["syncs"].as_u64().unwrap() > 0);
}

#[test]
fn a_tree_takes_file_workloads_and_nothing_that_needs_a_device() {
    let bench = Bench::new();
    let result = bench.json(SMALL, "tree", &[]);
    assert!(blocks(&result, "tree") >= blocks(&result, "workload") && blocks(&result, "workload") > 0);
    assert!(result["sums"].as_array().unwrap().iter().all(|sum| sum["holds"] == true));
    for (arguments, expected) in [
        (&["mkfs", "tree"][..], "nothing of them outlasts a mount"),
        (&["fsck", "tree"], "nothing of them outlasts a mount"),
        (&["inspect", "tree"], "nothing of them outlasts a mount"),
        (&["run", SMALL, "--on", "tree/conv"], "nothing can stand below tree"),
    ] {
        let refused = bench.flashpath(arguments);
        assert!(refused.code != Some(0) && refused.stderr.contains(expected), "{arguments:?}: {refused:?}");
    }
}

/// Block workloads ran in a file of sfs alone, so that no run could compare it with another file system.
#[test]
fn a_block_workload_runs_in_a_file_of_every_file_system() {
    let bench = Bench::new();
    let requests =
        "0,0,write,1000,9000,data,0\n1,0,discard,4096,8192,data,0\n2,0,read,0,65536,data,0\n3,0,flush,0,0,data,0\n";
    bench.write("mixed.csv", format!("{HEADER}{requests}"));
    for path in ["ext/page/nand:size=256M", "ext:data=journal/conv:size=256M,timing=off", "tree"] {
        let shape = ["--size", "32M", "--utilization", "30%", "--fsync-every", "64", "--verify"];
        let written = bench.json("zipf:writes=64M", path, &shape);
        assert_eq!(blocks(&written, "workload"), 16384, "{path}");
        assert!(written["sums"].as_array().unwrap().iter().all(|sum| sum["holds"] == true), "{path}");
        let again = bench.json("zipf:writes=64M", path, &shape);
        assert_eq!(written["ledger"], again["ledger"], "{path}");
        let discards = bench.json("mixed.csv", path, &["--size", "32M", "--verify"]);
        assert_eq!(discards["workload"]["requests"], 4, "{path}");
    }
    let refused = bench.flashpath(&["run", "uniform:writes=1M", "--size", "1G", "--on", "ext/conv:size=64M"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("no space"), "{refused:?}");
}

#[test]
fn an_fsync_after_each_write_costs_a_summary_and_no_checkpoint() {
    let run = |more: &[&str]| {
        let arguments = [&["--size", "64M"], more].concat();
        Bench::new().json("uniform:writes=8M", "sfs:segment=1M/conv:size=256M", &arguments)
    };
    let (never, always) = (run(&[]), run(&["--fsync-every", "1"]));
    let events = |result: &Value, name: &str| result["translation"]["events"][name].as_u64().unwrap_or(0);
    assert_eq!(events(&never, "syncs"), 0);
    assert_eq!(events(&always, "syncs"), 2048);
    assert!(events(&always, "checkpoints") < 10, "{}", always["translation"]);
    let (sent_never, sent_always) = (blocks(&never, "sfs"), blocks(&always, "sfs"));
    assert!(sent_always < 2 * 2048 + 512 && sent_always > sent_never, "{sent_never} {sent_always}");
}

#[test]
fn unsupported_runs_on_a_volume_in_this_process_are_refused() {
    let bench = Bench::new();
    for (workload, more, expected) in [
        ("sh:true", &[][..], "flashpath mount"),
        (SMALL, &["--only", "setup"], "--only is for a directory that keeps its files"),
        (SMALL, &["--verify"], "--verify is for block workloads"),
        (SMALL, &["--size", "1G"], "--size is for block workloads"),
        ("varmail:files=200000", &[], "there is room for"),
        ("tokubench:files=2000000", &[], "the file system is full"),
    ] {
        let answer = bench.flashpath(&[&["run", workload, "--on", DRIVE], more].concat());
        assert!(answer.stderr.contains(expected), "{workload}: {answer:?}");
        assert_ne!(answer.code, Some(0));
    }
}

/// All file names were generated before the volume was made: that took 1.5 GiB, and then the volume was full.
#[test]
fn files_without_space_are_refused_before_they_are_planned() {
    let bench = Bench::new();
    let answer = Command::new("prlimit")
        .args(["--as=1073741824", env!("CARGO_BIN_EXE_flashpath")])
        .args(["run", "varmail:files=100000000", "--on", "sfs/page/nand:size=64M"])
        .current_dir(bench.path(""))
        .output()
        .unwrap();
    let error = String::from_utf8(answer.stderr).unwrap();
    assert_eq!(answer.status.code(), Some(2), "{error}");
    assert!(error.contains("begins with 799") && error.contains("files of 16.0 KiB"), "{error}");
    let room = error.split("there is room for ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    assert!((1000..4096).contains(&room.parse::<u64>().unwrap()), "{error}");
}

/// The mail load of SFS's figures 12 to 14, at a small scale, on a drive that is full before counting begins.
fn mail(layer: &str, options: RunOptions) -> Result<Outcome, RunError> {
    let drive = format!("{layer}:op=10%/nand:size=256M,page=4K,pages-per-block=128,timing=off");
    let path = Path::read(&format!("sfs:segment=256K,dirty=3M,discard=off/{drive}")).unwrap();
    let workload = file_workload(&parse_term("varmail:files=1536,loops=7000,threads=1").unwrap(), 7).unwrap();
    let job = Job { work: Work::Files(workload), place: Place::Path(&path), seed: 7, options };
    run(job, &NoMachine, &mut |_| true)
}

fn mail_counted(layer: &str, options: RunOptions) -> RunResult {
    let outcome = mail(layer, options).unwrap();
    assert!(outcome.failure.is_none(), "{layer}: {:?}", outcome.failure);
    outcome.result
}

const AGING: u64 = 80 << 20;

fn aged(dummy_bytes: u64) -> RunOptions {
    let precondition = Some(Amount::Bytes(AGING));
    RunOptions { dummy_bytes, precondition, cpu: Some(CpuTable::OFF), ..RunOptions::default() }
}

const FULL: u64 = 168 << 20;

fn blocks_of(result: &RunResult, station: &str) -> f64 {
    result.ledger.iter().filter(|row| row.station == station).map(|row| row.blocks).sum()
}

#[test]
fn mail_in_a_full_and_aged_volume_comes_out_the_same_each_time() {
    for layer in ["fast", "page"] {
        let result = mail_counted(layer, aged(FULL));
        let again = mail_counted(layer, aged(FULL));
        assert_eq!(serde_json::to_value(&result).unwrap(), serde_json::to_value(again).unwrap(), "{layer}");
        let (asked, sent) = (blocks_of(&result, "workload"), blocks_of(&result, "sfs"));
        let programmed = result.flash.programmed_pages as f64;
        assert!(0.0 < asked && asked < sent && sent <= programmed, "{layer}: {asked} {sent} {programmed}");
        // No new blocks are left: every program needs an erase.
        let erased = (result.flash.erased_blocks * result.flash.pages_per_block) as f64;
        assert!((erased / programmed - 1.0).abs() < 0.1, "{layer}: {erased} {programmed}");
    }
}

#[test]
fn a_fuller_volume_cleans_more_for_the_same_mail() {
    let (full, roomy) = (mail_counted("page", aged(FULL)), mail_counted("page", aged(0)));
    assert_eq!(full.workload.written_blocks, roomy.workload.written_blocks);
    let cleaned = |result: &RunResult| -> f64 {
        result
            .ledger
            .iter()
            .filter(|row| row.station == "sfs" && row.cause == "segment-cleaning")
            .map(|row| row.blocks)
            .sum()
    };
    assert!(cleaned(&full) > 2.0 * cleaned(&roomy), "{} {}", cleaned(&full), cleaned(&roomy));
}

#[test]
fn the_uncounted_part_belongs_to_the_same_workload() {
    let whole = mail_counted("page", RunOptions::default()).workload;
    let behind = mail_counted("page", aged(0)).workload;
    // 7000 loops append 16 KiB each.
    let share = 1.0 - AGING as f64 / f64::from(7000 * (16 << 10));
    let counted = behind.requests as f64 / whole.requests as f64;
    assert!((counted - share).abs() < 0.02, "{counted} {share}");
}

#[test]
fn a_run_with_nothing_left_to_count_or_no_space_says_so() {
    let spent =
        mail("page", RunOptions { precondition: Some(Amount::Bytes(1 << 30)), ..RunOptions::default() }).unwrap();
    assert!(matches!(spent.failure, Some(RunError::Input(InputFault::Spent(_)))), "{:?}", spent.failure);
    let full = mail("page", RunOptions { dummy_bytes: 1 << 30, ..RunOptions::default() });
    let error = full.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("space"), "{error}");
}

/// Uncounted writes of a file workload were for the library's callers alone; a run in a file left its size out of the
/// options that repeat it.
#[test]
fn a_run_in_a_volume_is_aged_and_says_how_to_repeat_it() {
    let bench = Bench::new();
    let aged = bench.json("varmail:files=200,size=8K,threads=1,loops=200", DRIVE, &["--precondition", "1M"]);
    assert!(aged["options"].as_array().unwrap().contains(&"--precondition 1M".into()), "{}", aged["options"]);
    let whole = bench.json("varmail:files=200,size=8K,threads=1,loops=200", DRIVE, &[]);
    let requests = |result: &Value| result["workload"]["requests"].as_u64().unwrap();
    assert!(requests(&aged) < requests(&whole), "{} {}", requests(&aged), requests(&whole));
    let more = ["--size", "64M", "--utilization", "50%", "--fsync-every", "7", "--limit", "100"];
    let in_a_file = bench.json("uniform", "sfs:segment=1M/conv:size=256M", &more);
    for option in ["--size 64M", "--utilization 0.5", "--fsync-every 7", "--limit 100"] {
        assert!(in_a_file["options"].as_array().unwrap().contains(&option.into()), "{}", in_a_file["options"]);
    }
}
