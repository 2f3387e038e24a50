//! A store with slow flushes: the number of flushes that each call waits for.
//!
//! With an fsync of 5 s on the store, one operation took 25 s: five flushes in sequence.

use super::random_work::Worker;
use super::{blocks, create, open};
use flashpath::device::conv::Conventional;
use flashpath::device::{Abilities, Account, BlockDevice, DeviceError, Lba};
use flashpath::fs::Durable;
use flashpath::fs::sfs::{FileKind, InodeNumber, NewFile, Sfs, SfsError};
use flashpath::label::Label;
use flashpath::task::Task;
use flashpath::time::Time;
use std::sync::{Arc, Mutex};

/// The duration of a flush, in nanoseconds.
const FLUSH_NS: u64 = 5_000_000_000;

/// A device whose flush takes [`FLUSH_NS`], and all other operations no time.
#[derive(Clone)]
struct SlowStore(Arc<Mutex<Conventional>>);

impl SlowStore {
    fn new(blocks: u64) -> SlowStore {
        SlowStore(Arc::new(Mutex::new(Conventional::in_memory(blocks, 4096))))
    }

    /// Runs `act`, and returns the number of flushes it waited for.
    fn flushes<T>(&self, act: impl FnOnce() -> T) -> (T, u64) {
        let count = || {
            let events = self.account().events;
            events.iter().find(|(name, _)| *name == "flushes").map_or(0, |(_, count)| *count)
        };
        let before = count();
        (act(), count() - before)
    }
}

impl BlockDevice for SlowStore {
    fn blocks(&self) -> u64 {
        self.0.lock().unwrap().blocks()
    }

    fn block_width(&self) -> usize {
        4096
    }

    fn read(&self, first: Lba, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        self.0.lock().unwrap().read(first, buffer, at)
    }

    fn write(&self, first: Lba, buffer: &[u8], label: Label, at: Time) -> Result<Time, DeviceError> {
        self.0.lock().unwrap().write(first, buffer, label, at)
    }

    fn discard(&self, first: Lba, blocks: u64, at: Time) -> Result<Time, DeviceError> {
        self.0.lock().unwrap().discard(first, blocks, at)
    }

    fn flush(&self, at: Time) -> Result<Time, DeviceError> {
        Ok(self.0.lock().unwrap().flush(at)? + FLUSH_NS)
    }

    fn account(&self) -> Account {
        self.0.lock().unwrap().account()
    }
}

impl Abilities for SlowStore {
    fn wrapped(&self) -> Option<&dyn BlockDevice> {
        None
    }
}

fn new_file() -> NewFile<'static> {
    NewFile { kind: FileKind::Regular, permissions: 0o644, user: 1, group: 2, device: 0, target: b"", attributes: &[] }
}

#[test]
fn an_fsync_waits_for_one_flush_and_a_sync_for_three() {
    let task = &Task::at(Time::ZERO);
    let store = SlowStore::new(64 << 8);
    let mut sfs = create(blocks(store.clone()), "sfs");
    let file = sfs.make(task, InodeNumber::ROOT, b"file", &new_file()).unwrap();
    sfs.write(task, file, 0, &[1; 10_000]).unwrap();
    let fsync = |sfs: &mut Sfs| sfs.sync_file(task, file, Durable::All).unwrap();
    let before = task.now();
    assert_eq!(store.flushes(|| fsync(&mut sfs)).1, 1);
    assert_eq!(task.now().since_ns(before), FLUSH_NS);
    assert_eq!(store.flushes(|| fsync(&mut sfs)).1, 0, "nothing changed");
    sfs.write(task, file, 0, &[2; 10_000]).unwrap();
    assert_eq!(store.flushes(|| sfs.sync(task).unwrap()).1, 3, "the checkpoint's blocks, and both superblocks");
    assert_eq!(store.flushes(|| fsync(&mut sfs)).1, 0, "the checkpoint stored it");
    task.wait_until(task.now() + 6_000_000_000);
    assert_eq!(store.flushes(|| sfs.work(task).unwrap()).1, 0, "no work is left");
    sfs.write(task, file, 0, &[3; 10_000]).unwrap();
    // At the unmount both are written, and the device is closed.
    assert!(store.flushes(|| sfs.unmount(task).unwrap()).1 <= 5);
    drop(sfs);
    let mut sfs = open(blocks(store), "sfs");
    let mut bytes = vec![0; 10_000];
    assert_eq!(sfs.read(task, file, 0, &mut bytes).unwrap(), 10_000);
    assert_eq!(bytes, vec![3; 10_000]);
}

#[test]
fn no_call_waits_for_more_than_a_few_flushes_even_on_a_full_volume() {
    let task = &Task::at(Time::ZERO);
    // At most, the log is flushed to free segments, twice: for groups that fill, then for the rest; then a checkpoint is
    // taken, with 3 flushes. With nearly no memory,
    // nearly every change is also followed by a checkpoint.
    let volumes = [("sfs", 5), ("sfs:groups=1,cleaner=greedy", 5), ("sfs:segment=64K,memory=28M", 8)];
    for (seed, (text, most)) in (1..).zip(volumes) {
        let store = SlowStore::new(24 << 8);
        let mut sfs = create(blocks(store.clone()), text);
        let mut worker = Worker::new(seed, 200_000);
        let mut counts = [0_u64; 16];
        for step in 0..8000 {
            let (done, waited) = store.flushes(|| worker.step(task, &mut sfs));
            match done {
                Ok(()) | Err(SfsError::NoSpace { .. }) => {}
                Err(error) => panic!("{text}, step {step}: {error}"),
            }
            counts[waited.min(15) as usize] += 1;
        }
        eprintln!("{text}: calls by number of flushes waited for: {counts:?}");
        assert!(counts[most + 1..].iter().all(|count| *count == 0), "{text}: {counts:?}");
    }
}
