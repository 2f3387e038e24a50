//! Random commands on blocks by several queues, until their target ends, and the versions that may be found after that.

use super::versions::{BLOCKS, Kind, Oracle, content};
use super::{Command, Queue};
use flashpath::random::Random;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Writing queues. Each has its own blocks, so that the order of writes is known.
pub const WRITERS: u64 = 3;
/// The longest write, in blocks: the limit.
const LONGEST: u64 = 128;
const DURABLE: u32 = 1 << 30;
const DEALLOCATES: u32 = 1 << 25;
/// A command of placement.
const PLACED: u32 = 2 << 20;
const COMPARE_FAILURE: u16 = 0x285;

/// A command under way, and what its answer tells.
enum Sent {
    /// A flush, and the versions that were answered before.
    Flush(Vec<u64>),
    /// A write of a version.
    Write { blocks: Range<u64>, version: u64, is_durable: bool },
    /// A comparison with this status.
    Compare(u16),
}

/// What a queue writes to.
#[derive(Clone, Copy)]
pub struct Target<'o> {
    pub oracle: &'o Mutex<Oracle>,
    /// Placement identifiers; 0 without placement.
    pub handles: u64,
    /// Answers so far, of all queues.
    pub answers: &'o AtomicU64,
    /// True when commands may fail.
    pub may_fail: &'o (dyn Fn() -> bool + Sync),
}

/// One queue's commands (writes, zeros, deallocations, comparisons, flushes) until its target is gone, or fails.
pub fn write(mut queue: Queue, target: Target, writer: u64, mut random: Random) {
    let Target { oracle, answers, .. } = target;
    loop {
        let mut sent = BTreeMap::new();
        for _ in 0..1 + random.below(8) {
            let (command, data, what) = command(target, writer, sent.len() as u64, &mut random);
            let Ok(id) = queue.submit(command, &data, 0) else { return };
            sent.insert(id, what);
        }
        while !sent.is_empty() {
            let Ok(answer) = queue.complete() else { return };
            let what = sent.remove(&answer.id).unwrap();
            let expected = if let Sent::Compare(status) = what { status } else { 0 };
            if answer.status != expected {
                assert!((target.may_fail)(), "status {:x} instead of {expected:x}", answer.status);
                return;
            }
            let mut oracle = oracle.lock().unwrap();
            match what {
                Sent::Compare(_) => {}
                Sent::Flush(answered) => oracle.flushed(&answered),
                Sent::Write { blocks, version, is_durable } => {
                    for block in blocks {
                        let known = &mut oracle.blocks[block as usize];
                        known.answered = version;
                        if is_durable {
                            known.durable = version;
                        }
                    }
                }
            }
            answers.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// A random command with its data, and what its answer tells. Commands that are under way at once may be done in any order: each of
/// `place` has blocks of its own.
fn command(target: Target, writer: u64, place: u64, random: &mut Random) -> (Command, Vec<u8>, Sent) {
    let mut oracle = target.oracle.lock().unwrap();
    if random.below(6) == 0 {
        return (Command::new(0, 1), Vec::new(), Sent::Flush(oracle.answered()));
    }
    let (own, part) = (BLOCKS / WRITERS, BLOCKS / WRITERS / 8);
    let count = 1 + if random.below(8) == 0 { random.below(LONGEST) } else { random.below(4) };
    let count = count.min(part);
    let first = writer * own + place * part + random.below(part - count + 1);
    let blocks = first..first + count;
    if random.below(8) == 0 {
        let mut data: Vec<u8> = blocks.flat_map(|block| oracle.blocks[block as usize].newest(block)).collect();
        let differs = random.below(2) == 0;
        if differs {
            let at = random.below(data.len() as u64) as usize;
            data[at] ^= 1;
        }
        return (
            Command::new(5, 1).blocks(first, count),
            data,
            Sent::Compare(if differs { COMPARE_FAILURE } else { 0 }),
        );
    }
    let kind = match random.below(16) {
        0 => Kind::Zeros,
        1 | 2 => Kind::Deallocated,
        _ => Kind::Bytes,
    };
    let asks_durable = random.below(8) == 0;
    oracle.version += 1;
    let version = oracle.version;
    blocks.clone().for_each(|block| oracle.blocks[block as usize].asked.push((version, kind)));
    let fields = (count as u32 - 1) | if asks_durable { DURABLE } else { 0 };
    let is_durable = asks_durable || oracle.writes_through;
    let write = |is_durable| Sent::Write { blocks: blocks.clone(), version, is_durable };
    match kind {
        Kind::Zeros => (Command::new(8, 1).blocks(first, count).word(12, fields), Vec::new(), write(is_durable)),
        Kind::Deallocated if random.below(2) == 0 => {
            let command = Command::new(8, 1).blocks(first, count).word(12, fields | DEALLOCATES);
            (command, Vec::new(), write(asks_durable))
        }
        Kind::Deallocated => {
            // Two ranges, or one.
            let middle = first + count.div_ceil(2);
            let ranges: Vec<Range<u64>> =
                [first..middle, middle..first + count].into_iter().filter(|range| !range.is_empty()).collect();
            let described = |range: &Range<u64>| {
                let length = (range.end - range.start) as u32;
                [[0; 4], length.to_le_bytes()].concat().into_iter().chain(range.start.to_le_bytes())
            };
            let command = Command::new(9, 1).word(10, ranges.len() as u32 - 1).word(11, 1 << 2);
            (command, ranges.iter().flat_map(described).collect(), write(false))
        }
        Kind::Bytes => {
            let data = blocks.clone().flat_map(|block| content(block, version, kind)).collect();
            let command = Command::new(1, 1).blocks(first, count).word(12, fields);
            let command = match target.handles {
                0 => command,
                handles => command.word(12, fields | PLACED).word(13, (random.below(handles) as u32) << 16),
            };
            (command, data, write(is_durable))
        }
    }
}
