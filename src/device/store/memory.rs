//! Blocks in memory, of which only what is written is taken.

use crate::device::block::blocks_in;
use crate::device::{Extent, Lba};

/// Blocks that are taken and given back at once.
const CHUNK_BLOCKS: u64 = 64;

/// Blocks in memory. What was never written reads as zeros and takes no memory.
#[derive(Debug)]
pub struct Memory {
    width: usize,
    /// As far as the last that was ever written.
    chunks: Vec<Option<Box<[u8]>>>,
}

impl Memory {
    /// For blocks of so many bytes each.
    pub fn new(width: usize) -> Memory {
        Memory { width, chunks: Vec::new() }
    }

    /// Bytes that stand for a block.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Reads the blocks from `first` on.
    pub fn read(&self, first: Lba, buffer: &mut [u8]) {
        for (chunk, at, part) in parts_mut(first, buffer, self.width) {
            match self.chunks.get(chunk).and_then(Option::as_ref) {
                Some(bytes) => part.copy_from_slice(&bytes[at..at + part.len()]),
                None => part.fill(0),
            }
        }
    }

    /// Writes the blocks from `first` on.
    pub fn write(&mut self, first: Lba, mut buffer: &[u8]) {
        let mut block = first.0;
        while !buffer.is_empty() {
            let (chunk, at, length) = place(block, buffer.len(), self.width);
            let width = self.width;
            if chunk >= self.chunks.len() {
                self.chunks.resize(chunk + 1, None);
            }
            let bytes = self.chunks[chunk].get_or_insert_with(|| vec![0; CHUNK_BLOCKS as usize * width].into());
            bytes[at..at + length].copy_from_slice(&buffer[..length]);
            buffer = &buffer[length..];
            block += (length / self.width) as u64;
        }
    }

    /// Makes `blocks` blocks read as zeros, and gives back the memory of those that can be.
    pub fn clear(&mut self, first: Lba, blocks: u64) {
        let (mut block, end) = (first.0, first.0 + blocks);
        while block < end {
            let (chunk, at, length) = place(block, ((end - block) as usize).saturating_mul(self.width), self.width);
            match self.chunks.get_mut(chunk) {
                Some(whole) if length == CHUNK_BLOCKS as usize * self.width => *whole = None,
                Some(Some(bytes)) => bytes[at..at + length].fill(0),
                // Nothing was written here, and nothing beyond the table's end.
                Some(None) => {}
                None => return,
            }
            block += (length / self.width) as u64;
        }
    }

    /// How the blocks from `first` on, at most `blocks`, are stored.
    pub fn extent(&self, first: Lba, blocks: u64) -> Extent {
        let is_stored = |block: u64| self.chunks.get((block / CHUNK_BLOCKS) as usize).is_some_and(Option::is_some);
        let kind = is_stored(first.0);
        let end = first.0 + blocks;
        if first.0 / CHUNK_BLOCKS >= self.chunks.len() as u64 {
            return Extent { blocks, is_stored: false };
        }
        let mut next = (first.0 / CHUNK_BLOCKS + 1) * CHUNK_BLOCKS;
        while next < end && is_stored(next) == kind {
            next += CHUNK_BLOCKS;
        }
        Extent { blocks: next.min(end) - first.0, is_stored: kind }
    }
}

/// The chunk of a block, the bytes before it there, and how many of `length` bytes are in that chunk.
fn place(block: u64, length: usize, width: usize) -> (usize, usize, usize) {
    let within = (block % CHUNK_BLOCKS) as usize;
    let room = (CHUNK_BLOCKS as usize - within) * width;
    ((block / CHUNK_BLOCKS) as usize, within * width, length.min(room))
}

fn parts_mut(first: Lba, mut buffer: &mut [u8], width: usize) -> impl Iterator<Item = (usize, usize, &mut [u8])> {
    let mut block = first.0;
    blocks_in(buffer.len(), width);
    std::iter::from_fn(move || {
        if buffer.is_empty() {
            return None;
        }
        let (chunk, at, length) = place(block, buffer.len(), width);
        let (part, rest) = std::mem::take(&mut buffer).split_at_mut(length);
        buffer = rest;
        block += (length / width) as u64;
        Some((chunk, at, part))
    })
}
