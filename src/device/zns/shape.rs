//! The geometry of a ZNS drive, as its options and an image's header define it.

use crate::device::RandomWriteAreas;
use crate::device::nand::{Latencies, PageBytes};
use crate::expression::Choice;
use crate::units::{BLOCK_BYTES, format_size};

/// The maximum number of zones: each takes memory, and 32 bytes of an image.
pub(super) const MOST_ZONES: u64 = 1 << 20;
/// The maximum number of blocks in a zone: a count of pages must not overflow.
const MOST_ZONE_BLOCKS: u64 = 1 << 30;

/// The maximum number of blocks of a random write area: NVMe has 16 bits.
const MOST_AREA_BLOCKS: u64 = (1 << 16) - 1;

/// The geometry of a ZNS drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ZnsShape {
    /// The number of zones.
    pub zones: u32,
    /// The number of conventional zones, the first ones.
    pub conventional: u32,
    /// Blocks from a zone's start to the next zone's start; a power of two.
    pub zone_blocks: u64,
    /// Writable blocks of a sequential zone.
    pub capacity_blocks: u64,
    /// The maximum number of open sequential zones; 0 for no limit.
    pub max_open: u32,
    /// The maximum number of open and closed sequential zones; 0 for no limit.
    pub max_active: u32,
    /// Blocks of a random write area; 0 for a drive without.
    pub area_blocks: u64,
    /// The write pointer of a zone with such an area moves by a multiple of these blocks.
    pub area_flush_blocks: u64,
    /// The maximum number of zones with an area; 0 for as many as can be active.
    pub max_areas: u32,
    /// Bytes of a flash page.
    pub page_bytes: u32,
    /// The number of channels (buses).
    pub channels: u32,
    /// Dies on each channel.
    pub dies: u32,
    /// Planes in each die.
    pub planes: u32,
    /// The maximum number of erases of a zone.
    pub endurance: u32,
    /// The times of flash operations, if they are modelled.
    pub latencies: Latencies,
}

/// An invalid value in a shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flaw {
    /// The option that sets it.
    pub option: &'static str,
    /// Its value.
    pub found: String,
    /// A valid value.
    pub expected: String,
}

impl ZnsShape {
    /// Bytes of the drive, including the gap between capacity and size of its zones.
    pub fn size_bytes(&self) -> u64 {
        u64::from(self.zones) * self.zone_blocks * BLOCK_BYTES
    }

    /// The number of blocks of the drive.
    pub(super) fn blocks(&self) -> u64 {
        u64::from(self.zones) * self.zone_blocks
    }

    /// The random write areas, if it has any.
    pub fn areas(&self) -> Option<RandomWriteAreas> {
        let count = match (self.max_areas, self.max_active) {
            (0, 0) => self.zones - self.conventional,
            (0, max_active) => max_active,
            (most, _) => most,
        };
        let areas = RandomWriteAreas { blocks: self.area_blocks, flush_blocks: self.area_flush_blocks, count };
        (self.area_blocks > 0).then_some(areas)
    }

    /// The value of an option that an image stores, as text.
    pub(super) fn option(&self, name: &str) -> String {
        match name {
            "size" => format_size(self.size_bytes()),
            "zone" => format_size(self.zone_blocks * BLOCK_BYTES),
            "capacity" => format_size(self.capacity_blocks.saturating_mul(BLOCK_BYTES)),
            "conventional" => self.conventional.to_string(),
            "max-open" => self.max_open.to_string(),
            "max-active" => self.max_active.to_string(),
            "zrwa" => format_size(self.area_blocks * BLOCK_BYTES),
            "zrwa-flush" => format_size(self.area_flush_blocks * BLOCK_BYTES),
            "max-zrwa" => self.max_areas.to_string(),
            "page" => format_size(u64::from(self.page_bytes)),
            "channels" => self.channels.to_string(),
            "dies" => self.dies.to_string(),
            "planes" => self.planes.to_string(),
            "endurance" => self.endurance.to_string(),
            name => unreachable!("an image keeps no {name}"),
        }
    }

    /// The first value that breaks a rule, if any. An image's header may hold anything.
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
        if self.area_blocks > MOST_AREA_BLOCKS.min(self.capacity_blocks) {
            let most = format_size(MOST_AREA_BLOCKS.min(self.capacity_blocks) * BLOCK_BYTES);
            return flaw("zrwa", format!("at most {most}, and the capacity of a zone"));
        }
        let is_divided = self.area_flush_blocks > 0 && self.area_blocks.is_multiple_of(self.area_flush_blocks);
        if self.area_blocks > 0 && !is_divided {
            let area = format_size(self.area_blocks * BLOCK_BYTES);
            return flaw("zrwa-flush", format!("a size that divides zrwa, {area}"));
        }
        if self.endurance == 0 {
            return flaw("endurance", "at least 1".to_string());
        }
        None
    }
}
