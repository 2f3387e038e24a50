//! The page-level layer on drives of several sizes and numbers of planes, in turn with the bare loop on as many pages.

use crate::bare_loop::{Loop, PAGES_PER_BLOCK};
use crate::bare_queues::Queues;
use crate::figures::DriveRow;
use crate::measure::{Measured, generated, in_slices};
use crate::taking::{rounds, spread};

/// Counted writes of a slice. A slice of the loop follows each of the drive: the speed of a machine that others share halves for
/// seconds. A slice is long beside the time in which the caches fill again.
const SLICE: u64 = 2 << 20;
const TIMED_SLICE: u64 = 1 << 20;
const SLICES: u64 = 8;

/// Drives of one size, which are compared with one loop in each round.
struct Size {
    gib: u64,
    most_rounds: usize,
    /// Channels and dies, and whether time is modelled: each first without.
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
    let mut bare = Loop::filled((size.gib << 18) as u32);
    let (found, rounds) = rounds(most_rounds, || round(size, &mut bare));
    let row = |drive: usize| {
        let pairs = || found.iter().flat_map(|round| &round[drive].pairs);
        let over = |of: &dyn Fn(&Pair) -> f64| spread(pairs().map(of).collect());
        let over_bounds = |of: &dyn Fn(&Pair, f64) -> f64| {
            pairs().map(|pair| pair.bound.map(|bound| of(pair, bound))).collect::<Option<Vec<f64>>>().map(spread)
        };
        let ((channels, dies), is_timed) = size.drives[drive];
        // Of the first round, before freed memory can be reused.
        let Measured { amplification, bytes_per_page, .. } = found[0][drive].all;
        DriveRow {
            path: path(size, drive),
            size_gib: size.gib,
            planes: channels * dies,
            is_timed,
            writes_per_second: over(&|pair| pair.drive),
            bare_loop: over(&|pair| pair.bare),
            of_loop: over(&|pair| pair.drive / pair.bare),
            bare_queues: over_bounds(&|_, bound| bound),
            of_queues: over_bounds(&|pair, bound| pair.drive / bound),
            write_amplification: amplification,
            bytes_per_page,
            rounds,
        }
    };
    (0..size.drives.len()).map(row).collect()
}

/// A slice of a drive and the one of the loop that followed, in writes per CPU-second.
struct Pair {
    drive: f64,
    bare: f64,
    /// With the timing model: of the loop, and then bare queues with as many copies.
    bound: Option<f64>,
}

struct Run {
    all: Measured,
    pairs: Vec<Pair>,
}

/// The drives, one after the other: each is filled, and its exported pages are written once at random before the count.
fn round(size: &Size, bare: &mut Loop) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for drive in 0..size.drives.len() {
        let (shape, is_timed) = size.drives[drive];
        // The layer writes as much whether time is modelled or not.
        let mut queues = is_timed.then(|| Queues::new(shape, runs[drive - 1].all.amplification - 1.0));
        let slice = if is_timed { TIMED_SLICE } else { SLICE };
        let exported = (size.gib << 18) / 10 * 9;
        let workload = |bytes| generated(&format!("uniform:writes={}", (exported + SLICES * slice) * 4096), bytes);
        let mut bounds = Vec::new();
        let (all, slices) = in_slices(&path(size, drive), &workload, Some(1.0), slice, &mut || {
            bounds.push((bare.run(slice), queues.as_mut().map(|queues| queues.run(slice / 4))));
        });
        let pair = |(drive, (bare, queues)): (f64, (f64, Option<f64>))| Pair {
            drive,
            bare,
            bound: queues.map(|queues| 1.0 / (1.0 / bare + 1.0 / queues)),
        };
        let run = Run { all, pairs: slices.into_iter().zip(bounds).map(pair).collect() };
        let share = spread(run.pairs.iter().map(|pair| pair.drive / pair.bound.unwrap_or(pair.bare)).collect());
        eprintln!("{}: {:.2} M/s, {:.2} of its bound", path(size, drive), all.writes_per_second / 1e6, share.median);
        runs.push(run);
    }
    runs
}

fn path(size: &Size, drive: usize) -> String {
    let ((channels, dies), is_timed) = size.drives[drive];
    let timing = if is_timed { "on" } else { "off" };
    let shape = format!("page=4K,pages-per-block={PAGES_PER_BLOCK},channels={channels},dies={dies},timing={timing}");
    format!("page:export=90%/nand:size={}G,{shape}", size.gib)
}
