//! The three journals of the paper, and ours, as paths of `ext` that differ in nothing else.

use super::scratch::Scratch;
use crate::lab::Lab;

/// The journal of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Journal {
    /// In the volume.
    Jfs,
    /// The same journal, on a device of blocks in memory.
    NJfs,
    /// In partitioned memory, as the paper has it: a checkpoint of each commit, in order.
    OJfs,
    /// In partitioned memory, with what we have changed of the scheme.
    Ours,
}

impl Journal {
    /// All, in the paper's order.
    pub const ALL: [Journal; 4] = [Journal::Jfs, Journal::NJfs, Journal::OJfs, Journal::Ours];
    /// Their names, in this order.
    pub const NAMES: [&str; 4] = ["JFS", "N-JFS", "O-JFS", "O-JFS, our scheme"];
}

/// Bytes of the volume, its journal and its memory.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub volume_bytes: u64,
    pub journal_bytes: u64,
    pub dirty_bytes: u64,
    pub page_cache_bytes: u64,
    pub cache_bytes: u64,
}

/// The paper's buffer.
const JOURNAL_BYTES: u64 = 1 << 30;
/// A region of 16 partitions needs 52 MiB.
const LEAST_JOURNAL_BYTES: u64 = 64 << 20;

/// The most of a journal in the volume: the largest that `journal-size=` takes.
pub const MOST_INLINE_BYTES: u64 = 1 << 30;

impl Sizes {
    /// Those of a scale. The journal is the paper's; the rest holds all files of both workloads, as the paper's 768 GB do.
    pub fn of(lab: &Lab) -> Sizes {
        let scaled = |bytes, least: u64| lab.scaled(bytes, 1 << 20).max(least);
        Sizes {
            volume_bytes: scaled(64 << 30, 1 << 30),
            journal_bytes: scaled(JOURNAL_BYTES, LEAST_JOURNAL_BYTES),
            dirty_bytes: scaled(1 << 30, 4 << 20),
            page_cache_bytes: scaled(16 << 30, 64 << 20),
            cache_bytes: scaled(4 << 30, 32 << 20),
        }
    }

    /// Those of runs in real time: a journal smaller than the paper's would be a limit of its own.
    pub fn in_real_time(lab: &Lab) -> Sizes {
        let sizes = Sizes::of(lab);
        Sizes { journal_bytes: JOURNAL_BYTES, volume_bytes: sizes.volume_bytes.max(4 * JOURNAL_BYTES), ..sizes }
    }
}

/// What the log holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logs {
    /// Metadata and the bytes of files.
    Data,
    /// Metadata alone, as the log of JFS.
    Metadata,
}

impl Logs {
    pub const ALL: [Logs; 2] = [Logs::Data, Logs::Metadata];

    /// As a figure says it.
    pub fn name(self) -> &'static str {
        match self {
            Logs::Data => "logs of data",
            Logs::Metadata => "logs of metadata",
        }
    }

    fn option(self) -> &'static str {
        match self {
            Logs::Data => "data=journal",
            Logs::Metadata => "data=ordered",
        }
    }
}

/// A volume: its journal, and more options than those that all have.
#[derive(Clone, Copy, Debug)]
pub struct Stack<'a> {
    pub journal: Journal,
    pub logs: Logs,
    /// Of `ext`, such as `partitions=4`; may be empty.
    pub options: &'a str,
    /// Of `nvm`, such as `persist=clwb`; may be empty.
    pub memory: &'a str,
}

impl Stack<'_> {
    /// A journal with the default options.
    pub const fn of(journal: Journal) -> Stack<'static> {
        Stack { journal, logs: Logs::Data, options: "", memory: "" }
    }

    /// Our scheme with these options of `ext`.
    pub const fn partitioned(options: &str) -> Stack<'_> {
        Stack::of(Journal::Ours).with(options)
    }

    /// The same with these options of `ext`.
    pub const fn with(self, options: &str) -> Stack<'_> {
        Stack { journal: self.journal, logs: self.logs, options, memory: "" }
    }

    /// The same with such a log.
    pub const fn of_logs(self, logs: Logs) -> Self {
        Stack { logs, ..self }
    }

    /// The path on devices in memory, for simulated time. `drive` is the volume's, such as `conv`, with a place for its
    /// size.
    pub fn simulated(&self, sizes: &Sizes, drive: &str) -> String {
        let drive = format!("{drive}size={}", sizes.volume_bytes);
        self.on(sizes, &drive, &format!("conv:size={},timing=off", sizes.journal_bytes), "")
    }

    /// The path on files: the volume's in one directory, that of a journal in memory in another.
    pub fn on_files(&self, sizes: &Sizes, drive: &Scratch, memory: &Scratch) -> String {
        let volume = format!("conv:image={},size={}", drive.file("volume"), sizes.volume_bytes);
        let journal = format!("conv:image={},size={}", memory.file("journal"), sizes.journal_bytes);
        self.on(sizes, &volume, &journal, &format!("image={},", memory.file("region")))
    }

    fn on(&self, sizes: &Sizes, volume: &str, journal: &str, image: &str) -> String {
        let joined = |options: &str| if options.is_empty() { String::new() } else { format!(",{options}") };
        let Sizes { dirty_bytes, page_cache_bytes, cache_bytes, journal_bytes: bytes, .. } = sizes;
        let (logs, options) = (self.logs.option(), joined(self.options));
        let top = format!("ext:{logs},dirty={dirty_bytes},page-cache={page_cache_bytes},cache={cache_bytes}{options}");
        let region = || format!("{volume}+nvm:{image}size={bytes}{}", joined(self.memory));
        match self.journal {
            Journal::Jfs => format!("{top},journal-size={}/{volume}", (*bytes).min(MOST_INLINE_BYTES)),
            Journal::NJfs => format!("{top},journal-size={bytes}/{volume}+{journal}"),
            Journal::OJfs => format!("{top},scheme=paper/{}", region()),
            Journal::Ours => format!("{top}/{}", region()),
        }
    }
}
