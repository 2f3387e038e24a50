//! The names in a directory.

use crate::fs::volume::FileKind;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The offset after `.` and `..` in a listing.
const AFTER_DOTS: u64 = 2;

/// A directory entry.
#[derive(Clone, Debug)]
pub struct Entry {
    pub name: Arc<[u8]>,
    pub inode: u64,
    pub kind: FileKind,
}

/// The names in a directory. Each has a unique offset, ascending in the order of insertion. So a listing resumed at an
/// offset misses no entry and repeats none.
#[derive(Debug)]
pub struct Names {
    places: FxHashMap<Arc<[u8]>, u64>,
    entries: BTreeMap<u64, Entry>,
    next: u64,
}

impl Default for Names {
    fn default() -> Names {
        Names { places: FxHashMap::default(), entries: BTreeMap::new(), next: AFTER_DOTS + 1 }
    }
}

impl Names {
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn find(&self, name: &[u8]) -> Option<&Entry> {
        self.places.get(name).map(|place| &self.entries[place])
    }

    /// Sets the inode of a name, new or existing.
    pub fn put(&mut self, name: &[u8], inode: u64, kind: FileKind) {
        if let Some(place) = self.places.get(name) {
            let entry = self.entries.get_mut(place).expect("each place has an entry");
            (entry.inode, entry.kind) = (inode, kind);
            return;
        }
        let name: Arc<[u8]> = name.into();
        self.places.insert(Arc::clone(&name), self.next);
        self.entries.insert(self.next, Entry { name, inode, kind });
        self.next += 1;
    }

    pub fn remove(&mut self, name: &[u8]) {
        if let Some(place) = self.places.remove(name) {
            self.entries.remove(&place);
        }
    }

    /// The entries after an offset, each with its own offset.
    pub fn entries_after(&self, place: u64) -> impl Iterator<Item = (u64, &Entry)> {
        self.entries.range(place + 1..).map(|(place, entry)| (*place, entry))
    }
}
