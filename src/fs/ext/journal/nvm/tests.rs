//! The journal on memory that loses unfenced lines: a crash leaves the durable ones, and no line more.

use super::layout::{Hash, Shape, Superblock};
use super::{Checkpointing, FoundRegion, NvmJournal, NvmOptions, Scheme, Slots};
use crate::device::conv::Conventional;
use crate::device::nvm::Nvm;
use crate::device::nvm::lines::Lines;
use crate::fs::ext::blocks::Blocks;
use crate::fs::ext::journal::{Journal, TransactionId};
use crate::fs::ext::media::Media;
use crate::fs::volume::Timestamp;
use crate::label::Content;
use crate::random::Random;
use crate::task::Task;
use crate::time::Time;
use crate::units::BLOCK_BYTES;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

const BLOCK: usize = BLOCK_BYTES as usize;

const OPTIONS: NvmOptions =
    NvmOptions { partitions: None, hash: None, scheme: Scheme::Helping, slots: Slots::Atomic, renews: false };
const CHECKPOINTING: Checkpointing = Checkpointing { batch: 64, threads: None };

/// A journal on a volume of 256 blocks, with its memory.
struct World {
    nvm: Lines,
    media: Arc<Media>,
    journal: NvmJournal,
}

impl World {
    fn new(partitions: u32, slots: u64, scheme: Scheme) -> World {
        let bytes = 16_384 + u64::from(partitions) * slots * 4160;
        let nvm = Lines::new(bytes);
        let shape = Shape::of(bytes, partitions, Hash::Modulo, BLOCK, BLOCK);
        assert_eq!(shape.slots, slots);
        let superblock =
            Superblock::in_use(None, shape, ([7; 16], [8; 16]), TransactionId(u32::MAX - 3), Default::default());
        superblock.write(&nvm);
        let media = Arc::new(Media::new(Box::new(Conventional::in_memory(256, BLOCK)), BLOCK));
        let below = (Arc::clone(&media), Arc::new(Blocks::new(None, usize::MAX)));
        let memory: Arc<dyn Nvm> = Arc::new(nvm.clone());
        let journal = {
            let options = NvmOptions { scheme, ..OPTIONS };
            NvmJournal::new(memory, superblock, (&options, CHECKPOINTING), below, Timestamp(0))
        };
        World { nvm, media, journal }
    }

    fn set(&self, blocks: &[(u64, u8)]) {
        let task = Task::at(Time::ZERO);
        let handle = self.journal.begin(&task, blocks.len()).unwrap();
        for (block, byte) in blocks {
            handle.set(*block, Content::Metadata, &[*byte; BLOCK]);
        }
        handle.end();
    }

    fn free(&self, block: u64) {
        let task = Task::at(Time::ZERO);
        let handle = self.journal.begin(&task, 1).unwrap();
        handle.free(block..block + 1, true);
        handle.end();
    }

    fn commit(&self) {
        self.journal.commit(&Task::at(Time::ZERO), self.journal.running()).unwrap();
    }

    fn checkpoint(&self) {
        self.journal.checkpoint_now(&Task::at(Time::ZERO)).unwrap();
    }

    /// The memory after a crash that no unfenced line survives.
    fn left(&self) -> Lines {
        Lines::of(self.nvm.crash(|_| false))
    }

    /// The blocks that a mount would find after a crash now: those on the device, under those in the region.
    fn after_a_crash(&self) -> BTreeMap<u64, u8> {
        // The memory first: blocks that go home meanwhile are as new as those that it has.
        let nvm = self.left();
        let replayable = FoundRegion::find(&nvm).unwrap().unwrap().replayable(&nvm);
        assert!(replayable.damaged.is_empty(), "{:?}", replayable.damaged);
        let mut all = BTreeMap::new();
        for block in 0..256 {
            let mut bytes = vec![0; BLOCK];
            self.media.read(&Task::at(Time::ZERO), block, &mut bytes).unwrap();
            let newest = replayable.blocks.get(&block).map_or(bytes[0], |bytes| bytes[0]);
            if newest != 0 {
                all.insert(block, newest);
            }
        }
        all
    }
}

#[test]
fn a_commit_is_there_after_a_crash_and_what_follows_it_is_not() {
    let world = World::new(4, 64, Scheme::Helping);
    world.set(&[(10, 1), (11, 1), (14, 1)]);
    world.set(&[(10, 2)]);
    assert!(world.after_a_crash().is_empty());
    world.commit();
    world.set(&[(11, 3), (12, 3)]);
    assert_eq!(world.after_a_crash(), BTreeMap::from([(10, 2), (11, 1), (14, 1)]));
    world.commit();
    assert_eq!(world.after_a_crash(), BTreeMap::from([(10, 2), (11, 3), (12, 3), (14, 1)]));
    world.checkpoint();
    assert_eq!(world.after_a_crash(), BTreeMap::from([(10, 2), (11, 3), (12, 3), (14, 1)]));
    assert!(world.journal.rings.iter().all(|ring| ring.used() == 0));
}

#[test]
fn freed_blocks_are_not_brought_back() {
    for is_checkpointed in [false, true] {
        let world = World::new(4, 64, Scheme::Helping);
        world.set(&[(10, 1), (11, 1)]);
        world.commit();
        world.free(10);
        assert_eq!(world.journal.common().withheld_blocks(), 1);
        world.commit();
        assert_eq!(world.journal.common().withheld_blocks(), 0);
        // Its next user writes past the journal.
        let label = crate::label::Label::host(Content::Data);
        world.media.write(&Task::at(Time::ZERO), 10, &[9; BLOCK], label).unwrap();
        if is_checkpointed {
            world.checkpoint();
        }
        assert_eq!(world.after_a_crash(), BTreeMap::from([(10, 9), (11, 1)]));
        // It is metadata again.
        world.set(&[(10, 4)]);
        world.commit();
        assert_eq!(world.after_a_crash(), BTreeMap::from([(10, 4), (11, 1)]));
        world.checkpoint();
        assert_eq!(world.after_a_crash(), BTreeMap::from([(10, 4), (11, 1)]));
    }
}

#[test]
fn a_journal_that_is_ended_has_nothing_left() {
    let world = World::new(2, 64, Scheme::Paper);
    world.set(&[(10, 1), (11, 2)]);
    world.journal.end(&Task::at(Time::ZERO)).unwrap();
    world.journal.closed().unwrap();
    let left = world.left();
    let found = FoundRegion::find(&left).unwrap().unwrap();
    assert!(!found.superblock.is_in_use && found.replayable(&left).blocks.is_empty());
    assert_eq!(world.after_a_crash(), BTreeMap::from([(10, 1), (11, 2)]));
}

/// Strides that fall on one partition, and a region that is always nearly full: handles wait for checkpoints, and come on.
#[test]
fn skew_and_a_full_region_only_make_handles_wait() {
    for scheme in [Scheme::Helping, Scheme::Paper] {
        let world = World::new(4, 64, scheme);
        for round in 1..=100u8 {
            world.set(&[(8, round), (16, round), (24, round)]);
            if round.is_multiple_of(3) {
                world.commit();
            }
        }
        world.commit();
        assert_eq!(world.after_a_crash(), BTreeMap::from([(8, 100), (16, 100), (24, 100)]));
        assert!(world.journal.counts().waits > 0);
        let [all, fullest, emptiest] = world.journal.own_counts()[..] else { panic!("three counts") };
        assert_eq!((fullest.1, emptiest.1), (all.1, 0));
        match scheme {
            // A commit joins the changes of three rounds.
            Scheme::Helping => assert!((102..=111).contains(&all.1), "{}", all.1),
            Scheme::Paper => assert_eq!(all.1, 300),
        }
    }
}

/// Threads watch the partitions, and come and go: commits rely on them for partitions that have one, and help the others.
#[test]
fn commits_rely_on_the_workers_of_the_papers_scheme() {
    let (world, stop) = (World::new(4, 64, Scheme::Paper), AtomicBool::new(false));
    assert_eq!(world.journal.workers(), 4 + 4, "checkpoint threads and commit workers");
    std::thread::scope(|scope| {
        // More than there are partitions: the others find nothing to do.
        let workers: Vec<_> = (0..6)
            .map(|_| {
                scope.spawn(|| {
                    let task = Task::at(Time::ZERO);
                    let mut watched = 0;
                    while !stop.load(SeqCst) {
                        watched += u32::from(world.journal.watch(&task));
                        std::thread::yield_now();
                    }
                    watched
                })
            })
            .collect();
        for round in 1..=200u8 {
            world.set(&[(u64::from(round), round), (255, round)]);
            world.commit();
            assert_eq!(world.after_a_crash()[&255], round);
        }
        stop.store(true, SeqCst);
        let watched: u32 = workers.into_iter().map(|worker| worker.join().unwrap()).sum();
        assert!(watched > 0);
    });
    assert!(!World::new(4, 64, Scheme::Helping).journal.watch(&Task::at(Time::ZERO)), "other schemes have none");
}

/// Threads change, free, commit and checkpoint; at each commit that returns, its changes are there after a crash.
#[test]
fn threads_lose_nothing_that_was_committed() {
    for (seed, scheme) in (0..6).zip([Scheme::Helping, Scheme::Paper].into_iter().cycle()) {
        let world = World::new(4, 64, scheme);
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                let world = &world;
                scope.spawn(move || {
                    let mut random = Random::new(seed, &format!("thread {thread}"));
                    let task = Task::at(Time::ZERO);
                    for round in 1..=100u8 {
                        let own = 64 * thread..64 * thread + 32;
                        let (one, other) = (own.start + random.below(32), own.start + random.below(32));
                        world.set(&[(one, round), (other, round), (thread + 32, round)]);
                        match random.below(4) {
                            0 => {
                                // As a sync of everything does: another thread may have closed the transaction of these changes.
                                world.commit();
                                let left = world.after_a_crash();
                                assert_eq!(left.get(&(thread + 32)), Some(&round), "seed {seed}, thread {thread}");
                            }
                            1 => world.journal.checkpoint(&task).unwrap(),
                            _ => {}
                        }
                    }
                });
            }
        });
        world.commit();
        let all = world.after_a_crash();
        assert!((32..36).all(|block| all[&block] == 100), "seed {seed}: {all:?}");
        world.journal.end(&Task::at(Time::ZERO)).unwrap();
        assert_eq!(world.after_a_crash(), all, "seed {seed}");
    }
}

/// A checkpoint that was suspended between its goal and the goal's cut would take that of a transaction which is not durable.
#[test]
fn a_cut_is_not_taken_for_that_of_another_transaction_with_the_same_place() {
    let world = World::new(4, 64, Scheme::Helping);
    let first = world.journal.running();
    for round in 1..=super::CUTS as u64 {
        world.set(&[(round % 8, round as u8)]);
        world.commit();
        let is_kept = round < super::CUTS as u64;
        assert_eq!(world.journal.cut(first).is_some(), is_kept, "after {round} commits");
    }
    let last = world.journal.durable();
    let tails: Vec<u64> = world.journal.rings.iter().map(|ring| ring.tail()).collect();
    assert_eq!(world.journal.cut(last), Some(tails));
}

/// A commit of the running transaction, in which nothing had changed, did not wait for the one before, which another thread
/// had closed and not stored: the caller's changes there were not durable.
#[test]
fn a_commit_without_changes_waits_for_the_transaction_before() {
    let world = World::new(4, 64, Scheme::Helping);
    let task = Task::at(Time::ZERO);
    world.set(&[(10, 1)]);
    let id = world.journal.running();
    assert!(world.journal.close(&task, id));
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            world.commit();
            is_done.store(true, SeqCst);
        });
        // However slow the other thread is, it must not be done: with more time, the test finds more.
        std::thread::sleep(Duration::from_millis(50));
        assert!(!is_done.load(SeqCst));
        world.journal.store_commit(&task, id).unwrap();
    });
    assert_eq!(world.after_a_crash(), BTreeMap::from([(10, 1)]));
}
