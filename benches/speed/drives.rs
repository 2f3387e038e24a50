//! The page-level layer on drives of several sizes and numbers of planes, beside the bare loop on as many pages.

use crate::bare_loop::{PAGES_PER_BLOCK, bare_loop};
use crate::figures::DriveRow;
use crate::measure::{Measured, generated, measured};
use crate::taking::{rounds, spread};

/// Counted writes.
const WRITES: u64 = 8 << 20;

/// Drives of one size, which are compared with one loop in each round.
struct Size {
    gib: u64,
    most_rounds: usize,
    /// Channels and dies, and whether time is modelled.
    drives: &'static [((u32, u32), bool)],
}

const SIZES: [Size; 4] = [
    Size {
        gib: 8,
        most_rounds: usize::MAX,
        drives: &[((1, 1), false), ((1, 1), true), ((2, 2), false), ((2, 2), true), ((8, 4), false), ((8, 4), true)],
    },
    Size { gib: 64, most_rounds: 3, drives: &[((1, 1), false), ((1, 1), true), ((4, 4), false), ((4, 4), true)] },
    Size { gib: 256, most_rounds: 3, drives: &[((1, 1), false), ((1, 1), true), ((4, 4), false), ((4, 4), true)] },
    Size { gib: 1024, most_rounds: 3, drives: &[((1, 1), false), ((4, 4), false)] },
];

/// All drives, each in `most_rounds` rounds or fewer: large ones take a minute.
pub fn rows(most_rounds: usize) -> Vec<DriveRow> {
    SIZES.iter().flat_map(|size| of_size(size, most_rounds.min(size.most_rounds))).collect()
}

fn of_size(size: &Size, most_rounds: usize) -> Vec<DriveRow> {
    let (found, rounds) = rounds(most_rounds, || {
        let round = round(size);
        eprintln!("{} GiB: bare loop {:.2} M/s", size.gib, round.0 / 1e6);
        for (drive, found) in round.1.iter().enumerate() {
            eprintln!("  {}: {:.2} M/s", path(size, drive), found.writes_per_second / 1e6);
        }
        round
    });
    let row = |drive: usize| {
        let over = |of: &dyn Fn(f64, &Measured) -> f64| {
            spread(found.iter().map(|(bare, drives)| of(*bare, &drives[drive])).collect())
        };
        let ((channels, dies), is_timed) = size.drives[drive];
        DriveRow {
            path: path(size, drive),
            size_gib: size.gib,
            planes: channels * dies,
            is_timed,
            writes_per_second: over(&|_, drive| drive.writes_per_second),
            bare_loop: over(&|bare, _| bare),
            of_loop: over(&|bare, drive| drive.writes_per_second / bare),
            write_amplification: found[0].1[drive].amplification,
            // Of the first round, before freed memory can be reused.
            bytes_per_page: found[0].1[drive].bytes_per_page,
            rounds,
        }
    };
    (0..size.drives.len()).map(row).collect()
}

/// The drives, and the loop: each is filled, and its exported pages are written once at random before the count.
fn round(size: &Size) -> (f64, Vec<Measured>) {
    let pages = size.gib << 18;
    let exported = pages / 10 * 9;
    let workload = |bytes| generated(&format!("uniform:writes={}", (exported + WRITES) * 4096), bytes);
    let drives = (0..size.drives.len()).map(|drive| measured(&path(size, drive), &workload, Some(1.0))).collect();
    (bare_loop(pages as u32, exported, WRITES), drives)
}

fn path(size: &Size, drive: usize) -> String {
    let ((channels, dies), is_timed) = size.drives[drive];
    let timing = if is_timed { "on" } else { "off" };
    let shape = format!("page=4K,pages-per-block={PAGES_PER_BLOCK},channels={channels},dies={dies},timing={timing}");
    format!("page:export=90%/nand:size={}G,{shape}", size.gib)
}
