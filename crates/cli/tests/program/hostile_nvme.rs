//! A campaign of hostile NVMe hosts: whatever they send and however they leave, a good host reads back its writes, a new one is
//! accepted, memory is bounded, and at the end no resource of theirs is left.
//!
//! `NVME_HOSTILE_SECONDS` sets its duration.

use super::bench::Bench;
use super::campaign::Campaign;
use super::nvme_initiator::{Command, Ended, Host, Queue, connection_request, unit, unix};
use super::serve::{NVME_NAME, Served, wait_until};
use flashpath::random::Random;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Blocks of the namespace.
const BLOCKS: u64 = 32 << 10;
/// The good host's part begins here: no hostile command reaches it.
const MIDDLE: u64 = 16 << 10;
const ATTACKERS: u64 = 6;
/// Sessions of all attackers before each check for left-over resources.
const SESSIONS: u64 = 200;
/// The server's memory limit, in KiB: the buffers of all connections that there may be, and the devices' blocks.
const MOST_MEMORY: u64 = 900 << 10;

fn garbage(random: &mut Random, most: u64) -> Vec<u8> {
    (0..random.below(most)).map(|_| random.below(256) as u8).collect()
}

/// A valid or nearly valid command, which changes nothing above the middle.
fn command(random: &mut Random) -> Command {
    let opcodes = [0, 1, 2, 5, 8, 9, 0x0c, 0x19, 0x79, 0x7a, 0x7d, 0x06, 0x0a, random.below(256) as u8];
    let opcode = opcodes[random.below(14) as usize];
    let namespace = [1, 1, 1, 2, 2, 0, 3, u32::MAX][random.below(8) as usize];
    let first = match random.below(6) {
        0 => BLOCKS + random.below(u64::MAX - BLOCKS),
        1 => u64::MAX - random.below(1000),
        _ => random.below(MIDDLE - 70_000.min(MIDDLE / 2)),
    };
    let count = [1, 2, 32, 128, 129, 5000][random.below(6) as usize];
    let mut command = Command::new(opcode, namespace).blocks(first, count).with_id(random.below(1 << 16) as u16);
    // Ranges come in the data, which is all sevens: they are beyond the end.
    for word in [11, 13, 14] {
        if random.below(8) == 0 && word != 11 {
            command = command.word(word, random.below(1 << 32) as u32);
        }
    }
    command
}

/// One hostile session. It ignores errors.
fn attack(socket: &Path, random: &mut Random) -> Result<(), Ended> {
    let impatient = |queue: &Queue| queue.stream.set_patience(Duration::from_millis(30));
    if random.below(3) == 0 {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(Duration::from_millis(20)))?;
        stream.set_write_timeout(Some(Duration::from_millis(200)))?;
        let mut bytes = connection_request(random.below(40) as u8, random.below(2) == 0, random.below(2) == 0);
        match random.below(4) {
            0 => bytes = garbage(random, 3000),
            1 => bytes.truncate(random.below(129) as usize),
            2 => bytes[random.below(128) as usize] ^= 1 << random.below(8),
            _ => bytes.extend(garbage(random, 300)),
        }
        stream.write_all(&bytes)?;
        let _ = stream.read(&mut [0; 200])?;
        return Ok(());
    }
    let digests = (random.below(3) == 0, random.below(3) == 0);
    let mut admin = Queue::open(Box::new(UnixStream::connect(socket)?), digests.0, digests.1)?;
    let connected = admin.connect(NVME_NAME, 0, 0xffff, random.below(3) as u32 * 100)?;
    let _ = admin.try_run(Command::fabric(0).word(11, 0x14).word(12, 0x46_0061), &[], 0)?;
    let mut queue = Queue::open(Box::new(UnixStream::connect(socket)?), digests.0, digests.1)?;
    queue.connect(NVME_NAME, 1 + random.below(3) as u16, connected.result as u16, 0)?;
    if random.below(5) == 0 {
        std::mem::swap(&mut admin, &mut queue);
    }
    impatient(&queue)?;
    impatient(&admin)?;
    let never_reads = random.below(3) == 0;
    for _ in 0..random.below(60) {
        let mut bytes = match random.below(10) {
            _ if never_reads => queue.capsule(&Command::new(2, 1).blocks(0, 128).describe(128 << 12, false), &[]),
            0 => {
                let length = random.below(5000) as usize;
                let (id, tag) = (random.below(70) as u16, random.below(10) as u16);
                queue.host_data(id, tag, random.below(3) as usize * 4096, &vec![7; length], random.below(2) == 0)
            }
            1 => unit(random.below(12) as u8, random.below(8) as u8, 24, 24, &garbage(random, 200), &[]),
            2 => {
                let property = Command::fabric([0, 1, 4, 5, 8][random.below(5) as usize]);
                queue.capsule(&property.word(11, random.below(64) as u32).word(12, random.below(1 << 32) as u32), &[])
            }
            _ => {
                let (length, in_capsule) = (random.below(40) as usize * 4096, random.below(2) == 0);
                let data = vec![7; if in_capsule { length.min(8192) } else { 0 }];
                let described = if random.below(6) == 0 { random.below(1 << 32) as usize } else { length };
                queue.capsule(&command(random).describe(described, in_capsule), &data)
            }
        };
        match random.below(30) {
            0 => {
                let place = random.below(bytes.len().min(72) as u64) as usize;
                // A changed address could reach the good host's blocks.
                bytes[if place >= 48 { 4 } else { place.min(7) }] ^= 1 << random.below(8);
            }
            1 => {
                bytes.truncate(random.below(bytes.len() as u64) as usize);
                queue.stream.write_all(&bytes)?;
                return Ok(());
            }
            2 => bytes.extend(garbage(random, 100)),
            _ => {}
        }
        queue.stream.write_all(&bytes)?;
        if !never_reads && random.below(4) == 0 {
            let _ = queue.stream.read(&mut vec![0; 1 + random.below(50_000) as usize])?;
        }
    }
    if random.below(2) == 0 {
        drop(admin);
    }
    let _ = queue.stream.read(&mut [0; 4096])?;
    Ok(())
}

/// The good host and its writes.
struct GoodHost {
    _host: Host,
    queue: Queue,
    chunks: Vec<u8>,
    random: Random,
}

/// Blocks that it writes at once.
const CHUNK: u64 = 16;

impl GoodHost {
    fn works(&mut self) {
        let chunk = self.random.below(self.chunks.len() as u64) as usize;
        let first = MIDDLE + chunk as u64 * CHUNK;
        assert!(self.queue.read(1, first, CHUNK).iter().all(|byte| *byte == self.chunks[chunk]), "chunk {chunk}");
        self.chunks[chunk] = self.random.below(256) as u8;
        assert_eq!(self.queue.write(1, first, &vec![self.chunks[chunk]; CHUNK as usize * 4096]), 0);
        assert_eq!(self.queue.run(Command::new(0, 1), &[], 0).status, 0);
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

fn is_let_in(socket: &Path) -> bool {
    let host = Host::connect(unix(socket), NVME_NAME, (false, false));
    host.is_ok_and(|host| host.queue(1).is_ok_and(|mut queue| queue.try_run(Command::new(0, 1), &[], 0).is_ok()))
}

/// Runs the attackers of a round and the good host in parallel.
fn attacked_together(socket: &Path, good: &mut GoodHost, seed: u64, sessions: &AtomicU64) {
    let are_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let attackers: Vec<_> = (0..ATTACKERS)
            .map(|attacker| {
                let mut random = Random::new(seed, &format!("attacker {attacker}"));
                let are_done = &are_done;
                scope.spawn(move || {
                    while !are_done.load(Ordering::SeqCst) {
                        let _ = attack(socket, &mut random);
                        sessions.fetch_add(1, Ordering::SeqCst);
                    }
                })
            })
            .collect();
        let until = sessions.load(Ordering::SeqCst) + SESSIONS;
        while sessions.load(Ordering::SeqCst) < until && !attackers.iter().any(|attacker| attacker.is_finished()) {
            good.works();
            wait_until("a new host is let in", || is_let_in(socket));
        }
        are_done.store(true, Ordering::SeqCst);
    });
}

fn survives(name: &'static str, more: &[&str]) {
    let bench = Bench::new();
    let mut campaign = Campaign::new(name, "NVME_HOSTILE_SECONDS");
    let paths = ["conv:size=128M,timing=off", "zns:size=64M,zone=1M,timing=off"];
    let served = Served::nvme(&bench, &paths, more);
    let socket = bench.path("s");
    let host = Host::connect(unix(&socket), NVME_NAME, (true, false)).unwrap();
    let queue = host.queue(1).unwrap();
    let chunks = vec![0; ((BLOCKS - MIDDLE) / CHUNK) as usize];
    let mut good = GoodHost { _host: host, queue, chunks, random: Random::new(0, "a good host") };
    good.works();
    let (files, threads) = (open_files(&served), status(&served, "Threads:"));
    let sessions = AtomicU64::new(0);
    while let Some((_, seed)) = campaign.round() {
        attacked_together(&socket, &mut good, seed, &sessions);
        wait_until("no file and no thread of a host is left", || {
            open_files(&served) == files && status(&served, "Threads:") == threads
        });
    }
    let peak = status(&served, "VmHWM:");
    assert!(peak < MOST_MEMORY, "{peak} KiB at the most");
    good.works();
    assert_eq!(served.end(), "", "it has nothing to say of them");
    campaign.end(&format!("{} hostile sessions, {peak} KiB at the most", sessions.into_inner()));
}

#[test]
fn a_good_host_is_served_beside_hostile_ones_that_leave_nothing_behind() {
    survives("hostile NVMe sessions", &[]);
}

#[test]
fn a_good_host_is_served_beside_hostile_ones_with_paced_answers() {
    survives("hostile NVMe sessions, paced", &["--pace"]);
}
