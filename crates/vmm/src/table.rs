//! The tuples that the monitor keeps of a volume: the frame of each block that is committed and not home.

use crate::ring::Tuple;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// The newest tuple of a block.
#[derive(Clone, Copy, Debug)]
struct Place {
    frame: u32,
    /// Its transaction.
    number: u32,
}

/// The tuples of a volume.
#[derive(Debug)]
pub(crate) struct Table {
    places: FxHashMap<u64, Place>,
    /// A bit for each frame that is kept.
    kept: Vec<u64>,
    /// A bit for each frame that was seen in the commit that is checked; all are clear between two checks.
    seen: Vec<u64>,
    /// The volume's blocks.
    blocks: u64,
    frames: u32,
    most: u32,
    last: u32,
}

/// A commit whose tuples are checked.
pub(crate) struct Checked {
    number: u32,
    tuples: Vec<Tuple>,
    freed: Vec<Range<u64>>,
    /// Frames that are kept from then on, and were not.
    pub new_frames: Vec<u32>,
}

/// True if the bit of a frame is set.
fn is_in(frames: &[u64], frame: u32) -> bool {
    frames[frame as usize / 64] & 1 << (frame % 64) != 0
}

fn set(frames: &mut [u64], frame: u32, is_set: bool) {
    let (word, bit) = (&mut frames[frame as usize / 64], 1 << (frame % 64));
    *word = if is_set { *word | bit } else { *word & !bit };
}

impl Table {
    /// Keeps nothing: the next transaction is `first`.
    pub fn new(blocks: u64, frames: u32, most: u32, first: u32) -> Table {
        let kept = vec![0; frames.div_ceil(64) as usize];
        Table {
            places: FxHashMap::default(),
            seen: kept.clone(),
            kept,
            blocks,
            frames,
            most,
            last: first.wrapping_sub(1),
        }
    }

    /// Looks at a commit before anything is changed.
    pub fn check(&mut self, number: u32, tuples: Vec<Tuple>, freed: Vec<Range<u64>>) -> Result<Checked, String> {
        let looked = self.look(number, &tuples, &freed);
        for (_, frame) in tuples.iter().filter(|(_, frame)| *frame < self.frames) {
            set(&mut self.seen, *frame, false);
        }
        looked.map(|new_frames| Checked { number, tuples, freed, new_frames })
    }

    /// The frames that a commit keeps anew.
    fn look(&mut self, number: u32, tuples: &[Tuple], freed: &[Range<u64>]) -> Result<Vec<u32>, String> {
        let expected = self.last.wrapping_add(1);
        if number != expected {
            return Err(format!("transaction {number} was committed, and {expected} is the next"));
        }
        if let Some(range) = freed.iter().find(|range| range.start >= range.end || range.end > self.blocks) {
            return Err(format!("blocks {range:?} were freed, and the volume has {}", self.blocks));
        }
        // Guests send blocks in ascending order, of which none is twice.
        let is_ascending = tuples.is_sorted_by(|(one, _), (next, _)| one < next);
        let mut blocks = FxHashSet::default();
        let mut new_frames = Vec::with_capacity(tuples.len());
        let mut more = 0;
        for &(block, frame) in tuples {
            if block >= self.blocks || frame >= self.frames {
                let (all, frames) = (self.blocks, self.frames);
                return Err(format!("block {block} in frame {frame}: there are {all} blocks and {frames} frames"));
            }
            if !is_ascending && !blocks.insert(block) || is_in(&self.seen, frame) {
                return Err(format!("block {block} or frame {frame} is twice in transaction {number}"));
            }
            set(&mut self.seen, frame, true);
            let old = self.places.get(&block);
            more += usize::from(old.is_none());
            if old.is_none_or(|place| place.frame != frame) {
                if is_in(&self.kept, frame) {
                    return Err(format!("block {block} in frame {frame}, which is kept for another block"));
                }
                new_frames.push(frame);
            }
        }
        if self.places.len() + more > self.most as usize {
            let (kept, most) = (self.places.len(), self.most);
            return Err(format!("{more} blocks more than {kept}: at most {most} of a volume are kept"));
        }
        Ok(new_frames)
    }

    /// Takes a commit, and answers the frames that are kept no longer.
    pub fn apply(&mut self, commit: Checked) -> Vec<u32> {
        let mut released = Vec::new();
        for range in &commit.freed {
            // A range may be longer than the table.
            if range.end - range.start > self.places.len() as u64 {
                self.drop_if(&mut released, |block, _| range.contains(&block));
            } else {
                range.clone().for_each(|block| {
                    self.drop_one(&mut released, block);
                });
            }
        }
        for &(block, frame) in &commit.tuples {
            set(&mut self.kept, frame, true);
            let old = self.places.insert(block, Place { frame, number: commit.number });
            if let Some(old) = old.filter(|old| old.frame != frame) {
                self.release(&mut released, old.frame);
            }
        }
        self.last = commit.number;
        released
    }

    /// Keeps blocks of transactions before `next` no longer, and answers their frames.
    pub fn let_go(&mut self, next: u32) -> Vec<u32> {
        let mut released = Vec::new();
        self.drop_if(&mut released, |_, number| (number.wrapping_sub(next) as i32) < 0);
        released
    }

    fn drop_if(&mut self, released: &mut Vec<u32>, is_gone: impl Fn(u64, u32) -> bool) {
        let from = released.len();
        self.places.retain(|block, place| {
            let is_gone = is_gone(*block, place.number);
            released.extend(is_gone.then_some(place.frame));
            !is_gone
        });
        for frame in &released[from..] {
            set(&mut self.kept, *frame, false);
        }
        // What a full table took is given back when little is left.
        if self.places.capacity() > 4 * self.places.len().max(1024) {
            self.places.shrink_to(2 * self.places.len());
        }
    }

    fn drop_one(&mut self, released: &mut Vec<u32>, block: u64) {
        if let Some(place) = self.places.remove(&block) {
            self.release(released, place.frame);
        }
    }

    fn release(&mut self, released: &mut Vec<u32>, frame: u32) {
        set(&mut self.kept, frame, false);
        released.push(frame);
    }

    /// All tuples, by block.
    pub fn tuples(&self) -> Vec<Tuple> {
        let mut tuples: Vec<Tuple> = self.places.iter().map(|(block, place)| (*block, place.frame)).collect();
        tuples.sort_unstable();
        tuples
    }

    /// The block that is kept in a frame.
    pub fn block_in(&self, frame: u32) -> Option<u64> {
        self.places.iter().find(|(_, place)| place.frame == frame).map(|(block, _)| *block)
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// The volume's blocks.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// The last transaction.
    pub fn last(&self) -> u32 {
        self.last
    }

    /// Bytes of memory that it takes.
    pub fn memory_bytes(&self) -> usize {
        // Of the hash table: seven of eight places may be taken, and each has a byte of its hash.
        let places = (self.places.capacity() * 8 / 7).next_power_of_two();
        places * (size_of::<(u64, Place)>() + 1) + 2 * self.kept.len() * 8
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "lists of ranges")]
mod tests {
    use super::*;

    fn commit(table: &mut Table, number: u32, tuples: &[Tuple], freed: &[Range<u64>]) -> Vec<u32> {
        let checked = table.check(number, tuples.to_vec(), freed.to_vec()).unwrap_or_else(|why| panic!("{why}"));
        table.apply(checked)
    }

    #[test]
    fn the_newest_frame_of_a_block_is_kept_until_it_is_let_go_or_freed() {
        let mut table = Table::new(1000, 128, 100, u32::MAX);
        assert!(commit(&mut table, u32::MAX, &[(7, 1), (8, 2), (900, 3)], &[]).is_empty());
        assert_eq!(commit(&mut table, 0, &[(7, 4), (9, 5)], &[]), [1], "the older frame of block 7");
        assert_eq!(table.tuples(), [(7, 4), (8, 2), (9, 5), (900, 3)]);
        assert_eq!(table.block_in(5), Some(9));
        let mut released = table.let_go(0);
        released.sort_unstable();
        assert_eq!((released, table.tuples()), (vec![2, 3], vec![(7, 4), (9, 5)]));
        assert_eq!(commit(&mut table, 1, &[(7, 4)], &[9..10]), [5], "7 is committed again as it was");
        assert_eq!(commit(&mut table, 2, &[(3, 1)], &[0..1000]), [4], "all that was there is freed");
        assert_eq!((table.tuples(), table.last()), (vec![(3, 1)], 2));
    }

    #[test]
    fn a_commit_that_cannot_be_right_is_refused_and_changes_nothing() {
        let mut table = Table::new(1000, 128, 4, 5);
        commit(&mut table, 5, &[(1, 1), (2, 2)], &[]);
        for (number, tuples, freed, why) in [
            (5, vec![], vec![], "6 is the next"),
            (6, vec![(1000, 3)], vec![], "there are 1000 blocks"),
            (6, vec![(3, 128)], vec![], "128 frames"),
            (6, vec![(3, 3), (3, 4)], vec![], "twice"),
            (6, vec![(3, 3), (4, 3)], vec![], "twice"),
            (6, vec![(3, 1)], vec![], "kept for another block"),
            (6, vec![(3, 3), (4, 4), (5, 5)], vec![], "at most 4"),
            (6, vec![], vec![7..7], "were freed"),
            (6, vec![], vec![999..1001], "were freed"),
        ] {
            let error = table.check(number, tuples, freed).err().unwrap_or_else(|| panic!("{why}"));
            assert!(error.contains(why), "{why}: {error}");
            assert_eq!(table.tuples(), [(1, 1), (2, 2)]);
        }
    }

    #[test]
    fn a_table_takes_less_than_64_bytes_for_a_block() {
        let most = 1 << 17;
        let mut table = Table::new(1 << 40, most, most, 0);
        for (number, first) in (0..most).step_by(1 << 10).enumerate() {
            let tuples: Vec<Tuple> = (first..first + (1 << 10)).map(|frame| (u64::from(frame) * 77, frame)).collect();
            commit(&mut table, number as u32, &tuples, &[]);
            let bytes = table.memory_bytes() - 2 * most as usize / 8;
            assert!(bytes <= 64 * table.len(), "{bytes} bytes for {} blocks", table.len());
        }
    }
}
