//! Blocks in memory: metadata, and bytes of files that go through the journal.
//!
//! A block's bytes are shared with their readers, and are copied when they change while somebody has them: so a
//! commit keeps what it took without a copy. Dirty blocks, and committed blocks that are not home, stay; of the clean ones the
//! longest unused goes when there is too much. A quarter of the room is for these even when all of it is taken by those
//! that stay: a block that was just read is found. On a device of stamps all metadata stays.
//!
//! The page cache is one more of these, for clean pages of files.

use crate::device::Arena;
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The bytes of a block, as they were when they were asked for.
pub use crate::device::Frame as Bytes;

const SHARDS: usize = 16;

struct Entry {
    bytes: Bytes,
    /// When it was last used.
    used: u64,
    /// When it was last changed; 0 if it was not.
    version: u64,
    /// It is changed, or waits to be written home.
    stays: bool,
}

#[derive(Default)]
struct Shard {
    blocks: FxHashMap<u64, Entry>,
    /// The number of blocks that need not stay.
    idle: usize,
    /// Blocks that have left: a reader that read one before from the device reads again.
    left: u64,
}

/// Blocks in memory, by number.
pub struct Blocks {
    shards: Vec<Mutex<Shard>>,
    /// The most clean blocks that each part keeps.
    most: usize,
    /// Blocks that stay, and how many may.
    staying: AtomicUsize,
    most_staying: usize,
    clock: AtomicU64,
    /// The memory of blocks that change, if a monitor keeps it.
    arena: OnceLock<Arc<Arena>>,
}

/// Shows which blocks had left when a read began.
#[derive(Clone, Copy, Debug)]
pub struct Before(u64);

impl Blocks {
    /// Room for so many; `None`: all stay. `most_staying`: of those that are changed, or wait to be written home, so many
    /// are too many.
    pub fn new(most: Option<usize>, most_staying: usize) -> Blocks {
        let most = most.map_or(usize::MAX, |most| (most / SHARDS).max(16));
        Blocks {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            most,
            staying: AtomicUsize::new(0),
            most_staying,
            clock: AtomicU64::new(0),
            arena: OnceLock::new(),
        }
    }

    /// Blocks that change are in frames of this arena from now on.
    pub fn keep_in(&self, arena: Arc<Arena>) {
        let is_first = self.arena.set(arena).is_ok();
        assert!(is_first, "a volume has one journal");
    }

    fn shard(&self, block: u64) -> MutexGuard<'_, Shard> {
        // Nothing within can panic and leave a half behind: entries are whole at every step.
        self.shards[block as usize % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    /// A block that is there, or the state with which a read block is inserted.
    pub fn get(&self, block: u64) -> Result<Bytes, Before> {
        let mut shard = self.shard(block);
        let before = Before(shard.left);
        match shard.blocks.get_mut(&block) {
            Some(entry) => {
                entry.used = self.tick();
                Ok(entry.bytes.clone())
            }
            None => Err(before),
        }
    }

    /// Keeps a block that was read, unless somebody else has; `None` if it may be old, and must be read again.
    pub fn insert(&self, block: u64, bytes: Bytes, before: Before) -> Option<Bytes> {
        let mut shard = self.shard(block);
        if let Some(entry) = shard.blocks.get(&block) {
            return Some(entry.bytes.clone());
        }
        if shard.left != before.0 {
            return None;
        }
        let used = self.tick();
        self.put_in(&mut shard, block, Entry { bytes: bytes.clone(), used, version: 0, stays: false });
        shard.trim(self.most);
        Some(bytes)
    }

    /// Keeps a block that was written to the device, in place of an older copy. It may be dropped at any time.
    pub fn put(&self, block: u64, bytes: Bytes) {
        let used = self.tick();
        let mut shard = self.shard(block);
        self.put_in(&mut shard, block, Entry { bytes, used, version: 0, stays: false });
        shard.trim(self.most);
    }

    /// Sets a block, also one that is not there. It stays until it is [released](Blocks::release).
    pub fn set(&self, block: u64, bytes: &[u8]) {
        let mut shard = self.shard(block);
        // Within the lock: of two changes of a block, the later one has the later version.
        let used = self.tick();
        let known = shard.blocks.get_mut(&block).filter(|entry| entry.bytes.len() == bytes.len());
        // Its memory is used again if nobody else has it: that is warm, and the allocator is not asked. In an arena a new
        // frame is better: those of a transaction then lie together, and are protected together.
        if self.arena.get().is_none()
            && let Some(entry) = known
            && let Some(place) = entry.bytes.get_mut()
        {
            place.copy_from_slice(bytes);
            let was_idle = !std::mem::replace(&mut entry.stays, true);
            (entry.used, entry.version) = (used, used);
            self.stay(&mut shard, was_idle);
            return;
        }
        let bytes = Bytes::copy_of(bytes, self.arena.get());
        self.put_in(&mut shard, block, Entry { bytes, used, version: used, stays: true });
    }

    /// Changes a block that is there. It stays until it is released. False if it is not there.
    pub fn change(&self, block: u64, change: impl FnOnce(&mut [u8])) -> bool {
        let mut shard = self.shard(block);
        let Some(entry) = shard.blocks.get_mut(&block) else { return false };
        let was_idle = !std::mem::replace(&mut entry.stays, true);
        entry.used = self.tick();
        entry.version = entry.used;
        change(entry.bytes.make_mut(self.arena.get()));
        self.stay(&mut shard, was_idle);
        true
    }

    /// A version that is later than that of every change so far.
    pub fn next_version(&self) -> u64 {
        self.tick()
    }

    /// A changed block as it is now, and its version: the time of its last change. `None` if it is not there.
    pub fn snapshot(&self, block: u64) -> Option<(Bytes, u64)> {
        self.shard(block).blocks.get(&block).map(|entry| (entry.bytes.clone(), entry.version))
    }

    /// It need not stay any more, unless it was changed after this version of it.
    pub fn release_version(&self, block: u64, version: u64) {
        let mut shard = self.shard(block);
        if let Some(entry) = shard.blocks.get_mut(&block).filter(|entry| entry.version <= version)
            && std::mem::replace(&mut entry.stays, false)
        {
            self.stay_no_more(&mut shard);
        }
        shard.trim(self.most);
    }

    /// It need not stay any more.
    pub fn release(&self, block: u64) {
        let mut shard = self.shard(block);
        if let Some(entry) = shard.blocks.get_mut(&block)
            && std::mem::replace(&mut entry.stays, false)
        {
            self.stay_no_more(&mut shard);
        }
        shard.trim(self.most);
    }

    /// Forgets a block: it is free now.
    pub fn forget(&self, block: u64) {
        let mut shard = self.shard(block);
        let was = shard.blocks.remove(&block);
        self.is_gone(&mut shard, was);
        shard.left += 1;
    }

    fn put_in(&self, shard: &mut Shard, block: u64, entry: Entry) {
        shard.idle += usize::from(!entry.stays);
        self.staying.fetch_add(usize::from(entry.stays), Ordering::Relaxed);
        let was = shard.blocks.insert(block, entry);
        self.is_gone(shard, was);
    }

    fn is_gone(&self, shard: &mut Shard, was: Option<Entry>) {
        match was {
            Some(entry) if entry.stays => drop(self.staying.fetch_sub(1, Ordering::Relaxed)),
            Some(_) => shard.idle -= 1,
            None => {}
        }
    }

    /// A block stays from now on, which needed not before, if so.
    fn stay(&self, shard: &mut Shard, was_idle: bool) {
        if was_idle {
            shard.idle -= 1;
            self.staying.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn stay_no_more(&self, shard: &mut Shard) {
        shard.idle += 1;
        self.staying.fetch_sub(1, Ordering::Relaxed);
    }

    /// True if more blocks stay than this part of the most.
    pub fn stay_beyond(&self, part: usize) -> bool {
        self.staying.load(Ordering::Relaxed) > self.most_staying / part
    }

    /// The number of blocks in memory, and of those that stay.
    pub fn counts(&self) -> (u64, u64) {
        (0..SHARDS as u64).fold((0, 0), |(all, staying), shard| {
            let shard = self.shard(shard);
            let here = shard.blocks.len() as u64;
            (all + here, staying + here - shard.idle as u64)
        })
    }
}

impl Shard {
    /// Lets a quarter of the clean blocks go, the longest unused first, if there is too much.
    fn trim(&mut self, most: usize) {
        let stay = self.blocks.len() - self.idle;
        // Without room of its own, a block would go as soon as it is read, before its reader can change it; and each
        // read would look at all that stay.
        if self.idle <= most.saturating_sub(stay).max(most / 4) {
            return;
        }
        let mut idle: Vec<(u64, u64)> =
            self.blocks.iter().filter(|(_, entry)| !entry.stays).map(|(block, entry)| (entry.used, *block)).collect();
        let count = idle.len().div_ceil(4);
        if count < idle.len() {
            idle.select_nth_unstable(count);
        }
        let gone = &idle[..count];
        for (_, block) in gone {
            self.blocks.remove(block);
        }
        self.idle -= gone.len();
        self.left += gone.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert(blocks: &Blocks, block: u64) {
        let before = blocks.get(block).expect_err("it is not there");
        blocks.insert(block, vec![block as u8; 4].into(), before).unwrap();
    }

    #[test]
    fn who_reads_a_block_keeps_what_it_was_while_it_changes() {
        let blocks = Blocks::new(None, usize::MAX);
        insert(&blocks, 3);
        let before = blocks.get(3).ok().unwrap();
        assert!(blocks.change(3, |bytes| bytes[0] = 9) && !blocks.change(4, |_| ()));
        assert_eq!((before[0], blocks.get(3).ok().unwrap()[0]), (3, 9));
    }

    #[test]
    fn what_is_changed_stays_and_the_rest_is_bounded() {
        let blocks = Blocks::new(Some(SHARDS * 16), usize::MAX);
        (0..64).for_each(|block| insert(&blocks, block));
        (0..64).for_each(|block| assert!(blocks.change(block, |bytes| bytes[1] = 7)));
        (64..10_000).for_each(|block| insert(&blocks, block));
        assert!(blocks.counts().0 <= (SHARDS * 17 + 64) as u64, "{}", blocks.counts().0);
        assert!((0..64).all(|block| blocks.get(block).is_ok_and(|bytes| bytes[1] == 7)));
        (0..64).for_each(|block| blocks.release(block));
        (10_000..20_000).for_each(|block| insert(&blocks, block));
        assert!(blocks.get(0).is_err());
    }

    /// Blocks that waited to be written home took all of the room: a block that was read then left at once, and who wanted
    /// to change it read it again without end.
    #[test]
    fn a_block_that_was_read_can_be_changed_when_those_that_stay_take_all_of_the_room() {
        let blocks = Blocks::new(Some(SHARDS * 16), usize::MAX);
        (0..64 * SHARDS as u64).for_each(|block| blocks.set(block, &[1; 4]));
        for block in 10_000..20_000 {
            insert(&blocks, block);
            assert!(block % 5 > 0 || blocks.change(block, |bytes| bytes[1] = 7), "{block}");
        }
        assert!(blocks.counts().0 <= (64 * SHARDS + 2000 + 5 * SHARDS) as u64, "{}", blocks.counts().0);
        (0..20_000).for_each(|block| blocks.release(block));
        assert!(blocks.counts().0 <= SHARDS as u64 * 16, "{}", blocks.counts().0);
        (0..20_000).for_each(|block| blocks.forget(block));
        assert!(blocks.shards.iter().all(|shard| shard.lock().unwrap().idle == 0));
        assert_eq!(blocks.counts(), (0, 0));
    }

    #[test]
    fn what_was_read_before_a_block_left_is_not_taken_for_the_newest() {
        let blocks = Blocks::new(None, usize::MAX);
        let before = blocks.get(3).err().unwrap();
        blocks.set(3, &[9; 4]);
        blocks.forget(3);
        assert!(blocks.insert(3, vec![0; 4].into(), before).is_none());
    }
}
