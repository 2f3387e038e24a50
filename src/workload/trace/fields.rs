//! Strict parsing of numbers and fields in lines of bytes, without allocation or a check for UTF-8.

/// The reason for rejecting a line or record.
pub type Reason = &'static str;

/// The first byte and the length of a request.
pub type Extent = (u64, u64);

/// Bytes of a sector in all formats that count sectors.
pub(super) const SECTOR_BYTES: u64 = 512;

/// The number of digits that always fit 64 bits.
const SAFE_DIGITS: usize = 19;

/// Takes the whole number at the beginning of `text`.
#[inline]
pub(super) fn take_number(text: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    let mut digits = 0;
    for byte in *text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        if digits >= SAFE_DIGITS {
            value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
        } else {
            value = value * 10 + u64::from(digit);
        }
        digits += 1;
    }
    *text = &text[digits..];
    (digits > 0).then_some(value)
}

/// Takes `byte` from the beginning of `text`.
#[inline]
pub(super) fn take_byte(text: &mut &[u8], byte: u8) -> Option<()> {
    *text = text.strip_prefix(&[byte])?;
    Some(())
}

/// Takes the text before the next `separator`, and the separator; all of it if there is none.
#[inline]
pub(super) fn take_field<'a>(text: &mut &'a [u8], separator: u8) -> &'a [u8] {
    match text.iter().position(|byte| *byte == separator) {
        Some(end) => {
            let field = &text[..end];
            *text = &text[end + 1..];
            field
        }
        None => std::mem::take(text),
    }
}

/// Takes the next word, delimited by spaces or tabs. Empty at the end.
#[inline]
pub(super) fn take_word<'a>(text: &mut &'a [u8]) -> &'a [u8] {
    let trimmed = text.trim_ascii_start();
    let end = trimmed.iter().position(u8::is_ascii_whitespace).unwrap_or(trimmed.len());
    let (word, rest) = trimmed.split_at(end);
    *text = rest;
    word
}

/// Takes the last word. Empty if there is none.
pub(super) fn take_last_word<'a>(text: &mut &'a [u8]) -> &'a [u8] {
    let trimmed = text.trim_ascii_end();
    let start = trimmed.iter().rposition(u8::is_ascii_whitespace).map_or(0, |space| space + 1);
    let (rest, word) = trimmed.split_at(start);
    *text = rest;
    word
}

/// Parses `field` as a whole number; spaces around it are allowed.
#[inline]
pub(super) fn number(field: &[u8]) -> Option<u64> {
    let mut rest = field.trim_ascii();
    take_number(&mut rest).filter(|_| rest.is_empty())
}

/// Parses `field` as a hexadecimal number, with or without `0x`.
pub(super) fn hexadecimal(field: &[u8]) -> Option<u64> {
    let field = field.trim_ascii();
    let digits = field.strip_prefix(b"0x").unwrap_or(field);
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    digits.iter().try_fold(0, |value, byte| Some(value << 4 | u64::from((*byte as char).to_digit(16)?)))
}

/// Parses `field` as a decimal number and scales it by ten to the power of `places`; further digits are dropped. With 9
/// places, seconds become nanoseconds.
#[inline]
pub(super) fn decimal(field: &[u8], places: u32) -> Option<u64> {
    let mut rest = field.trim_ascii();
    let whole = take_number(&mut rest)?;
    let mut value = whole.checked_mul(10u64.checked_pow(places)?)?;
    if rest.is_empty() {
        return Some(value);
    }
    take_byte(&mut rest, b'.')?;
    let mut weight = 10u64.checked_pow(places)?;
    for byte in rest {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        weight /= 10;
        value = value.checked_add(u64::from(digit) * weight)?;
    }
    Some(value)
}

/// The extent of a request in bytes. Errors: it is empty, or its end does not fit 64 bits.
#[inline]
pub(super) fn extent(offset_bytes: u64, length_bytes: u64) -> Result<Extent, Reason> {
    if length_bytes == 0 {
        return Err("the length is zero");
    }
    offset_bytes.checked_add(length_bytes).ok_or("the end of the request does not fit 64 bits")?;
    Ok((offset_bytes, length_bytes))
}

/// The extent of a request in units of `unit_bytes`.
#[inline]
pub(super) fn extent_of_units(first: u64, count: u64, unit_bytes: u64) -> Result<Extent, Reason> {
    let offset_bytes = first.checked_mul(unit_bytes).ok_or("the address in bytes does not fit 64 bits")?;
    let length_bytes = count.checked_mul(unit_bytes).ok_or("the length in bytes does not fit 64 bits")?;
    extent(offset_bytes, length_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_taken_whole_or_not_at_all() {
        assert_eq!(number(b" 42 "), Some(42));
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        for wrong in [&b""[..], b"-1", b"1.5", b"0x10", b"18446744073709551616", b"999999999999999999999", b"1 2"] {
            assert_eq!(number(wrong), None, "{}", wrong.escape_ascii());
        }
    }

    #[test]
    fn decimals_scale_without_rounding_errors() {
        assert_eq!(decimal(b"42.543705759", 9), Some(42_543_705_759));
        assert_eq!(decimal(b"7961.833", 6), Some(7_961_833_000));
        assert_eq!(decimal(b"0.1234567899", 9), Some(123_456_789));
        assert_eq!(decimal(b"5", 9), Some(5_000_000_000));
        for wrong in [&b"."[..], b"1.2.3", b"1e3", b"-0.5", b"99999999999999.0", b"1,5"] {
            assert_eq!(decimal(wrong, 9), None, "{}", wrong.escape_ascii());
        }
    }

    #[test]
    fn words_are_taken_from_either_end() {
        let mut line = &b"  a  b\tc "[..];
        assert_eq!((take_word(&mut line), take_last_word(&mut line)), (&b"a"[..], &b"c"[..]));
        assert_eq!((take_word(&mut line), take_word(&mut line)), (&b"b"[..], &b""[..]));
    }

    #[test]
    fn an_extent_has_bytes_and_an_end() {
        assert!(extent(0, 0).is_err());
        assert!(extent(u64::MAX, 1).is_err());
        assert!(extent_of_units(1 << 60, 1, 512).is_err());
        assert_eq!(extent_of_units(8, 8, 512), Ok((4096, 4096)));
    }

    #[test]
    fn hexadecimal_needs_no_prefix() {
        assert_eq!((hexadecimal(b"2a"), hexadecimal(b"0x2A")), (Some(42), Some(42)));
        assert_eq!((hexadecimal(b"0x"), hexadecimal(b"g")), (None, None));
    }
}
