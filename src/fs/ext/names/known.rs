//! Names that were found lately: a lookup of one waits for no change of the directory.
//!
//! A name is known only as long as its file has it: a call that takes the name away is alone behind the gates of the directory
//! and of the file, and lets it be forgotten before the file's gate opens. So a task that is behind the gate of a file, and still
//! finds the name here, has looked it up.

use rustc_hash::{FxHashMap, FxHasher};
use std::hash::Hasher;
use std::sync::{Mutex, MutexGuard, PoisonError};

const SHARDS: usize = 16;

struct Known {
    directory: u32,
    inode: u32,
    name: Box<[u8]>,
}

/// Names of directories, by a hash: one name of each hash.
pub struct KnownNames {
    shards: [Mutex<FxHashMap<u64, Known>>; SHARDS],
    /// The most names of a shard.
    most: usize,
}

impl KnownNames {
    /// Keeps about `most` names.
    pub fn new(most: usize) -> KnownNames {
        KnownNames { shards: Default::default(), most: most.div_ceil(SHARDS) }
    }

    /// The inode that has a name in a directory, if the name is known. It is the file's name for as long as the task is behind the file's
    /// gate, if the name is known then too.
    pub fn get(&self, directory: u32, name: &[u8]) -> Option<u32> {
        let hash = hash_of(directory, name);
        self.shard(hash).get(&hash).filter(|known| known.is(directory, name)).map(|known| known.inode)
    }

    /// Notes a name. The task is behind the gate of the directory: the file keeps the name meanwhile.
    pub fn note(&self, directory: u32, name: &[u8], inode: u32) {
        let hash = hash_of(directory, name);
        let mut shard = self.shard(hash);
        if shard.len() >= self.most {
            // A lookup finds the others again in their directories.
            shard.clear();
        }
        shard.insert(hash, Known { directory, inode, name: name.into() });
    }

    /// Forgets a name that a file loses. The task is alone behind the gates of the directory and of the file.
    pub fn forget(&self, directory: u32, name: &[u8]) {
        let hash = hash_of(directory, name);
        let mut shard = self.shard(hash);
        if shard.get(&hash).is_some_and(|known| known.is(directory, name)) {
            shard.remove(&hash);
        }
    }

    fn shard(&self, hash: u64) -> MutexGuard<'_, FxHashMap<u64, Known>> {
        // Nothing within can panic and leave a half behind. The upper bits choose: the table takes the lower ones.
        self.shards[(hash >> 60) as usize % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn is(&self, directory: u32, name: &[u8]) -> bool {
        self.directory == directory && *self.name == *name
    }
}

fn hash_of(directory: u32, name: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write_u32(directory);
    hasher.write(name);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_known_until_its_file_loses_it() {
        let names = KnownNames::new(1024);
        names.note(2, b"a", 12);
        names.note(2, b"b", 13);
        names.note(3, b"a", 14);
        assert_eq!([names.get(2, b"a"), names.get(2, b"b"), names.get(3, b"a")], [Some(12), Some(13), Some(14)]);
        names.forget(2, b"a");
        names.forget(2, b"c");
        assert_eq!([names.get(2, b"a"), names.get(2, b"b"), names.get(3, b"a")], [None, Some(13), Some(14)]);
        names.note(2, b"b", 15);
        assert_eq!(names.get(2, b"b"), Some(15), "another file has the name now");
    }

    #[test]
    fn the_number_of_names_is_bounded() {
        let names = KnownNames::new(64);
        (0..10_000_u32).for_each(|number| names.note(2, &number.to_le_bytes(), number + 12));
        let known = (0..10_000_u32).filter(|number| names.get(2, &number.to_le_bytes()).is_some()).count();
        assert!((1..=64).contains(&known), "{known} names");
    }
}
