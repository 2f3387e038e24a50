//! Inodes in memory, each behind its gate.

use crate::fs::ext::blocks::Bytes;
use crate::fs::ext::format::inode::{Inode, Stamp};
use crate::fs::ext::format::shape::ROOT;
use crate::fs::ext::journal::TransactionId;
use crate::fs::volume::{Attributes, FileKind, InodeNumber, Times, VolumeError};
use crate::task::{Gate, SharedGate};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Inodes that come into memory, at the least, before the next look for those that need not stay.
const ROOM: usize = 8192;

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
    /// The block from which the next piece of what waits is written out, unless none waits behind it.
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

    /// Refuses what has no bytes.
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

    /// What is known of it, on a volume with blocks of so many bytes.
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
    /// Holds on it, and one more while something of it waits to be written or it is an orphan.
    held: AtomicU64,
    stays: AtomicBool,
}

impl Node {
    pub fn hold(&self, times: u64) {
        self.held.fetch_add(times, Ordering::SeqCst);
    }

    /// Lets it go. True if nobody holds it any more.
    pub fn let_go(&self, times: u64) -> bool {
        let subtract = |held: u64| Some(held.saturating_sub(times));
        let before = self.held.fetch_update(Ordering::SeqCst, Ordering::SeqCst, subtract);
        before.is_ok_and(|before| before <= times)
    }

    pub fn is_held(&self) -> bool {
        self.held.load(Ordering::SeqCst) > 0
    }

    /// It must stay in memory, or need not.
    pub fn set_stays(&self, stays: bool) {
        self.stays.store(stays, Ordering::SeqCst);
    }

    fn is_idle(&self) -> bool {
        !self.is_held() && !self.stays.load(Ordering::SeqCst)
    }
}

/// All inodes in memory.
#[derive(Default)]
pub struct Nodes {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    nodes: FxHashMap<u32, Arc<Node>>,
    /// Inodes that have left: whoever read one before reads again.
    left: u64,
    /// Inodes that stayed at the last look.
    stayed: usize,
}

/// Shows which inodes had left when a read began.
#[derive(Clone, Copy)]
pub struct Before(u64);

impl Nodes {
    fn table(&self) -> MutexGuard<'_, Table> {
        // Nothing within can panic and leave a half behind.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An inode that is there, or the state to insert one with.
    pub fn get(&self, number: u32) -> Result<Arc<Node>, Before> {
        let table = self.table();
        table.nodes.get(&number).map(Arc::clone).ok_or(Before(table.left))
    }

    /// Keeps an inode that was read, unless somebody else has; `None` if it may be old.
    pub fn insert(&self, file: File, before: Before) -> Option<Arc<Node>> {
        let mut table = self.table();
        if let Some(node) = table.nodes.get(&file.number) {
            return Some(Arc::clone(node));
        }
        (table.left == before.0).then(|| table.add(file))
    }

    /// Adds the inode of a new file.
    pub fn add(&self, file: File) -> Arc<Node> {
        self.table().add(file)
    }

    /// Takes out an inode that was freed.
    pub fn remove(&self, number: u32) {
        let mut table = self.table();
        table.nodes.remove(&number);
        table.left += 1;
    }

    /// All inodes that must stay in memory.
    pub fn held(&self) -> Vec<Arc<Node>> {
        self.table().nodes.values().filter(|node| !node.is_idle()).map(Arc::clone).collect()
    }
}

impl Table {
    fn add(&mut self, file: File) -> Arc<Node> {
        // The kernel may hold any number of them: a look at all of them comes after an eighth as many are new.
        if self.nodes.len() >= self.stayed + (self.stayed / 8).max(ROOM) {
            let before = self.nodes.len();
            // Who has an inode besides the table may be about to hold it.
            self.nodes.retain(|_, node| !node.is_idle() || Arc::strong_count(node) > 1);
            self.stayed = self.nodes.len();
            self.left += (before - self.stayed) as u64;
        }
        let number = file.number;
        let gate = SharedGate::new("inode", file);
        let node = Arc::new(Node { number, gate, held: AtomicU64::new(0), stays: AtomicBool::new(false) });
        self.nodes.insert(number, Arc::clone(&node));
        node
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inodes_that_nobody_holds_leave_memory_and_the_others_stay() {
        let nodes = Nodes::default();
        let file = |number| File::new(number, Inode::new(&[0; 256]));
        let count = 20 * ROOM as u32;
        let held = |number| number % 4 == 0;
        for number in 1..=count {
            let node = nodes.add(file(number));
            node.hold(u64::from(held(number)));
        }
        assert!((1..=count).filter(|number| held(*number)).all(|number| nodes.get(number).is_ok()));
        let idle = (1..=count).filter(|number| !held(*number) && nodes.get(*number).is_ok()).count();
        assert!(idle <= ROOM, "{idle} need not be there");
    }
}
