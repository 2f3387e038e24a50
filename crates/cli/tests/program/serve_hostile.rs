//! Hostile clients: each gets an error or is disconnected, without effect on the others.

use super::bench::Bench;
use super::nbd_client::{Client, NO_SPACE};
use super::serve::{Served, wait_until};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

const PATH: &str = "conv:size=16M,timing=off";

#[test]
fn garbage_and_half_requests_end_their_own_connection_only() {
    let bench = Bench::new();
    let served = Served::nbd(&bench, PATH, &[]);
    let mut good = Client::connect(&bench.path("s"));
    for bytes in [&b"\0"[..], b"GET / HTTP/1.1\r\n\r\n", &[0xff; 5000], b"\0\0\0\x03IHAVEOPT\0\0\0\x07\xff\xff\xff\xff"]
    {
        let mut stream = UnixStream::connect(bench.path("s")).unwrap();
        // The server may have gone already.
        let _ = stream.write_all(bytes);
        good.works();
    }
    let mut half = Client::connect(&bench.path("s"));
    half.request(1, 0, 1 << 20);
    half.0.write_all(&[7; 1000]).unwrap();
    drop(half);
    let mut liar = Client::connect(&bench.path("s"));
    liar.0.write_all(&[0x55; 28]).unwrap();
    assert!(liar.sees_the_end());
    good.works();
    served.end();
}

#[test]
fn impossible_requests_are_refused_and_the_connection_goes_on() {
    let bench = Bench::new();
    let served = Served::nbd(&bench, PATH, &[]);
    let mut client = Client::connect(&bench.path("s"));
    for (command, offset, length, error) in [
        (0, 16 << 20, 1, 22),
        (0, u64::MAX, u32::MAX, 22),
        (0, 0, (32 << 20) + 1, 22),
        (4, u64::MAX - 3, 4096, 28),
        (6, 0, u32::MAX, 28),
        (7, 0, 4096, 22),
        (5, 0, 1, 22),
        (77, 0, 0, 22),
    ] {
        client.request(command, offset, length);
        assert_eq!(client.error(), error, "command {command}, {length} bytes from {offset}");
    }
    client.request(1, 16 << 20, 1000);
    client.0.write_all(&[1; 1000]).unwrap();
    assert_eq!(client.error(), NO_SPACE);
    client.works();
    served.end();
}

#[test]
fn clients_beyond_the_limit_are_disconnected_and_memory_is_bounded() {
    let bench = Bench::new();
    let served = Served::nbd(&bench, PATH, &[]);
    let mut clients: Vec<Client> = (0..64).map(|_| Client::connect(&bench.path("s"))).collect();
    for client in &mut clients {
        // Each announces 32 MiB, and sends a part.
        client.request(1, 0, 16 << 20);
        client.0.write_all(&[3; 100_000]).unwrap();
    }
    let mut late = UnixStream::connect(bench.path("s")).unwrap();
    late.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    late.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x07\0\0\0\x06\0\0\0\0\0\0IHAVEOPT\0\0\0\x02\0\0\0\0").unwrap();
    let mut answer = Vec::new();
    late.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.contains("as many clients as there may be are served already"), "{answer}");
    let status = std::fs::read_to_string(format!("/proc/{}/status", served.process())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 200 << 10, "64 clients take {peak} KiB");
    clients.clear();
    wait_until("there is room again", || {
        let mut stream = UnixStream::connect(bench.path("s")).unwrap();
        stream.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\0").unwrap();
        stream.read_exact(&mut [0; 28]).is_ok()
    });
    served.end();
}

/// 64 silent connections locked everyone out for 30 seconds.
#[test]
fn silent_clients_take_no_place_from_an_active_one() {
    let bench = Bench::new();
    let served = Served::nbd(&bench, PATH, &["--metrics", "figures"]);
    let mut good = Client::connect(&bench.path("s"));
    let connect = |socket: &str| UnixStream::connect(bench.path(socket)).unwrap();
    let silent: Vec<UnixStream> = (0..200).map(|_| connect("s")).collect();
    Client::connect(&bench.path("s")).works();
    good.works();
    let asking: Vec<UnixStream> = (0..50)
        .map(|_| {
            let mut stream = connect("figures");
            // A disconnected one is ignored.
            let _ = stream.write_all(b"GET /metr");
            stream
        })
        .collect();
    let mut stream = connect("figures");
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    assert!(page.starts_with("HTTP/1.1 200 OK"), "{page}");
    assert!(page.contains("flashpath_nbd_clients_total{fate=\"accepted\"} 2\n"), "{page}");
    let threads = std::fs::read_dir(format!("/proc/{}/task", served.process())).unwrap().count();
    assert!(threads < 200, "{threads} threads");
    good.works();
    drop((silent, asking));
    served.end();
}

#[test]
fn a_client_that_does_not_fetch_its_replies_does_not_hold_up_the_end() {
    let bench = Bench::new();
    let served = Served::nbd(&bench, PATH, &[]);
    let mut greedy = Client::connect(&bench.path("s"));
    for _ in 0..20 {
        greedy.request(0, 0, 1 << 20);
    }
    let mut half = Client::connect(&bench.path("s"));
    half.request(1, 0, 4096);
    std::thread::sleep(Duration::from_millis(100));
    Client::connect(&bench.path("s")).works();
    served.end();
}
