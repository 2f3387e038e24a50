//! Objects in memory: the least recently used leaves first.

use super::object::Object;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The memory in front of the engines.
#[derive(Debug)]
pub struct Memory {
    capacity_bytes: u64,
    used_bytes: u64,
    /// The objects, each with the number of its last use.
    objects: FxHashMap<u64, (Object, u64)>,
    /// Keys by the number of their last use.
    by_use: BTreeMap<u64, u64>,
    uses: u64,
}

impl Memory {
    /// Memory for `capacity_bytes` of keys and values.
    pub fn new(capacity_bytes: u64) -> Memory {
        Memory { capacity_bytes, used_bytes: 0, objects: FxHashMap::default(), by_use: BTreeMap::new(), uses: 0 }
    }

    /// True if there is any memory.
    pub fn exists(&self) -> bool {
        self.capacity_bytes > 0
    }

    /// The object, which is not used by this.
    pub fn find(&self, key: u64) -> Option<Object> {
        self.objects.get(&key).map(|(object, _)| *object)
    }

    /// The object, which is used now.
    pub fn get(&mut self, key: u64) -> Option<Object> {
        let (object, last) = self.objects.get_mut(&key)?;
        self.by_use.remove(last);
        self.uses += 1;
        *last = self.uses;
        self.by_use.insert(self.uses, key);
        Some(*object)
    }

    /// Puts an object, in place of one of the same key.
    pub fn put(&mut self, object: Object) {
        self.remove(object.key);
        self.uses += 1;
        self.used_bytes += object.bytes;
        self.objects.insert(object.key, (object, self.uses));
        self.by_use.insert(self.uses, object.key);
    }

    /// Removes an object. True if it was there.
    pub fn remove(&mut self, key: u64) -> bool {
        let removed = self.objects.remove(&key);
        if let Some((object, last)) = &removed {
            self.used_bytes -= object.bytes;
            self.by_use.remove(last);
        }
        removed.is_some()
    }

    /// Takes the least recently used object out, if there is more than fits.
    pub fn take_excess(&mut self) -> Option<Object> {
        if self.used_bytes <= self.capacity_bytes {
            return None;
        }
        let (_, key) = self.by_use.first_key_value().expect("used bytes are those of objects");
        let (object, _) = self.objects[key];
        self.remove(object.key);
        Some(object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(key: u64, bytes: u64) -> Object {
        Object { key, bytes, expires_s: 0 }
    }

    #[test]
    fn the_least_recently_used_leaves_when_bytes_do_not_fit() {
        let mut memory = Memory::new(100);
        [(1, 40), (2, 40)].iter().for_each(|of| memory.put(object(of.0, of.1)));
        assert_eq!(memory.take_excess(), None);
        assert_eq!(memory.get(1), Some(object(1, 40)));
        memory.put(object(3, 60));
        assert_eq!(memory.take_excess(), Some(object(2, 40)));
        assert_eq!(memory.take_excess(), None);
        memory.put(object(3, 10));
        assert!(memory.remove(1) && !memory.remove(1) && memory.find(2).is_none() && memory.find(3).is_some());
        memory.put(object(4, 101));
        assert_eq!(
            [memory.take_excess(), memory.take_excess(), memory.take_excess()].map(|out| out.map(|o| o.key)),
            [Some(3), Some(4), None]
        );
        assert_eq!((memory.used_bytes, memory.by_use.len()), (0, 0));
    }
}
