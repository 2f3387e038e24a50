//! Runs that stop early.

use super::bench::{Answer, Bench, DRIVE};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The run begins right after; it checks for an interrupt only after its first requests.
pub fn wait_until_it_catches_interrupts(process: u32) {
    let status = format!("/proc/{process}/status");
    for _ in 0..500 {
        std::thread::sleep(Duration::from_millis(20));
        // Without /proc, the pause must suffice.
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let mask = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        if mask.is_some_and(|mask| mask & 1 << (INTERRUPT - 1) != 0) {
            return;
        }
    }
}

const INTERRUPT: u32 = 2;

#[test]
fn an_interrupt_ends_a_run_with_its_results_so_far() {
    let bench = Bench::new();
    let lasting = format!("{DRIVE},endurance=10000000");
    let endless = ["run", "uniform:writes=1000000x", "--on", &lasting, "--json", "r.json"];
    let child = bench.command(&endless).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until_it_catches_interrupts(child.id());
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let answer = Answer::of(child.wait_with_output().unwrap());
    assert_eq!(answer.code, Some(130), "{answer:?}");
    assert!(answer.stdout.contains("was interrupted") && answer.stdout.contains("pages programmed"), "{answer:?}");
    let json = bench.result("r.json");
    assert_eq!(json["interrupted"], true);
    assert!(json["workload"]["requests"].as_u64().unwrap() > 0);
}

/// The copies of the collection whose erase failed were counted by the flash alone.
#[test]
fn the_sums_of_a_drive_that_wears_out_in_a_collection_hold() {
    for layer in ["page", "dftl", "fast", "superblock"] {
        let path = format!("{layer}/nand:size=128M,endurance=3,timing=off");
        let answer = Bench::new().flashpath(&["run", "uniform:writes=1000x", "--fill", "--on", &path]);
        assert_eq!(answer.code, Some(1), "{answer:?}");
        assert!(answer.stderr.contains("the drive is worn out"), "{answer:?}");
        assert!(answer.stdout.contains("all hold"), "{answer:?}");
    }
}

#[test]
fn a_drive_that_wears_out_fails_with_its_results_so_far() {
    let path = "page/nand:size=64M,endurance=3,timing=off";
    let answer = Bench::new().flashpath(&["run", "uniform:writes=50x", "--on", path, "--on", DRIVE]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert!(answer.stderr.contains(&format!("error: {path}: the drive is worn out")), "{answer:?}");
    assert!(answer.stdout.contains("pages programmed") && answer.stdout.contains(DRIVE), "{answer:?}");
}

#[test]
fn a_reader_that_goes_away_is_not_an_error() {
    let bench = Bench::new();
    for arguments in [&["layers"][..], &["run", "uniform", "--on", DRIVE, "--quiet", "--json", "-"]] {
        let mut child = bench.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        // The reader closes the pipe while the program still has output.
        BufReader::with_capacity(16, child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(!line.is_empty());
        let answer = Answer::of(child.wait_with_output().unwrap());
        assert_eq!((answer.code, answer.stderr.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn results_that_cannot_be_printed_are_an_error() {
    let full = std::fs::File::create("/dev/full").unwrap();
    let output = Bench::new().command(&["run", "uniform", "--on", DRIVE]).stdout(full).output().unwrap();
    let answer = Answer::of(output);
    assert_eq!(answer.code, Some(2));
    assert!(answer.stderr.contains("cannot write standard output"));
}
