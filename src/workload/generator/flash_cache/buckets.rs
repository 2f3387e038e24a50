//! Small objects: each is in the bucket of its key, where the oldest leaves for a new one. A change reads the bucket and writes
//! it.
//!
//! Sizes are those of CacheLib's buckets:
//!
//! ```text
//! | header, 24 | slot, 4 | entry, 16 | key | value | slot, 4 | entry, 16 | key | value | ... free |
//! ```

use super::super::pattern::BUCKET_STREAM;
use super::object::Object;
use super::operations::{self, Pending};
use crate::workload::{Action, EngineCounts};
use std::ops::Range;

/// Bytes of a bucket that no entry has.
const HEADER_BYTES: u64 = 24;
/// Bytes of an entry beside its key and value.
const ENTRY_BYTES: u64 = 20;

/// The largest object that a bucket of `bucket_bytes` can hold: bytes of key and value.
pub const fn largest_object(bucket_bytes: u64) -> u64 {
    bucket_bytes.saturating_sub(HEADER_BYTES + ENTRY_BYTES)
}

/// The buckets, from the first byte of the drive on.
#[derive(Debug)]
pub struct Buckets {
    bucket_bytes: u64,
    /// The objects of each bucket, the oldest first.
    buckets: Vec<Vec<Object>>,
}

impl Buckets {
    /// `count` empty buckets.
    pub fn new(count: u64, bucket_bytes: u64) -> Buckets {
        assert!(count > 0 && bucket_bytes > HEADER_BYTES + ENTRY_BYTES, "{count} buckets of {bucket_bytes} bytes");
        Buckets { bucket_bytes, buckets: vec![Vec::new(); count as usize] }
    }

    /// The number of bytes of all buckets.
    pub fn bytes(&self) -> u64 {
        self.buckets.len() as u64 * self.bucket_bytes
    }

    /// The number of the bucket of a key.
    fn of(&self, key: u64) -> usize {
        ((u128::from(key) * self.buckets.len() as u128) >> 64) as usize
    }

    fn range(&self, number: usize) -> Range<u64> {
        let start = number as u64 * self.bucket_bytes;
        start..start + self.bucket_bytes
    }

    fn request(&self, number: usize, action: Action, pending: &mut Pending, counts: &mut EngineCounts) {
        operations::add(pending, action, self.range(number), self.bucket_bytes, BUCKET_STREAM);
        counts.written_bytes += if action == Action::Write { self.bucket_bytes } else { 0 };
    }

    /// The object of a key, without a request.
    pub fn find(&self, key: u64) -> Option<Object> {
        self.buckets[self.of(key)].iter().find(|object| object.key == key).copied()
    }

    /// Reads the bucket of a key.
    pub fn read(&self, key: u64, pending: &mut Pending, counts: &mut EngineCounts) {
        self.request(self.of(key), Action::Read, pending, counts);
    }

    /// Puts an object, which fits a bucket, in place of one of the same key.
    pub fn put(&mut self, object: Object, pending: &mut Pending, counts: &mut EngineCounts) {
        let number = self.of(object.key);
        let bucket = &mut self.buckets[number];
        bucket.retain(|old| old.key != object.key);
        let taken = |object: &Object| object.bytes + ENTRY_BYTES;
        let room = self.bucket_bytes - HEADER_BYTES;
        assert!(taken(&object) <= room, "an object of {} bytes fits a bucket", object.bytes);
        let mut used: u64 = bucket.iter().map(taken).sum();
        let mut leaving = 0;
        while used + taken(&object) > room {
            used -= taken(&bucket[leaving]);
            leaving += 1;
        }
        bucket.drain(..leaving);
        bucket.push(object);
        counts.evicted += leaving as u64;
        counts.put(object.bytes);
        self.request(number, Action::Read, pending, counts);
        self.request(number, Action::Write, pending, counts);
    }

    /// Removes an object, if it is there.
    pub fn remove(&mut self, key: u64, pending: &mut Pending, counts: &mut EngineCounts) {
        let number = self.of(key);
        let bucket = &mut self.buckets[number];
        let before = bucket.len();
        bucket.retain(|object| object.key != key);
        if bucket.len() < before {
            self.request(number, Action::Read, pending, counts);
            self.request(number, Action::Write, pending, counts);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_objects_of_a_bucket_leave_for_a_new_one() {
        let (mut buckets, mut pending, mut counts) = (Buckets::new(1, 4096), Pending::new(), EngineCounts::default());
        // Two entries of 2,036 bytes fill the 4,072 behind the header.
        let object = |key, bytes| Object { key, bytes, expires_s: 0 };
        [(1, 2016), (2, 2016)].iter().for_each(|of| buckets.put(object(of.0, of.1), &mut pending, &mut counts));
        assert_eq!((counts.evicted, counts.object_bytes, counts.written_bytes), (0, 4032, 8192));
        buckets.put(object(1, 2016), &mut pending, &mut counts);
        assert_eq!(counts.evicted, 0, "an object takes its own place");
        buckets.put(object(3, 1), &mut pending, &mut counts);
        assert_eq!([1, 2, 3].map(|key| buckets.find(key).is_some()), [true, false, true]);
        buckets.put(object(4, largest_object(4096)), &mut pending, &mut counts);
        assert_eq!([1, 3, 4].map(|key| buckets.find(key).is_some()), [false, false, true]);
        pending.clear();
        buckets.remove(1, &mut pending, &mut counts);
        assert!(pending.is_empty(), "a bucket without the key is not read");
        buckets.remove(4, &mut pending, &mut counts);
        let asked: Vec<_> = pending.iter().map(|of| (of.action, of.offset_bytes, of.length_bytes, of.stream)).collect();
        assert_eq!(asked, [(Action::Read, 0, 4096, 0), (Action::Write, 0, 4096, BUCKET_STREAM)]);
    }
}
