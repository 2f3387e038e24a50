//! The cost of a name in directories of growing sizes, and in a volume with many files.

use crate::volume::Ours;
use flashpath::fs::volume::{FileKind, Hold, InodeNumber};
use flashpath::random::Random;
use std::time::Instant;

const FILES_OF_DIRECTORY: u64 = 10_000;

/// Microseconds for one of `count` operations.
fn each(count: u64, act: impl FnOnce()) -> f64 {
    let began = Instant::now();
    act();
    began.elapsed().as_secs_f64() * 1e6 / count as f64
}

/// Makes, finds and removes names in directories of so many files each; returns microseconds of each.
fn measure(directories: u64, files: u64) -> [f64; 3] {
    // A volume has an inode for each 16 KiB.
    let ours = Ours::new(20);
    let name = |number: u64| format!("a name that is not short {number:08}");
    let places: Vec<InodeNumber> =
        (0..directories).map(|at| ours.make_in(InodeNumber::ROOT, &format!("d{at}"), FileKind::Directory)).collect();
    let count = directories * files;
    let work = || {
        ours.call(|call| ours.volume.work(call)).expect("background work");
    };
    let made = each(count, || {
        for number in 0..count {
            ours.make_in(places[(number / files) as usize], &name(number), FileKind::Regular);
            if number % 1024 == 0 {
                work();
            }
        }
    });
    let mut random = Random::new(7, "names");
    let looked = 50_000.min(count);
    let found = each(looked, || {
        for _ in 0..looked {
            let number = random.below(count);
            let place = (places[(number / files) as usize], name(number));
            ours.call(|call| ours.volume.lookup(call, (place.0, place.1.as_bytes()), Hold::No)).expect("it is there");
        }
    });
    let removed = each(count, || {
        for number in 0..count {
            let text = name(number);
            let place = (places[(number / files) as usize], text.as_bytes());
            ours.call(|call| ours.volume.unlink(call, place, None)).expect("it is there");
            if number % 1024 == 0 {
                work();
            }
        }
    });
    [made, found, removed]
}

/// Prints a row for each size, up to `most` files.
pub fn print(most: u64) {
    println!("microseconds: made, found, removed");
    for (directories, files) in [(1, 1_000), (1, 10_000), (1, 100_000), (100, FILES_OF_DIRECTORY)] {
        if directories * files <= most {
            let [made, found, removed] = measure(directories, files);
            println!("{directories:>4} directories of {files:>7} files {made:>7.1} {found:>7.1} {removed:>7.1}");
        }
    }
}
