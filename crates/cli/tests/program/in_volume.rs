//! Workloads in a volume of sfs inside the program: in simulated time.

use super::bench::Bench;
use flashpath::expression::parse_term;
use flashpath::report::RunResult;
use flashpath::run::{Path, VolumeOptions, VolumeOutcome, VolumeRunError, run_in_volume};
use flashpath::workload::files::file_workload;
use serde_json::Value;

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
fn what_a_volume_in_this_process_cannot_run_is_refused() {
    let bench = Bench::new();
    for (workload, more, said) in [
        ("sh:true", &[][..], "flashpath mount"),
        (SMALL, &["--verify"], "--verify is for block workloads"),
        (SMALL, &["--size", "1G"], "--size is for block workloads"),
        ("varmail:files=200000", &[], "the file system is full"),
    ] {
        let answer = bench.flashpath(&[&["run", workload, "--on", DRIVE], more].concat());
        assert!(answer.stderr.contains(said), "{workload}: {answer:?}");
        assert_ne!(answer.code, Some(0));
    }
}

/// The mail of SFS's figures 12 to 14, at a small scale: a volume that is taken to 85 %, and beneath it a drive.
fn mail(layer: &str, options: VolumeOptions) -> VolumeOutcome {
    let drive = format!("{layer}:op=10%/nand:size=256M,page=4K,pages-per-block=128,timing=off");
    let path = Path::read(&format!("sfs:segment=256K,dirty=3M,discard=off/{drive}")).unwrap();
    let workload = file_workload(&parse_term("varmail:files=1536,loops=7000,threads=1").unwrap(), 7).unwrap();
    run_in_volume(&path, workload, &options, &mut |_| true).unwrap()
}

const AGED: VolumeOptions = VolumeOptions { limit: None, dummy_bytes: 168 << 20, precondition_bytes: 80 << 20 };

fn blocks_of(result: &RunResult, station: &str) -> f64 {
    result.ledger.iter().filter(|row| row.station == station).map(|row| row.blocks).sum()
}

#[test]
fn mail_in_a_volume_that_was_filled_and_aged_comes_out_the_same_each_time() {
    for layer in ["fast", "page"] {
        let run = || {
            let outcome = mail(layer, AGED);
            assert!(outcome.failure.is_none(), "{layer}: {:?}", outcome.failure);
            outcome.result
        };
        let result = run();
        assert_eq!(serde_json::to_value(&result).unwrap(), serde_json::to_value(run()).unwrap(), "{layer}");
        let (asked, sent) = (blocks_of(&result, "workload"), blocks_of(&result, "sfs"));
        let programmed = result.flash.programmed_pages as f64;
        println!("{layer}: asked {asked} sent {sent} programmed {programmed} erased {} {}", result.flash.erased_blocks, result.workload.requests);
        assert!(0.0 < asked && asked < sent && sent <= programmed, "{layer}: {asked} {sent} {programmed}");
        // The drive has no new blocks left: it erases one for each that it programs.
        let erased = (result.flash.erased_blocks * result.flash.pages_per_block) as f64;
        assert!((erased / programmed - 1.0).abs() < 0.1, "{layer}: {erased} {programmed}");
    }
}
