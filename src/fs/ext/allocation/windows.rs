//! Preallocation in memory: the blocks behind a file that grows. Other files take them only if no others are free, so that
//! files that grow side by side do not interleave. Nothing of it is on the medium.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The maximum number of windows: files that grow at the same time. The oldest is dropped first.
const MAX_WINDOWS: usize = 64;
/// The smallest and the largest window, in bytes. In between it is as large as the file.
const WINDOW_BYTES: Range<u64> = 64 << 10..1 << 20;
/// All windows together are at most an eighth of the free blocks.
const MIN_FREE_PER_WINDOW: u64 = 8 * MAX_WINDOWS as u64;

/// The blocks of a window of a file of `size` bytes.
pub fn window_blocks(size: u64, block_bytes: usize, free_blocks: u64) -> u64 {
    let bytes = size.next_power_of_two().clamp(WINDOW_BYTES.start, WINDOW_BYTES.end);
    (bytes / block_bytes as u64).min(free_blocks / MIN_FREE_PER_WINDOW)
}

/// The windows of a volume.
#[derive(Debug, Default)]
pub struct Windows {
    /// The inode of the file and its window, the newest last.
    windows: Mutex<VecDeque<(u32, Range<u64>)>>,
}

impl Windows {
    fn windows(&self) -> MutexGuard<'_, VecDeque<(u32, Range<u64>)>> {
        // Each change is a push or a removal: no panic leaves half of one behind.
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the window of a file whose blocks now end at `end`, unless that is still in its window.
    pub fn set(&self, file: u32, end: u64, blocks: u64) {
        let mut windows = self.windows();
        if windows.iter().any(|(owner, window)| *owner == file && window.contains(&end)) {
            return;
        }
        windows.retain(|(owner, _)| *owner != file);
        windows.push_back((file, end..end + blocks));
        if windows.len() > MAX_WINDOWS {
            windows.pop_front();
        }
    }

    /// Drops the window of a file that no longer grows.
    pub fn drop_of(&self, file: u32) {
        self.windows().retain(|(owner, _)| *owner != file);
    }

    /// Drops all windows. True if there were any.
    pub fn clear(&self) -> bool {
        let mut windows = self.windows();
        let had_some = !windows.is_empty();
        windows.clear();
        had_some
    }

    /// The parts of a range of blocks that are in windows of other files.
    pub fn of_others(&self, file: u32, blocks: &Range<u64>) -> Vec<Range<u64>> {
        let part = |window: &Range<u64>| window.start.max(blocks.start)..window.end.min(blocks.end);
        let windows = self.windows();
        let others = windows.iter().filter(|(owner, _)| *owner != file);
        others.map(|(_, window)| part(window)).filter(|part| !part.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_keeps_other_files_out_until_it_is_dropped() {
        let windows = Windows::default();
        windows.set(12, 100, 16);
        windows.set(13, 300, 256);
        assert_eq!(windows.of_others(13, &(0..1000)), std::iter::once(100..116).collect::<Vec<_>>());
        assert_eq!(windows.of_others(0, &(110..400)), [110..116, 300..400]);
        windows.set(13, 310, 16);
        assert_eq!(
            windows.of_others(12, &(0..1000)),
            std::iter::once(300..556).collect::<Vec<_>>(),
            "the file grows into its window"
        );
        windows.set(13, 556, 16);
        assert_eq!(windows.of_others(12, &(0..1000)), std::iter::once(556..572).collect::<Vec<_>>());
        windows.drop_of(12);
        assert_eq!(windows.of_others(13, &(0..1000)), []);
        assert!(windows.clear() && !windows.clear());
    }

    #[test]
    fn a_window_is_as_large_as_the_file_within_limits() {
        let blocks = |size, free| window_blocks(size, 4096, free);
        assert_eq!((blocks(0, 1 << 20), blocks(200 << 10, 1 << 20), blocks(1 << 40, 1 << 20)), (16, 64, 256));
        assert_eq!((blocks(1 << 40, 1024), blocks(0, 100)), (2, 0), "an eighth of what is free is for all windows");
    }

    #[test]
    fn the_oldest_window_is_dropped_when_there_are_too_many() {
        let windows = Windows::default();
        for file in 0..MAX_WINDOWS as u32 + 1 {
            windows.set(file, 1000 * u64::from(file), 16);
        }
        assert_eq!(windows.of_others(u32::MAX, &(0..1 << 40)).len(), MAX_WINDOWS);
        assert_eq!(windows.of_others(u32::MAX, &(0..1000)), []);
    }
}
