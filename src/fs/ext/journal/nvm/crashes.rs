//! Crashes of the journal before every store and fence of its memory and every write and flush of the device below.
//!
//! A line of memory that was not fenced survives or not, each for itself; so does a block of the device that was written
//! and not flushed. The rest must be the content of all blocks after a commit: the last that was acknowledged, or the
//! one that was under way.

use super::layout::{Hash, Shape, Superblock};
use super::{Checkpointing, FoundRegion, NvmJournal, NvmOptions, Scheme, Slots};
use crate::device::nvm::lines::Lines;
use crate::device::{Abilities, Account, BlockDevice, DeviceError, Lba};
use crate::fs::ext::blocks::Blocks;
use crate::fs::ext::journal::{Journal, TransactionId};
use crate::fs::ext::media::Media;
use crate::fs::volume::Timestamp;
use crate::label::{Content, Label};
use crate::random::Random;
use crate::task::Task;
use crate::time::Time;
use crate::units::BLOCK_BYTES;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

const UNIT: usize = BLOCK_BYTES as usize;
/// A block is a line: few lines are unfenced at a time.
const BLOCK: usize = 64;
const BLOCKS: u64 = 12;
/// Blocks lie in different blocks of the device, and in all partitions.
const STRIDE: u64 = 65;

/// A device whose unflushed writes survive a crash in any combination.
#[derive(Clone)]
struct Disk(Arc<Mutex<DiskState>>, Lines);

#[derive(Clone, Default)]
struct DiskState {
    live: BTreeMap<u64, Vec<u8>>,
    durable: BTreeMap<u64, Vec<u8>>,
    pending: Vec<(u64, Vec<u8>)>,
}

impl Disk {
    /// Counts an operation among those of the memory; true if the power is off.
    fn operation(&self) -> bool {
        crate::device::nvm::Nvm::store(&self.1, 0, &[]);
        self.1.is_cut()
    }

    /// The bytes that are left if `keeps` answers true for a write.
    fn left(&self, mut keeps: impl FnMut(usize) -> bool) -> BTreeMap<u64, Vec<u8>> {
        let state = self.0.lock().unwrap();
        let mut left = state.durable.clone();
        let kept = state.pending.iter().enumerate().filter(|(number, _)| keeps(*number));
        left.extend(kept.map(|(_, (unit, bytes))| (*unit, bytes.clone())));
        left
    }

    fn pending(&self) -> usize {
        self.0.lock().unwrap().pending.len()
    }
}

impl BlockDevice for Disk {
    fn blocks(&self) -> u64 {
        BLOCKS * STRIDE * BLOCK as u64 / BLOCK_BYTES + 1
    }

    fn block_width(&self) -> usize {
        UNIT
    }

    fn read(&self, first: Lba, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        let state = self.0.lock().unwrap();
        for (unit, bytes) in (first.0..).zip(buffer.chunks_exact_mut(UNIT)) {
            match state.live.get(&unit) {
                Some(live) => bytes.copy_from_slice(live),
                None => bytes.fill(0),
            }
        }
        Ok(at)
    }

    fn write(&self, first: Lba, buffer: &[u8], _: Label, at: Time) -> Result<Time, DeviceError> {
        let is_off = self.operation();
        let mut state = self.0.lock().unwrap();
        for (unit, bytes) in (first.0..).zip(buffer.chunks_exact(UNIT)) {
            state.live.insert(unit, bytes.to_vec());
            if !is_off {
                state.pending.push((unit, bytes.to_vec()));
            }
        }
        Ok(at)
    }

    fn discard(&self, _: Lba, _: u64, at: Time) -> Result<Time, DeviceError> {
        Ok(at)
    }

    fn flush(&self, at: Time) -> Result<Time, DeviceError> {
        if !self.operation() {
            let mut state = self.0.lock().unwrap();
            let pending = std::mem::take(&mut state.pending);
            state.durable.extend(pending);
        }
        Ok(at)
    }

    fn account(&self) -> Account {
        Account { station: "conv", ..Account::default() }
    }
}

impl Abilities for Disk {
    fn wrapped(&self) -> Option<&dyn BlockDevice> {
        None
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// A handle sets blocks to a byte.
    Set(Vec<u64>, u8),
    /// A handle frees a block.
    Free(u64),
    /// A freed block is written past the journal, and flushed.
    Reuse(u64, u8),
    Commit,
    Checkpoint,
}

/// Blocks that are not zeros: the byte that they hold, or `None` if nobody has promised anything.
type State = BTreeMap<u64, Option<u8>>;

#[derive(Clone, Copy, Debug)]
struct Setup {
    partitions: u32,
    slots: u64,
    scheme: Scheme,
    hash: Hash,
}

/// A journal, and the states that a crash may leave.
struct World {
    nvm: Lines,
    disk: Disk,
    media: Arc<Media>,
    journal: NvmJournal,
    now: State,
    states: Vec<State>,
    acknowledged: usize,
}

impl World {
    fn new(setup: Setup) -> World {
        let bytes = 16_384 + u64::from(setup.partitions) * setup.slots * (64 + BLOCK as u64);
        let nvm = Lines::new(bytes);
        let shape = Shape::of(bytes, setup.partitions, setup.hash, BLOCK, BLOCK);
        assert_eq!(shape.slots, setup.slots);
        let superblock =
            Superblock::in_use(None, shape, ([7; 16], [8; 16]), TransactionId(u32::MAX - 1), Default::default());
        superblock.write(&nvm);
        let disk = Disk(Arc::default(), nvm.clone());
        let media = Arc::new(Media::new(Box::new(disk.clone()), BLOCK));
        let below = (Arc::clone(&media), Arc::new(Blocks::new(None, usize::MAX)));
        let options =
            NvmOptions { partitions: None, hash: None, scheme: setup.scheme, slots: Slots::Atomic, renews: false };
        let checkpointing = Checkpointing { batch: 64, threads: None };
        let journal =
            NvmJournal::new(Arc::new(nvm.clone()), superblock, (&options, checkpointing), below, Timestamp(0));
        World { nvm, disk, media, journal, now: State::new(), states: vec![State::new()], acknowledged: 0 }
    }

    /// Does the steps until the power is off.
    fn run(&mut self, steps: &[Step]) {
        let task = Task::at(Time::ZERO);
        for step in steps {
            let (running, before) = (self.journal.running(), self.now.clone());
            match step {
                Step::Set(blocks, byte) => {
                    let handle = self.journal.begin(&task, blocks.len()).unwrap();
                    for block in blocks {
                        handle.set(block * STRIDE, Content::Metadata, &[*byte; BLOCK]);
                        self.now.insert(*block, Some(*byte));
                    }
                    handle.end();
                }
                Step::Free(block) => {
                    let number = block * STRIDE;
                    let handle = self.journal.begin(&task, 1).unwrap();
                    handle.free(number..number + 1, true);
                    handle.end();
                    self.now.insert(*block, None);
                }
                Step::Reuse(block, byte) => {
                    let label = Label::host(Content::Data);
                    self.media.write(&task, block * STRIDE, &[*byte; BLOCK], label).unwrap();
                    self.media.flush(&task).unwrap();
                    if !self.nvm.is_cut() {
                        self.now.insert(*block, Some(*byte));
                        self.states.last_mut().expect("one is the first").insert(*block, Some(*byte));
                    }
                }
                Step::Commit => self.journal.commit(&task, running).unwrap(),
                Step::Checkpoint => self.journal.checkpoint_now(&task).unwrap(),
            }
            // The transaction may have been closed to make room, before the handle of this step began.
            if self.journal.running() != running {
                self.states.push(before);
                if !self.nvm.is_cut() {
                    self.acknowledged = self.states.len() - 1;
                }
            }
            if self.nvm.is_cut() {
                return;
            }
        }
    }

    /// Checks the state after a crash, in memory and on the device.
    fn check(&self, memory: Vec<u8>, mut disk: BTreeMap<u64, Vec<u8>>, what: &dyn Fn() -> String) {
        let nvm = Lines::of(memory);
        let region = FoundRegion::find(&nvm).unwrap().expect("its superblock is durable");
        let found = contents(&nvm, &region, &disk, what);
        let fits = |state: &State| {
            let mut all = found.iter().zip(0..BLOCKS);
            all.all(|(byte, block)| state.get(&block).copied().unwrap_or(Some(0)).is_none_or(|known| known == *byte))
        };
        let allowed = &self.states[self.acknowledged..];
        assert!(allowed.iter().any(fits), "{}: {found:?} is none of {allowed:?}", what());
        // A crash after a part of the replay was written home: all of it is replayed again, and gives the same.
        let replayable = region.replayable(&nvm);
        for (block, bytes) in replayable.blocks.iter().step_by(2) {
            let at = *block as usize * BLOCK % UNIT;
            disk.entry(block * BLOCK as u64 / BLOCK_BYTES).or_insert_with(|| vec![0; UNIT])[at..at + BLOCK]
                .copy_from_slice(bytes);
        }
        assert_eq!(contents(&nvm, &region, &disk, what), found, "{}, replayed twice", what());
    }

    /// Checks all combinations of lines and writes that may survive if there are at most `most`, or else so many at random.
    fn check_crashes(&self, most: u64, random: &mut Random, what: &dyn Fn() -> String) {
        let pending = self.disk.pending() as u32;
        let disks = (pending < 16).then(|| 1u64 << pending);
        let count = self.nvm.combinations().and_then(|lines| lines.checked_mul(disks?)).filter(|count| *count <= most);
        if count.is_some() {
            for memory in self.nvm.all_crashes(most).expect("there are fewer") {
                for kept in 0..1u64 << pending {
                    self.check(memory.clone(), self.disk.left(|number| kept >> number & 1 == 1), what);
                }
            }
            return;
        }
        for sample in 0..most {
            // Words of a line may be torn apart: the checksums say so.
            let memory = if sample % 4 == 0 { self.nvm.torn_sample(random) } else { self.nvm.sample(random) };
            let kept: Vec<bool> = (0..pending).map(|_| random.below(2) == 1).collect();
            self.check(memory, self.disk.left(|number| kept[number]), what);
        }
    }
}

/// The byte of each block after a replay.
fn contents(nvm: &Lines, region: &FoundRegion, disk: &BTreeMap<u64, Vec<u8>>, what: &dyn Fn() -> String) -> Vec<u8> {
    let replayable = region.replayable(nvm);
    assert!(replayable.damaged.is_empty(), "{}: {:?}", what(), replayable.damaged);
    let byte_of = |block: u64| {
        let number = block * STRIDE;
        let at = number as usize * BLOCK % UNIT;
        let home = disk.get(&(number * BLOCK as u64 / BLOCK_BYTES)).map(|unit| &unit[at..at + BLOCK]);
        let bytes = replayable.blocks.get(&number).map(|bytes| &bytes[..]).or(home).unwrap_or(&[0; BLOCK]);
        assert!(bytes.iter().all(|byte| *byte == bytes[0]), "{}: block {block} is torn", what());
        bytes[0]
    };
    (0..BLOCKS).map(byte_of).collect()
}

const SCHEMES: [Scheme; 2] = [Scheme::Helping, Scheme::Paper];
const HASHES: [Hash; 2] = [Hash::Modulo, Hash::Multiplicative];

/// Several handles in a transaction, blocks that change again, checkpoints with commits behind them, and freed blocks that
/// are used again: past the journal, and in it.
fn short_history() -> Vec<Step> {
    use Step::{Checkpoint, Commit, Free, Reuse, Set};
    vec![
        Set(vec![1, 2], 1),
        Set(vec![2, 3], 2),
        Commit,
        Set(vec![1], 3),
        Commit,
        Checkpoint,
        Set(vec![2, 4], 4),
        Free(3),
        Commit,
        Reuse(3, 5),
        Set(vec![1, 5], 6),
        Commit,
        Free(1),
        Checkpoint,
        Commit,
        Set(vec![3], 7),
        Set(vec![2], 8),
        Commit,
        Reuse(1, 9),
        Checkpoint,
        Set(vec![4], 10),
        Commit,
    ]
}

#[test]
fn every_crash_of_a_short_history_leaves_the_state_of_a_commit() {
    for (scheme, hash) in SCHEMES.into_iter().flat_map(|scheme| HASHES.map(|hash| (scheme, hash))) {
        let setup = Setup { partitions: 2, slots: 24, scheme, hash };
        let mut whole = World::new(setup);
        let (first, steps) = (whole.nvm.operations(), short_history());
        whole.run(&steps);
        for cut in first..=whole.nvm.operations() {
            let mut world = World::new(setup);
            world.nvm.cut_before(cut);
            world.run(&steps);
            let mut random = Random::new(cut, "short history");
            world.check_crashes(64, &mut random, &|| format!("{setup:?}, cut before operation {cut}"));
        }
    }
}

/// Steps at random. Freed blocks are written past the journal once that is durable.
fn long_history(random: &mut Random, count: u32) -> Vec<Step> {
    let (mut freed, mut usable): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
    let mut steps = Vec::new();
    for number in 0..count {
        let byte = (number % 250 + 1) as u8;
        let step = match random.below(10) {
            0 | 1 => Step::Commit,
            2 => Step::Checkpoint,
            3 => {
                let block = random.below(BLOCKS);
                if freed.contains(&block) || usable.contains(&block) {
                    continue;
                }
                freed.push(block);
                Step::Free(block)
            }
            4 if !usable.is_empty() => {
                Step::Reuse(usable.swap_remove(random.below(usable.len() as u64) as usize), byte)
            }
            _ => {
                let mut blocks: Vec<u64> = (0..2).map(|_| random.below(BLOCKS)).collect();
                blocks.retain(|block| !freed.contains(block));
                blocks.dedup();
                usable.retain(|block| !blocks.contains(block));
                Step::Set(blocks, byte)
            }
        };
        if matches!(step, Step::Commit) {
            usable.append(&mut freed);
        }
        steps.push(step);
    }
    steps
}

/// Slots and numbers of transactions wrap around, and handles wait for checkpoints.
#[test]
fn crashes_at_random_of_long_histories_leave_the_state_of_a_commit() {
    let mut waits = 0;
    for seed in 0..40 {
        let mut random = Random::new(seed, "long history");
        let setup = Setup {
            partitions: 1 + random.below(7) as u32,
            slots: 24 + random.below(8),
            scheme: SCHEMES[random.below(2) as usize],
            hash: HASHES[random.below(2) as usize],
        };
        let steps = long_history(&mut random, 150);
        let mut whole = World::new(setup);
        let first = whole.nvm.operations();
        whole.run(&steps);
        waits += whole.journal.counts().waits;
        for _ in 0..6 {
            let cut = first + random.below(whole.nvm.operations() - first);
            let mut world = World::new(setup);
            world.nvm.cut_before(cut);
            world.run(&steps);
            world.check_crashes(8, &mut random, &|| format!("seed {seed}, {setup:?}, cut before operation {cut}"));
        }
    }
    assert!(waits > 0, "some handles waited for room");
}

/// Damage below a commit is reported, at any place.
#[test]
fn damage_below_a_commit_is_reported_and_never_taken_for_a_state() {
    let mut reported = 0;
    for seed in 0..60 {
        let mut random = Random::new(seed, "damage");
        let setup = Setup { partitions: 4, slots: 24, scheme: Scheme::Helping, hash: Hash::Modulo };
        let mut world = World::new(setup);
        world.run(&long_history(&mut random, 30));
        let whole = world.nvm.crash(|_| true);
        let used: Vec<usize> = (16_384..whole.len()).filter(|at| whole[*at] != 0).collect();
        let Some(at) = used.get(random.below(used.len().max(1) as u64) as usize) else { continue };
        let mut damaged = whole.clone();
        damaged[*at] ^= 1 << random.below(8);
        let memory = Lines::of(damaged.clone());
        let found = FoundRegion::find(&memory).unwrap().unwrap().replayable(&memory);
        if found.damaged.is_empty() {
            // It is in a slot that no commit covers, or that is home.
            world.check(damaged, world.disk.left(|_| true), &|| format!("seed {seed}, byte {at}"));
        } else {
            reported += 1;
        }
    }
    assert!(reported > 5, "{reported}");
}
