//! The options of `sfs`.

use super::Limits;
use super::placement::by_hotness::QuantizerKind;
use super::placement::hint::NameHints;
use super::placement::table::{POLICIES, Policies};
use super::placement::{Cleaner, GroupingSettings};
use super::preset::Preset;
use crate::expression::{Choice, ExpressionError, Kind, OptionKind, Settings, Term, Values, words, words_of};
use crate::units::{BLOCK_BYTES, format_size};
use std::sync::Arc;

/// The least value of `dirty`.
const LEAST_DIRTY: u64 = 1 << 20;

/// The station.
pub static KIND: Kind = Kind {
    name: "sfs",
    about: "the log-structured file system that groups blocks by hotness (SFS)",
    options: &[
        OptionKind {
            name: "preset",
            values: Values::Choice(words::<&'static Preset>),
            default: "",
            about: "the defaults of the other options (not set: those below)",
        },
        OptionKind {
            name: "segment",
            values: Values::Size(64 << 10, 1 << 30),
            default: "",
            about: "segment size, a multiple of 4K; on zns the zone capacity (not set: 32M, less on a device of less than 6G)",
        },
        OptionKind {
            name: "groups",
            values: Values::Count(1, 16),
            default: "4",
            about: "number of hotness groups of grouping=sfs",
        },
        OptionKind {
            name: "grouping",
            values: Values::Choice(|| words_of(POLICIES.groupings)),
            default: "",
            about: "the policy that assigns blocks to groups (not set: lifetime, or sfs if groups or quantizer is given)",
        },
        OptionKind {
            name: "quantizer",
            values: Values::Choice(words::<QuantizerKind>),
            default: "iterative",
            about: "the algorithm that finds the groups' hotness (equi-height and equi-width as in the paper)",
        },
        OptionKind {
            name: "cleaner",
            values: Values::Choice(|| words_of(POLICIES.cleaners)),
            default: "cost-lifetime",
            about: "the policy that selects the victims of cleaning; the paper's is cost-hotness",
        },
        OptionKind {
            name: "short-lived",
            values: Values::Text(1024),
            default: "",
            about: "grouping=lifetime: endings of the names of files whose new blocks die soon, such as .wal+-journal+.tmp",
        },
        OptionKind {
            name: "long-lived",
            values: Values::Text(1024),
            default: "",
            about: "grouping=lifetime: endings of the names of files whose blocks are kept, such as .iso+.jpg",
        },
        OptionKind {
            name: "hints",
            values: Values::Switch,
            default: "off",
            about: "grouping=lifetime: the workload's placement hints are lifetimes: 1 short, 2 medium, 3 long, 4 extreme, as those of fio",
        },
        OptionKind {
            name: "watermark",
            values: Values::Share(0.5, 0.99),
            default: "95%",
            about: "share of segments in use above which cleaning begins",
        },
        OptionKind {
            name: "at-once",
            values: Values::Count(1, 64),
            default: "3",
            about: "maximum number of victims cleaned at once",
        },
        OptionKind {
            name: "clock",
            values: Values::Choice(words::<AgeClock>),
            default: "time",
            about: "the unit of block ages; without a timing model below, always writes",
        },
        OptionKind {
            name: "hotness",
            values: Values::Choice(words::<CountedWrites>),
            default: "host",
            about: "the writes that count in the write count and the last-modified time of a block and its file",
        },
        OptionKind {
            name: "rest",
            values: Values::Choice(words::<Rest>),
            default: "grouped",
            about: "the segment of blocks that a sync or a checkpoint must write, and that fill none of their group",
        },
        OptionKind {
            name: "dirty",
            values: Values::Size(LEAST_DIRTY, 64 << 30),
            default: "",
            about: "maximum dirty data; above it writers wait (not set: 12 segments, 64M to 512M)",
        },
        OptionKind {
            name: "flush",
            values: Values::Duration(10_000_000, 3_600_000_000_000),
            default: "5s",
            about: "interval between writebacks of dirty data, as far as groups fill segments",
        },
        OptionKind {
            name: "checkpoint",
            values: Values::Duration(10_000_000, 3_600_000_000_000),
            default: "30s",
            about: "interval between checkpoints",
        },
        OptionKind {
            name: "checkpoint-segments",
            values: Values::Count(1, 4096),
            default: "",
            about: "segments written between checkpoints (not set: an eighth of the volume's, at least 20)",
        },
        OptionKind {
            name: "fsync",
            values: Values::Choice(words::<Fsync>),
            default: "log",
            about: "the effect of an fsync",
        },
        OptionKind { name: "discard", values: Values::Switch, default: "on", about: "discard free segments" },
        OptionKind {
            name: "cache",
            values: Values::Size(4 << 20, 64 << 30),
            default: "256M",
            about: "maximum clean metadata in memory",
        },
        OptionKind {
            name: "memory",
            values: Values::Size(16 << 20, 1 << 40),
            default: "",
            about: "maximum memory of a mounted volume, including dirty= and cache= (not set: half the memory of the machine or the cgroup)",
        },
    ],
};

/// The unit of block ages.
#[derive(Clone, Copy, PartialEq)]
enum AgeClock {
    Time,
    Writes,
}

impl Choice for AgeClock {
    const WORDS: &'static [(&'static str, Self, &'static str)] =
        &[("time", AgeClock::Time, "elapsed time"), ("writes", AgeClock::Writes, "one tick for each block written")];
}

/// The writes that count in the history of a block and its file: W and T^m of section 3.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountedWrites {
    /// Those of the host. A copy made by cleaning keeps the block's history.
    Host,
    /// All, copies made by cleaning included.
    All,
}

impl Choice for CountedWrites {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("host", CountedWrites::Host, "those of the host: a cleaned block keeps its history"),
        ("all", CountedWrites::All, "copies made by cleaning, too, as in the paper (section 3.5)"),
    ];
}

/// The segment of blocks that must be written, and that fill none of their group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// The open segment of their group.
    Grouped,
    /// One open segment for all groups.
    Mixed,
}

impl Choice for Rest {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("grouped", Rest::Grouped, "the open segment of their group"),
        ("mixed", Rest::Mixed, "one for all groups, as in the paper (section 3.5: regardless of group)"),
    ];
}

/// The effect of an fsync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fsync {
    /// Log records of all changes, and of few changed bytes; whole blocks of more.
    Log,
    /// Log records of all changes but those of bytes, and whole blocks.
    Blocks,
    /// A checkpoint.
    Checkpoint,
}

impl Choice for Fsync {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        (
            "log",
            Fsync::Log,
            "appends the file's changes to the log, which a mount after a crash rolls forward: few bytes as records, more as blocks",
        ),
        ("blocks", Fsync::Blocks, "appends them, and bytes always as whole blocks"),
        ("checkpoint", Fsync::Checkpoint, "takes a checkpoint, as in the paper"),
    ];
}

/// The options of sfs.
#[derive(Clone, Debug)]
pub struct SfsSettings {
    /// The term with all options written out.
    pub written_out: String,
    /// Segment size in bytes; `None` to derive it from the device.
    pub segment_bytes: Option<u64>,
    /// The policy that assigns blocks to groups.
    pub grouping: Arc<dyn GroupingSettings>,
    /// The policy that selects victims.
    pub cleaner: Arc<dyn Cleaner>,
    /// The lifetimes that names of files state.
    pub name_hints: NameHints,
    /// True if the placement hints of a workload are lifetimes.
    pub hints_are_lifetimes: bool,
    /// Share of segments in use above which cleaning begins.
    pub watermark: f64,
    /// Maximum number of victims cleaned at once.
    pub at_once: u32,
    /// True if ages are measured in writes even with a timing model.
    pub counts_writes: bool,
    /// The writes that count in the history of a block.
    pub counted_writes: CountedWrites,
    /// The segment of blocks that must be written, and that fill none of their group.
    pub rest: Rest,
    /// Maximum dirty data in bytes; `None` to derive it from the segments.
    pub dirty_bytes: Option<u64>,
    /// Nanoseconds between writebacks of dirty data.
    pub flush_ns: u64,
    /// Nanoseconds between checkpoints.
    pub checkpoint_ns: u64,
    /// Segments written between checkpoints; `None` to derive it from the volume.
    pub checkpoint_segments: Option<u32>,
    /// The effect of an fsync.
    pub fsync: Fsync,
    /// True if free segments are discarded.
    pub discard: bool,
    /// Maximum bytes of clean metadata in memory.
    pub cache_bytes: u64,
    /// Maximum memory of a volume in bytes; `None` for no bound. A volume of stamps has none.
    pub memory_bytes: Option<u64>,
    /// Bound used if `memory_bytes` is `None`, derived from the machine. A volume that needs more exceeds it.
    pub machine_memory_bytes: Option<u64>,
    /// Bytes of the bound for metadata, dirty and clean; `None` for the remainder after the segments. Tests set it,
    /// since their volumes are too small to reach any bound that can be written as an option.
    pub metadata_memory_bytes: Option<u64>,
}

impl SfsSettings {
    /// Reads a term of the station.
    pub fn read(term: &Term) -> Result<SfsSettings, ExpressionError> {
        SfsSettings::read_with(term, &KIND, &POLICIES)
    }

    /// Reads a term with the caller's policies: `kind` is [`KIND`] with their names and options.
    ///
    /// # Panics
    ///
    /// If `kind` lacks an option of [`KIND`], or its values are not those of `policies`: a bug of the caller.
    pub fn read_with(term: &Term, kind: &'static Kind, policies: &Policies) -> Result<SfsSettings, ExpressionError> {
        let mut settings: Settings = term.settle(kind)?;
        if settings.is_set("preset") {
            settings.set_defaults(settings.choice::<&'static Preset>("preset").values);
        }
        let is_by_hotness = settings.is_given("groups") || settings.is_given("quantizer");
        if !settings.is_set("grouping") {
            settings.set_default("grouping", if is_by_hotness { "sfs" } else { "lifetime" });
        }
        let size = |name: &str| settings.is_set(name).then(|| settings.size(name));
        let segment_bytes = size("segment");
        if segment_bytes.is_some_and(|bytes| !bytes.is_multiple_of(BLOCK_BYTES)) {
            return Err(settings.error(
                "segment",
                "not a multiple of 4K".to_string(),
                "write segment=32M, for example".to_string(),
            ));
        }
        let grouping = settings.row("grouping", policies.groupings)(&settings)?;
        let hints_are_lifetimes = settings.switch("hints");
        let name_hints = NameHints::read(&settings)?;
        let given = NameHints::given(&settings).or(hints_are_lifetimes.then_some("hints"));
        if let Some(option) = given.filter(|_| !grouping.uses_hints()) {
            let message = format!("{option} has no effect with this grouping");
            return Err(settings.error(option, message, "write grouping=lifetime, or leave it out".to_string()));
        }
        Ok(SfsSettings {
            segment_bytes,
            name_hints,
            hints_are_lifetimes,
            cleaner: settings.row("cleaner", policies.cleaners)(&settings)?,
            watermark: settings.share("watermark"),
            at_once: settings.count("at-once") as u32,
            counts_writes: settings.choice::<AgeClock>("clock") == AgeClock::Writes,
            counted_writes: settings.choice("hotness"),
            rest: settings.choice("rest"),
            dirty_bytes: size("dirty"),
            flush_ns: settings.duration_ns("flush"),
            checkpoint_ns: settings.duration_ns("checkpoint"),
            checkpoint_segments: settings
                .is_set("checkpoint-segments")
                .then(|| settings.count("checkpoint-segments") as u32),
            fsync: settings.choice("fsync"),
            discard: settings.switch("discard"),
            cache_bytes: settings.size("cache"),
            memory_bytes: size("memory"),
            machine_memory_bytes: None,
            metadata_memory_bytes: None,
            written_out: settings.written_out(if grouping.quantizes() { &[] } else { &["groups", "quantizer"] }),
            grouping,
        })
    }

    /// Options that were not set, with the values of a volume of these limits, as far as an option can have them.
    pub(super) fn chosen(&self, limits: &Limits, segment_blocks: u32) -> Vec<(&'static str, String)> {
        let segment = format_size(u64::from(segment_blocks) * BLOCK_BYTES);
        // A volume takes a segment of dirty data at least, whatever it is asked for.
        let dirty = format_size((limits.dirty_blocks as u64 * BLOCK_BYTES).max(LEAST_DIRTY));
        let all = [
            ("segment", self.segment_bytes.is_none(), segment),
            ("dirty", self.dirty_bytes.is_none(), dirty),
            ("checkpoint-segments", self.checkpoint_segments.is_none(), limits.log_segments.to_string()),
        ];
        let unset = all.into_iter().filter(|(name, is_unset, value)| *is_unset && KIND.accepts(name, value));
        unset.map(|(name, _, value)| (name, value)).collect()
    }
}
