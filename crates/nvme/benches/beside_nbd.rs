//! The NVMe server and that of virtio disks beside the NBD server: the same requests to the same device in memory, over Unix sockets
//! and in shared memory, in turn. All clients send as many requests at once as the depth says, and then read the answers.

#![allow(clippy::disallowed_methods, reason = "a benchmark measures time")]

#[allow(dead_code, reason = "the tests of the disk use the rest")]
#[path = "../../vhost/tests/frontend/mod.rs"]
mod frontend;
#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../tests/initiator/mod.rs"]
mod initiator;

use flashpath::device::conv::{ConvSettings, Conventional};
use flashpath::expression::parse_term;
use flashpath::random::Random;
use flashpath::run::shared::{SharedDevice, Sharing};
use flashpath::time::Time;
use flashpath_nbd::{Address, Listener};
use flashpath_nvme::{Drive, Subsystem};
use frontend::Guest;
use initiator::{Command, Host, Queue, unix};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const NAME: &str = "nqn.2026-01.org.example:drive";
const DEVICE: u64 = 64 << 20;
const ROUND: Duration = Duration::from_millis(500);
const ROUNDS: usize = 5;

/// Requests of one kind.
#[derive(Clone, Copy)]
struct Load {
    is_write: bool,
    bytes: usize,
    depth: usize,
}

/// A client that serves a batch of requests at these offsets.
trait Client {
    fn batch(&mut self, load: Load, offsets: &[u64]);
}

struct Nbd {
    stream: UnixStream,
    buffer: Vec<u8>,
    answers: Vec<u8>,
}

impl Nbd {
    fn connect(socket: &Path) -> Nbd {
        let mut stream = UnixStream::connect(socket).unwrap();
        stream.read_exact(&mut [0; 18]).unwrap();
        // No zeros, and the export without a name.
        stream.write_all(&3u32.to_be_bytes()).unwrap();
        stream.write_all(b"IHAVEOPT\0\0\0\x01\0\0\0\0").unwrap();
        stream.read_exact(&mut [0; 10]).unwrap();
        Nbd { stream, buffer: Vec::new(), answers: Vec::new() }
    }
}

impl Client for Nbd {
    fn batch(&mut self, load: Load, offsets: &[u64]) {
        self.buffer.clear();
        for offset in offsets {
            self.buffer.extend(0x2560_9513u32.to_be_bytes());
            self.buffer.extend([0, 0, 0, u8::from(load.is_write)]);
            self.buffer.extend([0; 8]);
            self.buffer.extend(offset.to_be_bytes());
            self.buffer.extend((load.bytes as u32).to_be_bytes());
            if load.is_write {
                self.buffer.resize(self.buffer.len() + load.bytes, 7);
            }
        }
        self.stream.write_all(&self.buffer).unwrap();
        let answer = 16 + if load.is_write { 0 } else { load.bytes };
        self.answers.resize(answer * offsets.len(), 0);
        self.stream.read_exact(&mut self.answers).unwrap();
        assert!(self.answers[..8] == [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0], "an error of the server");
    }
}

struct Nvme {
    _host: Host,
    queue: Queue,
    buffer: Vec<u8>,
    answers: Vec<u8>,
}

impl Nvme {
    fn connect(socket: &Path) -> Nvme {
        let host = Host::connect(unix(socket), NAME, (false, false)).unwrap();
        let queue = host.queue(1).unwrap();
        Nvme { _host: host, queue, buffer: Vec::new(), answers: Vec::new() }
    }
}

impl Client for Nvme {
    fn batch(&mut self, load: Load, offsets: &[u64]) {
        let in_capsule = load.is_write && load.bytes <= 8192;
        self.buffer.clear();
        for (id, offset) in offsets.iter().enumerate() {
            let command = Command::new(if load.is_write { 1 } else { 2 }, 1).with_id(id as u16);
            let command = command.blocks(offset / 4096, load.bytes as u64 / 4096).describe(load.bytes, in_capsule);
            let data = if in_capsule { load.bytes } else { 0 };
            self.buffer.extend([4, 0, 72, if in_capsule { 72 } else { 0 }]);
            self.buffer.extend((72 + data as u32).to_le_bytes());
            self.buffer.extend(command.0);
            self.buffer.resize(self.buffer.len() + data, 7);
        }
        self.queue.stream.write_all(&self.buffer).unwrap();
        if load.is_write && !in_capsule {
            // The target asks for the data of each.
            self.answers.resize(24 * offsets.len(), 0);
            self.queue.stream.read_exact(&mut self.answers).unwrap();
            self.buffer.clear();
            for asked in self.answers.chunks(24) {
                assert_eq!(asked[0], 9, "a request for data");
                self.buffer.extend([6, 4, 24, 24]);
                self.buffer.extend((24 + load.bytes as u32).to_le_bytes());
                self.buffer.extend(&asked[8..12]);
                self.buffer.extend([0; 4]);
                self.buffer.extend((load.bytes as u32).to_le_bytes());
                self.buffer.extend([0; 4]);
                self.buffer.resize(self.buffer.len() + load.bytes, 7);
            }
            self.queue.stream.write_all(&self.buffer).unwrap();
        }
        let answer = 24 + if load.is_write { 0 } else { 24 + load.bytes };
        self.answers.resize(answer * offsets.len(), 0);
        self.queue.stream.read_exact(&mut self.answers).unwrap();
        let completion = &self.answers[answer - 24..answer];
        assert!(completion[0] == 5 && completion[22..24] == [0, 0], "an error of the server");
    }
}

/// A virtual machine with one queue.
struct Vhost {
    guest: Guest,
    data: Vec<u8>,
}

impl Client for Vhost {
    fn batch(&mut self, load: Load, offsets: &[u64]) {
        let queue = &mut self.guest.queues[0];
        self.data.resize(load.bytes, 7);
        for offset in offsets {
            match load.is_write {
                true => queue.submit(frontend::WRITE, offset / 512, &self.data, 0),
                false => queue.submit(frontend::READ, offset / 512, &[], load.bytes),
            };
        }
        for _ in offsets {
            assert_eq!(queue.complete().unwrap().status, frontend::OK, "an error of the server");
        }
    }
}

/// MiB per second of a round.
fn measure(client: &mut dyn Client, load: Load, random: &mut Random) -> f64 {
    let (began, mut bytes) = (Instant::now(), 0);
    let places = DEVICE / load.bytes as u64;
    while began.elapsed() < ROUND {
        let offsets: Vec<u64> = (0..load.depth).map(|_| random.below(places) * load.bytes as u64).collect();
        client.batch(load, &offsets);
        bytes += load.bytes * load.depth;
    }
    bytes as f64 / began.elapsed().as_secs_f64() / f64::from(1 << 20)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn device() -> Arc<SharedDevice> {
    let settings = ConvSettings::read(&parse_term(&format!("conv:size={DEVICE},timing=off")).unwrap()).unwrap();
    let began = Instant::now();
    let clock = Box::new(move || Time(began.elapsed().as_nanos() as u64));
    let device = SharedDevice::new(Box::new(Conventional::new(&settings, 4096)), Sharing::default(), clock).unwrap();
    let zeros = vec![1; 1 << 20];
    (0..DEVICE >> 20).for_each(|place| {
        device.write(place << 20, &zeros, false).unwrap();
    });
    Arc::new(device)
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let [nbd, nvme, vhost] = ["nbd", "nvme", "vhost"].map(|name| folder.path().join(name));
    let listen = |name: &Path| Listener::bind(&Address::Unix(name.to_path_buf())).unwrap();
    let _nbd = flashpath_nbd::Server::start(listen(&nbd), device(), Default::default(), Arc::new(|_| {})).unwrap();
    let subsystem = Arc::new(Subsystem::new(Some(NAME), "", vec![Drive::Blocks(device())]).unwrap());
    let _nvme = flashpath_nvme::Server::start(listen(&nvme), subsystem, Default::default(), Arc::new(|_| {})).unwrap();
    let _vhost = flashpath_vhost::Server::start(listen(&vhost), device(), "", Arc::new(|_| {})).unwrap();
    let (mut nbd, mut nvme) = (Nbd::connect(&nbd), Nvme::connect(&nvme));
    let mut vhost = Vhost { guest: Guest::connected(&vhost, 1), data: Vec::new() };
    let mut random = Random::new(1, "offsets");
    println!("| MiB/s, medians of {ROUNDS} rounds | NBD | NVMe | over NBD | vhost-user | over NBD |");
    println!("|---|---:|---:|---:|---:|---:|");
    for (is_write, bytes, depth) in [
        (true, 4096, 1),
        (true, 4096, 31),
        (true, 131_072, 8),
        (false, 4096, 1),
        (false, 4096, 31),
        (false, 131_072, 8),
    ] {
        let load = Load { is_write, bytes, depth };
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            let clients: [&mut dyn Client; 3] = [&mut nbd, &mut nvme, &mut vhost];
            rounds.push(clients.map(|client| measure(client, load, &mut random)));
        }
        let of = |value: &dyn Fn(&[f64; 3]) -> f64| median(rounds.iter().map(value).collect());
        let [nbd, nvme, vhost] = [0, 1, 2].map(|client| of(&|round| round[client]));
        let [nvme_ratio, vhost_ratio] = [1, 2].map(|client| of(&|round| round[client] / round[0]));
        let what = if is_write { "writes" } else { "reads" };
        let load = format!("{what} of {} KiB, depth {depth}", bytes >> 10);
        println!("| {load} | {nbd:.0} | {nvme:.0} | {nvme_ratio:.2} | {vhost:.0} | {vhost_ratio:.2} |");
    }
}
