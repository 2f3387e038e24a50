//! The cache: memory in front of two engines.

use super::buckets::Buckets;
use super::memory::Memory;
use super::object::Object;
use super::operations::Pending;
use super::regions::Regions;
use crate::random::Random;
use crate::workload::CacheCounts;

/// A cache of objects on a drive.
///
/// Requests come with the time in seconds, and operations of the drive go to `pending`.
#[derive(Debug)]
pub struct FlashCache {
    /// The memory in front of the engines.
    pub memory: Memory,
    /// Small objects.
    pub buckets: Buckets,
    /// Large objects.
    pub regions: Regions,
    /// The most bytes of key and value of a small object.
    pub small_bytes: u64,
    /// The probability with which an object is written to the drive.
    pub admitted: f64,
    /// Draws which are.
    pub random: Random,
    /// The counts.
    pub counts: CacheCounts,
}

impl FlashCache {
    /// True if the object was there. It is in memory then, if there is any.
    pub fn get(&mut self, key: u64, now_s: u64, pending: &mut Pending) -> bool {
        self.counts.gets += 1;
        if self.memory.get(key).is_some_and(|object| object.is_valid(now_s)) {
            self.counts.memory_hits += 1;
            return true;
        }
        let valid = |object: &Object| object.is_valid(now_s);
        let found = if let Some(object) = self.buckets.find(key).filter(valid) {
            self.buckets.read(key, pending, &mut self.counts.buckets);
            self.counts.buckets.hits += 1;
            object
        } else if let Some(object) = self.regions.find(key).filter(valid) {
            self.regions.read(key, pending);
            self.counts.regions.hits += 1;
            object
        } else {
            return false;
        };
        if self.memory.exists() {
            self.memory.put(found);
            self.shrink_memory(now_s, pending);
        }
        true
    }

    /// True if the cache has a valid object of this key, which it is not asked for.
    pub fn has(&self, key: u64, now_s: u64) -> bool {
        let valid = |object: Option<Object>| object.is_some_and(|object| object.is_valid(now_s));
        valid(self.memory.find(key)) || valid(self.buckets.find(key)) || valid(self.regions.find(key))
    }

    /// Puts an object, in place of one of the same key.
    pub fn set(&mut self, object: Object, now_s: u64, pending: &mut Pending) {
        self.counts.sets += 1;
        self.counts.set_bytes += object.bytes;
        if self.memory.exists() {
            // What the drive has of it is stale.
            self.remove_from_drive(object.key, pending);
            self.memory.put(object);
            self.shrink_memory(now_s, pending);
        } else {
            self.write(object, pending);
        }
    }

    /// Forgets an object.
    pub fn delete(&mut self, key: u64, pending: &mut Pending) {
        self.counts.deletes += 1;
        self.memory.remove(key);
        self.remove_from_drive(key, pending);
    }

    fn remove_from_drive(&mut self, key: u64, pending: &mut Pending) {
        self.buckets.remove(key, pending, &mut self.counts.buckets);
        self.regions.remove(key);
    }

    /// Writes objects that leave memory, unless they are not valid any more or the drive has them.
    fn shrink_memory(&mut self, now_s: u64, pending: &mut Pending) {
        while let Some(object) = self.memory.take_excess() {
            let is_on_drive =
                self.buckets.find(object.key) == Some(object) || self.regions.find(object.key) == Some(object);
            if !is_on_drive && object.is_valid(now_s) {
                self.write(object, pending);
            }
        }
    }

    /// Writes an object to the engine of its size, if it is admitted.
    fn write(&mut self, object: Object, pending: &mut Pending) {
        let is_small = object.bytes <= self.small_bytes;
        if !is_small && !self.regions.fits(&object) {
            self.counts.too_large += 1;
            return self.remove_from_drive(object.key, pending);
        }
        if self.admitted < 1.0 && self.random.unit() >= self.admitted {
            self.counts.not_admitted += 1;
            return self.remove_from_drive(object.key, pending);
        }
        if is_small {
            self.regions.remove(object.key);
            self.buckets.put(object, pending, &mut self.counts.buckets);
        } else {
            self.buckets.remove(object.key, pending, &mut self.counts.buckets);
            self.regions.put(object, pending, &mut self.counts.regions);
        }
    }
}
