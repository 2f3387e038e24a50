//! The heads at which the blocks of a sync are written.
//!
//! Each head that a sync touches costs a summary. So a sync of few blocks is written at fewer heads than its blocks have
//! groups: the heads are cut into as many parts as pay, and neighbouring groups share a part, so that few blocks are far
//! from the mean of their part. The cut follows what was synced lately, not one sync alone, so that the same groups stay
//! together. A part is written at the head that has the most of its blocks: a sync of one block
//! at the head of its group.

use crate::fs::sfs::media::format::MOST_HEADS;
use std::array;
use std::ops::Range;

/// Blocks of a sync for each of its heads, measured: docs/decisions/0015-heads.md.
const FEWEST: usize = 20;
/// Blocks of past syncs that count: they count half when there are so many.
const MEMORY: u64 = 16_384;

/// The choice of heads for syncs.
#[derive(Clone, Debug, Default)]
pub(in crate::fs::sfs) struct SyncHeads {
    /// Blocks synced lately, by the heads of their groups.
    synced: [u64; MOST_HEADS],
}

impl SyncHeads {
    /// Merges the blocks of a sync, by the heads of their groups in ascending order, into those of fewer heads.
    pub fn merge(&mut self, by_head: &[(u8, Vec<u32>)]) -> Vec<(u8, Vec<u32>)> {
        by_head.iter().for_each(|(head, slots)| self.synced[usize::from(*head)] += slots.len() as u64);
        if self.synced.iter().sum::<u64>() >= MEMORY {
            self.synced.iter_mut().for_each(|blocks| *blocks /= 2);
        }
        let count: usize = by_head.iter().map(|(_, slots)| slots.len()).sum();
        let part_of = self.cut((count / FEWEST).max(1));
        let parts = by_head.chunk_by(|(one, _), (next, _)| part_of[usize::from(*one)] == part_of[usize::from(*next)]);
        let merged = parts.map(|part| {
            let (most, _) = part.iter().max_by_key(|(_, slots)| slots.len()).expect("a part has a head");
            (*most, part.iter().flat_map(|(_, slots)| slots).copied().collect())
        });
        merged.collect()
    }

    /// The part of each head, for so many parts: neighbours, so that the blocks of a part differ least in their heads. The sum
    /// over all blocks of the squared distance to the mean of their part is the least.
    fn cut(&self, parts: usize) -> [usize; MOST_HEADS] {
        // The sums of the blocks before each head, of their heads, and of their squares.
        let mut sums = [(0.0, 0.0, 0.0); MOST_HEADS + 1];
        for (head, blocks) in self.synced.iter().enumerate() {
            let (blocks, at) = (*blocks as f64, head as f64);
            let (count, heads, squares) = sums[head];
            sums[head + 1] = (count + blocks, heads + blocks * at, squares + blocks * at * at);
        }
        let distance = |part: Range<usize>| {
            let (before, after) = (sums[part.start], sums[part.end]);
            let (count, heads, squares) = (after.0 - before.0, after.1 - before.1, after.2 - before.2);
            if count > 0.0 { squares - heads * heads / count } else { 0.0 }
        };
        // For each number of parts: the least distance of the heads before each, and the begin of the last part then.
        let mut least: [f64; MOST_HEADS + 1] = array::from_fn(|end| distance(0..end));
        let mut begins = vec![[0; MOST_HEADS + 1]];
        let used = self.synced.iter().filter(|blocks| **blocks > 0).count();
        for _ in 1..parts.min(used) {
            let cuts: [(f64, usize); MOST_HEADS + 1] = array::from_fn(|end| {
                let cuts = (0..=end).map(|begin| (least[begin] + distance(begin..end), begin));
                cuts.min_by(|one, other| one.0.total_cmp(&other.0)).expect("a part may be empty")
            });
            least = cuts.map(|(distance, _)| distance);
            begins.push(cuts.map(|(_, begin)| begin));
        }
        let (mut part_of, mut end) = ([0; MOST_HEADS], MOST_HEADS);
        for (part, begins) in begins.iter().enumerate().rev() {
            part_of[begins[end]..end].fill(part);
            end = begins[end];
        }
        part_of
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Syncs so many blocks of each head, and returns the heads that are written, with their numbers of blocks.
    fn sync(heads: &mut SyncHeads, counts: &[usize]) -> Vec<(u8, usize)> {
        let by_head = (0..).zip(counts).filter(|(_, count)| **count > 0);
        let by_head: Vec<(u8, Vec<u32>)> = by_head.map(|(head, count)| (head, vec![0; *count])).collect();
        heads.merge(&by_head).into_iter().map(|(head, slots)| (head, slots.len())).collect()
    }

    #[test]
    fn a_sync_of_one_block_is_written_at_the_head_of_its_group() {
        let mut heads = SyncHeads::default();
        sync(&mut heads, &[900, 30, 10]);
        assert_eq!(sync(&mut heads, &[0, 0, 1]), [(2, 1)]);
        assert_eq!(sync(&mut heads, &[1]), [(0, 1)]);
    }

    #[test]
    fn few_blocks_of_many_groups_are_written_at_the_head_with_most_of_them() {
        let mut heads = SyncHeads::default();
        assert_eq!(sync(&mut heads, &[3, 5, 4, 2]), [(1, 14)]);
    }

    #[test]
    fn more_blocks_are_written_at_more_heads() {
        let mut heads = SyncHeads::default();
        assert_eq!(sync(&mut heads, &[10, 12, 9, 14]), [(1, 22), (3, 23)]);
        assert_eq!(sync(&mut heads, &[100, 120, 90, 140]), [(0, 100), (1, 120), (2, 90), (3, 140)]);
    }

    #[test]
    fn few_blocks_of_a_far_group_have_a_head_of_their_own() {
        assert_eq!(sync(&mut SyncHeads::default(), &[22, 18, 0, 0, 0, 4]), [(0, 40), (5, 4)]);
        assert_eq!(sync(&mut SyncHeads::default(), &[3, 0, 0, 22, 20]), [(0, 3), (3, 42)]);
    }

    #[test]
    fn the_same_groups_stay_together_whatever_one_sync_has_of_them() {
        let mut heads = SyncHeads::default();
        (0..50).for_each(|_| {
            sync(&mut heads, &[10, 12, 9, 14]);
        });
        assert_eq!(sync(&mut heads, &[2, 1, 30, 12]), [(0, 3), (2, 42)]);
    }

    #[test]
    fn nothing_to_sync_needs_no_head() {
        assert_eq!(SyncHeads::default().merge(&[]), []);
    }
}
