//! Columns for people: the names of numbers, the units of varied options, and their values as they are written.

use crate::report::chart::Axis;
use crate::report::number::{NONE, decimal, latency, three_digits, visible};
use crate::units::{format_size, human_duration};
use serde_json::Value;
use std::collections::BTreeMap;

/// The unit of the cells of a varied option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A share, from 0 to 1.
    Share,
    /// Bytes.
    Bytes,
    /// A time in nanoseconds.
    Nanoseconds,
}

impl Unit {
    const WORDS: [(Unit, &str); 3] =
        [(Unit::Share, "share"), (Unit::Bytes, "bytes"), (Unit::Nanoseconds, "nanoseconds")];

    /// Its word.
    pub fn word(self) -> &'static str {
        Unit::WORDS.iter().find(|(unit, _)| *unit == self).expect("each has one").1
    }

    /// The unit of a word.
    pub fn named(word: &str) -> Option<Unit> {
        Unit::WORDS.iter().find(|(_, known)| *known == word).map(|(unit, _)| *unit)
    }
}

/// The units of varied options, by column. A column without one has numbers without a unit, or words.
pub type Units = BTreeMap<String, Unit>;

/// Numbers of a result that figures and tables show by names of people.
const NAMES: [(&str, &str); 16] = [
    ("write_amplification.steady", "write amplification, steady"),
    ("write_amplification.total", "write amplification, total"),
    ("write_amplification.application", "write amplification, application bytes"),
    ("throughput_mib_s", "throughput, MiB/s"),
    ("latency_ns.write.p50", "latency of writes, median"),
    ("latency_ns.write.p99", "latency of writes, p99"),
    ("latency_ns.write.p999", "latency of writes, p99.9"),
    ("latency_ns.read.p50", "latency of reads, median"),
    ("latency_ns.read.p99", "latency of reads, p99"),
    ("latency_ns.read.p999", "latency of reads, p99.9"),
    ("wear.lifetime_host_tib", "lifetime, TiB of host writes"),
    ("wear.lifetime_application_tib", "lifetime, TiB of applications"),
    ("wear.drive_writes_per_day", "drive writes per day, for five years"),
    ("wear.rate.years", "life at the rate, years"),
    ("energy.total_j", "energy of the flash, joules"),
    ("energy.total_j_per_host_gib", "energy for a GiB of the host, joules"),
];

/// The name of a number of results; of one that has no other name, that of its column.
pub fn title(column: &str) -> String {
    NAMES.iter().find(|(known, _)| *known == column).map_or(column, |(_, name)| name).to_string()
}

/// True if the numbers of a column are times in nanoseconds.
fn is_time(column: &str) -> bool {
    column.starts_with("latency_ns.") && !column.ends_with(".count")
}

/// A number of results for people.
pub fn measured(column: &str, value: f64) -> String {
    match is_time(column) && value.is_finite() && value >= 0.0 {
        true => latency(value.round() as u64),
        false => three_digits(value),
    }
}

/// The axis of a number of results.
pub fn measured_axis(column: &str) -> Axis {
    let axis = Axis::linear(&title(column));
    if is_time(column) { axis.labelled(duration_label) } else { axis }
}

/// The axis of a varied option: its column, and its unit.
pub fn option_axis(column: &str, units: &Units, is_log: bool) -> Axis {
    let of = |title: &str| if is_log { Axis::log(title) } else { Axis::linear(title) };
    match units.get(column) {
        Some(Unit::Share) => of(&format!("{column}, %")).labelled(|share| without_zeros(&decimal(share * 100.0, 2))),
        Some(Unit::Bytes) => of(&format!("{column}, bytes")).labelled(crate::units::human_size),
        Some(Unit::Nanoseconds) => of(column).labelled(duration_label),
        None => of(column),
    }
}

fn duration_label(nanoseconds: f64) -> String {
    human_duration(nanoseconds).replace(".00 ", " ").replace(".0 ", " ").replace(" us", " \u{b5}s")
}

fn without_zeros(text: &str) -> String {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text.to_string(),
    }
}

/// A value of a varied option, as it is written in a path.
pub fn shown(column: &str, value: &Value, units: &Units) -> String {
    let number = value.as_f64();
    match (value, units.get(column), number) {
        (Value::Null, ..) => NONE.to_string(),
        (Value::String(text), ..) => visible(text),
        (_, Some(Unit::Share), Some(share)) => format!("{}%", without_zeros(&format!("{:.6}", share * 100.0))),
        (_, Some(Unit::Bytes), _) if value.is_u64() => value.as_u64().map_or(String::new(), format_size),
        (_, Some(Unit::Nanoseconds), Some(time)) => human_duration(time),
        (value, ..) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_is_shown_as_it_was_written() {
        let units: Units = [("op", Unit::Share), ("size", Unit::Bytes), ("read", Unit::Nanoseconds)]
            .map(|(n, u)| (n.to_string(), u))
            .into();
        for (column, value, text) in [
            ("op", json!(0.07), "7%"),
            ("op", json!(0.2135), "21.35%"),
            ("op", json!(null), NONE),
            ("size", json!(480_000_000_000u64), "480GB"),
            ("size", json!(1 << 30), "1G"),
            ("read", json!(50_000), "50.0 us"),
            ("depth", json!(8), "8"),
            ("victim", json!("greedy"), "greedy"),
        ] {
            assert_eq!(shown(column, &value, &units), text, "{column}");
        }
        assert_eq!(option_axis("op", &units, false).title, "op, %");
        assert_eq!((option_axis("op", &units, false).label)(0.07), "7");
    }

    #[test]
    fn numbers_of_results_have_names_and_units() {
        assert_eq!(title("write_amplification.steady"), "write amplification, steady");
        assert_eq!(title("flash.erased_blocks"), "flash.erased_blocks");
        assert_eq!(measured("latency_ns.write.p99", 1_200_400.0), "1.20 ms");
        assert_eq!(measured("latency_ns.write.count", 1_200_400.0), "1,200,400");
        assert_eq!(measured("write_amplification.total", 2.376), "2.38");
    }
}
