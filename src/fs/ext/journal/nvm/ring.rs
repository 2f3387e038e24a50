//! The slots of a partition, in the processor's memory: which are taken, which are complete, and which are home.
//!
//! ```text
//!            head            checked              tail
//!   free      | committed ... | complete, or not   |      free
//!   ──────────┴───────────────┴────────────────────┴──────────────▶ index; slot = index mod slots
//!             recycled by      advanced by          taken by
//!             a checkpoint     a commit             a handle: one atomic addition
//! ```
//!
//! Indexes are 64-bit and never go back. A slot is complete when its flag is its index + 1 (J2): so a flag from the round
//! before is not mistaken for one of this round, and no flag is ever cleared. Nothing here is a lock: a thread that stops
//! anywhere keeps no other thread from taking slots, and delays only a commit that needs the slots it has taken.
//!
//! Room is reserved before slots are taken ([`Credits`]): an addition cannot be undone (J3).

use super::atomic::{AtomicI64, AtomicU64, Padded};
use crate::label::Content;
use std::ops::Range;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// The content of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub block: u64,
    /// Counts the changes of the block: the greatest is the newest.
    pub version: u64,
    pub what: Kept,
}

/// The kinds of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The bytes of a block.
    Image(Content),
    /// Blocks that were freed: older images of them are not written home.
    Revoke,
}

impl Kept {
    pub fn code(self) -> u32 {
        match self {
            Kept::Revoke => 1,
            Kept::Image(Content::Metadata) => 2,
            Kept::Image(_) => 3,
        }
    }

    pub fn of(code: u32) -> Option<Kept> {
        match code {
            1 => Some(Kept::Revoke),
            2 => Some(Kept::Image(Content::Metadata)),
            3 => Some(Kept::Image(Content::Data)),
            _ => None,
        }
    }
}

/// A slot: its flag, and its entry, which is valid once the flag says so.
#[derive(Debug, Default)]
struct Slot {
    flag: AtomicU64,
    block: AtomicU64,
    version: AtomicU64,
    what: AtomicU64,
}

/// The slots of one partition.
#[derive(Debug)]
pub struct Ring {
    tail: Padded<AtomicU64>,
    checked: Padded<AtomicU64>,
    head: Padded<AtomicU64>,
    /// Slots that will be taken when the running transaction is closed, at most.
    waiting: Padded<AtomicU64>,
    slots: Box<[Slot]>,
}

impl Ring {
    /// So many free slots.
    pub fn new(slots: usize) -> Ring {
        Ring {
            tail: Padded::default(),
            checked: Padded::default(),
            head: Padded::default(),
            waiting: Padded::default(),
            slots: (0..slots).map(|_| Slot::default()).collect(),
        }
    }

    fn slot(&self, index: u64) -> &Slot {
        &self.slots[(index % self.slots.len() as u64) as usize]
    }

    /// The number of the slot with this index.
    pub fn place(&self, index: u64) -> u64 {
        index % self.slots.len() as u64
    }

    /// Takes `count` slots, for which the caller has credits.
    pub fn take(&self, count: u64) -> Range<u64> {
        let first = self.tail.0.fetch_add(count, AcqRel);
        let taken = first..first + count;
        debug_assert!(
            taken.end - self.head.0.load(Acquire) <= self.slots.len() as u64,
            "credits cover the slots that are taken"
        );
        taken
    }

    /// A slot that the caller has taken is complete, and durable.
    pub fn complete(&self, index: u64, entry: Entry) {
        let slot = self.slot(index);
        slot.block.store(entry.block, Relaxed);
        slot.version.store(entry.version, Relaxed);
        slot.what.store(entry.what.code().into(), Relaxed);
        slot.flag.store(index + 1, Release);
    }

    /// The first index that is not taken.
    pub fn tail(&self) -> u64 {
        self.tail.0.load(Acquire)
    }

    /// The first index that is not recycled.
    pub fn head(&self) -> u64 {
        self.head.0.load(Acquire)
    }

    /// Slots that are taken and not recycled.
    pub fn used(&self) -> u64 {
        let head = self.head();
        self.tail().saturating_sub(head)
    }

    /// So many slots more will be taken when the running transaction is closed; the caller has credits for them.
    pub fn wait(&self, count: u64) {
        self.waiting.0.fetch_add(count, AcqRel);
    }

    /// So many slots are no longer waited for: those of them that were needed are taken.
    pub fn wait_no_more(&self, count: u64) {
        self.waiting.0.fetch_sub(count, AcqRel);
    }

    /// Slots that will be taken when the running transaction is closed, at most.
    pub fn waiting(&self) -> u64 {
        self.waiting.0.load(Acquire)
    }

    /// Slots that are neither taken nor waited for.
    fn free(&self) -> u64 {
        // In this order: slots that are taken meanwhile are counted twice, and never not at all.
        let waiting = self.waiting();
        self.slots().saturating_sub(self.used() + waiting)
    }

    pub fn slots(&self) -> u64 {
        self.slots.len() as u64
    }

    /// Looks at the flags behind those that were checked, up to `end`, and answers up to which index all are complete.
    /// Tasks that commit may call it, several at once.
    pub fn check(&self, end: u64) -> u64 {
        let before = self.checked();
        let mut at = before;
        while at < end && self.slot(at).flag.load(Acquire) == at + 1 {
            at += 1;
        }
        if at > before {
            // Another may have gone further meanwhile.
            return self.checked.0.fetch_max(at, AcqRel).max(at);
        }
        before
    }

    /// The index up to which all slots were found complete.
    pub fn checked(&self) -> u64 {
        self.checked.0.load(Acquire)
    }

    /// The content of a complete slot. The caller keeps it from being recycled.
    pub fn entry(&self, index: u64) -> Entry {
        let slot = self.slot(index);
        assert_eq!(slot.flag.load(Acquire), index + 1, "a slot is looked at when it is complete, and not recycled");
        let what = Kept::of(slot.what.load(Relaxed) as u32).expect("complete() has set it");
        Entry { block: slot.block.load(Relaxed), version: slot.version.load(Relaxed), what }
    }

    /// The slots before `to` are home: they can be taken again.
    pub fn recycle(&self, to: u64) {
        debug_assert!(self.head() <= to && to <= self.checked(), "committed slots are recycled, in order");
        self.head.0.store(to, Release);
    }
}

/// Room that handles have reserved. A handle that has credits for `n` slots finds them free, all in one partition if it
/// comes to that.
///
/// `free` and the credits of open handles together never exceed the free slots of the fullest partition. A handle uses up
/// credits for all slots that it takes, of any partition; so they run out before the slots do, and are
/// [renewed](Credits::renew) from the slots that are really free.
#[derive(Debug)]
pub struct Credits {
    free: Padded<AtomicI64>,
    /// `free`, and the credits of open handles.
    granted: Padded<AtomicI64>,
}

impl Credits {
    /// All slots of the partitions are free.
    pub fn new(slots: u64) -> Credits {
        Credits { free: Padded(AtomicI64::new(slots as i64)), granted: Padded(AtomicI64::new(slots as i64)) }
    }

    /// Reserves `count` slots; false if there are not so many.
    pub fn reserve(&self, count: usize) -> bool {
        let count = count as i64;
        if self.free.0.fetch_sub(count, AcqRel) >= count {
            return true;
        }
        self.free.0.fetch_add(count, AcqRel);
        false
    }

    /// A handle that has reserved so many slots has taken `used` of them, and ends.
    pub fn give_back(&self, reserved: usize, used: usize) {
        debug_assert!(used <= reserved, "{used} slots taken of {reserved} reserved");
        self.granted.0.fetch_sub(used as i64, AcqRel);
        self.free.0.fetch_add(reserved as i64 - used as i64, AcqRel);
    }

    /// Grants the free slots of the fullest of the partitions. One thread at a time renews.
    pub fn renew<'r>(&self, rings: impl Iterator<Item = &'r Ring>) {
        // In this order: slots that are taken between the two loads make `least` smaller, and never the credits greater.
        let granted = self.granted.0.load(Acquire);
        let least = rings.map(Ring::free).min().unwrap_or(0) as i64;
        if least > granted {
            self.granted.0.fetch_add(least - granted, AcqRel);
            self.free.0.fetch_add(least - granted, AcqRel);
        }
    }
}

#[cfg(all(test, not(any(feature = "checked-gates", feature = "checked-slots"))))]
mod tests {
    use super::*;

    const DATA: Kept = Kept::Image(Content::Data);

    fn entry(block: u64) -> Entry {
        Entry { block, version: block + 10, what: DATA }
    }

    #[test]
    fn a_commit_sees_slots_up_to_the_first_that_is_not_complete() {
        let ring = Ring::new(4);
        let (first, second) = (ring.take(1).start, ring.take(1).start);
        ring.complete(second, entry(7));
        assert_eq!(ring.check(2), 0);
        ring.complete(first, entry(6));
        assert_eq!((ring.check(1), ring.check(2)), (1, 2));
        assert_eq!(ring.entry(1), entry(7));
    }

    #[test]
    fn a_flag_of_the_round_before_is_none_of_this_round() {
        let ring = Ring::new(2);
        for index in ring.take(2) {
            ring.complete(index, entry(index));
        }
        assert_eq!(ring.check(2), 2);
        ring.recycle(2);
        assert_eq!(ring.take(1), 2..3);
        assert_eq!((ring.check(3), ring.used()), (2, 1));
    }

    #[test]
    fn credits_cover_the_case_that_all_slots_are_of_one_partition() {
        let (rings, credits) = ([Ring::new(8), Ring::new(8)], Credits::new(8));
        assert!(credits.reserve(5) && !credits.reserve(4) && credits.reserve(3));
        rings[1].take(5);
        credits.give_back(5, 5);
        credits.give_back(3, 0);
        assert!(!credits.reserve(4) && credits.reserve(3));
        // The slots of the other partition do not count.
        credits.give_back(3, 3);
        rings[0].take(3);
        assert!(!credits.reserve(1));
        credits.renew(rings.iter());
        assert!(!credits.reserve(4) && credits.reserve(3));
    }
}
