//! The parts that lines of blkparse and of ftrace have in common.

use super::fields::{Reason, number, take_byte, take_field, take_number};
use memchr::memchr;

/// The number of a device written as `major,minor`.
pub(super) fn device_number(word: &[u8]) -> Option<u64> {
    let mut rest = word;
    let major = number(take_field(&mut rest, b','))?;
    let minor = number(rest)?;
    (major >> 32 == 0 && minor >> 32 == 0).then_some(major << 32 | minor)
}

/// The text between the first `[` and the last `]`: the process, or the error of a completed request. A priority may be
/// before it (`none,0,0 [dd]`).
pub(super) fn in_brackets(text: &[u8]) -> &[u8] {
    let text = text.trim_ascii();
    let inside = memchr(b'[', text).map(|start| &text[start + 1..]);
    inside.and_then(|inside| inside.strip_suffix(b"]")).unwrap_or(text)
}

/// Takes `sector + sectors`. A flush may have no extent; a passed-through command has a number without a `+`.
pub(super) fn take_extent(text: &mut &[u8]) -> Result<Option<(u64, u64)>, Reason> {
    let mut rest = text.trim_ascii_start();
    let Some(sector) = take_number(&mut rest) else { return Ok(Some((0, 0))) };
    rest = rest.trim_ascii_start();
    if take_byte(&mut rest, b'+').is_none() {
        return Ok(rest.starts_with(b"[").then_some((0, 0)));
    }
    rest = rest.trim_ascii_start();
    let sectors = take_number(&mut rest).ok_or("the number of sectors is not a whole number")?;
    *text = rest;
    Ok(Some((sector, sectors)))
}
