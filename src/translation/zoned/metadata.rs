//! The map and the bitmaps of a volume, in memory, and as blocks of a metadata set.
//!
//! ```text
//! a set:  super block | map blocks | bitmap blocks
//! map:    8 bytes a chunk: u32 data zone, u32 buffer zone; 0xFFFFFFFF for none; 512 a block
//! bitmap: for each zone of all devices max(1, zone blocks / 32768) blocks; a bit a block, lowest first: it is valid
//! ```

use super::media::ZoneId;
use crate::units::BLOCK_BYTES;

/// Map entries in a block.
pub const ENTRIES: u32 = (BLOCK_BYTES / 8) as u32;
/// Bitmap bits in a block.
pub const BITS: u32 = (BLOCK_BYTES * 8) as u32;

/// The zones of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The data zone.
    pub data: ZoneId,
    /// The zone for blocks that the data zone cannot take.
    pub buffer: ZoneId,
}

impl Entry {
    /// The entry of a chunk without zones.
    pub const UNMAPPED: Entry = Entry { data: ZoneId::NONE, buffer: ZoneId::NONE };
}

/// The layout of a metadata set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetShape {
    /// The number of chunks.
    pub chunks: u32,
    /// The number of zones of all devices.
    pub zones: u32,
    /// The number of blocks in a zone.
    pub zone_blocks: u32,
    /// The number of blocks of the map.
    pub map_blocks: u32,
}

impl SetShape {
    /// The number of blocks of a zone's bitmap.
    pub fn bitmap_blocks_per_zone(&self) -> u32 {
        (self.zone_blocks / BITS).max(1)
    }

    /// The number of blocks of all bitmaps.
    pub fn bitmap_blocks(&self) -> u64 {
        u64::from(self.zones) * u64::from(self.bitmap_blocks_per_zone())
    }

    /// The number of blocks of the set, with its super block.
    pub fn set_blocks(&self) -> u64 {
        1 + u64::from(self.map_blocks) + self.bitmap_blocks()
    }

    /// The number of zones of the set.
    pub fn set_zones(&self) -> u64 {
        self.set_blocks().div_ceil(u64::from(self.zone_blocks))
    }
}

/// The map and the bitmaps.
#[derive(Clone, Debug)]
pub struct Metadata {
    /// The layout.
    pub shape: SetShape,
    map: Vec<Entry>,
    /// Bitmaps, of `words` words for each zone.
    bits: Vec<u64>,
    words: usize,
    weights: Vec<u32>,
    /// The changed blocks of the set, and for each block whether it is changed.
    dirty: Vec<u32>,
    is_dirty: Vec<bool>,
}

impl Metadata {
    /// The metadata of a new volume: nothing mapped, nothing valid.
    pub fn new(shape: SetShape) -> Metadata {
        let words = (shape.zone_blocks as usize).div_ceil(64);
        Metadata {
            shape,
            map: vec![Entry::UNMAPPED; shape.chunks as usize],
            bits: vec![0; words * shape.zones as usize],
            words,
            weights: vec![0; shape.zones as usize],
            dirty: Vec::new(),
            is_dirty: vec![false; shape.set_blocks() as usize],
        }
    }

    /// The zones of a chunk.
    #[inline]
    pub fn entry(&self, chunk: u32) -> Entry {
        self.map[chunk as usize]
    }

    /// Sets the zones of a chunk.
    pub fn set_entry(&mut self, chunk: u32, entry: Entry) {
        self.map[chunk as usize] = entry;
        self.touch(1 + chunk / ENTRIES);
    }

    /// The number of valid blocks of a zone.
    #[inline]
    pub fn weight(&self, zone: ZoneId) -> u32 {
        self.weights[zone.index()]
    }

    /// True if the block is valid.
    #[inline]
    pub fn is_valid(&self, zone: ZoneId, block: u32) -> bool {
        self.bits[zone.index() * self.words + block as usize / 64] >> (block % 64) & 1 != 0
    }

    /// True if the block at `from` is valid, and the end of the run of blocks with the same state, at most `end`.
    #[inline]
    pub fn run(&self, zone: ZoneId, from: u32, end: u32) -> (bool, u32) {
        let kind = self.is_valid(zone, from);
        let words = &self.bits[zone.index() * self.words..][..self.words];
        let mut block = from;
        while block < end {
            // Bits that differ from the first one are set, from the lowest on.
            let word = words[block as usize / 64] >> (block % 64);
            let other = if kind { !word } else { word };
            let left = 64 - block % 64;
            let same = other.trailing_zeros().min(left);
            block += same;
            if same < left {
                break;
            }
        }
        (kind, block.min(end))
    }

    /// The blocks that are valid in both zones.
    pub fn valid_in_both(&self, one: ZoneId, other: ZoneId) -> impl Iterator<Item = u32> + '_ {
        (0..self.shape.zone_blocks).filter(move |block| self.is_valid(one, *block) && self.is_valid(other, *block))
    }

    /// Marks blocks valid.
    #[inline]
    pub fn validate(&mut self, zone: ZoneId, from: u32, end: u32) {
        let mut added = 0;
        self.each_word(zone, from, end, |word, mask| {
            added += (mask & !*word).count_ones();
            *word |= mask;
        });
        if added > 0 {
            self.weights[zone.index()] += added;
            debug_assert!(self.weights[zone.index()] <= self.shape.zone_blocks, "a zone has no more blocks than these");
            self.touch_bits(zone, from, end);
        }
    }

    /// Marks blocks invalid.
    #[inline]
    pub fn invalidate(&mut self, zone: ZoneId, from: u32, end: u32) {
        let mut taken = 0;
        self.each_word(zone, from, end, |word, mask| {
            taken += (mask & *word).count_ones();
            *word &= !mask;
        });
        debug_assert!(taken <= self.weights[zone.index()], "zone {}'s weight counts its valid blocks", zone.0);
        if taken > 0 {
            self.weights[zone.index()] -= taken;
            self.touch_bits(zone, from, end);
        }
    }

    #[inline]
    fn each_word(&mut self, zone: ZoneId, from: u32, end: u32, mut change: impl FnMut(&mut u64, u64)) {
        debug_assert!(from <= end && end <= self.shape.zone_blocks, "blocks {from} to {end} are in zone {}", zone.0);
        let words = &mut self.bits[zone.index() * self.words..][..self.words];
        let mut block = from;
        while block < end {
            let count = (64 - block % 64).min(end - block);
            let mask = (u64::MAX >> (64 - count)) << (block % 64);
            change(&mut words[block as usize / 64], mask);
            block += count;
        }
    }

    #[inline]
    fn touch_bits(&mut self, zone: ZoneId, from: u32, end: u32) {
        let first = 1 + self.shape.map_blocks + zone.0 * self.shape.bitmap_blocks_per_zone();
        for block in from / BITS..=(end - 1) / BITS {
            self.touch(first + block);
        }
    }

    #[inline]
    fn touch(&mut self, block: u32) {
        if !std::mem::replace(&mut self.is_dirty[block as usize], true) {
            self.dirty.push(block);
        }
    }

    /// Takes the changed blocks of the set except its super block, in order; they count as unchanged.
    pub fn take_dirty(&mut self) -> Vec<u32> {
        let mut dirty = std::mem::take(&mut self.dirty);
        dirty.sort_unstable();
        dirty.iter().for_each(|&block| self.is_dirty[block as usize] = false);
        dirty
    }

    /// Marks blocks as changed again, whose write failed after [`take_dirty`](Self::take_dirty).
    pub fn give_back_dirty(&mut self, blocks: &[u32]) {
        blocks.iter().for_each(|&block| self.touch(block));
    }

    /// True if any block is changed.
    pub fn has_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Encodes block `block` of the set, from 1, into 4 KiB.
    pub fn to_bytes(&self, block: u32, bytes: &mut [u8]) {
        assert!(
            block >= 1 && u64::from(block) < self.shape.set_blocks() && bytes.len() as u64 == BLOCK_BYTES,
            "block {block} is one of in the set, after its super block"
        );
        let index = (block - 1) as usize;
        if block <= self.shape.map_blocks {
            bytes.fill(0xFF);
            let first = index * ENTRIES as usize;
            let entries = self.map.get(first..).unwrap_or_default().iter().take(ENTRIES as usize);
            for (entry, bytes) in entries.zip(bytes.chunks_exact_mut(8)) {
                bytes[..4].copy_from_slice(&entry.data.0.to_le_bytes());
                bytes[4..].copy_from_slice(&entry.buffer.0.to_le_bytes());
            }
            return;
        }
        bytes.fill(0);
        let (zone, part) = self.bitmap_place(block);
        for (word, bytes) in self.words_of(zone, part).iter().zip(bytes.chunks_exact_mut(8)) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
    }

    /// Decodes block `block` of the set, from 1. Only the size is validated.
    pub fn read_bytes(&mut self, block: u32, bytes: &[u8]) {
        if block <= self.shape.map_blocks {
            let first = (block - 1) as usize * ENTRIES as usize;
            let number = |bytes: &[u8]| ZoneId(u32::from_le_bytes(bytes.try_into().expect("four bytes")));
            for (entry, bytes) in self.map.iter_mut().skip(first).zip(bytes.chunks_exact(8)) {
                *entry = Entry { data: number(&bytes[..4]), buffer: number(&bytes[4..]) };
            }
            return;
        }
        let (zone, part) = self.bitmap_place(block);
        let spare_bits = self.shape.zone_blocks % 64;
        let words = self.words;
        let range = Self::word_range(words, zone, part);
        let mut added = 0;
        for (word, bytes) in self.bits[range].iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
            if spare_bits > 0 {
                *word &= u64::MAX >> (64 - spare_bits);
            }
            added += word.count_ones();
        }
        self.weights[zone] += added;
    }

    /// The zone of a bitmap block, and the index among the zone's bitmap blocks.
    fn bitmap_place(&self, block: u32) -> (usize, usize) {
        let index = block - 1 - self.shape.map_blocks;
        let per_zone = self.shape.bitmap_blocks_per_zone();
        ((index / per_zone) as usize, (index % per_zone) as usize)
    }

    fn word_range(words: usize, zone: usize, part: usize) -> std::ops::Range<usize> {
        let from = part * (BITS as usize / 64);
        zone * words + from..zone * words + words.min(from + BITS as usize / 64)
    }

    fn words_of(&self, zone: usize, part: usize) -> &[u64] {
        &self.bits[Self::word_range(self.words, zone, part)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shape(zone_blocks: u32) -> SetShape {
        SetShape { chunks: 3, zones: 5, zone_blocks, map_blocks: 1 }
    }

    proptest! {
        #[test]
        fn bits_are_as_in_an_array(
            zone_blocks in prop_oneof![Just(8u32), Just(64), Just(256)],
            changes in proptest::collection::vec((0u32..5, 0u32..256, 1u32..100, any::<bool>()), 1..40),
        ) {
            let mut metadata = Metadata::new(shape(zone_blocks));
            let mut model = vec![vec![false; zone_blocks as usize]; 5];
            for (zone, from, count, valid) in changes {
                let from = from % zone_blocks;
                let end = (from + count).min(zone_blocks);
                if valid { metadata.validate(ZoneId(zone), from, end) } else { metadata.invalidate(ZoneId(zone), from, end) }
                model[zone as usize][from as usize..end as usize].fill(valid);
            }
            let mut again = Metadata::new(shape(zone_blocks));
            let mut bytes = vec![0; 4096];
            for block in 1..shape(zone_blocks).set_blocks() as u32 {
                metadata.to_bytes(block, &mut bytes);
                again.read_bytes(block, &bytes);
            }
            for (zone, bits) in model.iter().enumerate() {
                let zone = ZoneId(zone as u32);
                let weight = bits.iter().filter(|bit| **bit).count() as u32;
                prop_assert_eq!((metadata.weight(zone), again.weight(zone)), (weight, weight));
                let mut block = 0;
                while block < zone_blocks {
                    let (kind, end) = again.run(zone, block, zone_blocks);
                    prop_assert!(end > block && bits[block as usize..end as usize].iter().all(|bit| *bit == kind));
                    prop_assert!(end == zone_blocks || bits[end as usize] != kind);
                    block = end;
                }
            }
        }
    }
}
