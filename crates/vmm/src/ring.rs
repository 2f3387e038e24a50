//! The ring in which a guest puts the tuples of a commit: shared memory, of which the monitor makes a copy before it looks at
//! it. The slots of short messages lie behind it.

use crate::arena::FRAME_BYTES;
use crate::error::VmmError;
use crate::mapping::Mapping;
use crate::shared::Shared;
use crate::slots::{End, Slots, WORDS};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Bytes of a tuple, and of a range.
const ENTRY_BYTES: usize = 16;
/// The entries of a ring.
pub(crate) const RING: usize = 1 << 16;
/// The most entries that a part of a commit has.
pub(crate) const ENTRIES: usize = RING / 2;

/// Bytes of the memory of a ring: its entries, and a page with the slots.
const MEMORY: u64 = (RING * ENTRY_BYTES + FRAME_BYTES) as u64;
const _: () = assert!(WORDS * size_of::<u32>() <= FRAME_BYTES);

/// A block, and the frame in which it is.
pub(crate) type Tuple = (u64, u32);

/// An end of the ring. Its messages order the accesses of both ends to the memory.
#[derive(Debug)]
pub(crate) struct Ring {
    mapping: Arc<Mapping>,
    /// The entry that is written next, at the writing end.
    head: usize,
}

impl Ring {
    /// The writing end of a new ring, and its memory file, for the other end.
    pub fn new() -> Result<(Ring, Shared), VmmError> {
        let shared = Shared::new("flashpath ring", MEMORY)?;
        Ok((Ring { mapping: Arc::new(Mapping::of(&shared)?), head: 0 }, shared))
    }

    /// The reading end of a ring that a guest has passed.
    pub fn received(descriptor: OwnedFd) -> Result<Ring, VmmError> {
        let shared = Shared::received(descriptor, MEMORY, false)?;
        Ok(Ring { mapping: Arc::new(Mapping::of(&shared)?), head: 0 })
    }

    /// The slots behind it, at one end. `patience`: how long this end waits for a message.
    pub fn slots(&self, end: End, patience: Option<Duration>) -> Slots {
        Slots::new(Arc::clone(&self.mapping), RING * ENTRY_BYTES / size_of::<u32>(), end, patience)
    }

    /// The numbers of the entries from a place on, round the end.
    fn entries(&self, at: usize) -> impl Iterator<Item = &[AtomicU64; 2]> {
        let (entries, _) = self.mapping.words()[..RING * ENTRY_BYTES / size_of::<u64>()].as_chunks::<2>();
        entries[at..].iter().chain(entries)
    }

    /// Puts entries into it, and answers their place. The monitor has taken all that were put there before.
    pub fn put(&mut self, tuples: &[Tuple], ranges: &[Range<u64>]) -> u32 {
        let count = tuples.len() + ranges.len();
        assert!(count <= ENTRIES, "{count} entries at once, of at most {ENTRIES}");
        let tuples = tuples.iter().map(|(block, frame)| (*block, u64::from(*frame)));
        let all = tuples.chain(ranges.iter().map(|range| (range.start, range.end)));
        for ([first, second], entry) in self.entries(self.head).zip(all) {
            first.store(entry.0, Ordering::Relaxed);
            second.store(entry.1, Ordering::Relaxed);
        }
        let at = self.head as u32;
        self.head = (self.head + count) % RING;
        at
    }

    /// Copies entries out of it: tuples, and ranges behind them.
    pub fn take(&self, at: u32, tuples: u32, ranges: u32) -> Result<(Vec<Tuple>, Vec<Range<u64>>), VmmError> {
        let (at, tuples, ranges) = (at as usize, tuples as usize, ranges as usize);
        if at >= RING || tuples.saturating_add(ranges) > ENTRIES {
            let why = format!("{tuples} tuples and {ranges} ranges at entry {at} of a ring of {RING}");
            return Err(VmmError::Protocol(why));
        }
        let read = |[first, second]: &[AtomicU64; 2]| (first.load(Ordering::Relaxed), second.load(Ordering::Relaxed));
        let mut entries = self.entries(at).map(read);
        let tuples = entries.by_ref().take(tuples).map(tuple).collect::<Result<_, _>>()?;
        Ok((tuples, entries.take(ranges).map(|(start, end)| start..end).collect()))
    }
}

/// Tuples as they are in a list.
pub(crate) fn written(tuples: &[Tuple]) -> Vec<u8> {
    tuples.iter().flat_map(|(block, frame)| [*block, u64::from(*frame)]).flat_map(u64::to_le_bytes).collect()
}

/// The tuples of a list that the monitor has passed.
pub(crate) fn received(list: OwnedFd, tuples: u64) -> Result<Vec<Tuple>, VmmError> {
    let list = Shared::received(list, tuples * ENTRY_BYTES as u64, false)?;
    let mut bytes = vec![0; list.bytes() as usize];
    list.read(0, &mut bytes)?;
    bytes.chunks_exact(ENTRY_BYTES).map(entry_of).map(tuple).collect()
}

/// The numbers of an entry.
fn entry_of(entry: &[u8]) -> (u64, u64) {
    let number = |at: usize| u64::from_le_bytes(entry[at..at + 8].try_into().expect("eight bytes"));
    (number(0), number(8))
}

fn tuple((block, frame): (u64, u64)) -> Result<Tuple, VmmError> {
    let frame = u32::try_from(frame).map_err(|_| VmmError::Protocol(format!("block {block} in no frame")))?;
    Ok((block, frame))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn entries_go_round_and_come_out_as_they_were_put_in() {
        let (mut ring, shared) = Ring::new().unwrap();
        let other = Ring::received(shared.descriptor().as_fd().try_clone_to_owned().unwrap()).unwrap();
        for round in 0..7_u64 {
            let tuples: Vec<Tuple> = (0..20_000).map(|number| (number * 7 + round, number as u32)).collect();
            let ranges = [round..round + 5, 9..10];
            let at = ring.put(&tuples, &ranges);
            assert_eq!(other.take(at, 20_000, 2).unwrap(), (tuples, ranges.to_vec()), "{round}");
        }
        for (at, tuples, ranges) in [(RING as u32, 1, 0), (0, ENTRIES as u32, 1), (0, u32::MAX, u32::MAX)] {
            assert!(other.take(at, tuples, ranges).is_err());
        }
    }
}
