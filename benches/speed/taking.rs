//! When and where figures are taken.

use crate::figures::{Rounds, Spread, Taken};
use std::process::Command;

/// The seed of every path and workload.
pub const SEED: u64 = 1;

/// The origin of the figures that are taken now.
pub fn taken() -> Taken {
    let printed = |command: &str, arguments: &[&str]| {
        let output = Command::new(command).args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output();
        output.map_or(String::new(), |output| String::from_utf8_lossy(&output.stdout).trim().to_string())
    };
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split(": ").nth(1));
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    Taken {
        commit: printed("git", &["describe", "--always", "--dirty"]),
        date: printed("date", &["-u", "+%F"]),
        machine: format!("{}, {processors} processors", model.unwrap_or(std::env::consts::ARCH)),
        seed: SEED,
    }
}

/// The median of the values, and their bounds.
pub fn spread(mut values: Vec<f64>) -> Spread {
    values.sort_by(f64::total_cmp);
    Spread { median: values[values.len() / 2], min: values[0], max: values[values.len() - 1] }
}

/// The load of the machine.
fn load() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse().ok()
}

/// Runs `round` several times; returns what it returned, and the load meanwhile.
pub fn rounds<T>(count: usize, mut round: impl FnMut() -> T) -> (Vec<T>, Rounds) {
    let load_at_start = load();
    let found = (0..count).map(|_| round()).collect();
    (found, Rounds { count, load_at_start, load_at_end: load() })
}
