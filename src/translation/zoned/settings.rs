//! The options of `dm-zoned`.

use crate::expression::{ExpressionError, Kind, OptionKind, Term, Values};

/// The station `dm-zoned`. The thresholds' defaults are the kernel's.
pub static KIND: Kind = Kind {
    name: "dm-zoned",
    about: "the kernel's dm-zoned: chunks on conventional zones, which reclaim moves to sequential zones",
    options: &[
        OptionKind {
            name: "reserved",
            values: Values::Count(1, 65536),
            default: "16",
            about: "sequential zones kept for reclaim; fewer than the conventional zones (used by mkfs)",
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
            about: "the share of the conventional zones that journals may take; what is beyond it is treated as data",
        },
        OptionKind {
            name: "start",
            values: Values::Count(0, 100),
            default: "30",
            about: "percent of conventional zones free at which reclaim starts",
        },
        OptionKind {
            name: "idle",
            values: Values::Duration(1_000_000, 3_600_000_000_000),
            default: "10s",
            about: "without a request for so long, the device is idle, and all conventional zones are reclaimed",
        },
        OptionKind {
            name: "commit",
            values: Values::Duration(1_000_000, 3_600_000_000_000),
            default: "10s",
            about: "metadata that has changed is committed at least so often",
        },
    ],
};

/// The options of `dm-zoned`, read.
#[derive(Debug, Clone, PartialEq)]
pub struct ZonedSettings {
    /// Sequential zones kept for reclaim, by mkfs.
    pub reserved: u32,
    /// The volume's name, by mkfs.
    pub label: String,
    /// Whether journals have zones of their own.
    pub journal_zone: bool,
    /// The share of the conventional zones that journals may take.
    pub journal_share: f64,
    /// Percent of conventional zones free at which reclaim starts.
    pub start_percent: u32,
    /// Nanoseconds without a request after which the device is idle.
    pub idle_ns: u64,
    /// Nanoseconds after which changed metadata is committed.
    pub commit_ns: u64,
    /// The term with every option written out.
    pub written_out: String,
}

impl ZonedSettings {
    /// Reads a term. Errors point at the option that is wrong.
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
