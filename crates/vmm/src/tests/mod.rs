//! Guests in processes of their own, which are killed, write wildly or send wrong messages.
//!
//! A guest is this test program again, in the [role](role) that the environment names.

mod failing;
mod hostile;
mod kills;
mod wild;

use crate::arena::{Arena, Frame};
use crate::error::VmmError;
use crate::event::{Event, Recovery};
use crate::guest::{Guest, Volume};
use crate::monitor::{Monitor, Settings};
use crate::wire::Protection;
use crc_fast::CrcAlgorithm;
use rustc_hash::FxHashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Blocks of a volume.
const BLOCKS: u64 = 2000;
/// Bytes of a block.
const WIDTH: usize = 4096;
/// The most blocks that the monitor keeps of a volume.
const MOST: u32 = 1024;
/// Blocks from which a guest writes all of them home.
const WATERMARK: usize = 300;
const PATIENCE: Duration = Duration::from_secs(60);

/// Random numbers (splitmix64).
#[derive(Clone)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// The blocks that a transaction of a guest writes, and those that it frees.
fn transaction(seed: u64, number: u32) -> (Vec<u64>, Vec<u64>) {
    let mut random = Random(seed << 32 | u64::from(number));
    let mut written: Vec<u64> = (0..1 + random.below(40)).map(|_| random.below(BLOCKS)).collect();
    let first = random.below(BLOCKS - 8);
    let freed: Vec<u64> = (first..first + random.below(8)).collect();
    written.sort_unstable();
    written.dedup();
    written.retain(|block| !freed.contains(block));
    (written, freed)
}

/// The bytes of a block in the state after a transaction.
fn content(seed: u64, number: u32, block: u64) -> Vec<u8> {
    let mut random = Random(seed << 40 ^ u64::from(number) << 12 ^ block);
    (0..WIDTH / 8).flat_map(|_| random.next().to_le_bytes()).collect()
}

/// The transaction that wrote each block last, in the state after `last`; none for a block that was freed since.
fn state(seed: u64, last: u32) -> FxHashMap<u64, Option<u32>> {
    let mut state = FxHashMap::default();
    for number in 1..=last {
        let (written, freed) = transaction(seed, number);
        state.extend(freed.into_iter().map(|block| (block, None)));
        state.extend(written.into_iter().map(|block| (block, Some(number))));
    }
    state
}

/// The blocks of a volume that are not as they were after a transaction.
fn damaged(image: &Path, seed: u64, last: u32) -> Vec<u64> {
    let image = File::open(image).unwrap();
    let state = state(seed, last);
    let is_damaged = |block: &u64| {
        let mut found = vec![0; WIDTH];
        image.read_exact_at(&mut found, block * WIDTH as u64).unwrap();
        match state.get(block) {
            Some(None) => false,
            Some(Some(number)) => found != content(seed, *number, *block),
            None => found != vec![0; WIDTH],
        }
    };
    (0..BLOCKS).filter(is_damaged).collect()
}

/// A guest that writes as the seed says.
struct Writer {
    guest: Guest,
    arena: Arc<Arena>,
    image: File,
    seed: u64,
    number: u32,
    cache: FxHashMap<u64, Frame>,
}

fn volume(seed: u64, image: &Path) -> Volume {
    Volume {
        uuid: (u128::from(seed) << 64 | 0x5AFE).to_le_bytes(),
        // Monitors of one process are tested beside each other, and no two keep memory of the same name.
        name: (u128::from(crc_fast::checksum(CrcAlgorithm::Crc64Nvme, image.as_os_str().as_encoded_bytes())) << 64 | 7)
            .to_le_bytes(),
        blocks: BLOCKS,
        width: WIDTH,
        most_in_memory: u64::from(MOST) * 2,
        path: image.display().to_string(),
        directory: "/".to_string(),
    }
}

impl Writer {
    fn begin(socket: &Path, image: &Path, seed: u64, protection: Protection) -> Writer {
        let guest = Guest::connect(socket).unwrap();
        let volume = volume(seed, image);
        assert!(guest.kept(volume.uuid).unwrap().is_none());
        let arena = guest.begin(volume, 1, protection).unwrap();
        let image = File::options().write(true).open(image).unwrap();
        Writer { guest, arena, image, seed, number: 0, cache: FxHashMap::default() }
    }

    /// One more transaction.
    fn commit(&mut self) -> Result<(), VmmError> {
        self.number += 1;
        let (written, freed) = transaction(self.seed, self.number);
        // The frames in whose places these come are in use until the commit is done.
        let made = |&block| (block, self.arena.take(&content(self.seed, self.number, block)).expect("a free frame"));
        let new: Vec<(u64, Frame)> = written.iter().map(made).collect();
        self.guest.commit(self.number, new.iter().map(|(block, frame)| (*block, Some(frame))), &freed)?;
        freed.iter().for_each(|block| drop(self.cache.remove(block)));
        self.cache.extend(new);
        println!("\ndone {}", self.number);
        if self.cache.len() > WATERMARK { self.checkpoint() } else { Ok(()) }
    }

    /// Writes all home.
    fn checkpoint(&mut self) -> Result<(), VmmError> {
        for (block, frame) in &self.cache {
            self.image.write_all_at(frame.bytes(), block * WIDTH as u64).unwrap();
        }
        self.guest.let_go(self.number + 1)?;
        self.cache.clear();
        Ok(())
    }

    fn end(mut self) {
        self.checkpoint().unwrap();
        self.guest.end().unwrap();
    }
}

/// Writes the kept memory of a volume home.
fn write_home(socket: &Path, image: &Path, uuid: [u8; 16]) -> Result<(), VmmError> {
    let guest = Guest::connect(socket)?;
    let Some(kept) = guest.kept(uuid)? else { return Ok(()) };
    let image = File::options().write(true).open(image).unwrap();
    for (block, bytes) in kept.blocks {
        image.write_all_at(&bytes, block * WIDTH as u64).unwrap();
    }
    guest.let_go(kept.last.wrapping_add(1))?;
    guest.end()
}

/// A child in a role.
fn child(role: &str, arguments: &[&str]) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["tests::role", "--exact", "--nocapture"])
        .env("FLASHPATH_VMM_ROLE", format!("{role} {}", arguments.join(" ")))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The work of a child; nothing in the test itself.
#[test]
fn role() {
    let Ok(role) = std::env::var("FLASHPATH_VMM_ROLE") else { return };
    let words: Vec<&str> = role.split_whitespace().collect();
    match words[0] {
        "writer" => kills::write_without_end(Path::new(words[1]), Path::new(words[2]), words[3].parse().unwrap()),
        "recovery" => {
            let seed = words[3].parse().unwrap();
            write_home(Path::new(words[1]), Path::new(words[2]), volume(seed, Path::new("")).uuid).unwrap();
        }
        "wild" => wild::write_wildly(&words[1..]),
        "ordinary" => wild::write_as_an_ordinary_user(),
        "hostile" => hostile::say(words[1], Path::new(words[2]), words[3].parse().unwrap()),
        other => panic!("{other} is no role"),
    }
    std::io::stdout().flush().unwrap();
}

/// The rest of a child's words: the last transaction that was done, and the lines that say something else.
fn read_to_end(child: &mut Child, mut each: impl FnMut(u32, &mut Child)) -> (u32, Vec<String>) {
    let (mut last, mut said) = (0, Vec::new());
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        match line.strip_prefix("done ") {
            Some(number) => {
                last = number.parse().unwrap();
                each(last, child);
            }
            None => said.push(line),
        }
    }
    (last, said)
}

type Recover = dyn Fn(&Recovery) -> Result<(), String> + Send + Sync;

/// A monitor, and a directory for its socket and the volumes of its guests.
struct Bench {
    directory: tempfile::TempDir,
    monitor: Arc<Monitor>,
    events: Arc<(Mutex<Vec<Event>>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Bench {
    /// Recoveries are done by threads of the monitor.
    fn new() -> Bench {
        Self::hearing(|_| ())
    }

    /// Does something with each event, in the thread that has it.
    fn hearing(also: impl Fn(&Event) + Send + Sync + 'static) -> Bench {
        let recover = |socket: PathBuf| -> Box<Recover> {
            Box::new(move |recovery| {
                write_home(&socket, Path::new(&recovery.path), recovery.volume).map_err(|error| error.to_string())
            })
        };
        Self::with_both(recover, also)
    }

    fn with(recover: impl FnOnce(PathBuf) -> Box<Recover>) -> Bench {
        Self::with_both(recover, |_| ())
    }

    fn with_both(
        recover: impl FnOnce(PathBuf) -> Box<Recover>,
        also: impl Fn(&Event) + Send + Sync + 'static,
    ) -> Bench {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("socket");
        let events = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
        let heard = Arc::clone(&events);
        let hear = move |event| {
            also(&event);
            heard.0.lock().unwrap().push(event);
            heard.1.notify_all();
        };
        let settings = Settings { socket: socket.clone(), most_blocks: MOST, spill: None };
        let monitor = Arc::new(Monitor::listen(&settings, hear, recover(socket)).unwrap());
        let serving = Arc::clone(&monitor);
        let thread = std::thread::Builder::new().spawn(move || serving.serve()).unwrap();
        Bench { directory, monitor, events, thread: Some(thread) }
    }

    fn socket(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    /// A new volume of zeros.
    fn image(&self, seed: u64) -> PathBuf {
        let image = self.directory.path().join(format!("image{seed}"));
        File::create(&image).unwrap().set_len(BLOCKS * WIDTH as u64).unwrap();
        image
    }

    /// Waits for an event.
    fn wait<T>(&self, what: &str, find: impl Fn(&Event) -> Option<T>) -> T {
        let events = self.events.0.lock().unwrap();
        let (events, _) = self
            .events
            .1
            .wait_timeout_while(events, PATIENCE, |events| events.iter().all(|event| find(event).is_none()))
            .unwrap();
        events.iter().find_map(find).unwrap_or_else(|| panic!("{what}: {events:?}"))
    }

    /// Waits until a volume has been written home.
    fn wait_for_recovery(&self, seed: u64) {
        let uuid = volume(seed, Path::new("")).uuid;
        self.wait("a recovery", |event| {
            matches!(event, Event::Recovered { volume, .. } if *volume == uuid).then_some(())
        });
    }

    fn heard(&self, is_it: impl Fn(&Event) -> bool) -> usize {
        self.events.0.lock().unwrap().iter().filter(|event| is_it(event)).count()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.monitor.stop();
        let served = self.thread.take().unwrap().join();
        assert!(std::thread::panicking() || served.is_ok(), "{served:?}");
    }
}

/// The rounds of a campaign: `VMM_ROUNDS`, or a few.
fn rounds(few: u64) -> u64 {
    std::env::var("VMM_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(few)
}
