//! The write requests of a file system, counted as a block layer sends them to a device.

use crate::device::{Account, Lba, WriteRequests};
use crate::units::BLOCK_BYTES;
use crate::workload::Merging;
use std::sync::{Mutex, PoisonError};

/// The largest request that Linux makes unless a device asks for less (`max_sectors_kb`), in bytes.
pub const MAX_REQUEST_BYTES: u64 = 1280 << 10;

/// A counter of the write requests to one device.
#[derive(Debug)]
pub struct Requests {
    max_bytes: u64,
    counted: Mutex<(u64, Merging)>,
}

impl Requests {
    /// A counter that merges up to `max_bytes`.
    pub fn new(max_bytes: u64) -> Requests {
        Requests { max_bytes, counted: Mutex::new((0, Merging::new(max_bytes))) }
    }

    fn count(&self, calls: u64, merge: impl FnOnce(&mut Merging)) {
        // Numbers can be added to, whoever panicked.
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        counted.0 += calls;
        merge(&mut counted.1);
    }

    /// Counts a call that writes blocks.
    pub fn write(&self, first: Lba, blocks: u64) {
        let bytes = |lba: u64| lba.saturating_mul(BLOCK_BYTES);
        self.count(1, |merging| merging.write(bytes(first.0), bytes(first.0.saturating_add(blocks))));
    }

    /// A flush or a discard, with which nothing is merged.
    pub fn end(&self) {
        self.count(0, Merging::end);
    }

    /// The account of the device with the counts.
    pub fn in_account(&self, account: Account) -> Account {
        let counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = WriteRequests { calls: counted.0, merged: counted.1.requests(), max_bytes: self.max_bytes };
        Account { write_requests: Some(counts), ..account }
    }
}
