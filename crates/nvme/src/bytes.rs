//! Little-endian fields at fixed offsets. The caller knows that the bytes are there: a structure of the protocol has a fixed
//! length.

/// A field of 16 bits.
pub fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    u16::from_le_bytes(array_at(bytes, offset))
}

/// A field of 32 bits.
pub fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, offset))
}

/// A field of 64 bits.
pub fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, offset))
}

/// Some bytes.
pub fn array_at<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[offset..offset + N]);
    array
}

/// Writes a field of 16 bits.
pub fn put_u16(bytes: &mut [u8], offset: usize, value: u16) {
    bytes[offset..offset + 2].copy_from_slice(&value.to_le_bytes());
}

/// Writes a field of 32 bits.
pub fn put_u32(bytes: &mut [u8], offset: usize, value: u32) {
    bytes[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
}

/// Writes a field of 64 bits.
pub fn put_u64(bytes: &mut [u8], offset: usize, value: u64) {
    bytes[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
}

/// Writes a field of 128 bits.
pub fn put_u128(bytes: &mut [u8], offset: usize, value: u128) {
    bytes[offset..offset + 16].copy_from_slice(&value.to_le_bytes());
}

/// Writes a text, followed by `filler` up to `length` bytes.
pub fn put_text(bytes: &mut [u8], offset: usize, length: usize, text: &str, filler: u8) {
    let field = &mut bytes[offset..offset + length];
    field.fill(filler);
    let text = &text.as_bytes()[..text.len().min(length)];
    field[..text.len()].copy_from_slice(text);
}

/// The text of a field that ends with its first zero.
pub fn text_at(bytes: &[u8], offset: usize, length: usize) -> Option<&str> {
    let field = &bytes[offset..offset + length];
    let end = field.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(&field[..end]).ok()
}
