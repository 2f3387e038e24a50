//! Units to the host: sent as soon as no command is left to execute, or at their completion time.

use crate::error::ConnectionError;
use crate::identify::MOST_DATA;
use flashpath::run::shared::DueQueue;
use flashpath::time::Time;
use std::io::{self, Write};

/// The size of the buffer: the longest read with its headers, and small answers.
const CAPACITY: usize = MOST_DATA + (64 << 10);
/// Answers in one call at the most. If many more left in one, the host would wait for the last of them, and then the server for
/// the host.
const AT_ONCE: u32 = 16;
/// Buffered bytes that are sent at once.
const LARGE: usize = 64 << 10;
/// The most bytes of units that wait for their time; the next command waits until some are sent.
const MOST_WAITING: usize = 16 << 20;

/// Takes units.
pub trait Output {
    /// Space for units of at most `bytes`, of any content.
    fn room(&mut self, bytes: usize) -> Result<&mut [u8], ConnectionError>;

    /// Sends the first `bytes` of the space; their command was done at `done`.
    fn end(&mut self, bytes: usize, done: Time) -> Result<(), ConnectionError>;

    /// Sends what is finished: the next unit has not arrived yet.
    fn before_waiting(&mut self) -> Result<(), ConnectionError>;
}

/// Units in the order of their commands.
pub struct Prompt<W> {
    output: W,
    buffer: Box<[u8]>,
    length: usize,
    count: u32,
}

impl<W: Write> Prompt<W> {
    /// An empty buffer before `output`.
    pub fn new(output: W) -> Prompt<W> {
        Prompt { output, buffer: vec![0; CAPACITY].into(), length: 0, count: 0 }
    }
}

impl<W: Write> Output for Prompt<W> {
    fn room(&mut self, bytes: usize) -> Result<&mut [u8], ConnectionError> {
        if self.length + bytes > self.buffer.len() {
            self.before_waiting()?;
        }
        Ok(&mut self.buffer[self.length..self.length + bytes])
    }

    fn end(&mut self, bytes: usize, _done: Time) -> Result<(), ConnectionError> {
        self.length += bytes;
        self.count += 1;
        if self.count >= AT_ONCE || self.length >= LARGE { self.before_waiting() } else { Ok(()) }
    }

    fn before_waiting(&mut self) -> Result<(), ConnectionError> {
        if self.length > 0 {
            self.output.write_all(&self.buffer[..self.length])?;
            (self.length, self.count) = (0, 0);
        }
        Ok(())
    }
}

/// Units by their completion time.
pub type Queue = DueQueue<Vec<u8>>;

/// An empty queue.
pub fn queue() -> Queue {
    DueQueue::new(MOST_WAITING)
}

/// Sends all units at their completion times, until the queue is closed and empty, or the host is gone.
pub fn send_all(queue: &Queue, now: impl Fn() -> Time, mut output: impl Write) {
    // Without this, the kernel wakes a sleeping thread up to 50 us late. If the call fails, answers are that much
    // later.
    let _ = nix::sys::prctl::set_timerslack(1);
    let mut ready = Vec::new();
    while queue.take(&now, &mut ready) {
        if output.write_all(&ready.concat()).is_err() {
            return queue.abandon();
        }
    }
}

/// Units that go to the queue.
pub struct Paced<'q> {
    queue: &'q Queue,
    unit: Vec<u8>,
}

impl<'q> Paced<'q> {
    /// An empty unit for `queue`.
    pub fn new(queue: &'q Queue) -> Paced<'q> {
        Paced { queue, unit: Vec::new() }
    }
}

impl Output for Paced<'_> {
    fn room(&mut self, bytes: usize) -> Result<&mut [u8], ConnectionError> {
        self.unit.resize(bytes, 0);
        Ok(&mut self.unit)
    }

    fn end(&mut self, bytes: usize, done: Time) -> Result<(), ConnectionError> {
        self.unit.truncate(bytes);
        let unit = std::mem::take(&mut self.unit);
        let is_gone = self.queue.push(done, bytes, unit).is_err();
        if is_gone { Err(io::Error::from(io::ErrorKind::BrokenPipe).into()) } else { Ok(()) }
    }

    fn before_waiting(&mut self) -> Result<(), ConnectionError> {
        Ok(())
    }
}
