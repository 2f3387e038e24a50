//! The journal in non-volatile memory beside bare copies.
//!
//! A volume on an image in RAM (`/dev/shm`), its journal in mapped memory; files' bytes go through the journal: a write stores
//! them there, and an fsync commits. Blocks of a file are written again and synced. Beside that, a file of a volume with
//! `data=ordered` is written again, in its pages in memory, and is not synced; and the same blocks are stored to another
//! region with non-temporal stores, and one fence. They alternate; medians.
//!
//! | line | what |
//! |---|---|
//! | copy | a block of 4 KiB in the bare copies of 64 blocks |
//! | journaled block | what a further block adds to a write and its fsync (those of 64 blocks less those of 8, over 56), less what it adds to a write to memory alone |
//! | 8 blocks | a write and its fsync, and what of that is beyond a write to memory alone and 8 copies |

use super::written::{Written, at};
use super::{BLOCK, median};
use flashpath::device::Nvm;
use flashpath::device::nvm::{Mapped, Persist};
use std::time::Instant;
use tempfile::TempDir;

const FEW: usize = 8;
const MANY: usize = 64;
/// More than the caches have, as a journal.
const REGION_BYTES: u64 = 256 << 20;

fn written(directory: &TempDir, mode: &str) -> Written {
    let (volume, region) = (at(directory.path(), &format!("v-{mode}")), at(directory.path(), &format!("j-{mode}")));
    let path =
        |sizes: [&str; 2]| format!("ext:data={mode}/conv:image={volume}{}+nvm:image={region}{}", sizes[0], sizes[1]);
    Written::new(&path([",size=1G", ",size=256M"]), &path(["", ""]))
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

/// Measures, and prints the lines.
pub fn measure(rounds: usize) {
    let directory = TempDir::new_in("/dev/shm").expect("/dev/shm is there");
    let (journal, memory) = (written(&directory, "journal"), written(&directory, "ordered"));
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
    println!("journal=nvm: one thread, medians of {rounds} rounds");
    println!("copy of 4 KiB     {copy:>8.0} ns");
    println!("journaled block   {block:>8.0} ns, {:.2} copies", block / copy);
    let beyond = few - memory_few - bare_few;
    println!("8 blocks          {:>8.1} us, {:.1} us beyond memory and copies", few / 1000.0, beyond / 1000.0);
    journal.unmount();
    memory.unmount();
}
