//! Files of which something waits to be written.

use crate::time::Time;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Files of which something waits to be written.
#[derive(Debug)]
pub struct Waiting {
    /// Dirty bytes, and files, above which writers wait.
    most_bytes: u64,
    most_files: usize,
    bytes: AtomicU64,
    files: Mutex<Files>,
    /// Files that were cut to nothing, whose new bytes no transaction has yet.
    emptied: Mutex<BTreeSet<u32>>,
}

/// The files, by number and by age: thousands of small ones may wait, and each that is written out is the oldest.
#[derive(Debug, Default)]
struct Files {
    since: FxHashMap<u32, Time>,
    by_age: BTreeSet<(Time, u32)>,
    /// Those that a thread writes out.
    taken: FxHashSet<u32>,
}

impl Files {
    fn add(&mut self, number: u32, at: Time) {
        if let Entry::Vacant(new) = self.since.entry(number) {
            new.insert(at);
            self.by_age.insert((at, number));
        }
    }

    /// True if it was there.
    fn remove(&mut self, number: u32) -> bool {
        self.since.remove(&number).is_some_and(|since| self.by_age.remove(&(since, number)))
    }
}

/// A file that a thread writes out: others take the next ones.
pub struct Taken<'w> {
    waiting: &'w Waiting,
    pub number: u32,
    is_own: bool,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if self.is_own {
            self.waiting.files().taken.remove(&self.number);
        }
    }
}

impl Waiting {
    /// None yet. A writer waits when more bytes are dirty, or more files.
    pub fn new(most_bytes: u64, most_files: usize) -> Waiting {
        Waiting {
            most_bytes,
            most_files,
            bytes: AtomicU64::default(),
            files: Mutex::default(),
            emptied: Mutex::default(),
        }
    }

    /// True if more is dirty than this part of the most.
    pub fn is_beyond(&self, part: u64) -> bool {
        let count = self.count();
        let is_much = self.bytes() > self.most_bytes / part;
        count > 0 && (is_much || count > self.most_files / part as usize)
    }

    /// Something of a file waits, since this time unless more did before.
    pub fn add(&self, number: u32, at: Time) {
        self.files().add(number, at);
    }

    /// Nothing of a file waits any more.
    pub fn remove(&self, number: u32) {
        self.files().remove(number);
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        // Nothing between two changes of it can panic.
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn emptied(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        self.emptied.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A file was cut to nothing.
    pub fn was_emptied(&self, number: u32) {
        self.emptied().insert(number);
    }

    /// New bytes of a file that was cut to nothing are written, or it was freed.
    pub fn is_emptied_no_more(&self, number: u32) {
        self.emptied().remove(&number);
    }

    /// Files that were cut to nothing, and of which something waits.
    pub fn rewritten(&self) -> Vec<u32> {
        let emptied: Vec<u32> = self.emptied().iter().copied().collect();
        let files = self.files();
        emptied.into_iter().filter(|number| files.since.contains_key(number)).collect()
    }

    pub fn add_bytes(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::SeqCst);
    }

    pub fn take_bytes(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes as u64, Ordering::SeqCst);
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::SeqCst)
    }

    /// The number of files.
    pub fn count(&self) -> usize {
        self.files().since.len()
    }

    /// All files, those that wait longest first.
    pub fn all(&self) -> Vec<u32> {
        self.files().by_age.iter().map(|(_, number)| *number).collect()
    }

    /// The file that waits longest.
    pub fn oldest(&self) -> Option<u32> {
        self.files().by_age.first().map(|(_, number)| *number)
    }

    /// The file that waits longest of those that no other thread writes out; if there is none, the one that waits longest.
    pub fn take(&self) -> Option<Taken<'_>> {
        let mut files = self.files();
        let oldest = |is_wanted: &dyn Fn(u32) -> bool| files.by_age.iter().find(|(_, number)| is_wanted(*number));
        let (number, is_own) = match oldest(&|number| !files.taken.contains(&number)) {
            Some((_, number)) => (*number, true),
            None => (oldest(&|_| true)?.1, false),
        };
        if is_own {
            files.taken.insert(number);
        }
        drop(files);
        Some(Taken { waiting: self, number, is_own })
    }

    /// Since when the first of them waits.
    pub fn first(&self) -> Option<Time> {
        self.files().by_age.first().map(|(since, _)| *since)
    }

    /// The pages of a file that were dirty before `at` are written: those that are dirty now are so since then.
    pub fn renew(&self, number: u32, at: Time) {
        let mut files = self.files();
        if files.remove(number) {
            files.add(number, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_waits_since_its_first_change_and_anew_when_it_was_written_out_meanwhile() {
        let waiting = Waiting::new(u64::MAX, usize::MAX);
        for (number, at) in [(7, 30), (5, 10), (6, 20), (5, 40)] {
            waiting.files().add(number, Time(at));
        }
        assert_eq!((waiting.all(), waiting.first()), (vec![5, 6, 7], Some(Time(10))));
        waiting.renew(5, Time(35));
        waiting.renew(9, Time(36));
        assert_eq!((waiting.all(), waiting.oldest()), (vec![6, 7, 5], Some(6)), "9 did not wait");
        assert!(waiting.files().remove(6) && !waiting.files().remove(6));
        assert_eq!(waiting.first(), Some(Time(30)));
    }

    /// All threads that had to write something out waited for the same file.
    #[test]
    fn threads_write_out_different_files_the_oldest_first() {
        let waiting = Waiting::new(u64::MAX, usize::MAX);
        for (number, since) in [(5, 30), (7, 10), (6, 20)] {
            waiting.files().add(number, Time(since));
        }
        let number = |taken: &Option<Taken<'_>>| taken.as_ref().map(|taken| taken.number);
        let (first, second) = (waiting.take(), waiting.take());
        assert_eq!((number(&first), number(&second)), (Some(7), Some(6)));
        let (third, fourth) = (waiting.take(), waiting.take());
        assert_eq!((number(&third), number(&fourth)), (Some(5), Some(7)), "all are taken: the oldest again");
        drop((fourth, second));
        assert_eq!(number(&waiting.take()), Some(6), "it was not written to its end");
        drop((first, third));
        waiting.files().remove(7);
        assert_eq!(number(&waiting.take()), Some(6));
    }
}
