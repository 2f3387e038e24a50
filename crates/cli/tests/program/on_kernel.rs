//! A path with a file system of the running kernel on top.
//!
//! They need root, loop devices, FUSE and mkfs. If one is missing, a test prints it and is skipped.

use super::bench::{Answer, Bench};
use super::capture::{can_capture, signal};
use serde_json::Value;
use std::process::Stdio;
use std::time::Duration;

const ZONED: &str = "dm-zoned:reserved=3,journal-zone/conv:size=128M+zns:size=512M,zone=16M";

fn can_mount(programs: &[&str]) -> bool {
    if !std::path::Path::new("/dev/fuse").exists() {
        super::skipped::skipped("/dev/fuse is missing");
        return false;
    }
    can_capture(programs)
}

/// Runs with its mount points in the test's own directory, and asserts that nothing is left there.
fn run(bench: &Bench, arguments: &[&str]) -> Answer {
    let place = bench.path("scratch");
    std::fs::create_dir_all(&place).unwrap();
    let answer = Answer::of(bench.command(arguments).env("TMPDIR", &place).output().unwrap());
    assert_nothing_is_left(bench);
    answer
}

fn assert_nothing_is_left(bench: &Bench) {
    let place = bench.path("scratch").canonicalize().unwrap();
    let left: Vec<_> = place.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.is_empty(), "{left:?}");
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(&place.display().to_string()), "{mounts}");
    for device in std::fs::read_dir("/sys/block").unwrap() {
        let file = std::fs::read_to_string(device.unwrap().path().join("loop/backing_file")).unwrap_or_default();
        assert!(!file.starts_with(&place.display().to_string()), "{file} is still attached");
    }
}

fn json(bench: &Bench, workload: &str, path: &str, more: &[&str]) -> Value {
    let answer = run(bench, &[&["run", workload, "--on", path, "--json", "-"], more].concat());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    super::bench::only_result(&answer.stdout)
}

fn blocks(result: &Value, station: &str, content: &str) -> f64 {
    let rows = result["ledger"].as_array().unwrap().iter();
    let rows = rows.filter(|row| row["station"] == station && row["content"] == content);
    rows.map(|row| row["blocks"].as_f64().unwrap()).sum()
}

#[test]
fn a_journal_of_the_kernel_is_found_and_counted_by_mode() {
    if !can_mount(&["mkfs.ext4", "e2fsck"]) {
        return;
    }
    let bench = Bench::new();
    let journal = |mode: &str| {
        let path = format!("kernel-ext4:data={mode},journal=16M/{ZONED}");
        let result = json(&bench, "rnd_write:file=16M,writes=8M,fsync-every=16", &path, &[]);
        assert!(result["sums"].as_array().unwrap().iter().all(|sum| sum["holds"] == true), "{}", result["sums"]);
        assert_eq!(result["workload"]["written_blocks"], 2048);
        assert!(blocks(&result, "kernel-ext4", "data") >= 2048.0, "{}", result["ledger"]);
        // Why the kernel wrote a block is not known: dm-zoned's map and the zeros of its reclaim have origins of their own.
        for row in result["ledger"].as_array().unwrap() {
            let is_own = row["content"] == "mapping" && (row["origin"] == "mapping" || row["origin"] == "reclaim");
            assert!(is_own || row["origin"] == "host-write", "{row}");
        }
        for content in ["data", "metadata", "journal"] {
            let of_host = |row: &Value| row["station"] == "dm-zoned" && row["cause"] == "host-write";
            let rows = result["ledger"].as_array().unwrap().iter();
            let received = rows.filter(|row| of_host(row) && row["content"] == content);
            let received: f64 = received.map(|row| row["blocks"].as_f64().unwrap()).sum();
            assert_eq!(blocks(&result, "kernel-ext4", content), received, "{}", result["ledger"]);
        }
        assert_eq!(blocks(&result, "kernel-ext4", "journal"), {
            // The file system's writes are dm-zoned's host writes.
            let rows = result["ledger"].as_array().unwrap().iter();
            let sent = rows.filter(|row| {
                row["station"] == "dm-zoned" && row["cause"] == "host-write" && row["content"] == "journal"
            });
            sent.map(|row| row["blocks"].as_f64().unwrap()).sum::<f64>()
        });
        blocks(&result, "kernel-ext4", "journal")
    };
    let (ordered, data) = (journal("ordered"), journal("journal"));
    assert!(ordered > 0.0 && data > 2048.0 && data > 2.0 * ordered, "{ordered} and {data}");
}

#[test]
fn every_kernel_file_system_runs_on_every_kind_of_path() {
    if !can_mount(&["mkfs.ext4", "mkfs.xfs", "mkfs.btrfs", "e2fsck", "xfs_repair", "btrfs"]) {
        return;
    }
    let bench = Bench::new();
    for path in [
        "kernel-ext4:lazy/conv:size=256M",
        "kernel-xfs/page/nand:size=1G",
        "kernel-btrfs:cow=off/conv:size=512M,ftl=page",
    ] {
        let result = json(&bench, "uniform:writes=4M", path, &["--size", "16M", "--fsync-every", "64"]);
        assert_eq!(result["workload"]["written_blocks"], 1024, "{path}");
        assert!(result["write_amplification"]["total"].as_f64().unwrap() >= 1.0, "{path}");
        assert!(result["seconds_simulated"].is_null());
    }
}

/// f2fs and NILFS2 are missing in many kernels.
#[test]
fn a_file_system_that_the_kernel_lacks_is_refused_by_name() {
    if !can_mount(&["mkfs.ext4", "e2fsck"]) {
        return;
    }
    let bench = Bench::new();
    for name in ["f2fs", "nilfs2"] {
        let path = format!("kernel-{name}/conv:size=256M");
        let answer = run(&bench, &["run", "uniform:writes=4M", "--size", "16M", "--on", &path]);
        let listed = std::fs::read_to_string("/proc/filesystems").unwrap();
        if listed.lines().any(|line| line.trim() == name) {
            let needs_tools = answer.stderr.contains(&format!("mkfs.{name} is not installed"));
            assert!(needs_tools || answer.code == Some(0), "{answer:?}");
        } else {
            assert!(
                answer.code != Some(0) && answer.stderr.contains(&format!("the kernel has no {name}")),
                "{answer:?}"
            );
            assert!(answer.stderr.contains("modprobe"), "{answer:?}");
        }
    }
}

#[test]
fn a_command_runs_in_the_file_system_and_its_failure_is_reported() {
    if !can_mount(&["mkfs.ext4", "e2fsck"]) {
        return;
    }
    let bench = Bench::new();
    let path = "kernel-ext4/conv:size=64M";
    let result =
        json(&bench, "sh:test \"$PWD\" = \"$FLASHPATH_MOUNT\" && dd if=/dev/urandom of=file bs=1M count=4", path, &[]);
    assert!(blocks(&result, "conv", "data") >= 1024.0, "{}", result["ledger"]);
    let answer = run(&bench, &["run", "sh:exit 3", "--on", path]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert!(answer.stderr.contains("the command failed: exit status: 3"), "{answer:?}");
    let answer = run(&bench, &["run", "sh:true", "--on", "kernel-ext4:mount=nonsense/conv:size=64M"]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert!(answer.stderr.contains("nonsense"), "{answer:?}");
}

/// It was reported as a failed run: on a kernel file system, errors were not classified.
#[test]
fn a_workload_too_large_for_a_kernels_file_system_is_a_wrong_input_as_in_a_volume_of_sfs() {
    if !can_mount(&["mkfs.ext4", "e2fsck"]) {
        return;
    }
    let bench = Bench::new();
    for path in ["kernel-ext4/conv:size=64M", "sfs/conv:size=64M"] {
        let answer = run(&bench, &["run", "varmail:files=200000", "--on", path]);
        assert_eq!(answer.code, Some(2), "{path}: {answer:?}");
        assert!(answer.stderr.contains("take fewer files or a larger file system"), "{answer:?}");
    }
}

#[test]
fn a_fio_job_is_run_by_fio_and_may_not_lead_elsewhere() {
    if !can_mount(&["mkfs.ext4", "e2fsck", "fio"]) {
        return;
    }
    let bench = Bench::new();
    let job = "[a]\nrw=randwrite\nsize=8M\nbs=4k\niodepth=8\nioengine=libaio\ndirect=1\nend_fsync=1\n";
    bench.write("job.fio", job);
    let result = json(&bench, "fio:job.fio", "kernel-ext4/conv:size=64M", &[]);
    assert_eq!((&result["workload"]["requests"], &result["workload"]["written_blocks"]), (&2048.into(), &2048.into()));
    bench.write("away.fio", format!("{job}filename=/dev/null\n"));
    let answer = run(&bench, &["run", "fio:away.fio", "--on", "kernel-ext4/conv:size=64M"]);
    assert_eq!(answer.code, Some(2), "{answer:?}");
    assert!(answer.stderr.contains("is outside of the job's file system"), "{answer:?}");
}

#[test]
fn an_interrupt_unmounts_and_detaches_everything() {
    if !can_mount(&["mkfs.ext4", "e2fsck"]) {
        return;
    }
    let bench = Bench::new();
    std::fs::create_dir_all(bench.path("scratch")).unwrap();
    let mut command = bench.command(&["run", "sh:touch begun; sleep 60", "--on", "kernel-ext4/conv:size=64M"]);
    command.env("TMPDIR", bench.path("scratch")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    std::thread::sleep(Duration::from_secs(2));
    signal("-INT", &child.id().to_string());
    let answer = Answer::of(child.wait_with_output().unwrap());
    assert_eq!(answer.code, Some(130), "{answer:?}");
    assert_nothing_is_left(&bench);
}

#[test]
fn options_of_simulation_are_refused_on_a_kernel() {
    let bench = Bench::new();
    for option in [&["--depth", "4"][..], &["--verify"], &["--precondition", "1x"]] {
        let answer = bench.flashpath(&[&["run", "uniform", "--on", "kernel-ext4/conv"], option].concat());
        assert_eq!(answer.code, Some(2), "{answer:?}");
        assert!(answer.stderr.contains("for simulated runs"), "{answer:?}");
    }
    // They were ignored.
    for option in [&["--size", "1G"][..], &["--limit", "3"], &["--fill"]] {
        let arguments = [&["run", "sh:true", "--on", "kernel-ext4/conv"], option].concat();
        bench.refuses(&arguments, &[option[0], "a command is another program"]);
    }
    for (workload, option) in [("varmail", &[][..]), ("sh:true", &[]), ("uniform", &["--size", "1G"])] {
        let answer = bench.flashpath(&[&["run", workload, "--on", "conv"], option].concat());
        assert_eq!(answer.code, Some(2), "{answer:?}");
        assert!(answer.stderr.contains("no file system on top"), "{answer:?}");
    }
}
