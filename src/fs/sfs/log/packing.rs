//! Compression of the bytes of blocks in log records.

use std::borrow::Cow;
use zstd::bulk::{Compressor, decompress};

/// Fewer bytes are not compressed: a frame of zstd has about 13 bytes besides its blocks.
const FEWEST: usize = 64;

/// Packed bytes.
#[derive(Clone, Copy, Debug)]
pub(in crate::fs::sfs) struct Packed<'a> {
    /// Number of bytes before packing. If there are as many of them now, they are not compressed, else a frame of zstd.
    pub length: u16,
    pub bytes: &'a [u8],
}

impl<'a> Packed<'a> {
    /// The bytes before packing; `None` if they cannot be unpacked.
    pub fn unpack(&self) -> Option<Cow<'a, [u8]>> {
        let length = usize::from(self.length);
        if self.bytes.len() == length {
            return Some(Cow::Borrowed(self.bytes));
        }
        let bytes = decompress(self.bytes, length).ok()?;
        (bytes.len() == length).then_some(Cow::Owned(bytes))
    }
}

/// Packs bytes of blocks.
pub(in crate::fs::sfs) struct Packer {
    zstd: Compressor<'static>,
}

impl Packer {
    pub fn new() -> Packer {
        // Faster levels find less in 4 KiB, and slower ones hardly more.
        Packer { zstd: Compressor::new(1).expect("zstd has level 1") }
    }

    /// Packs bytes of a block: compressed if that makes them fewer.
    pub fn pack(&mut self, bytes: &[u8]) -> Vec<u8> {
        if bytes.len() < FEWEST {
            return bytes.to_vec();
        }
        match self.zstd.compress(bytes) {
            Ok(packed) if packed.len() < bytes.len() => packed,
            _ => bytes.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn packed(bytes: &[u8]) -> (usize, Vec<u8>) {
        let packed = Packer::new().pack(bytes);
        let it = Packed { length: bytes.len() as u16, bytes: &packed };
        (packed.len(), it.unpack().unwrap().into_owned())
    }

    #[test]
    fn bytes_are_what_they_were() {
        let mut random = Random::new(1, "noise");
        let noise: Vec<u8> = (0..4096).map(|_| random.below(256) as u8).collect();
        let text: Vec<u8> = b"a page of a database ".iter().copied().cycle().take(4096).collect();
        for length in [0, 1, FEWEST - 1, FEWEST, 1000, 4096] {
            assert_eq!(packed(&noise[..length]), (length, noise[..length].to_vec()), "noise is not compressed");
            assert_eq!(packed(&text[..length]).1, text[..length]);
        }
        assert!(packed(&text).0 < 100 && packed(&[0; 4096]).0 < 30);
    }

    #[test]
    fn damaged_bytes_are_refused() {
        let bytes = Packer::new().pack(&[7; 4096]);
        let unpacked = |length: u16, bytes: &[u8]| Packed { length, bytes }.unpack().is_some();
        assert!(unpacked(4096, &bytes));
        assert!(!unpacked(4095, &bytes) && !unpacked(4097, &bytes) && !unpacked(4096, &bytes[1..]));
        assert!(!unpacked(4096, b"no frame of zstd") && !unpacked(4096, b""));
    }
}
