//! Messages about a mounted volume: warnings of its stations, and the figures of `--stats`.

use crate::resident::warnings::PrintedWarnings;
use crate::resident::watch::Watched;
use flashpath::fs::volume::Space;
use flashpath::run::shared::{SharedVolume, Traffic};
use flashpath::units::{BLOCK_BYTES, human_size};
use std::sync::Arc;

/// A volume, and what was told of it.
pub struct WatchedVolume {
    volume: Arc<SharedVolume>,
    last: Traffic,
    warnings: Arc<PrintedWarnings>,
}

impl WatchedVolume {
    /// Nothing was told yet.
    pub fn new(volume: Arc<SharedVolume>, warnings: Arc<PrintedWarnings>) -> WatchedVolume {
        let last = volume.traffic();
        WatchedVolume { volume, last, warnings }
    }
}

impl Watched for WatchedVolume {
    fn figures(&mut self, seconds: f64) -> Option<String> {
        let traffic = self.volume.traffic();
        let space = self.volume.space().ok()?;
        let line = figures_line(std::mem::replace(&mut self.last, traffic), traffic, &space, seconds);
        Some(line + &self.warnings.summary())
    }

    /// New warnings of the stations; the volume itself reports failures as they happen.
    fn failures(&mut self) -> Vec<String> {
        self.volume.account().map_or_else(|_| Vec::new(), |account| self.warnings.take_new(&account))
    }
}

/// The line of `--stats`: rates over some seconds, and free space.
fn figures_line(before: Traffic, now: Traffic, space: &Space, seconds: f64) -> String {
    let rate = |now: u64, before: u64| (now - before) as f64 / seconds / (1 << 20) as f64;
    format!(
        "{:.0} requests/s, read {:.1} MiB/s, written {:.1} MiB/s; free: {} of {}, {} inodes",
        (now.requests - before.requests) as f64 / seconds,
        rate(now.read_bytes, before.read_bytes),
        rate(now.written_bytes, before.written_bytes),
        human_size((space.free_blocks * BLOCK_BYTES) as f64),
        human_size((space.blocks * BLOCK_BYTES) as f64),
        space.free_inodes,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_tells_what_passed_since_the_last() {
        let before = Traffic { requests: 10, read_bytes: 1 << 20, written_bytes: 0 };
        let now = Traffic { requests: 30, read_bytes: 3 << 20, written_bytes: 1 << 20 };
        let space = Space { blocks: 512, free_blocks: 256, available_blocks: 250, inodes: 9, free_inodes: 7 };
        assert_eq!(
            figures_line(before, now, &space, 2.0),
            "10 requests/s, read 1.0 MiB/s, written 0.5 MiB/s; free: 1.00 MiB of 2.00 MiB, 7 inodes"
        );
    }
}
