//! Setups before a capture.
//!
//! As for every capture, a test without its needs is skipped.

use super::bench::{Answer, Bench};
use super::capture::{arguments, attached};
use super::capture::{assert_nothing_is_left, can_capture, capture, capture_badly, operations, signal, written};
use flashpath::label::Content;
use std::process::Stdio;
use std::time::Duration;

#[test]
fn a_trace_has_the_counted_writes_and_not_the_setups() {
    if !can_capture(&["mkfs.ext4", "mkfs.ext3", "mkfs.xfs"]) {
        return;
    }
    let counted_bytes = 4 << 20;
    let workload = "rnd_write:file=32M,writes=4M,fsync-every=8";
    let part = |part| format!("{} run {workload} --in . --only {part} --quiet", env!("CARGO_BIN_EXE_flashpath"));
    for options in [&["--fs", "ext4"][..], &["--fs", "ext4", "--data", "journal"], &["--fs", "ext3"], &["--fs", "xfs"]]
    {
        let bench = Bench::new();
        let setup = part("setup");
        let options = [options, &["--size", "512M", "--guests", "2", "--setup", &setup]].concat();
        let summary = capture(&bench, &options, &part("counted"));
        assert_eq!((&summary["partial"], summary["setup"].as_str()), (&false.into(), Some(setup.as_str())));
        let all = operations(&bench, "t.csv");
        for guest in 0..2u64 {
            let own: Vec<_> = all.iter().filter(|it| it.offset_bytes >> 29 == guest).copied().collect();
            let [data, metadata, journal] =
                [Content::Data, Content::Metadata, Content::Journal].map(|content| written(&own, content));
            let context = format!("{options:?}: {data} of data, {metadata} of metadata, {journal} of journal");
            // A block drawn twice between two fsyncs is written once; a block in the journal is checkpointed once.
            let least = if options.contains(&"journal") { counted_bytes / 2 } else { counted_bytes * 98 / 100 };
            assert!((least..=counted_bytes).contains(&data), "{context}");
            assert!(metadata < 1 << 20, "{context}");
            let most = if options.contains(&"journal") { 3 * counted_bytes } else { counted_bytes };
            assert!((1..most).contains(&journal), "{context}");
        }
    }
}

#[test]
fn a_setups_journal_is_checkpointed_before_the_recording() {
    if !can_capture(&["mkfs.ext4"]) {
        return;
    }
    let bench = Bench::new();
    let setup = "dd status=none if=/dev/urandom of=f bs=1M count=8; echo \"$FLASHPATH_MOUNT\" >where";
    let options = ["--data", "journal", "--size", "256M", "--journal-size", "32M", "--setup", setup];
    let summary = capture(&bench, &options, "test -s f; test \"$(cat where)\" = \"$FLASHPATH_MOUNT\"");
    let bytes = summary["requests"]["written_bytes"].as_u64().unwrap();
    assert!(bytes <= 64 << 10, "only the unmount writes, and not {bytes}");
    assert_eq!(written(&operations(&bench, "t.csv"), Content::Data), 0);
}

#[test]
fn a_setup_that_fails_ends_a_capture_before_it_begins() {
    if !can_capture(&["mkfs.ext4"]) {
        return;
    }
    let full = "test $FLASHPATH_GUEST = 0 || dd status=none if=/dev/zero of=f bs=1M count=64";
    for (setup, expected) in [
        ("sleep 100 & test $FLASHPATH_GUEST != 1 || exit 3", &["the setup of guest 1 failed with exit code 3"][..]),
        ("test $FLASHPATH_GUEST != 0 || kill -9 $$", &["the setup of guest 0 was killed by signal 9"]),
        (full, &["the setup of guest 1 failed", "its file system is full: choose a larger --size"]),
    ] {
        let bench = Bench::new();
        let ran = bench.path("ran").display().to_string();
        let options = ["--size", "32M", "--guests", "2", "--setup", setup];
        let answer = capture_badly(&bench, &options, &format!("touch {ran}"));
        assert_eq!((answer.code, answer.stdout.as_str()), (Some(1), ""), "{answer:?}");
        for words in expected.iter().chain(&["nothing was recorded"]) {
            assert!(answer.stderr.contains(words), "'{words}' is missing: {answer:?}");
        }
        assert_eq!(bench.files(), ["scratch"], "neither the command ran nor is there a trace");
        assert_nothing_is_left(&bench);
    }
}

#[test]
fn an_interrupt_during_the_setup_leaves_nothing() {
    if !can_capture(&["mkfs.ext4"]) {
        return;
    }
    let bench = Bench::new();
    let ready = bench.path("ready");
    let setup = format!("touch {}; sleep 100 & wait", ready.display());
    let arguments = arguments(&bench, &["--size", "64M", "--setup", &setup], "true");
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let child = bench.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    for _ in 0..1500 {
        if ready.exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let devices = attached(&bench).len();
    signal("-INT", &child.id().to_string());
    let answer = Answer::of(child.wait_with_output().unwrap());
    assert_eq!((answer.code, devices), (Some(130), 1), "{answer:?}");
    assert!(answer.stderr.contains("interrupted before the command; nothing was recorded"), "{answer:?}");
    assert_eq!(bench.files(), ["ready", "scratch"]);
    assert_nothing_is_left(&bench);
}

#[test]
fn a_setup_of_no_words_is_refused() {
    Bench::new().refuses(&["capture", "--setup", "", "true"], &["--setup"]);
}
