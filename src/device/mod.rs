//! What stores bits.

pub mod nand;
