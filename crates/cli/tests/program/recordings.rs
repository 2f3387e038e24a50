//! Recordings of mounted volumes: what programs did in a mount is done again in simulation.

use super::bench::Bench;
use super::serve::{Served, bench_to_mount_in};
use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::time::Duration;

const PATH: &str = "sfs/conv:size=64M,timing=off";
const IMAGE: &str = "sfs/conv:image=volume.img,size=64M,timing=off";

fn replayed(bench: &Bench, path: &str) -> Value {
    let answer = bench.flashpath(&["run", "r.fpcalls", "--on", path, "--json", "r.json", "--quiet"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let text = fs::read_to_string(bench.path("r.json")).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()[0].take()
}

/// The number of calls of a class.
fn count(result: &Value, class: &str) -> u64 {
    result["latency_ns"][class]["count"].as_u64().unwrap_or(0)
}

#[test]
fn the_calls_of_a_mount_are_recorded_and_replayed() {
    let Some(bench) = bench_to_mount_in() else { return };
    assert_eq!(bench.flashpath(&["mkfs", IMAGE]).code, Some(0));
    let place = bench.path("m");
    // A file exists before the recording begins.
    let served = Served::mounted(&bench, &["mount", IMAGE, "m"]);
    fs::create_dir(place.join("old")).unwrap();
    fs::write(place.join("old/file"), vec![1; 50_000]).unwrap();
    served.end();

    let served = Served::mounted(&bench, &["mount", IMAGE, "m", "--record", "r.fpcalls"]);
    let old = OpenOptions::new().read(true).write(true).open(place.join("old/file")).unwrap();
    old.write_all_at(&[2; 8192], 4096).unwrap();
    old.sync_data().unwrap();
    fs::create_dir(place.join("d")).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let place = &place;
            scope.spawn(move || {
                let file = File::create(place.join(format!("d/{thread}"))).unwrap();
                for at in 0..10 {
                    file.write_all_at(&[thread; 4096], at * 4096).unwrap();
                    file.sync_all().unwrap();
                }
            });
        }
    });
    std::thread::sleep(Duration::from_millis(300));
    fs::rename(place.join("d/0"), place.join("d/new")).unwrap();
    fs::hard_link(place.join("d/1"), place.join("d/other")).unwrap();
    let removed = File::options().read(true).write(true).open(place.join("d/2")).unwrap();
    fs::remove_file(place.join("d/2")).unwrap();
    removed.write_all_at(&[9; 4096], 0).unwrap();
    removed.set_len(100).unwrap();
    drop((old, removed));
    assert_eq!(served.end(), "");

    let result = replayed(&bench, "sfs/conv:size=64M");
    let warnings = result["warnings"].as_array().unwrap();
    assert!(warnings.len() == 1 && warnings[0].as_str().unwrap().contains("less than a segment"), "{warnings:?}");
    let files = &result;
    assert_eq!(files["bytes"]["written"], 8192 + 3 * 10 * 4096 + 4096);
    let counted =
        ["fsync", "create", "mkdir", "rename", "link", "unlink", "truncate"].map(|class| count(&result, class));
    assert_eq!(counted, [31, 3, 1, 1, 1, 1, 1]);
    assert!(files["threads"].as_u64() >= Some(4), "{}", files["threads"]);
    let seconds = files["seconds_counted"].as_f64().unwrap();
    assert!((0.3..5.0).contains(&seconds), "{seconds} s: the pause is replayed");
    assert_eq!(result["translation"]["events"]["syncs"], 32, "the fsyncs, and the end");
    // The same again, and on another file system.
    let again = replayed(&bench, "sfs/conv:size=64M");
    assert_eq!((&again["ledger"], &again["latency_ns"]), (&result["ledger"], &result["latency_ns"]));
    let ext = replayed(&bench, "ext/conv:size=64M");
    assert_eq!(ext["workload"]["written_blocks"], result["workload"]["written_blocks"]);
}

#[test]
fn what_is_no_whole_recording_is_refused_with_its_place() {
    let Some(bench) = bench_to_mount_in() else { return };
    let served = Served::mounted(&bench, &["mount", PATH, "m", "--record", "r.fpcalls"]);
    (0..50).for_each(|number| fs::write(bench.path("m").join(format!("file {number}")), "x").unwrap());
    served.end();
    let whole = fs::read(bench.path("r.fpcalls")).unwrap();
    bench.refuses(&["mount", PATH, "m", "--record", "r.fpcalls"], &["cannot begin the recording", "remove it"]);
    for option in ["--limit=5", "--precondition=1M"] {
        bench.refuses(&["run", "r.fpcalls", "--on", PATH, option], &["cannot divide a recording"]);
    }
    bench.refuses(&["run", "r.fpcalls", "--on", PATH, "--repeat=9999"], &["4096 replays are the most"]);
    bench.refuses(&["run", "r.fpcalls", "--on", PATH, "--addresses=wrap"], &["--addresses is for traces"]);
    fs::write(bench.path("r.fpcalls"), &whole[..whole.len() - 9]).unwrap();
    bench.refuses(&["run", "r.fpcalls", "--on", PATH], &["r.fpcalls: call ", "at byte ", "without its end"]);
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 4;
    fs::write(bench.path("r.fpcalls"), flipped).unwrap();
    bench.refuses(&["run", "r.fpcalls", "--on", PATH], &["r.fpcalls: call ", "at byte "]);
}
