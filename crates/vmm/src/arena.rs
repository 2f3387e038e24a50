//! The frames of a guest: pages of its shared memory, each in use or free.
//!
//! Frames that are taken one after the other lie one behind the other, as far as there are free ones: those of a
//! transaction are then protected by few calls. Frames are taken from words of 64, round the part of the arena that was used
//! before, of which at least half is free; a new word is used if there is none, since new pages have to be found and
//! cleared by the kernel, and are never given back.
//!
//! Frames lie in huge pages where the kernel has them: it protects pages that lie side by side in memory for a third of the cost of others.
//! Pages are put into a huge one before the first of its frames is used.
//!
//! A frame that was committed is read-only, also when it is given back: it is *stale*. Stale frames become free together,
//! when there are many or no others: to let frames be written again takes a call into the kernel for each run of neighbours,
//! which flushes translations of addresses.

use crate::error::VmmError;
use crate::frames::{Frames, WORD};
use crate::mapping::{HUGE_BYTES, Mapping};
use crate::shared::Shared;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Bytes of a frame: a page, which is protected by itself. A smaller block takes a whole one.
pub const FRAME_BYTES: usize = 4096;

/// Frames of a huge page.
const HUGE: u32 = (HUGE_BYTES / FRAME_BYTES) as u32;

/// Free frames of a word from which frames are taken.
const ENOUGH: u32 = WORD / 2;
/// Stale frames that are reclaimed before a new word is used.
const MANY_STALE: u32 = 1024;

/// Which frames are free.
struct Allocation {
    /// A bit for each frame that is free, of the words that were used so far.
    free: Vec<u64>,
    /// Frames that are not in use, and were committed since they were reclaimed.
    stale: Frames,
    stale_count: u32,
    /// The most words.
    most: usize,
    /// The word from which frames are taken, and those of its frames that are: frames that come back meanwhile do not lie
    /// behind them.
    current: usize,
    rest: u64,
}

/// Where the next frame comes from.
#[derive(Debug, PartialEq)]
enum Next {
    Frame(u32),
    /// From the stale ones, when they are reclaimed.
    Reclaim,
    /// None is left.
    Nowhere,
}

impl Allocation {
    fn new(frames: u32) -> Allocation {
        assert!(frames.is_multiple_of(WORD) && frames > 0, "{frames} frames are no whole words");
        Allocation {
            free: vec![u64::MAX],
            stale: Frames::none(frames),
            stale_count: 0,
            most: (frames / WORD) as usize,
            current: 0,
            rest: u64::MAX,
        }
    }

    /// A free frame, which is in use then. `reclaims`: stale ones can be reclaimed.
    fn take(&mut self, reclaims: bool) -> Next {
        if self.rest == 0 {
            match self.next_word(reclaims) {
                Ok(word) => self.current = word,
                Err(next) => return next,
            }
            self.rest = self.free[self.current];
        }
        let bit = self.rest.trailing_zeros();
        self.rest &= !(1 << bit);
        self.free[self.current] &= !(1 << bit);
        Next::Frame(self.current as u32 * WORD + bit)
    }

    /// The next word with free frames.
    fn next_word(&mut self, reclaims: bool) -> Result<usize, Next> {
        let used = self.free.len();
        let mut round = (self.current + 1..used).chain(0..=self.current);
        if let Some(word) = round.clone().find(|word| self.free[*word].count_ones() >= ENOUGH) {
            return Ok(word);
        }
        if reclaims && self.stale_count >= MANY_STALE {
            return Err(Next::Reclaim);
        }
        if used < self.most {
            self.free.push(u64::MAX);
            return Ok(used);
        }
        let is_stale = reclaims && self.stale_count > 0;
        round.find(|word| self.free[*word] != 0).ok_or(if is_stale { Next::Reclaim } else { Next::Nowhere })
    }

    fn give_back(&mut self, frame: u32, is_stale: bool) {
        let (word, bit) = ((frame / WORD) as usize, frame % WORD);
        assert!(self.free[word] & 1 << bit == 0 && !self.stale.contains(frame), "frame {frame} was in use");
        if is_stale {
            self.stale.insert(frame);
            self.stale_count += 1;
        } else {
            self.free[word] |= 1 << bit;
        }
    }

    /// These, which were stale, can be written again.
    fn reclaimed(&mut self, frames: &Frames) {
        for (free, frames) in self.free.iter_mut().zip(frames.words()) {
            *free |= frames;
            self.stale_count -= frames.count_ones();
        }
        self.stale.remove_all(frames);
    }
}

/// The shared memory of a guest, in frames.
pub struct Arena {
    mapping: Mapping,
    frames: u32,
    allocation: Mutex<Allocation>,
    reclaim: OnceLock<Reclaim>,
    /// The kernel has huge pages for it.
    is_huge: bool,
    /// The number of its huge pages, those first, of which frames are used.
    gathered: AtomicU32,
}

/// Lets stale frames be written again; false if that is not possible.
pub(crate) type Reclaim = Box<dyn Fn() -> bool + Send + Sync>;

impl Arena {
    /// Frames in new shared memory, at least so many, and that memory, which only they change from now on.
    pub(crate) fn new(frames: u32) -> Result<(Arena, Shared), VmmError> {
        let frames = frames.max(1).next_multiple_of(WORD);
        let shared = Shared::new("flashpath frames", u64::from(frames) * FRAME_BYTES as u64)?;
        let mapping = Mapping::of(&shared)?;
        shared.seal()?;
        // Before it has a userfaultfd, the kernel tells whether it does so.
        let is_huge = frames >= HUGE && mapping.gather(0..HUGE_BYTES);
        let allocation = Mutex::new(Allocation::new(frames));
        let (reclaim, gathered) = (OnceLock::new(), AtomicU32::new(1));
        Ok((Arena { mapping, frames, allocation, reclaim, is_huge, gathered }, shared))
    }

    /// Stale frames are reclaimed in this way from now on.
    pub(crate) fn reclaim_by(&self, reclaim: Reclaim) {
        let is_first = self.reclaim.set(reclaim).is_ok();
        assert!(is_first, "an arena has one way to reclaim frames");
    }

    fn allocation(&self) -> MutexGuard<'_, Allocation> {
        // Each change of it is one step.
        self.allocation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A frame with a copy of these bytes, at most [`FRAME_BYTES`]; `None` if all are in use.
    pub fn take(self: &Arc<Arena>, bytes: &[u8]) -> Option<Frame> {
        assert!(bytes.len() <= FRAME_BYTES, "{} bytes do not fit into a frame", bytes.len());
        let number = self.next()?;
        let arena = Arc::clone(self);
        let mut frame = Frame { arena, number, length: bytes.len() as u32, is_committed: AtomicBool::new(false) };
        frame.bytes_mut().expect("it is new").copy_from_slice(bytes);
        Some(frame)
    }

    fn next(&self) -> Option<u32> {
        let mut reclaims = self.reclaim.get();
        loop {
            // The lock is free while frames are reclaimed.
            let next = self.allocation().take(reclaims.is_some());
            match next {
                Next::Frame(number) => {
                    self.gather(number);
                    return Some(number);
                }
                Next::Reclaim => reclaims = reclaims.filter(|reclaim| reclaim()),
                Next::Nowhere => return None,
            }
        }
    }

    /// Puts the pages round a frame into a huge page, if it is the first of them that is used.
    fn gather(&self, frame: u32) {
        let page = frame / HUGE;
        if !self.is_huge || page < self.gathered.load(Ordering::Relaxed) || (page + 1) * HUGE > self.frames {
            return;
        }
        // A thread that comes meanwhile writes to its frame before, or behind it.
        if self.gathered.fetch_max(page + 1, Ordering::Relaxed) <= page {
            self.mapping.gather(bytes_of(page * HUGE..(page + 1) * HUGE));
        }
    }

    /// True if frames lie in huge pages; committed ones are protected faster then.
    pub fn is_huge(&self) -> bool {
        self.is_huge
    }

    /// Frames that are read-only and not in use.
    pub(crate) fn stale(&self) -> Frames {
        self.allocation().stale.clone()
    }

    /// These, which were stale, can be written again.
    pub(crate) fn reclaimed(&self, frames: &Frames) {
        self.allocation().reclaimed(frames);
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
        self.mapping.protect(bytes_of(frames), is_read_only)
    }

    /// Has the kernel find the pages of frames now.
    pub(crate) fn populate(&self, frames: Range<u32>) {
        self.mapping.populate(bytes_of(frames));
    }
}

fn bytes_of(frames: Range<u32>) -> Range<usize> {
    frames.start as usize * FRAME_BYTES..frames.end as usize * FRAME_BYTES
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
    /// It is read-only as long as it is in use.
    is_committed: AtomicBool,
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

    /// It is read-only from now on.
    pub(crate) fn commit(&self) {
        self.is_committed.store(true, Ordering::Relaxed);
    }

    /// Its bytes, to be changed; `None` once it was committed, whether it is kept or not.
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        if *self.is_committed.get_mut() {
            return None;
        }
        #[allow(unsafe_code, reason = "a slice of the mapping")]
        // SAFETY: the frame is in use by `self` alone, which is borrowed exclusively.
        Some(unsafe { self.arena.mapping.bytes_mut(self.range()) })
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        let is_stale = *self.is_committed.get_mut();
        self.arena.allocation().give_back(self.number, is_stale);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_lie_together_and_are_used_again_before_new_ones() {
        let mut allocation = Allocation::new(256);
        let take = |allocation: &mut Allocation| match allocation.take(true) {
            Next::Frame(frame) => Some(frame),
            _ => None,
        };
        let first: Vec<u32> = (0..100).map(|_| take(&mut allocation).unwrap()).collect();
        assert_eq!(first, (0..100).collect::<Vec<_>>());
        (0..32).for_each(|frame| allocation.give_back(2 * frame, false));
        let next: Vec<u32> = (0..28 + 32).map(|_| take(&mut allocation).unwrap()).collect();
        assert_eq!(next[..28], (100..128).collect::<Vec<_>>());
        assert_eq!(next[28..], (0..64).step_by(2).collect::<Vec<_>>(), "half of the first word was free");
        allocation.give_back(3, false);
        assert_eq!(take(&mut allocation), Some(128), "a new word is better than a single frame");
        assert_eq!((0..127).filter_map(|_| take(&mut allocation)).count(), 127);
        assert_eq!(
            (take(&mut allocation), take(&mut allocation)),
            (Some(3), None),
            "the last one is taken wherever it is"
        );
    }

    #[test]
    fn committed_frames_are_reclaimed_together() {
        let mut allocation = Allocation::new(2 * MANY_STALE);
        let stale = |allocation: &mut Allocation, frames: Range<u32>| {
            frames.for_each(|frame| {
                assert_eq!(allocation.take(true), Next::Frame(frame));
                allocation.give_back(frame, true);
            });
        };
        stale(&mut allocation, 0..MANY_STALE);
        assert_eq!(allocation.take(true), Next::Reclaim);
        assert_eq!(allocation.take(false), Next::Frame(MANY_STALE), "a new word, if they cannot be reclaimed");
        let all = allocation.stale.clone();
        allocation.reclaimed(&all);
        assert_eq!(allocation.stale_count, 0);
        assert_eq!((0..63).filter(|_| allocation.take(true) != Next::Reclaim).count(), 63);
        assert_eq!(allocation.take(true), Next::Frame(0));
        let mut small = Allocation::new(WORD);
        stale(&mut small, 0..10);
        assert_eq!((10..WORD).filter(|frame| small.take(true) == Next::Frame(*frame)).count(), 54);
        assert_eq!((small.take(false), small.take(true)), (Next::Nowhere, Next::Reclaim), "there are no others");
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
        frame.bytes_mut().unwrap()[FRAME_BYTES - 1] = 9;
        assert_eq!((frame.bytes()[0], frame.bytes()[FRAME_BYTES - 1]), (1, 9));
        frame.commit();
        assert!(frame.bytes_mut().is_none(), "it is read-only, and is copied");
    }
}
