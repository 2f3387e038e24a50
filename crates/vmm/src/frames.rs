//! Sets of frames, a bit for each.

use std::ops::Range;

/// Frames of a word.
pub(crate) const WORD: u32 = u64::BITS;

/// A set of the frames of an arena.
#[derive(Clone, Debug)]
pub(crate) struct Frames {
    words: Vec<u64>,
}

fn bit(frame: u32) -> (usize, u64) {
    ((frame / WORD) as usize, 1 << (frame % WORD))
}

impl Frames {
    /// None of so many frames.
    pub fn none(frames: u32) -> Frames {
        Frames { words: vec![0; frames.div_ceil(WORD) as usize] }
    }

    pub fn contains(&self, frame: u32) -> bool {
        let (word, bit) = bit(frame);
        self.words[word] & bit != 0
    }

    /// False if it was there before.
    pub fn insert(&mut self, frame: u32) -> bool {
        let (word, bit) = bit(frame);
        let is_new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        is_new
    }

    /// False if it was not there.
    pub fn remove(&mut self, frame: u32) -> bool {
        let (word, bit) = bit(frame);
        let was_there = self.words[word] & bit != 0;
        self.words[word] &= !bit;
        was_there
    }

    /// A bit for each frame, the first frames first.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Takes all away that are in another set.
    pub fn remove_all(&mut self, others: &Frames) {
        self.words.iter_mut().zip(&others.words).for_each(|(word, others)| *word &= !others);
    }

    /// Takes all away of a range of words.
    pub fn clear(&mut self, words: Range<usize>) {
        self.words[words].fill(0);
    }

    /// Runs of neighbours that are in this set and not in the other, in a range of words.
    pub fn runs_without(&self, other: &Frames, words: Range<usize>) -> Vec<Range<u32>> {
        let mut runs: Vec<Range<u32>> = Vec::new();
        for word in words {
            let mut left = self.words[word] & !other.words[word];
            while left != 0 {
                let first = left.trailing_zeros();
                let end = first + (left >> first).trailing_ones();
                let run = word as u32 * WORD + first..word as u32 * WORD + end;
                match runs.last_mut().filter(|last| last.end == run.start) {
                    Some(last) => last.end = run.end,
                    None => runs.push(run),
                }
                left = if end == WORD { 0 } else { left & (u64::MAX << end) };
            }
        }
        runs
    }

    /// Bytes of memory that it takes.
    pub fn memory_bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "lists of ranges")]
mod tests {
    use super::*;

    #[test]
    fn runs_go_over_the_ends_of_words() {
        let (mut all, mut other) = (Frames::none(256), Frames::none(256));
        for frame in (3..7).chain(60..130).chain(192..256) {
            assert!(all.insert(frame) && !all.insert(frame));
        }
        assert_eq!(all.runs_without(&other, 0..4), [3..7, 60..130, 192..256]);
        assert_eq!(all.runs_without(&other, 1..2), [64..128]);
        (62..192).for_each(|frame| assert!(other.insert(frame)));
        assert!(other.remove(100) && !other.remove(100) && !other.contains(100));
        assert_eq!(all.runs_without(&other, 0..4), [3..7, 60..62, 100..101, 192..256]);
        all.remove_all(&other);
        all.clear(3..4);
        assert_eq!(all.runs_without(&Frames::none(256), 0..4), [3..7, 60..62, 100..101]);
    }
}
