//! Memory as that of a journal, a file in memory, lines that two cores share, and threads that wake each other.

use flashpath::device::Nvm;
use flashpath::device::nvm::{LINE_BYTES, Mapped, Persist};
use flashpath::units::BLOCK_BYTES;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::unistd::Pid;
use std::fs::File;
use std::hint::spin_loop;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// Bytes of the memory: more than the caches of a core have, as a journal.
const RING_BYTES: u64 = 64 << 20;
const SLOT_BYTES: u64 = BLOCK_BYTES + LINE_BYTES as u64;

/// A ring of slots, each a header and a block.
pub struct Ring {
    memory: Mapped,
    slot: u64,
}

impl Ring {
    /// A ring of which every page is in memory.
    pub fn new() -> Ring {
        let memory = Mapped::in_memory(RING_BYTES, Persist::preferred(), None).expect("the system has the memory");
        for page in (0..RING_BYTES).step_by(BLOCK_BYTES as usize) {
            memory.store(page, &[1; LINE_BYTES]);
        }
        memory.fence();
        Ring { memory, slot: 0 }
    }

    /// Stores a block with its header in the next slot.
    #[inline]
    pub fn store(&mut self, block: &[u8]) {
        let mut header = [0; LINE_BYTES];
        header[..8].copy_from_slice(&self.slot.to_le_bytes());
        header[8..12].copy_from_slice(&flashpath::crc::crc32c(block).to_le_bytes());
        let sum = flashpath::crc::crc32c(&header[..LINE_BYTES - 4]);
        header[LINE_BYTES - 4..].copy_from_slice(&sum.to_le_bytes());
        let at = self.slot * SLOT_BYTES;
        self.memory.store(at, &header);
        self.memory.store(at + LINE_BYTES as u64, block);
        self.memory.fence();
        self.slot = (self.slot + 1) % (RING_BYTES / SLOT_BYTES);
    }
}

/// A file in memory, as the device of a journal that is in memory.
pub struct MemoryFile {
    file: File,
    at: u64,
}

impl MemoryFile {
    /// A file of which every page is in memory.
    pub fn new() -> MemoryFile {
        let file = memfd_create(c"journal", MFdFlags::MFD_CLOEXEC).expect("the system has files in memory");
        let mut memory_file = MemoryFile { file: File::from(file), at: 0 };
        for _ in (0..RING_BYTES).step_by(BLOCK_BYTES as usize) {
            memory_file.write(&[1; BLOCK_BYTES as usize]);
        }
        memory_file
    }

    /// Writes a block behind the one before.
    pub fn write(&mut self, block: &[u8]) {
        self.file.write_all_at(block, self.at).expect("memory takes writes");
        self.at = (self.at + BLOCK_BYTES) % RING_BYTES;
    }
}

/// Lines that the threads change in turn: a batch of so few is seldom interrupted.
const SHARED: usize = 64;
/// The distance of a line to the next one in their order; it has no divisor in common with their number.
const STRIDE: usize = 37;
/// What is added to a line: its lower half has the number of the next line.
const ADDED: u64 = 1 << 32;
/// The turn after the last one; it is even.
const END: usize = usize::MAX - 1;
/// The least time of a measurement.
const LOOP: Duration = Duration::from_millis(2);

/// A line with room to the next one: processors fetch lines in pairs.
#[repr(align(128))]
struct Line(AtomicU64);

/// Adds to each line. An addition tells which line is next: a processor that knew would fetch it meanwhile, and the
/// addition would take 5 ns instead of 130.
fn change_all(lines: &[Line]) {
    let mut at = 0;
    for _ in lines {
        at = lines[at].0.fetch_add(ADDED, Ordering::SeqCst) as u32 as usize;
    }
}

/// Runs the calling thread on this processor alone. Without permission it runs anywhere, as the system decides.
fn pin(processor: Option<usize>) {
    let mut set = CpuSet::new();
    if processor.is_some_and(|processor| set.set(processor).is_ok()) {
        let _ = sched_setaffinity(Pid::from_raw(0), &set);
    }
}

/// Two processors on which this thread may run, if there are so many, and the set of all.
fn two_processors() -> (Option<usize>, Option<usize>, Option<CpuSet>) {
    let allowed = sched_getaffinity(Pid::from_raw(0)).ok();
    let processors = |set: &CpuSet| (0..CpuSet::count()).filter(|at| set.is_set(*at).unwrap_or(false)).collect();
    let processors: Vec<usize> = allowed.as_ref().map(processors).unwrap_or_default();
    (processors.first().copied(), processors.get(1).copied(), allowed)
}

/// Lets the calling thread run on all of these again.
fn unpin(allowed: Option<CpuSet>) {
    if let Some(allowed) = allowed {
        let _ = sched_setaffinity(Pid::from_raw(0), &allowed);
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The nanoseconds from the wake-up of a sleeping thread until it runs: half of the median time of a turn of two threads that
/// sleep until the other wakes them. Both are on one processor, which is never idle: one that is has to be woken itself, which
/// takes ten times as long in a virtual machine.
pub fn thread_woken() -> f64 {
    let (own, _, allowed) = two_processors();
    // Even: this thread's turn; odd: the other's; `END` ends it.
    let (turn, changed) = (Mutex::new(0), Condvar::new());
    let take_turns = |parity: usize, mut goes_on: Box<dyn FnMut() -> bool + '_>| {
        loop {
            let mut now = turn.lock().expect("no thread panics");
            while *now % 2 != parity && *now != END {
                now = changed.wait(now).expect("no thread panics");
            }
            if *now == END {
                return;
            }
            *now = if goes_on() { *now + 1 } else { END };
            changed.notify_one();
        }
    };
    let mut turns = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(own);
            take_turns(1, Box::new(|| true));
        });
        pin(own);
        let (began, mut last) = (Instant::now(), Instant::now());
        take_turns(
            0,
            Box::new(|| {
                turns.push(last.elapsed().as_nanos() as f64);
                last = Instant::now();
                began.elapsed() < LOOP
            }),
        );
    });
    unpin(allowed);
    median(turns) / 2.0
}

/// The nanoseconds of an addition to a line that another core has just changed: the median of some batches, since either
/// thread may be interrupted. With one processor it is that of an addition to a line that no other core has.
pub fn line_shared() -> f64 {
    let (own, other, allowed) = two_processors();
    let next = |line: usize| ((line + STRIDE) % SHARED) as u64;
    let lines: Vec<Line> = (0..SHARED).map(|line| Line(AtomicU64::new(next(line)))).collect();
    // Even: the other thread changes the lines; odd: this one does. The greatest number ends both.
    let turn = AtomicUsize::new(0);
    let mut batches = Vec::new();
    let wait = |parity: usize| {
        while turn.load(Ordering::Acquire) % 2 != parity {
            // Two threads on one processor would otherwise wait for the end of their time slices.
            if other.is_some() { spin_loop() } else { std::thread::yield_now() }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(other);
            loop {
                wait(0);
                if turn.load(Ordering::Acquire) == END {
                    return;
                }
                change_all(&lines);
                turn.fetch_add(1, Ordering::AcqRel);
            }
        });
        pin(own);
        let began = Instant::now();
        while began.elapsed() < LOOP {
            wait(1);
            let from = Instant::now();
            change_all(&lines);
            batches.push(from.elapsed().as_nanos() as f64 / SHARED as f64);
            turn.fetch_add(1, Ordering::AcqRel);
        }
        wait(1);
        turn.store(END, Ordering::Release);
    });
    unpin(allowed);
    median(batches)
}
