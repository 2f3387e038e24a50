//! The options of `ext`.

use crate::expression::{Choice, ExpressionError, Kind, OptionKind, Settings, Term, Values, words};

/// The station.
pub static KIND: Kind = Kind {
    name: "ext",
    about: "a journaling file system that writes in place, compatible with ext4",
    options: &[
        OptionKind {
            name: "data",
            values: Values::Choice(words::<DataMode>),
            default: "ordered",
            about: "what the journal does with the bytes of files",
        },
        OptionKind {
            name: "commit",
            values: Values::Duration(10_000_000, 3_600_000_000_000),
            default: "5s",
            about: "a transaction is committed so often",
        },
        OptionKind {
            name: "dirty",
            values: Values::Size(1 << 20, 64 << 30),
            default: "64M",
            about: "bytes of files that may wait in memory; more makes writers wait",
        },
        OptionKind {
            name: "cache",
            values: Values::Size(1 << 20, 64 << 30),
            default: "32M",
            about: "metadata that is kept in memory although it is not changed",
        },
        OptionKind {
            name: "page-cache",
            values: Values::Size(0, 64 << 30),
            default: "32M",
            about: "bytes of files that are kept in memory after they were read or written; 0: none",
        },
        OptionKind {
            name: "readahead",
            values: Values::Size(0, 64 << 20),
            default: "128K",
            about: "a file that is read in sequence is read so far ahead into the page cache",
        },
        OptionKind {
            name: "block",
            values: Values::Size(1 << 10, 4 << 10),
            default: "4K",
            about: "a block of a new volume: 1K, 2K or 4K; what is simulated has 4K",
        },
        OptionKind {
            name: "journal-size",
            values: Values::Size(1 << 20, 1 << 30),
            default: "",
            about: "the journal of a new volume (not set: 4M to 128M, by the volume's size; of its own device 128M, or all)",
        },
    ],
};

/// What the journal does with the bytes of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataMode {
    /// They are written before the transaction that names their blocks.
    Ordered,
    /// They are written when they are.
    Writeback,
    /// They are part of the transaction.
    Journal,
}

impl Choice for DataMode {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("ordered", DataMode::Ordered, "they are in place before the metadata that names them is committed"),
        ("writeback", DataMode::Writeback, "they are written in no order with the metadata that names them"),
        ("journal", DataMode::Journal, "they are written to the journal first, with the metadata"),
    ];
}

/// The options, read.
#[derive(Clone, Debug)]
pub struct ExtSettings {
    /// The term with every option written out.
    pub written_out: String,
    /// What the journal does with the bytes of files.
    pub data: DataMode,
    /// Nanoseconds between two commits.
    pub commit_ns: u64,
    /// Bytes of files that may wait.
    pub dirty_bytes: u64,
    /// Bytes of unchanged metadata that are kept.
    pub cache_bytes: u64,
    /// Bytes of clean pages of files that are kept.
    pub page_cache_bytes: u64,
    /// The largest readahead, in bytes.
    pub readahead_bytes: u64,
    /// Bytes of a block of a new volume.
    pub block_bytes: u64,
    /// Bytes of the journal of a new volume; `None` for what suits its size.
    pub journal_bytes: Option<u64>,
}

impl ExtSettings {
    /// Reads a term of the station.
    pub fn read(term: &Term) -> Result<ExtSettings, ExpressionError> {
        let settings: Settings = term.settle(&KIND)?;
        let block_bytes = settings.size("block");
        if !block_bytes.is_power_of_two() {
            return Err(settings.error("block", "not a size of blocks".to_string(), "write 1K, 2K or 4K".to_string()));
        }
        Ok(ExtSettings {
            data: settings.choice::<DataMode>("data"),
            commit_ns: settings.duration_ns("commit"),
            dirty_bytes: settings.size("dirty"),
            cache_bytes: settings.size("cache"),
            page_cache_bytes: settings.size("page-cache"),
            readahead_bytes: settings.size("readahead"),
            block_bytes,
            journal_bytes: settings.is_set("journal-size").then(|| settings.size("journal-size")),
            written_out: settings.written_out(&[]),
        })
    }
}
