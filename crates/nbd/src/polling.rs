//! Adaptive polling: waits for a quick client without a sleep.
//!
//! A sleep and a wake-up cost more than most requests: a context switch here and a wake-up call in the client, which on another
//! processor is an interrupt to one that may have halted. So the thread first yields: a client on the same processor then sends
//! what it has, often several requests. While a client answers faster than a sleep takes, the thread polls; it sleeps for a
//! client that is slower.
//!
//! On a processor that runs other programs, a yield costs a time slice, where a thread that sleeps is woken at once. After such
//! a yield the thread does without for a while.

use crate::socket::Socket;
use std::io::{self, Read};
use std::time::{Duration, Instant};

/// Yields before each sleep.
const YIELDS: u32 = 2;
/// The longest poll: about the cost of a sleep if the processor halts.
const LONGEST: Duration = Duration::from_micros(50);
/// The duration of a yield from which on another program has had a time slice.
const SLICE: Duration = Duration::from_millis(1);
/// Waits without a yield after one that took a time slice: at least, and at most if yields do so again and again. The least
/// bounds their cost to some microseconds a request.
const WITHOUT: (u32, u32) = (512, 8192);

/// The state of waiting for one client.
#[derive(Debug, Default)]
pub struct Polling {
    /// True if the last wait was shorter than [`LONGEST`].
    is_quick: bool,
    /// The remaining waits without a yield.
    without: u32,
    /// The number of them after the last yield that took a time slice.
    penalty: u32,
}

impl Polling {
    /// Reads as the socket does, which waits if no bytes have arrived.
    pub fn read(&mut self, socket: &mut Socket, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(count) = socket.read_available(buffer)? {
            return Ok(count);
        }
        if self.without > 0 {
            self.without -= 1;
            return socket.read(buffer);
        }
        let began = Instant::now();
        let (mut yields, mut last) = (0, Duration::ZERO);
        while self.without == 0 && (yields < YIELDS || (self.is_quick && last < LONGEST)) {
            std::thread::yield_now();
            yields += 1;
            let elapsed = began.elapsed();
            self.took(elapsed - last);
            last = elapsed;
            if let Some(count) = socket.read_available(buffer)? {
                self.is_quick = elapsed < LONGEST;
                return Ok(count);
            }
        }
        let read = socket.read(buffer);
        self.is_quick = began.elapsed() < LONGEST;
        read
    }

    /// Takes account of the duration of a yield.
    fn took(&mut self, duration: Duration) {
        if duration < SLICE {
            self.penalty = 0;
        } else {
            self.penalty = (self.penalty * 2).clamp(WITHOUT.0, WITHOUT.1);
            self.without = self.penalty;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Address;
    use crate::socket::Listener;
    use rustix::time::{ClockId, clock_gettime};
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    fn processor_time() -> Duration {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }

    #[test]
    fn every_byte_arrives_and_a_client_that_becomes_slow_costs_no_processor_time() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("socket");
        let listener = Listener::bind(&Address::Unix(name.clone())).unwrap();
        let mut client = UnixStream::connect(name).unwrap();
        let mut socket = listener.accept().unwrap().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for number in 0..200 {
                    client.write_all(&[number]).unwrap();
                    // Of some the server knows only asleep.
                    if number >= 196 {
                        std::thread::sleep(Duration::from_millis(150));
                    }
                }
            });
            let (mut polling, mut received, mut buffer) = (Polling::default(), Vec::<u8>::new(), [0; 8]);
            let began = processor_time();
            loop {
                match polling.read(&mut socket, &mut buffer).unwrap() {
                    0 => break,
                    count => received.extend(&buffer[..count]),
                }
            }
            assert_eq!(received, (0..200).collect::<Vec<u8>>());
            assert!(!polling.is_quick, "the last wait was long");
            let took = processor_time() - began;
            assert!(took < Duration::from_millis(200), "{took:?} of processor time in 600 ms of waiting");
        });
    }

    #[test]
    fn after_a_yield_that_took_a_time_slice_the_thread_does_without_for_a_while() {
        let mut polling = Polling::default();
        polling.took(Duration::from_micros(900));
        assert_eq!(polling.without, 0);
        for expected in [512, 1024, 2048, 4096, 8192, 8192] {
            polling.took(Duration::from_millis(4));
            assert_eq!(polling.without, expected);
        }
        polling.took(Duration::from_micros(3));
        polling.took(Duration::from_millis(4));
        assert_eq!(polling.without, 512, "a short yield between makes it the first again");
    }
}
