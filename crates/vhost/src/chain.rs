//! The parts of a request in the guest's memory: bytes from the guest, and then room for bytes to the guest.

use std::ops::Deref;
use virtio_queue::DescriptorChain;
use vm_memory::{Address, Bytes, GuestAddress, GuestMemory, GuestMemoryError, GuestMemoryMmap, Permissions};

/// A range of the guest's memory.
#[derive(Clone, Copy)]
struct Part {
    place: GuestAddress,
    bytes: usize,
}

/// Ranges that are used up from the first byte on.
#[derive(Default)]
pub struct Parts {
    parts: Vec<Part>,
    /// The first part that is not used up.
    next: usize,
    bytes: u64,
}

/// A request as its descriptors tell it. The memory of its lists is used again by the next.
#[derive(Default)]
pub struct Chain {
    /// The bytes for the device to read.
    pub readable: Parts,
    /// The room for the device to write.
    pub writable: Parts,
}

/// The reason why descriptors are no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// They have no end, or one that is no descriptor: no part can be relied on.
    Endless,
    /// A part is not in memory, or a readable part follows a writable one.
    Misplaced,
}

impl Parts {
    /// Bytes that are left.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn clear(&mut self) {
        self.parts.clear();
        (self.next, self.bytes) = (0, 0);
    }

    fn add(&mut self, place: GuestAddress, bytes: u32) {
        if bytes > 0 {
            self.parts.push(Part { place, bytes: bytes as usize });
            self.bytes += u64::from(bytes);
        }
    }

    /// Uses up at most `most` bytes of one part.
    fn take(&mut self, most: usize) -> Result<(GuestAddress, usize), GuestMemoryError> {
        let part =
            self.parts.get_mut(self.next).ok_or(GuestMemoryError::PartialBuffer { expected: most, completed: 0 })?;
        let (place, count) = (part.place, part.bytes.min(most));
        // A part that reaches beyond the last address was found misplaced.
        *part = Part { place: GuestAddress(place.raw_value().wrapping_add(count as u64)), bytes: part.bytes - count };
        self.next += usize::from(part.bytes == 0);
        self.bytes -= count as u64;
        Ok((place, count))
    }

    /// Uses up the last byte.
    pub fn take_last(&mut self) -> Option<GuestAddress> {
        let last = self.parts.last_mut().filter(|last| last.bytes > 0)?;
        last.bytes -= 1;
        self.bytes -= 1;
        let place = last.place.checked_add(last.bytes as u64);
        if last.bytes == 0 {
            self.parts.pop();
        }
        place
    }

    /// Fills `buffer` from memory.
    pub fn read(&mut self, memory: &GuestMemoryMmap, mut buffer: &mut [u8]) -> Result<(), GuestMemoryError> {
        while !buffer.is_empty() {
            let (place, count) = self.take(buffer.len())?;
            let (part, rest) = buffer.split_at_mut(count);
            memory.read_slice(part, place)?;
            buffer = rest;
        }
        Ok(())
    }

    /// Writes `buffer` to memory.
    pub fn write(&mut self, memory: &GuestMemoryMmap, mut buffer: &[u8]) -> Result<(), GuestMemoryError> {
        while !buffer.is_empty() {
            let (place, count) = self.take(buffer.len())?;
            let (part, rest) = buffer.split_at(count);
            memory.write_slice(part, place)?;
            buffer = rest;
        }
        Ok(())
    }
}

impl Chain {
    /// Takes the parts of these descriptors in place of those before.
    ///
    /// # Errors
    ///
    /// They are no request; of a misplaced part, the others are there.
    pub fn take<M>(&mut self, memory: &GuestMemoryMmap, descriptors: DescriptorChain<M>) -> Result<(), Malformed>
    where
        M: Deref,
        M::Target: GuestMemory,
    {
        self.readable.clear();
        self.writable.clear();
        let (mut taken, mut goes_on) = (Ok(()), true);
        for descriptor in descriptors {
            let (place, bytes) = (descriptor.addr(), descriptor.len());
            let access = if descriptor.is_write_only() { Permissions::Write } else { Permissions::Read };
            let is_late = !descriptor.is_write_only() && self.writable.bytes() > 0;
            if is_late || !memory.check_range(place, bytes as usize, access) {
                taken = Err(Malformed::Misplaced);
            } else if descriptor.is_write_only() {
                self.writable.add(place, bytes);
            } else {
                self.readable.add(place, bytes);
            }
            goes_on = descriptor.has_next();
        }
        if goes_on { Err(Malformed::Endless) } else { taken }
    }
}
