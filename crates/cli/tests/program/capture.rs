//! Captures of the kernel's own file systems.
//!
//! They need root, loop devices, tracefs and mkfs. If one is missing, a test prints it and is skipped.

use super::bench::{Answer, Bench};
use flashpath::label::Content;
use flashpath::workload::trace::{TraceOptions, TraceReader};
use flashpath::workload::{Action, Operation};
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// True if this machine can capture with these programs; prints a missing one.
pub fn can_capture(programs: &[&str]) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let is_root = status.lines().any(|line| line.starts_with("Uid:\t0\t0"));
    let has_tracefs = std::fs::read_to_string("/proc/filesystems").is_ok_and(|text| text.contains("tracefs"));
    let paths = std::env::var("PATH").unwrap_or_default();
    let program = programs.iter().find(|name| !std::env::split_paths(&paths).any(|path| path.join(name).exists()));
    let missing = match () {
        _ if !is_root => "root",
        _ if !has_tracefs => "tracefs in the kernel",
        _ if !Path::new("/dev/loop-control").exists() => "loop devices",
        _ => match program {
            Some(program) => program,
            None => return true,
        },
    };
    super::skipped::skipped(&format!("{missing} is missing"));
    false
}

/// Captures into t.csv and returns the summary.
pub fn capture(bench: &Bench, options: &[&str], script: &str) -> Value {
    let answer = bench.flashpath(&arguments(bench, options, script).iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_nothing_is_left(bench);
    serde_json::from_str(&answer.stdout).unwrap()
}

pub fn arguments(bench: &Bench, options: &[&str], script: &str) -> Vec<String> {
    std::fs::create_dir_all(bench.path("scratch")).unwrap();
    let common = ["capture", "--dir", "scratch", "-o", "t.csv", "--json", "-"];
    let all = [&common, options, &["--", "sh", "-ec", script]].concat();
    all.into_iter().map(str::to_string).collect()
}

pub fn operations(bench: &Bench, name: &str) -> Vec<Operation> {
    let mut reader = TraceReader::open(&bench.path(name), &TraceOptions::default()).unwrap();
    let mut operations = Vec::new();
    while reader.read_batch(&mut operations, 4096).unwrap() > 0 {}
    assert_eq!(reader.rejected(), 0);
    operations
}

pub fn written(operations: &[Operation], content: Content) -> u64 {
    let writes = operations.iter().filter(|it| it.action == Action::Write && it.content == content);
    writes.map(|it| it.length_bytes).sum()
}

/// The files of loop devices in a test's own directory.
pub fn attached(bench: &Bench) -> Vec<String> {
    let place = bench.path("scratch").canonicalize().unwrap().display().to_string();
    std::fs::read_dir("/sys/block")
        .unwrap()
        .filter_map(|entry| std::fs::read_to_string(entry.unwrap().path().join("loop/backing_file")).ok())
        .filter(|file| file.starts_with(&place))
        .collect()
}

pub fn assert_nothing_is_left(bench: &Bench) {
    assert_eq!(attached(bench), [] as [String; 0]);
    let files: Vec<_> = bench.path("scratch").read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.is_empty(), "{files:?}");
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(&bench.directory.path().display().to_string()), "{mounts}");
}

/// The tracing instances of a process, through a private mount.
fn instances(process: u32) -> String {
    let look = format!("mount -t tracefs none /mnt && ls /mnt/instances | grep '^flashpath-{process}-' || true");
    let output = Command::new("unshare").args(["-m", "sh", "-c", &look]).output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// 24 MiB of data in three rounds, so that data=journal checkpoints some of it during the capture.
const ROUNDS: &str = "for i in 1 2 3; do dd status=none if=/dev/urandom of=f$i bs=64K count=128 conv=fsync; done";
const DATA: u64 = 24 << 20;

#[test]
fn the_data_mode_decides_what_the_journal_holds() {
    if !can_capture(&["mkfs.ext4", "mkfs.ext3"]) {
        return;
    }
    for kind in ["ext4", "ext3"] {
        for mode in ["writeback", "ordered", "journal"] {
            let bench = Bench::new();
            let options = ["--fs", kind, "--data", mode, "--size", "256M", "--journal-size", "16M"];
            let summary = capture(&bench, &options, ROUNDS);
            let operations = operations(&bench, "t.csv");
            let [data, metadata, journal] =
                [Content::Data, Content::Metadata, Content::Journal].map(|content| written(&operations, content));
            let context = format!("{kind} {mode}: {data} of data, {metadata} of metadata, {journal} of journal");
            assert_eq!(data, DATA, "each block is written in place once: {context}");
            assert!((1..4 << 20).contains(&metadata), "{context}");
            if mode == "journal" {
                assert!((DATA..DATA * 11 / 10).contains(&journal), "the journal holds the data once more: {context}");
            } else {
                assert!((1..1 << 20).contains(&journal), "the journal holds no data: {context}");
            }
            assert_eq!(summary["journal_bytes"], 16 << 20);
            let by_content = &summary["written_bytes_by_content"];
            assert_eq!((&by_content["data"], &by_content["journal"]), (&data.into(), &journal.into()));
            assert_eq!((&summary["partial"], &summary["straddling_writes"]), (&false.into(), &0.into()));
            for counter in ["overrun", "commit_overrun", "dropped", "unread"] {
                assert_eq!(summary["lost_events"][counter], 0);
            }
        }
    }
}

#[test]
fn data_that_is_deleted_before_the_end_is_still_data() {
    if !can_capture(&["mkfs.ext4"]) {
        return;
    }
    let bench = Bench::new();
    let options = ["--data", "journal", "--size", "256M", "--journal-size", "4M"];
    capture(&bench, &options, &format!("{ROUNDS}; sync; rm f1 f2 f3; sync"));
    let operations = operations(&bench, "t.csv");
    let (data, metadata) = (written(&operations, Content::Data), written(&operations, Content::Metadata));
    // Blocks still only in the journal when their file was deleted need not be checkpointed.
    assert!(data > DATA / 2 && data <= DATA && metadata < 2 << 20, "{data} of data, {metadata} of metadata");
}

#[test]
fn xfs_and_btrfs_are_labelled_by_their_own_structures() {
    if !can_capture(&["mkfs.xfs", "mkfs.btrfs"]) {
        return;
    }
    for options in [&["--fs", "xfs"][..], &["--fs", "btrfs"], &["--fs", "btrfs", "--nodatacow"]] {
        let bench = Bench::new();
        let summary = capture(&bench, &[options, &["--size", "512M"]].concat(), ROUNDS);
        let operations = operations(&bench, "t.csv");
        assert_eq!(written(&operations, Content::Data), DATA, "{summary}");
        let journal = written(&operations, Content::Journal);
        let expected = if options[1] == "xfs" { 1..1 << 20 } else { 0..1 };
        assert!(expected.contains(&journal), "{summary}");
        assert!((1..4 << 20).contains(&written(&operations, Content::Metadata)), "{summary}");
    }
}

/// Writes single blocks of a preallocated file out of order, zeroes a part of it and punches a hole.
const PREALLOCATED: &str = "fallocate -l 4M f
    i=0; while [ $i -lt 512 ]; do
        dd status=none if=/dev/urandom of=f bs=4K count=1 seek=$(((i * i * 7 + i * 5) % 1024)) conv=notrunc; i=$((i + 1))
    done; sync; fallocate -z -o 1M -l 1M f; fallocate -p -o 1000 -l 100K f; sync";

/// With data=journal, ext4 zeroes the small rests of preallocated extents that a write splits, by requests without
/// bytes, which the kernel's letters call `N`. They were not in the trace, so that fio's defaults, which preallocate,
/// gave a partial trace for a reason that was none. No test of ours preallocated: the workload's defaults x the mode.
#[test]
fn zeroes_that_are_written_without_their_bytes_are_in_the_trace() {
    if !can_capture(&["mkfs.ext4", "mkfs.xfs", "mkfs.btrfs", "fallocate"]) {
        return;
    }
    let zeroed = |options: &[&str], script: &str| {
        let bench = Bench::new();
        // A whole trace: its bytes are those that the device counted.
        let summary = capture(&bench, options, script);
        let requests = &summary["requests"];
        let operations = operations(&bench, "t.csv");
        let in_trace: u64 = operations.iter().filter(|it| it.action == Action::Write).map(|it| it.length_bytes).sum();
        assert_eq!(requests["written_bytes"], in_trace, "{summary}");
        requests["zeroed_bytes"].as_u64().unwrap()
    };
    for discard in [&[][..], &["--discard"]] {
        for (kind, mode) in [("ext4", "journal"), ("ext4", "ordered"), ("ext4", "writeback")] {
            let options = [&["--fs", kind, "--data", mode, "--size", "256M"], discard].concat();
            let zeroed = zeroed(&options, PREALLOCATED);
            assert!(mode != "journal" || zeroed > 64 << 10, "{kind} {mode}: {zeroed}");
        }
        for kind in ["xfs", "btrfs"] {
            zeroed(&[&["--fs", kind, "--size", "512M"], discard].concat(), PREALLOCATED);
        }
    }
    // The inode tables that mkfs left to the kernel, which begins at a random moment of the first five seconds.
    let lazily = ["--size", "256M", "--mkfs-options=-Elazy_itable_init=1", "--mount-options", "init_itable=0"];
    assert!(zeroed(&lazily, "sleep 8") > 1 << 20);
}

#[test]
fn deletes_reach_the_device_only_with_discard() {
    if !can_capture(&["mkfs.ext4", "mkfs.xfs", "mkfs.btrfs"]) {
        return;
    }
    for kind in ["ext4", "xfs", "btrfs"] {
        let discarded = |options: &[&str]| {
            let bench = Bench::new();
            let options = [&["--fs", kind, "--size", "512M"], options].concat();
            capture(&bench, &options, &format!("{ROUNDS}; sync; rm f1; sync"));
            let operations = operations(&bench, "t.csv");
            let discards = operations.iter().filter(|it| it.action == Action::Discard);
            discards.map(|it| it.length_bytes).sum::<u64>()
        };
        assert_eq!(discarded(&[]), 0, "{kind}");
        assert!(discarded(&["--discard"]) >= 8 << 20, "{kind}");
    }
}

#[test]
fn each_guest_has_a_region_of_its_own() {
    if !can_capture(&["mkfs.ext4"]) {
        return;
    }
    let bench = Bench::new();
    let script = "test \"$PWD\" = \"$FLASHPATH_MOUNT\"
        dd status=none if=/dev/urandom of=f bs=1M count=$((FLASHPATH_GUEST + 1)) conv=fsync";
    let summary = capture(&bench, &["--guests", "4", "--size", "64M"], script);
    assert_eq!(summary["ended"].as_array().unwrap().len(), 4);
    let operations = operations(&bench, "t.csv");
    assert!(operations.is_sorted_by_key(|it| it.time_ns));
    for guest in 0..4u64 {
        let region = guest * (64 << 20)..(guest + 1) * (64 << 20);
        let own: Vec<_> = operations.iter().filter(|it| region.contains(&it.offset_bytes)).copied().collect();
        assert!(own.iter().all(|it| it.end_bytes() <= region.end));
        assert_eq!(written(&own, Content::Data), (guest + 1) << 20);
        assert!(written(&own, Content::Journal) > 0);
    }
}

#[test]
fn reads_are_recorded_on_request() {
    if !can_capture(&["mkfs.ext4"]) {
        return;
    }
    let script = "dd status=none if=/dev/urandom of=f bs=1M count=4 conv=fsync
        dd status=none if=f of=/dev/null bs=1M iflag=direct";
    for (options, expected) in [(&["--size", "64M"][..], 0), (&["--size", "64M", "--reads"], 4 << 20)] {
        let bench = Bench::new();
        let summary = capture(&bench, options, script);
        let read = summary["requests"]["read_bytes"].as_u64().unwrap();
        assert!((expected..expected + (1 << 20)).contains(&read), "{summary}");
        assert_eq!(read == 0, expected == 0);
    }
}

#[test]
fn a_captured_trace_runs_on_a_path() {
    if !can_capture(&["mkfs.ext4"]) {
        return;
    }
    let bench = Bench::new();
    capture(&bench, &["--size", "64M"], ROUNDS);
    let result = bench.json("t.csv", "page:op=10%/nand:size=128M,timing=off", &[]);
    assert_eq!(result["workload"]["rejected_lines"], 0);
    assert!(result["workload"]["written_blocks"].as_u64().unwrap() >= DATA / 4096);
}

/// Asserts that a failed capture keeps a partial trace.
fn assert_partial(bench: &Bench, answer: &Answer, code: i32, expected: &[&str]) {
    assert_eq!(answer.code, Some(code), "{answer:?}");
    for words in expected.iter().chain(&["kept as t.partial.csv"]) {
        assert!(answer.stderr.contains(words), "'{words}' is missing: {answer:?}");
    }
    assert!(!answer.stderr.contains("panicked"), "{answer:?}");
    assert_eq!(bench.files(), ["scratch", "t.partial.csv"]);
    assert_nothing_is_left(bench);
    let summary: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(summary["partial"], true);
}

pub fn capture_badly(bench: &Bench, options: &[&str], script: &str) -> Answer {
    bench.flashpath(&arguments(bench, options, script).iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn a_command_that_fails_leaves_a_partial_trace() {
    if !can_capture(&["mkfs.ext4"]) {
        return;
    }
    let bench = Bench::new();
    let script = "dd status=none if=/dev/urandom of=f bs=1M count=3 conv=fsync; exit 7";
    let answer = capture_badly(&bench, &["--size", "64M"], script);
    assert_partial(&bench, &answer, 1, &["the command failed with exit code 7"]);
    assert_eq!(written(&operations(&bench, "t.partial.csv"), Content::Data), 3 << 20);

    let bench = Bench::new();
    let answer = capture_badly(&bench, &["--size", "64M"], "kill -9 $$");
    assert_partial(&bench, &answer, 1, &["the command was killed by signal 9"]);
}

#[test]
fn a_full_file_system_is_named_as_the_reason() {
    if !can_capture(&["mkfs.ext4"]) {
        return;
    }
    let bench = Bench::new();
    let answer = capture_badly(&bench, &["--size", "32M"], "dd status=none if=/dev/zero of=f bs=1M count=64");
    assert_partial(&bench, &answer, 1, &["exit code 1", "its file system is full: choose a larger --size"]);
}

#[test]
fn events_that_the_kernel_lost_make_a_capture_fail() {
    if !can_capture(&["mkfs.ext4"]) {
        return;
    }
    let bench = Bench::new();
    let options = ["--buffer", "4K", "--data", "journal", "--size", "256M"];
    let answer = capture_badly(&bench, &options, ROUNDS);
    assert_partial(&bench, &answer, 1, &["the kernel lost", "--buffer", "but the device counted"]);
    let summary: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert!(summary["lost_events"]["overrun"].as_u64().unwrap() > 0, "{summary}");
}

#[test]
fn a_memory_limit_holds_for_the_command() {
    let hierarchy = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    let has_memory = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        match words[2] {
            "cgroup" => words[3].split(',').any(|option| option == "memory"),
            "cgroup2" => std::fs::read_to_string(format!("{}/cgroup.subtree_control", words[1]))
                .is_ok_and(|text| text.split_whitespace().any(|word| word == "memory")),
            _ => false,
        }
    };
    if !can_capture(&["mkfs.ext4"]) {
        return;
    }
    let bench = Bench::new();
    let options = ["--memory", "32M", "--size", "256M"];
    if !hierarchy.lines().any(has_memory) {
        let answer = capture_badly(&bench, &options, "true");
        assert_eq!(answer.code, Some(2));
        assert!(answer.stderr.contains("the memory controller is missing"), "{answer:?}");
        return;
    }
    // The file is larger than the memory: its pages can be evicted, but an allocation of that size fails.
    capture(&bench, &options, "dd status=none if=/dev/zero of=f bs=1M count=64");
    let again = [&["--force"], &options[..]].concat();
    let answer = capture_badly(&bench, &again, "dd status=none if=/dev/zero of=f bs=64M count=1");
    assert_eq!(answer.code, Some(1), "{answer:?}");
}

#[test]
fn a_full_disk_below_the_device_is_named_as_the_reason() {
    if !can_capture(&["mkfs.ext4", "unshare"]) {
        return;
    }
    let bench = Bench::new();
    std::fs::create_dir(bench.path("scratch")).unwrap();
    // The command itself takes the space that the device's file would need.
    let script = format!(
        "mount -t tmpfs -o size=80M none scratch; {} capture --dir scratch --size 64M -o t.csv --json - -- sh -c '
            head -c 70M /dev/zero >{}/other; dd status=none if=/dev/urandom of=f bs=1M count=30 conv=fsync'",
        env!("CARGO_BIN_EXE_flashpath"),
        bench.path("scratch").display()
    );
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &script]).current_dir(bench.directory.path());
    let answer = Answer::of(command.output().unwrap());
    assert_partial(&bench, &answer, 1, &["the device failed", "without space for its file (--dir)"]);
}

/// A capture whose command prints a line and runs until it is stopped.
fn endless(bench: &Bench) -> Child {
    let ready = bench.path("ready").display().to_string();
    let script =
        format!("dd status=none if=/dev/urandom of=f bs=1M count=2 conv=fsync; echo $$ >{ready}; sleep 100 & wait");
    let arguments = arguments(bench, &["--size", "64M"], &script);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut child = bench.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    for _ in 0..1500 {
        if std::fs::read_to_string(&ready).is_ok_and(|text| text.ends_with('\n')) {
            return child;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    signal("-INT", &child.id().to_string());
    child.wait().unwrap();
    panic!("the command did not begin");
}

pub fn signal(name: &str, process: &str) {
    assert!(Command::new("kill").args([name, "--", process]).status().unwrap().success());
}

#[test]
fn an_interrupt_leaves_no_device_no_mount_and_no_instance() {
    if !can_capture(&["mkfs.ext4"]) {
        return;
    }
    for name in ["-INT", "-TERM"] {
        let bench = Bench::new();
        let child = endless(&bench);
        let process = child.id();
        assert_eq!(attached(&bench).len(), 1);
        assert!(instances(process).starts_with("flashpath-"));
        signal(name, &process.to_string());
        let answer = Answer::of(child.wait_with_output().unwrap());
        std::fs::remove_file(bench.path("ready")).unwrap();
        assert_partial(&bench, &answer, 130, &["interrupted"]);
        assert_eq!(instances(process), "");
        assert_eq!(written(&operations(&bench, "t.partial.csv"), Content::Data), 2 << 20);
    }
}

#[test]
fn a_capture_that_was_killed_does_not_trouble_the_next() {
    if !can_capture(&["mkfs.ext4"]) {
        return;
    }
    let bench = Bench::new();
    let mut child = endless(&bench);
    let process = child.id();
    child.kill().unwrap();
    child.wait().unwrap();
    let command = std::fs::read_to_string(bench.path("ready")).unwrap();
    // The command survived the capture; ending it releases its mount and device.
    signal("-KILL", &format!("-{}", command.trim()));
    for _ in 0..250 {
        if attached(&bench).is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(attached(&bench), [] as [String; 0]);
    let other = Bench::new();
    capture(&other, &["--size", "64M"], "echo new >f");
    assert_eq!(instances(process), "");
}

#[test]
fn an_impossible_capture_is_refused_before_it_begins() {
    let bench = Bench::new();
    bench.refuses(&["capture", "--data", "journal", "--fs", "xfs", "true"], &["--data is for ext3 and ext4"]);
    bench.refuses(&["capture", "--nodatacow", "true"], &["--nodatacow is for btrfs"]);
    bench.refuses(&["capture", "--fs", "btrfs", "--journal-size", "64M", "true"], &["btrfs has no journal"]);
    bench.refuses(&["capture", "--size", "1000", "true"], &["a multiple of 4K"]);
    bench.refuses(&["capture", "-o", "t.txt", "true"], &["the name t.txt has no known extension"]);
    bench.refuses(&["capture", "--dir", "nowhere", "true"], &["nowhere", "No such file"]);
    bench.refuses(&["capture", "--", "no-such-command"], &["command no-such-command not found"]);
    bench.refuses(&["capture", "--dir", ".", "--size", "1P", "true"], &["of free space", "--dir"]);
    assert_eq!(bench.files(), [] as [String; 0]);
}

#[test]
fn missing_rights_and_programs_are_named() {
    if !can_capture(&["mkfs.ext4", "setpriv"]) {
        return;
    }
    let bench = Bench::new();
    let program = env!("CARGO_BIN_EXE_flashpath");
    let run = |mut command: Command| Answer::of(command.current_dir(bench.directory.path()).output().unwrap());

    let mut without_rights = Command::new("setpriv");
    without_rights.args(["--bounding-set=-all", "--inh-caps=-all", program, "capture", "--size", "64M", "true"]);
    let answer = run(without_rights);
    assert_eq!(answer.code, Some(2), "{answer:?}");
    assert!(answer.stderr.contains("the right to have mounts of its own is missing"), "{answer:?}");

    let mut without_mkfs = Command::new(program);
    without_mkfs.args(["capture", "--size", "64M", "/bin/true"]).env("PATH", "/nonexistent");
    let answer = run(without_mkfs);
    assert_eq!(answer.code, Some(2), "{answer:?}");
    assert!(answer.stderr.contains("mkfs.ext4 is not installed") && answer.stderr.contains("e2fsprogs"), "{answer:?}");
    assert_eq!(bench.files(), [] as [String; 0]);
}

/// A second capture replaced the first one's trace without a word.
#[test]
fn a_capture_replaces_a_trace_only_if_asked_to() {
    if !can_capture(&["mkfs.ext4"]) {
        return;
    }
    let bench = Bench::new();
    bench.write("t.csv", "of yesterday");
    let refused = ["capture", "-o", "t.csv", "--", "true"];
    bench.refuses(&refused, &["t.csv exists already", "--force"]);
    assert_eq!(std::fs::read_to_string(bench.path("t.csv")).unwrap(), "of yesterday");
    capture(&bench, &["--force", "--size", "64M"], "echo new > file; sync");
    assert!(!operations(&bench, "t.csv").is_empty());
}
