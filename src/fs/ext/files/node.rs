//! Inodes in memory, each behind its gate.
//!
//! One that is in the table on the device as it is in memory can be read again. Which leave is decided by [`InodeTable`].

use crate::fs::ext::blocks::Bytes;
use crate::fs::ext::format::inode::{Inode, Stamp};
use crate::fs::ext::format::shape::ROOT;
use crate::fs::ext::journal::TransactionId;
use crate::fs::nodes::inodes::{InMemory, InodeTable};
use crate::fs::volume::{Attributes, FileKind, InodeNumber, Times, VolumeError};
use crate::task::{Gate, SharedGate};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of an inode in memory: the node, the inode, their entries in tables, a name, and the first pages that wait.
pub const NODE_BYTES: u64 = size_of::<Node>() as u64 + 256 + 11 * size_of::<(u64, Page)>() as u64 + 192;

/// The inode of a volume's number: the root has 1 there, and 2 here.
pub fn inode_of(number: InodeNumber) -> Result<u32, VolumeError> {
    match number {
        InodeNumber::ROOT => Ok(ROOT),
        InodeNumber(number) if number == u64::from(ROOT) => Err(VolumeError::NotFound),
        InodeNumber(number) => u32::try_from(number).map_err(|_| VolumeError::NotFound),
    }
}

/// The volume's number of an inode.
pub fn number_of(inode: u32) -> InodeNumber {
    if inode == ROOT { InodeNumber::ROOT } else { InodeNumber(inode.into()) }
}

/// A block of a file that waits to be written.
#[derive(Debug)]
pub struct Page {
    /// Shared with the page cache from when they are written on.
    pub bytes: Bytes,
    /// It has no place yet, and one is promised to it.
    pub is_promised: bool,
}

/// Pages of a file that are written to a run of blocks, without the file's gate.
#[derive(Debug)]
pub struct Flight {
    /// The block of the file that the first page belongs to.
    pub first: u64,
    pub pages: Vec<Bytes>,
    /// The thread that asks the device is inside. True if the pages are written.
    pub is_written: Gate<bool>,
}

impl Flight {
    /// The blocks of the file.
    pub fn blocks(&self) -> Range<u64> {
        self.first..self.first + self.pages.len() as u64
    }
}

/// The state of a file's readahead. Readers share it: a race costs a readahead and nothing else.
#[derive(Debug, Default)]
pub struct Reads {
    /// The block behind the last read.
    next: AtomicU64,
    /// Blocks that are read ahead of the next read.
    window: AtomicU64,
}

impl Reads {
    /// Notes a read of these blocks, and says how many to read behind them: none if they do not follow the last read,
    /// and otherwise twice as many as last time, up to `most`.
    pub fn ahead(&self, blocks: Range<u64>, most: u64) -> u64 {
        // A read of less than a block may be in the block in which the last one ended.
        let next = self.next.swap(blocks.end, Ordering::Relaxed);
        let follows = blocks.start == next || blocks.start + 1 == next;
        let window =
            if follows { (2 * self.window.load(Ordering::Relaxed)).clamp(4, most.max(4)).min(most) } else { 0 };
        self.window.store(window, Ordering::Relaxed);
        window
    }
}

/// A file, as it is behind its gate.
#[derive(Debug)]
pub struct File {
    pub number: u32,
    pub inode: Inode,
    /// Blocks that wait to be written, by their place in the file.
    pub pages: BTreeMap<u64, Page>,
    /// The last transaction that has changed its inode or its map.
    pub changed_in: Option<TransactionId>,
    /// The same, but for changes of times alone.
    pub needed_in: Option<TransactionId>,
    /// The size that its inode has in the table: bytes behind it wait, and are none after a crash.
    pub stored_size: u64,
    /// The inode has changed, and the table does not know it.
    pub is_unstored: bool,
    /// It is in the list of orphans.
    pub is_orphan: bool,
    /// Reads in sequence are recognised by it.
    pub reads: Reads,
    /// Where the last search for a free block ended.
    pub goal: u64,
    /// The block from which the next piece of dirty pages is written out, unless none is behind it.
    pub next_out: u64,
    /// Pages that a thread writes out without the file's gate.
    pub flight: Option<Arc<Flight>>,
    /// It is freed: the inode may be another file's soon.
    pub is_freed: bool,
}

impl File {
    pub fn new(number: u32, inode: Inode) -> File {
        File {
            number,
            stored_size: inode.size(),
            inode,
            is_unstored: false,
            is_orphan: false,
            pages: BTreeMap::new(),
            changed_in: None,
            needed_in: None,
            reads: Reads::default(),
            goal: 0,
            next_out: 0,
            flight: None,
            is_freed: false,
        }
    }

    /// Its kind.
    ///
    /// # Panics
    ///
    /// If its mode has none: that was looked at when it was read.
    pub fn kind(&self) -> FileKind {
        self.inode.kind().expect("an inode without a kind is not read")
    }

    pub fn check_directory(&self) -> Result<(), VolumeError> {
        if self.kind() == FileKind::Directory { Ok(()) } else { Err(VolumeError::NotDirectory) }
    }

    /// Refuses a file that has no bytes.
    pub fn check_regular(&self) -> Result<(), VolumeError> {
        match self.kind() {
            FileKind::Regular => Ok(()),
            FileKind::Directory => Err(VolumeError::IsDirectory),
            _ => Err(VolumeError::Invalid("only a regular file has bytes")),
        }
    }

    pub fn times(&self) -> Times {
        let [accessed, modified, changed, created] =
            [Stamp::Accessed, Stamp::Modified, Stamp::Changed, Stamp::Created].map(|stamp| self.inode.stamp(stamp));
        Times { accessed, modified, changed, created }
    }

    /// Its attributes, on a volume with blocks of so many bytes.
    pub fn attributes(&self, block_bytes: usize) -> Attributes {
        let kind = self.kind();
        let promised = self.pages.values().filter(|page| page.is_promised).count() * block_bytes / 512;
        Attributes {
            inode: number_of(self.number),
            generation: self.inode.generation(),
            kind,
            permissions: self.inode.permissions(),
            links: u32::from(self.inode.links()),
            user: self.inode.user(),
            group: self.inode.group(),
            device: match kind {
                FileKind::CharacterDevice | FileKind::BlockDevice => self.inode.device(),
                _ => 0,
            },
            size: self.inode.size(),
            blocks: (self.inode.sectors(block_bytes) + promised as u64).div_ceil(8),
            times: self.times(),
        }
    }
}

/// An inode in memory.
#[derive(Debug)]
pub struct Node {
    pub number: u32,
    pub gate: SharedGate<File>,
    /// It is in the list of files that wait.
    waits: AtomicBool,
    /// It was used since the last eviction.
    is_used: AtomicBool,
}

impl Node {
    /// It is in the list of files that wait, or not.
    pub fn set_waits(&self, waits: bool) {
        self.waits.store(waits, Ordering::SeqCst);
    }

    /// True if it is in the table as it is here.
    fn is_clean(&mut self) -> bool {
        let waits = *self.waits.get_mut();
        let file = self.gate.get_mut();
        // One that is being cut off knows itself that it is an orphan.
        let is_cut_off = file.is_orphan && file.inode.links() > 0;
        !waits && !file.is_unstored && file.pages.is_empty() && !is_cut_off
    }
}

impl InMemory for Arc<Node> {
    fn take_used(&mut self) -> bool {
        self.is_used.swap(false, Ordering::Relaxed)
    }

    fn can_leave(&mut self) -> bool {
        // A holder besides the table may be about to change it.
        Arc::get_mut(self).is_some_and(Node::is_clean)
    }
}

/// All inodes in memory.
pub struct Nodes {
    table: Mutex<Table>,
}

struct Table {
    nodes: InodeTable<u32, Arc<Node>>,
    /// Inodes that have left: a reader that read one before reads again.
    left: u64,
    /// The last transaction that one of them was changed in.
    changed_in: Option<TransactionId>,
}

/// Shows which inodes had left when a read began.
#[derive(Clone, Copy)]
pub struct Before(u64);

impl Nodes {
    /// Keeps at most so many clean inodes.
    pub fn new(most: usize) -> Nodes {
        let table = Table { nodes: InodeTable::new(most), left: 0, changed_in: None };
        Nodes { table: Mutex::new(table) }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // Nothing within can panic and leave a half behind.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An inode that is there, or the state to insert one with.
    pub fn get(&self, number: u32) -> Result<Arc<Node>, Before> {
        let table = self.table();
        let node = table.nodes.get(number).ok_or(Before(table.left))?;
        node.is_used.store(true, Ordering::Relaxed);
        Ok(Arc::clone(node))
    }

    /// Keeps an inode that was read, unless somebody else has; `None` if it may be old.
    pub fn insert(&self, mut file: File, before: Before) -> Option<Arc<Node>> {
        let mut table = self.table();
        if let Some(node) = table.nodes.get(file.number) {
            return Some(Arc::clone(node));
        }
        if table.left != before.0 {
            return None;
        }
        // It may have been changed by then, and a sync has to wait for that.
        (file.changed_in, file.needed_in) = (table.changed_in, table.changed_in);
        Some(table.add(file))
    }

    /// Adds the inode of a new file.
    pub fn add(&self, file: File) -> Arc<Node> {
        self.table().add(file)
    }

    /// Takes out an inode that was freed.
    pub fn remove(&self, number: u32) {
        let mut table = self.table();
        table.nodes.remove(number);
        table.left += 1;
    }

    /// The number of inodes in memory.
    pub fn len(&self) -> usize {
        self.table().nodes.len()
    }

    /// Takes a reference to an inode, which then exists even without a name. The task is behind its gate.
    pub fn hold(&self, number: u32) {
        self.table().nodes.hold(number);
    }

    /// Drops `times` references to an inode. True if none is left.
    pub fn let_go(&self, number: u32, times: u64) -> bool {
        self.table().nodes.let_go(number, times)
    }

    pub fn is_held(&self, number: u32) -> bool {
        self.table().nodes.is_held(number)
    }
}

impl Table {
    fn add(&mut self, file: File) -> Arc<Node> {
        let (changed_in, left) = (&mut self.changed_in, &mut self.left);
        self.nodes.evict(0, |node| {
            *left += 1;
            let node = Arc::get_mut(node).expect("only the table has what leaves it");
            let changed = node.gate.get_mut().changed_in;
            if changed.is_some_and(|id| changed_in.is_none_or(|last| id.is_after(last))) {
                *changed_in = changed;
            }
        });
        let number = file.number;
        let gate = SharedGate::new("inode", file);
        let node = Arc::new(Node { number, gate, waits: AtomicBool::new(false), is_used: AtomicBool::new(false) });
        self.nodes.insert(number, Arc::clone(&node));
        node
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 64;

    fn file(number: u32) -> File {
        File::new(number, Inode::new(&[0; 256]))
    }

    /// Each inode that the kernel knew stayed in memory: a million files took 800 MiB.
    #[test]
    fn clean_inodes_leave_memory_though_they_are_held_and_the_others_stay() {
        let nodes = Nodes::new(MOST);
        let count = 100 * MOST as u32;
        let in_use = nodes.add(file(count + 1));
        for number in 1..=count {
            let node = nodes.add(file(number));
            nodes.hold(number);
            node.set_waits(number.is_multiple_of(400));
            assert!(nodes.len() <= MOST + 1 + number as usize / 400, "{} inodes", nodes.len());
        }
        assert!((400..=count).step_by(400).all(|number| nodes.get(number).is_ok()));
        assert!(nodes.get(count + 1).is_ok_and(|node| Arc::ptr_eq(&node, &in_use)));
        assert!(nodes.get(1).is_err() && nodes.is_held(1));
        assert!(nodes.let_go(1, 1) && !nodes.is_held(1));
    }

    #[test]
    fn an_inode_that_is_used_stays_longer_than_those_that_are_not() {
        let nodes = Nodes::new(MOST);
        nodes.add(file(1));
        for number in 2..1000 {
            nodes.add(file(number));
            assert!(nodes.get(1).is_ok(), "{number}");
        }
    }

    /// An inode that had left and came back knew of no change: its fsync did not wait for the commit.
    #[test]
    fn an_inode_that_has_left_is_as_new_as_the_last_transaction_when_it_comes_back() {
        let nodes = Nodes::new(MOST);
        for number in 1..=2 {
            nodes.add(File { changed_in: Some(TransactionId(number)), ..file(number) });
        }
        (3..1000).for_each(|number| drop(nodes.add(file(number))));
        let before = nodes.get(1).map(drop).expect_err("it has left");
        let node = nodes.insert(file(1), before).expect("nobody has it");
        drop(node);
        let mut table = nodes.table();
        let file = Arc::get_mut(table.nodes.get_mut(1).unwrap()).unwrap().gate.get_mut();
        assert_eq!((file.changed_in, file.needed_in), (Some(TransactionId(2)), Some(TransactionId(2))));
    }
}
