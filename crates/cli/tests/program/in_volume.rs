//! Workloads in a volume of sfs inside the program: in simulated time.

use super::bench::Bench;
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
