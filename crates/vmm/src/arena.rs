//! The frames of a guest: pages of its shared memory, each in use or free.
//!
//! Frames that are taken one after the other lie one behind the other, as far as there are free ones: those of a
//! transaction are then protected by few calls. Frames are taken from words of 64, round the part of the arena that was used
//! before, of which at least half is free; a new word is used if there is none, since new pages have to be found and
//! cleared by the kernel, and are never given back.

use crate::error::VmmError;
use crate::mapping::Mapping;
use crate::shared::Shared;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of a frame: a page, which is protected by itself. A smaller block takes a whole one.
pub const FRAME_BYTES: usize = 4096;

const WORD: u32 = u64::BITS;
/// Free frames of a word from which frames are taken.
const ENOUGH: u32 = WORD / 2;

/// Which frames are free.
struct Allocation {
    /// A bit for each frame that is free, of the words that were used so far.
    free: Vec<u64>,
    /// The most words.
    most: usize,
    /// The word from which frames are taken, and those of its frames that are: what comes back meanwhile does not lie
    /// behind them.
    current: usize,
    rest: u64,
}

impl Allocation {
    fn new(frames: u32) -> Allocation {
        assert!(frames.is_multiple_of(WORD) && frames > 0, "{frames} frames are no whole words");
        Allocation { free: vec![u64::MAX], most: (frames / WORD) as usize, current: 0, rest: u64::MAX }
    }

    /// A free frame, which is in use then; `None` if there is none.
    fn take(&mut self) -> Option<u32> {
        if self.rest == 0 {
            self.current = self.next_word()?;
            self.rest = self.free[self.current];
        }
        let bit = self.rest.trailing_zeros();
        self.rest &= !(1 << bit);
        self.free[self.current] &= !(1 << bit);
        Some(self.current as u32 * WORD + bit)
    }

    /// The next word with free frames.
    fn next_word(&mut self) -> Option<usize> {
        let used = self.free.len();
        let mut round = (self.current + 1..used).chain(0..=self.current);
        if let Some(word) = round.clone().find(|word| self.free[*word].count_ones() >= ENOUGH) {
            return Some(word);
        }
        if used < self.most {
            self.free.push(u64::MAX);
            return Some(used);
        }
        round.find(|word| self.free[*word] != 0)
    }

    fn give_back(&mut self, frame: u32) {
        let (word, bit) = ((frame / WORD) as usize, frame % WORD);
        assert!(self.free[word] & 1 << bit == 0, "frame {frame} was in use");
        self.free[word] |= 1 << bit;
    }
}

/// The shared memory of a guest, in frames.
pub struct Arena {
    mapping: Mapping,
    frames: u32,
    allocation: Mutex<Allocation>,
}

impl Arena {
    /// Frames in new shared memory, at least so many, and that memory, which only they change from now on.
    pub(crate) fn new(frames: u32) -> Result<(Arena, Shared), VmmError> {
        let frames = frames.max(1).next_multiple_of(WORD);
        let shared = Shared::new("flashpath frames", u64::from(frames) * FRAME_BYTES as u64)?;
        let mapping = Mapping::of(&shared)?;
        shared.seal()?;
        Ok((Arena { mapping, frames, allocation: Mutex::new(Allocation::new(frames)) }, shared))
    }

    fn allocation(&self) -> MutexGuard<'_, Allocation> {
        // Each change of it is one step.
        self.allocation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A frame with a copy of these bytes, at most [`FRAME_BYTES`]; `None` if all are in use.
    pub fn take(self: &Arc<Arena>, bytes: &[u8]) -> Option<Frame> {
        assert!(bytes.len() <= FRAME_BYTES, "{} bytes do not fit into a frame", bytes.len());
        let number = self.allocation().take()?;
        let mut frame = Frame { arena: Arc::clone(self), number, length: bytes.len() as u32 };
        frame.bytes_mut().copy_from_slice(bytes);
        Some(frame)
    }

    /// The number of frames.
    pub fn frames(&self) -> u32 {
        self.frames
    }

    /// The mapped memory.
    pub(crate) fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// Lets frames be read only, or be written again.
    pub(crate) fn protect(&self, frames: Range<u32>, is_read_only: bool) -> Result<(), VmmError> {
        let bytes = frames.start as usize * FRAME_BYTES..frames.end as usize * FRAME_BYTES;
        self.mapping.protect(bytes, is_read_only)
    }
}

impl fmt::Debug for Arena {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Arena").field("frames", &self.frames).finish()
    }
}

/// A frame in use. It is free again when it is dropped.
#[derive(Debug)]
pub struct Frame {
    arena: Arc<Arena>,
    number: u32,
    length: u32,
}

impl Frame {
    fn range(&self) -> Range<usize> {
        let start = self.number as usize * FRAME_BYTES;
        start..start + self.length as usize
    }

    /// Its number in the arena.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// True if it is a frame of this arena.
    pub(crate) fn is_of(&self, arena: &Arc<Arena>) -> bool {
        Arc::ptr_eq(&self.arena, arena)
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        #[allow(unsafe_code, reason = "a slice of the mapping")]
        // SAFETY: the frame is in use by `self` alone, and is changed through `bytes_mut` alone, which needs it exclusively.
        unsafe {
            self.arena.mapping.bytes_of(self.range())
        }
    }

    /// Its bytes, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        #[allow(unsafe_code, reason = "a slice of the mapping")]
        // SAFETY: the frame is in use by `self` alone, which is borrowed exclusively.
        unsafe {
            self.arena.mapping.bytes_mut(self.range())
        }
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        self.arena.allocation().give_back(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_lie_together_and_are_used_again_before_new_ones() {
        let mut allocation = Allocation::new(256);
        let first: Vec<u32> = (0..100).map(|_| allocation.take().unwrap()).collect();
        assert_eq!(first, (0..100).collect::<Vec<_>>());
        (0..32).for_each(|frame| allocation.give_back(2 * frame));
        let next: Vec<u32> = (0..28 + 32).map(|_| allocation.take().unwrap()).collect();
        assert_eq!(next[..28], (100..128).collect::<Vec<_>>());
        assert_eq!(next[28..], (0..64).step_by(2).collect::<Vec<_>>(), "half of the first word was free");
        allocation.give_back(3);
        assert_eq!(allocation.take(), Some(128), "a new word is better than a single frame");
        assert_eq!((0..127).filter_map(|_| allocation.take()).count(), 127);
        assert_eq!((allocation.take(), allocation.take()), (Some(3), None), "the last one is taken wherever it is");
    }

    #[test]
    fn frames_keep_their_bytes_and_come_back_when_they_are_dropped() {
        let (arena, shared) = Arena::new(1).unwrap();
        let arena = Arc::new(arena);
        assert_eq!(arena.frames(), 64);
        let frames: Vec<Frame> = (0..64_u8).map(|byte| arena.take(&[byte; 1024]).unwrap()).collect();
        assert!(arena.take(&[0]).is_none(), "all are in use");
        assert!(frames.iter().all(|frame| frame.bytes() == [frame.number() as u8; 1024]));
        let mut found = [0; 1024];
        shared.read(7 * FRAME_BYTES as u64, &mut found).unwrap();
        assert_eq!(found, [7; 1024], "who has the memory file sees them");
        drop(frames);
        let mut frame = arena.take(&[1; FRAME_BYTES]).unwrap();
        frame.bytes_mut()[FRAME_BYTES - 1] = 9;
        assert_eq!((frame.bytes()[0], frame.bytes()[FRAME_BYTES - 1]), (1, 9));
    }
}
