//! Threads that share a volume: who waits for whom while a device reads or flushes, and what a cut of power leaves of
//! what they have synced.
//!
//! A volume had one lock, which was held while the device read and flushed: a read of a file took as long as the flush
//! of a checkpoint that nobody had asked for.

use super::machine::{Machine, seeds};
use super::{IDENTITY, blocks, create, settings};
use flashpath::device::conv::Conventional;
use flashpath::device::{Abilities, Account, BlockDevice, DeviceError, Lba};
use flashpath::fs::Durable;
use flashpath::fs::sfs::{InodeNumber, Sfs, SfsVolume};
use flashpath::fs::volume::{Allocation, Call, FileKind, Hold, NewFile, Volume, VolumeError};
use flashpath::label::Label;
use flashpath::random::Random;
use flashpath::task::Task;
use flashpath::time::Time;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread;
use std::time::Duration;

const BLOCK: usize = 4096;
const SEGMENT_BLOCKS: u64 = 16;
const SEGMENTS: u64 = 256;
/// Whoever takes so long waits for something that does not come.
const PATIENCE: Duration = Duration::from_secs(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Read,
    Write,
    Discard,
    Flush,
}

/// Where the device stands still.
#[derive(Default)]
struct Stop {
    /// In front of the next operation of this kind.
    before: Option<Operation>,
    /// Of which so many pass first.
    passing: u32,
    /// Somebody stands there.
    is_there: bool,
    /// What the one who stood there has read.
    read: Option<Vec<u8>>,
}

/// A device that stands still in front of an operation until it is let on. All others are served meanwhile.
#[derive(Clone)]
struct Halting {
    device: Arc<Conventional>,
    stop: Arc<(Mutex<Stop>, Condvar)>,
}

impl Halting {
    fn new() -> Halting {
        let device = Conventional::in_memory((SEGMENTS + 1) * SEGMENT_BLOCKS, BLOCK);
        Halting { device: Arc::new(device), stop: Arc::default() }
    }

    /// Stands still in front of an operation of a kind, when so many have passed.
    fn stop_before(&self, operation: Operation, passing: u32) {
        *self.stop.0.lock().unwrap() = Stop { before: Some(operation), passing, ..Stop::default() };
    }

    /// Waits until somebody stands there.
    fn wait_for_stop(&self) {
        let state = self.stop.0.lock().unwrap();
        let (state, waited) = self.stop.1.wait_timeout_while(state, PATIENCE, |stop| !stop.is_there).unwrap();
        assert!(state.is_there && !waited.timed_out(), "nobody came to {:?}", state.before);
    }

    /// Lets who stands there on.
    fn let_on(&self) {
        self.stop.0.lock().unwrap().before = None;
        self.stop.1.notify_all();
    }

    /// Stands still if that is asked for. True if it did.
    fn stand(&self, operation: Operation) -> bool {
        let mut state = self.stop.0.lock().unwrap();
        if state.before != Some(operation) || state.is_there {
            return false;
        }
        if state.passing > 0 {
            state.passing -= 1;
            return false;
        }
        state.is_there = true;
        self.stop.1.notify_all();
        drop(self.stop.1.wait_while(state, |stop| stop.before == Some(operation)).unwrap());
        true
    }
}

impl BlockDevice for Halting {
    fn blocks(&self) -> u64 {
        self.device.blocks()
    }

    fn block_width(&self) -> usize {
        BLOCK
    }

    fn read(&self, first: Lba, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        let stood = self.stand(Operation::Read);
        let done = self.device.read(first, buffer, at)?;
        if stood {
            self.stop.0.lock().unwrap().read = Some(buffer.to_vec());
        }
        Ok(done)
    }

    fn write(&self, first: Lba, buffer: &[u8], label: Label, at: Time) -> Result<Time, DeviceError> {
        self.stand(Operation::Write);
        self.device.write(first, buffer, label, at)
    }

    fn discard(&self, first: Lba, blocks: u64, at: Time) -> Result<Time, DeviceError> {
        self.stand(Operation::Discard);
        self.device.discard(first, blocks, at)
    }

    fn flush(&self, at: Time) -> Result<Time, DeviceError> {
        self.stand(Operation::Flush);
        self.device.flush(at)
    }

    fn account(&self) -> Account {
        self.device.account()
    }
}

impl Abilities for Halting {
    fn wrapped(&self) -> Option<&dyn BlockDevice> {
        None
    }
}

const NEW: NewFile<'static> =
    NewFile { kind: FileKind::Regular, permissions: 0o644, user: 1, group: 2, device: 0, target: b"", attributes: &[] };

/// Makes a call at a time.
fn at<T>(time: u64, act: impl FnOnce(&Call) -> T) -> T {
    let task = Task::at(Time(time));
    act(&Call::by_root(&task))
}

fn write(volume: &SfsVolume, file: InodeNumber, block: u64, value: u8) {
    at(0, |call| volume.write(call, file, block * BLOCK as u64, &[value; BLOCK], None)).unwrap();
}

fn read(volume: &SfsVolume, file: InodeNumber, block: u64) -> Result<u8, VolumeError> {
    let mut bytes = [0; BLOCK];
    let read = at(0, |call| volume.read(call, file, block * BLOCK as u64, &mut bytes))?;
    assert_eq!(read.length, BLOCK);
    assert!(bytes.iter().all(|byte| *byte == bytes[0]), "a block is of one time");
    Ok(bytes[0])
}

fn make(volume: &SfsVolume, name: &str) -> InodeNumber {
    let made = at(0, |call| volume.make(call, (InodeNumber::ROOT, name.as_bytes()), &NEW, Hold::No, None));
    made.unwrap().inode
}

/// A volume with a file of 24 stored blocks that hold 1, of which all but the bytes is in memory.
fn volume() -> (Halting, Arc<SfsVolume>, InodeNumber) {
    let device = Halting::new();
    let volume = Arc::new(SfsVolume::new(create(blocks(device.clone()), "sfs:segment=64K"), Time::ZERO));
    let file = make(&volume, "file");
    (0..24).for_each(|block| write(&volume, file, block, 1));
    at(0, |call| volume.sync(call)).unwrap();
    assert_eq!(read(&volume, file, 0).unwrap(), 1);
    (device, volume, file)
}

/// Does something in another thread, which comes to a stop of the device; does the rest meanwhile, in a thread of its
/// own that must come to its end before the device is let on. Answers what the first has done.
#[allow(clippy::disallowed_methods, reason = "real threads, as those of a mount")]
fn meanwhile<T: Send + 'static>(
    device: &Halting,
    (operation, passing): (Operation, u32),
    first: impl FnOnce() -> T + Send + 'static,
    rest: impl FnOnce() + Send + 'static,
) -> T {
    device.stop_before(operation, passing);
    let first = thread::spawn(first);
    device.wait_for_stop();
    let (done, is_done) = mpsc::channel();
    let rest = thread::spawn(move || {
        rest();
        done.send(()).unwrap();
    });
    let waited = is_done.recv_timeout(PATIENCE);
    device.let_on();
    let answer = first.join().unwrap();
    rest.join().unwrap();
    assert!(waited.is_ok(), "the others waited for the {operation:?}");
    answer
}

/// All that asks for nothing durable.
fn others(volume: &SfsVolume, file: InodeNumber) {
    let found = at(0, |call| volume.lookup(call, (InodeNumber::ROOT, b"file"), Hold::No)).unwrap();
    assert_eq!((found.inode, found.size), (file, 24 * BLOCK as u64));
    assert_eq!(at(0, |call| volume.attributes(call, file)).unwrap().inode, file);
    let mut names = 0;
    at(0, |call| {
        volume.list(call, InodeNumber::ROOT, 0, &mut |_| {
            names += 1;
            true
        })
    })
    .unwrap();
    assert_eq!(names, 3);
    assert_eq!(read(volume, file, 5).unwrap(), 1, "from the device");
    write(volume, file, 3, 2);
    assert_eq!(read(volume, file, 3).unwrap(), 2, "from memory");
    let other = make(volume, "other");
    write(volume, other, 0, 7);
    at(0, |call| volume.rename(call, (InodeNumber::ROOT, b"other"), (InodeNumber::ROOT, b"renamed"), RENAMING, None))
        .unwrap();
    at(0, |call| volume.unlink(call, (InodeNumber::ROOT, b"renamed"), None)).unwrap();
    at(0, |call| volume.space(call)).unwrap();
}

const RENAMING: flashpath::fs::volume::Renaming =
    flashpath::fs::volume::Renaming { if_exists: flashpath::fs::volume::IfExists::Replace, whiteout: None };

#[test]
fn nobody_waits_for_a_read_of_somebody_else() {
    let (device, volume, file) = volume();
    let (reader, all) = (Arc::clone(&volume), Arc::clone(&volume));
    let found = meanwhile(&device, (Operation::Read, 0), move || read(&reader, file, 10), move || others(&all, file));
    assert_eq!(found.unwrap(), 1);
}

#[test]
fn nobody_waits_for_the_flush_of_a_checkpoint_but_who_asked_for_it() {
    // That of what it names, and one for each superblock.
    for flush in 0..3 {
        let (device, volume, file) = volume();
        write(&volume, file, 4, 9);
        let (syncing, all) = (Arc::clone(&volume), Arc::clone(&volume));
        let sync = move || at(0, |call| syncing.sync(call));
        meanwhile(&device, (Operation::Flush, flush), sync, move || others(&all, file)).unwrap();
        assert_eq!(read(&volume, file, 4).unwrap(), 9);
        assert_eq!(read(&volume, file, 3).unwrap(), 2);
        at(0, |call| volume.sync(call)).unwrap();
        at(0, |call| volume.unmount(call)).unwrap();
    }
}

#[test]
fn nobody_waits_for_the_flush_of_an_fsync_but_who_asked_for_it() {
    let (device, volume, file) = volume();
    write(&volume, file, 4, 9);
    let (syncing, all) = (Arc::clone(&volume), Arc::clone(&volume));
    let fsync = move || at(0, |call| syncing.sync_file(call, file, Durable::All));
    meanwhile(&device, (Operation::Flush, 0), fsync, move || others(&all, file)).unwrap();
    assert_eq!(read(&volume, file, 3).unwrap(), 2);
    // What was done meanwhile was not told: another one tells it.
    at(0, |call| volume.sync_file(call, file, Durable::All)).unwrap();
    at(0, |call| volume.unmount(call)).unwrap();
}

#[test]
fn nobody_waits_for_the_flush_of_background_work() {
    let (device, volume, file) = volume();
    write(&volume, file, 4, 9);
    let (working, all) = (Arc::clone(&volume), Arc::clone(&volume));
    let work = move || at(60_000_000_000, |call| working.work(call));
    meanwhile(&device, (Operation::Flush, 0), work, move || others(&all, file)).unwrap();
}

/// Blocks are read from memory until the device has them.
#[test]
fn nobody_waits_for_a_write_to_the_log() {
    for passing in 0..3 {
        let (device, volume, file) = volume();
        write(&volume, file, 4, 9);
        let (syncing, all) = (Arc::clone(&volume), Arc::clone(&volume));
        let sync = move || at(0, |call| syncing.sync(call));
        let rest = move || {
            assert_eq!(read(&all, file, 4).unwrap(), 9, "it is on its way to the device");
            others(&all, file);
        };
        meanwhile(&device, (Operation::Write, passing), sync, rest).unwrap();
        assert_eq!((read(&volume, file, 4).unwrap(), read(&volume, file, 3).unwrap()), (9, 2));
        at(0, |call| volume.unmount(call)).unwrap();
    }
}

#[test]
fn nobody_waits_for_a_discard() {
    let (device, volume, file) = volume();
    (0..24).for_each(|block| write(&volume, file, block, 1));
    let (syncing, all) = (Arc::clone(&volume), Arc::clone(&volume));
    // The segments in which the file lay before are free.
    let sync = move || at(0, |call| syncing.sync(call));
    meanwhile(&device, (Operation::Discard, 0), sync, move || others(&all, file)).unwrap();
}

/// The volume of [`volume`], mounted again: nothing of it is in memory.
fn cold() -> (Halting, Arc<SfsVolume>, InodeNumber) {
    let (device, volume, file) = volume();
    at(0, |call| volume.unmount(call)).unwrap();
    drop(volume);
    let sfs = Sfs::open(&Task::at(Time::ZERO), blocks(device.clone()), &settings("sfs"), IDENTITY, false).unwrap();
    (device, Arc::new(SfsVolume::new(sfs, Time::ZERO)), file)
}

#[test]
fn nobody_waits_for_metadata_that_somebody_else_reads() {
    // The root's inode, its names, the file's inode, its map.
    for passing in 0..4 {
        let (device, volume, file) = cold();
        let (reader, all) = (Arc::clone(&volume), Arc::clone(&volume));
        let look = move || {
            let found = at(0, |call| reader.lookup(call, (InodeNumber::ROOT, b"file"), Hold::No)).unwrap();
            read(&reader, found.inode, 10)
        };
        let found = meanwhile(&device, (Operation::Read, passing), look, move || others(&all, file));
        assert_eq!(found.unwrap(), 1);
    }
}

#[test]
fn nobody_waits_for_what_a_write_reads() {
    for passing in 0..3 {
        let (device, volume, file) = cold();
        let (writer, all) = (Arc::clone(&volume), Arc::clone(&volume));
        // A part of a stored block: the rest of it is read.
        let part = move || at(0, |call| writer.write(call, file, 7 * BLOCK as u64 + 100, &[8; 100], None));
        meanwhile(&device, (Operation::Read, passing), part, move || others(&all, file)).unwrap();
        let mut bytes = [0; BLOCK];
        at(0, |call| volume.read(call, file, 7 * BLOCK as u64, &mut bytes)).unwrap();
        assert_eq!((bytes[99], bytes[100], bytes[199], bytes[200]), (1, 8, 8, 1));
    }
}

#[test]
fn nobody_waits_for_what_a_removal_reads() {
    for passing in 0..3 {
        let (device, volume, file) = cold();
        let gone = make(&volume, "gone");
        (0..40).for_each(|block| write(&volume, gone, block, 5));
        at(0, |call| volume.unmount(call)).unwrap();
        drop(volume);
        let sfs = Sfs::open(&Task::at(Time::ZERO), blocks(device.clone()), &settings("sfs"), IDENTITY, false).unwrap();
        let volume = Arc::new(SfsVolume::new(sfs, Time::ZERO));
        let (remover, all) = (Arc::clone(&volume), Arc::clone(&volume));
        let remove = move || at(0, |call| remover.unlink(call, (InodeNumber::ROOT, b"gone"), None));
        let rest = move || {
            assert_eq!(read(&all, file, 5).unwrap(), 1);
            let renaming = at(0, |call| all.attributes(call, file)).unwrap();
            assert_eq!(renaming.inode, file);
        };
        meanwhile(&device, (Operation::Read, passing), remove, rest).unwrap();
        at(0, |call| volume.unmount(call)).unwrap();
    }
}

/// Cleaning reads its victim beside the gate; blocks that are written or freed meanwhile are not taken up.
#[test]
#[allow(clippy::disallowed_methods, reason = "real threads, as those of a mount")]
fn nobody_waits_for_what_cleaning_reads() {
    for passing in [0, 1, 5, 20] {
        let (device, volume, file) = volume();
        let large = make(&volume, "large");
        let mut random = Random::new(passing.into(), "cleaning");
        let most = SEGMENTS * SEGMENT_BLOCKS / 2;
        (0..most).for_each(|block| write(&volume, large, block, 1));
        at(0, |call| volume.sync(call)).unwrap();
        let (writer, all) = (Arc::clone(&volume), Arc::clone(&volume));
        // Whole blocks are written: what is read is read by the cleaner.
        let fill = move || (0..3 * most).for_each(|_| write(&writer, large, random.below(most), 2));
        let (changer, changed) = (Arc::clone(&volume), mpsc::channel());
        let rest = move || {
            assert_eq!(read(&all, file, 5).unwrap(), 1);
            // A change counts at once, and then waits: there is too much in memory.
            let change = move || {
                for block in (0..30).chain((30..most).step_by(3)) {
                    at(0, |call| changer.allocate(call, large, (block * BLOCK as u64, 4096), Allocation::Punch, None))
                        .unwrap();
                }
            };
            changed.0.send(thread::spawn(change)).unwrap();
            while read(&all, large, 0).unwrap() != 0 {}
            assert_eq!(at(0, |call| all.attributes(call, file)).unwrap().inode, file);
        };
        meanwhile(&device, (Operation::Read, passing), fill, rest);
        changed.1.recv().unwrap().join().unwrap();
        for block in 0..most {
            let found = read(&volume, large, block).unwrap();
            assert!((0..=2).contains(&found), "block {block}");
        }
        at(0, |call| volume.unmount(call)).unwrap();
        drop(volume);
        let mut sfs = Sfs::open(&Task::at(Time::ZERO), blocks(device), &settings("sfs"), IDENTITY, false).unwrap();
        assert_eq!(sfs.check(&Task::at(Time::ZERO)).unwrap(), []);
    }
}

/// Whoever shared the volume kept its image open: it could not be marked as one that had lost changes.
#[test]
fn a_volume_that_is_unmounted_lets_its_device_go() {
    let (device, volume, _) = volume();
    at(0, |call| volume.unmount(call)).unwrap();
    assert_eq!(Arc::strong_count(&device.device), 1);
    assert!(matches!(at(0, |call| volume.sync(call)), Err(VolumeError::Unmounted)));
}

/// A segment was freed and written anew between looking up where a block lay and reading it: what was read is another
/// file's, and its checksum is wrong, but nothing is damaged.
#[test]
fn a_block_that_was_moved_while_it_was_read_is_looked_up_again() {
    let (device, volume, file) = volume();
    let (reader, mover) = (Arc::clone(&volume), Arc::clone(&volume));
    let found = meanwhile(
        &device,
        (Operation::Read, 0),
        move || read(&reader, file, 10),
        move || {
            (0..24).for_each(|block| write(&mover, file, block, 2));
            // Free segments are taken in turn: all of them are written.
            for round in 0..40 {
                let other = make(&mover, "other");
                (0..200).for_each(|block| write(&mover, other, block, 3 + round));
                at(0, |call| mover.sync(call)).unwrap();
                at(0, |call| mover.unlink(call, (InodeNumber::ROOT, b"other"), None)).unwrap();
                at(0, |call| mover.sync(call)).unwrap();
            }
        },
    );
    let stale = device.stop.0.lock().unwrap().read.take().unwrap();
    assert_ne!(stale, vec![1; BLOCK], "its segment was written anew");
    assert_eq!(found.unwrap(), 2);
}

#[test]
fn a_block_that_rots_while_it_is_read_is_damaged() {
    let (device, volume, file) = volume();
    let (reader, below) = (Arc::clone(&volume), Arc::clone(&device.device));
    let rot = move || {
        for block in 0..below.blocks() {
            let mut bytes = [0; BLOCK];
            below.read(Lba(block), &mut bytes, Time::ZERO).unwrap();
            if bytes == [1; BLOCK] {
                let label = Label::host(flashpath::label::Content::Data);
                below.write(Lba(block), &[9; BLOCK], label, Time::ZERO).unwrap();
            }
        }
    };
    let found = meanwhile(&device, (Operation::Read, 0), move || read(&reader, file, 10), rot);
    assert!(matches!(found, Err(VolumeError::Damaged { .. })), "{found:?}");
}

/// The blocks of a thread's file, and what they hold after its step `step`: each step writes one.
const BLOCKS: u64 = 8;

fn expected(step: u64, block: u64) -> u64 {
    // The last step up to this one that wrote the block; 0 for none.
    (0..BLOCKS).map(|back| step.saturating_sub(back)).find(|at| at % BLOCKS == block).unwrap_or(0)
}

fn content(thread: u64, step: u64) -> Vec<u8> {
    let mut bytes = vec![0; BLOCK];
    if step > 0 {
        bytes[..8].copy_from_slice(&step.to_le_bytes());
        bytes[BLOCK - 8..].copy_from_slice(&(thread + 1).to_le_bytes());
    }
    bytes
}

const THREADS: u64 = 4;

/// Writes and syncs until the power fails. Answers the last step that was synced.
fn sync_steps(volume: &SfsVolume, thread: u64, file: InodeNumber) -> u64 {
    for step in 1.. {
        let done = at(step, |call| {
            let offset = step % BLOCKS * BLOCK as u64;
            volume.write(call, file, offset, &content(thread, step), None)?;
            volume.sync_file(call, file, if step % 3 == 0 { Durable::All } else { Durable::Data })
        });
        if done.is_err() {
            return step - 1;
        }
    }
    unreachable!("the power fails")
}

/// Four threads sync their files, one takes checkpoints and does what is due in the background, one reads; the power
/// fails at any operation of the device.
#[test]
fn what_threads_have_synced_is_there_after_every_cut_of_power() {
    for seed in 0..12 * seeds() {
        let mut random = Random::new(seed, "cuts beside threads");
        let machine = Machine::new("sfs:segment=64K", SEGMENT_BLOCKS, 128, false);
        let volume: Sfs = machine.create();
        let volume = SfsVolume::new(volume, Time::ZERO);
        let files: Vec<InodeNumber> = (0..THREADS).map(|thread| make(&volume, &format!("file {thread}"))).collect();
        at(0, |call| volume.sync(call)).unwrap();
        machine.power.cut_after(20 + random.below(400));
        let (ended, time) = (AtomicBool::new(false), AtomicU64::new(1));
        let synced: Vec<u64> = thread::scope(|scope| {
            let (volume, files, ended, time) = (&volume, &files, &ended, &time);
            let syncing: Vec<_> = (0..THREADS)
                .map(|thread| scope.spawn(move || sync_steps(volume, thread, files[thread as usize])))
                .collect();
            scope.spawn(move || {
                while !ended.load(Ordering::Relaxed) {
                    let now = time.fetch_add(3_000_000_000, Ordering::Relaxed);
                    let _ = at(now, |call| volume.work(call));
                    let _ = at(now, |call| volume.sync(call));
                }
            });
            scope.spawn(move || {
                while !ended.load(Ordering::Relaxed) {
                    for (thread, file) in (0..).zip(files) {
                        let mut bytes = vec![0; BLOCKS as usize * BLOCK];
                        let Ok(read) = at(0, |call| volume.read(call, *file, 0, &mut bytes)) else { continue };
                        for (block, bytes) in (0..).zip(bytes[..read.length].chunks_exact(BLOCK)) {
                            let step = u64::from_le_bytes(bytes[..8].try_into().unwrap());
                            assert!(step == 0 || step % BLOCKS == block, "step {step} in block {block}");
                            assert_eq!(bytes, content(thread, step));
                        }
                    }
                }
            });
            let synced = syncing.into_iter().map(|thread| thread.join().unwrap()).collect();
            ended.store(true, Ordering::Relaxed);
            synced
        });
        drop(volume);
        machine.lose_power(&mut random);
        let task = &Task::at(Time::ZERO);
        let mut sfs = machine.open().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(sfs.check(task).unwrap(), [], "seed {seed}");
        assert_eq!(sfs.read_only(), None, "seed {seed}");
        for ((thread, file), synced) in (0..).zip(&files).zip(&synced) {
            let mut bytes = vec![0; BLOCKS as usize * BLOCK];
            let length = sfs.read(task, *file, 0, &mut bytes).unwrap();
            // The step that was on its way may be there, or not.
            let is_after = |step: u64| {
                (0..)
                    .zip(bytes.chunks_exact(BLOCK))
                    .all(|(block, bytes)| bytes == content(thread, expected(step, block)))
            };
            assert!(
                is_after(*synced) || is_after(synced + 1),
                "seed {seed}: thread {thread} has synced {synced} steps, and its file of {length} bytes is of none after"
            );
        }
    }
}
