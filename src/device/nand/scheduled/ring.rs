//! A queue in a ring whose room is a power of two: unlike the library's, its push is inlined.

/// A queue of small things.
#[derive(Debug, Clone)]
pub(super) struct Ring<T> {
    items: Vec<T>,
    head: usize,
    len: usize,
}

/// The room of a queue that is not empty.
const LEAST: usize = 8;

impl<T: Copy> Ring<T> {
    /// Empty.
    pub const fn new() -> Ring<T> {
        Ring { items: Vec::new(), head: 0, len: 0 }
    }

    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The place of an item. Without room it has no meaning.
    #[inline(always)]
    fn place(&self, index: usize) -> usize {
        (self.head.wrapping_add(index)) & self.items.len().wrapping_sub(1)
    }

    #[inline(always)]
    pub fn front(&self) -> Option<T> {
        if self.len == 0 { None } else { Some(self.items[self.head]) }
    }

    /// The item of an index, if the queue is so long.
    pub fn get(&self, index: usize) -> Option<T> {
        (index < self.len).then(|| self.items[self.place(index)])
    }

    #[inline(always)]
    pub fn back(&self) -> Option<T> {
        if self.len == 0 { None } else { Some(self.items[self.place(self.len - 1)]) }
    }

    #[inline(always)]
    pub fn push_back(&mut self, item: T) {
        if self.len == self.items.len() {
            self.grow(item);
        }
        let place = self.place(self.len);
        self.items[place] = item;
        self.len += 1;
    }

    #[inline(always)]
    pub fn pop_front(&mut self) -> Option<T> {
        if self.len == 0 {
            return None;
        }
        let item = self.items[self.head];
        self.head = self.place(1);
        self.len -= 1;
        Some(item)
    }

    pub fn push_front(&mut self, item: T) {
        self.insert(0, item);
    }

    /// Inserts an item before that of this index.
    #[cold]
    pub fn insert(&mut self, index: usize, item: T) {
        assert!(index <= self.len, "{index} is within the queue or at its end");
        self.push_back(item);
        for at in (index + 1..self.len).rev() {
            let (to, from) = (self.place(at), self.place(at - 1));
            self.items[to] = self.items[from];
        }
        let place = self.place(index);
        self.items[place] = item;
    }

    /// Removes the item of this index.
    #[cold]
    pub fn remove(&mut self, index: usize) {
        assert!(index < self.len, "{index} is within the queue");
        for at in index + 1..self.len {
            let (to, from) = (self.place(at - 1), self.place(at));
            self.items[to] = self.items[from];
        }
        self.len -= 1;
    }

    /// The items, from the first on.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = T> + '_ {
        (0..self.len).map(|index| self.items[self.place(index)])
    }

    /// Doubles the room; `item` fills it.
    #[cold]
    fn grow(&mut self, item: T) {
        self.items.rotate_left(self.head);
        self.head = 0;
        let room = (2 * self.items.len()).max(LEAST);
        self.items.resize(room, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn a_ring_is_a_queue() {
        let (mut ring, mut queue, mut random) = (Ring::new(), VecDeque::new(), 1u64);
        for number in 0..20_000u64 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let choice = random >> 33;
            match choice % 7 {
                0..3 => {
                    ring.push_back(number);
                    queue.push_back(number);
                }
                3 => {
                    ring.push_front(number);
                    queue.push_front(number);
                }
                4 if !queue.is_empty() => {
                    ring.remove(choice as usize % queue.len());
                    queue.remove(choice as usize % queue.len());
                }
                5 => {
                    let place = choice as usize % (queue.len() + 1);
                    ring.insert(place, number);
                    queue.insert(place, number);
                }
                _ => assert_eq!(ring.pop_front(), queue.pop_front()),
            }
            assert_eq!((ring.front(), ring.back()), (queue.front().copied(), queue.back().copied()));
            assert_eq!(ring.len(), queue.len());
        }
        assert!(ring.iter().eq(queue.iter().copied()));
        assert!(ring.iter().rev().eq(queue.iter().rev().copied()));
    }
}
