//! The values of an option that is varied: lists and ranges.
//!
//! ```text
//!     7%:14%:28%        a list, where no shell expands anything
//!     1..10             a range of step 1
//!     7%..28%..7%       a range with its step; inside braces also 7%..28%/7%
//!     1..64..x2         a range in which each value is a multiple of the one before
//!     {7%,14%,28%}      the same list in braces, to be quoted in a shell
//! ```

use std::ops::Range;

/// The most values of one option.
pub const MOST_VALUES: usize = 100_000;

/// The most digits behind the point of a range's numbers.
const MOST_DECIMALS: usize = 9;

/// A value, and its place in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// The value as the option takes it.
    pub text: String,
    /// The bytes of the text that state it: itself, or the range that it is of.
    pub span: Range<usize>,
}

/// A fault in a list of values.
#[derive(Debug, PartialEq)]
pub struct ValueFault {
    /// The bytes of the text that are wrong.
    pub span: Range<usize>,
    /// The fault.
    pub message: String,
    /// The correction.
    pub help: String,
}

/// The values of `text`, which begins at byte `offset` of the user's text, separated by `separator`. No value is there
/// twice. Names of files have no ranges: `has_ranges` is false.
pub fn values(text: &str, offset: usize, separator: char, has_ranges: bool) -> Result<Vec<Value>, ValueFault> {
    let (mut values, mut from) = (Vec::<Value>::new(), offset);
    for part in text.split(separator) {
        let at = from + part.len() - part.trim_start().len();
        let item = part.trim();
        let span = at..at + item.len();
        from += part.len() + separator.len_utf8();
        let fault = |message: String, help: String| ValueFault { span: span.clone(), message, help };
        if item.is_empty() {
            let help = format!("write a value, or remove the '{separator}' before it");
            return Err(fault("a value is missing here".to_string(), help));
        }
        let of_item = if has_ranges && item.contains("..") {
            range(item).map_err(|(message, help)| fault(message, help))?
        } else {
            vec![item.to_string()]
        };
        if values.len() + of_item.len() > MOST_VALUES {
            let help = "take fewer values, or several sweeps".to_string();
            return Err(fault(format!("an option takes at most {MOST_VALUES} values"), help));
        }
        values.extend(of_item.into_iter().map(|text| Value { text, span: span.clone() }));
    }
    let mut texts: Vec<&Value> = values.iter().collect();
    texts.sort_by(|a, b| (&a.text, a.span.start).cmp(&(&b.text, b.span.start)));
    match texts.windows(2).find(|pair| pair[0].text == pair[1].text) {
        Some(pair) => Err(ValueFault {
            span: pair[1].span.clone(),
            message: format!("the value {} is written twice", pair[1].text),
            help: "write it once: the same run twice gives the same result".to_string(),
        }),
        None => Ok(values),
    }
}

/// A number of a range: digits, scaled so that they are whole, and the unit behind them.
#[derive(Clone, Copy)]
struct Number<'a> {
    scaled: i128,
    unit: &'a str,
}

const EXAMPLE: &str = "write FROM..TO or FROM..TO..STEP, such as 1..10, 7%..28%..7% or 1..64..x2";

/// The number, or an error with its correction.
fn read(text: &str) -> Result<Number<'_>, (String, String)> {
    let text = text.trim();
    number(text).ok_or_else(|| (format!("'{text}' is not a number"), EXAMPLE.to_string()))
}

/// The values of `FROM..TO`, `FROM..TO..STEP` or `FROM..TO/STEP`.
fn range(text: &str) -> Result<Vec<String>, (String, String)> {
    let wrong = |message: String| (message, EXAMPLE.to_string());
    let (from, rest) = text.split_once("..").expect("it has two points");
    let (to, step) = match rest.split_once("..").or_else(|| rest.split_once('/')) {
        Some((to, step)) => (to, Some(step)),
        None => (rest, None),
    };
    let factor = step.and_then(|step| step.strip_prefix('x')).map(|factor| {
        let factor = factor.parse::<i128>().ok().filter(|factor| (2..1_000_000).contains(factor));
        factor.ok_or_else(|| wrong(format!("x{} is not a factor from x2 on", &step.unwrap_or_default()[1..])))
    });
    let factor = factor.transpose()?;
    let (first, last) = (read(from)?, read(to)?);
    if first.unit != last.unit {
        let (a, b) = (from.trim(), to.trim());
        return Err((
            format!("{a} and {b} have different units"),
            "write both ends in one unit, or a list".to_string(),
        ));
    }
    let step = match (step, factor) {
        (Some(step), None) => read(step)?,
        _ => Number { scaled: scale(), unit: "" },
    };
    if !step.unit.is_empty() && step.unit != first.unit {
        return Err(wrong(format!("the step has the unit {}, and the ends have not", step.unit)));
    }
    if step.scaled == 0 || factor.is_some() && first.scaled == 0 {
        return Err(wrong("the range never ends".to_string()));
    }
    if first.scaled > last.scaled {
        let help = format!("write {}..{}", to.trim(), from.trim());
        return Err((format!("the range ends at {}, before it begins", to.trim()), help));
    }
    let next = |value: i128| factor.map_or(value + step.scaled, |factor| value * factor);
    let all = std::iter::successors(Some(first.scaled), |value| Some(next(*value)));
    let values: Vec<i128> = all.take_while(|value| *value <= last.scaled).take(MOST_VALUES + 1).collect();
    Ok(values.into_iter().map(|value| format!("{}{}", decimal(value), first.unit)).collect())
}

fn scale() -> i128 {
    10i128.pow(MOST_DECIMALS as u32)
}

fn number(text: &str) -> Option<Number<'_>> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() || whole.len() > 20 || fraction.len() > MOST_DECIMALS || fraction.contains('.') {
        return None;
    }
    let whole: i128 = whole.parse().ok()?;
    let parts: i128 = format!("{fraction:0<MOST_DECIMALS$}").parse().ok()?;
    Some(Number { scaled: whole * scale() + parts, unit })
}

/// The shortest text of a scaled number.
fn decimal(scaled: i128) -> String {
    let (whole, parts) = (scaled / scale(), scaled % scale());
    match parts {
        0 => whole.to_string(),
        _ => format!("{whole}.{}", format!("{parts:0MOST_DECIMALS$}").trim_end_matches('0')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str, separator: char) -> Vec<String> {
        values(text, 0, separator, true).unwrap().into_iter().map(|value| value.text).collect()
    }

    #[test]
    fn lists_and_ranges_are_written_out_exactly() {
        for (text, separator, all) in [
            ("7%:14%:28%", ':', vec!["7%", "14%", "28%"]),
            ("7%..28%/7%", ',', vec!["7%", "14%", "21%", "28%"]),
            ("7%..28%..7", ':', vec!["7%", "14%", "21%", "28%"]),
            ("1..3:10", ':', vec!["1", "2", "3", "10"]),
            ("0.1..0.35..0.1", ':', vec!["0.1", "0.2", "0.3"]),
            ("1G..16G..x2", ':', vec!["1G", "2G", "4G", "8G", "16G"]),
            ("2x..6x..2x", ':', vec!["2x", "4x", "6x"]),
            ("5..5", ':', vec!["5"]),
            (" greedy , fifo ", ',', vec!["greedy", "fifo"]),
        ] {
            assert_eq!(texts(text, separator), all, "{text}");
        }
        assert_eq!(texts("18446744073709551614..18446744073709551615", ':').len(), 2);
    }

    #[test]
    fn a_fault_is_pointed_at_with_a_correction() {
        for (text, pointed, help) in [
            ("1::2", "", "write a value"),
            ("1:2:1", "1", "write it once"),
            ("1..3:2", "2", "write it once"),
            ("1..x", "1..x", "FROM..TO"),
            ("1..5%", "1..5%", "one unit"),
            ("1..5..0", "1..5..0", "FROM..TO"),
            ("0..8..x2", "0..8..x2", "FROM..TO"),
            ("1..8..x1", "1..8..x1", "FROM..TO"),
            ("9..1", "9..1", "write 1..9"),
            ("1..1000000", "1..1000000", "fewer"),
            ("1..99999999999999999999999", "1..99999999999999999999999", "FROM..TO"),
        ] {
            let fault = values(text, 0, ':', true).unwrap_err();
            let at_last = text.rfind(pointed).unwrap_or(2);
            assert_eq!(&text[fault.span.clone()], pointed, "{text}");
            assert!(pointed.is_empty() || fault.span.start == at_last, "{text}: {fault:?}");
            assert!(fault.help.contains(help), "{text}: {fault:?}");
        }
    }
}
