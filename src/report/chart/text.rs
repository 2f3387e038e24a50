//! Widths of texts, estimated from above: the reader's font is not known.

/// The width of a character over the size of the font, as in DejaVu Sans, the widest of the common fonts.
fn of(c: char) -> f64 {
    match c {
        ' ' | '\u{a0}' | 'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | 'I' => 0.32,
        'f' | 't' | 'r' | '-' | '/' | '(' | ')' | '[' | ']' => 0.41,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.95,
        'A'..='Z' => 0.7,
        '0'..='9' => 0.636,
        'a'..='z' => 0.6,
        _ if (c as u32) < 0x2000 => 0.65,
        _ => 1.0,
    }
}

/// The width of a text in a font of this size.
pub fn width(text: &str, size: f64) -> f64 {
    text.chars().map(of).sum::<f64>() * size
}

/// The text, cut off with an ellipsis if it is wider than `most`.
pub fn fitted(text: &str, size: f64, most: f64) -> String {
    if width(text, size) <= most {
        return text.to_string();
    }
    let mut kept = String::new();
    let mut used = size;
    for c in text.chars() {
        used += of(c) * size;
        if used > most {
            break;
        }
        kept.push(c);
    }
    kept + "\u{2026}"
}

/// The text in lines of at most this width, broken at spaces, and behind hyphens, underscores, commas and slashes. A
/// word that is wider is cut off.
pub fn wrapped(text: &str, size: f64, most: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    // A number and its per cent sign stay together.
    let text = text.replace(" %", "\u{a0}%");
    for word in text.split_inclusive([' ', '-', '_', ',', '/']) {
        if !line.is_empty() && width((line.clone() + word).trim_end(), size) > most {
            lines.push(std::mem::take(&mut line));
        }
        line += word;
    }
    lines.push(line);
    lines.iter().map(|line| fitted(line.trim(), size, most)).filter(|line| !line.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_no_wider_than_allowed_and_lose_no_word() {
        let text = "copied data that segment-cleaning wrote";
        let lines = wrapped(text, 12.0, 110.0);
        assert!(lines.len() > 1 && lines.iter().all(|line| width(line, 12.0) <= 110.0), "{lines:?}");
        assert_eq!(lines.join(" ").replace("- ", "-"), text);
        assert!(wrapped("", 12.0, 10.0).is_empty());
    }

    #[test]
    fn a_text_that_is_too_wide_ends_in_an_ellipsis() {
        let cut = fitted("page:op=7%,victim=greedy/nand", 12.0, 80.0);
        assert!(cut.ends_with('\u{2026}') && width(&cut, 12.0) <= 80.0);
        assert_eq!(fitted("page", 12.0, 80.0), "page");
    }
}
