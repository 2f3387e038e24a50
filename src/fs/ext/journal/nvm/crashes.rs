//! Losses of power: the memory keeps unfenced lines in any combination, and the device unflushed blocks.
//!
//! A history changes blocks in handles, commits, frees and checkpoints. The power is cut before one of its stores or
//! fences. What a recovery finds then, over the blocks that the device has, must be the state after some commit: the last
//! that was acknowledged before the cut, or a later one.

use super::layout::{Hash, Shape, Superblock};
use super::options::{NvmOptions, Scheme};
use super::{FoundRegion, NvmJournal};
use crate::device::nvm::Nvm;
use crate::device::nvm::lines::Lines;
use crate::device::{Abilities, Account, BlockDevice, DeviceError, Lba, STAMP_BYTES};
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

const BLOCKS: u64 = 16;

/// Blocks by number.
type Contents = BTreeMap<u64, Vec<u8>>;

/// A device that loses what was not flushed, and takes nothing once the power is cut.
#[derive(Clone)]
struct Losing {
    width: usize,
    lines: Lines,
    /// Durable blocks, and those that were written since the last flush.
    state: Arc<Mutex<(Contents, Contents)>>,
}

impl Losing {
    /// The blocks that a cut leaves.
    fn after_the_cut(&self, random: &mut Random) -> Contents {
        let (mut durable, unflushed) = self.state.lock().unwrap().clone();
        durable.extend(unflushed.into_iter().filter(|_| random.below(2) == 0));
        durable
    }
}

impl BlockDevice for Losing {
    fn blocks(&self) -> u64 {
        BLOCKS
    }

    fn block_width(&self) -> usize {
        self.width
    }

    fn read(&self, _: Lba, _: &mut [u8], _: Time) -> Result<Time, DeviceError> {
        unreachable!("changed blocks stay in memory")
    }

    fn write(&self, first: Lba, buffer: &[u8], _: Label, at: Time) -> Result<Time, DeviceError> {
        if !self.lines.is_cut() {
            let blocks = (first.0..).zip(buffer.chunks_exact(self.width).map(<[u8]>::to_vec));
            self.state.lock().unwrap().1.extend(blocks);
        }
        Ok(at)
    }

    fn discard(&self, _: Lba, _: u64, at: Time) -> Result<Time, DeviceError> {
        Ok(at)
    }

    fn flush(&self, at: Time) -> Result<Time, DeviceError> {
        if !self.lines.is_cut() {
            let (durable, unflushed) = &mut *self.state.lock().unwrap();
            durable.append(unflushed);
        }
        Ok(at)
    }

    fn account(&self) -> Account {
        Account::default()
    }
}

impl Abilities for Losing {
    fn wrapped(&self) -> Option<&dyn BlockDevice> {
        None
    }
}

/// Blocks that a transaction has left, by number; `None` if freed.
type State = BTreeMap<u64, Option<u32>>;

/// A history, its memory and device, and what it has acknowledged.
struct World {
    lines: Lines,
    device: Losing,
    /// The state after each commit, and if it was acknowledged before the cut.
    states: Vec<(State, bool)>,
}

/// Runs a history of so many steps. The power is cut before operation `cut`.
fn history(seed: u64, width: usize, steps: u64, scheme: Scheme, cut: u64) -> World {
    let shape_bytes = 16_384 + 4 * 64 * (64 + BLOCK_BYTES);
    let lines = Lines::new(shape_bytes);
    let hash = if seed.is_multiple_of(2) { Hash::Modulo } else { Hash::Multiplicative };
    let shape = Shape::of(shape_bytes, 4, hash, BLOCK_BYTES as usize, width);
    let first = TransactionId(u32::MAX - 2);
    let superblock = Superblock::in_use(None, shape, [1; 16], [2; 16], first);
    superblock.write(&lines);
    lines.cut_before(lines.operations() + cut);
    let device = Losing { width, lines: lines.clone(), state: Arc::default() };
    let media = Arc::new(Media::new(Box::new(device.clone()), BLOCK_BYTES as usize));
    let options = NvmOptions { partitions: None, hash: None, scheme, checkpointers: Some(2), renews: false };
    let nvm: Arc<dyn Nvm> = Arc::new(lines.clone());
    let journal = NvmJournal::new(nvm, superblock, &options, (media, Arc::new(Blocks::new(None))), Timestamp(0));
    let mut world = World { lines, device, states: vec![(State::new(), true)] };
    let (task, mut random) = (Task::at(Time::ZERO), Random::new(seed, "history"));
    let mut running = State::new();
    for step in 1..=steps as u32 {
        match random.below(8) {
            0..=3 => {
                let handle = journal.begin(&task, 3).unwrap();
                for _ in 0..1 + random.below(3) {
                    let block = random.below(BLOCKS);
                    // A freed block is used again only after the commit, and here not before the history ends.
                    if running.get(&block).is_some_and(Option::is_none) {
                        continue;
                    }
                    handle.set(block, Content::Data, step.to_le_bytes().repeat(width / STAMP_BYTES).into());
                    running.insert(block, Some(step));
                }
            }
            4 if width > STAMP_BYTES => {
                let block = random.below(BLOCKS);
                if running.get(&block).is_some_and(Option::is_some) {
                    journal.begin(&task, 1).unwrap().free(block..block + 1, true);
                    running.insert(block, None);
                }
            }
            5 => journal.checkpoint_now(&task).unwrap(),
            _ => {
                journal.commit(&task, journal.running()).unwrap();
                let is_acknowledged = !world.lines.is_cut();
                world.states.push((running.clone(), is_acknowledged));
            }
        }
    }
    world
}

impl World {
    /// Checks what a recovery finds in memory with these contents.
    fn check(&self, contents: Vec<u8>, random: &mut Random, what: &str) {
        let memory = Lines::of(contents);
        let found = FoundRegion::find(&memory).unwrap().unwrap_or_else(|| panic!("{what}: no superblock"));
        let replayable = found.replayable(&memory);
        assert!(replayable.damaged.is_empty(), "{what}: {:?}", replayable.damaged);
        let again = found.replayable(&memory);
        assert_eq!(replayable.blocks, again.blocks, "{what}: a second recovery finds the same");
        let mut blocks = self.device.after_the_cut(random);
        blocks.extend(replayable.blocks.iter().map(|(block, bytes)| (*block, bytes.to_vec())));
        let value = |block: &u64| {
            let bytes = blocks.get(block)?;
            let word = &bytes[..STAMP_BYTES];
            assert!(bytes.chunks_exact(STAMP_BYTES).all(|other| other == word), "{what}: block {block} is a mixture");
            Some(u32::from_le_bytes(word.try_into().unwrap()))
        };
        let last = self.states.iter().rposition(|(_, is_acknowledged)| *is_acknowledged).unwrap();
        // A freed block may hold anything.
        let is_state = |state: &State| {
            (0..BLOCKS).all(|block| match state.get(&block) {
                Some(None) => true,
                Some(Some(wanted)) => value(&block) == Some(*wanted),
                None => value(&block).is_none(),
            })
        };
        let is_one = self.states[last..].iter().any(|(state, _)| is_state(state));
        assert!(is_one, "{what}: {blocks:?} is no state after commit {last}");
    }
}

/// Stores and fences of a history that is not cut.
fn operations(seed: u64, width: usize, steps: u64, scheme: Scheme) -> u64 {
    history(seed, width, steps, scheme, u64::MAX / 2).lines.operations()
}

/// Blocks that are stamps take a line each: so all combinations of lines can be tried, at each store and fence.
#[test]
fn every_loss_in_small_histories_leaves_a_committed_state() {
    let mut combinations = 0;
    for (seed, scheme) in (0..24).zip([Scheme::Helping, Scheme::Paper].into_iter().cycle()) {
        for cut in 0..operations(seed, STAMP_BYTES, 14, scheme) {
            let world = history(seed, STAMP_BYTES, 14, scheme, cut);
            let mut random = Random::new(seed, "losses");
            let all = world.lines.all_crashes(1 << 14).expect("a handle has few lines");
            for (number, contents) in all.enumerate() {
                world.check(contents, &mut random, &format!("seed {seed}, cut {cut}, combination {number}"));
                combinations += 1;
            }
        }
    }
    assert!(combinations > 5_000, "{combinations}");
}

#[test]
fn random_losses_in_long_histories_leave_a_committed_state() {
    let seeds: u64 = std::env::var("NVM_CRASHES").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(60);
    for (seed, scheme) in (1000..1000 + seeds).zip([Scheme::Helping, Scheme::Paper].into_iter().cycle()) {
        let mut random = Random::new(seed, "losses");
        let all = operations(seed, BLOCK_BYTES as usize, 200, scheme);
        for _ in 0..6 {
            let cut = random.below(all);
            let world = history(seed, BLOCK_BYTES as usize, 200, scheme, cut);
            for _ in 0..6 {
                let contents = match random.below(2) {
                    0 => world.lines.sample(&mut random),
                    _ => world.lines.torn_sample(&mut random),
                };
                world.check(contents, &mut random, &format!("seed {seed}, cut {cut}"));
            }
        }
    }
}

/// Damage below a commit is reported, whatever it hits.
#[test]
fn damage_below_a_commit_is_reported_and_never_taken_for_a_state() {
    let mut reported = 0;
    for seed in 0..60 {
        let world = history(seed, STAMP_BYTES, 30, Scheme::Helping, u64::MAX / 2);
        let mut random = Random::new(seed, "damage");
        let whole = world.lines.crash(|_| true);
        let used: Vec<usize> = (16_384..whole.len()).filter(|at| whole[*at] != 0).collect();
        let Some(at) = used.get(random.below(used.len().max(1) as u64) as usize) else { continue };
        let mut damaged = whole.clone();
        damaged[*at] ^= 1 << random.below(8);
        let memory = Lines::of(damaged);
        let found = FoundRegion::find(&memory).unwrap().unwrap().replayable(&memory);
        if found.damaged.is_empty() {
            // It is in a slot that no commit covers, or that is home.
            world.check(memory.crash(|_| true), &mut random, &format!("seed {seed}, byte {at}"));
        } else {
            reported += 1;
        }
    }
    assert!(reported > 5, "{reported}");
}
