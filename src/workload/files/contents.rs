//! File contents: pseudo-random bytes, computed from the seed, the file, the version and the offset alone.
//!
//! A read can be checked without a copy of the written data, files differ from each other, and the bytes are
//! incompressible.
//!
//! The 8 bytes at offset 8 i (little-endian) are mum(x, x ^ B) with x = key + i A: the two halves of the product of 128
//! bits, exclusively ored, as in the generator wyrand (Wang Yi, in the public domain); A and B are its constants. The
//! key is drawn from seed, file and version by the finaliser of SplitMix64.

const A: u64 = 0xa076_1d64_78bd_642f;
const B: u64 = 0xe703_7ed1_a0b4_28db;

/// Fills `bytes` with the content of a file from `offset` on, as of `version`.
pub fn fill(seed: u64, file: u64, version: u32, offset: u64, bytes: &mut [u8]) {
    let key = mix(mix(seed ^ A).wrapping_add(file)).wrapping_add(mix(u64::from(version)));
    let mut index = offset / 8;
    let mut rest = bytes;
    let inside = (offset % 8) as usize;
    if inside > 0 {
        let (head, after) = rest.split_at_mut(rest.len().min(8 - inside));
        head.copy_from_slice(&word(key, index)[inside..inside + head.len()]);
        rest = after;
        index += 1;
    }
    let (words, tail) = rest.as_chunks_mut::<8>();
    for bytes in words {
        *bytes = word(key, index);
        index += 1;
    }
    tail.copy_from_slice(&word(key, index)[..tail.len()]);
}

#[inline]
fn word(key: u64, index: u64) -> [u8; 8] {
    let x = key.wrapping_add(index.wrapping_mul(A));
    let product = u128::from(x) * u128::from(x ^ B);
    ((product >> 64) as u64 ^ product as u64).to_le_bytes()
}

/// A bijection of 64 bits in which every bit of the result depends on every bit of `x`: SplitMix64's finaliser (Steele,
/// Lea and Flood, OOPSLA 2014).
#[inline]
pub(super) fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(file: u64, version: u32, offset: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        fill(7, file, version, offset, &mut bytes);
        bytes
    }

    #[test]
    fn any_part_of_a_file_is_the_part_of_the_whole() {
        let whole = filled(3, 0, 0, 1000);
        for from in 0..40 {
            for length in [0, 1, 3, 7, 8, 9, 15, 16, 17, 100, 333] {
                assert_eq!(filled(3, 0, from as u64, length), whole[from..from + length], "{from} {length}");
            }
        }
    }

    #[test]
    fn files_and_versions_differ_everywhere() {
        let differs = |one: Vec<u8>, other: Vec<u8>| one.chunks(8).zip(other.chunks(8)).all(|(a, b)| a != b);
        assert!(differs(filled(1, 0, 0, 4096), filled(2, 0, 0, 4096)));
        assert!(differs(filled(1, 0, 0, 4096), filled(1, 1, 0, 4096)));
        assert!(differs(filled(1, 0, 0, 4096), filled(1, 0, 4096, 4096)));
    }

    #[test]
    fn nothing_can_be_compressed() {
        let bytes: Vec<u8> = (0..64).flat_map(|file| filled(file, 0, 0, 16 << 10)).collect();
        let compressed = zstd::encode_all(bytes.as_slice(), 9).unwrap();
        assert!(compressed.len() > bytes.len() - bytes.len() / 1000, "{} of {}", compressed.len(), bytes.len());
    }
}
