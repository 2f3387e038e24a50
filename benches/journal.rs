//! The cost of `ext`'s journal in non-volatile memory beside bare copies, on one thread of this process.
//!
//! The volume is on an image in RAM (`/dev/shm`), its journal in mapped memory, and files' bytes go through the journal:
//! a write stores them there, and an fsync commits. Blocks of a file are written again and synced. Beside that, a file of
//! a volume with `data=ordered` is written again, in its pages in memory, and is not synced; and the same blocks are stored
//! to another region with non-temporal stores, and one fence. They alternate; medians.
//!
//! | line | what |
//! |---|---|
//! | copy | a block of 4 KiB in the bare copies of 64 blocks |
//! | journaled block | what a further block adds to a write and its fsync (those of 64 blocks less those of 8, over 56), less what it adds to a write to memory alone |
//! | 8 blocks | a write and its fsync, and what of that is beyond a write to memory alone and 8 copies |
//!
//! `ROUNDS=2000 cargo bench --bench journal` repeats more often; the default is 1000.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use flashpath::device::Nvm;
use flashpath::device::nvm::{Mapped, Persist};
use flashpath::fs::Durable;
use flashpath::fs::station::{Access, Mounting};
use flashpath::fs::volume::{Call, FileKind, Hold, InodeNumber, NewFile, Volume};
use flashpath::run::{Path, make_volume, open_file_system};
use flashpath::task::Task;
use flashpath::time::Time;
use std::sync::Arc;
use std::time::Instant;
use tempfile::TempDir;

const BLOCK: usize = 4096;
const FEW: usize = 8;
const MANY: usize = 64;
/// More than the caches have, as a journal.
const REGION_BYTES: u64 = 256 << 20;

/// A file in a mounted volume.
struct Written {
    volume: Arc<dyn Volume>,
    file: InodeNumber,
    began: Instant,
    _image: TempDir,
}

impl Written {
    fn new(mode: &str) -> Written {
        let image = TempDir::new_in("/dev/shm").expect("/dev/shm is there");
        let at = |name: &str| image.path().join(name).display().to_string();
        let path = |sizes: [&str; 2]| {
            let text = format!("ext:data={mode}/conv:image={}{}+nvm:image={}{}", at("v"), sizes[0], at("j"), sizes[1]);
            Path::read(&text).expect("a path")
        };
        make_volume(&path([",size=1G", ",size=256M"]), false, 1, 0, None).expect("a volume");
        let volume = open_file_system(&path(["", ""]), &Mounting::at(1, 0), Access::IfWhole).expect("a volume");
        let task = Task::at(Time(0));
        let new = NewFile {
            kind: FileKind::Regular,
            permissions: 0o644,
            user: 0,
            group: 0,
            device: 0,
            target: b"",
            attributes: &[],
        };
        let made = volume.make(&Call::by_root(&task), (InodeNumber::ROOT, b"file"), &new, Hold::No, None);
        let file = made.expect("a file").inode;
        Written { volume, file, began: Instant::now(), _image: image }
    }

    fn call<T>(&self, act: impl FnOnce(&Call) -> T) -> T {
        let task = Task::at(Time(self.began.elapsed().as_nanos() as u64));
        act(&Call::by_root(&task))
    }

    /// Nanoseconds of a write, and of an fsync with it.
    fn write(&self, bytes: &[u8], is_synced: bool) -> f64 {
        let began = Instant::now();
        self.call(|call| self.volume.write(call, self.file, 0, bytes, None)).expect("it is written");
        if is_synced {
            self.call(|call| self.volume.sync_file(call, self.file, Durable::All)).expect("it is synced");
        }
        began.elapsed().as_nanos() as f64
    }
}

/// A region for bare copies.
struct Bare {
    region: Mapped,
    at: u64,
}

impl Bare {
    /// Nanoseconds of bare copies of so many blocks.
    fn copy(&mut self, bytes: &[u8]) -> f64 {
        let began = Instant::now();
        for block in bytes.chunks(BLOCK) {
            self.region.store(self.at, block);
            self.at = (self.at + BLOCK as u64) % REGION_BYTES;
        }
        self.region.fence();
        began.elapsed().as_nanos() as f64
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let rounds = std::env::var("ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1000).max(10);
    let (journal, memory) = (Written::new("journal"), Written::new("ordered"));
    let region = Mapped::in_memory(REGION_BYTES, Persist::preferred(), None).expect("the system has the memory");
    let mut bare = Bare { region, at: 0 };
    let mut bytes = vec![0u8; MANY * BLOCK];
    // Every page of both regions is in memory after this.
    for _ in 0..REGION_BYTES as usize / bytes.len() {
        bare.copy(&bytes);
        journal.write(&bytes, true);
        memory.write(&bytes, false);
    }
    let mut times: [Vec<f64>; 6] = Default::default();
    for round in 0..rounds {
        bytes.iter_mut().step_by(64).for_each(|byte| *byte = round as u8);
        for (part, blocks) in [FEW, MANY].into_iter().enumerate() {
            let bytes = &bytes[..blocks * BLOCK];
            times[part].push(journal.write(bytes, true));
            times[2 + part].push(memory.write(bytes, false));
            times[4 + part].push(bare.copy(bytes));
        }
    }
    let [few, many, memory_few, memory_many, bare_few, bare_many] = times.map(|mut times| median(&mut times));
    let more = (MANY - FEW) as f64;
    let (block, copy) = ((many - few - (memory_many - memory_few)) / more, bare_many / MANY as f64);
    println!("journal in memory, one thread, medians of {rounds} rounds");
    println!("copy of 4 KiB     {copy:>8.0} ns");
    println!("journaled block   {block:>8.0} ns, {:.2} copies", block / copy);
    let beyond = few - memory_few - bare_few;
    println!("8 blocks          {:>8.1} us, {:.1} us beyond memory and copies", few / 1000.0, beyond / 1000.0);
    for written in [journal, memory] {
        written.call(|call| written.volume.unmount(call)).expect("it is unmounted");
    }
}
