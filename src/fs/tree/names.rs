//! The names in a directory.

use crate::fs::volume::FileKind;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The place behind `.` and `..` in a listing.
const BEHIND_DOTS: u64 = 2;

/// A name, and whose it is.
#[derive(Clone, Debug)]
pub struct Entry {
    pub name: Arc<[u8]>,
    pub inode: u64,
    pub kind: FileKind,
}

/// The names in a directory. Each has a place that no other has had, in ascending order of when it was put there: so a
/// listing that goes on behind a place misses nothing and tells nothing twice.
#[derive(Debug)]
pub struct Names {
    places: FxHashMap<Arc<[u8]>, u64>,
    entries: BTreeMap<u64, Entry>,
    next: u64,
}

impl Default for Names {
    fn default() -> Names {
        Names { places: FxHashMap::default(), entries: BTreeMap::new(), next: BEHIND_DOTS + 1 }
    }
}

impl Names {
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn find(&self, name: &[u8]) -> Option<&Entry> {
        self.places.get(name).map(|place| &self.entries[place])
    }

    /// Gives a name to an inode: a new one, or one that another has.
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

    /// The entries behind a place, each with its own.
    pub fn behind(&self, place: u64) -> impl Iterator<Item = (u64, &Entry)> {
        self.entries.range(place + 1..).map(|(place, entry)| (*place, entry))
    }
}
