//! Buffered input: reads all bytes that have arrived at once, and hands them out unit by unit. Long data is received into its
//! own memory.

use crate::error::ConnectionError;
use std::io::{self, ErrorKind, Read};
use std::time::{Duration, Instant};

/// The size of the buffer: very many small units.
const CAPACITY: usize = 256 << 10;
/// The most bytes that are read for a header while long data is expected: the data itself is then received into its own memory.
const WHILE_DATA_COMES: usize = 512;
/// The longest silence within a unit.
const PATIENCE: Duration = Duration::from_secs(30);

/// A host's bytes. A reader that times out ([`WouldBlock`](ErrorKind::WouldBlock)) is read again.
pub struct Input<R> {
    reader: R,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    silent_since: Option<Instant>,
    /// True if long data is expected.
    pub expects_data: bool,
}

/// The result of waiting for a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// All bytes that were asked for.
    All,
    /// None: the reader timed out.
    Nothing,
    /// The end of the input.
    End,
}

impl<R: Read> Input<R> {
    /// An empty buffer before `reader`.
    pub fn new(reader: R) -> Input<R> {
        Input { reader, buffer: vec![0; CAPACITY].into(), start: 0, end: 0, silent_since: None, expects_data: false }
    }

    /// True if `length` bytes can be taken without waiting.
    pub fn has(&self, length: usize) -> bool {
        self.end - self.start >= length
    }

    /// Waits for the first `length` bytes of a unit.
    pub fn wait_for_unit(&mut self, length: usize) -> Result<Arrived, ConnectionError> {
        while !self.has(length) {
            let has_part = self.end > self.start;
            match self.read_more(length) {
                Ok(0) if has_part => return Err(io::Error::from(ErrorKind::UnexpectedEof).into()),
                Ok(0) => return Ok(Arrived::End),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock && !has_part => return Ok(Arrived::Nothing),
                Err(error) => self.endure(error)?,
            }
        }
        Ok(Arrived::All)
    }

    /// Waits for `length` bytes within a unit, fewer than the buffer holds.
    pub fn wait(&mut self, length: usize) -> Result<(), ConnectionError> {
        debug_assert!(length <= CAPACITY, "{length} bytes are never there at once");
        while !self.has(length) {
            match self.read_more(length) {
                Ok(0) => return Err(io::Error::from(ErrorKind::UnexpectedEof).into()),
                Ok(_) => {}
                Err(error) => self.endure(error)?,
            }
        }
        Ok(())
    }

    fn read_more(&mut self, length: usize) -> io::Result<usize> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.start + length > self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let most = if self.expects_data { length.max(WHILE_DATA_COMES) } else { self.buffer.len() };
        let most = (self.start + most).clamp(self.end + 1, self.buffer.len());
        let count = self.reader.read(&mut self.buffer[self.end..most])?;
        self.end += count;
        self.silent_since = None;
        Ok(count)
    }

    /// An error, unless the reader timed out and the host still has time.
    fn endure(&mut self, error: io::Error) -> Result<(), ConnectionError> {
        match error.kind() {
            ErrorKind::Interrupted => Ok(()),
            ErrorKind::WouldBlock if self.silent_since.get_or_insert_with(Instant::now).elapsed() < PATIENCE => Ok(()),
            _ => Err(error.into()),
        }
    }

    /// The next `length` bytes, which must have arrived; they stay.
    pub fn peek(&self, length: usize) -> &[u8] {
        &self.buffer[self.start..self.start + length]
    }

    /// Takes the next `length` bytes, which must have arrived.
    pub fn take(&mut self, length: usize) -> &[u8] {
        debug_assert!(self.has(length), "bytes are taken after they were waited for");
        let start = self.start;
        self.start += length;
        &self.buffer[start..self.start]
    }

    /// Fills `place` with the next bytes: those that have not arrived are received into it.
    pub fn fill(&mut self, place: &mut [u8]) -> Result<(), ConnectionError> {
        let there = place.len().min(self.end - self.start);
        let (mut filled, _) = (there, place[..there].copy_from_slice(self.take(there)));
        while filled < place.len() {
            match self.reader.read(&mut place[filled..]) {
                Ok(0) => return Err(io::Error::from(ErrorKind::UnexpectedEof).into()),
                Ok(count) => {
                    filled += count;
                    self.silent_since = None;
                }
                Err(error) => self.endure(error)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_and_long_data_come_out_as_they_were_sent() {
        let sent: Vec<u8> = (0..600_000).map(|at| (at % 251) as u8).collect();
        let mut input = Input::new(sent[..100_000].chain(&sent[100_000..]));
        assert_eq!(input.wait_for_unit(72).unwrap(), Arrived::All);
        assert_eq!((input.peek(8), input.has(100_001)), (&sent[..8], false));
        assert_eq!(input.take(72), &sent[..72]);
        let mut data = vec![0; 300_000];
        input.fill(&mut data).unwrap();
        assert_eq!(data, &sent[72..300_072]);
        input.wait(200_000).unwrap();
        assert_eq!(input.take(200_000), &sent[300_072..500_072]);
        let mut rest = vec![0; 99_928];
        input.fill(&mut rest).unwrap();
        assert_eq!(rest, &sent[500_072..]);
        assert_eq!(input.wait_for_unit(8).unwrap(), Arrived::End);
        assert!(input.fill(&mut [0]).is_err());
    }
}
