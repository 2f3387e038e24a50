//! Parses and formats sizes, shares and durations.
//!
//! Sizes are binary: `4K` is 4,096 bytes, and so is `4KiB`. With a `B` alone they are decimal, as drives are sold: `512GB` is
//! 512,000,000,000 bytes. Durations are decimal: `50us` is 50,000 ns.

/// The block in which stations count, in bytes.
pub const BLOCK_BYTES: u64 = 4096;

const SIZE_SUFFIXES: [(&str, u32); 6] = [("P", 50), ("T", 40), ("G", 30), ("M", 20), ("K", 10), ("", 0)];
/// The decimal units in which drives are sold.
const SOLD_SUFFIXES: [(&str, u64); 5] =
    [("PB", 1_000_000_000_000_000), ("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1000)];
/// Smaller sizes are written in binary units.
const LEAST_SOLD: u64 = 1_000_000_000;
const DURATION_SUFFIXES: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];

/// Bytes of a size such as `512`, `4K`, `1.5G`, `64MiB` or, decimal, `512GB`. `None` if it is not a size, or does not fit 64
/// bits.
pub fn parse_size(text: &str) -> Option<u64> {
    let digits_end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits_end);
    let suffix = suffix.to_ascii_uppercase();
    let unit = match SOLD_SUFFIXES.iter().find(|(name, _)| *name == suffix) {
        Some((_, bytes)) => *bytes,
        None => {
            let binary = suffix.strip_suffix("IB").unwrap_or(if suffix == "B" { "" } else { &suffix });
            1 << SIZE_SUFFIXES.iter().find(|(name, _)| *name == binary)?.1
        }
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(unit);
    }
    let bytes = number.parse::<f64>().ok()? * unit as f64;
    (bytes.is_finite() && bytes >= 0.0 && bytes < u64::MAX as f64 && bytes.fract() == 0.0).then_some(bytes as u64)
}

/// The shortest exact form of a size: `4K`, `1536M`, `513`, `512GB`.
pub fn format_size(bytes: u64) -> String {
    let binary = format_binary(bytes);
    let sold = SOLD_SUFFIXES.iter().find(|(_, unit)| bytes >= *unit && bytes.is_multiple_of(*unit));
    let sold = sold.filter(|_| bytes >= LEAST_SOLD).map(|(suffix, unit)| format!("{}{suffix}", bytes / unit));
    sold.filter(|sold| sold.len() < binary.len()).unwrap_or(binary)
}

fn format_binary(bytes: u64) -> String {
    for (suffix, shift) in SIZE_SUFFIXES {
        if bytes >= 1 << shift && bytes.is_multiple_of(1 << shift) {
            return format!("{}{suffix}", bytes >> shift);
        }
    }
    bytes.to_string()
}

/// The spans of a rate, and how often a day each is.
const SPANS: [(&str, u64); 4] = [("s", 86_400), ("min", 1440), ("h", 24), ("day", 1)];

/// Bytes a day of a rate such as `200GB/day` or `5MB/s`: a size, and `/s`, `/min`, `/h` or `/day`. `None` if it is none, or
/// does not fit 64 bits.
pub fn parse_rate(text: &str) -> Option<u64> {
    let (size, span) = text.split_once('/')?;
    let (_, a_day) = SPANS.iter().find(|(name, _)| *name == span)?;
    parse_size(size)?.checked_mul(*a_day)
}

/// A size with three digits, for people: `1.25 GiB`.
pub fn human_size(bytes: f64) -> String {
    for (suffix, shift) in SIZE_SUFFIXES {
        let unit = (1u64 << shift) as f64;
        if bytes >= unit && shift > 0 {
            let value = bytes / unit;
            let digits = if value >= 100.0 {
                0
            } else if value >= 10.0 {
                1
            } else {
                2
            };
            return format!("{value:.digits$} {suffix}iB");
        }
    }
    format!("{bytes:.0} B")
}

/// A share such as `7%` or `0.07`, as a fraction. `None` if it is not a finite number.
pub fn parse_share(text: &str) -> Option<f64> {
    let (number, scale) = match text.strip_suffix('%') {
        Some(number) => (number, 0.01),
        None => (text, 1.0),
    };
    number.parse::<f64>().ok().map(|value| value * scale).filter(|value| value.is_finite())
}

/// Nanoseconds of a duration such as `50us`, `2ms`, `1.5s`. `None` if it is not a duration.
pub fn parse_duration_ns(text: &str) -> Option<u64> {
    let (suffix, scale) = DURATION_SUFFIXES.iter().find(|(suffix, _)| text.ends_with(suffix))?;
    let value = text.strip_suffix(suffix)?.parse::<f64>().ok()? * scale;
    (value.is_finite() && (0.0..9e18).contains(&value)).then_some(value.round() as u64)
}

/// Nanoseconds of a span such as `60s`, `5min`, `1h` or `1day`, or of a duration. `None` if it is neither.
pub fn parse_span_ns(text: &str) -> Option<u64> {
    let longer = [("min", 60e9), ("h", 3600e9), ("day", 86_400e9)];
    let Some((suffix, scale)) = longer.iter().find(|(suffix, _)| text.ends_with(suffix)) else {
        return parse_duration_ns(text);
    };
    let value = text.strip_suffix(suffix)?.parse::<f64>().ok()? * scale;
    (value.is_finite() && (0.0..9e18).contains(&value)).then_some(value.round() as u64)
}

/// A duration for people: `263 us`, `1.50 s`.
pub fn human_duration(nanoseconds: f64) -> String {
    let (suffix, scale) =
        DURATION_SUFFIXES.iter().rev().find(|(_, scale)| nanoseconds >= *scale).unwrap_or(&DURATION_SUFFIXES[0]);
    let value = nanoseconds / scale;
    let digits = if value >= 100.0 || *scale == 1.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_binary_and_exact() {
        assert_eq!(parse_size("4K"), Some(4096));
        assert_eq!(parse_size("1.5G"), Some(3 << 29));
        assert_eq!(parse_size("64MiB"), Some(64 << 20));
        assert_eq!(parse_size("512"), Some(512));
        assert_eq!(parse_size("512B"), Some(512));
        assert_eq!(parse_size("512GB"), Some(512_000_000_000));
        assert_eq!(parse_size("1.92TB"), Some(1_920_000_000_000));
        assert_eq!(parse_size("0.5kb"), Some(500));
        for wrong in ["", "K", "-1K", "4X", "1e3", "99999999T", "0.3", "4KK", "1.1.1K"] {
            assert_eq!(parse_size(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_formatted_size_reads_back() {
        for bytes in [0, 1, 1000, 4096, 4097, 3 << 29, 1 << 40, 512_000_000_000, 1_920_000_000_000, u64::MAX] {
            assert_eq!(parse_size(&format_size(bytes)), Some(bytes));
        }
        assert_eq!([1000, 480_000_000_000, 512 << 30].map(format_size), ["1000", "480GB", "512G"]);
    }

    #[test]
    fn durations_name_their_unit() {
        assert_eq!(parse_duration_ns("50us"), Some(50_000));
        assert_eq!(parse_duration_ns("1.5s"), Some(1_500_000_000));
        for wrong in ["", "50", "us", "-1us", "infs", "NaNs"] {
            assert_eq!(parse_duration_ns(wrong), None, "{wrong}");
            assert_eq!(parse_span_ns(wrong), None, "{wrong}");
        }
        let spans = ["60s", "1.5min", "2h", "1day", "20ms"].map(parse_span_ns);
        assert_eq!(spans, [60_000, 90_000, 7_200_000, 86_400_000, 20].map(|ms| Some(ms * 1_000_000)));
    }

    #[test]
    fn a_rate_is_bytes_a_day() {
        assert_eq!(parse_rate("200GB/day"), Some(200_000_000_000));
        assert_eq!(parse_rate("1M/s"), Some(86_400 << 20));
        assert_eq!(parse_rate("2K/h"), Some(48 << 10));
        for wrong in ["200GB", "GB/day", "1G/week", "/day", "1G/day/2", "99999T/s"] {
            assert_eq!(parse_rate(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn shares_are_percent_or_fractions() {
        assert!((parse_share("7%").unwrap() - 0.07).abs() < 1e-12);
        assert_eq!(parse_share("0.9"), Some(0.9));
        assert_eq!(parse_share("seven"), None);
    }
}
