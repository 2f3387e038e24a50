//! The source of zeros that are stored.

use crate::units::BLOCK_BYTES;

const BYTES: usize = 64 * BLOCK_BYTES as usize;

/// Bytes at the border of a page of memory.
#[repr(align(4096))]
struct Aligned([u8; BYTES]);

static ALIGNED: Aligned = Aligned([0; BYTES]);

/// Zeros to write from, 64 blocks of them, at the border of a page of memory.
///
/// The first read of such a page waits for the program's file. A kill then ends a write at the border of that page: with zeros at any
/// other place within a block, which would be neither old nor new.
pub static ZEROS: &[u8; BYTES] = &ALIGNED.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_a_kill_cuts_at_a_page_of_memory_ends_between_blocks() {
        assert_eq!(BLOCK_BYTES, 4096, "a page of memory is a block");
        assert!(ZEROS.as_ptr().addr().is_multiple_of(BLOCK_BYTES as usize));
    }
}
