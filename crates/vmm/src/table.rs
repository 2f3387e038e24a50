//! The tuples that the monitor keeps of a volume: the frame of each block that is committed and not home.

use crate::frames::{Frames, WORD};
use crate::ring::Tuple;
use foldhash::{HashMap, HashSet};
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
    /// Its hash has a secret: a guest that chooses its block numbers cannot make them collide, and the monitor slow.
    places: HashMap<u64, Place>,
    /// Frames that are kept.
    kept: Frames,
    /// Frames that are kept, or were and have not been reclaimed: the guest cannot write to them.
    protected: Frames,
    /// Frames of the commit that is checked; none between two checks.
    seen: Frames,
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
    /// Its frames that are not protected.
    pub unprotected: Vec<Range<u32>>,
}

impl Table {
    /// Keeps nothing: the next transaction is `first`.
    pub fn new(blocks: u64, frames: u32, most: u32, first: u32) -> Table {
        let kept = Frames::none(frames);
        Table {
            places: HashMap::default(),
            seen: kept.clone(),
            protected: kept.clone(),
            kept,
            blocks,
            frames,
            most,
            last: first.wrapping_sub(1),
        }
    }

    /// Looks at a commit before anything is changed.
    pub fn check(&mut self, number: u32, tuples: Vec<Tuple>, freed: Vec<Range<u64>>) -> Result<Checked, String> {
        let frames = || tuples.iter().map(|(_, frame)| *frame).filter(|frame| *frame < self.frames);
        let words = match (frames().min(), frames().max()) {
            (Some(first), Some(last)) => (first / WORD) as usize..(last / WORD) as usize + 1,
            _ => 0..0,
        };
        let looked = self.look(number, &tuples, &freed);
        let unprotected = self.seen.runs_without(&self.protected, words.clone());
        self.seen.clear(words);
        looked.map(|()| Checked { number, tuples, freed, unprotected })
    }

    /// Finds the fault of a commit, and puts its frames into `seen`.
    fn look(&mut self, number: u32, tuples: &[Tuple], freed: &[Range<u64>]) -> Result<(), String> {
        let expected = self.last.wrapping_add(1);
        if number != expected {
            return Err(format!("transaction {number} was committed, and {expected} is the next"));
        }
        if let Some(range) = freed.iter().find(|range| range.start >= range.end || range.end > self.blocks) {
            return Err(format!("blocks {range:?} were freed, and the volume has {}", self.blocks));
        }
        // Guests send blocks in ascending order, of which none is twice.
        let is_ascending = tuples.is_sorted_by(|(one, _), (next, _)| one < next);
        let mut blocks = HashSet::default();
        let mut more = 0;
        for &(block, frame) in tuples {
            if block >= self.blocks || frame >= self.frames {
                let (all, frames) = (self.blocks, self.frames);
                return Err(format!("block {block} in frame {frame}: there are {all} blocks and {frames} frames"));
            }
            if !is_ascending && !blocks.insert(block) || !self.seen.insert(frame) {
                return Err(format!("block {block} or frame {frame} is twice in transaction {number}"));
            }
            let old = self.places.get(&block);
            more += usize::from(old.is_none());
            if old.is_none_or(|place| place.frame != frame) && self.kept.contains(frame) {
                return Err(format!("block {block} in frame {frame}, which is kept for another block"));
            }
        }
        if self.places.len() + more > self.most as usize {
            let (kept, most) = (self.places.len(), self.most);
            return Err(format!("{more} blocks more than {kept}: at most {most} of a volume are kept"));
        }
        Ok(())
    }

    /// Takes a commit, whose frames are protected.
    pub fn apply(&mut self, commit: Checked) {
        for range in &commit.freed {
            // A range may be longer than the table.
            if range.end - range.start > self.places.len() as u64 {
                self.drop_if(|block, _| range.contains(&block));
            } else {
                range.clone().for_each(|block| self.drop_one(block));
            }
        }
        for &(block, frame) in &commit.tuples {
            if let Some(old) = self.places.insert(block, Place { frame, number: commit.number }) {
                self.kept.remove(old.frame);
            }
            self.kept.insert(frame);
            self.protected.insert(frame);
        }
        self.last = commit.number;
    }

    /// Keeps blocks of transactions before `next` no longer.
    pub fn let_go(&mut self, next: u32) {
        self.drop_if(|_, number| (number.wrapping_sub(next) as i32) < 0);
    }

    /// Frames that are kept no longer: the guest may write to them again.
    pub fn reclaim(&mut self) -> Vec<Range<u32>> {
        let reclaimed = self.protected.runs_without(&self.kept, 0..self.kept.words().len());
        self.protected.clone_from(&self.kept);
        reclaimed
    }

    fn drop_if(&mut self, is_gone: impl Fn(u64, u32) -> bool) {
        let Table { places, kept, .. } = self;
        places.retain(|block, place| {
            let is_gone = is_gone(*block, place.number);
            if is_gone {
                kept.remove(place.frame);
            }
            !is_gone
        });
        // The memory of a full table is given back when little is left.
        if places.capacity() > 4 * places.len().max(1024) {
            places.shrink_to(2 * places.len());
        }
    }

    fn drop_one(&mut self, block: u64) {
        if let Some(place) = self.places.remove(&block) {
            self.kept.remove(place.frame);
        }
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
        places * (size_of::<(u64, Place)>() + 1) + 3 * self.kept.memory_bytes()
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "lists of ranges")]
mod tests {
    use super::*;

    /// Answers the frames that are to be protected.
    fn commit(table: &mut Table, number: u32, tuples: &[Tuple], freed: &[Range<u64>]) -> Vec<Range<u32>> {
        let checked = table.check(number, tuples.to_vec(), freed.to_vec()).unwrap_or_else(|why| panic!("{why}"));
        let unprotected = checked.unprotected.clone();
        table.apply(checked);
        unprotected
    }

    #[test]
    fn the_newest_frame_of_a_block_is_kept_until_it_is_let_go_or_freed() {
        let mut table = Table::new(1000, 128, 100, u32::MAX);
        assert_eq!(commit(&mut table, u32::MAX, &[(7, 1), (8, 2), (900, 3)], &[]), [1..4]);
        assert_eq!(commit(&mut table, 0, &[(7, 4), (9, 5)], &[]), [4..6]);
        assert_eq!(table.tuples(), [(7, 4), (8, 2), (9, 5), (900, 3)]);
        assert_eq!(table.block_in(5), Some(9));
        assert_eq!(table.reclaim(), [1..2], "the older frame of block 7");
        table.let_go(0);
        assert_eq!((table.tuples(), table.reclaim()), (vec![(7, 4), (9, 5)], vec![2..4]));
        assert_eq!(commit(&mut table, 1, &[(7, 4)], &[9..10]), [], "7 is committed again as it was");
        assert_eq!(commit(&mut table, 2, &[(3, 5)], &[]), [], "5 was freed, and is protected still");
        assert_eq!(commit(&mut table, 3, &[(3, 1)], &[0..1000]), [1..2]);
        assert_eq!((table.tuples(), table.last(), table.reclaim()), (vec![(3, 1)], 3, vec![4..6]));
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
            let bytes = table.memory_bytes() - 3 * most as usize / 8;
            assert!(bytes <= 64 * table.len(), "{bytes} bytes for {} blocks", table.len());
        }
    }
}
