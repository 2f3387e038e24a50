//! Reads bytes at an offset and decodes numbers. All functions are total: a read beyond the end gives an error or zero.

use super::LayoutError;
use std::io;

/// A source of bytes: a file, a device, a closure.
pub trait ReadAt {
    /// Fills the whole of `buffer` with the bytes at `offset`, or fails.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
}

impl<F: FnMut(u64, &mut [u8]) -> io::Result<()>> ReadAt for F {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self(offset, buffer)
    }
}

/// A device of a known size. A read beyond its end is an error without a call of the source.
pub(super) struct Device<'a> {
    source: &'a mut dyn ReadAt,
    pub size_bytes: u64,
}

impl<'a> Device<'a> {
    pub fn new(source: &'a mut dyn ReadAt, size_bytes: u64) -> Device<'a> {
        Device { source, size_bytes }
    }

    /// `length` bytes at `offset`.
    pub fn read(&mut self, offset: u64, length: usize) -> Result<Bytes, LayoutError> {
        let fails = |source| LayoutError::Read { offset, length, source };
        if offset.checked_add(length as u64).is_none_or(|end| end > self.size_bytes) {
            let reason = format!("the device ends at byte {}", self.size_bytes);
            return Err(fails(io::Error::new(io::ErrorKind::UnexpectedEof, reason)));
        }
        let mut bytes = vec![0; length];
        if length > 0 {
            self.source.read_at(offset, &mut bytes).map_err(fails)?;
        }
        Ok(Bytes(bytes))
    }

    /// As [`read`](Self::read); `None` if the device is too short.
    pub fn read_if_there(&mut self, offset: u64, length: usize) -> Result<Option<Bytes>, LayoutError> {
        if offset.checked_add(length as u64).is_none_or(|end| end > self.size_bytes) {
            return Ok(None);
        }
        self.read(offset, length).map(Some)
    }
}

/// The bytes of a structure. A number beyond their end is zero, which every parser rejects or ignores.
#[derive(Clone, Debug)]
pub(super) struct Bytes(pub Vec<u8>);

impl Bytes {
    fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        let part = at.checked_add(N).and_then(|end| self.0.get(at..end));
        part.and_then(|part| part.try_into().ok()).unwrap_or([0; N])
    }

    pub fn part(&self, at: usize, length: usize) -> Option<&[u8]> {
        self.0.get(at..at.checked_add(length)?)
    }

    pub fn u8(&self, at: usize) -> u8 {
        self.array::<1>(at)[0]
    }

    pub fn le16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.array(at))
    }

    pub fn le32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.array(at))
    }

    pub fn le64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.array(at))
    }

    pub fn be16(&self, at: usize) -> u16 {
        u16::from_be_bytes(self.array(at))
    }

    pub fn be32(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.array(at))
    }

    pub fn be64(&self, at: usize) -> u64 {
        u64::from_be_bytes(self.array(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_beyond_the_end_is_never_tried() {
        let mut source = |_: u64, _: &mut [u8]| -> io::Result<()> { panic!("it was tried") };
        let mut device = Device::new(&mut source, 4096);
        assert!(device.read(4000, 97).is_err());
        assert!(device.read(u64::MAX, 8).is_err());
        assert!(device.read_if_there(4096, 1).unwrap().is_none());
    }

    #[test]
    fn a_number_beyond_the_end_is_zero() {
        let bytes = Bytes(vec![1, 2, 3]);
        assert_eq!((bytes.le16(0), bytes.be16(1), bytes.le16(2), bytes.le32(usize::MAX)), (0x201, 0x203, 0, 0));
    }
}
