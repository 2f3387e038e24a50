//! Splits ranges of bytes into blocks of a device or a file.

use crate::units::BLOCK_BYTES;
use std::ops::Range;

/// The maximum number of blocks in a write or read: a larger request is split into parts, all issued at its time.
pub const AT_ONCE: u64 = 256;

/// The stamp of a block with parts of several writes. No write uses it: stamps count from 1.
pub const TORN: u32 = u32::MAX;

/// The blocks that a range of bytes, (offset, length), touches.
pub fn touched((offset, length): (u64, u64)) -> Range<u64> {
    offset / BLOCK_BYTES..(offset + length).div_ceil(BLOCK_BYTES)
}

/// The blocks that a range covers completely.
pub fn covered((offset, length): (u64, u64)) -> Range<u64> {
    let first = offset.div_ceil(BLOCK_BYTES);
    first..((offset + length) / BLOCK_BYTES).max(first)
}

/// The blocks, two at most, that a range covers in part: they are read before they are written, and written whole.
pub fn cut((offset, length): (u64, u64)) -> impl Iterator<Item = u64> {
    let is_cut = |byte: u64| !byte.is_multiple_of(BLOCK_BYTES);
    let touched = touched((offset, length));
    let head = is_cut(offset).then_some(touched.start);
    let tail = is_cut(offset + length).then(|| touched.end - 1).filter(|tail| head != Some(*tail));
    head.into_iter().chain(tail)
}

/// The parts, (first block, number), in which blocks are written or read.
pub fn parts(blocks: Range<u64>) -> impl Iterator<Item = (u64, u64)> {
    debug_assert!(blocks.start <= blocks.end, "blocks {blocks:?} are a range");
    let end = blocks.end;
    blocks.step_by(AT_ONCE as usize).map(move |first| (first, (end - first).min(AT_ONCE)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_touches_cuts_and_covers_blocks() {
        let cuts = |range| cut(range).collect::<Vec<u64>>();
        assert_eq!((touched((4096, 8192)), covered((4096, 8192)), cuts((4096, 8192))), (1..3, 1..3, vec![]));
        assert_eq!((touched((1, 8192)), covered((1, 8192)), cuts((1, 8192))), (0..3, 1..2, vec![0, 2]));
        assert_eq!((touched((4097, 9)), covered((4097, 9)), cuts((4097, 9))), (1..2, 2..2, vec![1]));
        assert_eq!((touched((4096, 9)), covered((4096, 9)), cuts((4096, 9))), (1..2, 1..1, vec![1]));
    }

    #[test]
    fn the_parts_of_a_long_range_are_all_of_it() {
        assert_eq!(parts(5..5).count(), 0);
        assert_eq!(parts(7..7 + 2 * AT_ONCE + 1).collect::<Vec<_>>(), [(7, 256), (263, 256), (519, 1)]);
    }
}
