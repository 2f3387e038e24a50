//! The changes of the running transaction, file by file and name by name, for its fast commits.
//!
//! Each change has a number. A fast commit takes all changes since the last one, and makes them durable; a sync of a file
//! whose last change is durable writes nothing. A change that is not tracked, or that no tag can tell, excludes the
//! transaction: it is committed in full, and the next one begins anew.
//!
//! A file that is made and loses its last name between two fast commits leaves nothing: none of its names is told.

use super::common::locked;
use super::reasons::Reason;
use crate::fs::ext::format::fast_commit::Change;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;

/// About the bytes that the tag of an inode takes, that of a range, and one of a name without it. A new file has its inode's
/// twice.
const INODE_BYTES: usize = 168;
const RANGE_BYTES: usize = 20;
const NAME_BYTES: usize = 12;

/// The changes of the running transaction.
pub struct Tracker {
    state: Mutex<State>,
    /// Bytes that the fast commits of a transaction may take: more tags are not kept.
    most_bytes: usize,
}

#[derive(Default)]
struct State {
    /// The number of the last change.
    last: u64,
    /// The number of the last change that fast commits have made durable.
    durable: u64,
    pending: Pending,
    /// The number of the last change of each file, and of the names in each directory.
    changed: FxHashMap<u32, u64>,
    /// Files that have lost their last name in this transaction.
    nameless: FxHashSet<u32>,
    /// Inodes that were freed in it.
    freed: FxHashSet<u32>,
    /// The reason why the transaction is committed in full.
    excluded: Option<Reason>,
}

/// Changes since the last fast commit.
#[derive(Default)]
pub struct Pending {
    /// Changes of names by their number.
    names: BTreeMap<u64, Change>,
    files: BTreeMap<u32, TrackedFile>,
    bytes: usize,
}

/// A regular file that has changed.
#[derive(Default)]
pub struct TrackedFile {
    /// The number of the change that has made it, if it was made since the last fast commit.
    made: Option<u64>,
    /// Its inode was freed in this transaction.
    was_freed: bool,
    /// Blocks of the file whose places have changed, in any order.
    ranges: Vec<Range<u64>>,
}

impl TrackedFile {
    /// True if it was made since the last fast commit.
    pub fn is_new(&self) -> bool {
        self.made.is_some()
    }

    /// True if its inode was another file's when the transaction began, or since.
    pub fn was_freed(&self) -> bool {
        self.was_freed
    }

    /// Blocks of the file whose places have changed: in their order, none twice.
    pub fn ranges(&self) -> Vec<Range<u64>> {
        let mut all = self.ranges.clone();
        all.sort_unstable_by_key(|range| range.start);
        let mut joined: Vec<Range<u64>> = Vec::new();
        for range in all {
            match joined.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => joined.push(range),
            }
        }
        joined
    }
}

impl Pending {
    /// Changes of names, in their order.
    pub fn names(&self) -> impl Iterator<Item = &Change> {
        self.names.values()
    }

    /// Files that have changed, by their inodes.
    pub fn files(&self) -> &BTreeMap<u32, TrackedFile> {
        &self.files
    }

    fn file(&mut self, inode: u32) -> &mut TrackedFile {
        let bytes = &mut self.bytes;
        self.files.entry(inode).or_insert_with(|| {
            *bytes += INODE_BYTES;
            TrackedFile::default()
        })
    }
}

impl State {
    /// The number of a change of a file or of names in a directory.
    fn count(&mut self, inode: u32) -> u64 {
        self.last += 1;
        self.changed.insert(inode, self.last);
        self.last
    }

    fn exclude(&mut self, reason: Reason) {
        self.excluded.get_or_insert(reason);
        self.pending = Pending::default();
    }
}

impl Tracker {
    /// That of transactions whose fast commits may take so many bytes.
    pub(super) fn new(most_bytes: usize) -> Tracker {
        Tracker { state: Mutex::default(), most_bytes }
    }

    /// Tracks a change, unless the transaction is excluded.
    fn track(&self, change: impl FnOnce(&mut State)) {
        let mut state = locked(&self.state);
        if state.excluded.is_some() {
            return;
        }
        change(&mut state);
        if state.pending.bytes > self.most_bytes {
            state.exclude(Reason::Full);
        }
    }

    /// The inode of a regular file changed in its table.
    pub fn inode(&self, inode: u32) {
        self.track(|state| {
            state.count(inode);
            state.pending.file(inode);
        });
    }

    /// Blocks of a regular file have got other places, or lost them.
    pub fn range(&self, inode: u32, blocks: Range<u64>) {
        self.track(|state| {
            state.count(inode);
            let file = state.pending.file(inode);
            match file.ranges.last_mut() {
                Some(last) if blocks.start <= last.end && last.start <= blocks.end => {
                    *last = last.start.min(blocks.start)..last.end.max(blocks.end);
                }
                _ => {
                    file.ranges.push(blocks);
                    state.pending.bytes += RANGE_BYTES;
                }
            }
        });
    }

    /// A name was made, linked or unlinked.
    ///
    /// # Panics
    ///
    /// If the change is none of a name.
    pub fn name(&self, change: Change) {
        let (Change::Create(name) | Change::Link(name) | Change::Unlink(name)) = &change else {
            panic!("{change:?} is none of a name")
        };
        let (directory, inode, length) = (name.directory, name.inode, name.name.len());
        self.track(|state| {
            state.count(directory);
            let number = state.count(inode);
            if matches!(change, Change::Create(_)) {
                let was_freed = state.freed.contains(&inode);
                let file = state.pending.file(inode);
                file.was_freed = was_freed;
                assert!(file.made.is_none(), "inode {inode} was made, and is free again before it is made once more");
                file.made = Some(number);
                state.pending.bytes += INODE_BYTES;
            }
            state.pending.names.insert(number, change);
            state.pending.bytes += NAME_BYTES + length;
        });
    }

    /// A file has lost its last name, which is tracked before: nothing of it is told any more.
    pub fn loses_names(&self, inode: u32) {
        self.track(|state| {
            state.nameless.insert(inode);
            let Some(made) = state.pending.files.remove(&inode).and_then(|file| file.made) else { return };
            // Those before it are of another file that had the number.
            state.pending.names.retain(|number, change| {
                let (Change::Create(name) | Change::Link(name) | Change::Unlink(name)) = change else { return true };
                name.inode != inode || *number < made
            });
        });
    }

    /// A file without a name was freed: its inode may be used again.
    pub fn frees(&self, inode: u32) {
        self.track(|state| {
            state.pending.files.remove(&inode);
            state.freed.insert(inode);
            if !state.nameless.remove(&inode) {
                state.exclude(Reason::OldOrphan);
            }
        });
    }

    /// The transaction is committed in full.
    pub fn exclude(&self, reason: Reason) {
        locked(&self.state).exclude(reason);
    }

    /// True if all changes of a file, or of the names in a directory, are durable by fast commits.
    pub(super) fn is_durable(&self, inode: u32) -> bool {
        let state = locked(&self.state);
        let changed = state.changed.get(&inode);
        state.excluded.is_none() && changed.is_none_or(|number| *number <= state.durable)
    }

    /// Takes the changes since the last fast commit, and the number of its last change; or the reason why the
    /// transaction is committed in full. Nobody changes anything meanwhile.
    pub(super) fn take(&self) -> Result<(Pending, u64), Reason> {
        let mut state = locked(&self.state);
        match state.excluded {
            Some(reason) => Err(reason),
            None => Ok((std::mem::take(&mut state.pending), state.last)),
        }
    }

    /// All changes up to this one are durable.
    pub(super) fn are_durable(&self, last: u64) {
        let state = &mut locked(&self.state);
        debug_assert!((state.durable..=state.last).contains(&last), "fast commits follow each other");
        state.durable = last;
    }

    /// The next transaction begins. Nobody changes anything meanwhile.
    pub(super) fn begin_next(&self) {
        *locked(&self.state) = State::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::ext::format::fast_commit::NameChange;

    const ROOT: u32 = 2;

    fn name(name: &str, inode: u32) -> NameChange {
        NameChange { directory: ROOT, inode, name: name.as_bytes().to_vec() }
    }

    fn taken(tracker: &Tracker) -> (Vec<Change>, Vec<u32>) {
        let (pending, last) = tracker.take().unwrap();
        tracker.are_durable(last);
        (pending.names().cloned().collect(), pending.files().keys().copied().collect())
    }

    #[test]
    fn a_file_that_was_made_and_lost_its_names_since_the_last_fast_commit_leaves_nothing() {
        let tracker = Tracker::new(4096);
        tracker.name(Change::Unlink(name("a", 12)));
        tracker.loses_names(12);
        tracker.frees(12);
        tracker.name(Change::Create(name("a", 12)));
        tracker.inode(12);
        tracker.name(Change::Link(name("b", 12)));
        tracker.name(Change::Unlink(name("a", 12)));
        tracker.name(Change::Unlink(name("b", 12)));
        tracker.loses_names(12);
        tracker.frees(12);
        tracker.name(Change::Create(name("a", 12)));
        let expected = vec![Change::Unlink(name("a", 12)), Change::Create(name("a", 12))];
        assert_eq!(taken(&tracker), (expected, vec![12]));
        // Once it was told that it was made, its end is told, too.
        tracker.name(Change::Unlink(name("a", 12)));
        tracker.loses_names(12);
        assert!(!tracker.is_durable(12) && !tracker.is_durable(ROOT) && tracker.is_durable(13));
        assert_eq!(taken(&tracker), (vec![Change::Unlink(name("a", 12))], vec![]));
        assert!(tracker.is_durable(12) && tracker.is_durable(ROOT));
    }

    #[test]
    fn ranges_are_joined_and_a_sync_needs_the_last_change() {
        let tracker = Tracker::new(4096);
        for range in [5..7, 7..9, 20..30, 1..2, 8..10, 2..5] {
            tracker.range(12, range);
        }
        tracker.inode(13);
        let (pending, last) = tracker.take().unwrap();
        assert_eq!(pending.files()[&12].ranges(), [1..10, 20..30]);
        assert!(!tracker.is_durable(12));
        tracker.are_durable(last);
        assert!(tracker.is_durable(12) && tracker.is_durable(13));
        tracker.inode(13);
        assert!(tracker.is_durable(12) && !tracker.is_durable(13));
    }

    #[test]
    fn an_excluded_transaction_has_no_fast_commit_and_the_next_one_has() {
        let tracker = Tracker::new(4096);
        tracker.inode(12);
        tracker.exclude(Reason::Attributes);
        tracker.exclude(Reason::Other);
        tracker.inode(12);
        assert_eq!(tracker.take().err(), Some(Reason::Attributes));
        assert!(!tracker.is_durable(14));
        tracker.begin_next();
        assert!(tracker.is_durable(12));
        // It lost its last name in the transaction before.
        tracker.frees(12);
        assert_eq!(tracker.take().err(), Some(Reason::OldOrphan));
        tracker.begin_next();
        (0..1000).for_each(|inode| tracker.inode(inode));
        assert_eq!(tracker.take().err(), Some(Reason::Full));
    }
}
