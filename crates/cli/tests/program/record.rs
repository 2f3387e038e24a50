//! Recordings of block devices of this machine: loop devices.
//!
//! As for a capture, a test without its needs is skipped.

use super::bench::{Answer, Bench};
use super::capture::{can_capture, operations, signal};
use super::serve::wait_until;
use flashpath::workload::Action;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A file as a loop device, which detaches when this is dropped.
struct Attached(String);

impl Attached {
    fn new(bench: &Bench, name: &str) -> Attached {
        let file = bench.path(name);
        std::fs::File::create(&file).unwrap().set_len(16 << 20).unwrap();
        let output = Command::new("losetup").args(["-f", "--show"]).arg(&file).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        Attached(String::from_utf8(output.stdout).unwrap().trim().to_string())
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.0]).status();
    }
}

/// A bench, if this machine can record.
fn bench_to_record_in() -> Option<Bench> {
    can_capture(&["losetup", "dd"]).then(Bench::new)
}

/// Begins a recording, and returns once it records.
fn recording(bench: &Bench, arguments: &[&str]) -> Child {
    let mut command = bench.command(&[&["record"], arguments].concat());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("recording /dev/loop"), "{line}");
    child
}

/// Writes 4 KiB at each of these blocks, past the page cache.
fn write(device: &str, blocks: impl Iterator<Item = u64>) {
    for block in blocks {
        let arguments = ["if=/dev/zero", "bs=4096", "count=1", "oflag=direct", "status=none"];
        let to = [format!("of={device}"), format!("seek={block}")];
        assert!(Command::new("dd").args(arguments).args(to).status().unwrap().success());
    }
}

fn instances() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/sys/kernel/tracing/instances").into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

#[test]
fn an_interrupt_ends_a_recording_with_a_whole_trace() {
    let Some(bench) = bench_to_record_in() else { return };
    let (one, other, third) = (Attached::new(&bench, "a"), Attached::new(&bench, "b"), Attached::new(&bench, "c"));
    for name in ["-INT", "-TERM"] {
        let arguments = [one.0.as_str(), &other.0, "-o", "t.csv", "--force", "--json", "s.json"];
        let child = recording(&bench, &arguments);
        write(&one.0, 0..20);
        write(&other.0, [7, 5].into_iter());
        write(&third.0, 0..3);
        assert!(
            Command::new("dd")
                .args([&format!("if={}", one.0), "of=/dev/null", "bs=8192", "count=1", "iflag=direct", "status=none"])
                .status()
                .unwrap()
                .success()
        );
        let own = format!("flashpath-{}-", child.id());
        signal(name, &child.id().to_string());
        let answer = Answer::of(child.wait_with_output().unwrap());
        assert_eq!(answer.code, Some(0), "{answer:?}");
        assert!(answer.stdout.contains("20 writes (80.0 KiB), 1 reads (8.00 KiB)"), "{}", answer.stdout);
        assert!(answer.stdout.contains("flashpath run t.csv --timed --on page/nand:size="), "{}", answer.stdout);
        let all = operations(&bench, "t.csv");
        let written = |device: u32| -> Vec<u64> {
            let of = all.iter().filter(|it| it.device == device && it.action == Action::Write);
            of.map(|it| it.offset_bytes / 4096).collect()
        };
        assert_eq!((written(0), written(1)), ((0..20).collect(), vec![7, 5]), "only the devices that were named");
        assert!(all.windows(2).all(|pair| pair[0].time_ns <= pair[1].time_ns));
        let summary: serde_json::Value = serde_json::from_slice(&std::fs::read(bench.path("s.json")).unwrap()).unwrap();
        assert_eq!((&summary["devices"][0]["writes"], &summary["devices"][1]["stage"]), (&20.into(), &"D".into()));
        assert!(!instances().iter().any(|path| path.display().to_string().contains(&own)), "the instance is gone");
    }
    let answer = bench.flashpath(&["run", "t.csv", "--on", "page/nand:size=64M", "--quiet"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
}

#[test]
fn a_recording_ends_after_its_span_and_says_if_there_was_nothing() {
    let Some(bench) = bench_to_record_in() else { return };
    let device = Attached::new(&bench, "a");
    let child =
        recording(&bench, &[&device.0, "--for", "1500ms", "--stage", "Q", "--without-reads", "-o", "t.csv.zst"]);
    write(&device.0, 3..5);
    let answer = Answer::of(child.wait_with_output().unwrap());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(answer.stdout.contains("2 writes (8.00 KiB)") && answer.stdout.contains("at stage Q"), "{}", answer.stdout);
    assert_eq!(operations(&bench, "t.csv.zst").iter().filter(|it| it.action == Action::Write).count(), 2);
    let nothing = ["record", &device.0, "--for", "100ms", "-o", "none.csv", "--quiet"];
    bench.refuses(&nothing, &["no request reached /dev/loop", "findmnt"]);
    assert!(!bench.path("none.csv").exists());
}

#[test]
fn what_is_no_whole_device_is_refused_before_anything_is_recorded() {
    let bench = Bench::new();
    bench.write("file", "x");
    bench.refuses(&["record", "file"], &["file is no block device", "lsblk -d"]);
    bench.refuses(&["record", "none"], &["cannot look at none"]);
    bench.refuses(&["record"], &["DEVICE"]);
    bench.refuses(&["record", "/dev/null"], &["/dev/null is no block device"]);
    bench.refuses(&["record", "file", "-o", "t.txt"], &["no known extension"]);
    bench.write("t.csv", "mine");
    bench.refuses(&["record", "file", "-o", "t.csv"], &["exists already", "--force"]);
    assert_eq!(std::fs::read(bench.path("t.csv")).unwrap(), b"mine");
    bench.refuses(&["record", "file", "--for", "soon"], &["expected a span"]);
}

/// The kernel's error was that a folder cannot be made in tracefs.
#[test]
fn an_ordinary_user_is_told_what_it_needs() {
    let Some(bench) = bench_to_record_in() else { return };
    let device = Attached::new(&bench, "a");
    let program = bench.path("flashpath");
    std::fs::copy(env!("CARGO_BIN_EXE_flashpath"), &program).unwrap();
    assert!(Command::new("chmod").args(["-R", "a+rwX"]).arg(bench.path("")).status().unwrap().success());
    let words = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let run = Command::new("setpriv")
        .args(words)
        .arg(&program)
        .args(["record", &device.0, "-o", "t.csv"])
        .current_dir(bench.path(""))
        .output();
    let Ok(output) = run else { return super::skipped::skipped("setpriv is missing") };
    let answer = Answer::of(output);
    assert_eq!(answer.code, Some(2), "{answer:?}");
    for words in ["recording a device needs root", "sudo flashpath record", "mount PATH DIR --record"] {
        assert!(answer.stderr.contains(words), "{words}: {}", answer.stderr);
    }
    wait_until("nothing is left", || !bench.path("t.csv").exists());
}
