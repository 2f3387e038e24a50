//! Bytes over a device of whole blocks, for threads that share it.
//!
//! A range that covers a block in part is read, changed and written. Nothing else may change that block meanwhile, or
//! the bytes beside the range would come back as they were before: so it excludes all changes near it, and whole
//! blocks exclude nothing.

use crate::device::{BlockDevice, DeviceError, Lba, NO_HINT, ZEROS};
use crate::label::{Content, Label};
use crate::time::Time;
use crate::units::BLOCK_BYTES;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The label of clients' writes: the stations below find out the content of the blocks.
const LABEL: Label = Label::host(Content::Data);

const BLOCK: usize = BLOCK_BYTES as usize;

/// The number of locks; region `n` takes lock `n % LOCKS`.
const LOCKS: u64 = 64;
/// Bytes of a region: most requests are smaller, and take one lock.
const REGION_BYTES: u64 = 1 << 20;

/// A range that is stored as a whole, or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteExtent {
    /// Bytes.
    pub length: u64,
    /// True if something is stored there. Other bytes read as zeros.
    pub is_stored: bool,
}

/// A device whose ranges need not be whole blocks.
pub(super) struct Bytes {
    device: Box<dyn BlockDevice>,
    /// Shared by changes of whole blocks of a region; exclusive for a change of a part of a block.
    regions: [RwLock<()>; LOCKS as usize],
}

/// Locks that are shared: one without a list of them, as most requests take one.
struct Shared<'a> {
    _only: Option<RwLockReadGuard<'a, ()>>,
    _several: Vec<RwLockReadGuard<'a, ()>>,
}

/// A range of bytes as blocks: a part of one, whole ones, and a part of another.
struct Split {
    /// Bytes in the first block, which is not whole; 0 if it is.
    head: usize,
    /// Bytes of whole blocks.
    whole: usize,
    /// Bytes in the last block, which is not whole; 0 if it is.
    tail: usize,
}

impl Split {
    fn of(offset: u64, length: u64) -> Split {
        let into = offset % BLOCK_BYTES;
        let head = if into == 0 { 0 } else { (BLOCK_BYTES - into).min(length) };
        let tail = (length - head) % BLOCK_BYTES;
        Split { head: head as usize, whole: (length - head - tail) as usize, tail: tail as usize }
    }
}

fn block_of(offset: u64) -> Lba {
    Lba(offset / BLOCK_BYTES)
}

impl Bytes {
    pub fn new(device: Box<dyn BlockDevice>) -> Bytes {
        Bytes { device, regions: std::array::from_fn(|_| RwLock::default()) }
    }

    /// The device itself: a call on the box goes through the forwarding of [`Box`] first.
    pub fn device(&self) -> &dyn BlockDevice {
        &*self.device
    }

    /// Excludes changes of parts of blocks in this range. All threads take the locks in one order.
    fn share(&self, range: Range<u64>) -> Shared<'_> {
        // They protect nothing that could be broken.
        let read = |lock: u64| self.regions[lock as usize].read().unwrap_or_else(PoisonError::into_inner);
        let regions = range.start / REGION_BYTES..range.end.div_ceil(REGION_BYTES);
        if regions.end - regions.start == 1 {
            return Shared { _only: Some(read(regions.start % LOCKS)), _several: Vec::new() };
        }
        let locks: BTreeSet<u64> = regions.take(LOCKS as usize).map(|region| region % LOCKS).collect();
        Shared { _only: None, _several: locks.into_iter().map(read).collect() }
    }

    /// Excludes all other changes of the block at `offset`.
    fn hold(&self, offset: u64) -> RwLockWriteGuard<'_, ()> {
        let lock = &self.regions[(offset / REGION_BYTES % LOCKS) as usize];
        lock.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn read(&self, offset: u64, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        let Split { head, whole, .. } = Split::of(offset, buffer.len() as u64);
        let (head, rest) = buffer.split_at_mut(head);
        let (whole, tail) = rest.split_at_mut(whole);
        let mut done = at;
        if !head.is_empty() {
            done = done.max(self.read_part(offset, head, at)?);
        }
        let next = offset + head.len() as u64;
        if !whole.is_empty() {
            done = done.max(self.device().read(block_of(next), whole, at)?);
        }
        if !tail.is_empty() {
            done = done.max(self.read_part(next + whole.len() as u64, tail, at)?);
        }
        Ok(done)
    }

    fn read_part(&self, offset: u64, part: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        let mut block = [0; BLOCK];
        let done = self.device().read(block_of(offset), &mut block, at)?;
        let from = (offset % BLOCK_BYTES) as usize;
        part.copy_from_slice(&block[from..from + part.len()]);
        Ok(done)
    }

    /// Writes with a placement hint.
    pub fn write(&self, offset: u64, buffer: &[u8], hint: u8, at: Time) -> Result<Time, DeviceError> {
        let Split { head, whole, .. } = Split::of(offset, buffer.len() as u64);
        let (head, rest) = buffer.split_at(head);
        let (whole, tail) = rest.split_at(whole);
        let next = offset + head.len() as u64;
        let mut done = at;
        if !head.is_empty() {
            done = done.max(self.change(offset, head.len(), (hint, at), |part| part.copy_from_slice(head))?);
        }
        if !whole.is_empty() {
            let _shared = self.share(next..next + whole.len() as u64);
            done = done.max(self.device().write_placed(block_of(next), whole, LABEL, hint, at)?);
        }
        if !tail.is_empty() {
            let last = next + whole.len() as u64;
            done = done.max(self.change(last, tail.len(), (hint, at), |part| part.copy_from_slice(tail))?);
        }
        Ok(done)
    }

    pub fn zero(&self, offset: u64, length: u64, keep_stored: bool, at: Time) -> Result<Time, DeviceError> {
        let Split { head, whole, tail } = Split::of(offset, length);
        let (first, whole) = (offset + head as u64, whole as u64);
        let mut done = at;
        if head > 0 {
            done = done.max(self.change(offset, head, (NO_HINT, at), |part| part.fill(0))?);
        }
        if whole > 0 && keep_stored {
            let _shared = self.share(first..first + whole);
            for next in (first..first + whole).step_by(ZEROS.len()) {
                let piece = (ZEROS.len() as u64).min(first + whole - next);
                done = done.max(self.device().write(block_of(next), &ZEROS[..piece as usize], LABEL, at)?);
            }
        } else if whole > 0 {
            done = done.max(self.discard(first, whole, at)?);
        }
        if tail > 0 {
            done = done.max(self.change(first + whole, tail, (NO_HINT, at), |part| part.fill(0))?);
        }
        Ok(done)
    }

    pub fn discard(&self, offset: u64, length: u64, at: Time) -> Result<Time, DeviceError> {
        let Split { head, whole, .. } = Split::of(offset, length);
        let (first, whole) = (offset + head as u64, whole as u64);
        if whole == 0 {
            return Ok(at);
        }
        let _shared = self.share(first..first + whole);
        self.device().discard(block_of(first), whole / BLOCK_BYTES, at)
    }

    pub fn flush(&self, at: Time) -> Result<Time, DeviceError> {
        self.device().flush(at)
    }

    pub fn extent(&self, offset: u64, length: u64) -> Result<ByteExtent, DeviceError> {
        let first = block_of(offset);
        let blocks = (offset + length).div_ceil(BLOCK_BYTES) - first.0;
        let extent = self.device().extent(first, blocks)?;
        let end = (first + extent.blocks).0 * BLOCK_BYTES;
        Ok(ByteExtent { length: (end - offset).min(length), is_stored: extent.is_stored })
    }

    /// Changes a part of one block.
    fn change(
        &self,
        offset: u64,
        length: usize,
        (hint, at): (u8, Time),
        change: impl FnOnce(&mut [u8]),
    ) -> Result<Time, DeviceError> {
        let from = (offset % BLOCK_BYTES) as usize;
        let mut block = [0; BLOCK];
        let _alone = self.hold(offset);
        let read = self.device().read(block_of(offset), &mut block, at)?;
        change(&mut block[from..from + length]);
        self.device().write_placed(block_of(offset), &block, LABEL, hint, read)
    }
}
