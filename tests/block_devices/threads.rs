//! Requests of several threads at once.
//!
//! A block repeats eight bytes: the thread, and the number of its write. So a block with parts of two writes is
//! detected, and one older than an earlier read.

use crate::table::{Opened, rows};
use crate::{BLOCK, budget, check_account};
use flashpath::device::{BlockDevice, Lba};
use flashpath::label::{Content, Label};
use flashpath::random::Random;
use flashpath::time::Time;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

const THREADS: u64 = 4;
/// Blocks used by the threads.
const REACH: u64 = 64;
const DATA: Label = Label::host(Content::Data);

/// The word of a thread's n-th write, counted from 1.
pub fn word(thread: u64, number: u64) -> u64 {
    thread << 48 | number
}

/// The thread and the number of a word; `None` for zeros.
pub fn written_by(word: u64) -> Option<(u64, u64)> {
    (word != 0).then_some((word >> 48, word & ((1 << 48) - 1)))
}

pub fn filled(word: u64, blocks: u64) -> Vec<u8> {
    word.to_le_bytes().repeat(blocks as usize * BLOCK / 8)
}

/// The word of a block, which must fill it.
pub fn word_of(name: &str, block: &[u8]) -> u64 {
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    let mut words: Vec<u64> = block.chunks_exact(8).map(word).collect();
    words.dedup();
    assert_eq!(words.len(), 1, "{name}: a block of several writes: {words:x?}");
    words[0]
}

/// Blocks requested by all threads together.
#[derive(Default)]
struct Asked {
    written: AtomicU64,
    read: AtomicU64,
}

impl Asked {
    fn write(&self, device: &dyn BlockDevice, first: u64, blocks: u64, word: u64, at: Time) {
        device.write(Lba(first), &filled(word, blocks), DATA, at).unwrap();
        self.written.fetch_add(blocks, Relaxed);
    }

    fn read(&self, name: &str, device: &dyn BlockDevice, first: u64, blocks: u64, at: Time) -> Vec<u64> {
        let mut bytes = vec![0; blocks as usize * BLOCK];
        device.read(Lba(first), &mut bytes, at).unwrap();
        self.read.fetch_add(blocks, Relaxed);
        bytes.chunks_exact(BLOCK).map(|block| word_of(name, block)).collect()
    }
}

fn range(random: &mut Random, reach: u64) -> (u64, u64) {
    let first = random.below(reach);
    (first, 1 + random.below((reach - first).min(5)))
}

/// Each thread uses every fourth block: neighbours in a page, a zone or a chunk belong to others.
fn alone(name: &str, device: &dyn BlockDevice, asked: &Asked, thread: u64, rounds: u64, seed: u64) {
    let mut random = Random::new(seed, &format!("thread {thread}"));
    let mut newest = vec![0; REACH as usize];
    for number in 1..=rounds {
        let (own, at) = (random.below(REACH), Time(number * 1000));
        let block = own * THREADS + thread - 1;
        match random.below(8) {
            0 => {
                device.discard(Lba(block), 1, at).unwrap();
                newest[own as usize] = 0;
            }
            1 => drop(device.flush(at).unwrap()),
            2 => drop(device.work(at).unwrap()),
            3..5 => assert_eq!(asked.read(name, device, block, 1, at), [newest[own as usize]], "{name}: block {block}"),
            _ => {
                newest[own as usize] = word(thread, number);
                asked.write(device, block, 1, newest[own as usize], at);
            }
        }
    }
    for (own, newest) in newest.into_iter().enumerate() {
        let block = own as u64 * THREADS + thread - 1;
        assert_eq!(asked.read(name, device, block, 1, Time(1 << 40)), [newest], "{name}: block {block} at the end");
    }
}

/// All threads write the same blocks. Returns the number of this thread's last write of each block.
fn together(name: &str, device: &dyn BlockDevice, asked: &Asked, thread: u64, rounds: u64, seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed, &format!("thread {thread}"));
    let mut last = vec![0; REACH as usize];
    for number in 1..=rounds {
        let ((first, blocks), at) = (range(&mut random, REACH), Time(number * 1000));
        match random.below(8) {
            0 => drop(device.flush(at).unwrap()),
            1 => drop(device.work(at).unwrap()),
            2..4 => {
                for (block, found) in (first..).zip(asked.read(name, device, first, blocks, at)) {
                    let Some((by, found)) = written_by(found) else {
                        assert_eq!(last[block as usize], 0, "{name}: block {block} was written, but reads as zeros");
                        continue;
                    };
                    // Another thread may have written since; of the thread's own writes only the newest is possible.
                    let is_possible = by != thread || found == last[block as usize];
                    assert!(is_possible, "{name}: thread {thread} reads its old write {found} of block {block}");
                }
            }
            _ => {
                asked.write(device, first, blocks, word(thread, number), at);
                last[first as usize..(first + blocks) as usize].fill(number);
            }
        }
    }
    last
}

/// Signals the end of a thread, even after a panic.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

fn on_threads<T: Send>(work: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (1..=THREADS).map(|thread| scope.spawn(move || work(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn check(opened: &Opened, asked: &Asked) {
    check_account(opened, asked.written.load(Relaxed), asked.read.load(Relaxed));
}

#[test]
fn threads_with_separate_blocks_do_not_affect_each_other() {
    for row in rows() {
        let mut has_budget = budget(3);
        for seed in (0..).take_while(|_| has_budget()) {
            let (opened, asked) = (row.open(), Asked::default());
            on_threads(|thread| alone(row.name, &*opened.device, &asked, thread, 200, seed));
            check(&opened, &asked);
        }
    }
}

#[test]
fn after_concurrent_writes_a_block_has_the_whole_content_of_one() {
    for row in rows() {
        let mut has_budget = budget(3);
        for seed in (0..).take_while(|_| has_budget()) {
            let (opened, asked) = (row.open(), Asked::default());
            let last = on_threads(|thread| together(row.name, &*opened.device, &asked, thread, 200, seed));
            for (block, found) in asked.read(row.name, &*opened.device, 0, REACH, Time(1 << 40)).into_iter().enumerate()
            {
                let possible: BTreeSet<u64> = (1..=THREADS)
                    .map(|thread| (thread, last[thread as usize - 1][block]))
                    .map(|(thread, number)| if number == 0 { 0 } else { word(thread, number) })
                    .collect();
                let is_written = possible.iter().any(|word| *word != 0);
                assert!(possible.contains(&found) && (found != 0 || !is_written), "{}: block {block}", row.name);
            }
            check(&opened, &asked);
        }
    }
}

/// Regression: `conv` on an image issues requests concurrently, and a read could find, in the system's page cache, a
/// block partly of a write in progress.
#[test]
fn a_read_returns_the_writes_of_all_threads_completed_before_it_began() {
    for row in rows() {
        let (opened, asked) = (row.open(), Asked::default());
        let (answered, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _over = Over(&is_over);
                for number in 1..=300 {
                    asked.write(&*opened.device, 3, 4, word(1, number), Time(number * 1000));
                    answered.store(number, SeqCst);
                }
            });
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut newest = 0;
                    while !is_over.load(Relaxed) {
                        let at_least = newest.max(answered.load(SeqCst));
                        let mut seen = u64::MAX;
                        // During a write of several blocks, some may be new and some old.
                        for found in asked.read(row.name, &*opened.device, 3, 4, Time(at_least * 1000)) {
                            let number = written_by(found).map_or(0, |(_, number)| number);
                            assert!(number >= at_least, "{}: {number} after {at_least}", row.name);
                            // Later reads return the same write or a newer one.
                            seen = seen.min(number);
                        }
                        newest = seen;
                        std::thread::yield_now();
                    }
                });
            }
        });
        check(&opened, &asked);
    }
}
