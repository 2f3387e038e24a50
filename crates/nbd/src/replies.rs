//! How replies leave: as soon as nothing more waits to be served, or when their time has come.

use crate::error::ConnectionError;
use flashpath::time::Time;
use std::io::Write;

/// Bytes that are collected before they are sent.
const CAPACITY: usize = 512 << 10;

/// Where replies are written. A reply is any number of parts, and then its end.
pub trait Replies {
    /// Room for a part of at most `bytes`, of which [`wrote`](Replies::wrote) says how many were used.
    fn room(&mut self, bytes: usize) -> Result<&mut [u8], ConnectionError>;

    /// The first `bytes` of the room are a part of the reply.
    fn wrote(&mut self, bytes: usize);

    /// The reply is whole, and what it answers was done at `done`.
    fn end(&mut self, done: Time) -> Result<(), ConnectionError>;

    /// The next request is not there yet: what can be sent is.
    fn before_waiting(&mut self) -> Result<(), ConnectionError>;

    /// Adds a part.
    fn add(&mut self, part: &[u8]) -> Result<(), ConnectionError> {
        self.room(part.len())?[..part.len()].copy_from_slice(part);
        self.wrote(part.len());
        Ok(())
    }
}

/// Replies that leave in one call at most. With all of a deep queue in one, the client would wait for the last of them, and then the server
/// for the client.
const AT_ONCE: u32 = 8;

/// Replies in the order of their requests; some leave in one call if as many requests came in one.
pub struct Prompt<W> {
    output: W,
    buffer: Box<[u8]>,
    length: usize,
    /// Replies in the buffer.
    count: u32,
}

impl<W: Write> Prompt<W> {
    /// Nothing is to be sent yet.
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
        if self.count == AT_ONCE { self.send() } else { Ok(()) }
    }

    fn before_waiting(&mut self) -> Result<(), ConnectionError> {
        self.send()
    }
}
