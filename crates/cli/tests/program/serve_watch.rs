//! The start of a server, its figures, and its errors.

use super::bench::Bench;
use super::serve::{Served, bench_to_mount_in, nbdsh, succeeds, wait_until};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const PATH: &str = "conv:size=16M,timing=off";

pub fn ask(socket: &Path, request: &str) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_metrics_have_the_counts_of_every_station() {
    let bench = Bench::new();
    let Some(mut nbdsh) = nbdsh(&bench) else { return };
    let path = "page/nand:size=96M,timing=off";
    let served = Served::nbd(&bench, path, &["--metrics", "metrics"]);
    let script = "h.connect_uri('nbd+unix:///?socket=s'); [h.pwrite(bytes(65536), 0) for _ in range(3)]; h.pread(512, 0); h.flush()";
    succeeds(nbdsh.args(["-c", script]));
    let page = ask(&bench.path("metrics"), "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    for line in [
        "flashpath_write_amplification 1\n",
        "flashpath_received_blocks_total{station=\"page\",number=\"0\",cause=\"host-write\",origin=\"host-write\",content=\"data\"} 48\n",
        "flashpath_blocks_total{station=\"nand\",number=\"1\",cause=\"host-write\",origin=\"host-write\",content=\"data\"} 48\n",
        "flashpath_flash_operations_total{station=\"nand\",number=\"1\",operation=\"program\"} 48\n",
        "flashpath_requests_total{kind=\"write\"} 3\n",
        "flashpath_request_bytes_total{kind=\"write\"} 196608\n",
        "flashpath_requests_total{kind=\"flush\"} 1\n",
        "flashpath_request_seconds_count{kind=\"write\"} 3\n",
        "flashpath_request_seconds_bucket{kind=\"write\",le=\"+Inf\"} 3\n",
        "flashpath_nbd_clients_total{fate=\"accepted\"} 1\n",
    ] {
        assert!(page.contains(line), "{line}{page}");
    }
    let body = page.split("\r\n\r\n").nth(1).unwrap();
    for line in body.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(name.starts_with("flashpath_") && value.parse::<f64>().is_ok(), "{line}");
    }
    assert!(ask(&bench.path("metrics"), "GET /other HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
    assert!(ask(&bench.path("metrics"), "hello\n\n").starts_with("HTTP/1.1 400"));
    served.end();
    assert!(bench.files().is_empty(), "both sockets are removed");
}

#[test]
fn stats_print_a_line_each_time_with_the_blocks_received_and_copied() {
    let bench = Bench::new();
    let Some(mut nbdsh) = nbdsh(&bench) else { return };
    let served = Served::nbd(&bench, PATH, &["--stats", "0.2"]);
    let script = "h.connect_uri('nbd+unix:///?socket=s'); h.pwrite(bytes(1 << 20), 0)";
    succeeds(nbdsh.args(["-c", script]));
    std::thread::sleep(std::time::Duration::from_millis(500));
    let stderr = served.end();
    let last = stderr.lines().last().unwrap();
    assert!(stderr.lines().count() >= 2, "{stderr}");
    assert!(last.contains("IOPS") && last.contains("write amplification 1.000"), "{stderr}");
    assert!(last.contains("received: data 1.00 MiB") && last.ends_with("copied: nothing"), "{stderr}");
}

#[test]
fn in_the_background_it_returns_when_the_disk_is_ready_and_prints_its_process() {
    let bench = Bench::new();
    let answer = bench.flashpath(&["serve", PATH, "--nbd", "s", "--background"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let process: u32 = answer.stdout.trim().parse().expect("the process, and nothing else");
    let mut greeting = [0; 8];
    UnixStream::connect(bench.path("s")).unwrap().read_exact(&mut greeting).unwrap();
    assert_eq!(&greeting, b"NBDMAGIC");
    assert!(Command::new("kill").arg(process.to_string()).status().unwrap().success());
    wait_until("it ends", || !bench.path("s").exists());
}

#[test]
fn errors_of_a_background_start_reach_the_user_with_their_exit_code() {
    let bench = Bench::new();
    bench.refuses(&["serve", "conv:size=16Q", "--nbd", "s", "--background"], &["a size from"]);
    bench.write("s", "not a socket");
    bench.refuses(&["serve", PATH, "--nbd", "s", "--background"], &["is no socket"]);
    assert_eq!(std::fs::read(bench.path("s")).unwrap(), b"not a socket");
}

#[test]
fn the_socket_of_a_dead_server_is_taken_over_and_that_of_a_living_one_is_not() {
    let bench = Bench::new();
    drop(UnixListener::bind(bench.path("s")).unwrap());
    let served = Served::nbd(&bench, PATH, &[]);
    bench.refuses(&["serve", PATH, "--nbd", "s"], &["another server listens at s", "end that server"]);
    UnixStream::connect(bench.path("s")).unwrap();
    served.end();
}

#[test]
fn a_loopback_port_is_served_and_any_other_address_is_refused() {
    let bench = Bench::new();
    let served = Served::start(&bench, &["serve", PATH, "--nbd", "127.0.0.1:0"], None);
    let address = served.ready.trim().rsplit("nbd://").next().unwrap().to_string();
    std::net::TcpStream::connect(&address).unwrap().read_exact(&mut [0; 18]).unwrap();
    bench.refuses(&["serve", PATH, "--nbd", &address], &["cannot listen at"]);
    served.end();
    for place in ["0.0.0.0:10809", "[::]:1", "8.8.8.8:1"] {
        bench.refuses(&["serve", PATH, "--nbd", place], &["open to the network"]);
        bench.refuses(&["serve", PATH, "--nbd", "s", "--metrics", place], &["open to the network"]);
    }
}

#[test]
fn a_wrong_command_line_is_refused_before_anything_is_served() {
    let bench = Bench::new();
    for (arguments, expected) in [
        (&["serve", PATH][..], "--nbd"),
        (&["serve", PATH, "--nbd", "s", "--file", "m/f"], "cannot be used with"),
        (&["serve", "kernel-ext4/conv", "--nbd", "s"], "leave the file system out"),
        (&["serve", "cnv", "--nbd", "s"], "did you mean conv?"),
        (&["serve", PATH, "--nbd", "s", "--stats", "0"], "expected seconds"),
        (&["serve", PATH, "--nbd", "s", "--stats", "1", "--background"], "cannot be used with"),
        (&["serve", PATH, "--nbd", "nowhere/s"], "cannot listen at nowhere/s"),
        (&["serve", PATH, "--nbd", &"x/".repeat(80)], "at most 107 bytes"),
        (&["serve", PATH, "--file", "disk"], "names no file in a directory"),
        (&["serve", PATH, "--file", "m/"], "names no file in a directory"),
        (&["serve", PATH, "--file", "nowhere/m/disk"], "cannot use the directory"),
    ] {
        bench.refuses(arguments, &[expected]);
    }
    bench.write("x", "");
    bench.refuses(&["serve", PATH, "--file", "./disk"], &["is not empty"]);
    assert_eq!(bench.files(), ["x"]);
}

/// The number of times that the threads of a process went to sleep, except those that answer the kernel: other programs
/// on this machine call statfs on every mount.
fn sleeps(process: u32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap().map(|task| task.unwrap().path());
    let own = tasks.filter(|task| !std::fs::read_to_string(task.join("comm")).unwrap().starts_with("fuse"));
    let sleeps = own.map(|task| {
        let status = std::fs::read_to_string(task.join("status")).unwrap();
        let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        count.unwrap().trim().parse::<u64>().unwrap()
    });
    sleeps.sum()
}

/// An idle server and an idle mount woke 20 times a second to poll.
#[test]
fn an_idle_server_sleeps() {
    let check = |served: Served, arguments: &[&str]| {
        // It may have background work at first, and now and then.
        wait_until(&format!("{arguments:?} sleeps for a second"), || {
            let before = sleeps(served.process());
            std::thread::sleep(Duration::from_secs(1));
            sleeps(served.process()) - before <= 1
        });
        served.end();
    };
    for arguments in [
        &["serve", PATH, "--nbd", "s"][..],
        &["serve", PATH, "--nbd", "s", "--metrics", "figures", "--pace", "--stats", "60"],
        &["serve", "dm-zoned/conv:size=32M+zns:size=96M,zone=4M", "--nbd", "s"],
        &["serve", "page/nand:size=96M", "--nbd", "s", "--pace"],
    ] {
        let bench = Bench::new();
        check(Served::start(&bench, arguments, None), arguments);
    }
    for arguments in [
        &["serve", PATH, "--file", "m/disk"][..],
        &["serve", PATH, "--file", "m/disk", "--pace"],
        &["mount", "sfs/conv:size=256M", "m"],
    ] {
        let Some(bench) = bench_to_mount_in() else { return };
        check(Served::mounted(&bench, arguments), arguments);
    }
}

#[test]
fn an_interrupt_ends_it_with_exit_code_0() {
    let bench = Bench::new();
    let mut served = Served::nbd(&bench, PATH, &[]);
    served.signal("-INT");
    let (status, error) = served.wait();
    assert_eq!((status.code(), error.as_str()), (Some(0), ""));
}
