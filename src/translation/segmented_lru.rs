//! A segmented least-recently-used cache of numbered keys.
//!
//! A new key is on probation. A hit protects it; the least recently used protected key goes back on probation. The
//! victim is the oldest key on probation (Karedla et al., Computer 27(3), 1994). Without a protected part it is plain
//! LRU.

use crate::tables::{filled, prefetch};

const NONE: u32 = u32::MAX;

/// A slot of the cache, or the head of a list, in a ring.
#[derive(Clone, Copy)]
struct Node {
    previous: u32,
    next: u32,
    key: u32,
    protected: bool,
}

/// The cache. Each slot, from 0 to its capacity, has a key or is free.
pub struct SegmentedLru {
    slot_of: Vec<u32>,
    /// The slots, then the heads of the probation list and of the protected list; newest first.
    nodes: Vec<Node>,
    capacity: u32,
    used: u32,
    protected: u32,
    protected_capacity: u32,
    /// A freed slot; `NONE` while the cache fills.
    free: u32,
}

impl SegmentedLru {
    /// An empty cache of `capacity` slots (at least 1) for keys below `keys`; at most `protected_capacity` slots are
    /// protected.
    pub fn new(capacity: u32, protected_capacity: u32, keys: u64) -> SegmentedLru {
        assert!(
            capacity > 0 && protected_capacity < capacity,
            "{protected_capacity} of {capacity} slots are protected, and one at least is not"
        );
        let free = Node { previous: NONE, next: NONE, key: NONE, protected: false };
        let mut nodes = vec![free; capacity as usize];
        nodes.extend((capacity..capacity + 2).map(|head| Node { previous: head, next: head, ..free }));
        SegmentedLru {
            slot_of: filled(NONE, keys as usize),
            nodes,
            capacity,
            used: 0,
            protected: 0,
            protected_capacity,
            free: NONE,
        }
    }

    /// The slot of a cached key.
    #[inline]
    pub fn slot(&self, key: u32) -> Option<usize> {
        let slot = self.slot_of[key as usize];
        (slot != NONE).then_some(slot as usize)
    }

    /// The maximum number of protected slots.
    pub fn protected_capacity(&self) -> u32 {
        self.protected_capacity
    }

    /// The key in a used slot.
    pub fn key(&self, slot: usize) -> u32 {
        self.nodes[slot].key
    }

    /// Prefetches the entry of a key into the processor's cache.
    #[inline]
    pub fn prefetch(&self, key: u32) {
        prefetch(&self.slot_of, key as usize);
    }

    #[inline]
    fn unlink(&mut self, slot: u32) {
        let Node { previous, next, .. } = self.nodes[slot as usize];
        self.nodes[previous as usize].next = next;
        self.nodes[next as usize].previous = previous;
    }

    #[inline]
    fn link(&mut self, slot: u32, protected: bool) {
        let head = self.capacity + u32::from(protected);
        let first = std::mem::replace(&mut self.nodes[head as usize].next, slot);
        self.nodes[first as usize].previous = slot;
        let node = &mut self.nodes[slot as usize];
        (node.previous, node.next, node.protected) = (head, first, protected);
    }

    /// Records a hit of the key in `slot`.
    #[inline]
    pub fn touch(&mut self, slot: usize) {
        let slot = slot as u32;
        debug_assert_eq!(self.slot_of[self.nodes[slot as usize].key as usize], slot, "slot {slot} holds a key");
        let protect = self.protected_capacity > 0;
        let head = self.capacity + u32::from(protect);
        if self.nodes[head as usize].next == slot {
            return;
        }
        self.unlink(slot);
        let was_protected = self.nodes[slot as usize].protected;
        self.link(slot, protect);
        if protect && !was_protected {
            self.protected += 1;
            if self.protected > self.protected_capacity {
                let oldest = self.nodes[head as usize].previous;
                self.unlink(oldest);
                self.link(oldest, false);
                self.protected -= 1;
            }
        }
    }

    /// The slot of the next victim, if no slot is free.
    pub fn victim(&self) -> Option<usize> {
        if self.used < self.capacity {
            return None;
        }
        // The protected part is smaller than the cache, so at least one key is on probation.
        Some(self.nodes[self.capacity as usize].previous as usize)
    }

    /// Frees a used slot.
    pub fn remove(&mut self, slot: usize) {
        debug_assert_eq!(self.slot_of[self.nodes[slot].key as usize] as usize, slot, "slot {slot} holds a key");
        self.unlink(slot as u32);
        let node = &mut self.nodes[slot];
        self.slot_of[std::mem::replace(&mut node.key, NONE) as usize] = NONE;
        if std::mem::take(&mut node.protected) {
            self.protected -= 1;
        }
        node.next = self.free;
        self.free = slot as u32;
        self.used -= 1;
    }

    /// Inserts a key that is not cached, and returns its slot. A slot must be free.
    pub fn insert(&mut self, key: u32) -> usize {
        debug_assert!(self.used < self.capacity, "a slot is free");
        debug_assert_eq!(self.slot_of[key as usize], NONE, "key {key} is in once");
        let slot = if self.free == NONE {
            self.used
        } else {
            let slot = self.free;
            self.free = self.nodes[slot as usize].next;
            slot
        };
        self.used += 1;
        self.nodes[slot as usize].key = key;
        self.slot_of[key as usize] = slot;
        self.link(slot, false);
        slot as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// A reference with two lists that are searched.
    struct Model {
        probation: Vec<u32>,
        protected: Vec<u32>,
    }

    #[test]
    fn it_keeps_and_drops_what_two_searched_lists_would() {
        for (capacity, protected_capacity) in [(1, 0), (4, 0), (8, 4), (8, 7), (50, 25)] {
            let mut lru = SegmentedLru::new(capacity, protected_capacity, 100);
            let mut model = Model { probation: Vec::new(), protected: Vec::new() };
            let mut random = Random::new(3, "test");
            for _ in 0..20_000 {
                let key = (random.below(100) * random.below(100) / 100) as u32;
                let known = model.probation.contains(&key) || model.protected.contains(&key);
                assert_eq!(lru.slot(key).is_some(), known);
                match lru.slot(key) {
                    Some(slot) if random.below(10) == 0 => {
                        lru.remove(slot);
                        model.probation.retain(|&other| other != key);
                        model.protected.retain(|&other| other != key);
                    }
                    Some(slot) => {
                        assert_eq!(lru.key(slot), key);
                        lru.touch(slot);
                        model.probation.retain(|&other| other != key);
                        model.protected.retain(|&other| other != key);
                        if protected_capacity == 0 {
                            model.probation.insert(0, key);
                        } else {
                            model.protected.insert(0, key);
                            if model.protected.len() > protected_capacity as usize {
                                model.probation.insert(0, model.protected.pop().unwrap());
                            }
                        }
                    }
                    None => {
                        if let Some(victim) = lru.victim() {
                            assert_eq!(Some(lru.key(victim)), model.probation.pop());
                            lru.remove(victim);
                        }
                        lru.insert(key);
                        model.probation.insert(0, key);
                    }
                }
            }
        }
    }
}
