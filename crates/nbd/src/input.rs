//! Buffered input: reads all bytes that have arrived at once, and hands them out piece by piece.

use crate::error::ConnectionError;
use std::io::{self, ErrorKind, Read};

/// The size of the buffer: some pieces of a payload, or very many small requests.
const CAPACITY: usize = 512 << 10;

/// The maximum length of a piece, in bytes.
pub const LONGEST_PIECE: usize = 256 << 10;

/// A client's bytes.
pub struct Input<R> {
    reader: R,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

/// The result of waiting for bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// All bytes that were asked for.
    All,
    /// The end of the input.
    End,
}

impl<R: Read> Input<R> {
    /// An empty buffer before `reader`.
    pub fn new(reader: R) -> Input<R> {
        Input { reader, buffer: vec![0; CAPACITY].into(), start: 0, end: 0 }
    }

    /// The underlying reader.
    pub fn reader(&mut self) -> &mut R {
        &mut self.reader
    }

    /// True if `length` bytes can be taken without waiting.
    pub fn has(&self, length: usize) -> bool {
        self.end - self.start >= length
    }

    /// Waits until `length` bytes, at most [`LONGEST_PIECE`], have arrived. Between two requests a client may be silent
    /// for any time; within a request, a timeout of the reader is an error.
    pub fn wait_for(&mut self, length: usize, within_request: bool) -> Result<Arrived, ConnectionError> {
        debug_assert!(length <= self.buffer.len(), "{length} bytes are never there at once");
        while !self.has(length) {
            if self.start == self.end {
                (self.start, self.end) = (0, 0);
            } else if self.start + length > self.buffer.len() {
                self.buffer.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            }
            let has_part = within_request || self.end > self.start;
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) if has_part => return Err(io::Error::from(ErrorKind::UnexpectedEof).into()),
                Ok(0) => return Ok(Arrived::End),
                Ok(count) => self.end += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock && !has_part => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Arrived::All)
    }

    /// Takes the next `length` bytes, which must have arrived.
    pub fn take(&mut self, length: usize) -> &[u8] {
        debug_assert!(self.has(length), "{length} bytes were waited for");
        let start = self.start;
        self.start += length;
        &self.buffer[start..self.start]
    }

    /// Waits for `N` bytes of a message and takes them.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], ConnectionError> {
        self.wait_for(N, true)?;
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N));
        Ok(bytes)
    }

    /// Discards `length` bytes of a message.
    pub fn skip(&mut self, mut length: usize) -> Result<(), ConnectionError> {
        while length > 0 {
            let piece = length.min(LONGEST_PIECE);
            self.wait_for(piece, true)?;
            self.take(piece);
            length -= piece;
        }
        Ok(())
    }
}
