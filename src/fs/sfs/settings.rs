//! The options of `sfs`.

use super::placement::by_hotness::QuantizerKind;
use super::placement::table::{POLICIES, Policies};
use super::placement::{Cleaner, GroupingSettings};
use crate::expression::{Choice, ExpressionError, Kind, OptionKind, Settings, Term, Values, words, words_of};
use crate::units::BLOCK_BYTES;
use std::sync::Arc;

/// The station.
pub static KIND: Kind = Kind {
    name: "sfs",
    about: "the log-structured file system that groups blocks by hotness (SFS)",
    options: &[
        OptionKind {
            name: "segment",
            values: Values::Size(64 << 10, 1 << 30),
            default: "",
            about: "a segment's size, a multiple of 4K; on zns it is the zone's capacity (not set: 32M, less on a device of less than 6G)",
        },
        OptionKind {
            name: "groups",
            values: Values::Count(1, 16),
            default: "4",
            about: "groups of like hotness, of grouping=sfs",
        },
        OptionKind {
            name: "grouping",
            values: Values::Choice(|| words_of(POLICIES.groupings)),
            default: "sfs",
            about: "which group a block is written in",
        },
        OptionKind {
            name: "quantizer",
            values: Values::Choice(words::<QuantizerKind>),
            default: "iterative",
            about: "how the groups' hotness is found (equi-height and equi-width as the paper uses the words)",
        },
        OptionKind {
            name: "cleaner",
            values: Values::Choice(|| words_of(POLICIES.cleaners)),
            default: "cost-hotness",
            about: "which segment is cleaned",
        },
        OptionKind {
            name: "watermark",
            values: Values::Share(0.5, 0.99),
            default: "95%",
            about: "segments are cleaned when so many of them are in use",
        },
        OptionKind {
            name: "at-once",
            values: Values::Count(1, 64),
            default: "3",
            about: "segments that are cleaned at once",
        },
        OptionKind {
            name: "clock",
            values: Values::Choice(words::<AgeClock>),
            default: "time",
            about: "what a block's age is measured in; where the device below has no timing model, always writes",
        },
        OptionKind {
            name: "dirty",
            values: Values::Size(1 << 20, 64 << 30),
            default: "",
            about: "what may wait to be written; more makes writers wait (not set: 12 segments, 64M to 512M)",
        },
        OptionKind {
            name: "flush",
            values: Values::Duration(10_000_000, 3_600_000_000_000),
            default: "5s",
            about: "what waits is written so often, as far as groups fill segments",
        },
        OptionKind {
            name: "checkpoint",
            values: Values::Duration(10_000_000, 3_600_000_000_000),
            default: "30s",
            about: "a checkpoint is taken so often",
        },
        OptionKind {
            name: "checkpoint-segments",
            values: Values::Count(1, 4096),
            default: "20",
            about: "and after so many segments",
        },
        OptionKind {
            name: "fsync",
            values: Values::Choice(words::<Fsync>),
            default: "log",
            about: "what an fsync does",
        },
        OptionKind {
            name: "discard",
            values: Values::Switch,
            default: "on",
            about: "tell the device when a segment is free",
        },
        OptionKind {
            name: "cache",
            values: Values::Size(4 << 20, 64 << 30),
            default: "256M",
            about: "metadata that is kept in memory although it is not changed",
        },
        OptionKind {
            name: "memory",
            values: Values::Size(16 << 20, 1 << 40),
            default: "",
            about: "what a mounted volume takes at the most; dirty= and cache= are within it (not set: half of what the machine or the cgroup has)",
        },
    ],
};

/// What a block's age is measured in.
#[derive(Clone, Copy, PartialEq)]
enum AgeClock {
    Time,
    Writes,
}

impl Choice for AgeClock {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("time", AgeClock::Time, "time passes"),
        ("writes", AgeClock::Writes, "a tick for each block that is written"),
    ];
}

/// What an fsync does.
#[derive(Clone, Copy, PartialEq)]
enum Fsync {
    Log,
    Checkpoint,
}

impl Choice for Fsync {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("log", Fsync::Log, "writes what the file needs, which a mount after a crash rolls forward"),
        ("checkpoint", Fsync::Checkpoint, "takes a checkpoint, as in the paper"),
    ];
}

/// The options, read.
#[derive(Clone, Debug)]
pub struct SfsSettings {
    /// The term with every option written out.
    pub written_out: String,
    /// Bytes of a segment; `None` for what suits the device.
    pub segment_bytes: Option<u64>,
    /// Which group a block is written in.
    pub grouping: Arc<dyn GroupingSettings>,
    /// Which segment is cleaned.
    pub cleaner: Arc<dyn Cleaner>,
    /// The share of segments in use from which on segments are cleaned.
    pub watermark: f64,
    /// Segments that are cleaned at once.
    pub at_once: u32,
    /// Whether ages are measured in writes even where time passes.
    pub counts_writes: bool,
    /// Bytes that may wait; `None` for what suits the segments.
    pub dirty_bytes: Option<u64>,
    /// Nanoseconds between two writings of what waits.
    pub flush_ns: u64,
    /// Nanoseconds between two checkpoints.
    pub checkpoint_ns: u64,
    /// Segments between two checkpoints.
    pub checkpoint_segments: u32,
    /// Whether an fsync is a checkpoint.
    pub fsync_is_checkpoint: bool,
    /// Whether free segments are discarded.
    pub discard: bool,
    /// Bytes of clean metadata that are kept.
    pub cache_bytes: u64,
    /// Bytes that a volume may take in memory; `None` for no bound. A volume of stamps has none.
    pub memory_bytes: Option<u64>,
    /// The bound if `memory_bytes` says none: what the program found out about the machine. A volume that needs more
    /// takes what it needs.
    pub machine_memory_bytes: Option<u64>,
    /// Of the bound, bytes for metadata, changed and unchanged; `None` for what is left beside the segments. With fewer
    /// a volume is tested that is too small to come near any bound that can be written.
    pub metadata_memory_bytes: Option<u64>,
}

impl SfsSettings {
    /// Reads a term of the station.
    pub fn read(term: &Term) -> Result<SfsSettings, ExpressionError> {
        SfsSettings::read_with(term, &KIND, &POLICIES)
    }

    /// Reads a term of the station with policies of the caller's: `kind` is [`KIND`] with their words, and their options.
    ///
    /// # Panics
    ///
    /// If `kind` lacks an option of [`KIND`], or its words are not those of `policies`: a bug of the caller.
    pub fn read_with(term: &Term, kind: &'static Kind, policies: &Policies) -> Result<SfsSettings, ExpressionError> {
        let settings: Settings = term.settle(kind)?;
        let size = |name: &str| settings.is_set(name).then(|| settings.size(name));
        let segment_bytes = size("segment");
        if segment_bytes.is_some_and(|bytes| !bytes.is_multiple_of(BLOCK_BYTES)) {
            return Err(settings.error("segment", "no multiple of 4K".to_string(), "write 32M, for one".to_string()));
        }
        Ok(SfsSettings {
            segment_bytes,
            grouping: settings.row("grouping", policies.groupings)(&settings)?,
            cleaner: settings.row("cleaner", policies.cleaners)(&settings)?,
            watermark: settings.share("watermark"),
            at_once: settings.count("at-once") as u32,
            counts_writes: settings.choice::<AgeClock>("clock") == AgeClock::Writes,
            dirty_bytes: size("dirty"),
            flush_ns: settings.duration_ns("flush"),
            checkpoint_ns: settings.duration_ns("checkpoint"),
            checkpoint_segments: settings.count("checkpoint-segments") as u32,
            fsync_is_checkpoint: settings.choice::<Fsync>("fsync") == Fsync::Checkpoint,
            discard: settings.switch("discard"),
            cache_bytes: settings.size("cache"),
            memory_bytes: size("memory"),
            machine_memory_bytes: None,
            metadata_memory_bytes: None,
            written_out: settings.written_out(&[]),
        })
    }
}
