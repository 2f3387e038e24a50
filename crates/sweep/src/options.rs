//! The options of the command that a sweep can vary: those of `flashpath run` for simulated runs.

use flashpath::expression::{Amount, Capacity, ExpressionError, Kind, OptionKind, Settings, Values, parse_term, words};
use flashpath::run::{FileShape, Fill, Replay, RunOptions};
use flashpath::workload::trace::Addresses;

/// The options, each with several values. `seed` is the last: it is the one over which means are taken.
pub static COMMAND: Kind = Kind {
    name: "run",
    about: "the options of a run",
    options: &[
        option("depth", Values::Count(1, 65_536), "", "requests in flight (not set: a fio job's iodepth, else 32)"),
        option("timed", Values::Real(0.0, 1e6), "", "replay a trace at its recorded times, multiplied by this"),
        option("limit", Values::Count(1, u64::MAX), "", "end after this many requests"),
        option(
            "fill",
            Values::SwitchOrShare,
            "off",
            "write the exported space, or this share of it, once in order before counting begins",
        ),
        option("precondition", Values::Amount, "", "run the workload for this amount of writes before counting begins"),
        option("verify", Values::Switch, "off", "check that every read returns the latest write"),
        option("size", Values::Size(4096, 1 << 50), "", "the size of the file in which a block workload runs"),
        option("utilization", Values::Share(0.0, 1.0), "", "on sfs, fill the volume up to this share"),
        option(
            "max-request",
            Values::Size(4096, 1 << 30),
            "",
            "the largest write request of a file system (not set: 1280K)",
        ),
        option("fsync-every", Values::Count(1, u64::MAX), "", "in a file, fsync the data after this many writes"),
        option("repeat", Values::Count(1, u64::MAX), "", "replay a trace this many times"),
        option("addresses", Values::Choice(words::<Addresses>), "", "a trace's addresses beyond the end of the drive"),
        option("device", Values::Count(0, u32::MAX as u64), "", "only this device of a trace"),
        option(SEED, Values::Count(0, u64::MAX), "1", "the seed of all randomness"),
    ],
};

/// The option over whose values means are taken.
pub const SEED: &str = "seed";

const fn option(name: &'static str, values: Values, default: &'static str, about: &'static str) -> OptionKind {
    OptionKind { name, values, default, about }
}

/// Bytes a day of a rate of writes, such as `200GB/day`; the error says what would be one.
pub fn rate(text: &str) -> Result<u64, String> {
    let rate = flashpath::units::parse_rate(text).filter(|rate| *rate > 0);
    rate.ok_or_else(|| "expected a size and /day, /h, /min or /s, such as 200GB/day".to_string())
}

/// The options of a trace alone.
const OF_TRACES: [&str; 3] = ["repeat", "addresses", "device"];

/// The options of a run, except its seed.
#[derive(Clone, Debug, Default)]
pub struct Chosen {
    /// For the engine.
    pub run: RunOptions,
    /// The treatment of a trace's addresses.
    pub addresses: Addresses,
    /// The replays of a trace.
    pub repeat: u64,
    /// The device of a trace.
    pub device: Option<u32>,
    /// The options of a trace that are given.
    pub of_traces: Vec<&'static str>,
    /// The given options as arguments of the program.
    pub arguments: Vec<String>,
}

/// Checks a value of an option. The error points into the value alone.
pub fn check(option: &OptionKind, value: &str) -> Result<Settings, ExpressionError> {
    let before = format!("{}:{}=", COMMAND.name, option.name);
    let pointed = |message: String, help: String| ExpressionError {
        source_text: value.to_string(),
        span: 0..value.len(),
        message,
        help,
    };
    let wrong = |error: ExpressionError| {
        let message =
            error.message.replace(&format!("{}:{}", COMMAND.name, option.name), &format!("--{}", option.name));
        pointed(message, error.help)
    };
    let takes = || format!("{} takes {}", option.name, option.values.describe());
    if value.contains(',') {
        return Err(pointed(format!("'{value}' is not a value of --{}", option.name), takes()));
    }
    let settings = parse_term(&format!("{before}{value}")).and_then(|term| term.settle(&COMMAND)).map_err(wrong)?;
    match option.values {
        Values::Amount if settings.amount(option.name).bytes(u64::MAX) == 0 => {
            Err(pointed(format!("--{} {value} is nothing", option.name), takes()))
        }
        _ => Ok(settings),
    }
}

impl Chosen {
    /// The options with these values: name and value each, all of them checked.
    pub fn of(given: &[(&'static str, String)]) -> Chosen {
        let text: Vec<String> = given.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let term = match text.is_empty() {
            true => parse_term(COMMAND.name),
            false => parse_term(&format!("{}:{}", COMMAND.name, text.join(","))),
        };
        let settings = term.and_then(|term| term.settle(&COMMAND)).expect("each value was checked");
        let set = |name: &str| settings.is_set(name);
        let count = |name: &str| set(name).then(|| settings.count(name));
        let replay = match (set("timed"), count("depth")) {
            (true, _) => Some(Replay::Open { scale: settings.real("timed") }),
            (false, depth) => depth.map(|depth| Replay::Closed { depth: depth as u32 }),
        };
        let run = RunOptions {
            replay,
            limit: count("limit"),
            fill: Fill::of(settings.switch_or_share("fill")).expect("a checked share is one"),
            precondition: set("precondition").then(|| settings.amount("precondition")),
            verify: settings.switch("verify"),
            file: FileShape {
                bytes: set("size").then(|| settings.size("size")),
                utilization: set("utilization").then(|| settings.share("utilization")),
                fsync_every: count("fsync-every"),
            },
            max_request_bytes: set("max-request").then(|| settings.size("max-request")),
            ..RunOptions::default()
        };
        let is_of_trace = |name: &&&'static str| set(name);
        Chosen {
            run,
            addresses: if set("addresses") { settings.choice("addresses") } else { Addresses::default() },
            repeat: count("repeat").unwrap_or(1),
            device: count("device").map(|device| device as u32),
            of_traces: OF_TRACES.iter().filter(is_of_trace).copied().collect(),
            arguments: given.iter().map(|(name, value)| argument(name, value)).collect(),
        }
    }
}

fn argument(name: &str, value: &str) -> String {
    match value {
        "on" => format!("--{name}"),
        // Its value is optional, and belongs to it by the sign alone.
        share if name == "fill" => format!("--{name}={share}"),
        _ => format!("--{name} {value}"),
    }
}

/// A value as a cell of a table: a number in the base unit of its kind (bytes, a share of 1, ns), or a text.
pub fn cell(takes: Option<Values>, text: &str) -> serde_json::Value {
    use flashpath::units::{parse_duration_ns, parse_size};
    let number = |text: &str| text.parse::<f64>().ok().filter(|value| value.is_finite());
    let cell = match takes {
        Some(Values::Size(..)) => parse_size(text).map(serde_json::Value::from),
        Some(Values::Count(..)) => text.parse::<u64>().ok().map(serde_json::Value::from),
        Some(Values::Real(..)) => number(text).map(serde_json::Value::from),
        Some(Values::Duration(..) | Values::Durations(..)) => parse_duration_ns(text).map(serde_json::Value::from),
        Some(Values::Capacity(..)) if matches!(Capacity::parse(text), Some(Capacity::Bytes(_))) => {
            parse_size(text).map(serde_json::Value::from)
        }
        Some(Values::Share(..) | Values::Capacity(..)) if text.ends_with('%') => cell_of_percent(text),
        Some(Values::Share(..) | Values::Capacity(..)) => number(text).map(serde_json::Value::from),
        Some(Values::SwitchOrShare) if text.ends_with('%') => cell_of_percent(text),
        Some(Values::Amount) => match Amount::parse(text) {
            Some(Amount::Bytes(bytes)) => Some(bytes.into()),
            Some(Amount::Times(times)) => Some(times.into()),
            None => None,
        },
        _ => None,
    };
    cell.unwrap_or_else(|| text.into())
}

/// The cell of `57%`: a number, of which nothing is left if it is none. Divided, not multiplied by 0.01: it is 0.57.
fn cell_of_percent(text: &str) -> Option<serde_json::Value> {
    let percent = text.strip_suffix('%')?.parse::<f64>().ok().filter(|percent| percent.is_finite())?;
    Some(serde_json::Value::from(percent / 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(name: &str) -> &'static OptionKind {
        COMMAND.options.iter().find(|option| option.name == name).unwrap()
    }

    #[test]
    fn options_are_those_of_a_run() {
        let given = [("depth", "8"), ("fill", "on"), ("precondition", "2x"), ("size", "1G"), ("addresses", "wrap")];
        let chosen = Chosen::of(&given.map(|(name, value)| (name, value.to_string())));
        assert_eq!(chosen.run.replay, Some(Replay::Closed { depth: 8 }));
        assert!(chosen.run.fill == Fill::ALL && chosen.run.file.bytes == Some(1 << 30));
        assert_eq!((chosen.addresses, chosen.of_traces), (Addresses::Wrap, vec!["addresses"]));
        assert_eq!(chosen.arguments.join(" "), "--depth 8 --fill --precondition 2x --size 1G --addresses wrap");
        assert_eq!(Chosen::of(&[]).repeat, 1);
    }

    #[test]
    fn a_value_that_the_run_would_refuse_is_refused() {
        for (name, value) in
            [("depth", "0"), ("precondition", "0x"), ("fill", "yes"), ("size", "1"), ("limit", "1,fill")]
        {
            let error = check(of(name), value).unwrap_err();
            assert!(!error.message.contains("run:"), "{error}");
        }
        check(of("timed"), "0.5").unwrap();
    }

    #[test]
    fn cells_are_numbers_where_values_are() {
        let takes = |name: &str| Some(of(name).values);
        assert_eq!(cell(takes("utilization"), "57%"), json!(0.57));
        assert_eq!(cell(takes("size"), "4K"), json!(4096));
        assert_eq!(cell(takes("seed"), "18446744073709551615"), json!(u64::MAX));
        assert_eq!(cell(takes("precondition"), "6x"), json!(6.0));
        assert_eq!(cell(takes("addresses"), "wrap"), json!("wrap"));
    }
}
