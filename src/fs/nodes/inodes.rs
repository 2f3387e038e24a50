//! The inodes in memory, and the references to inodes.
//!
//! A clean inode can be read again. When there are too many, those leave that were not used since the last eviction (second
//! chance), or all if that is not enough, except those that are costly to read again. References are counted apart, in a few
//! bytes each: a kernel may know millions of inodes.

use super::references::ReferenceCounts;
use rustc_hash::FxHashMap;
use std::hash::Hash;

/// An inode in memory.
pub(in crate::fs) trait InMemory {
    /// Takes the mark that it was used since the last eviction.
    fn take_used(&mut self) -> bool;

    /// True if it can be read again as it is, and only the table has it.
    fn can_leave(&mut self) -> bool;

    /// True if it only leaves when it was not used, however many there are.
    fn is_costly(&self) -> bool {
        false
    }
}

/// The inodes in memory, by their numbers.
pub(in crate::fs) struct InodeTable<K, N> {
    all: FxHashMap<K, N>,
    held: ReferenceCounts,
    /// The most clean ones.
    most: usize,
    /// The number of inodes that begins an eviction.
    evict_at: usize,
}

impl<K: Copy + Eq + Hash + Into<u64>, N: InMemory> InodeTable<K, N> {
    /// Keeps at most so many clean inodes (`usize::MAX`: all), and those that cannot leave.
    pub fn new(most: usize) -> InodeTable<K, N> {
        InodeTable { all: FxHashMap::default(), held: ReferenceCounts::default(), most, evict_at: most }
    }

    pub fn get(&self, number: K) -> Option<&N> {
        self.all.get(&number)
    }

    pub fn get_mut(&mut self, number: K) -> Option<&mut N> {
        self.all.get_mut(&number)
    }

    /// Adds an inode. [`InodeTable::evict`] comes before it.
    pub fn insert(&mut self, number: K, inode: N) {
        self.all.insert(number, inode);
    }

    pub fn remove(&mut self, number: K) -> Option<N> {
        self.all.remove(&number)
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &N> {
        self.all.values()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut N> {
        self.all.values_mut()
    }

    /// More inodes may be clean than at the last eviction.
    pub fn evict_soon(&mut self) {
        self.evict_at = 0;
    }

    /// Lets clean inodes leave if there are too many, of which `dirty` are known to be dirty. `leaves` gets each of them.
    pub fn evict(&mut self, dirty: usize, mut leaves: impl FnMut(&mut N)) {
        if self.all.len() < self.evict_at {
            return;
        }
        let clean = |all: &FxHashMap<K, N>| all.len() - dirty;
        let mut least_gap = 1;
        if clean(&self.all) >= self.most {
            for only_unused in [true, false] {
                if clean(&self.all) > self.most / 2 {
                    self.all.retain(|_, inode| {
                        let is_in_use = if only_unused { inode.take_used() } else { inode.is_costly() };
                        let stays = is_in_use || !inode.can_leave();
                        if !stays {
                            leaves(inode);
                        }
                        stays
                    });
                }
            }
            // If hardly any could leave, the next eviction would be as long.
            least_gap = (self.most / 2).max(1);
        }
        let gap = self.most.saturating_sub(clean(&self.all)).max(least_gap);
        self.evict_at = self.all.len().saturating_add(gap);
    }

    /// Takes a reference to an inode, which then exists even without a name.
    pub fn hold(&mut self, number: K) {
        self.held.add(number.into(), 1);
    }

    /// Drops `times` references to an inode. True if none is left.
    pub fn let_go(&mut self, number: K, times: u64) -> bool {
        self.held.take(number.into(), times)
    }

    /// True if an inode has references.
    pub fn is_held(&self, number: K) -> bool {
        self.held.count(number.into()) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 64;

    struct Inode {
        is_used: bool,
        is_dirty: bool,
        is_costly: bool,
    }

    impl InMemory for Inode {
        fn take_used(&mut self) -> bool {
            std::mem::take(&mut self.is_used)
        }

        fn can_leave(&mut self) -> bool {
            !self.is_dirty
        }

        fn is_costly(&self) -> bool {
            self.is_costly
        }
    }

    fn add(table: &mut InodeTable<u64, Inode>, number: u64, dirty: usize) -> usize {
        let mut left = 0;
        table.evict(dirty, |_| left += 1);
        table.insert(number, Inode { is_used: false, is_dirty: false, is_costly: false });
        left
    }

    #[test]
    fn all_that_leave_are_told_and_only_clean_ones_do() {
        let mut table = InodeTable::new(MOST);
        let (mut left, mut dirty) = (0, 0);
        for number in 0..100 * MOST as u64 {
            left += add(&mut table, number, dirty);
            if number.is_multiple_of(10) {
                table.get_mut(number).unwrap().is_dirty = true;
                dirty += 1;
            }
            assert_eq!(table.len() + left, number as usize + 1);
            assert!(table.len() - dirty <= MOST + 1, "{} are clean", table.len() - dirty);
        }
        assert!((0..100 * MOST as u64).step_by(10).all(|number| table.get(number).is_some()));
    }

    #[test]
    fn without_a_bound_none_leaves() {
        let mut table = InodeTable::new(usize::MAX);
        for number in 0..100 {
            table.evict_soon();
            assert_eq!(add(&mut table, number, number as usize / 2), 0);
        }
    }

    #[test]
    fn the_used_and_the_costly_ones_stay_longer() {
        let mut table = InodeTable::new(MOST);
        add(&mut table, 0, 0);
        table.get_mut(0).unwrap().is_costly = true;
        for number in 1..1000 {
            table.get_mut(0).unwrap().is_used = true;
            add(&mut table, number, 0);
            table.get_mut(number).unwrap().is_used = true;
            assert!(table.get(0).is_some());
        }
        for number in 1000..2000 {
            add(&mut table, number, 0);
        }
        assert!(table.get(0).is_none(), "it was not used for long");
    }
}
