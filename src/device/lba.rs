//! The address of a block.

use std::ops::Add;

/// A 4 KiB block of a device, counted from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lba(pub u64);

impl Add<u64> for Lba {
    type Output = Lba;

    fn add(self, blocks: u64) -> Lba {
        Lba(self.0 + blocks)
    }
}
