//! The cost of `ext`'s journal in non-volatile memory beside bare copies, on one thread of this process.
//!
//! The volume is on an image in RAM (`/dev/shm`), its journal in mapped memory, and files' bytes go through the journal. A
//! file's blocks are written, which is not timed, and synced. The bare copies store the same blocks to another region with
//! non-temporal stores and fence once. Both alternate; medians.
//!
//! | line | what |
//! |---|---|
//! | copy | a block of 4 KiB in the bare copies of 64 blocks |
//! | journaled block | what a further block adds to an fsync: that of 64 blocks less that of 8, over 56 |
//! | fsync of 8 | the whole call; and beyond 8 copies |
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

struct Bench {
    volume: Arc<dyn Volume>,
    file: InodeNumber,
    began: Instant,
    bare: Mapped,
    at: u64,
    _image: TempDir,
}

impl Bench {
    fn new() -> Bench {
        let image = TempDir::new_in("/dev/shm").expect("/dev/shm is there");
        let at = |name: &str| image.path().join(name).display().to_string();
        let path = |sizes: [&str; 2]| {
            let text = format!("ext:data=journal/conv:image={}{}+nvm:image={}{}", at("v"), sizes[0], at("j"), sizes[1]);
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
        let bare = Mapped::in_memory(REGION_BYTES, Persist::preferred(), None).expect("the system has the memory");
        Bench { volume, file, began: Instant::now(), bare, at: 0, _image: image }
    }

    fn call<T>(&self, act: impl FnOnce(&Call) -> T) -> T {
        let task = Task::at(Time(self.began.elapsed().as_nanos() as u64));
        act(&Call::by_root(&task))
    }

    /// Nanoseconds of an fsync of so many changed blocks.
    fn sync(&self, bytes: &[u8]) -> f64 {
        self.call(|call| self.volume.write(call, self.file, 0, bytes, None)).expect("it is written");
        let began = Instant::now();
        self.call(|call| self.volume.sync_file(call, self.file, Durable::All)).expect("it is synced");
        began.elapsed().as_nanos() as f64
    }

    /// Nanoseconds of bare copies of so many blocks.
    fn copy(&mut self, bytes: &[u8]) -> f64 {
        let began = Instant::now();
        for block in bytes.chunks(BLOCK) {
            self.bare.store(self.at, block);
            self.at = (self.at + BLOCK as u64) % REGION_BYTES;
        }
        self.bare.fence();
        began.elapsed().as_nanos() as f64
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let rounds = std::env::var("ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1000).max(10);
    let mut bench = Bench::new();
    let mut bytes = vec![0u8; MANY * BLOCK];
    // Every page of both regions is in memory after this.
    for _ in 0..REGION_BYTES as usize / bytes.len() {
        bench.copy(&bytes);
        bench.sync(&bytes);
    }
    let [mut few, mut many, mut bare_few, mut bare_many] = [(); 4].map(|()| Vec::with_capacity(rounds));
    for round in 0..rounds {
        bytes.iter_mut().step_by(64).for_each(|byte| *byte = round as u8);
        few.push(bench.sync(&bytes[..FEW * BLOCK]));
        bare_few.push(bench.copy(&bytes[..FEW * BLOCK]));
        many.push(bench.sync(&bytes));
        bare_many.push(bench.copy(&bytes));
    }
    let [few, many, bare_few, bare_many] = [few, many, bare_few, bare_many].map(|mut times| median(&mut times));
    let (block, copy) = ((many - few) / (MANY - FEW) as f64, bare_many / MANY as f64);
    println!("journal in memory, one thread, medians of {rounds} rounds");
    println!("copy of 4 KiB       {copy:>8.0} ns");
    println!("journaled block     {block:>8.0} ns, {:.2} copies", block / copy);
    println!("fsync of 8 blocks   {:>8.1} us, {:.1} us beyond 8 copies", few / 1000.0, (few - bare_few) / 1000.0);
    bench.call(|call| bench.volume.unmount(call)).expect("it is unmounted");
}
