//! Clients of bad will: each is answered with an error or sent away, and the others do not notice.

use super::bench::Bench;
use super::serve::{Served, wait_until};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

const PATH: &str = "conv:size=16M,timing=off";

/// A client that is past the handshake.
struct Client(UnixStream);

impl Client {
    fn connect(bench: &Bench) -> Client {
        let mut stream = UnixStream::connect(bench.path("s")).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.read_exact(&mut [0; 18]).unwrap();
        stream.write_all(&[0, 0, 0, 3]).unwrap();
        stream.write_all(b"IHAVEOPT\0\0\0\x01\0\0\0\0").unwrap();
        stream.read_exact(&mut [0; 10]).unwrap();
        Client(stream)
    }

    fn request(&mut self, command: u16, offset: u64, length: u32) {
        let mut bytes = 0x2560_9513u32.to_be_bytes().to_vec();
        bytes.extend([0, 0]);
        bytes.extend(command.to_be_bytes());
        bytes.extend(9u64.to_be_bytes());
        bytes.extend(offset.to_be_bytes());
        bytes.extend(length.to_be_bytes());
        self.0.write_all(&bytes).unwrap();
    }

    /// The error of the next reply.
    fn error(&mut self) -> u32 {
        let mut reply = [0; 16];
        self.0.read_exact(&mut reply).unwrap();
        assert_eq!(reply[..4], 0x6744_6698u32.to_be_bytes());
        u32::from_be_bytes(reply[4..8].try_into().unwrap())
    }

    /// That it is still served.
    fn works(&mut self) {
        self.request(0, 0, 1);
        assert_eq!(self.error(), 0);
        self.0.read_exact(&mut [0]).unwrap();
    }

    fn sees_the_end(&mut self) -> bool {
        let mut rest = Vec::new();
        self.0.read_to_end(&mut rest).is_ok()
    }
}

#[test]
fn garbage_and_half_requests_end_their_own_connection_only() {
    let bench = Bench::new();
    let served = Served::nbd(&bench, PATH, &[]);
    let mut good = Client::connect(&bench);
    for bytes in [&b"\0"[..], b"GET / HTTP/1.1\r\n\r\n", &[0xff; 5000], b"\0\0\0\x03IHAVEOPT\0\0\0\x07\xff\xff\xff\xff"]
    {
        let mut stream = UnixStream::connect(bench.path("s")).unwrap();
        // The server may have gone already.
        let _ = stream.write_all(bytes);
        good.works();
    }
    let mut half = Client::connect(&bench);
    half.request(1, 0, 1 << 20);
    half.0.write_all(&[7; 1000]).unwrap();
    drop(half);
    let mut liar = Client::connect(&bench);
    liar.0.write_all(&[0x55; 28]).unwrap();
    assert!(liar.sees_the_end());
    good.works();
    served.end();
}

#[test]
fn what_cannot_be_is_refused_and_the_connection_goes_on() {
    let bench = Bench::new();
    let served = Served::nbd(&bench, PATH, &[]);
    let mut client = Client::connect(&bench);
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
    assert_eq!(client.error(), 28);
    client.works();
    served.end();
}

#[test]
fn more_clients_than_are_served_are_sent_away_and_memory_stays_bounded() {
    let bench = Bench::new();
    let served = Served::nbd(&bench, PATH, &[]);
    let mut clients: Vec<Client> = (0..64).map(|_| Client::connect(&bench)).collect();
    for client in &mut clients {
        // Each says that it has 32 MiB, and sends some of it.
        client.request(1, 0, 16 << 20);
        client.0.write_all(&[3; 100_000]).unwrap();
    }
    let mut late = UnixStream::connect(bench.path("s")).unwrap();
    late.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut told = Vec::new();
    assert!(late.read_to_end(&mut told).is_err() || told.is_empty(), "it is not even greeted");
    let status = std::fs::read_to_string(format!("/proc/{}/status", served.process())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 200 << 10, "64 clients take {peak} KiB");
    clients.clear();
    wait_until("there is room again", || {
        let mut stream = UnixStream::connect(bench.path("s")).unwrap();
        stream.read_exact(&mut [0; 18]).is_ok()
    });
    served.end();
}

#[test]
fn a_client_that_does_not_fetch_its_replies_does_not_hold_up_the_end() {
    let bench = Bench::new();
    let served = Served::nbd(&bench, PATH, &[]);
    let mut greedy = Client::connect(&bench);
    for _ in 0..20 {
        greedy.request(0, 0, 1 << 20);
    }
    let mut half = Client::connect(&bench);
    half.request(1, 0, 4096);
    std::thread::sleep(Duration::from_millis(100));
    Client::connect(&bench).works();
    served.end();
}
