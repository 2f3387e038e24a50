//! Writes, counted as a block layer sends them to a device.
//!
//! File systems write block after block; the kernel's block layer merges a write into the one before it if it begins where that
//! ends (a back merge), up to the largest request that the device takes. The counts of a traced kernel are merged, and those of
//! calls are not: this makes them the same unit.

use super::{Action, Operation};

/// A counter of merged writes, for one device.
#[derive(Clone, Debug)]
pub struct Merging {
    max_bytes: u64,
    /// The offset behind the last write, and the bytes of its request so far; `None` if the next write cannot be merged.
    open: Option<(u64, u64)>,
    requests: u64,
}

impl Merging {
    /// A counter for a device whose requests have `max_bytes` at most.
    pub fn new(max_bytes: u64) -> Merging {
        assert!(max_bytes > 0, "a request has bytes");
        Merging { max_bytes, open: None, requests: 0 }
    }

    /// The number of requests so far.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Counts an operation, in the order of issue. A flush or a discard ends the request before it; a read does not, since it
    /// is another queue's.
    pub fn count(&mut self, operation: &Operation) {
        match operation.action {
            Action::Write => self.write(operation.offset_bytes, operation.end_bytes()),
            Action::Discard | Action::Flush => self.end(),
            Action::Read => {}
        }
    }

    /// Ends the request: the next write is not merged into it.
    pub fn end(&mut self) {
        self.open = None;
    }

    /// Counts a write of the bytes from `begin` to `end`.
    pub fn write(&mut self, begin: u64, end: u64) {
        let bytes = end - begin;
        if bytes == 0 {
            return;
        }
        let before = self.open.filter(|(next, _)| *next == begin).map_or(0, |(_, bytes)| bytes);
        let all = before + bytes;
        self.requests += all.div_ceil(self.max_bytes) - before.div_ceil(self.max_bytes);
        // Only the last request can still grow: a whole number of full ones is behind it.
        self.open = Some((end, (all - 1) % self.max_bytes + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::label::Content;

    const KIB: u64 = 1024;

    fn counted(max: u64, operations: &[(Action, u64, u64)]) -> u64 {
        let mut merging = Merging::new(max * KIB);
        for (action, offset, length) in operations {
            merging.count(&Operation {
                time_ns: 0,
                offset_bytes: offset * KIB,
                length_bytes: length * KIB,
                action: *action,
                content: Content::Data,
                stream: 0,
                device: 0,
            });
        }
        merging.requests()
    }

    #[test]
    fn writes_that_continue_each_other_are_one_request_up_to_the_largest() {
        use Action::{Discard, Flush, Read, Write};
        let blocks = |count: u64| (0..count).map(|block| (Write, block * 4, 4)).collect::<Vec<_>>();
        assert_eq!(counted(44, &blocks(11)), 1);
        assert_eq!(counted(44, &blocks(12)), 2);
        assert_eq!(counted(44, &blocks(110)), 10);
        assert_eq!(counted(4, &blocks(110)), 110);
        // A large one is split, and its rest grows.
        assert_eq!(counted(44, &[(Write, 0, 64)]), 2);
        assert_eq!(counted(44, &[(Write, 0, 64), (Write, 64, 24)]), 2);
        assert_eq!(counted(44, &[(Write, 0, 64), (Write, 64, 25)]), 3);
        assert_eq!(counted(44, &[(Write, 0, 44), (Write, 44, 4)]), 2);
        // No merge to the front, over a gap, over a flush or a discard; but over a read.
        assert_eq!(counted(44, &[(Write, 4, 4), (Write, 0, 4)]), 2);
        assert_eq!(counted(44, &[(Write, 0, 4), (Write, 8, 4)]), 2);
        assert_eq!(counted(44, &[(Write, 0, 4), (Flush, 0, 0), (Write, 4, 4)]), 2);
        assert_eq!(counted(44, &[(Write, 0, 4), (Discard, 8, 4), (Write, 4, 4)]), 2);
        assert_eq!(counted(44, &[(Write, 0, 4), (Read, 8, 4), (Write, 4, 4)]), 1);
    }
}
