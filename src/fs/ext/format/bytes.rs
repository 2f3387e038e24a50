//! Numbers in bytes. Reads are total: beyond the end they give zero, which every structure rejects or ignores.

use std::fmt::Write;

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let part = at.checked_add(N).and_then(|end| bytes.get(at..end));
    part.and_then(|part| part.try_into().ok()).unwrap_or([0; N])
}

pub fn le16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array(bytes, at))
}

pub fn le32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(bytes, at))
}

pub fn le64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(bytes, at))
}

pub fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(array(bytes, at))
}

pub fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(array(bytes, at))
}

pub fn be64(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(array(bytes, at))
}

/// Puts a number of any width at its place.
///
/// # Panics
///
/// If it does not fit: the place is not one of a structure.
pub fn put<const N: usize>(bytes: &mut [u8], at: usize, number: [u8; N]) {
    bytes[at..at + N].copy_from_slice(&number);
}

pub fn put16(bytes: &mut [u8], at: usize, number: u16) {
    put(bytes, at, number.to_le_bytes());
}

pub fn put32(bytes: &mut [u8], at: usize, number: u32) {
    put(bytes, at, number.to_le_bytes());
}

pub fn put_be32(bytes: &mut [u8], at: usize, number: u32) {
    put(bytes, at, number.to_be_bytes());
}

/// Joins the halves of a number.
pub fn joined(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// A UUID as text.
pub fn uuid(bytes: [u8; 16]) -> String {
    let mut text = String::new();
    for (at, byte) in bytes.into_iter().enumerate() {
        if [4, 6, 8, 10].contains(&at) {
            text.push('-');
        }
        let _ = write!(text, "{byte:02x}");
    }
    text
}
