//! A range of a file's bytes, block by block.

use std::ops::Range;

/// The part of a range of bytes within one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::fs) struct Part {
    /// The block of the file.
    pub block: u64,
    /// The bytes in the block.
    pub within: Range<usize>,
    /// The same bytes in the range.
    pub from: Range<usize>,
}

/// The parts of `length` bytes from `offset` on, in blocks of `block_bytes`. Empty for no bytes.
pub(in crate::fs) fn parts(offset: u64, length: usize, block_bytes: usize) -> impl Iterator<Item = Part> {
    let (width, end) = (block_bytes as u64, offset + length as u64);
    (offset / width..end.div_ceil(width)).filter(move |_| length > 0).map(move |block| {
        let first = block * width;
        let (from, to) = (offset.max(first), end.min(first + width));
        Part {
            block,
            within: (from - first) as usize..(to - first) as usize,
            from: (from - offset) as usize..(to - offset) as usize,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_is_in_one_part_at_its_place() {
        for (offset, length) in [(0, 0), (5, 0), (0, 8), (3, 1), (7, 2), (3, 20), (8, 16)] {
            let mut next = offset;
            for Part { block, within, from } in parts(offset, length, 8) {
                assert!(!within.is_empty() && within.end <= 8);
                assert_eq!(block * 8 + within.start as u64, next);
                assert_eq!(from, (next - offset) as usize..(next - offset) as usize + within.len());
                next += within.len() as u64;
            }
            assert_eq!(next, offset + length as u64);
        }
    }
}
