//! The journal that a monitor keeps, beside copies of the blocks and a commit of the log in the volume.
//!
//! The monitor is another process: this program again.
//!
//! First, commits alone: the same numbers of blocks are committed again and again, each time in new frames, as a file system
//! does. Each is timed with its frames filled before it. The time to fill them is told too: it has in it what lets frames of
//! earlier commits be written again. Beside them, bare calls: a message there and back, and a call that protects as many pages.
//!
//! Then whole volumes on images in RAM (`/dev/shm`), which fsync 64 written blocks of a file: what the fsync takes, and that of
//! a volume whose log is inside, with a copy of the blocks beside it. They alternate; medians.

use super::bare::{Pages, round_trip};
use super::written::{Written, at};
use super::{BLOCK, median};
use flashpath_vmm::{Arena, Frame, Guest, Monitor, Protection, Settings, Volume};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Tells this program by which socket to be a monitor.
pub const MONITOR: &str = "FLASHPATH_BENCH_MONITOR";

/// Blocks of a commit.
const COMMITS: [usize; 6] = [1, 8, 64, 256, 1024, 4096];
/// Blocks of an fsync.
const SYNCED: usize = 64;

/// Is a monitor until it is killed.
pub fn keep(socket: PathBuf) {
    let settings = Settings { socket, most_blocks: 1 << 16, spill: None };
    let monitor = Monitor::listen(&settings, |_| {}, |_| Ok(())).expect("a monitor");
    monitor.serve();
}

/// A monitor in a process of its own.
struct Keeper {
    process: Child,
    socket: PathBuf,
}

impl Keeper {
    fn begin(directory: &Path) -> Keeper {
        let socket = directory.join("monitor");
        let program = std::env::current_exe().expect("the path of this program");
        let process = Command::new(program).env(MONITOR, &socket).stdin(Stdio::null()).spawn().expect("a process");
        let began = Instant::now();
        while Guest::connect(&socket).is_err() {
            assert!(began.elapsed() < Duration::from_secs(30), "the monitor does not listen");
            std::thread::sleep(Duration::from_millis(1));
        }
        Keeper { process, socket }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A guest that commits the same blocks again and again.
struct Committing {
    guest: Guest,
    arena: Arc<Arena>,
    kept: Vec<Frame>,
    number: u32,
}

impl Committing {
    fn begin(socket: &Path, protection: Protection) -> Committing {
        let guest = Guest::connect(socket).expect("a monitor");
        let volume = Volume {
            uuid: [protection as u8 + 1; 16],
            name: [protection as u8 + 1; 16],
            blocks: 1 << 20,
            width: BLOCK,
            most_in_memory: 4 * COMMITS[COMMITS.len() - 1] as u64,
            path: String::new(),
            directory: String::new(),
        };
        let arena = guest.begin(volume, 1, protection).expect("the right to protect memory");
        Committing { guest, arena, kept: Vec::new(), number: 0 }
    }

    /// Nanoseconds in which the frames of a commit are filled, and of the commit.
    fn commit(&mut self, bytes: &[u8], blocks: usize) -> (f64, f64) {
        self.number += 1;
        let began = Instant::now();
        let new: Vec<Frame> = (0..blocks).map(|_| self.arena.take(bytes).expect("a free frame")).collect();
        let filled_ns = began.elapsed().as_nanos() as f64;
        let began = Instant::now();
        let tuples = new.iter().enumerate().map(|(block, frame)| (block as u64, Some(frame)));
        self.guest.commit(self.number, tuples, &[]).expect("it is kept");
        let ns = began.elapsed().as_nanos() as f64;
        self.kept = new;
        (filled_ns, ns)
    }

    /// Keeps nothing any more.
    fn let_go(&mut self) {
        self.guest.let_go(self.number + 1).expect("it is let go");
        self.kept.clear();
    }

    /// The monitor kills a guest that goes without a word.
    fn end(self) {
        self.guest.end().expect("all is let go");
    }
}

/// Measures, and prints the lines.
pub fn measure(rounds: usize) {
    let directory = TempDir::new_in("/dev/shm").expect("/dev/shm is there");
    let keeper = Keeper::begin(directory.path());
    commits_alone(&keeper.socket, rounds);
    whole_volumes(directory.path(), &keeper.socket, rounds);
}

fn commits_alone(socket: &Path, rounds: usize) {
    let ways = [("monitor", Protection::Monitor), ("mprotect", Protection::Guest), ("none", Protection::Nothing)];
    let mut guests = ways.map(|(_, protection)| Committing::begin(socket, protection));
    println!("journal=vmm: commits alone, medians of {rounds} rounds; ns of a block (us of the commit)");
    println!("blocks    protected by: {}{:>18}", ways.map(|(name, _)| format!("{name:>18}")).concat(), "bare calls");
    let (bytes, message, mut pages) = (vec![7; BLOCK], round_trip(rounds), Pages::new());
    let mut filled = Vec::new();
    for blocks in COMMITS {
        let (mut times, mut fills, mut bare): ([Vec<f64>; 3], [f64; 3], Vec<f64>) = Default::default();
        for _ in 0..rounds {
            for (number, guest) in guests.iter_mut().enumerate() {
                let (filled_ns, ns) = guest.commit(&bytes, blocks);
                times[number].push(ns);
                fills[number] += filled_ns;
            }
            bare.push(message + pages.protect(blocks));
        }
        guests.iter_mut().for_each(Committing::let_go);
        let shown = |mut times: Vec<f64>| {
            let commit = median(&mut times);
            format!("{:>8.1} ({:>7.1})", commit / blocks as f64, commit / 1000.0)
        };
        println!("{blocks:<24}{}{}", times.map(shown).concat(), shown(bare));
        filled.push((blocks, fills.map(|ns| ns / (rounds * blocks) as f64)));
    }
    println!("to fill the frames, with what makes them free; means, ns of a block");
    for (blocks, fills) in filled {
        println!("{blocks:<24}{}", fills.map(|ns| format!("{ns:>18.1}")).concat());
    }
    guests.into_iter().for_each(Committing::end);
}

fn whole_volumes(directory: &Path, socket: &Path, rounds: usize) {
    let written = |name: &str, journal: &str, beside: &str| {
        let image = at(directory, name);
        let opening = format!("ext:data=journal,journal={journal}/conv:image={image}{beside}");
        Written::new(&format!("ext/conv:image={image},size=1G"), &opening)
    };
    let kept = written("kept", "vmm", &format!("+monitor:socket={}", socket.display()));
    let inside = written("inside", "inline", "");
    let mut bytes = vec![0; SYNCED * BLOCK];
    // Not zeros: the kernel would clear its pages when they are copied to.
    let mut copy = vec![1; 64 << 20];
    let mut times: [Vec<f64>; 3] = Default::default();
    for round in 0..rounds {
        bytes.iter_mut().step_by(64).for_each(|byte| *byte = round as u8);
        for (volume, times) in [&kept, &inside].into_iter().zip(&mut times) {
            volume.write(&bytes, false);
            times.push(volume.sync());
        }
        let start = round % (copy.len() / bytes.len()) * bytes.len();
        let began = Instant::now();
        black_box(&mut copy[start..start + bytes.len()]).copy_from_slice(&bytes);
        times[2].push(began.elapsed().as_nanos() as f64);
    }
    let [kept_us, inside_us, copy_us] = times.map(|mut times| median(&mut times) / 1000.0);
    println!("journal=vmm: an fsync of {SYNCED} blocks of a file, medians of {rounds} rounds");
    println!("kept by a monitor {kept_us:>8.1} us");
    println!("log inside        {inside_us:>8.1} us, and {copy_us:.1} us to copy the blocks");
    println!("kept / inside     {:>8.3}", kept_us / (inside_us + copy_us));
    kept.unmount();
    inside.unmount();
}
