//! Slots of shared memory for short messages, each with a futex as its bell: a message there and back takes half the time of
//! one through a socket.
//!
//! Words of 32 bits: for each direction a bell, the length of the message (0: none), and its bytes. The other process may
//! change all of them at any time, so that a message is copied before it is read.

use crate::mapping::Mapping;
use rustix::io::Errno;
use rustix::thread::{Timespec, futex};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The longest message, in bytes.
const LONGEST: usize = 56;
/// Words of a slot, in two cache lines.
const SLOT: usize = 32;
const BELL: usize = 0;
const LENGTH: usize = 1;
const BYTES: usize = 2;

/// Words of the slots of both directions.
pub(crate) const WORDS: usize = 2 * SLOT;

/// An end of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Guest,
    Monitor,
}

/// A message out of a slot.
pub(crate) struct Short {
    bytes: [u8; LONGEST],
    length: usize,
}

impl Short {
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// An end of the slots of a connection.
#[derive(Debug)]
pub(crate) struct Slots {
    mapping: Arc<Mapping>,
    /// The first word of the slot that this end writes, and of the one that it reads.
    out: usize,
    into: usize,
    /// The count of the bell when this end looked last.
    heard: AtomicU32,
    /// How long this end waits for a message.
    pub patience: Option<Duration>,
}

impl Slots {
    /// Those in the words of a mapping from `at` on.
    pub fn new(mapping: Arc<Mapping>, at: usize, end: End, patience: Option<Duration>) -> Slots {
        let (out, into) = match end {
            End::Guest => (at, at + SLOT),
            End::Monitor => (at + SLOT, at),
        };
        Slots { mapping, out, into, heard: AtomicU32::new(0), patience }
    }

    fn slot(&self, at: usize) -> &[AtomicU32] {
        &self.mapping.halves()[at..at + SLOT]
    }

    /// Puts a message in the slot to the other end, and rings. Answers false, and does neither, if it is too long.
    pub fn put(&self, message: &[u8]) -> bool {
        if message.is_empty() || message.len() > LONGEST {
            return false;
        }
        let slot = self.slot(self.out);
        for (word, bytes) in slot[BYTES..].iter().zip(message.chunks(4)) {
            let mut four = [0; 4];
            four[..bytes.len()].copy_from_slice(bytes);
            word.store(u32::from_le_bytes(four), Ordering::Relaxed);
        }
        slot[LENGTH].store(message.len() as u32, Ordering::Release);
        self.ring();
        true
    }

    /// Takes the message out of the slot from the other end.
    pub fn take(&self) -> Option<Short> {
        let slot = self.slot(self.into);
        // Before the length: a message that comes between the two rings once more, for nothing.
        self.heard.store(slot[BELL].load(Ordering::Acquire), Ordering::Relaxed);
        let length = (slot[LENGTH].swap(0, Ordering::AcqRel) as usize).min(LONGEST);
        let mut bytes = [0; LONGEST];
        for (four, word) in bytes.chunks_exact_mut(4).zip(&slot[BYTES..]).take(length.div_ceil(4)) {
            four.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
        }
        (length > 0).then_some(Short { bytes, length })
    }

    /// Wakes the other end, to look at its slot and at its socket.
    pub fn ring(&self) {
        wake(&self.slot(self.out)[BELL]);
    }

    /// Wakes the waiter at this end.
    pub fn ring_own(&self) {
        wake(&self.slot(self.into)[BELL]);
    }

    /// Waits until the bell has rung since the last look, at most so long. Answers false if it has not rung in that time.
    pub fn wait(&self, longest: Duration) -> bool {
        let longest = Timespec { tv_sec: longest.as_secs() as i64, tv_nsec: i64::from(longest.subsec_nanos()) };
        let heard = self.heard.load(Ordering::Relaxed);
        // A bell that has rung already, and a signal, are errors too: the caller looks.
        futex::wait(&self.slot(self.into)[BELL], futex::Flags::empty(), heard, Some(&longest)) != Err(Errno::TIMEDOUT)
    }
}

fn wake(bell: &AtomicU32) {
    bell.fetch_add(1, Ordering::Release);
    // It fails for memory that is not mapped, and this is.
    let _ = futex::wake(bell, futex::Flags::empty(), 1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::Shared;

    fn ends() -> (Slots, Slots) {
        let shared = Shared::new("test", 4096).unwrap();
        let new = |end| Slots::new(Arc::new(Mapping::of(&shared).unwrap()), 64, end, None);
        (new(End::Guest), new(End::Monitor))
    }

    #[test]
    fn messages_come_out_of_the_other_end_as_they_were_put_in() {
        let (guest, monitor) = ends();
        for length in 1..=LONGEST {
            let message: Vec<u8> = (0..length).map(|byte| (byte * 3 + length) as u8).collect();
            for (from, to) in [(&guest, &monitor), (&monitor, &guest)] {
                assert!(from.put(&message));
                assert_eq!(to.take().unwrap().bytes(), message);
                assert!(to.take().is_none() && from.take().is_none());
            }
        }
        assert!(!guest.put(&[1; LONGEST + 1]) && !guest.put(&[]) && monitor.take().is_none());
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a thread for the other end")]
    fn a_bell_that_rings_before_the_wait_is_not_lost() {
        let (guest, monitor) = ends();
        let answering = std::thread::spawn(move || {
            for number in 0..2_000_u32 {
                let message = loop {
                    match monitor.take() {
                        Some(message) => break message,
                        None => assert!(monitor.wait(Duration::from_secs(60)), "no wait runs out"),
                    }
                };
                assert_eq!(message.bytes(), number.to_le_bytes());
                monitor.put(&[1]);
            }
        });
        for number in 0..2_000_u32 {
            guest.put(&number.to_le_bytes());
            while guest.take().is_none() {
                assert!(guest.wait(Duration::from_secs(60)), "no wait runs out");
            }
        }
        answering.join().unwrap();
    }

    #[test]
    fn a_length_that_the_other_process_has_invented_is_cut() {
        let (guest, monitor) = ends();
        guest.slot(guest.out)[LENGTH].store(u32::MAX, Ordering::Relaxed);
        assert_eq!(monitor.take().unwrap().bytes().len(), LONGEST);
    }
}
