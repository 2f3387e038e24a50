//! The slots, the credits and the entrance under a model checker (`loom`), which tries the orders of their atomic operations, and the
//! values that a load may see by the memory model.
//!
//! A slot's bytes in non-volatile memory are plain memory. Here they are atomics beside the ring that are stored to and
//! loaded without order of their own: a task that loads an old value was let in too early.
//!
//! `CHECKED_PREEMPTIONS` is the most switches of a run away from a thread that could go on (3 if it is not set): with 5, a
//! model takes more than a minute.

use super::entrance::{Entered, Entrance};
use super::ring::{Credits, Entry, Kept, Ring};
use crate::label::Content;
use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::thread;
use std::sync::atomic::Ordering::Relaxed;

const SLOTS: u64 = 2;

/// Two partitions, with the bytes of their slots.
struct Partitions {
    rings: [Ring; 2],
    bytes: [[AtomicU64; SLOTS as usize]; 2],
    credits: Credits,
    /// The record of the last checkpoint: slots of partition 0 before this index are home.
    home: AtomicU64,
}

/// The value that a handle stores in the slot with this index: no other slot has it, and no other lap.
fn entry(partition: usize, index: u64) -> Entry {
    let block = 100 * (partition as u64 + 1) + index;
    Entry { block, version: block + 1000, what: Kept::Image(Content::Data) }
}

impl Partitions {
    fn new() -> Arc<Partitions> {
        Arc::new(Partitions {
            rings: [Ring::new(SLOTS as usize), Ring::new(SLOTS as usize)],
            bytes: [[AtomicU64::new(0), AtomicU64::new(0)], [AtomicU64::new(0), AtomicU64::new(0)]],
            credits: Credits::new(SLOTS),
            home: AtomicU64::new(0),
        })
    }

    fn bytes(&self, partition: usize, index: u64) -> &AtomicU64 {
        &self.bytes[partition][self.rings[partition].place(index) as usize]
    }

    /// The copy and the flag of a slot that was taken.
    fn store(&self, partition: usize, index: u64) {
        self.bytes(partition, index).store(entry(partition, index).block, Relaxed);
        self.rings[partition].complete(index, entry(partition, index));
    }

    /// A handle that changes a block of the partition. False if there is no room.
    fn change(&self, partition: usize) -> bool {
        if !self.credits.reserve(1) {
            return false;
        }
        let index = self.rings[partition].take(1).start;
        let home = self.home.load(Relaxed);
        assert!(index < home + SLOTS, "the slot of index {index} is taken again, and {home} are home");
        self.store(partition, index);
        self.credits.give_back(1, 1);
        true
    }

    /// All of the first lap is home, with the bytes of that lap.
    fn checkpoint(&self) {
        assert_eq!(self.checked(0, 0, SLOTS), SLOTS);
        self.home.store(SLOTS, Relaxed);
        self.rings[0].recycle(SLOTS);
    }

    /// Looks how far a partition is complete; all slots in between hold their values.
    fn checked(&self, partition: usize, from: u64, end: u64) -> u64 {
        let to = self.rings[partition].check(end);
        for index in from..to.min(end) {
            // Before the slot's entry, which looks at the flag once more.
            let bytes = self.bytes(partition, index).load(Relaxed);
            assert_eq!(bytes, entry(partition, index).block, "the bytes of slot {index} are older than its flag");
            assert_eq!(self.rings[partition].entry(index), entry(partition, index));
        }
        to
    }

    /// The credits that are left, when no handle is open, are free slots in each partition.
    fn granted_are_free(&self) {
        let mut granted = 0;
        while self.credits.reserve(1) {
            granted += 1;
        }
        for ring in &self.rings {
            let free = SLOTS - ring.used();
            assert!(granted <= free, "{granted} slots are granted, and {free} are free");
        }
        self.credits.give_back(granted as usize, 0);
    }
}

/// Checks every order of a program's threads.
fn check(program: impl Fn() + Send + Sync + 'static) {
    let text = std::env::var("CHECKED_PREEMPTIONS").ok();
    let preemptions = text.map_or(3, |text| text.parse().expect("CHECKED_PREEMPTIONS is a number"));
    let mut checker = loom::model::Builder::new();
    checker.preemption_bound = Some(preemptions);
    checker.check(program);
}

/// Threads that each do the `work` of their number.
fn spawn<const N: usize>(all: &Arc<Partitions>, work: [fn(&Partitions); N]) -> [thread::JoinHandle<()>; N] {
    work.map(|work| {
        let all = Arc::clone(all);
        thread::spawn(move || work(&all))
    })
}

fn join<const N: usize>(threads: [thread::JoinHandle<()>; N]) {
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn a_commit_sees_what_was_stored_below_its_cut() {
    check(|| {
        let all = Partitions::new();
        let handles = spawn(&all, [|all| assert!(all.change(0)), |all| assert!(all.change(0))]);
        all.checked(0, 0, all.rings[0].tail());
        join(handles);
        assert_eq!(all.checked(0, 0, 2), 2, "no slot is lost");
    });
}

/// One of them sees only how far the other has come, and not the flags.
#[test]
fn commits_that_check_at_the_same_time_both_see_what_was_stored() {
    check(|| {
        let all = Partitions::new();
        let threads = spawn(
            &all,
            [
                |all| assert!(all.change(0) && all.change(0)),
                |all| {
                    let first = all.checked(0, 0, 1);
                    assert!(all.checked(0, 0, 2) >= first, "what was complete stays so");
                },
            ],
        );
        let first = all.checked(0, 0, 2);
        assert!(all.checked(0, 0, 2) >= first, "what was complete stays so");
        join(threads);
        assert_eq!(all.checked(0, 0, 2), 2);
    });
}

/// A commit goes on from the slots that another has checked, and sees no flag itself.
#[test]
fn a_commit_relies_on_what_another_has_checked() {
    check(|| {
        let all = Partitions::new();
        let threads = spawn(
            &all,
            [
                |all| assert!(all.change(0)),
                |all| {
                    all.rings[0].check(1);
                },
            ],
        );
        all.checked(0, 0, 1);
        join(threads);
    });
}

/// A checkpoint recycles the slots of the first lap, while a handle takes them for the second and a commit looks at them.
#[test]
fn slots_are_taken_again_when_they_are_recycled_and_their_old_flags_do_not_count() {
    check(|| {
        let all = Partitions::new();
        assert!(all.change(0) && all.change(0));
        assert_eq!(all.checked(0, 0, 2), 2);
        let threads = spawn(
            &all,
            [
                |all| {
                    all.checkpoint();
                    all.credits.renew(all.rings.iter());
                },
                |all| {
                    all.change(0);
                },
            ],
        );
        all.checked(0, 2, 3);
        join(threads);
        let tail = all.rings[0].tail();
        assert_eq!(all.checked(0, 2, tail), tail);
        all.granted_are_free();
    });
}

/// A handle renews the credits itself and takes slots of the next lap, while a commit still looks at the first.
#[test]
fn who_renews_credits_after_a_checkpoint_finds_the_slots_home_and_an_old_commit_does_not_set_anything_back() {
    check(|| {
        let all = Partitions::new();
        assert!(all.change(0) && all.change(0));
        let threads = spawn(
            &all,
            [Partitions::checkpoint, |all| {
                all.credits.renew(all.rings.iter());
                all.change(0);
                all.change(0);
            }],
        );
        assert!(all.rings[0].check(1) >= 1);
        join(threads);
        let tail = all.rings[0].tail();
        assert_eq!(all.checked(0, 2, tail), tail);
        all.granted_are_free();
    });
}

/// Handles of both partitions take slots and give back those that they did not use, while a checkpoint renews the credits.
#[test]
fn credits_are_never_more_than_free_slots() {
    check(|| {
        let all = Partitions::new();
        let threads = spawn(
            &all,
            [
                |all| {
                    all.change(0);
                },
                |all| {
                    if all.credits.reserve(1) {
                        all.credits.give_back(1, 0);
                    }
                    all.change(1);
                },
            ],
        );
        all.credits.renew(all.rings.iter());
        let home = all.rings[0].check(1);
        all.home.store(home, Relaxed);
        all.rings[0].recycle(home);
        all.credits.renew(all.rings.iter());
        join(threads);
        all.granted_are_free();
        all.credits.renew(all.rings.iter());
        all.granted_are_free();
    });
}

/// A transaction is closed alone, and handles take their slots beside each other: a cut has all slots of a handle, or none,
/// and no cut lies before an earlier one.
#[test]
fn a_cut_has_all_slots_of_a_handle_or_none() {
    check(|| {
        let all = Partitions::new();
        let entrance = Arc::new(Entrance::new());
        let handles = [0, 1].map(|cell| {
            let (all, entrance) = (Arc::clone(&all), Arc::clone(&entrance));
            thread::spawn(move || {
                // The checker follows no endless loop: it gives up where a handle would wait.
                if entrance.enter(cell) != Entered::Yes && entrance.enter(cell) != Entered::Yes {
                    return 0;
                }
                let taken = [0, 1].map(|partition| all.rings[partition].take(1).start);
                entrance.leave(cell);
                taken.into_iter().enumerate().for_each(|(partition, index)| all.store(partition, index));
                1
            })
        });
        let mut last = 0;
        for _ in 0..2 {
            assert!(entrance.close());
            let cut = entrance.is_empty().then(|| [0, 1].map(|partition: usize| all.rings[partition].tail()));
            entrance.open();
            let Some(cut) = cut else { continue };
            assert_eq!(cut[0], cut[1], "a handle is cut in two");
            assert!(cut[0] >= last, "a cut before an earlier one");
            last = cut[0];
            (0..2).for_each(|partition| {
                all.checked(partition, 0, last);
            });
        }
        let stored: u64 = handles.into_iter().map(|handle| handle.join().unwrap()).sum();
        let checked = [0, 1].map(|partition| all.checked(partition, 0, stored));
        assert_eq!(checked, [stored; 2], "two handles have the same slot");
    });
}
