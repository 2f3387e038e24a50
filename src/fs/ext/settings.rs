//! The options of `ext`.

use super::journal::{Checkpointing, Hash, NvmOptions, Order, Scheme, Slots};
use crate::expression::{Choice, ExpressionError, Kind, OptionKind, Settings, Term, Values, words};

/// Blocks of the smallest log.
pub const LEAST_LOG: u64 = 1024;

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
            name: "log-data",
            values: Values::Choice(words::<LogData>),
            default: "at-once",
            about: "data=journal: which bytes of files join a transaction, and when",
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
            default: "",
            about: "bytes of files that may wait in memory; more makes writers wait (not set: 64M, of a mounted volume a fifth of memory=)",
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
            name: "memory",
            values: Values::Size(16 << 20, 1 << 40),
            default: "",
            about: "maximum memory of a mounted volume, including dirty=, cache= and page-cache= (not set: half the memory of the machine or the cgroup)",
        },
        OptionKind {
            name: "auto-da-alloc",
            values: Values::Switch,
            default: "on",
            about: "a file that is renamed over another, or rewritten after a cut to nothing, is written out before that is \
                    committed (ext4's auto_da_alloc; off: noauto_da_alloc)",
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
        OptionKind {
            name: "journal",
            values: Values::Choice(words::<JournalKind>),
            default: "",
            about: "where the journal is (not set: on the second device, or inline if there is none)",
        },
        OptionKind {
            name: "fast-commit",
            values: Values::Switch,
            default: "",
            about: "a sync of a file writes a fast commit where it can, as ext4's feature fast_commit does (not set: if the \
                    volume has the feature; on: a new volume gets it; off: full commits alone)",
        },
        OptionKind {
            name: "flush",
            values: Values::Choice(words::<Order>),
            default: "full",
            about: "the order of the journal's transactions, and the flushes of a sync",
        },
        OptionKind {
            name: "checkpoint-batch",
            values: Values::Count(1, 65_536),
            default: "64",
            about: "blocks that a checkpoint thread writes home at once, at most (jbd2: 64)",
        },
        OptionKind {
            name: "checkpointers",
            values: Values::Count(1, 64),
            default: "",
            about: "threads of a checkpoint (not set: one; of journal=nvm one for each partition)",
        },
        OptionKind {
            name: "commit-thread",
            values: Values::Switch,
            default: "off",
            about: "a thread of its own commits, as jbd2's does, and who needs a commit waits for it; not of journal=nvm",
        },
        OptionKind {
            name: "kept",
            values: Values::Size(1 << 20, 1 << 40),
            default: "",
            about: "journal=vmm: the most that the monitor keeps (not set: as much as the log in the volume could hold, so that a monitor that ends loses nothing)",
        },
        OptionKind {
            name: "partitions",
            values: Values::Count(1, 64),
            default: "",
            about: "journal=nvm: partitions of the region (not set: those it has; 8 of a new one)",
        },
        OptionKind {
            name: "hash",
            values: Values::Choice(words::<Hash>),
            default: "",
            about: "journal=nvm: what gives a block its partition (not set: that of the region; modulo in a new one)",
        },
        OptionKind {
            name: "scheme",
            values: Values::Choice(words::<Scheme>),
            default: "helping",
            about: "journal=nvm: how commits and checkpoints proceed",
        },
        OptionKind {
            name: "slots",
            values: Values::Choice(words::<Slots>),
            default: "atomic",
            about: "journal=nvm: how a handle takes and fills its slots",
        },
        OptionKind {
            name: "renew",
            values: Values::Switch,
            default: "off",
            about: "journal=nvm: format a region that has another shape, is damaged, or has what is not home of another volume",
        },
    ],
};

/// The place of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalKind {
    /// In a file of the volume.
    Inline,
    /// In non-volatile memory.
    Nvm,
    /// In the memory of the volume's own process, which a monitor keeps.
    Vmm,
}

impl Choice for JournalKind {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("inline", JournalKind::Inline, "in the volume"),
        ("nvm", JournalKind::Nvm, "in partitioned non-volatile memory: the second device, such as +nvm:image=FILE"),
        (
            "vmm",
            JournalKind::Vmm,
            "in the memory of the volume's own process, which a monitor keeps: nothing is written",
        ),
    ];
}

/// The options of a journal in non-volatile memory.
const OF_NVM: [&str; 5] = ["partitions", "hash", "scheme", "slots", "renew"];

/// The journal's treatment of the bytes of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataMode {
    /// They are written before the transaction that names their blocks.
    Ordered,
    /// They are written at any time, before or after it.
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

/// The bytes of files that join a transaction, with `data=journal`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogData {
    /// All, when they are written.
    AtOnce,
    /// All, when the file is written out.
    Delayed,
    /// Those of blocks that have older bytes, when the file is written out. New blocks are written in place before the
    /// transaction that names them.
    Overwrites,
}

impl Choice for LogData {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("at-once", LogData::AtOnce, "all bytes, with the call that writes them"),
        (
            "delayed",
            LogData::Delayed,
            "all bytes, when the file is written out, by a sync, after commit=, or of too many: what is overwritten or removed before is not logged",
        ),
        (
            "overwrites",
            LogData::Overwrites,
            "as delayed, and only of blocks that have older bytes: new blocks are written in place before the transaction that names them",
        ),
    ];
}

/// The options, read.
#[derive(Clone, Debug)]
pub struct ExtSettings {
    /// The term with every option written out.
    pub written_out: String,
    /// The way of the bytes of files.
    pub data: DataMode,
    /// Those of them that join a transaction.
    pub log_data: LogData,
    /// Nanoseconds between two commits.
    pub commit_ns: u64,
    /// Bytes of files that may wait.
    pub dirty_bytes: Option<u64>,
    /// Bytes of unchanged metadata that are kept.
    pub cache_bytes: u64,
    /// Bytes of clean pages of files that are kept.
    pub page_cache_bytes: u64,
    /// The largest readahead, in bytes.
    pub readahead_bytes: u64,
    /// Maximum memory of a volume in bytes; `None`: the machine's share. A volume of stamps has none.
    pub memory_bytes: Option<u64>,
    /// A file that replaces another is written out before the replacing is committed.
    pub auto_da_alloc: bool,
    /// Bytes of a block of a new volume.
    pub block_bytes: u64,
    /// The most bytes of blocks that a monitor keeps; `None` for as many as the log in the volume could hold.
    pub kept_bytes: Option<u64>,
    /// Bytes of the journal of a new volume; `None` for a size that suits the volume.
    pub journal_bytes: Option<u64>,
    /// The place of the journal; `None` if the devices say so.
    pub journal: Option<JournalKind>,
    /// The way of checkpoints.
    pub checkpointing: Checkpointing,
    /// A thread of its own commits to a log.
    pub has_commit_thread: bool,
    /// Syncs write fast commits, and a new volume gets the feature; `None`: if the volume has it.
    pub fast_commits: Option<bool>,
    /// The order of transactions.
    pub order: Order,
    /// Those of a journal in non-volatile memory.
    pub nvm: NvmOptions,
    /// `data=` was not given: a journal in non-volatile memory takes the bytes of files, too.
    pub is_data_open: bool,
    /// The first option that only a journal in non-volatile memory has.
    pub of_nvm: Option<&'static str>,
}

impl ExtSettings {
    /// Reads a term of the station.
    pub fn read(term: &Term) -> Result<ExtSettings, ExpressionError> {
        let settings: Settings = term.settle(&KIND)?;
        let block_bytes = settings.size("block");
        if !block_bytes.is_power_of_two() {
            return Err(settings.error("block", "not a size of blocks".to_string(), "write 1K, 2K or 4K".to_string()));
        }
        let journal = settings.is_set("journal").then(|| settings.choice::<JournalKind>("journal"));
        let of_nvm = OF_NVM.into_iter().find(|option| settings.is_given(option));
        if let (Some(JournalKind::Inline | JournalKind::Vmm), Some(option)) = (journal, of_nvm) {
            let message = format!("{option}= is of a journal in non-volatile memory");
            return Err(settings.error(option, message, "leave it out, or take journal=nvm".to_string()));
        }
        if settings.is_set("kept") && journal.is_some_and(|journal| journal != JournalKind::Vmm) {
            let message = "kept= is of a journal that a monitor keeps".to_string();
            return Err(settings.error("kept", message, "leave it out, or take journal=vmm".to_string()));
        }
        let has_commit_thread = settings.switch("commit-thread");
        if has_commit_thread && journal == Some(JournalKind::Nvm) {
            let message = "a journal in non-volatile memory has no commit thread".to_string();
            return Err(settings.error("commit-thread", message, "leave it out".to_string()));
        }
        let fast_commits = settings.is_set("fast-commit").then(|| settings.switch("fast-commit"));
        let data = settings.choice::<DataMode>("data");
        if fast_commits == Some(true) {
            let refuse =
                |message: &str, help: &str| settings.error("fast-commit", message.to_string(), help.to_string());
            if data == DataMode::Journal {
                let message = "with data=journal no file can have a fast commit";
                return Err(refuse(message, "leave it out, or take data=ordered or data=writeback"));
            }
            if matches!(journal, Some(JournalKind::Nvm | JournalKind::Vmm)) || of_nvm.is_some() {
                return Err(refuse("a journal in memory has no fast commits", "leave it out"));
            }
        }
        let order = settings.choice::<Order>("flush");
        let refuse = |message: &str, help: &str| settings.error("flush", message.to_string(), help.to_string());
        if !order.is_durable() && (matches!(journal, Some(JournalKind::Nvm | JournalKind::Vmm)) || of_nvm.is_some()) {
            return Err(refuse("a journal in memory waits for no flush of a device", "leave it out"));
        }
        if order == Order::Checksums && data != DataMode::Journal {
            let message = "the bytes of files have no checksums outside of the journal";
            return Err(refuse(message, "add data=journal, or take flush=barrier or flush=full"));
        }
        let log_data = settings.choice::<LogData>("log-data");
        let may_log = data == DataMode::Journal
            || !settings.is_given("data")
                && (of_nvm.is_some() || matches!(journal, Some(JournalKind::Nvm | JournalKind::Vmm)));
        if log_data != LogData::AtOnce && !may_log {
            let (message, help) = ("the bytes of files are not in the journal", "add data=journal, or leave it out");
            return Err(settings.error("log-data", message.to_string(), help.to_string()));
        }
        if log_data == LogData::Overwrites && order == Order::Checksums {
            let (message, help) = (
                "the bytes of new blocks have no checksums outside of the journal",
                "take log-data=delayed, or flush=barrier or flush=full",
            );
            return Err(settings.error("log-data", message.to_string(), help.to_string()));
        }
        let is_of_nvm = of_nvm.is_some() || journal == Some(JournalKind::Nvm);
        let count = |option| settings.is_set(option).then(|| settings.count(option) as u32);
        Ok(ExtSettings {
            journal,
            is_data_open: !settings.is_given("data"),
            of_nvm,
            checkpointing: Checkpointing {
                batch: settings.count("checkpoint-batch") as usize,
                threads: count("checkpointers"),
            },
            has_commit_thread,
            fast_commits,
            order,
            nvm: NvmOptions {
                partitions: count("partitions"),
                hash: settings.is_set("hash").then(|| settings.choice::<Hash>("hash")),
                scheme: settings.choice::<Scheme>("scheme"),
                slots: settings.choice::<Slots>("slots"),
                renews: settings.switch("renew"),
            },
            data,
            log_data,
            commit_ns: settings.duration_ns("commit"),
            dirty_bytes: settings.is_set("dirty").then(|| settings.size("dirty")),
            cache_bytes: settings.size("cache"),
            page_cache_bytes: settings.size("page-cache"),
            readahead_bytes: settings.size("readahead"),
            memory_bytes: settings.is_set("memory").then(|| settings.size("memory")),
            auto_da_alloc: settings.switch("auto-da-alloc"),
            block_bytes,
            kept_bytes: settings.is_set("kept").then(|| settings.size("kept")),
            journal_bytes: settings.is_set("journal-size").then(|| settings.size("journal-size")),
            // Written out, they would be given when the text is read again.
            written_out: settings.written_out(if is_of_nvm { &[] } else { &OF_NVM }),
        })
    }

    /// True if bytes of files join a transaction with the call that writes them.
    pub fn logs_at_once(&self) -> bool {
        self.data == DataMode::Journal && self.log_data == LogData::AtOnce
    }

    /// True if the bytes of a block that has older ones join a transaction.
    pub fn logs_overwrites(&self) -> bool {
        self.data == DataMode::Journal
    }

    /// True if those of a new block do.
    pub fn logs_new_blocks(&self) -> bool {
        self.data == DataMode::Journal && self.log_data != LogData::Overwrites
    }

    /// Blocks for fast commits behind the records of a new journal, of which there are so many; 0 if it has none.
    pub fn fast_blocks(&self, records: u64) -> u64 {
        match self.fast_commits {
            Some(true) => (records / 8).clamp(64, 1024),
            _ => 0,
        }
    }

    /// Blocks for fast commits of the new journal of a volume of `blocks` blocks, behind its records.
    pub fn fast_blocks_of(&self, blocks: u64) -> u64 {
        self.fast_blocks(self.record_blocks(blocks))
    }

    /// Blocks of the journal of a volume of `blocks` blocks: those of its records, and those for fast commits.
    pub fn journal_blocks(&self, blocks: u64) -> u64 {
        let records = self.record_blocks(blocks);
        records + self.fast_blocks(records)
    }

    /// Blocks of the records of the journal of a volume of `blocks` blocks, as mke2fs chooses them, or as the options say.
    fn record_blocks(&self, blocks: u64) -> u64 {
        let by_size = match blocks {
            ..32_768 => 1024,
            32_768..262_144 => 4096,
            262_144..524_288 => 8192,
            524_288..4_194_304 => 16_384,
            _ => 32_768,
        };
        self.journal_bytes.map_or(by_size, |bytes| (bytes / self.block_bytes).clamp(LEAST_LOG, 1 << 20))
    }
}
