//! The values of fio's keys: numbers with suffixes, percentages, lists for reads, writes and trims.

use super::ini::{Entry, error_at};
use crate::expression::one_of;
use crate::units;
use crate::workload::WorkloadError;

/// An amount of bytes in a job file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Extent {
    Bytes(u64),
    /// A fraction of the device or of the size.
    Share(f64),
}

impl Extent {
    /// The bytes; a share is one of `whole`.
    pub fn of(self, whole: u64) -> u64 {
        match self {
            Extent::Bytes(bytes) => bytes,
            Extent::Share(share) => (whole as f64 * share) as u64,
        }
    }
}

/// One key of a job and its place, with readers for its value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value<'a> {
    pub file: &'a str,
    pub entry: &'a Entry,
}

impl<'a> Value<'a> {
    pub fn text(&self) -> &'a str {
        &self.entry.value
    }

    /// An error about this value.
    pub fn error(&self, reason: impl std::fmt::Display) -> WorkloadError {
        error_at(self.file, self.entry.line, format!("{}={}: {reason}", self.entry.key, self.entry.value))
    }

    /// A whole number, in decimal or with 0x in hexadecimal; as in fio, with an optional binary suffix such as k.
    pub fn number(&self) -> Result<u64, WorkloadError> {
        parse_number(self.text()).ok_or_else(|| self.error("not a whole number"))
    }

    /// A whole number from 1 to `limit`.
    pub fn count(&self, limit: u32) -> Result<u32, WorkloadError> {
        let number = self.number()?;
        u32::try_from(number)
            .ok()
            .filter(|number| (1..=limit).contains(number))
            .ok_or_else(|| self.error(format_args!("the range is 1 to {limit}")))
    }

    /// The meaning of one of these words.
    pub fn choose<T: Copy, const N: usize>(&self, words: [(&str, T); N]) -> Result<T, WorkloadError> {
        words
            .iter()
            .find(|(word, _)| *word == self.text())
            .map(|(_, meant)| *meant)
            .ok_or_else(|| self.error(format_args!("expected {}", one_of(words.iter().map(|(word, _)| *word)))))
    }

    pub fn switch(&self) -> Result<bool, WorkloadError> {
        match self.text() {
            "0" | "false" => Ok(false),
            "1" | "true" => Ok(true),
            _ => Err(self.error("expected 0 or 1")),
        }
    }

    /// Bytes, or a percentage from 0 to 100.
    pub fn extent(&self) -> Result<Extent, WorkloadError> {
        match self.text().strip_suffix('%') {
            Some(percent) => percent_of(percent).map(Extent::Share),
            None => parse_number(self.text()).map(Extent::Bytes),
        }
        .ok_or_else(|| self.error("not a size such as 4k, 1g or 50%"))
    }

    /// A percentage, written without its sign.
    pub fn percentage(&self) -> Result<f64, WorkloadError> {
        percent_of(self.text()).ok_or_else(|| self.error("expected a percentage from 0 to 100"))
    }

    /// Lists for reads, writes and trims, joined by commas; one that is missing is that before it.
    pub fn each_direction<T: Clone>(
        &self,
        read: impl Fn(&str) -> Result<T, WorkloadError>,
    ) -> Result<[T; 3], WorkloadError> {
        let all: Vec<T> = self.text().split(',').map(|text| read(text.trim())).collect::<Result<_, _>>()?;
        match all.as_slice() {
            [one] => Ok([one.clone(), one.clone(), one.clone()]),
            [reads, others] => Ok([reads.clone(), others.clone(), others.clone()]),
            [reads, writes, trims] => Ok([reads.clone(), writes.clone(), trims.clone()]),
            _ => Err(self.error("expected one list, or three of them for reads, writes and trims")),
        }
    }

    /// A duration in nanoseconds: a number with a unit from `us` to `d`, in seconds without one.
    pub fn duration_ns(&self) -> Result<u64, WorkloadError> {
        let digits = self.text().trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let unit_ns = match &self.text()[digits.len()..] {
            "us" | "usec" => 1e3,
            "ms" | "msec" => 1e6,
            "" | "s" | "sec" => 1e9,
            "m" => 60e9,
            "h" => 3600e9,
            "d" => 86_400e9,
            _ => f64::NAN,
        };
        let ns = digits.trim().parse::<f64>().map(|number| number * unit_ns).ok();
        let ns = ns.filter(|ns| (0.0..1e19).contains(ns)).map(|ns| ns as u64);
        ns.ok_or_else(|| self.error("expected a duration such as 30, 500ms, 10m or 2h"))
    }

    /// Values for reads, writes and trims, joined by commas. A missing value is `default` if its comma is present, else
    /// the value before it: fio's "a value not terminated in a comma applies to subsequent types".
    pub fn triple<T: Copy>(
        &self,
        default: T,
        takes: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<[T; 3], WorkloadError> {
        let parts: Vec<&str> = self.text().split(',').map(str::trim).collect();
        if parts.len() > 3 || parts.iter().all(|part| part.is_empty()) {
            return Err(self.error(format_args!("expected {takes}, or three of them for reads, writes and trims")));
        }
        let mut values = [default; 3];
        for (index, part) in parts.iter().enumerate().filter(|(_, part)| !part.is_empty()) {
            let value = parse(part).ok_or_else(|| self.error(format_args!("'{part}' is not {takes}")))?;
            let is_last = index + 1 == parts.len();
            values[index..if is_last { 3 } else { index + 1 }].fill(value);
        }
        Ok(values)
    }
}

/// A whole number in decimal with a binary suffix, or in hexadecimal. `4k`, `4ki`, `4kb` and `4kib` are the same: fio's
/// manual calls two of them decimal, but fio 3.33 treats all as binary.
pub(super) fn parse_number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => {
            let unit = text.strip_suffix(['b', 'B']).unwrap_or(text);
            units::parse_size(unit.strip_suffix(['i', 'I']).unwrap_or(unit))
        }
    }
}

/// The fraction of a percentage from 0 to 100.
pub(super) fn percent_of(text: &str) -> Option<f64> {
    text.trim().parse::<f64>().ok().filter(|percent| (0.0..=100.0).contains(percent)).map(|percent| percent / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_value<T>(text: &str, read: impl Fn(Value) -> T) -> T {
        let entry = Entry { key: "k".to_string(), value: text.to_string(), line: 3 };
        read(Value { file: "x.fio", entry: &entry })
    }

    #[test]
    fn a_list_fills_up_as_fio_says() {
        for (text, due) in [
            ("8k", [8192, 8192, 8192]),
            ("256k,8k", [262_144, 8192, 8192]),
            (",8k", [4096, 8192, 8192]),
            (",8k,", [4096, 8192, 4096]),
            ("8k,", [8192, 4096, 4096]),
            ("1k,2k,0x10", [1024, 2048, 16]),
            ("1ki,2KiB,3kb", [1024, 2048, 3072]),
        ] {
            let got = with_value(text, |value| value.triple(4096, "a size", parse_number).unwrap());
            assert_eq!(got, due, "{text}");
        }
        for wrong in ["", ",", "1,2,3,4", "4x", "4k,y"] {
            assert!(with_value(wrong, |value| value.triple(4096, "a size", parse_number)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn extents_are_bytes_or_percent() {
        assert_eq!(with_value("1m", |value| value.extent().unwrap()), Extent::Bytes(1 << 20));
        assert_eq!(with_value("25%", |value| value.extent().unwrap().of(1000)), 250);
        for wrong in ["101%", "-1%", "x", "", "NaN%", "4z", "-4k"] {
            let error = with_value(wrong, |value| value.extent()).unwrap_err().to_string();
            assert!(error.starts_with("x.fio:3: k="), "{error}");
        }
    }
}
