//! The options of `dm-zoned`.

use crate::expression::{ExpressionError, Kind, OptionKind, Term, Values};

/// The station `dm-zoned`. The thresholds' defaults are the kernel's.
pub static KIND: Kind = Kind {
    name: "dm-zoned",
    about: "the kernel's dm-zoned: chunks in conventional zones, which reclaim moves to sequential zones",
    options: &[
        OptionKind {
            name: "reserved",
            values: Values::Count(1, 65536),
            default: "16",
            about: "sequential zones reserved for reclaim; fewer than the conventional zones (used by mkfs)",
        },
        OptionKind { name: "label", values: Values::Text(31), default: "", about: "the volume's name (used by mkfs)" },
        OptionKind {
            name: "journal-zone",
            values: Values::Switch,
            default: "off",
            about: "the file system's journal has conventional zones of its own, which are never reclaimed",
        },
        OptionKind {
            name: "journal-share",
            values: Values::Share(0.01, 0.9),
            default: "50%",
            about: "the share of the conventional zones that journals may take; beyond it, journal blocks are treated as data",
        },
        OptionKind {
            name: "start",
            values: Values::Count(0, 100),
            default: "30",
            about: "percent of free conventional zones at which reclaim starts",
        },
        OptionKind {
            name: "idle",
            values: Values::Duration(1_000_000, 3_600_000_000_000),
            default: "10s",
            about: "without a request for this long, the device is idle, and all conventional zones are reclaimed",
        },
        OptionKind {
            name: "commit",
            values: Values::Duration(1_000_000, 3_600_000_000_000),
            default: "10s",
            about: "the maximum time between commits of changed metadata",
        },
    ],
};

/// The parsed options of `dm-zoned`.
#[derive(Debug, Clone, PartialEq)]
pub struct ZonedSettings {
    /// Sequential zones reserved for reclaim; used by mkfs.
    pub reserved: u32,
    /// The volume's name; used by mkfs.
    pub label: String,
    /// True if journals have zones of their own.
    pub journal_zone: bool,
    /// The share of the conventional zones that journals may take.
    pub journal_share: f64,
    /// Percent of free conventional zones at which reclaim starts.
    pub start_percent: u32,
    /// Nanoseconds without a request after which the device is idle.
    pub idle_ns: u64,
    /// Nanoseconds after which changed metadata is committed.
    pub commit_ns: u64,
    /// The term with all option values.
    pub written_out: String,
}

impl ZonedSettings {
    /// Parses a term. Errors point at the wrong option.
    pub fn read(term: &Term) -> Result<ZonedSettings, ExpressionError> {
        let settings = term.settle(&KIND)?;
        Ok(ZonedSettings {
            reserved: settings.count("reserved") as u32,
            label: settings.text("label").to_string(),
            journal_zone: settings.switch("journal-zone"),
            journal_share: settings.share("journal-share"),
            start_percent: settings.count("start") as u32,
            idle_ns: settings.duration_ns("idle"),
            commit_ns: settings.duration_ns("commit"),
            written_out: settings.written_out(&[]),
        })
    }
}
