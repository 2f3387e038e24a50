//! The data of a file: stored and reserved blocks, with holes between.

use crate::fs::nodes::parts::parts;
use crate::fs::volume::Seek;
use std::collections::BTreeMap;
use std::ops::Range;

pub const BLOCK: u64 = 4096;

/// The blocks of a file. Bytes after the end of the file in its last block are zero.
#[derive(Debug, Default)]
pub struct Bytes {
    /// By block number; `None` if reserved, which reads as zeros.
    blocks: BTreeMap<u64, Option<Box<[u8; BLOCK as usize]>>>,
}

impl Bytes {
    /// Number of allocated blocks.
    pub fn count(&self) -> u64 {
        self.blocks.len() as u64
    }

    /// Number of unallocated blocks in a range.
    pub fn missing(&self, range: Range<u64>) -> u64 {
        range.end - range.start - self.blocks.range(range).count() as u64
    }

    pub fn read(&self, offset: u64, bytes: &mut [u8]) {
        for part in parts(offset, bytes.len(), BLOCK as usize) {
            let into = &mut bytes[part.from];
            match self.blocks.get(&part.block) {
                Some(Some(stored)) => into.copy_from_slice(&stored[part.within]),
                Some(None) | None => into.fill(0),
            }
        }
    }

    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        for part in parts(offset, bytes.len(), BLOCK as usize) {
            let stored = self.blocks.entry(part.block).or_default();
            let stored = stored.get_or_insert_with(|| Box::new([0; BLOCK as usize]));
            stored[part.within].copy_from_slice(&bytes[part.from]);
        }
    }

    pub fn reserve(&mut self, range: Range<u64>) {
        for block in range {
            self.blocks.entry(block).or_default();
        }
    }

    /// Zeroes a range, and frees its whole blocks.
    pub fn punch(&mut self, offset: u64, end: u64) {
        let whole = offset.div_ceil(BLOCK)..end / BLOCK;
        let gone: Vec<u64> = match whole.is_empty() {
            true => Vec::new(),
            false => self.blocks.range(whole).map(|(block, _)| *block).collect(),
        };
        for block in gone {
            self.blocks.remove(&block);
        }
        let [head, tail] = [offset / BLOCK, end / BLOCK];
        for block in if head == tail { vec![head] } else { vec![head, tail] } {
            if let Some(Some(stored)) = self.blocks.get_mut(&block) {
                let first = block * BLOCK;
                let (from, to) = (offset.max(first) - first, (end - first).min(BLOCK));
                stored[from as usize..to as usize].fill(0);
            }
        }
    }

    /// Truncates to `size` bytes. Reserved blocks after it are freed, too.
    pub fn cut(&mut self, size: u64) {
        self.blocks.split_off(&size.div_ceil(BLOCK));
        if let Some(Some(last)) = self.blocks.get_mut(&(size / BLOCK)) {
            last[(size % BLOCK) as usize..].fill(0);
        }
    }

    /// The next stored or unstored byte from `offset`, which is less than `size`.
    pub fn seek(&self, offset: u64, size: u64, what: Seek) -> Option<u64> {
        let stored = self.blocks.range(offset / BLOCK..size.div_ceil(BLOCK)).filter(|(_, block)| block.is_some());
        let mut stored = stored.map(|(block, _)| *block);
        match what {
            Seek::Data => stored.next().map(|block| offset.max(block * BLOCK)),
            Seek::Hole => {
                let mut hole = offset / BLOCK;
                while stored.next() == Some(hole) {
                    hole += 1;
                }
                Some(offset.max(hole * BLOCK).min(size))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn punched_and_truncated_ranges_read_as_zeros_and_free_their_blocks() {
        let mut bytes = Bytes::default();
        bytes.write(1000, &[7; 12000]);
        assert_eq!((bytes.count(), bytes.missing(0..10)), (4, 6));
        bytes.punch(2000, 9000);
        let mut found = [9; 13000];
        bytes.read(0, &mut found);
        let is_stored = |at: usize| (1000..2000).contains(&at) || at >= 9000;
        assert!(found.iter().enumerate().all(|(at, byte)| *byte == if is_stored(at) { 7 } else { 0 }));
        assert_eq!(bytes.count(), 3);
        assert_eq!(bytes.seek(0, 13000, Seek::Hole), Some(4096));
        assert_eq!(bytes.seek(5000, 13000, Seek::Data), Some(8192));
        assert_eq!(bytes.seek(9000, 13000, Seek::Hole), Some(13000));
        bytes.reserve(4..6);
        assert_eq!((bytes.count(), bytes.seek(16384, 20000, Seek::Data)), (5, None));
        bytes.cut(9500);
        bytes.write(12000, &[5]);
        bytes.read(9000, &mut found[..3001]);
        assert_eq!((found[499], found[500], found[2999], found[3000]), (7, 0, 0, 5));
        bytes.punch(0, u64::MAX);
        assert_eq!(bytes.count(), 0);
    }
}
