//! The inodes in memory, and loading them.
//!
//! Which leave memory is decided by [`InodeTable`]. Directories whose index is in use stay: rebuilding an index reads all
//! blocks of its directory. Indexes have a limit of their own.

use crate::fs::nodes::inodes::{InMemory, InodeTable};
use crate::fs::sfs::SfsError;
use crate::fs::sfs::files::Files;
use crate::fs::sfs::files::attributes::{FileKind, InodeNumber};
use crate::fs::sfs::files::directory::Index;
use crate::fs::sfs::files::dirty_blocks::Slot;
use crate::fs::sfs::files::inode::Inode;
use crate::fs::sfs::media::format::INODES;
use crate::fs::sfs::media::format::{DatEntry, NO_GROUP};
use crate::fs::sfs::media::invariants;
use crate::fs::sfs::placement::{BlockView, History, Tick};
use crate::task::Task;
use rustc_hash::FxHashSet;

/// The inodes in memory.
pub(in crate::fs::sfs) struct Inodes {
    table: InodeTable<u64, Box<Inode>>,
    /// Pages of the inode file with inodes changed since the last checkpoint, which the next one must load.
    changed_pages: FxHashSet<u64>,
    /// Number of dirty inodes.
    changed: usize,
    /// Total bytes of indexes.
    indexes: usize,
    most_indexes: usize,
    evict_indexes_at: usize,
}

impl InMemory for Box<Inode> {
    fn take_used(&mut self) -> bool {
        std::mem::take(&mut self.is_used)
    }

    fn can_leave(&mut self) -> bool {
        !self.is_dirty && self.links > 0
    }

    fn is_costly(&self) -> bool {
        self.index.is_some()
    }
}

impl Inodes {
    /// Keeps at most `most` clean inodes, and `most_indexes` bytes of indexes.
    pub fn new(most: usize, most_indexes: usize) -> Inodes {
        Inodes {
            table: InodeTable::new(most),
            changed_pages: FxHashSet::default(),
            changed: 0,
            indexes: 0,
            most_indexes,
            evict_indexes_at: most_indexes,
        }
    }

    pub fn contains(&self, number: u64) -> bool {
        self.table.get(number).is_some()
    }

    pub fn peek(&self, number: u64) -> Option<&Inode> {
        self.table.get(number).map(|inode| &**inode)
    }

    /// Looks up an inode and marks it as recently used.
    pub fn get(&mut self, number: u64) -> Option<&Inode> {
        let inode = self.table.get_mut(number)?;
        inode.is_used = true;
        Some(inode)
    }

    /// Looks up an inode and marks it as dirty.
    pub fn get_mut(&mut self, number: u64) -> Option<&mut Inode> {
        let inode = self.table.get_mut(number)?;
        inode.is_used = true;
        if !std::mem::replace(&mut inode.is_dirty, true) {
            self.changed += 1;
            self.changed_pages.insert(number / INODES);
        }
        Some(inode)
    }

    /// Inserts an inode that was read or created.
    pub fn insert(&mut self, inode: Inode) {
        let indexes = &mut self.indexes;
        self.table.evict(self.changed, |inode| *indexes -= inode.index.as_ref().map_or(0, |index| index.bytes()));
        self.remove(inode.number);
        if inode.is_dirty {
            self.changed += 1;
            self.changed_pages.insert(inode.number / INODES);
        }
        self.table.insert(inode.number, Box::new(inode));
    }

    pub fn remove(&mut self, number: u64) {
        if let Some(inode) = self.table.remove(number) {
            self.changed -= usize::from(inode.is_dirty);
            self.indexes -= inode.index.map_or(0, |index| index.bytes());
        }
    }

    /// Evicts all inodes except those that satisfy the condition.
    pub fn retain(&mut self, is_kept: impl Fn(&Inode) -> bool) {
        let gone: Vec<u64> = self.table.iter().filter(|inode| !is_kept(inode)).map(|inode| inode.number).collect();
        gone.into_iter().for_each(|number| self.remove(number));
    }

    pub fn iter(&self) -> impl Iterator<Item = &Inode> {
        self.table.iter().map(|inode| &**inode)
    }

    /// Number of dirty inodes.
    pub fn changed(&self) -> usize {
        self.changed
    }

    /// Number of inode-file pages that a checkpoint loads.
    pub fn changed_pages(&self) -> usize {
        self.changed_pages.len()
    }

    /// Inodes that a checkpoint writes, in order: dirty ones, and those without a name, as their list is rebuilt.
    pub fn take_changed(&mut self) -> Vec<u64> {
        let mut changed = Vec::new();
        for inode in self.table.iter_mut() {
            if std::mem::take(&mut inode.is_dirty) || inode.links == 0 {
                changed.push(inode.number);
            }
        }
        changed.sort_unstable();
        self.changed = 0;
        self.changed_pages = FxHashSet::default();
        changed
    }

    /// Marks all inodes as clean, after a durable checkpoint.
    pub fn checkpoint(&mut self) {
        for inode in self.table.iter_mut() {
            inode.safe_size = inode.size;
            inode.is_unlogged = false;
        }
        // All are clean now: there may be too many.
        self.table.evict_soon();
    }

    /// Takes the index of a directory, to change it together with the directory's blocks.
    pub fn take_index(&mut self, directory: u64) -> Option<Box<Index>> {
        let index = self.table.get_mut(directory)?.index.take()?;
        self.indexes -= index.bytes();
        Some(index)
    }

    /// Puts back an index, or a new one.
    pub fn put_index(&mut self, directory: u64, index: Box<Index>) {
        self.indexes += index.bytes();
        self.table.get_mut(directory).expect("the directory of a taken index is in memory").index = Some(index);
        if self.indexes > self.evict_indexes_at {
            self.evict_indexes(directory);
        }
    }

    /// Total bytes of indexes.
    pub fn index_bytes(&self) -> usize {
        self.indexes
    }

    /// Number of clean inodes in memory.
    pub fn unchanged(&self) -> usize {
        debug_assert!(self.changed <= self.table.len(), "all dirty inodes are in memory");
        self.table.len() - self.changed
    }

    /// Evicts indexes, except that of one directory.
    fn evict_indexes(&mut self, directory: u64) {
        for only_unused in [true, false] {
            if self.indexes > self.most_indexes / 2 {
                for inode in self.table.iter_mut().filter(|inode| inode.number != directory && inode.index.is_some()) {
                    if !(only_unused && std::mem::take(&mut inode.is_used)) {
                        self.indexes -= inode.index.take().map_or(0, |index| index.bytes());
                    }
                }
            }
        }
        self.evict_indexes_at = self.most_indexes.max(self.indexes + self.most_indexes / 4);
    }

    /// Takes a reference to an inode.
    pub fn hold(&mut self, number: u64) {
        self.table.hold(number);
    }

    /// Drops `times` references to an inode. True if none is left.
    pub fn drop_references(&mut self, number: u64, times: u64) -> bool {
        self.table.let_go(number, times)
    }

    /// True if an inode has references.
    pub fn is_held(&self, number: u64) -> bool {
        self.table.is_held(number)
    }
}

impl Files {
    /// The size of a regular file; fails for other kinds.
    pub(in crate::fs::sfs) fn regular(&mut self, task: &Task<'_>, inode: u64) -> Result<u64, SfsError> {
        let file = self.inode(task, inode)?;
        match file.kind {
            FileKind::Regular => Ok(file.size),
            FileKind::Directory => Err(SfsError::IsDirectory),
            _ => Err(SfsError::Invalid("only a regular file has data")),
        }
    }

    /// Counts a write in the history of a block, by its entry, and of its file.
    pub(in crate::fs::sfs) fn count_write(
        &mut self,
        task: &Task<'_>,
        entry: &mut DatEntry,
        inode: u64,
        at: Tick,
    ) -> Result<(), SfsError> {
        entry.writes += 1;
        entry.modified = at.0.into();
        let file = self.inode_mut(task, inode)?;
        file.history.writes += 1;
        file.history.modified = at;
        Ok(())
    }

    /// A dirty block for the grouping, with its entry in the DAT.
    pub(in crate::fs::sfs) fn block_view(
        &mut self,
        task: &Task<'_>,
        waits: &Slot,
        entry: &DatEntry,
    ) -> Result<BlockView, SfsError> {
        let file = self.inode(task, waits.inode)?;
        Ok(BlockView {
            block: History { writes: entry.writes.get(), modified: Tick(entry.modified.get()) },
            file: file.history,
            group: (entry.group != NO_GROUP).then_some(entry.group),
            cleaned_from: waits.is_cleaned().then_some(waits.cleaned_from),
            inode: waits.inode,
            place: waits.place,
            hint: waits.hint.or(file.hint),
            memory: entry.memory,
        })
    }

    /// An inode in use.
    pub(in crate::fs::sfs) fn inode(&mut self, task: &Task<'_>, number: u64) -> Result<&Inode, SfsError> {
        self.load_inode(task, number)?;
        Ok(self.inodes.get(number).expect("the inode was loaded"))
    }

    /// True if an inode is in use. One that cannot be read is not free: its records must not be left out in silence.
    pub(in crate::fs::sfs) fn is_inode(&mut self, task: &Task<'_>, number: u64) -> Result<bool, SfsError> {
        match self.inode(task, number) {
            Ok(_) => Ok(true),
            Err(SfsError::NotFound) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Counts a block of a file that its map cannot name, as a map block is damaged. If that one was rebuilt from block
    /// records, the place would read as zeros; a file that has a block more than is found has its map given up.
    pub(in crate::fs::sfs) fn miss_a_block(&mut self, task: &Task<'_>, inode: u64) -> Result<(), SfsError> {
        self.inode_mut(task, inode)?.blocks += 1;
        Ok(())
    }

    /// An inode in use, marked as dirty.
    pub(in crate::fs::sfs) fn inode_mut(&mut self, task: &Task<'_>, number: u64) -> Result<&mut Inode, SfsError> {
        self.load_inode(task, number)?;
        self.is_changed = true;
        Ok(self.inodes.get_mut(number).expect("the inode was loaded"))
    }

    pub(in crate::fs::sfs) fn load_inode(&mut self, task: &Task<'_>, number: u64) -> Result<(), SfsError> {
        if !self.inodes.contains(number) {
            if self.metadata.inode_file.is_freed(number) {
                // Its page holds its old image until the next checkpoint.
                return Err(SfsError::NotFound);
            }
            let image = self.metadata.inode_file.get(task, number)?;
            if image.number.get() == 0 {
                return Err(SfsError::NotFound);
            }
            let holds = invariants::inode(&image, number);
            holds.map_err(|why| SfsError::Damaged { what: format!("inode {number}"), why })?;
            let inode = Inode::of_image(&image).expect("the image was checked");
            self.inodes.insert(inode);
        }
        Ok(())
    }

    /// True if only references keep this inode.
    pub(in crate::fs::sfs) fn is_orphan(&self, inode: InodeNumber) -> bool {
        self.orphans.contains(&inode.0)
    }
}
