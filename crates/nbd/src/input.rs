//! Buffered input: reads all bytes that have arrived at once, and hands them out piece by piece.
//!
//! A long payload is received into the front of the buffer, with the next request's header and no more. So it is in the
//! same memory each time, which stays in the processor's cache until the payload is copied to the device.

use crate::error::ConnectionError;
use crate::wire::REQUEST_BYTES;
use std::io::{self, ErrorKind, Read};

/// The size of the buffer: some pieces of a payload, or very many small requests.
const CAPACITY: usize = 512 << 10;

/// The maximum length of a piece, in bytes.
pub const LONGEST_PIECE: usize = 256 << 10;

/// The length from which on a payload is long: many requests of that length do not fit into the processor's cache.
const LONG: usize = 64 << 10;

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
            } else if length >= LONG || self.start + length > self.buffer.len() {
                self.buffer.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            }
            let has_part = within_request || self.end > self.start;
            let most = if length < LONG { self.buffer.len() } else { length + REQUEST_BYTES };
            match self.reader.read(&mut self.buffer[self.end..most]) {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Payloads of 128 KiB went through all 512 KiB of the buffer in turn, so that each was copied to the device from
    /// memory that the processor's cache had lost meanwhile.
    #[test]
    fn long_payloads_that_follow_each_other_are_received_into_the_same_memory() {
        const PAYLOAD: usize = 128 << 10;
        let sent: Vec<u8> = (0..8 * (REQUEST_BYTES + PAYLOAD)).map(|at| (at % 251) as u8).collect();
        let (first, rest) = sent.split_at(REQUEST_BYTES);
        let mut input = Input::new(first.chain(rest));
        for message in sent.chunks(REQUEST_BYTES + PAYLOAD) {
            assert_eq!(input.array::<REQUEST_BYTES>().unwrap()[..], message[..REQUEST_BYTES]);
            input.wait_for(PAYLOAD, true).unwrap();
            assert_eq!(input.start, 0, "it lies at the front");
            assert_eq!(input.take(PAYLOAD), &message[REQUEST_BYTES..]);
            assert!(input.end <= PAYLOAD + REQUEST_BYTES, "{} bytes of the buffer are used", input.end);
        }
        assert!(matches!(input.wait_for(1, false), Ok(Arrived::End)));
    }

    #[test]
    fn a_long_payload_that_has_arrived_in_part_moves_to_the_front_whole() {
        let sent: Vec<u8> = (0..300_000).map(|at| (at % 241) as u8).collect();
        // Small messages read as much as the buffer takes; then a long payload begins in its middle.
        let mut input = Input::new(sent[..200_000].chain(&sent[200_000..]));
        input.wait_for(1, true).unwrap();
        assert_eq!(input.take(150_000), &sent[..150_000]);
        input.wait_for(100_000, true).unwrap();
        assert_eq!(input.take(100_000), &sent[150_000..250_000]);
        input.wait_for(50_000, true).unwrap();
        assert_eq!(input.take(50_000), &sent[250_000..]);
    }
}
