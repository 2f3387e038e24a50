//! Reply buffers: sent as soon as no request is left to serve, or at their completion time.

use crate::error::ConnectionError;
use flashpath::time::Time;
use std::io::Write;

/// The size of the buffer, in bytes.
const CAPACITY: usize = 512 << 10;

/// A sink of replies. A reply is any number of parts and an end.
pub trait Replies {
    /// Space for a part of at most `bytes`; [`wrote`](Replies::wrote) adds the used part of it.
    fn room(&mut self, bytes: usize) -> Result<&mut [u8], ConnectionError>;

    /// Adds the first `bytes` of the space to the reply.
    fn wrote(&mut self, bytes: usize);

    /// Ends the reply; its request was done at `done`.
    fn end(&mut self, done: Time) -> Result<(), ConnectionError>;

    /// Sends finished replies: the next request has not arrived yet.
    fn before_waiting(&mut self) -> Result<(), ConnectionError>;

    /// Adds a part.
    fn add(&mut self, part: &[u8]) -> Result<(), ConnectionError> {
        self.room(part.len())?[..part.len()].copy_from_slice(part);
        self.wrote(part.len());
        Ok(())
    }
}

/// The maximum number of replies in one call. If many more left in one, the client would wait for the last of them, and then
/// the server for the client.
const AT_ONCE: u32 = 16;

/// Buffered bytes that are sent at once, so that the client receives them while the next are read.
const LARGE: usize = 64 << 10;

/// Replies in the order of their requests; replies to requests that arrived together leave together.
pub struct Prompt<W> {
    output: W,
    buffer: Box<[u8]>,
    length: usize,
    /// Replies in the buffer.
    count: u32,
}

impl<W: Write> Prompt<W> {
    /// An empty buffer before `output`.
    pub fn new(output: W) -> Prompt<W> {
        Prompt { output, buffer: vec![0; CAPACITY].into(), length: 0, count: 0 }
    }

    fn send(&mut self) -> Result<(), ConnectionError> {
        if self.length > 0 {
            self.output.write_all(&self.buffer[..self.length])?;
            (self.length, self.count) = (0, 0);
        }
        Ok(())
    }
}

impl<W: Write> Replies for Prompt<W> {
    fn room(&mut self, bytes: usize) -> Result<&mut [u8], ConnectionError> {
        if self.length + bytes > self.buffer.len() {
            self.send()?;
        }
        assert!(bytes <= CAPACITY, "a reply goes in parts of at most {CAPACITY} bytes, and this one has {bytes}");
        Ok(&mut self.buffer[self.length..self.length + bytes])
    }

    fn wrote(&mut self, bytes: usize) {
        self.length += bytes;
        debug_assert!(self.length <= self.buffer.len(), "no more was written than there was room for");
    }

    fn end(&mut self, _done: Time) -> Result<(), ConnectionError> {
        self.count += 1;
        if self.count >= AT_ONCE || self.length >= LARGE { self.send() } else { Ok(()) }
    }

    fn before_waiting(&mut self) -> Result<(), ConnectionError> {
        self.send()
    }
}
