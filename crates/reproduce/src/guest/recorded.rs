//! A device whose writes, discards and flushes are recorded, as `flashpath capture` records those of the kernel. It outlives
//! the file system on it: the next mount finds what the last one has left.

use flashpath::device::{Abilities, Account, BlockDevice, DeviceError, Lba};
use flashpath::label::{Content, Label};
use flashpath::time::Time;
use flashpath::units::BLOCK_BYTES;
use flashpath::workload::{Action, Operation};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A hold of the device and of its recording.
#[derive(Clone)]
pub struct Recorded {
    device: Arc<dyn BlockDevice>,
    /// `None` before the recording begins.
    operations: Arc<Mutex<Option<Vec<Operation>>>>,
}

impl Recorded {
    /// This device, not recorded yet.
    pub fn new(device: Box<dyn BlockDevice>) -> Recorded {
        Recorded { device: device.into(), operations: Arc::default() }
    }

    /// Records from now on.
    pub fn begin(&self) {
        *self.operations() = Some(Vec::new());
    }

    /// Ends the recording. Returns its requests, in the order of the calls.
    pub fn end(&self) -> Vec<Operation> {
        self.operations().take().unwrap_or_default()
    }

    fn operations(&self) -> MutexGuard<'_, Option<Vec<Operation>>> {
        // A push is whole or not there.
        self.operations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, action: Action, first: Lba, blocks: u64, content: Content, at: Time) {
        if let Some(operations) = &mut *self.operations() {
            operations.push(Operation {
                time_ns: at.0,
                offset_bytes: first.0 * BLOCK_BYTES,
                length_bytes: blocks * BLOCK_BYTES,
                action,
                content,
                stream: 0,
                device: 0,
            });
        }
    }
}

impl BlockDevice for Recorded {
    fn blocks(&self) -> u64 {
        self.device.blocks()
    }

    fn block_width(&self) -> usize {
        self.device.block_width()
    }

    fn read(&self, first: Lba, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        self.device.read(first, buffer, at)
    }

    fn write(&self, first: Lba, buffer: &[u8], label: Label, at: Time) -> Result<Time, DeviceError> {
        let blocks = (buffer.len() / self.device.block_width()) as u64;
        self.record(Action::Write, first, blocks, label.content, at);
        self.device.write(first, buffer, label, at)
    }

    fn discard(&self, first: Lba, blocks: u64, at: Time) -> Result<Time, DeviceError> {
        self.record(Action::Discard, first, blocks, Content::Data, at);
        self.device.discard(first, blocks, at)
    }

    fn flush(&self, at: Time) -> Result<Time, DeviceError> {
        self.record(Action::Flush, Lba(0), 0, Content::Data, at);
        self.device.flush(at)
    }

    fn account(&self) -> Account {
        self.device.account()
    }
}

impl Abilities for Recorded {
    fn wrapped(&self) -> Option<&dyn BlockDevice> {
        Some(&*self.device)
    }
}
