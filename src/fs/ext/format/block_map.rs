//! The older map of a file's blocks: 15 numbers of 4 bytes in the inode. The first 12 are blocks of the file; the 13th
//! names a block of such numbers, the 14th a block of such blocks, the 15th one more level. Zero is a hole.

pub const DIRECT: u64 = 12;

/// The way to a block of a file: the place in the inode, then in each block of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    places: [u32; 4],
    /// Blocks of numbers on the way.
    pub levels: usize,
}

impl Way {
    /// The way to a block of the file; `None` if it is beyond the last that can be named. `pointers`: numbers in a block.
    pub fn to(block: u64, pointers: u64) -> Option<Way> {
        if block < DIRECT {
            return Some(Way { places: [block as u32, 0, 0, 0], levels: 0 });
        }
        let mut rest = block - DIRECT;
        let mut span = pointers;
        for levels in 1..=3 {
            if rest < span {
                let mut places = [DIRECT as u32 + levels as u32 - 1, 0, 0, 0];
                for place in &mut places[1..=levels] {
                    span /= pointers;
                    *place = (rest / span) as u32;
                    rest %= span;
                }
                return Some(Way { places, levels });
            }
            rest -= span;
            span *= pointers;
        }
        None
    }

    /// The places on the way: in the inode first.
    pub fn places(&self) -> &[u32] {
        &self.places[..=self.levels]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_has_one_way() {
        let places = |block| Way::to(block, 256).map(|way| way.places().to_vec());
        assert_eq!(places(11), Some(vec![11]));
        assert_eq!(places(12), Some(vec![12, 0]));
        assert_eq!(places(12 + 255), Some(vec![12, 255]));
        assert_eq!(places(12 + 256), Some(vec![13, 0, 0]));
        assert_eq!(places(12 + 256 + 65535), Some(vec![13, 255, 255]));
        assert_eq!(places(12 + 256 + 65536 + 256 * 3 + 7), Some(vec![14, 0, 3, 7]));
        assert_eq!(places(12 + 256 + 65536 + (1 << 24)), None);
    }
}
