//! What the runs of a sweep warn of. A warning may void the numbers of its run, so it stands beside them in every form.

use super::SweepRow;
use serde_json::Value;

/// The column with the warnings of a run: a list in JSON, as text.
pub const WARNINGS: &str = "warnings";

/// The mark of a number whose runs have warnings.
pub(super) const MARK: char = '*';

/// Warnings that differ in their numbers alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warned {
    /// The first of them.
    pub text: String,
    /// The rows that have such a warning, from 0 on.
    pub rows: Vec<usize>,
}

/// The warnings of a row.
pub fn of_row(row: &SweepRow) -> Vec<String> {
    match row.get(WARNINGS) {
        Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// The kind of a warning: its text without its numbers.
fn kind(text: &str) -> String {
    let mut kind = String::new();
    for character in text.chars() {
        let is_number = character.is_ascii_digit() || matches!(character, '.' | ',') && kind.ends_with('#');
        match is_number {
            true if kind.ends_with('#') => {}
            true => kind.push('#'),
            false => kind.push(character),
        }
    }
    kind
}

/// The warnings of all rows, a kind each, in the order of their first rows.
pub fn warned(rows: &[SweepRow]) -> Vec<Warned> {
    let mut kinds: Vec<(String, Warned)> = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        for text in of_row(row) {
            let kind = kind(&text);
            match kinds.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, warned)) if warned.rows.last() == Some(&number) => {}
                Some((_, warned)) => warned.rows.push(number),
                None => kinds.push((kind, Warned { text, rows: vec![number] })),
            }
        }
    }
    kinds.into_iter().map(|(_, warned)| warned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn warnings_that_differ_in_numbers_alone_are_one() {
        let row = |warnings: &[&str]| json!({ WARNINGS: json!(warnings).to_string() }).as_object().unwrap().clone();
        let rows = [
            row(&[]),
            row(&["nothing was erased: 1.5 of 8 blocks", "3 lines"]),
            row(&["nothing was erased: 12,000 of 9 blocks", "nothing was erased: 1 of 2 blocks"]),
            json!({ "error": "it failed" }).as_object().unwrap().clone(),
        ];
        let found = warned(&rows);
        let all: Vec<(&str, &[usize])> = found.iter().map(|warned| (&*warned.text, &*warned.rows)).collect();
        assert_eq!(all, [("nothing was erased: 1.5 of 8 blocks", &[1, 2][..]), ("3 lines", &[1])]);
    }
}
