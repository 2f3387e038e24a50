//! Escapes user text for pages, pictures and shells.

use crate::report::number::visible;

/// Text for an element or a quoted attribute.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in visible(text).chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            c => escaped.push(c),
        }
    }
    escaped
}

/// A path for an element, with line breaks allowed after separators.
pub fn escape_path(path: &str) -> String {
    path.split_inclusive(['/', ',', '+', ':']).map(escape).collect::<Vec<_>>().join("<wbr>")
}

/// A title or a sentence with names of columns and files, with line breaks allowed after their separators, and none in numbers.
pub fn escape_names(text: &str) -> String {
    let mut escaped = String::new();
    let mut parts = text.split_inclusive(['/', ',', '+', ':', '_', '.']).peekable();
    while let Some(part) = parts.next() {
        escaped += &escape(part);
        let next = parts.peek().and_then(|next| next.chars().next());
        if next.is_some_and(|next| !next.is_ascii_digit()) {
            escaped += "<wbr>";
        }
    }
    escaped
}

/// Quotes an argument for a POSIX shell.
pub fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/:,+=._-%@".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_string();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Quotes an option of the program with its value, which the first space separates, for a POSIX shell.
pub fn shell_option(option: &str) -> String {
    option.splitn(2, ' ').map(shell_word).collect::<Vec<String>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "</script><img src=x onerror=\"alert('1')\">&amp;";

    #[test]
    fn names_are_broken_behind_separators_and_numbers_are_not() {
        assert_eq!(escape_names("wear.a_b<2.5: met (0.051)"), "wear.<wbr>a_<wbr>b&lt;2.5:<wbr> met (0.051)");
    }

    #[test]
    fn escaped_text_opens_no_element_and_ends_no_attribute() {
        let escaped = escape(HOSTILE);
        assert!(!escaped.contains(['<', '>', '"', '\'']));
        assert!(escaped.ends_with("&amp;amp;"));
    }

    #[test]
    fn a_shell_word_is_quoted_only_if_necessary() {
        assert_eq!(shell_word("zipf:theta=1.2,writes=6x"), "zipf:theta=1.2,writes=6x");
        assert_eq!(shell_word("my trace's.csv"), r"'my trace'\''s.csv'");
        assert_eq!(shell_word("$(reboot)"), "'$(reboot)'");
        assert_eq!(shell_word(""), "''");
    }
}
