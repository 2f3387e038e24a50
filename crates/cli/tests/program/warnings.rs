//! Warnings of stations reach standard error, the live view, the metrics, fsck, inspect and the report.

use super::bench::Bench;
use super::serve::{Served, nbdsh, succeeds, wait_until};
use super::serve_watch::ask;

const NEW: &str = "dm-zoned:reserved=3/conv:image=A,size=64M+zns:image=B,size=160M,zone=4M";
const PATH: &str = "dm-zoned:idle=100ms/conv:image=A+zns:image=B";

/// An older copy of B beside a newer A: the server opened it without a warning, its blocks read as zeros, and fsck
/// reported it clean from then on.
#[test]
fn a_zns_image_that_is_older_than_its_volume_is_reported_everywhere_and_is_not_clean() {
    let bench = Bench::new();
    let Some(mut writer) = nbdsh(&bench) else { return };
    assert_eq!(bench.flashpath(&["mkfs", NEW]).code, Some(0));
    std::fs::copy(bench.path("B"), bench.path("older")).unwrap();
    let served = Served::nbd(&bench, PATH, &["--metrics", "metrics"]);
    succeeds(writer.args(["-c", "h.connect_uri('nbd+unix:///?socket=s'); h.pwrite(b'x' * 8192, 0); h.flush()"]));
    let page = || ask(&bench.path("metrics"), "GET /metrics HTTP/1.1\r\n\r\n");
    wait_until("reclaim has moved it", || page().contains("event=\"reclaims_to_a_sequential_zone\"} 1\n"));
    assert!(!page().contains("flashpath_warnings_total{"));
    served.end();
    std::fs::copy(bench.path("older"), bench.path("B")).unwrap();

    for _ in 0..2 {
        let checked = bench.flashpath(&["fsck", "-n", PATH]);
        assert!(checked.code == Some(4) && checked.stdout.contains("the device has lost them"), "{checked:?}");
        let looked_at = bench.flashpath(&["inspect", PATH]);
        assert!(looked_at.stdout.contains("warning: chunk 0: 2 blocks should lie beyond"), "{looked_at:?}");
        let served = Served::nbd(&bench, PATH, &["--metrics", "metrics", "--stats", "0.1"]);
        let line = "flashpath_warnings_total{station=\"dm-zoned\",number=\"0\",kind=\"lost-blocks\"} 1\n";
        assert!(page().contains(line), "{}", page());
        let script =
            "h.connect_uri('nbd+unix:///?socket=s')\ntry: h.pread(4096, 0)\nexcept nbd.Error as e: print(e.errno)";
        let error = succeeds(nbdsh(&bench).unwrap().args(["-c", script]));
        assert_eq!(error.trim(), "EIO", "lost blocks are not zeros");
        std::thread::sleep(std::time::Duration::from_millis(500));
        let stderr = served.end();
        assert_eq!(stderr.matches("warning: dm-zoned: the device has lost 2 blocks").count(), 1, "{stderr}");
        assert!(stderr.contains("; 1 warning\n"), "the live view counts it: {stderr}");
    }
    let repaired = bench.flashpath(&["fsck", PATH]);
    assert!(repaired.code == Some(1) && repaired.stdout.contains("a repair gives them up"), "{repaired:?}");
    let clean = bench.flashpath(&["fsck", PATH]);
    assert!(clean.code == Some(0) && clean.stdout.contains("clean"), "{clean:?}");
}

/// A run on a drive that wears out: its result and its error name the lost zones.
#[test]
fn a_run_in_which_zones_wear_out_warns_in_its_report() {
    let bench = Bench::new();
    let flash = "zone=128K,page=4K,channels=1,dies=1,planes=1,endurance=3,timing=off";
    let path = format!("dm-zoned:reserved=2/conv:size=768K,timing=off+zns:size=1M,{flash}");
    let answer = bench.flashpath(&["run", "uniform:writes=200x", "--on", &path, "--json", "-"]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert!(answer.stderr.contains("the zoned device is worn out: "), "{answer:?}");
    assert!(answer.stderr.contains("zones are out of use (zone "), "{answer:?}");
    let results = super::bench::only_result(&answer.stdout);
    assert!(results.to_string().contains("has become offline, and is out of use"), "{results}");
}

/// The error was "the volume is full ... make the conventional device larger", though nothing was full: reclaim had copied a
/// zone for every few blocks. The zeros that it wrote for holes could not be told from mapping.
#[test]
fn a_uniform_load_that_wears_out_a_zoned_drive_is_told_why() {
    let bench = Bench::new();
    let flash = "zone=1M,page=4K,channels=1,dies=1,planes=1,endurance=20,timing=off";
    let path = format!("dm-zoned/conv:size=12M,timing=off+zns:size=64M,{flash}");
    let answer = bench.flashpath(&["run", "uniform:writes=3x", "--on", &path, "--json", "-"]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    for expected in ["the zoned device is worn out", "reclaim made it write", "a larger conventional device"] {
        assert!(answer.stderr.contains(expected), "{expected}: {}", answer.stderr);
    }
    assert!(!answer.stderr.contains("is full"), "{}", answer.stderr);
    let result = super::bench::only_result(&answer.stdout);
    let zeros = result["translation"]["events"]["zero_filled_blocks"].as_f64().unwrap();
    let rows = result["ledger"].as_array().unwrap().iter();
    let reclaimed =
        rows.filter(|row| row["station"] == "dm-zoned" && row["cause"] == "reclaim" && row["content"] == "mapping");
    let reclaimed: f64 = reclaimed.map(|row| row["blocks"].as_f64().unwrap()).sum();
    assert!(zeros > 0.0 && zeros == reclaimed, "{zeros} of {reclaimed}");
}
