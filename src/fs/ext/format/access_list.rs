//! Access control lists as they are stored: shorter than programs see them, as only entries that name somebody have a
//! number.
//!
//! ```text
//! stored     0 1, the version (4)   then 2 tag, 2 permissions, and, of a user or a group that is named, 4 its number
//! programs   0 2, the version (4)   then 2 tag, 2 permissions, 4 number
//! ```

const STORED: [u8; 4] = 1u32.to_le_bytes();
const SEEN: [u8; 4] = 2u32.to_le_bytes();
/// The tags of a named user and a named group.
const NAMED: [u16; 2] = [2, 8];
/// The number that programs see where nobody is named.
const NOBODY: [u8; 4] = [0xFF; 4];

fn is_named(tag: &[u8]) -> bool {
    NAMED.contains(&u16::from_le_bytes([tag[0], tag[1]]))
}

/// A stored list as programs see it; `None` if it is none.
pub fn seen(stored: &[u8]) -> Option<Vec<u8>> {
    let mut rest = stored.strip_prefix(&STORED)?;
    let mut list = SEEN.to_vec();
    while !rest.is_empty() {
        let length = if rest.len() >= 2 && is_named(rest) { 8 } else { 4 };
        let entry = rest.get(..length)?;
        list.extend_from_slice(&entry[..4]);
        list.extend_from_slice(entry.get(4..8).unwrap_or(&NOBODY));
        rest = &rest[length..];
    }
    Some(list)
}

/// A list that a program gives, as it is stored; `None` if it is none.
pub fn stored(seen: &[u8]) -> Option<Vec<u8>> {
    let entries = seen.strip_prefix(&SEEN)?.chunks(8);
    let mut list = STORED.to_vec();
    for entry in entries {
        if entry.len() != 8 {
            return None;
        }
        list.extend_from_slice(if is_named(entry) { entry } else { &entry[..4] });
    }
    Some(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_seen_as_it_was_given() {
        let entry = |tag: u8, number: [u8; 4]| [&[tag, 0, 6, 0], &number[..]].concat();
        let given = [SEEN.to_vec(), entry(1, NOBODY), entry(2, [9, 0, 0, 0]), entry(4, NOBODY)].concat();
        let kept = stored(&given).unwrap();
        assert_eq!(kept.len(), 4 + 4 + 8 + 4);
        assert_eq!(seen(&kept), Some(given.clone()));
        assert_eq!((stored(&given[..9]), seen(&kept[..6]), seen(&given)), (None, None, None));
    }
}
