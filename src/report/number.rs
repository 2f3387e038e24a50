//! Numbers for people: thousands separators, units, significant digits only.
//!
//! Every function is total: missing or infinite numbers are [`NONE`], never `NaN`.

/// The text for a number that is missing or not finite.
pub const NONE: &str = "\u{2013}";

/// `1,234,567`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1,234.50`: with this many decimals.
pub fn decimal(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return NONE.into();
    }
    let text = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let sign = if value < 0.0 && text.contains(|c: char| c.is_ascii_digit() && c != '0') { "-" } else { "" };
    // Beyond 64 bits there are no separators: such a number is a mistake, and is shown as it is.
    let whole = whole.parse().map_or_else(|_| whole.to_string(), count);
    format!("{sign}{whole}{fraction}")
}

/// To three digits, whole from 100 on: `1.23e-5`, `0.0123`, `1.23`, `12.3`, `1,234`.
pub fn three_digits(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude > 0.0 && magnitude < 1e-4 {
        return format!("{value:.2e}");
    }
    let decimals = match magnitude {
        _ if magnitude == 0.0 || magnitude >= 99.95 => 0,
        _ if magnitude >= 9.995 => 1,
        _ if magnitude >= 0.9995 => 2,
        _ if magnitude >= 0.1 => 3,
        _ => 4,
    };
    decimal(value, decimals)
}

/// A share as a percentage: `0.111` is `11.1 %`.
pub fn percent(share: f64) -> String {
    if share.is_finite() { format!("{} %", decimal(share * 100.0, 1)) } else { NONE.into() }
}

/// A number of bytes: `1.25 GiB`.
pub fn bytes(bytes: f64) -> String {
    if bytes.is_finite() { crate::units::human_size(bytes) } else { NONE.into() }
}

/// A latency: `263 µs`.
pub fn latency(nanoseconds: u64) -> String {
    crate::units::human_duration(nanoseconds as f64).replace(" us", " \u{b5}s")
}

/// A time of seconds to days: `0.042 s`, `8.41 s`, `2,412 s`.
pub fn seconds(seconds: f64) -> String {
    if seconds.is_finite() { format!("{} s", three_digits(seconds)) } else { NONE.into() }
}

/// An energy: `41.3 uJ`, `1.23 J`, `4.56 kJ`.
pub fn joules(joules: f64) -> String {
    const UNITS: [(f64, &str); 6] =
        [(1e6, "MJ"), (1e3, "kJ"), (1.0, "J"), (1e-3, "mJ"), (1e-6, "\u{b5}J"), (1e-9, "nJ")];
    // A value that rounds to a thousand of a unit is one of the next.
    let unit = UNITS.into_iter().find(|(scale, _)| joules.abs() >= scale * 0.9995).unwrap_or((1.0, "J"));
    if joules.is_finite() { format!("{} {}", three_digits(joules / unit.0), unit.1) } else { NONE.into() }
}

/// Text from a user, with control characters (line feeds, terminal escapes, marks that reorder text) shown as `\u{…}`.
pub fn visible(text: &str) -> String {
    let is_hidden = |c: char| {
        c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
    };
    text.chars().fold(String::with_capacity(text.len()), |mut shown, c| {
        if is_hidden(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
        shown
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated() {
        for (value, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(count(value), text);
        }
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!(decimal(-1_234.5, 2), "-1,234.50");
        assert_eq!(decimal(-0.001, 2), "0.00");
    }

    #[test]
    fn three_digits_are_kept_and_no_more() {
        for (value, text) in
            [(0.0, "0"), (0.01234, "0.0123"), (0.4567, "0.457"), (2.376, "2.38"), (12.34, "12.3"), (9_876.5, "9,876")]
        {
            assert_eq!(three_digits(value), text);
        }
        assert_eq!(three_digits(99.96), "100");
    }

    #[test]
    fn energies_have_the_unit_of_their_size() {
        for (value, text) in
            [(0.0, "0 J"), (41.3e-6, "41.3 \u{b5}J"), (0.99996, "1.00 J"), (4560.0, "4.56 kJ"), (0.5, "500 mJ")]
        {
            assert_eq!(joules(value), text);
        }
        assert_eq!(joules(f64::NAN), NONE);
    }

    #[test]
    fn no_number_prints_as_nan_or_infinite() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for text in [decimal(value, 2), three_digits(value), percent(value), bytes(value)] {
                assert_eq!(text, NONE);
            }
            assert_eq!(seconds(value), NONE);
        }
        assert!(!decimal(f64::MAX, 1).is_empty());
    }

    #[test]
    fn terminal_escapes_in_a_path_are_shown_not_obeyed() {
        assert_eq!(visible("a\x1b[2Jb\n"), "a\\u{1b}[2Jb\\u{a}");
        assert_eq!(visible("page/nand:größe"), "page/nand:größe");
    }
}
