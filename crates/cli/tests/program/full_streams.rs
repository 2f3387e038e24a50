//! The program's behaviour with full or closed streams and with readers that have gone.

use super::bench::{Answer, Bench, DRIVE};
use super::serve::{PATIENCE, wait_until};
use std::fs::File;
use std::process::{Command, Stdio};
use std::time::Instant;

fn full() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

/// With both streams on /dev/full, every error ended in a panic and exit code 101: the printing macros panic if
/// standard error is full.
#[test]
fn with_both_streams_full_the_exit_code_is_still_right() {
    let bench = Bench::new();
    bench.write_trace("t.csv", 10);
    for (arguments, code) in [
        (&["layers"][..], 2),
        (&["--help"], 2),
        (&["serve", "--help"], 2),
        (&[], 2),
        (&["no-such-command"], 2),
        (&["layers", "nosuch"], 2),
        (&["run", "uniform:writes=16", "--on", DRIVE], 2),
        (&["run", "uniform:writes=16", "--on", DRIVE, "--json", "r.json", "--report", "r.html"], 2),
        (&["run", "uniform:writes=50x", "--on", "page/nand:size=64M,endurance=3,timing=off", "--json", "r"], 2),
        (&["convert", "t.csv", "out.csv"], 0),
        (&["convert", "nothing.csv", "out.csv"], 2),
        (&["mkfs", "sfs/conv:image=v,size=64M"], 2),
        (&["fsck", "sfs/conv:image=nothing"], 8),
        (&["inspect", "sfs/conv:image=nothing"], 2),
        (&["mount", "sfs/conv:image=nothing", "m"], 2),
        (&["serve", "conv:size=16M", "--nbd", "s"], 2),
        (&["serve", "conv:size=16M", "--nbd", "s", "--background"], 2),
        (&["serve", "conv:size=16M", "--nbd", "127.0.0.1:0", "--metrics", "s", "--stats", "1"], 2),
        (&["capture", "--on", "nosuch", "--", "true"], 2),
        (&["reproduce", "nosuch"], 2),
    ] {
        let status = bench.command(arguments).stdout(full()).stderr(full()).status().unwrap();
        assert_eq!(status.code(), Some(code), "{arguments:?}");
    }
    assert!(!bench.path("s").exists(), "no socket is left behind");
}

/// `serve >/dev/full` left its socket behind, and with --background a server of unknown number.
#[test]
fn a_server_that_cannot_report_readiness_ends() {
    for more in [&[][..], &["--metrics", "figures"], &["--background"]] {
        let bench = Bench::new();
        let arguments = [&["serve", "conv:size=16M", "--nbd", "s"], more].concat();
        let answer = Answer::of(bench.command(&arguments).stdout(full()).stderr(Stdio::piped()).output().unwrap());
        assert_eq!(answer.code, Some(2), "{more:?}: {answer:?}");
        assert!(answer.stderr.contains("cannot write standard output"), "{answer:?}");
        assert!(bench.files().is_empty(), "{more:?} leaves {:?}", bench.files());
    }
}

#[test]
fn a_server_whose_standard_error_is_full_serves_and_ends_cleanly() {
    let bench = Bench::new();
    let arguments = ["serve", "conv:size=16M", "--nbd", "s", "--stats", "0.1"];
    let mut child = bench.command(&arguments).stdout(Stdio::null()).stderr(full()).spawn().unwrap();
    wait_until("it serves", || bench.path("s").exists());
    std::os::unix::net::UnixStream::connect(bench.path("s")).unwrap();
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    let until = Instant::now() + PATIENCE;
    while child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < until, "it ends");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(bench.files().is_empty());
}

#[test]
fn closed_streams_and_readers_that_have_gone_are_not_errors() {
    let bench = Bench::new();
    let program = env!("CARGO_BIN_EXE_flashpath");
    for script in [
        "\"$0\" layers >&-",
        "\"$0\" layers 2>&- >/dev/null",
        "\"$0\" layers <&- >&- 2>&-",
        "set -o pipefail; \"$0\" layers | head -1",
        "set -o pipefail; \"$0\" --help | head -1",
        "set -o pipefail; \"$0\" layers 2>&1 | true",
    ] {
        let mut command = Command::new("bash");
        let output = command.args(["-c", script, program]).current_dir(bench.directory.path()).output().unwrap();
        let answer = Answer::of(output);
        assert_eq!((answer.code, answer.stderr.as_str()), (Some(0), ""), "{script}");
    }
}
