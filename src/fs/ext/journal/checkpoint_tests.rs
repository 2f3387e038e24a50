//! A commit while a checkpoint is under way: on a device that makes calls while it serves a write.

use super::{Checkpointing, Journal, Log, LoggedJournal, Transaction, TransactionId};
use crate::device::conv::Conventional;
use crate::device::{Abilities, Account, BlockDevice, DeviceError, Lba, STAMP_BYTES};
use crate::fs::ext::blocks::Blocks;
use crate::fs::ext::media::Media;
use crate::fs::volume::{Timestamp, VolumeError};
use crate::label::{Content, Label};
use crate::task::{Alone, Costs, Task};
use crate::time::Time;
use crate::units::BLOCK_BYTES;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

const BLOCK: usize = BLOCK_BYTES as usize;
/// Blocks that go home at once.
const BATCH: usize = 8;

/// A log in memory, of which a checkpoint is always due: the ids that are stored.
struct Memory(Arc<Mutex<Vec<TransactionId>>>);

impl Log for Memory {
    fn most_blocks(&self) -> usize {
        100
    }

    fn has_room(&self, _: &Transaction) -> bool {
        true
    }

    fn due(&self, _: Option<&Transaction>) -> Option<TransactionId> {
        self.0.lock().unwrap().last().copied()
    }

    fn store(&self, _: &Task<'_>, transaction: &mut Transaction, _: i64) -> Result<(), VolumeError> {
        self.0.lock().unwrap().push(transaction.id);
        Ok(())
    }

    fn let_go(&self, _: &Task<'_>, next: TransactionId, _: bool) -> Result<(), VolumeError> {
        self.0.lock().unwrap().retain(|id| !next.is_after(*id));
        Ok(())
    }
}

type Hook = Box<dyn FnOnce() + Send>;

/// When a write began, and its blocks.
type Write = (Time, u64);

/// A device that calls a hook before it serves the next write. A write takes a nanosecond.
struct Calling {
    device: Conventional,
    hook: Arc<Mutex<Option<Hook>>>,
    writes: Arc<Mutex<Vec<Write>>>,
}

impl BlockDevice for Calling {
    fn blocks(&self) -> u64 {
        self.device.blocks()
    }

    fn block_width(&self) -> usize {
        self.device.block_width()
    }

    fn read(&self, first: Lba, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        self.device.read(first, buffer, at)
    }

    fn write(&self, first: Lba, buffer: &[u8], label: Label, at: Time) -> Result<Time, DeviceError> {
        let hook = self.hook.lock().unwrap().take();
        hook.into_iter().for_each(|hook| hook());
        self.writes.lock().unwrap().push((at, (buffer.len() / self.block_width()) as u64));
        Ok(self.device.write(first, buffer, label, at)? + 1)
    }

    fn discard(&self, first: Lba, blocks: u64, at: Time) -> Result<Time, DeviceError> {
        self.device.discard(first, blocks, at)
    }

    fn flush(&self, at: Time) -> Result<Time, DeviceError> {
        self.device.flush(at)
    }

    fn account(&self) -> Account {
        self.device.account()
    }
}

impl Abilities for Calling {
    fn wrapped(&self) -> Option<&dyn BlockDevice> {
        None
    }
}

/// A journal, its volume's device, and the call of the device at its next write.
struct World {
    journal: Arc<LoggedJournal>,
    media: Arc<Media>,
    stored: Arc<Mutex<Vec<TransactionId>>>,
    hook: Arc<Mutex<Option<Hook>>>,
    writes: Arc<Mutex<Vec<Write>>>,
}

impl World {
    fn new() -> World {
        World::of_width(BLOCK)
    }

    /// On a device that keeps so many bytes of a block.
    fn of_width(width: usize) -> World {
        let (stored, hook, writes) = (Arc::default(), Arc::default(), Arc::default());
        let device = Conventional::in_memory(64, width);
        let device = Calling { device, hook: Arc::clone(&hook), writes: Arc::clone(&writes) };
        let media = Arc::new(Media::new(Box::new(device), BLOCK));
        let (log, blocks) = (Box::new(Memory(Arc::clone(&stored))), Arc::new(Blocks::new(None, usize::MAX)));
        let below = (Arc::clone(&media), blocks);
        let checkpointing = Checkpointing { batch: BATCH, threads: Some(2) };
        // Without a thread that is lent, each caller commits.
        let journal = LoggedJournal::new(log, below, TransactionId(1), Timestamp(0), checkpointing, true);
        World { journal: Arc::new(journal), media, stored, hook, writes }
    }

    fn at_home(&self, block: u64) -> u8 {
        let mut bytes = vec![0; BLOCK];
        self.media.read(&Task::at(Time::ZERO), block, &mut bytes).unwrap();
        bytes[0]
    }
}

fn set(journal: &LoggedJournal, block: u64, byte: u8) {
    let task = Task::at(Time::ZERO);
    let handle = journal.begin(&task, 1).unwrap();
    handle.set(block, Content::Metadata, &[byte; BLOCK]);
    handle.end();
}

fn commit(journal: &LoggedJournal) {
    journal.commit(&Task::at(Time::ZERO), journal.running()).unwrap();
}

fn checkpoint(journal: &LoggedJournal) {
    journal.checkpoint(&Task::at(Time::ZERO)).unwrap();
}

#[test]
fn a_block_that_is_committed_again_while_it_goes_home_goes_home_once_more() {
    let world = World::new();
    let journal = &world.journal;
    (10..14).for_each(|block| set(journal, block, 1));
    commit(journal);
    let inside = Arc::clone(journal);
    *world.hook.lock().unwrap() = Some(Box::new(move || {
        set(&inside, 12, 2);
        commit(&inside);
    }));
    checkpoint(journal);
    assert_eq!([10, 12, 13].map(|block| world.at_home(block)), [1, 1, 1]);
    assert_eq!(*world.stored.lock().unwrap(), [TransactionId(2)], "the log keeps the later transaction");
    checkpoint(journal);
    assert_eq!([10, 12].map(|block| world.at_home(block)), [1, 2]);
    assert_eq!(*world.stored.lock().unwrap(), [], "nothing waits");
}

/// Of a block that is committed again, or freed, before its part of the checkpoint begins, the older bytes are dead: the log lets
/// them go, and they need not go home.
#[test]
fn what_is_dead_when_its_part_of_a_checkpoint_begins_is_left_out() {
    let world = World::new();
    let journal = &world.journal;
    (10..10 + 2 * BATCH as u64).for_each(|block| set(journal, block, 1));
    commit(journal);
    let inside = Arc::clone(journal);
    *world.hook.lock().unwrap() = Some(Box::new(move || {
        set(&inside, 20, 2);
        let task = Task::at(Time::ZERO);
        let handle = inside.begin(&task, 1).unwrap();
        handle.free(22..23, true);
        handle.end();
        commit(&inside);
    }));
    checkpoint(journal);
    assert!(world.hook.lock().unwrap().is_none(), "the first part was written");
    assert_eq!([19, 20, 21, 22].map(|block| world.at_home(block)), [1, 0, 1, 0]);
    assert_eq!(*world.stored.lock().unwrap(), [TransactionId(2)], "the log keeps the later transaction");
    checkpoint(journal);
    assert_eq!([20, 22].map(|block| world.at_home(block)), [2, 0]);
    assert_eq!(*world.stored.lock().unwrap(), [], "nothing waits");
}

#[test]
fn a_block_that_is_freed_while_it_goes_home_is_not_used_before_it_is_there() {
    let world = World::new();
    let journal = &world.journal;
    (10..14).for_each(|block| set(journal, block, 1));
    commit(journal);
    let inside = Arc::clone(journal);
    *world.hook.lock().unwrap() = Some(Box::new(move || {
        let task = Task::at(Time::ZERO);
        let handle = inside.begin(&task, 1).unwrap();
        handle.free(12..13, true);
        handle.free(20..22, true);
        handle.end();
        assert_eq!(inside.common().withheld_blocks(), 3);
        commit(&inside);
        // Blocks that are not on their way can be used from now on. A write to block 12 now would be lost.
        assert!(inside.common().withheld(0..64).into_iter().eq([12].map(|block| block..block + 1)));
    }));
    checkpoint(journal);
    assert_eq!(journal.common().withheld_blocks(), 0, "it is there now");
    assert!(world.hook.lock().unwrap().is_none(), "the device was written to");
    // A later checkpoint does not bring it back.
    world.media.write(&Task::at(Time::ZERO), 12, &[7; BLOCK], Label::host(Content::Data)).unwrap();
    checkpoint(journal);
    assert_eq!(world.at_home(12), 7);
}

/// A run was counted in bytes: of stamps, thousands of blocks were under way at once.
#[test]
fn a_checkpoint_has_as_many_blocks_under_way_as_its_batch() {
    for width in [BLOCK, STAMP_BYTES] {
        let world = World::of_width(width);
        let journal = &world.journal;
        let batches = || {
            let mut batches: BTreeMap<Time, u64> = BTreeMap::new();
            std::mem::take(&mut *world.writes.lock().unwrap())
                .into_iter()
                .for_each(|(at, blocks)| *batches.entry(at).or_default() += blocks);
            batches.into_values().collect::<Vec<u64>>()
        };
        let set_all = |byte: u8| {
            let task = Task::at(Time::ZERO);
            let handle = journal.begin(&task, 40).unwrap();
            // A run of 20, and 20 runs of one.
            for block in (0..20).chain((22..62).step_by(2)) {
                handle.set(block, Content::Data, &vec![byte; width]);
            }
            handle.end();
        };
        set_all(1);
        commit(journal);
        checkpoint(journal);
        assert_eq!(batches(), [BATCH as u64; 5], "of {width} bytes");
        set_all(2);
        journal.end(&Task::at(Time::ZERO)).unwrap();
        assert_eq!(batches(), [BATCH as u64; 5], "at the end too");
    }
}

/// Each of the threads of a simulated checkpoint has a clock: a call does not wait for a checkpoint that it does not need.
#[test]
fn a_simulated_checkpoint_takes_no_time_of_the_call_that_looks() {
    let world = World::of_width(STAMP_BYTES);
    let journal = &world.journal;
    let costs = Costs::none();
    let task = Task::simulated(Time(1000), &costs, &Alone);
    let handle = journal.begin(&task, 40).unwrap();
    for block in 0..40 {
        handle.set(block, Content::Data, &[1; STAMP_BYTES]);
    }
    handle.end();
    journal.commit(&task, journal.running()).unwrap();
    let committed = task.now();
    journal.checkpoint(&task).unwrap();
    assert_eq!(task.now(), committed);
    // Five batches of a nanosecond each by two threads, which have begun one each at most.
    let begun = world.writes.lock().unwrap().len();
    assert!((1..=2).contains(&begun), "{begun} batches have begun at {committed:?}");
    assert!(!world.stored.lock().unwrap().is_empty(), "the round is under way");
    task.wait_until(committed + 10);
    journal.checkpoint(&task).unwrap();
    assert_eq!(task.now(), committed + 10);
    assert_eq!(*world.stored.lock().unwrap(), [], "all is home, and the log has let it go");
    let began: Vec<u64> = world.writes.lock().unwrap().iter().map(|(at, _)| at.since_ns(committed)).collect();
    assert_eq!(began, [0, 0, 1, 1, 2], "two threads write side by side");
}

#[test]
fn a_lent_thread_commits_for_those_who_ask_and_nobody_waits_for_one_that_is_gone() {
    let world = World::new();
    let journal = &world.journal;
    assert_eq!(journal.workers(), 3, "two for checkpoints, one for commits");
    let has_lent = std::sync::atomic::AtomicBool::new(true);
    let order = std::sync::atomic::Ordering::SeqCst;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while has_lent.load(order) && journal.watch(&Task::at(Time::ZERO)) {
                std::hint::spin_loop();
            }
        });
        for byte in 1..=50 {
            set(journal, 10, byte);
            commit(journal);
            assert_eq!(world.stored.lock().unwrap().len(), usize::from(byte), "a commit is stored when it returns");
        }
        has_lent.store(false, order);
    });
    set(journal, 10, 51);
    commit(journal);
    assert_eq!(*world.stored.lock().unwrap(), (1..=51).map(TransactionId).collect::<Vec<_>>());
}
