//! The words that texts use for operations.

use super::rwbs::Letters;
use crate::workload::Action;

/// The usual words of operations, in lower case.
const WORDS: [(&[u8], Action); 19] = [
    (b"r", Action::Read),
    (b"read", Action::Read),
    (b"reads", Action::Read),
    (b"rd", Action::Read),
    (b"w", Action::Write),
    (b"write", Action::Write),
    (b"writes", Action::Write),
    (b"wr", Action::Write),
    (b"d", Action::Discard),
    (b"discard", Action::Discard),
    (b"trim", Action::Discard),
    (b"unmap", Action::Discard),
    (b"deallocate", Action::Discard),
    (b"f", Action::Flush),
    (b"flush", Action::Flush),
    (b"sync", Action::Flush),
    (b"fsync", Action::Flush),
    (b"fdatasync", Action::Flush),
    (b"datasync", Action::Flush),
];

/// The action of a word: of those given, which are preferred, the usual ones, and the kernel's letters, such as `WS`.
pub(super) fn action_of(word: &[u8], given: &[(Vec<u8>, Action)]) -> Option<Action> {
    let given = given.iter().find(|(known, _)| known.eq_ignore_ascii_case(word)).map(|(_, action)| *action);
    let usual = || WORDS.iter().find(|(known, _)| known.eq_ignore_ascii_case(word)).map(|(_, action)| *action);
    let letters = || {
        let letters = Letters::parse(word).ok()?;
        // A request that flushes first is two, and one of zeroes is none without its sectors.
        letters.action.filter(|_| !letters.flush_before && !letters.zeroes)
    };
    given.or_else(usual).or_else(letters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_words_are_preferred_to_the_usual_ones() {
        let given = [(b"r".to_vec(), Action::Write), (b"7".to_vec(), Action::Discard)];
        for (word, action) in [
            ("R", Some(Action::Write)),
            ("7", Some(Action::Discard)),
            ("Read", Some(Action::Read)),
            ("WSM", Some(Action::Write)),
            ("FWS", None),
            ("N", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(action_of(word.as_bytes(), &given), action, "{word}");
        }
    }
}
