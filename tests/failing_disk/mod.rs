//! A disk with one failing operation: the n-th write, sync, punch or read.
//!
//! Fault model. The operation returns an error, once, or each time from then on. A failed write has stored any of its
//! blocks of 4 KiB and not the others; a failed punch has done nothing. After a failed sync, writes since the last one
//! count as written, as on Linux: a later sync succeeds, and makes none of them durable. When the disk is healed and
//! opened again, synced blocks are there, and each other written block has its content of the last sync or of a later
//! write. No block is torn or corrupted.

#![allow(dead_code, reason = "each test uses its part")]

use flashpath::device::Disk;
use flashpath::random::Random;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const BLOCK: usize = 4096;

/// The operations that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Write,
    Sync,
    Punch,
    Read,
}

pub const OPERATIONS: [Operation; 4] = [Operation::Write, Operation::Sync, Operation::Punch, Operation::Read];
const ERRORS: [Errno; 2] = [Errno::IO, Errno::NOSPC];

/// The operation to fail.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    pub operation: Operation,
    /// The number of successful operations of its kind before.
    pub after: u64,
    pub error: Errno,
    /// True if all later operations of its kind fail, too.
    pub lasts: bool,
}

impl Fault {
    /// A random fault, given the number of operations of each kind.
    pub fn any(counts: [u64; 4], random: &mut Random) -> Fault {
        loop {
            let at = random.below(4) as usize;
            if counts[at] > 0 {
                return Fault {
                    operation: OPERATIONS[at],
                    after: random.below(counts[at]),
                    error: ERRORS[random.below(2) as usize],
                    lasts: random.below(3) == 0,
                };
            }
        }
    }
}

#[derive(Clone)]
struct State {
    now: Vec<u8>,
    /// The content at the last successful sync of blocks written since.
    before: BTreeMap<usize, Vec<u8>>,
    /// The same for blocks that a sync failed to store.
    doubtful: BTreeMap<usize, Vec<u8>>,
    counts: [u64; 4],
    fault: Option<Fault>,
    has_failed: bool,
    random: Random,
}

/// A disk in memory. Clones are the same disk.
#[derive(Clone)]
pub struct FailingDisk(Arc<Mutex<State>>);

impl FailingDisk {
    pub fn holding(now: Vec<u8>) -> FailingDisk {
        FailingDisk(Arc::new(Mutex::new(State {
            now,
            before: BTreeMap::new(),
            doubtful: BTreeMap::new(),
            counts: [0; 4],
            fault: None,
            has_failed: false,
            random: Random::new(0, "failing disk"),
        })))
    }

    /// Resets the counts, and sets the fault.
    pub fn fail(&self, fault: Option<Fault>, seed: u64) {
        let mut state = self.0.lock().unwrap();
        (state.counts, state.fault, state.has_failed) = ([0; 4], fault, false);
        state.random = Random::new(seed, "failing disk");
    }

    pub fn has_failed(&self) -> bool {
        self.0.lock().unwrap().has_failed
    }

    /// Operations by kind since the fault was set.
    pub fn counts(&self) -> [u64; 4] {
        self.0.lock().unwrap().counts
    }

    /// The bytes that a read returns.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().now.clone()
    }

    /// A healed copy with the surviving bytes. `is_same_boot`: the machine was not restarted, and only the blocks of a
    /// failed sync are in doubt.
    pub fn healed(&self, random: &mut Random, is_same_boot: bool) -> FailingDisk {
        let state = self.0.lock().unwrap();
        let mut bytes = state.now.clone();
        let unsynced = if is_same_boot { None } else { Some(&state.before) };
        // Sometimes all or none of it is lost.
        let whim = random.below(4);
        for (block, old) in unsynced.into_iter().flatten().chain(&state.doubtful) {
            if whim == 0 || whim > 1 && random.below(2) == 0 {
                bytes[block * BLOCK..][..BLOCK].copy_from_slice(old);
            }
        }
        FailingDisk::holding(bytes)
    }
}

impl State {
    fn begin(&mut self, operation: Operation) -> io::Result<()> {
        let at = OPERATIONS.iter().position(|other| *other == operation).unwrap();
        self.counts[at] += 1;
        match self.fault {
            Some(fault) if fault.operation == operation => {
                let number = self.counts[at] - 1;
                if number == fault.after || fault.lasts && number > fault.after {
                    self.has_failed = true;
                    return Err(fault.error.into());
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Stores bytes; if the write `fails`, only some of the blocks.
    fn store(&mut self, offset: usize, bytes: &[u8], fails: bool) {
        let mut at = offset;
        while at < offset + bytes.len() {
            let end = (at / BLOCK * BLOCK + BLOCK).min(offset + bytes.len());
            if !fails || self.random.below(2) == 0 {
                let block = at / BLOCK;
                let old = &self.now[block * BLOCK..][..BLOCK];
                self.before.entry(block).or_insert_with(|| old.to_vec());
                self.now[at..end].copy_from_slice(&bytes[at - offset..end - offset]);
            }
            at = end;
        }
    }
}

impl Disk for FailingDisk {
    fn name(&self) -> &str {
        "failing"
    }

    fn length(&self) -> u64 {
        self.0.lock().unwrap().now.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        state.begin(Operation::Read)?;
        buffer.copy_from_slice(&state.now[offset as usize..][..buffer.len()]);
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        let begun = state.begin(Operation::Write);
        state.store(offset as usize, bytes, begun.is_err());
        begun
    }

    fn punch(&self, offset: u64, length: u64) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        state.begin(Operation::Punch)?;
        state.store(offset as usize, &vec![0; length as usize], false);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        let begun = state.begin(Operation::Sync);
        let before = std::mem::take(&mut state.before);
        match &begun {
            // The oldest content is the durable one.
            Err(_) => {
                for (block, old) in before {
                    state.doubtful.entry(block).or_insert(old);
                }
            }
            Ok(()) => state.doubtful.retain(|block, _| !before.contains_key(block)),
        }
        begun
    }
}

/// The duration of a campaign, and its number of cases.
pub struct Budget {
    until: Option<Instant>,
    left: u64,
}

impl Budget {
    /// A number of cases, or as many as fit into `FAILING_STORE_SECONDS`.
    #[allow(clippy::disallowed_methods, reason = "the environment sets the duration of a campaign")]
    pub fn new(cases: u64) -> Budget {
        let seconds = std::env::var("FAILING_STORE_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
        Budget { until: seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds)), left: cases }
    }

    #[allow(clippy::disallowed_methods, reason = "the environment sets the duration of a campaign")]
    pub fn goes_on(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.until.map_or(self.left > 0, |until| Instant::now() < until)
    }
}
