//! Fetching of metadata outside the gate of a shared volume. A reading call does not wait for the device inside the
//! gate: missing metadata is refused and noted there, fetched outside, and offered to the next turn.
//!
//! A block of the log changes only after its segment begins again. So fetched bytes are current if their segment has
//! not begun since the turn that missed them.

use super::Media;
use crate::device::DeviceError;
use crate::task::Task;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};

/// A block that a turn needs and does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::fs::sfs) struct MissedBlock {
    address: u64,
    /// The number of times that its segment had begun.
    begun: u32,
}

/// Consecutive blocks that were fetched.
#[derive(Debug)]
pub(in crate::fs::sfs) struct FetchedBlocks {
    first: MissedBlock,
    bytes: Vec<u8>,
}

/// The fetched blocks offered to the current turn, and the blocks it missed.
#[derive(Debug, Default)]
struct Offer {
    fetched: Vec<FetchedBlocks>,
    missed: Vec<MissedBlock>,
}

/// Fetching of metadata outside the gate.
#[derive(Debug)]
pub(super) struct Fetching {
    /// The number of times that each segment has begun.
    begun: Vec<AtomicU32>,
    offer: Mutex<Offer>,
    has_fetched: AtomicBool,
    refuses: AtomicBool,
}

impl Fetching {
    pub fn new(segments: u32) -> Fetching {
        Fetching {
            begun: (0..segments).map(|_| AtomicU32::new(0)).collect(),
            offer: Mutex::default(),
            has_fetched: AtomicBool::new(false),
            refuses: AtomicBool::new(false),
        }
    }

    fn offer(&self) -> MutexGuard<'_, Offer> {
        self.offer.lock().expect("no thread panics while it holds the offer")
    }

    /// Begins a segment: blocks fetched from it become invalid.
    pub fn begin(&self, segment: u32) {
        self.begun[segment as usize].fetch_add(1, Ordering::Relaxed);
        if self.has_fetched.swap(false, Ordering::Relaxed) {
            self.offer().fetched.clear();
        }
    }
}

impl Media {
    /// Reads a block of metadata, and waits for it.
    ///
    /// # Errors
    ///
    /// If the block must be read from the device in a turn that [refuses](Media::begin_look) that. The block is then
    /// noted as missed.
    pub fn read_metadata(&self, task: &Task<'_>, address: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        if self.is_refusing() && !self.is_offered(address) && self.queue.find(address, 1, self.block_width).is_empty() {
            self.miss(address);
            let reason = "the metadata is not in memory yet".to_string();
            return Err(DeviceError::Station { station: "sfs", reason });
        }
        self.read(task, address, buffer)
    }

    /// Notes a block that a turn changes partly, unless it was fetched.
    pub fn note_missing(&self, address: u64) {
        if self.is_refusing() && !self.is_offered(address) {
            self.miss(address);
        }
    }

    fn miss(&self, address: u64) {
        let begun = self.fetching.begun[self.segment_of(address) as usize].load(Ordering::Relaxed);
        self.fetching.offer().missed.push(MissedBlock { address, begun });
    }

    /// True if missing metadata is refused.
    pub fn is_refusing(&self) -> bool {
        self.fetching.refuses.load(Ordering::Relaxed)
    }

    /// Begins a turn that may use fetched blocks. `refuses`: it reads no metadata from the device.
    pub fn begin_turn(&self, mut fetched: Vec<FetchedBlocks>, refuses: bool) {
        fetched.retain(|blocks| {
            let begun = &self.fetching.begun[self.segment_of(blocks.first.address) as usize];
            begun.load(Ordering::Relaxed) == blocks.first.begun
        });
        self.fetching.has_fetched.store(!fetched.is_empty(), Ordering::Relaxed);
        self.fetching.offer().fetched = fetched;
        self.fetching.refuses.store(refuses, Ordering::Relaxed);
    }

    /// True if the current turn missed a block.
    pub fn has_missed(&self) -> bool {
        !self.fetching.offer().missed.is_empty()
    }

    /// Allows the rest of the turn to read from the device.
    pub fn allow_reads(&self) {
        self.fetching.refuses.store(false, Ordering::Relaxed);
    }

    /// Ends the turn. Returns the missed blocks and the offered ones.
    pub fn end_turn(&self) -> (Vec<MissedBlock>, Vec<FetchedBlocks>) {
        self.fetching.refuses.store(false, Ordering::Relaxed);
        self.fetching.has_fetched.store(false, Ordering::Relaxed);
        let Offer { missed, fetched } = std::mem::take(&mut *self.fetching.offer());
        (missed, fetched)
    }

    /// Fetches blocks, joining neighbours, with all requests in parallel. Waits for them.
    pub fn fetch(&self, task: &Task<'_>, mut missed: Vec<MissedBlock>) -> Result<Vec<FetchedBlocks>, DeviceError> {
        missed.sort_unstable();
        missed.dedup_by_key(|block| block.address);
        let (mut done, mut fetched) = (task.now(), Vec::new());
        let segment = |block: &MissedBlock| self.segment_of(block.address);
        for run in missed.chunk_by(|one, next| one.address + 1 == next.address && segment(one) == segment(next)) {
            let mut bytes = vec![0; run.len() * self.block_width];
            done = done.max(self.begin_read(task, run[0].address, &mut bytes)?);
            fetched.push(FetchedBlocks { first: run[0], bytes });
        }
        task.wait_until(done);
        Ok(fetched)
    }

    fn is_offered(&self, address: u64) -> bool {
        self.fetching.has_fetched.load(Ordering::Relaxed) && self.offered(address, |_| ()).is_some()
    }

    /// Copies a fetched block into `buffer`. True if it was fetched.
    pub(super) fn copy_fetched(&self, address: u64, buffer: &mut [u8]) -> bool {
        self.fetching.has_fetched.load(Ordering::Relaxed)
            && self.offered(address, |bytes| buffer.copy_from_slice(bytes)).is_some()
    }

    fn offered<R>(&self, address: u64, act: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let offer = self.fetching.offer();
        let width = self.block_width;
        offer
            .fetched
            .iter()
            .find_map(|blocks| {
                let at = address.checked_sub(blocks.first.address)? as usize * width;
                blocks.bytes.get(at..at + width)
            })
            .map(act)
    }
}
