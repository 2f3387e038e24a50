//! The checksum CRC-32C (Castagnoli), of whole bytes and of bytes in pieces.

use crc_fast::{CrcAlgorithm, Digest, checksum};

/// The checksum of `bytes`.
pub fn crc32c(bytes: &[u8]) -> u32 {
    checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

/// The checksum of some bytes and then `bytes`, where that of the former is `so_far`.
pub fn crc32c_append(so_far: u32, bytes: &[u8]) -> u32 {
    // The state of a digest is the checksum before the last inversion.
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(!so_far));
    digest.update(bytes);
    digest.finalize() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_castagnolis_and_adds_up_over_pieces() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        for cut in 0..=9 {
            assert_eq!(crc32c_append(crc32c(&b"123456789"[..cut]), &b"123456789"[cut..]), 0xe306_9283);
        }
        assert_eq!((crc32c(b""), crc32c_append(0, b"123456789")), (0, 0xe306_9283));
    }
}
