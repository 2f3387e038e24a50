//! The parts of a run in the charts of write amplification over time, which are the same in all of them.

use crate::report::{RunResult, Window};
use crate::units::BLOCK_BYTES;
use std::ops::Range;

/// The points of all lines of causes together, so that a page with many paths stays small.
const POINTS_OF_CHART: usize = 600;
const FEWEST: usize = 32;
const MOST: usize = 96;
/// A part has at least the writes of so many erase blocks, if the run is long enough: a layer collects whole blocks, and
/// a shorter part has one collection more or less than its share.
const ERASE_BLOCKS: u64 = 16;
/// The parts that a short run keeps nevertheless.
const OF_A_SHORT_RUN: usize = 16;

/// The greatest number of parts of each run, on a page with these results.
pub fn most_bins(results: &[RunResult]) -> usize {
    let lines: usize = results.iter().map(|result| result.window_causes.len()).sum();
    (POINTS_OF_CHART / lines.max(1)).clamp(FEWEST, MOST)
}

/// The windows of each part: equally many, as the part with one more would be higher than its neighbours. The last part
/// also has the windows that are left. Windows by time are what was asked for, and are joined only if they are too many.
pub fn bins(result: &RunResult, most: usize) -> Vec<Range<usize>> {
    let flash = &result.flash;
    if result.window_seconds.is_some() {
        let count = result.windows.len();
        let each = count.div_ceil(most.max(1)).max(1);
        return (0..count).step_by(each).map(|from| from..(from + each).min(count)).collect();
    }
    bins_of(&result.windows, flash.pages_per_block * flash.page_bytes / BLOCK_BYTES, most)
}

fn bins_of(windows: &[Window], erase_block: u64, most: usize) -> Vec<Range<usize>> {
    let count = windows.len();
    let Some(last) = windows.last() else { return Vec::new() };
    let window = (last.written_blocks / count as u64).max(1);
    let of_flash = usize::try_from((ERASE_BLOCKS * erase_block).div_ceil(window)).unwrap_or(count);
    let each = of_flash.min(count / OF_A_SHORT_RUN).max(count.div_ceil(most.max(1))).max(1);
    let parts = (count / each).max(1);
    (0..parts).map(|part| part * each..if part + 1 == parts { count } else { (part + 1) * each }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    fn windows(amplification: impl Fn(u64) -> f64, count: u64) -> Vec<Window> {
        let any = sample::page_level("a", 1).windows[0].clone();
        let window =
            |number| Window { written_blocks: number * 64, stored_blocks: amplification(number) * 64.0, ..any.clone() };
        (1..=count).map(window).collect()
    }

    /// The parts of 600 windows in 128 points had 4 or 5 windows, and a block of 256 pages was collected in every third:
    /// a steady 8.8 swung from 7.4 to 10.2. The sample of our tests has 60 windows, none of which was joined.
    #[test]
    fn a_steady_run_is_a_level_line() {
        let windows = windows(|number| if number % 3 == 0 { 24.4 } else { 1.0 }, 600);
        for (most, erase_block) in [(96, 256), (128, 256), (32, 1024)] {
            let bins = bins_of(&windows, erase_block, most);
            assert!((16..=most).contains(&bins.len()), "{} parts", bins.len());
            assert_eq!((bins[0].start, bins[bins.len() - 1].end), (0, 600));
            assert!(bins.windows(2).all(|pair| pair[0].end == pair[1].start));
            for bin in bins {
                let part = &windows[bin];
                let mean = part.iter().map(|it| it.stored_blocks / 64.0).sum::<f64>() / part.len() as f64;
                // A part has at most one collection more or less than its share.
                assert!((mean - 8.8).abs() < 23.4 / part.len() as f64 && (mean - 8.8).abs() < 0.5, "{mean}");
            }
        }
    }

    #[test]
    fn every_number_of_windows_has_parts() {
        assert!(bins_of(&[], 256, 96).is_empty());
        for count in [1, 15, 16, 97, 1023] {
            let bins = bins_of(&windows(|_| 1.0, count), 1 << 20, 96);
            assert!(!bins.is_empty() && bins.len() <= 96, "{count}: {}", bins.len());
        }
    }
}
