//! What a client sends: read as much at once as there is, taken piece by piece.

use crate::error::ConnectionError;
use std::io::{self, ErrorKind, Read};

/// Bytes that are read ahead: some pieces of a payload, or very many small requests.
const CAPACITY: usize = 512 << 10;

/// The longest piece that can be asked for.
pub const LONGEST_PIECE: usize = 256 << 10;

/// A client's bytes.
pub struct Input<R> {
    reader: R,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

/// What is there to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// As much as was asked for.
    All,
    /// Nothing at all, and nothing will come.
    End,
}

impl<R: Read> Input<R> {
    /// Nothing is read yet.
    pub fn new(reader: R) -> Input<R> {
        Input { reader, buffer: vec![0; CAPACITY].into(), start: 0, end: 0 }
    }

    /// What is read from.
    pub fn reader(&mut self) -> &mut R {
        &mut self.reader
    }

    /// Whether `length` bytes can be taken without waiting.
    pub fn has(&self, length: usize) -> bool {
        self.end - self.start >= length
    }

    /// Waits until `length` bytes, at most [`LONGEST_PIECE`], are there. Between two requests a client may be silent for
    /// as long as it likes; within one, a reader that times out is an error.
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

    /// Takes the next `length` bytes, which are there.
    pub fn take(&mut self, length: usize) -> &[u8] {
        debug_assert!(self.has(length), "{length} bytes were waited for");
        let start = self.start;
        self.start += length;
        &self.buffer[start..self.start]
    }

    /// Takes `N` bytes of a message, and waits for them.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], ConnectionError> {
        self.wait_for(N, true)?;
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N));
        Ok(bytes)
    }

    /// Takes `length` bytes of a message, and forgets them.
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
