//! Adaptive polling: waits for a quick client without a sleep.
//!
//! A sleep and a wake-up cost more than most requests: a context switch here and a wake-up call in the client, which on another
//! processor is an interrupt to one that may have halted. So the thread first yields: a client on the same processor then sends
//! what it has, often several requests. While a client answers faster than a sleep takes, the thread polls; it sleeps for a
//! client that is slower.

use crate::socket::Socket;
use std::io::{self, Read};
use std::time::{Duration, Instant};

/// Yields before each sleep.
const YIELDS: u32 = 2;
/// The longest poll: about the cost of a sleep if the processor halts.
const LONGEST: Duration = Duration::from_micros(50);

/// What is known of how quick a client is.
#[derive(Debug, Default)]
pub struct Polling {
    /// True if the last wait was shorter than [`LONGEST`].
    is_quick: bool,
}

impl Polling {
    /// Reads as the socket does, which waits if no bytes have arrived.
    pub fn read(&mut self, socket: &mut Socket, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(count) = socket.read_available(buffer)? {
            return Ok(count);
        }
        let began = Instant::now();
        let mut yields = 0;
        while yields < YIELDS || (self.is_quick && began.elapsed() < LONGEST) {
            std::thread::yield_now();
            yields += 1;
            if let Some(count) = socket.read_available(buffer)? {
                self.is_quick = began.elapsed() < LONGEST;
                return Ok(count);
            }
        }
        let read = socket.read(buffer);
        self.is_quick = began.elapsed() < LONGEST;
        read
    }
}
