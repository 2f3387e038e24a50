//! Fields of a line between delimiters.

use super::fields::take_word;

/// A separator of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delimiter {
    /// One byte between two fields, which may be empty or in double quotes.
    Byte(u8),
    /// Spaces and tabs, of which several count as one.
    Blanks,
}

impl Delimiter {
    /// All of them, in the order in which they are tried.
    pub const ALL: [Delimiter; 5] = [
        Delimiter::Byte(b','),
        Delimiter::Byte(b'\t'),
        Delimiter::Byte(b';'),
        Delimiter::Byte(b'|'),
        Delimiter::Blanks,
    ];
}

/// Takes the next field, without blanks and quotes around it; `None` after the last.
fn take<'a>(rest: &mut Option<&'a [u8]>, delimiter: Delimiter) -> Option<&'a [u8]> {
    let text = (*rest)?;
    let Delimiter::Byte(byte) = delimiter else {
        let mut after = text;
        let word = take_word(&mut after);
        *rest = Some(after).filter(|_| !word.is_empty());
        return Some(unquoted(word)).filter(|_| rest.is_some());
    };
    let quoted = text.trim_ascii_start().starts_with(b"\"");
    // A delimiter between quotes is a part of the field.
    let mut inside = false;
    let end = text.iter().position(|found| {
        inside ^= quoted && *found == b'"';
        *found == byte && !inside
    });
    let (field, after) = match end {
        Some(end) => (&text[..end], Some(&text[end + 1..])),
        None => (text, None),
    };
    *rest = after;
    Some(unquoted(field))
}

fn unquoted(field: &[u8]) -> &[u8] {
    let field = field.trim_ascii();
    field.strip_prefix(b"\"").and_then(|field| field.strip_suffix(b"\"")).unwrap_or(field).trim_ascii()
}

/// The fields of a line.
pub(super) fn fields(line: &[u8], delimiter: Delimiter) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(line);
    std::iter::from_fn(move || take(&mut rest, delimiter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_trimmed_unquoted_and_may_be_empty() {
        let split = |line: &'static str, delimiter| fields(line.as_bytes(), delimiter).collect::<Vec<_>>();
        assert_eq!(split("a, b ,,\"c,d\"", Delimiter::Byte(b',')), [&b"a"[..], b"b", b"", b"c,d"]);
        assert_eq!(split("a,", Delimiter::Byte(b',')), [&b"a"[..], b""]);
        assert_eq!(split(" a \t\"b\"  ", Delimiter::Blanks), [&b"a"[..], b"b"]);
        assert_eq!(split("", Delimiter::Blanks), [] as [&[u8]; 0]);
        assert_eq!(split("\"a,b", Delimiter::Byte(b',')), [b"\"a,b"]);
    }
}
