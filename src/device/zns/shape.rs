//! The shape of a ZNS drive: what its options and an image's header both say.

use crate::device::nand::{Latencies, PageBytes};
use crate::expression::Choice;
use crate::units::{BLOCK_BYTES, format_size};

/// More zones are refused: each takes memory, and 32 bytes of an image.
pub(super) const MOST_ZONES: u64 = 1 << 20;
/// A zone has more than one block, and not so many that a count of pages overflows.
const MOST_ZONE_BLOCKS: u64 = 1 << 30;

/// The shape of a ZNS drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ZnsShape {
    /// Zones.
    pub zones: u32,
    /// How many of them, the first, are conventional.
    pub conventional: u32,
    /// Blocks from the start of a zone to the start of the next; a power of two.
    pub zone_blocks: u64,
    /// Blocks of a sequential zone that can be written.
    pub capacity_blocks: u64,
    /// Sequential zones that may be open at once; 0 for no limit.
    pub max_open: u32,
    /// Sequential zones that may be open or closed at once; 0 for no limit.
    pub max_active: u32,
    /// Bytes of a flash page.
    pub page_bytes: u32,
    /// Buses.
    pub channels: u32,
    /// Dies on each channel.
    pub dies: u32,
    /// Planes in each die.
    pub planes: u32,
    /// Erases that a zone stands.
    pub endurance: u32,
    /// How long the flash takes, if it is to take time.
    pub latencies: Latencies,
}

/// What is wrong with a shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flaw {
    /// The option by which it is set.
    pub option: &'static str,
    /// What it is.
    pub found: String,
    /// What it could be.
    pub expected: String,
}

impl ZnsShape {
    /// Bytes of the whole drive, what lies between capacity and size of its zones included.
    pub fn size_bytes(&self) -> u64 {
        u64::from(self.zones) * self.zone_blocks * BLOCK_BYTES
    }

    /// Blocks of the whole drive.
    pub(super) fn blocks(&self) -> u64 {
        u64::from(self.zones) * self.zone_blocks
    }

    /// The value of each option that an image keeps, as it would be written.
    pub(super) fn option(&self, name: &str) -> String {
        match name {
            "size" => format_size(self.size_bytes()),
            "zone" => format_size(self.zone_blocks * BLOCK_BYTES),
            "capacity" => format_size(self.capacity_blocks.saturating_mul(BLOCK_BYTES)),
            "conventional" => self.conventional.to_string(),
            "max-open" => self.max_open.to_string(),
            "max-active" => self.max_active.to_string(),
            "page" => format_size(u64::from(self.page_bytes)),
            "channels" => self.channels.to_string(),
            "dies" => self.dies.to_string(),
            "planes" => self.planes.to_string(),
            "endurance" => self.endurance.to_string(),
            name => unreachable!("an image keeps no {name}"),
        }
    }

    /// What the shape breaks of the rules that hold for all, if it breaks one. An image's header may hold anything.
    pub(super) fn flaw(&self) -> Option<Flaw> {
        let flaw = |option, expected: String| Some(Flaw { option, found: self.option(option), expected });
        if !self.zone_blocks.is_power_of_two() || !(2..=MOST_ZONE_BLOCKS).contains(&self.zone_blocks) {
            let found = format!("{} blocks of 4K", self.zone_blocks);
            let most = format_size(MOST_ZONE_BLOCKS * BLOCK_BYTES);
            return Some(Flaw { option: "zone", found, expected: format!("a power of two from 8K to {most}") });
        }
        if self.zones == 0 || u64::from(self.zones) > MOST_ZONES {
            let found = format!("{} zones", self.zones);
            return Some(Flaw { option: "size", found, expected: format!("1 to {MOST_ZONES} zones") });
        }
        if self.conventional > self.zones {
            return flaw("conventional", format!("at most all {} zones", self.zones));
        }
        let units = [self.channels, self.dies, self.planes];
        for (option, count, most) in [("channels", units[0], 64), ("dies", units[1], 64), ("planes", units[2], 16)] {
            if !(1..=most).contains(&count) {
                return flaw(option, format!("1 to {most}"));
            }
        }
        if !PageBytes::WORDS.iter().any(|(_, page, _)| page.0 == self.page_bytes) {
            return flaw("page", "2K, 4K, 8K or 16K".to_string());
        }
        let page_blocks = u64::from(self.page_bytes).div_ceil(BLOCK_BYTES);
        if !(1..=self.zone_blocks).contains(&self.capacity_blocks) || !self.capacity_blocks.is_multiple_of(page_blocks)
        {
            let zone = format_size(self.zone_blocks * BLOCK_BYTES);
            let page = format_size(page_blocks * BLOCK_BYTES);
            return flaw("capacity", format!("at most the zone's {zone}, in pages of {page}"));
        }
        if self.max_active > 0 && self.max_open > self.max_active {
            return flaw("max-open", format!("at most max-active, {}", self.max_active));
        }
        if self.endurance == 0 {
            return flaw("endurance", "at least 1".to_string());
        }
        None
    }
}
