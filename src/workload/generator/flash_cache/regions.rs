//! Large objects: one behind the other in the open region, which is in memory until it is full; then it is written whole. Its
//! successor is a region that was never written or, when there is none, a victim: what that holds is read and forgotten.
//!
//! An object takes 32 bytes beside its key and value, in multiples of 512, as in CacheLib.

use super::super::pattern::REGION_STREAM;
use super::object::Object;
use super::operations::{self, Pending};
use crate::expression::Choice;
use crate::workload::{Action, EngineCounts};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// Bytes of an object beside its key and value.
const ENTRY_BYTES: u64 = 32;
/// Places of objects are multiples of it, in bytes.
const ALIGNMENT: u64 = 512;
/// Reads are of whole blocks, in bytes.
const BLOCK_BYTES: u64 = 4096;

/// The order in which regions are forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionOrder {
    /// The oldest first.
    Fifo,
    /// That first of which no object was read for longest.
    Lru,
}

impl Choice for RegionOrder {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("fifo", RegionOrder::Fifo, "the oldest region is rewritten first"),
        ("lru", RegionOrder::Lru, "the region that was not read for longest is rewritten first"),
    ];
}

/// The sizes of the regions.
#[derive(Clone, Copy, Debug)]
pub struct RegionSizes {
    /// The first byte of the first region.
    pub start_bytes: u64,
    /// Bytes of a region.
    pub region_bytes: u64,
    /// The number of regions.
    pub count: u32,
    /// The most bytes of a request.
    pub request_bytes: u64,
}

/// An object's place.
#[derive(Clone, Copy, Debug)]
struct Spot {
    region: u32,
    offset: u64,
    object: Object,
}

#[derive(Clone, Debug, Default)]
struct Region {
    /// The keys that were put, each with its offset: those of which are still there, the index tells.
    keys: Vec<(u64, u64)>,
    used_bytes: u64,
    /// The number of its writing or its last read.
    last: u64,
}

/// The regions.
#[derive(Debug)]
pub struct Regions {
    sizes: RegionSizes,
    order: RegionOrder,
    index: FxHashMap<u64, Spot>,
    regions: Vec<Region>,
    open: u32,
    /// The number of regions that were opened so far.
    opened: u32,
    /// Written regions, by the number of their writing or last read.
    written: BTreeSet<(u64, u32)>,
    events: u64,
}

impl Regions {
    /// Empty regions, the first of which is open.
    pub fn new(sizes: RegionSizes, order: RegionOrder) -> Regions {
        assert!(sizes.count > 0 && sizes.region_bytes > 0 && sizes.request_bytes > 0, "{sizes:?}");
        let regions = vec![Region::default(); sizes.count as usize];
        let (index, written) = (FxHashMap::default(), BTreeSet::new());
        Regions { sizes, order, index, regions, open: 0, opened: 1, written, events: 0 }
    }

    /// Bytes that an object takes.
    fn taken(object: &Object) -> u64 {
        (object.bytes + ENTRY_BYTES).next_multiple_of(ALIGNMENT)
    }

    /// True if an object fits a region.
    pub fn fits(&self, object: &Object) -> bool {
        Regions::taken(object) <= self.sizes.region_bytes
    }

    /// The first byte of a region.
    fn start(&self, region: u32) -> u64 {
        self.sizes.start_bytes + u64::from(region) * self.sizes.region_bytes
    }

    /// The object of a key, without a request.
    pub fn find(&self, key: u64) -> Option<Object> {
        self.index.get(&key).map(|spot| spot.object)
    }

    /// Reads an object that is there. One of the open region is in memory.
    pub fn read(&mut self, key: u64, pending: &mut Pending) {
        let Spot { region, offset, object } = self.index[&key];
        if region == self.open {
            return;
        }
        let from = (self.start(region) + offset) / BLOCK_BYTES * BLOCK_BYTES;
        let to = (self.start(region) + offset + Regions::taken(&object)).next_multiple_of(BLOCK_BYTES);
        operations::add(pending, Action::Read, from..to, self.sizes.request_bytes, REGION_STREAM);
        if self.order == RegionOrder::Lru {
            self.written.remove(&(self.regions[region as usize].last, region));
            self.date(region);
        }
    }

    /// Gives a written region the next number.
    fn date(&mut self, region: u32) {
        self.events += 1;
        self.regions[region as usize].last = self.events;
        self.written.insert((self.events, region));
    }

    /// Puts an object, which fits a region, in place of one of the same key.
    pub fn put(&mut self, object: Object, pending: &mut Pending, counts: &mut EngineCounts) {
        let taken = Regions::taken(&object);
        assert!(taken <= self.sizes.region_bytes, "an object of {} bytes fits a region", object.bytes);
        if self.regions[self.open as usize].used_bytes + taken > self.sizes.region_bytes {
            self.write_open(pending, counts);
        }
        let region = &mut self.regions[self.open as usize];
        let offset = region.used_bytes;
        region.used_bytes += taken;
        region.keys.push((object.key, offset));
        self.index.insert(object.key, Spot { region: self.open, offset, object });
        counts.put(object.bytes);
    }

    /// Forgets an object, which needs no request.
    pub fn remove(&mut self, key: u64) {
        self.index.remove(&key);
    }

    /// Writes the open region, and opens another.
    fn write_open(&mut self, pending: &mut Pending, counts: &mut EngineCounts) {
        let RegionSizes { region_bytes, request_bytes, count, .. } = self.sizes;
        let start = self.start(self.open);
        operations::add(pending, Action::Write, start..start + region_bytes, request_bytes, REGION_STREAM);
        counts.written_bytes += region_bytes;
        self.date(self.open);
        if self.opened < count {
            self.open = self.opened;
            self.opened += 1;
            return;
        }
        let (_, victim) = self.written.pop_first().expect("a region was written");
        let Region { keys, used_bytes, .. } = std::mem::take(&mut self.regions[victim as usize]);
        let start = self.start(victim);
        let used = start..(start + used_bytes).next_multiple_of(BLOCK_BYTES).min(start + region_bytes);
        operations::add(pending, Action::Read, used, request_bytes, REGION_STREAM);
        for (key, offset) in keys {
            let is_there = |spot: &Spot| (spot.region, spot.offset) == (victim, offset);
            if self.index.get(&key).is_some_and(is_there) {
                self.index.remove(&key);
                counts.evicted += 1;
            }
        }
        self.open = victim;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three(order: RegionOrder) -> Regions {
        let sizes = RegionSizes { start_bytes: 4096, region_bytes: 8192, count: 3, request_bytes: 4096 };
        Regions::new(sizes, order)
    }

    /// Puts objects of 4,000 bytes, which take 4,096 each: two fill a region.
    fn put(regions: &mut Regions, keys: std::ops::Range<u64>) -> (Vec<(Action, u64, u8)>, EngineCounts) {
        let (mut pending, mut counts) = (Pending::new(), EngineCounts::default());
        keys.for_each(|key| regions.put(Object { key, bytes: 4000, expires_s: 0 }, &mut pending, &mut counts));
        (pending.iter().map(|of| (of.action, of.offset_bytes, of.stream)).collect(), counts)
    }

    fn present(regions: &Regions) -> Vec<u64> {
        (0..20).filter(|key| regions.find(*key).is_some()).collect()
    }

    #[test]
    fn a_full_region_is_written_whole_and_the_oldest_is_read_and_forgotten() {
        let mut regions = three(RegionOrder::Fifo);
        let (asked, counts) = put(&mut regions, 0..3);
        assert_eq!(asked, [(Action::Write, 4096, 2), (Action::Write, 8192, 2)]);
        assert_eq!((counts.object_bytes, counts.written_bytes, counts.evicted), (12_000, 8192, 0));
        let (asked, counts) = put(&mut regions, 3..7);
        let writes = [
            (Action::Write, 12_288, 2),
            (Action::Write, 16_384, 2),
            (Action::Write, 20_480, 2),
            (Action::Write, 24_576, 2),
        ];
        assert_eq!(asked, [&writes[..], &[(Action::Read, 4096, 0), (Action::Read, 8192, 0)]].concat());
        assert_eq!((present(&regions), counts.evicted), ((2..7).collect(), 2));
    }

    #[test]
    fn a_newer_version_and_a_removed_object_are_not_evicted() {
        let mut regions = three(RegionOrder::Fifo);
        put(&mut regions, 0..2);
        put(&mut regions, 0..1);
        regions.remove(1);
        let (_, counts) = put(&mut regions, 3..7);
        assert_eq!((present(&regions), counts.evicted), (vec![0, 3, 4, 5, 6], 0));
    }

    #[test]
    fn a_region_that_is_read_stays_longer_by_lru_alone() {
        for (order, stays) in [(RegionOrder::Fifo, false), (RegionOrder::Lru, true)] {
            let mut regions = three(order);
            put(&mut regions, 0..6);
            let mut pending = Pending::new();
            regions.read(1, &mut pending);
            assert_eq!((pending[0].action, pending[0].offset_bytes, pending.len()), (Action::Read, 8192, 1));
            regions.read(5, &mut pending);
            assert_eq!(pending.len(), 1, "the open region is in memory");
            put(&mut regions, 6..7);
            assert_eq!(regions.find(1).is_some(), stays, "{order:?}");
        }
    }
}
