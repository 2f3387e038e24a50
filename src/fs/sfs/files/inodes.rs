//! The inodes in memory, how often each inode is held, and the calls that load, hold and free them.
//!
//! Unchanged ones can be read again, and are let go when there are too many: those that were not used since the last
//! sweep, and if that is not enough all of them (second chance) but the directories whose indexes are in use: to make an
//! index again, all blocks of its directory are read. Indexes have a bound of their own. Who holds an inode is counted
//! apart, in a few bytes each: the kernel may know millions.

use crate::fs::sfs::files::attributes::InodeNumber;
use crate::fs::sfs::files::directory::Index;
use crate::fs::sfs::files::inode::Inode;
use crate::fs::sfs::media::format::INODES;
use crate::fs::sfs::media::invariants;
use crate::fs::sfs::{Sfs, SfsError};
use crate::task::Task;
use rustc_hash::{FxHashMap, FxHashSet};

/// The inodes in memory.
pub(in crate::fs::sfs) struct Inodes {
    all: FxHashMap<u64, Box<Inode>>,
    /// Pages of the inode file in which inodes changed since the last checkpoint, which must load them.
    changed_pages: FxHashSet<u64>,
    /// Changed ones.
    changed: usize,
    /// Inodes that are not changed and are kept.
    most: usize,
    /// There is a sweep when there are so many.
    sweep_at: usize,
    /// Bytes of indexes.
    indexes: usize,
    most_indexes: usize,
    sweep_indexes_at: usize,
    held: Held,
}

impl Inodes {
    /// Keeps at most `most` that are not changed, and so many bytes of indexes.
    pub fn new(most: usize, most_indexes: usize) -> Inodes {
        Inodes {
            all: FxHashMap::default(),
            changed_pages: FxHashSet::default(),
            changed: 0,
            most,
            sweep_at: most,
            indexes: 0,
            most_indexes,
            sweep_indexes_at: most_indexes,
            held: Held::default(),
        }
    }

    pub fn contains(&self, number: u64) -> bool {
        self.all.contains_key(&number)
    }

    pub fn peek(&self, number: u64) -> Option<&Inode> {
        self.all.get(&number).map(|inode| &**inode)
    }

    /// One that is used.
    pub fn get(&mut self, number: u64) -> Option<&Inode> {
        let inode = self.all.get_mut(&number)?;
        inode.is_used = true;
        Some(inode)
    }

    /// One that will be changed, so that the next checkpoint must write it.
    pub fn get_mut(&mut self, number: u64) -> Option<&mut Inode> {
        let inode = self.all.get_mut(&number)?;
        inode.is_used = true;
        if !std::mem::replace(&mut inode.is_dirty, true) {
            self.changed += 1;
            self.changed_pages.insert(number / INODES);
        }
        Some(inode)
    }

    /// Takes one that was read or made.
    pub fn insert(&mut self, inode: Inode) {
        self.sweep();
        self.remove(inode.number);
        if inode.is_dirty {
            self.changed += 1;
            self.changed_pages.insert(inode.number / INODES);
        }
        self.all.insert(inode.number, Box::new(inode));
    }

    pub fn remove(&mut self, number: u64) {
        if let Some(inode) = self.all.remove(&number) {
            self.changed -= usize::from(inode.is_dirty);
            self.indexes -= inode.index.map_or(0, |index| index.bytes());
        }
    }

    /// All but those of which this is so are forgotten.
    pub fn retain(&mut self, is_kept: impl Fn(&Inode) -> bool) {
        let gone: Vec<u64> = self.all.values().filter(|inode| !is_kept(inode)).map(|inode| inode.number).collect();
        gone.into_iter().for_each(|number| self.remove(number));
    }

    pub fn iter(&self) -> impl Iterator<Item = &Inode> {
        self.all.values().map(|inode| &**inode)
    }

    /// Changed ones.
    pub fn changed(&self) -> usize {
        self.changed
    }

    /// Pages of the inode file that a checkpoint has to load.
    pub fn changed_pages(&self) -> usize {
        self.changed_pages.len()
    }

    /// Those that a checkpoint must write, in order: changed ones, and those without a name, as they are chained anew.
    pub fn take_changed(&mut self) -> Vec<u64> {
        let mut changed = Vec::new();
        for inode in self.all.values_mut() {
            if std::mem::take(&mut inode.is_dirty) || inode.links == 0 {
                changed.push(inode.number);
            }
        }
        changed.sort_unstable();
        self.changed = 0;
        self.changed_pages = FxHashSet::default();
        changed
    }

    /// A checkpoint is durable: all that was done to them is.
    pub fn checkpoint(&mut self) {
        for inode in self.all.values_mut() {
            inode.safe_size = inode.size;
            inode.is_unlogged = false;
        }
        // All are unchanged now: there may be too many.
        self.sweep_at = 0;
    }

    /// Takes the index of a directory out, to change it beside the directory's blocks.
    pub fn take_index(&mut self, directory: u64) -> Option<Box<Index>> {
        let index = self.all.get_mut(&directory)?.index.take()?;
        self.indexes -= index.bytes();
        Some(index)
    }

    /// Puts it back, or a new one.
    pub fn put_index(&mut self, directory: u64, index: Box<Index>) {
        self.indexes += index.bytes();
        self.all.get_mut(&directory).expect("a directory whose index is taken out is in memory").index = Some(index);
        if self.indexes > self.sweep_indexes_at {
            self.sweep_indexes(directory);
        }
    }

    /// Bytes of indexes.
    pub fn index_bytes(&self) -> usize {
        self.indexes
    }

    /// Inodes in memory that are not changed.
    pub fn unchanged(&self) -> usize {
        debug_assert!(self.changed <= self.all.len(), "a changed inode is in memory");
        self.all.len() - self.changed
    }

    /// Lets unchanged ones go if there are too many.
    fn sweep(&mut self) {
        if self.all.len() < self.sweep_at {
            return;
        }
        if self.unchanged() >= self.most {
            for only_unused in [true, false] {
                if self.unchanged() > self.most / 2 {
                    let indexes = &mut self.indexes;
                    self.all.retain(|_, inode| {
                        let is_in_use = match only_unused {
                            true => std::mem::take(&mut inode.is_used),
                            false => inode.index.is_some(),
                        };
                        let is_kept = inode.is_dirty || inode.links == 0 || is_in_use;
                        if !is_kept {
                            *indexes -= inode.index.as_ref().map_or(0, |index| index.bytes());
                        }
                        is_kept
                    });
                }
            }
        }
        // Again when as many have come as were let go at the least.
        self.sweep_at = self.all.len() + (self.most / 2).max(1);
    }

    /// Lets indexes go, but that of one directory.
    fn sweep_indexes(&mut self, directory: u64) {
        for only_unused in [true, false] {
            if self.indexes > self.most_indexes / 2 {
                for inode in self.all.values_mut().filter(|inode| inode.number != directory && inode.index.is_some()) {
                    if !(only_unused && std::mem::take(&mut inode.is_used)) {
                        self.indexes -= inode.index.take().map_or(0, |index| index.bytes());
                    }
                }
            }
        }
        self.sweep_indexes_at = self.most_indexes.max(self.indexes + self.most_indexes / 4);
    }

    /// Holds on to an inode.
    pub fn hold(&mut self, number: u64) {
        self.held.add(number);
    }

    /// Lets an inode go, `times` times. True if nobody holds it any more.
    pub fn let_go(&mut self, number: u64, times: u64) -> bool {
        self.held.take(number, times)
    }

    /// True if someone holds an inode.
    pub fn is_held(&self, number: u64) -> bool {
        self.held.count(number) > 0
    }
}

/// Inodes whose counts are kept together.
const TOGETHER: usize = 32;

/// How often inodes are held: counts of neighbours together, as long as one of them is.
#[derive(Default)]
struct Held {
    counts: FxHashMap<u64, Box<[u64; TOGETHER]>>,
}

impl Held {
    fn count(&self, number: u64) -> u64 {
        self.counts.get(&(number / TOGETHER as u64)).map_or(0, |counts| counts[number as usize % TOGETHER])
    }

    fn add(&mut self, number: u64) {
        let counts = self.counts.entry(number / TOGETHER as u64).or_default();
        counts[number as usize % TOGETHER] += 1;
    }

    /// True if none is left.
    fn take(&mut self, number: u64, times: u64) -> bool {
        let page = number / TOGETHER as u64;
        let Some(counts) = self.counts.get_mut(&page) else { return true };
        let count = &mut counts[number as usize % TOGETHER];
        *count = count.saturating_sub(times);
        let is_none = *count == 0;
        if is_none && counts.iter().all(|count| *count == 0) {
            self.counts.remove(&page);
        }
        is_none
    }
}

impl Sfs {
    /// An inode that is in use.
    pub(in crate::fs::sfs) fn inode(&mut self, task: &Task<'_>, number: u64) -> Result<&Inode, SfsError> {
        self.load_inode(task, number)?;
        Ok(self.inodes.get(number).expect("it was loaded"))
    }

    /// One that will be changed, so that the next checkpoint must write it.
    pub(in crate::fs::sfs) fn inode_mut(&mut self, task: &Task<'_>, number: u64) -> Result<&mut Inode, SfsError> {
        self.load_inode(task, number)?;
        self.is_changed = true;
        Ok(self.inodes.get_mut(number).expect("it was loaded"))
    }

    pub(in crate::fs::sfs) fn load_inode(&mut self, task: &Task<'_>, number: u64) -> Result<(), SfsError> {
        if !self.inodes.contains(number) {
            if self.metadata.inode_file.is_freed(number) {
                // Its page says what it was, up to the next checkpoint.
                return Err(SfsError::NotFound);
            }
            let image = self.metadata.inode_file.get(task, number)?;
            if image.number.get() == 0 {
                return Err(SfsError::NotFound);
            }
            let holds = invariants::inode(&image, number);
            holds.map_err(|why| SfsError::Damaged { what: format!("inode {number}"), why })?;
            let inode = Inode::of_image(&image).expect("its number and kind are those of an inode");
            self.inodes.insert(inode);
        }
        Ok(())
    }

    /// Holds on to an inode: it stays while anyone does, even without a name.
    pub fn retain(&mut self, task: &Task<'_>, inode: InodeNumber) -> Result<(), SfsError> {
        self.load_inode(task, inode.0)?;
        self.inodes.hold(inode.0);
        Ok(())
    }

    /// Lets an inode go, `times` times. Without a name, and with nobody holding it, it is freed.
    pub fn release(&mut self, task: &Task<'_>, inode: InodeNumber, times: u64) -> Result<(), SfsError> {
        if self.inodes.let_go(inode.0, times) && self.orphans.contains(&inode.0) && self.faults.read_only.is_none() {
            self.free_inode(task, inode.0)?;
        }
        Ok(())
    }

    /// True if nothing but being held keeps this inode.
    pub(in crate::fs::sfs) fn is_orphan(&self, inode: InodeNumber) -> bool {
        self.orphans.contains(&inode.0)
    }

    /// Frees an inode and all its blocks. If that fails, one without a name is an orphan as before.
    pub(in crate::fs::sfs) fn free_inode(&mut self, task: &Task<'_>, number: u64) -> Result<(), SfsError> {
        self.unmap(task, number, 0..u64::MAX)?;
        self.free_attributes(task, number)?;
        self.orphans.remove(&number);
        self.inodes.remove(number);
        self.metadata.inode_file.free(number);
        self.log.records.touch(number);
        self.is_changed = true;
        Ok(())
    }
}
