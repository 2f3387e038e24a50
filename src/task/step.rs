//! CPU time, as a table of what each kind of work costs.

/// A kind of work of which the CPU time is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A call into a volume: its arguments, its gates, its answer.
    Call,
    /// A name compared with those of one block of a directory.
    NameLookedUp,
    /// One block copied in memory.
    BlockCopied,
    /// The checksum of one block.
    BlockSummed,
    /// One step down a map of blocks: a page found in memory and an entry read or set.
    MapStep,
    /// One record added to the log.
    LogRecord,
    /// One inode read or changed.
    InodeChanged,
}

impl Step {
    /// All of them, with the names that a table gives them.
    pub const NAMES: [(&'static str, Step); 7] = [
        ("call", Step::Call),
        ("name-looked-up", Step::NameLookedUp),
        ("block-copied", Step::BlockCopied),
        ("block-summed", Step::BlockSummed),
        ("map-step", Step::MapStep),
        ("log-record", Step::LogRecord),
        ("inode-changed", Step::InodeChanged),
    ];
}

/// The CPU time of each [`Step`], in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    ns: [u64; Step::NAMES.len()],
}

impl Costs {
    /// No CPU time at all.
    pub const fn none() -> Costs {
        Costs { ns: [0; Step::NAMES.len()] }
    }

    /// The same, but for one step.
    pub fn with(mut self, step: Step, ns: u64) -> Costs {
        self.ns[step as usize] = ns;
        self
    }

    /// Nanoseconds of a step.
    pub fn of(&self, step: Step) -> u64 {
        self.ns[step as usize]
    }
}
