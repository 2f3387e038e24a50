//! Replies that wait for their time: the emulated drive answers when the real one would.
//!
//! Requests are served as they come, so that the device sees as many at once as the client keeps in flight; each reply
//! waits in a queue, and a thread sends it when its time has come. Replies overtake each other as they do on a drive.

use crate::error::ConnectionError;
use crate::replies::Replies;
use flashpath::run::shared::SharedDevice;
use flashpath::time::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// Replies, and bytes of them, that may wait. A client that asks for more waits itself.
const MOST_REPLIES: usize = 4096;
const MOST_BYTES: usize = 64 << 20;

/// Replies that wait for their time.
#[derive(Default)]
pub struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    /// The earliest is on top; of two that are due at once, the one that came first.
    replies: BinaryHeap<Reverse<(Time, u64, Vec<u8>)>>,
    bytes: usize,
    count: u64,
    /// No more will come.
    is_closed: bool,
    /// The socket failed: nothing can be sent any more.
    is_broken: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Nothing that holds the lock can panic; and the queue would still be one.
        self.waiting.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    /// No more replies will come: [`send_all`](Queue::send_all) ends behind the last.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    fn push(&self, due: Time, reply: Vec<u8>) -> Result<(), ConnectionError> {
        let mut waiting = self.lock();
        while (waiting.replies.len() >= MOST_REPLIES || waiting.bytes >= MOST_BYTES) && !waiting.is_broken {
            waiting = self.changed.wait(waiting).unwrap_or_else(|broken| broken.into_inner());
        }
        if waiting.is_broken {
            return Err(io::Error::from(io::ErrorKind::BrokenPipe).into());
        }
        waiting.bytes += reply.len();
        waiting.count += 1;
        let number = waiting.count;
        waiting.replies.push(Reverse((due, number, reply)));
        drop(waiting);
        self.changed.notify_all();
        Ok(())
    }

    /// Sends each reply when its time has come, until the queue is closed and empty.
    pub fn send_all(&self, device: &SharedDevice, mut output: impl Write) {
        // Without this, the kernel wakes a sleeper up to 50 us late. If it refuses, replies are so much later.
        let _ = nix::sys::prctl::set_timerslack(1);
        let mut ready = Vec::new();
        while self.take_due(device, &mut ready) {
            if output.write_all(&ready).is_err() {
                let mut waiting = self.lock();
                waiting.is_broken = true;
                waiting.replies.clear();
                drop(waiting);
                self.changed.notify_all();
                return;
            }
        }
    }

    /// Waits for what is due, and moves it to `ready`. Answers false at the end.
    fn take_due(&self, device: &SharedDevice, ready: &mut Vec<u8>) -> bool {
        ready.clear();
        let mut waiting = self.lock();
        loop {
            let now = device.now();
            while waiting.replies.peek().is_some_and(|Reverse((due, ..))| *due <= now) {
                if let Some(Reverse((_, _, reply))) = waiting.replies.pop() {
                    waiting.bytes -= reply.len();
                    ready.extend_from_slice(&reply);
                }
            }
            if !ready.is_empty() {
                drop(waiting);
                self.changed.notify_all();
                return true;
            }
            waiting = match waiting.replies.peek() {
                None if waiting.is_closed => return false,
                None => self.changed.wait(waiting).unwrap_or_else(|broken| broken.into_inner()),
                Some(Reverse((due, ..))) => {
                    let left = Duration::from_nanos(due.since_ns(now));
                    self.changed.wait_timeout(waiting, left).unwrap_or_else(|broken| broken.into_inner()).0
                }
            };
        }
    }
}

/// Replies that go to a queue.
pub struct Paced<'q> {
    queue: &'q Queue,
    reply: Vec<u8>,
    length: usize,
}

impl<'q> Paced<'q> {
    /// Nothing is to be sent yet.
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
    }

    fn end(&mut self, done: Time) -> Result<(), ConnectionError> {
        self.reply.truncate(self.length);
        self.length = 0;
        self.queue.push(done, std::mem::take(&mut self.reply))
    }

    fn before_waiting(&mut self) -> Result<(), ConnectionError> {
        Ok(())
    }
}
