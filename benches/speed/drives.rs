//! The page-level layer on drives of several sizes and numbers of planes, beside the bare loop on as many pages.

use crate::bare_loop::{PAGES_PER_BLOCK, bare_loop};
use crate::bare_queues::bare_queues;
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
        for (drive, (found, queues)) in round.1.iter().enumerate() {
            let bound = queues.map_or(String::new(), |queues| format!(", bare queues {:.2} M/s", queues / 1e6));
            eprintln!("  {}: {:.2} M/s{bound}", path(size, drive), found.writes_per_second / 1e6);
        }
        round
    });
    let row = |drive: usize| {
        let over = |of: &dyn Fn(f64, &Measured) -> f64| {
            spread(found.iter().map(|(bare, drives)| of(*bare, &drives[drive].0)).collect())
        };
        let over_queues = |of: &dyn Fn(f64, &Measured) -> f64| {
            let of = |(measured, queues): &(Measured, Option<f64>)| queues.map(|queues| of(queues, measured));
            found.iter().map(|(_, drives)| of(&drives[drive])).collect::<Option<Vec<f64>>>().map(spread)
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
            bare_queues: over_queues(&|queues, _| queues),
            of_queues: over_queues(&|queues, drive| drive.writes_per_second / queues),
            write_amplification: found[0].1[drive].0.amplification,
            // Of the first round, before freed memory can be reused.
            bytes_per_page: found[0].1[drive].0.bytes_per_page,
            rounds,
        }
    };
    (0..size.drives.len()).map(row).collect()
}

/// The loop and the drives: each is filled, and its exported pages are written once at random before the count. With a
/// timed drive, the bound of its writes a second: the loop, and then the queues with as many copies.
fn round(size: &Size) -> (f64, Vec<(Measured, Option<f64>)>) {
    let pages = size.gib << 18;
    let exported = pages / 10 * 9;
    let workload = |bytes| generated(&format!("uniform:writes={}", (exported + WRITES) * 4096), bytes);
    let measure = |drive: usize| measured(&path(size, drive), &workload, Some(1.0));
    let drives: Vec<Measured> = (0..size.drives.len()).map(measure).collect();
    let bare = bare_loop(pages as u32, exported, WRITES);
    let bound = |(drive, measured): (usize, Measured)| {
        let (shape, is_timed) = size.drives[drive];
        let queues = is_timed.then(|| bare_queues(shape, measured.amplification - 1.0, WRITES / 4));
        (measured, queues.map(|queues| 1.0 / (1.0 / bare + 1.0 / queues)))
    };
    (bare, drives.into_iter().enumerate().map(bound).collect())
}

fn path(size: &Size, drive: usize) -> String {
    let ((channels, dies), is_timed) = size.drives[drive];
    let timing = if is_timed { "on" } else { "off" };
    let shape = format!("page=4K,pages-per-block={PAGES_PER_BLOCK},channels={channels},dies={dies},timing={timing}");
    format!("page:export=90%/nand:size={}G,{shape}", size.gib)
}
