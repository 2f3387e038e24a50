//! The figures: bytes against latency, tables by threads and by drive.

use super::matrix::{Drive, JOURNALS, Load, MOST, THREADS, names};
use super::runs::{Measured, Runs};
use flashpath::report::figure::{Figure, Panel};

/// A quantity of the tables: its title, its unit, and its value.
type Measure = (&'static str, &'static str, fn(&Measured) -> Option<f64>);

const MEASURES: [Measure; 6] = [
    ("journal", "MiB", |run| Some(run.journal_mib())),
    ("write amplification", "blocks stored per block written", Measured::amplification),
    ("erases", "blocks", Measured::erases),
    ("fsync, p50", "ms", |run| run.sync_ms("p50")),
    ("fsync, p99", "ms", |run| run.sync_ms("p99")),
    ("throughput", "thousand calls per second", |run| run.throughput().map(|calls| calls / 1000.0)),
];

/// Stored blocks, by cause.
type Stored = (&'static str, fn(&str, &str, &str) -> bool);

const STORED: [Stored; 4] = [
    ("journal", |cause, _, content| content == "journal" && is_of_host(cause)),
    ("bytes of files in place", |cause, origin, content| {
        content == "data" && origin != "checkpoint" && is_of_host(cause)
    }),
    ("home, by checkpoints", |cause, origin, content| {
        origin == "checkpoint" && content != "journal" && is_of_host(cause)
    }),
    ("by the drive itself", |cause, _, _| !is_of_host(cause)),
];

/// True of what the file system has the drive store: all else the drive does for itself, such as collection, merges, reclaim and padding.
fn is_of_host(cause: &str) -> bool {
    ["host-write", "checkpoint", "journal-commit"].contains(&cause)
}

fn figure(name: &str, title: &str, unit: &str, about: String, panels: Vec<Panel>) -> Figure {
    let (name, title, unit) = (name.to_string(), title.to_string(), unit.to_string());
    Figure { name, title, unit, about, panels, claims: Vec::new(), made_by: None }
}

/// The journals without any value are left out of a panel.
fn panel(title: &str, unit: &str, axis: &str, groups: Vec<(String, Vec<Option<f64>>)>) -> Panel {
    let shown: Vec<usize> = (0..JOURNALS.len())
        .filter(|number| groups.iter().any(|(_, values)| values.get(*number).is_some_and(Option::is_some)))
        .collect();
    let all = names();
    let series = shown.iter().map(|number| all[*number].clone()).collect();
    let groups =
        groups.into_iter().map(|(name, values)| (name, shown.iter().map(|number| values[*number]).collect())).collect();
    Panel { unit: Some(unit.to_string()), axis: Some(axis.to_string()), ..Panel::new(title, series, groups) }
}

/// Bytes to flash by cause against the p99 of fsync: Varmail with 16 threads, on each drive.
pub fn map(runs: &[(Drive, &Runs)]) -> Figure {
    let mut panels = Vec::new();
    for (drive, runs) in runs {
        let is_first = *drive == Drive::Tlc;
        let points = |title: String, is_counted: &dyn Fn(&str, &str, &str) -> bool| {
            let groups = JOURNALS.iter().filter_map(|journal| {
                let run = runs.of(MOST, journal)?;
                let (latency, stored) = (run.sync_ms("p99")?, run.mib(is_counted));
                Some((journal.name.to_string(), vec![Some(latency), Some(stored)]))
            });
            let series = vec!["p99 of fsync, ms".to_string(), "MiB".to_string()];
            Panel { across: Some("p99 of fsync, ms".to_string()), ..Panel::new(&title, series, groups.collect()) }
        };
        panels.push(points(format!("{}: all", drive.name()), &|_, _, _| true));
        if is_first {
            panels.extend(STORED.map(|(cause, is_counted)| points(format!("{}: {cause}", drive.name()), &is_counted)));
        }
    }
    figure(
        "journals-map",
        "Bytes to flash by cause, against the latency of fsync",
        "MiB stored",
        format!(
            "Varmail with {MOST} simulated threads. A point is a journal; those below and to the left are better. What memory and a monitor keep, and \
             what a journal has not written home when the run ends, is not stored again. The drive's own writes are copies of \
             collection, and pages that are filled up."
        ),
        panels,
    )
}

/// A load on the TLC drive by the number of threads.
pub fn by_threads(name: &str, load: Load, runs: &Runs) -> Figure {
    let panels = MEASURES.map(|(title, unit, value)| {
        let groups = THREADS.map(|threads| (threads.to_string(), runs.each(threads, value)));
        panel(title, unit, "threads", groups.to_vec())
    });
    let about = match load {
        Load::Tokubench => "Its calls sync nothing: a journal is written when it is large enough, and after 5 s.",
        Load::Dbench => "A third of the files that are written are synced.",
        _ => "Half of its writes are synced each.",
    };
    let title = format!("{} on {}", load.name(), Drive::Tlc.name());
    let panels = panels.into_iter().filter(|panel| !panel.series.is_empty()).collect();
    figure(name, &title, "", about.to_string(), panels)
}

/// Recorded loads on each drive, each with the threads that it was recorded with.
pub fn recorded(runs: &[(Load, Drive, &Runs)]) -> Figure {
    let panels = MEASURES.map(|(title, unit, value)| {
        let groups = runs.iter().map(|(load, drive, runs)| {
            let name = load.name().replace(", recorded", "");
            (format!("{name}, {}", drive.name()), runs.each(0, value))
        });
        panel(title, unit, "load and drive", groups.collect())
    });
    figure(
        "journals-recorded",
        "Databases, recorded",
        "",
        "Calls of SQLite (a rollback journal, then a write-ahead log) and of PostgreSQL under TPC-C, replayed at the times at which they came: \
         the throughput is that of the recording, unless the path falls behind."
            .to_string(),
        panels.into_iter().filter(|panel| !panel.series.is_empty()).collect(),
    )
}

/// The loads with 16 threads on the other drives.
pub fn by_drive(runs: &[(Load, Drive, &Runs)]) -> Figure {
    let panels = MEASURES.map(|(title, unit, value)| {
        let groups = runs
            .iter()
            .map(|(load, drive, runs)| (format!("{}, {}", load.name(), drive.name()), runs.each(MOST, value)));
        panel(title, unit, "load and drive", groups.collect())
    });
    figure(
        "journals-drives",
        "On zones, and on SSD-M",
        "",
        format!(
            "{MOST} simulated threads. dm-zoned keeps no order and takes no second device of blocks; SSD-M has no write buffer."
        ),
        panels.into_iter().filter(|panel| !panel.series.is_empty()).collect(),
    )
}
