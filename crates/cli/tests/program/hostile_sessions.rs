//! A campaign of hostile NBD clients: whatever they send and however they leave, a good client reads back its writes, a
//! new one is accepted, memory is bounded, and at the end no resource of theirs is left.
//!
//! `NBD_HOSTILE_SECONDS` sets its duration.

use super::bench::Bench;
use super::campaign::Campaign;
use super::nbd_client::{Client, FLUSH, READ, Request, TRIM, WRITE, WRITE_ZEROES};
use super::serve::{Served, wait_until};
use flashpath::random::Random;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const SIZE: u64 = 128 << 20;
/// The good client's part of the device begins here: no hostile request reaches it.
const MIDDLE: u64 = 64 << 20;
const ATTACKERS: u64 = 6;
/// Rounds of all attackers before each check for left-over resources.
const SESSIONS: u64 = 200;
/// The server's memory limit, in KiB: 64 clients in the handshake, as many beyond it, and the device's blocks.
const MOST_MEMORY: u64 = 400 << 10;
/// The additional memory of clients that do not read delayed answers: 64 MiB each, with some that have left already.
const MOST_WAITING: u64 = 2 * ATTACKERS * (64 << 10);

/// A length that does not cross from the lower half into the upper, but may exceed the end or all limits.
fn length(random: &mut Random) -> u32 {
    match random.below(8) {
        0 => 0,
        1 => u32::MAX - random.below(5000) as u32,
        2 => (SIZE + random.below(1 << 28)) as u32,
        3 => 1 << random.below(20),
        _ => random.below(100_000) as u32,
    }
}

/// A valid or nearly valid request.
fn request(random: &mut Random) -> Request {
    let command =
        [READ, WRITE, FLUSH, TRIM, 5, WRITE_ZEROES, 7, random.below(1 << 16) as u16][random.below(8) as usize];
    let flags = if random.below(3) == 0 { random.below(1 << 16) as u16 } else { random.below(2) as u16 };
    let offset = match random.below(6) {
        0 => SIZE + random.below(u64::MAX - SIZE),
        1 => u64::MAX - random.below(1 << 33),
        _ => random.below(MIDDLE - (2 << 20)),
    };
    Request { flags, command, cookie: random.below(u64::MAX), offset, length: length(random) }
}

/// An option of the handshake, with a right or wrong length.
fn option(random: &mut Random) -> Vec<u8> {
    let number = random.below(14) as u32;
    let data: Vec<u8> =
        (0..random.below(80)).map(|_| if random.below(2) == 0 { 0 } else { random.below(256) as u8 }).collect();
    let declared = if random.below(6) == 0 { length(random) } else { data.len() as u32 };
    [b"IHAVEOPT", &number.to_be_bytes()[..], &declared.to_be_bytes(), &data].concat()
}

/// Random bytes.
fn garbage(random: &mut Random, most: u64) -> Vec<u8> {
    (0..random.below(most)).map(|_| random.below(256) as u8).collect()
}

/// One hostile session. It ignores errors.
fn attack(socket: &Path, random: &mut Random) -> std::io::Result<()> {
    if random.below(3) == 0 {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(Duration::from_millis(20)))?;
        let mut bytes = if random.below(4) == 0 { Vec::new() } else { 3u32.to_be_bytes().to_vec() };
        (0..random.below(6)).for_each(|_| bytes.extend(option(random)));
        match random.below(3) {
            0 => bytes.extend(garbage(random, 3000)),
            1 => bytes.truncate(random.below(bytes.len() as u64 + 1) as usize),
            _ => {}
        }
        stream.write_all(&bytes)?;
        if random.below(2) == 0 {
            let _ = stream.read(&mut [0; 100])?;
        }
        return Ok(());
    }
    let mut client = Client::try_connect(socket)?;
    client.0.set_read_timeout(Some(Duration::from_millis(20)))?;
    client.0.set_write_timeout(Some(Duration::from_millis(200)))?;
    let never_reads = random.below(3) == 0;
    for _ in 0..random.below(30) {
        let mut request = request(random);
        if never_reads {
            request = Request { offset: 0, length: 1 << 20, flags: 0, ..Request::new(READ, 0, 0) };
        }
        let mut bytes = request.bytes();
        if request.command == WRITE && request.length < 1 << 20 {
            bytes.extend(std::iter::repeat_n(7, request.length as usize));
        }
        match random.below(20) {
            // A field that is not the offset, or the length.
            0 => bytes[random.below(8) as usize] ^= 1 << random.below(8),
            // It disconnects in the middle of the header or of the payload.
            1 => {
                bytes.truncate(random.below(bytes.len() as u64) as usize);
                return client.0.write_all(&bytes);
            }
            2 => bytes.extend(garbage(random, 100)),
            _ => {}
        }
        client.0.write_all(&bytes)?;
        if !never_reads && random.below(4) == 0 {
            let _ = client.0.read(&mut vec![0; 1 + random.below(50_000) as usize])?;
        }
    }
    match random.below(4) {
        0 => client.close_half(),
        1 => std::thread::sleep(Duration::from_millis(random.below(30))),
        _ => {}
    }
    if random.below(2) == 0 {
        let _ = client.0.read(&mut [0; 4096])?;
    }
    Ok(())
}

/// The good client and its writes.
struct GoodClient {
    client: Client,
    chunks: Vec<u8>,
    random: Random,
}

const CHUNK: usize = 64 << 10;

impl GoodClient {
    fn works(&mut self) {
        let chunk = self.random.below(self.chunks.len() as u64) as usize;
        let offset = MIDDLE + (chunk * CHUNK) as u64;
        assert!(self.client.read(offset, CHUNK).iter().all(|byte| *byte == self.chunks[chunk]), "chunk {chunk}");
        self.chunks[chunk] = self.random.below(256) as u8;
        let write = Request { cookie: self.random.below(1000), ..Request::new(WRITE, offset, CHUNK as u32) };
        self.client.does(write, &[self.chunks[chunk]; CHUNK]);
        self.client.does(Request::new(FLUSH, 0, 0), &[]);
    }
}

/// A number in the server's status file.
fn status(served: &Served, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", served.process())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn open_files(served: &Served) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", served.process())).unwrap().count()
}

/// Runs the attackers of a round and the good client in parallel.
fn attacked_together(socket: &Path, good: &mut GoodClient, seed: u64, sessions: &AtomicU64) {
    let are_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let attackers: Vec<_> = (0..ATTACKERS)
            .map(|attacker| {
                let mut random = Random::new(seed, &format!("attacker {attacker}"));
                let are_done = &are_done;
                scope.spawn(move || {
                    // Some send nothing, and stay connected.
                    let mut silent = Vec::new();
                    while !are_done.load(Ordering::SeqCst) {
                        let _ = attack(socket, &mut random);
                        silent.extend(UnixStream::connect(socket));
                        if silent.len() > 30 {
                            silent.clear();
                        }
                        sessions.fetch_add(1, Ordering::SeqCst);
                    }
                })
            })
            .collect();
        let until = sessions.load(Ordering::SeqCst) + SESSIONS;
        while sessions.load(Ordering::SeqCst) < until && !attackers.iter().any(|attacker| attacker.is_finished()) {
            good.works();
            // A client may be disconnected as the oldest while others flood the server; it reconnects.
            wait_until("a new client is let in", || {
                Client::try_connect(socket).is_ok_and(|mut new| new.reads_one_byte())
            });
        }
        are_done.store(true, Ordering::SeqCst);
    });
}

fn survives(name: &'static str, more: &[&str], most_memory: u64) {
    let bench = Bench::new();
    let mut campaign = Campaign::new(name, "NBD_HOSTILE_SECONDS");
    let path = format!("conv:size={SIZE},timing=off");
    let served = Served::nbd(&bench, &path, more);
    let socket = bench.path("s");
    let chunks = vec![0; (SIZE - MIDDLE) as usize / CHUNK];
    let mut good = GoodClient { client: Client::connect(&socket), chunks, random: Random::new(0, "a good client") };
    good.works();
    let (files, threads) = (open_files(&served), status(&served, "Threads:"));
    let sessions = AtomicU64::new(0);
    while let Some((_, seed)) = campaign.round() {
        attacked_together(&socket, &mut good, seed, &sessions);
        wait_until("no file and no thread of a client is left", || {
            open_files(&served) == files && status(&served, "Threads:") == threads
        });
    }
    let peak = status(&served, "VmHWM:");
    assert!(peak < most_memory, "{peak} KiB at the most");
    good.works();
    assert_eq!(served.end(), "", "it has nothing to say of them");
    campaign.end(&format!("{} hostile sessions, {peak} KiB at the most", sessions.into_inner()));
}

#[test]
fn a_good_client_is_served_beside_hostile_ones_that_leave_nothing_behind() {
    survives("hostile sessions", &[], MOST_MEMORY);
}

#[test]
fn a_good_client_is_served_beside_hostile_ones_with_paced_answers() {
    survives("hostile sessions, paced", &["--pace"], MOST_MEMORY + MOST_WAITING);
}
