//! Blocks in memory, allocated when they are written.

use crate::device::block::blocks_in;
use crate::device::{Extent, Lba};
use std::sync::RwLock;

/// The number of blocks that are allocated and freed together.
const CHUNK_BLOCKS: u64 = 64;

/// The number of locks. Chunk c belongs to lock c mod `SHARDS`: threads in different chunks seldom contend.
const SHARDS: usize = 16;

/// The chunks of one lock.
type Shard = RwLock<Vec<Option<Box<[u8]>>>>;

/// Blocks in memory, shared by threads. A block that was never written reads as zeros and takes no memory.
#[derive(Debug)]
pub struct Memory {
    width: usize,
    /// Chunk c is in shard c mod [`SHARDS`]; a shard extends to its last written chunk.
    shards: Box<[Shard; SHARDS]>,
}

/// Code that holds one of the locks does not panic.
const UNBROKEN: &str = "no thread panicked in memory";

impl Memory {
    /// An empty memory for blocks of `width` bytes.
    pub fn new(width: usize) -> Memory {
        Memory { width, shards: Default::default() }
    }

    /// Bytes of a buffer for one block.
    pub fn width(&self) -> usize {
        self.width
    }

    fn shard(&self, chunk: usize) -> (&Shard, usize) {
        (&self.shards[chunk % SHARDS], chunk / SHARDS)
    }

    /// Reads the blocks from `first` on.
    pub fn read(&self, first: Lba, buffer: &mut [u8]) {
        for (chunk, at, part) in parts_mut(first, buffer, self.width) {
            let (shard, index) = self.shard(chunk);
            match shard.read().expect(UNBROKEN).get(index).and_then(Option::as_ref) {
                Some(bytes) => part.copy_from_slice(&bytes[at..at + part.len()]),
                None => part.fill(0),
            }
        }
    }

    /// Writes the blocks from `first` on.
    pub fn write(&self, first: Lba, mut buffer: &[u8]) {
        let mut block = first.0;
        while !buffer.is_empty() {
            let (chunk, at, length) = place(block, buffer.len(), self.width);
            let (shard, index) = self.shard(chunk);
            let mut chunks = shard.write().expect(UNBROKEN);
            if index >= chunks.len() {
                chunks.resize(index + 1, None);
            }
            let bytes = chunks[index].get_or_insert_with(|| vec![0; CHUNK_BLOCKS as usize * self.width].into());
            bytes[at..at + length].copy_from_slice(&buffer[..length]);
            buffer = &buffer[length..];
            block += (length / self.width) as u64;
        }
    }

    /// Makes `blocks` blocks read as zeros, and frees whole chunks.
    pub fn clear(&self, first: Lba, blocks: u64) {
        let (mut block, end) = (first.0, (first.0 + blocks).min(self.end()));
        while block < end {
            let (chunk, at, length) = place(block, ((end - block) as usize).saturating_mul(self.width), self.width);
            let (shard, index) = self.shard(chunk);
            match shard.write().expect(UNBROKEN).get_mut(index) {
                Some(whole) if length == CHUNK_BLOCKS as usize * self.width => *whole = None,
                Some(Some(bytes)) => bytes[at..at + length].fill(0),
                // Nothing was written here.
                Some(None) | None => {}
            }
            block += (length / self.width) as u64;
        }
    }

    /// The end of the written blocks, rounded up.
    fn end(&self) -> u64 {
        let longest = self.shards.iter().map(|shard| shard.read().expect(UNBROKEN).len()).max().unwrap_or(0);
        longest as u64 * SHARDS as u64 * CHUNK_BLOCKS
    }

    /// The state of the blocks from `first` on, at most `blocks`.
    pub fn extent(&self, first: Lba, blocks: u64) -> Extent {
        let is_stored = |block: u64| {
            let (shard, index) = self.shard((block / CHUNK_BLOCKS) as usize);
            shard.read().expect(UNBROKEN).get(index).is_some_and(Option::is_some)
        };
        if first.0 >= self.end() {
            return Extent { blocks, is_stored: false };
        }
        let kind = is_stored(first.0);
        let end = first.0 + blocks;
        let last = if kind { end } else { end.min(self.end()) };
        let mut next = (first.0 / CHUNK_BLOCKS + 1) * CHUNK_BLOCKS;
        while next < last && is_stored(next) == kind {
            next += CHUNK_BLOCKS;
        }
        // Behind the written blocks nothing is stored.
        let next = if !kind && next >= last { end } else { next };
        Extent { blocks: next.min(end) - first.0, is_stored: kind }
    }
}

/// The chunk of a block, its offset there in bytes, and the part of `length` bytes in that chunk.
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
