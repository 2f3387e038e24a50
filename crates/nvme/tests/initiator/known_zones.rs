//! Random commands on zones, with and without random write areas, and the states that may be found after the target has ended: one
//! that the zone had since its last durable one, as a whole. In an area each block has one of its versions.

use super::{Answer, Command, Ended, Queue};
use flashpath::random::Random;

/// Bytes of a block.
const BLOCK: usize = 4096;
/// Blocks of a zone: its size, and its capacity.
pub const ZONE: u64 = 256;
pub const CAPACITY: u64 = 200;
/// Blocks of an area, and the granularity of its flushes.
pub const AREA: u64 = 16;
pub const AREA_FLUSH: u64 = 4;
/// The options of such a drive.
pub const OPTIONS: &str = "zone=1M,capacity=800K,max-open=0,max-active=0,zrwa=64K,zrwa-flush=16K,timing=off";

/// A zone: a number stands for each block's content, 0 for zeros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The number of its resets.
    life: u64,
    pub pointer: u64,
    pub is_full: bool,
    pub has_area: bool,
    blocks: Vec<u64>,
}

impl Snapshot {
    fn empty(life: u64) -> Snapshot {
        Snapshot { life, pointer: 0, is_full: false, has_area: false, blocks: vec![0; CAPACITY as usize] }
    }

    /// The same after a write of a version from this block on.
    fn written(&self, from: u64, count: u64, version: u64) -> Snapshot {
        let mut next = self.clone();
        next.blocks[from as usize..(from + count) as usize].fill(version);
        let end = from + count;
        if self.has_area {
            next.pointer += end.saturating_sub(self.pointer + AREA).next_multiple_of(AREA_FLUSH);
        } else {
            next.pointer = end;
        }
        next.filled()
    }

    fn filled(mut self) -> Snapshot {
        if self.pointer == CAPACITY {
            (self.is_full, self.has_area) = (true, false);
        }
        self
    }
}

/// The content of a version of a block.
fn content(block: u64, version: u64) -> Vec<u8> {
    let words = [block, version, block.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ version];
    let words = if version == 0 { [0; 3] } else { words };
    words.iter().flat_map(|word| word.to_le_bytes()).cycle().take(BLOCK).collect()
}

/// A zone's states since the last one that must be there, the newest last.
#[derive(Clone, Debug)]
pub struct KnownZone {
    zone: u64,
    history: Vec<Snapshot>,
}

/// A command, its data, and the state to which it leads.
pub struct Step {
    pub command: Command,
    pub data: Vec<u8>,
    next: Snapshot,
}

impl KnownZone {
    pub fn new(zone: u64) -> KnownZone {
        KnownZone { zone, history: vec![Snapshot::empty(0)] }
    }

    fn now(&self) -> &Snapshot {
        self.history.last().expect("a zone has a state")
    }

    /// A random command; `version` is one that no block has.
    pub fn step(&self, random: &mut Random, version: u64) -> Step {
        let (now, first) = (self.now(), self.zone * ZONE);
        let send = |block: u64, action: u32| Command::new(0x79, 1).blocks(block, 1).word(12, 0).word(13, action);
        let alone = |command: Command, next: Snapshot| Step { command, data: Vec::new(), next };
        let write = |from: u64, count: u64, is_append: bool| {
            let data = (from..from + count).flat_map(|block| content(first + block, version)).collect();
            let command = match is_append {
                true => Command::new(0x7d, 1).blocks(first, count),
                false => Command::new(1, 1).blocks(first + from, count),
            };
            Step { command, data, next: now.written(from, count, version) }
        };
        if now.is_full || random.below(20) == 0 {
            return alone(send(first, 4), Snapshot::empty(now.life + 1));
        }
        if random.below(40) == 0 {
            return alone(send(first, 2), Snapshot { is_full: true, has_area: false, ..now.clone() });
        }
        if now.has_area {
            let area_end = (now.pointer + AREA).min(CAPACITY);
            match random.below(10) {
                0 => return alone(send(first, 1), now.clone()),
                1 | 2 => {
                    let end = (now.pointer + AREA_FLUSH * (1 + random.below(AREA / AREA_FLUSH))).min(area_end);
                    let next = Snapshot { pointer: end, ..now.clone() }.filled();
                    return alone(send(first + end - 1, 0x11), next);
                }
                _ => {}
            }
            let from = (now.pointer + random.below(AREA + 8)).min(CAPACITY - 1);
            let end = (now.pointer + 2 * AREA).min(CAPACITY);
            return write(from, (1 + random.below(8)).min(end - from), false);
        }
        if now.pointer == 0 && random.below(2) == 0 {
            return alone(send(first, 3 | 1 << 9), Snapshot { has_area: true, ..now.clone() });
        }
        write(now.pointer, (1 + random.below(32)).min(CAPACITY - now.pointer), random.below(2) == 0)
    }

    /// The step is under way: it may be done, or not.
    pub fn asked(&mut self, step: &Step) {
        self.history.push(step.next.clone());
    }

    /// All that was done must be there from now on: it was flushed, or the epoch lasts.
    pub fn is_kept(&mut self) {
        self.history.drain(..self.history.len() - 1);
    }

    /// Checks the zone as a queue reports and reads it, and takes that as its state. True if it was newer than it had to be.
    pub fn check(&mut self, queue: &mut Queue, context: &str) -> bool {
        let (state, mut found) = describe(queue, self.zone);
        let context = format!("{context}: zone {}", self.zone);
        assert!(matches!(state, 1..=4 | 0xe), "{context} is in state {state:x}");
        let first = self.zone * ZONE;
        let bytes: Vec<u8> =
            (0..CAPACITY).step_by(100).flat_map(|from| queue.read(1, first + from, 100.min(CAPACITY - from))).collect();
        let holds =
            |block: usize, version: u64| bytes[block * BLOCK..][..BLOCK] == content(first + block as u64, version);
        // Blocks from the write pointer on are zeros, unless they are in an area.
        let fixed = if found.has_area { found.pointer as usize } else { CAPACITY as usize };
        let is_like = |version: &&Snapshot| {
            let states = (version.is_full, version.has_area) == (found.is_full, found.has_area);
            states
                && (found.is_full || version.pointer == found.pointer)
                && (0..fixed).all(|block| holds(block, version.blocks[block]))
        };
        let like = self.history.iter().rev().find(is_like).unwrap_or_else(|| {
            let all: Vec<_> =
                self.history.iter().map(|old| (old.life, old.pointer, old.is_full, old.has_area)).collect();
            panic!("{context} is at {}, full {}, area {}: {all:?}", found.pointer, found.is_full, found.has_area)
        });
        let newest = |block: usize| {
            let of_area = self.history.iter().rev().filter(|version| version.has_area && version.life == like.life);
            let mut versions = of_area.map(|version| version.blocks[block]);
            let known = if block < fixed { Some(like.blocks[block]) } else { versions.find(|one| holds(block, *one)) };
            known.unwrap_or_else(|| panic!("{context}: block {block} has none of its versions, {like:?}"))
        };
        found = Snapshot { blocks: (0..CAPACITY as usize).map(newest).collect(), ..like.clone() };
        let is_newer = found != self.history[0];
        self.history = vec![found];
        is_newer
    }
}

/// The number of a zone's state, and its report.
fn describe(queue: &mut Queue, zone: u64) -> (u8, Snapshot) {
    let command = Command::new(0x7a, 1).blocks(zone * ZONE, 1).word(12, 31).word(13, 1 << 16);
    let answer = queue.run(command, &[], 128);
    assert_eq!(answer.status, 0);
    let description = &answer.data[64..];
    let state = description[1] >> 4;
    let pointer = u64::from_le_bytes(description[24..32].try_into().unwrap());
    let is_full = state == 0xe;
    let pointer = if is_full { CAPACITY } else { pointer - zone * ZONE };
    (state, Snapshot { pointer, is_full, has_area: description[2] & 1 << 3 != 0, ..Snapshot::empty(0) })
}

/// Sends a flush of the namespace.
pub fn flush(queue: &mut Queue) -> Result<Answer, Ended> {
    queue.try_run(Command::new(0, 1), &[], 0)
}
