//! The drive of the runs, and a run.

use crate::ReproduceError;
use crate::lab::Lab;
use flashpath::report::RunResult;
use flashpath::units::format_size;

/// The flash of a drive at full scale.
const FLASH: u64 = 64 << 30;
const LEAST_FLASH: u64 = 4 << 30;
/// A whole block of the preset, in pages of flash, and its erase.
const PAGES: u64 = 1536;
const ERASE_NS: u64 = 3_500_000;
const PAGE: u64 = 16 << 10;
const PLANES: u64 = 128;
/// A small drive has so many blocks on each plane.
const BLOCKS: u64 = 64;

/// A drive: the preset `enterprise-tlc`, with its erases in proportion to its short blocks.
pub struct Drive {
    flash_bytes: u64,
    erase_ns: u64,
}

/// A run of a load on a path.
pub struct Run {
    pub path: String,
    pub load: String,
    pub depth: u32,
    /// False: the drive is new.
    pub is_filled: bool,
}

/// Requests in flight of random loads: two for each plane.
pub const DEPTH: u32 = 2 * PLANES as u32;
/// The capacity is written so often before the count.
const AGING: f64 = 2.0;

impl Drive {
    pub fn of(scale: f64) -> Drive {
        let flash_bytes = ((FLASH as f64 * scale) as u64).max(LEAST_FLASH);
        let pages = (flash_bytes / PLANES / PAGE / BLOCKS).min(PAGES);
        Drive { flash_bytes, erase_ns: ERASE_NS * pages / PAGES }
    }

    /// The path with this spare space.
    pub fn path(&self, spare: &str) -> String {
        self.with(spare, "", "")
    }

    /// The same with more options of the layer and of the flash, each with a comma before it.
    pub fn with(&self, spare: &str, layer: &str, flash: &str) -> String {
        let (size, erase) = (format_size(self.flash_bytes), self.erase_ns);
        // An option of the caller's replaces the drive's own.
        let own = |name: &str, option: String, others: &str| {
            if others.contains(&format!(",{name}=")) { String::new() } else { format!(",{option}") }
        };
        let buffer = own("buffer", "buffer=32M".to_string(), layer);
        let erase = own("erase", format!("erase={erase}ns"), flash);
        format!("page:op={spare}{buffer}{layer}/nand:preset=enterprise-tlc,size={size}{erase}{flash}")
    }
}

impl Run {
    /// Random writes of 4 KiB, after the capacity was written in order and twice at random.
    pub fn random(path: String) -> Run {
        Run { path, load: "uniform:writes=3x".to_string(), depth: DEPTH, is_filled: true }
    }

    /// Requests of 128 KiB in order, on a drive that was filled so.
    pub fn sequential(path: String) -> Run {
        Run { path, load: "sequential:request=128K,writes=3x".to_string(), depth: 32, is_filled: true }
    }

    /// The result.
    pub fn make(&self, lab: &Lab) -> Result<RunResult, ReproduceError> {
        lab.progress(&format!("running {} on {}", self.load, self.path));
        lab.run_deep(&self.path, &self.load, (self.depth, self.is_filled.then_some(AGING)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashpath::run::Path;

    #[test]
    fn a_small_drive_has_the_erases_of_a_large_one() {
        let small = Drive::of(1.0 / 16.0);
        assert_eq!(small.erase_ns, ERASE_NS * 32 / PAGES, "blocks of 32 pages");
        assert_eq!((Drive::of(1.0 / 256.0).flash_bytes, Drive::of(1.0).flash_bytes), (LEAST_FLASH, FLASH));
        let path = small.with("37.4%", ",victim=random", ",erase=0us,timing=off");
        assert_eq!(path.matches("erase=").count(), 1, "an option of the caller's replaces the drive's: {path}");
        Path::read(&path).unwrap();
    }
}
