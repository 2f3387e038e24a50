//! Replies sent at their completion time: the emulated drive answers as late as the real one would.

use crate::error::ConnectionError;
use crate::replies::Replies;
use flashpath::run::shared::{DueQueue, SharedDevice};
use flashpath::time::Time;
use std::io::{self, Write};

/// The maximum bytes of queued replies; the next request waits until some are sent.
const MOST_BYTES: usize = 64 << 20;

/// Whole replies, ordered by completion time.
pub type Queue = DueQueue<Vec<u8>>;

/// An empty queue.
pub fn queue() -> Queue {
    DueQueue::new(MOST_BYTES)
}

/// Sends each reply at its completion time, until the queue is closed and empty, or the client is gone.
pub fn send_all(queue: &Queue, device: &SharedDevice, mut output: impl Write) {
    // Without this, the kernel wakes a sleeping thread up to 50 us late. If the call fails, replies are that much
    // later.
    let _ = nix::sys::prctl::set_timerslack(1);
    let mut ready = Vec::new();
    while queue.take(|| device.now(), &mut ready) {
        if output.write_all(&ready.concat()).is_err() {
            return queue.abandon();
        }
    }
}

/// Replies that go to the queue.
pub struct Paced<'q> {
    queue: &'q Queue,
    reply: Vec<u8>,
    length: usize,
}

impl<'q> Paced<'q> {
    /// An empty reply for `queue`.
    pub fn new(queue: &'q Queue) -> Paced<'q> {
        Paced { queue, reply: Vec::new(), length: 0 }
    }
}

impl Replies for Paced<'_> {
    fn room(&mut self, bytes: usize) -> Result<&mut [u8], ConnectionError> {
        self.reply.resize(self.length + bytes, 0);
        Ok(&mut self.reply[self.length..])
    }

    fn wrote(&mut self, bytes: usize) {
        self.length += bytes;
        debug_assert!(self.length <= self.reply.len(), "no more was written than there was room for");
    }

    fn end(&mut self, done: Time) -> Result<(), ConnectionError> {
        self.reply.truncate(self.length);
        self.length = 0;
        let reply = std::mem::take(&mut self.reply);
        let is_gone = self.queue.push(done, reply.len(), reply).is_err();
        if is_gone { Err(io::Error::from(io::ErrorKind::BrokenPipe).into()) } else { Ok(()) }
    }

    fn before_waiting(&mut self) -> Result<(), ConnectionError> {
        Ok(())
    }
}
