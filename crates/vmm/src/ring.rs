//! The ring in which a guest puts the tuples of a commit: shared memory, of which the monitor makes a copy before it looks at
//! it.

use crate::error::VmmError;
use crate::shared::Shared;
use std::ops::Range;
use std::os::fd::OwnedFd;

/// Bytes of the ring that a guest makes.
pub(crate) const RING_BYTES: u64 = 1 << 20;
/// Bytes of a tuple, and of a range.
const ENTRY_BYTES: usize = 16;
/// The most entries that a part of a commit has.
pub(crate) const ENTRIES: usize = RING_BYTES as usize / ENTRY_BYTES / 2;

/// A block, and the frame in which it is.
pub(crate) type Tuple = (u64, u32);

/// The writing end.
#[derive(Debug)]
pub(crate) struct Ring {
    shared: Shared,
    head: u64,
}

fn entry(first: u64, second: u64) -> [u8; ENTRY_BYTES] {
    let mut bytes = [0; ENTRY_BYTES];
    bytes[..8].copy_from_slice(&first.to_le_bytes());
    bytes[8..].copy_from_slice(&second.to_le_bytes());
    bytes
}

impl Ring {
    pub fn new() -> Result<Ring, VmmError> {
        Ok(Ring { shared: Shared::new("flashpath ring", RING_BYTES)?, head: 0 })
    }

    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Puts entries into it, and answers their place. The monitor has taken all that were put there before.
    pub fn put(&mut self, tuples: &[Tuple], ranges: &[Range<u64>]) -> Result<u64, VmmError> {
        let count = tuples.len() + ranges.len();
        assert!(count <= ENTRIES, "{count} entries at once, of at most {ENTRIES}");
        let mut bytes = written(tuples);
        ranges.iter().for_each(|range| bytes.extend(entry(range.start, range.end)));
        let at = self.head;
        let first = bytes.len().min((RING_BYTES - at) as usize);
        self.shared.write(at, &bytes[..first])?;
        self.shared.write(0, &bytes[first..])?;
        self.head = (at + bytes.len() as u64) % RING_BYTES;
        Ok(at)
    }
}

/// Tuples as they are in a ring, or in a list.
pub(crate) fn written(tuples: &[Tuple]) -> Vec<u8> {
    tuples.iter().flat_map(|(block, frame)| entry(*block, u64::from(*frame))).collect()
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

/// Copies entries out of a guest's ring: tuples, and ranges behind them.
pub(crate) fn take(
    shared: &Shared,
    at: u64,
    tuples: usize,
    ranges: usize,
) -> Result<(Vec<Tuple>, Vec<Range<u64>>), VmmError> {
    let size = shared.bytes();
    let count = tuples.saturating_add(ranges);
    if at >= size || count > ENTRIES || (count * ENTRY_BYTES) as u64 > size {
        let why = format!("{tuples} tuples and {ranges} ranges at {at} of a ring of {size} bytes");
        return Err(VmmError::Protocol(why));
    }
    let mut bytes = vec![0; count * ENTRY_BYTES];
    let first = bytes.len().min((size - at) as usize);
    shared.read(at, &mut bytes[..first])?;
    shared.read(0, &mut bytes[first..])?;
    let mut entries = bytes.chunks_exact(ENTRY_BYTES).map(entry_of);
    let tuples = entries.by_ref().take(tuples).map(tuple).collect::<Result<_, _>>()?;
    Ok((tuples, entries.map(|(start, end)| start..end).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_go_round_and_come_out_as_they_were_put_in() {
        let mut ring = Ring::new().unwrap();
        for round in 0..7_u64 {
            let tuples: Vec<Tuple> = (0..20_000).map(|number| (number * 7 + round, number as u32)).collect();
            let ranges = [round..round + 5, 9..10];
            let at = ring.put(&tuples, &ranges).unwrap();
            assert_eq!(take(ring.shared(), at, tuples.len(), 2).unwrap(), (tuples, ranges.to_vec()), "{round}");
        }
        for (at, tuples, ranges) in [(RING_BYTES, 1, 0), (0, ENTRIES, 1), (0, usize::MAX, usize::MAX)] {
            assert!(take(ring.shared(), at, tuples, ranges).is_err());
        }
    }
}
