//! CPU time, as a table of what each kind of work costs.

use std::borrow::Cow;

/// A kind of work of which the CPU time is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A call into a volume: its arguments, its gate, its answer.
    Call,
    /// A name found among those of one block of a directory.
    NameLookedUp,
    /// One inode found and read.
    InodeRead,
    /// One inode found and changed.
    InodeChanged,
    /// One block copied in memory.
    BlockCopied,
    /// The checksum of one block.
    BlockSummed,
    /// One step down a map of blocks: a page found in memory and an entry read or set.
    MapStep,
    /// A name or a range changed, and its record added to those that wait for the log.
    LogRecord,
    /// The records and blocks that wait made into a partial segment and handed to the device, and the device flushed.
    /// The device's own time is not part of it.
    LogWritten,
    /// A block and its header of 64 bytes checksummed, stored to memory past the caches, and fenced. The memory's own time
    /// is not part of it, beyond that of DRAM.
    BlockStored,
    /// An atomic addition to a line that another core has just changed.
    LineShared,
    /// A request handed to a device, and its completion taken. The device's own time is not part of it, and not the copy.
    RequestServed,
    /// A thread that sleeps is woken by another, and runs.
    ThreadWoken,
}

impl Step {
    /// All of them, with the names that a table gives them.
    pub const NAMES: [(&'static str, Step); 13] = [
        ("call", Step::Call),
        ("name-looked-up", Step::NameLookedUp),
        ("inode-read", Step::InodeRead),
        ("inode-changed", Step::InodeChanged),
        ("block-copied", Step::BlockCopied),
        ("block-summed", Step::BlockSummed),
        ("map-step", Step::MapStep),
        ("log-record", Step::LogRecord),
        ("log-written", Step::LogWritten),
        ("block-stored", Step::BlockStored),
        ("line-shared", Step::LineShared),
        ("request-served", Step::RequestServed),
        ("thread-woken", Step::ThreadWoken),
    ];

    /// True if only a file system that stores on a device takes this step.
    pub fn is_of_storage(self) -> bool {
        match self {
            Step::BlockSummed
            | Step::LogRecord
            | Step::LogWritten
            | Step::BlockStored
            | Step::LineShared
            | Step::RequestServed
            | Step::ThreadWoken => true,
            Step::Call
            | Step::NameLookedUp
            | Step::InodeRead
            | Step::InodeChanged
            | Step::BlockCopied
            | Step::MapStep => false,
        }
    }
}

/// The CPU time of each [`Step`], in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    ns: [u64; Step::NAMES.len()],
}

impl Costs {
    /// The table that `flashpath calibrate --rounds 101` measured on the machine of [`CpuTable::MEASURED_ON`]: medians of
    /// five runs of a release build, 22 November 2026. `block-summed` and `block-stored` are of 23 November, since checksums and
    /// stores to memory became faster, and `request-served` and `thread-woken` of 27 November: `docs/threads.md` says how they were
    /// measured, and why `line-shared` is 130.
    pub const MEASURED: Costs = Costs { ns: [12, 97, 16, 34, 281, 68, 54, 70, 975, 221, 130, 740, 4_940] };

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

    /// Each step's name and its nanoseconds.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Step::NAMES.map(|(name, step)| (name, self.of(step))).into_iter()
    }

    /// The same, but for the steps that `text` names, such as `call=800,block-copied=250`.
    ///
    /// Fails if a part of it is no `step=nanoseconds`, and says what would be right.
    pub fn with_written(self, text: &str) -> Result<Costs, String> {
        text.split(',').try_fold(self, |costs, part| {
            let (name, ns) = part
                .split_once('=')
                .ok_or_else(|| format!("{part} is no file and no step=nanoseconds, such as call=800"))?;
            let step =
                Step::named(name).ok_or_else(|| format!("there is no step {name}; there are: {}", Step::names()))?;
            let ns = ns.parse::<u64>().ok().filter(|ns| *ns <= Costs::MOST_NS);
            let ns = ns.ok_or_else(|| format!("{part}: write nanoseconds from 0 to {}", Costs::MOST_NS))?;
            Ok(costs.with(step, ns))
        })
    }

    /// The most that a step may cost: a second, so that no clock overflows.
    pub const MOST_NS: u64 = 1_000_000_000;
}

impl Step {
    /// The name that a table gives it.
    pub fn name(self) -> &'static str {
        Step::NAMES[self as usize].0
    }

    /// The step of this name.
    pub fn named(name: &str) -> Option<Step> {
        Step::NAMES.iter().find(|(known, _)| *known == name).map(|(_, step)| *step)
    }

    /// The names of all steps, as a message lists them.
    pub fn names() -> String {
        Step::NAMES.map(|(name, _)| name).join(", ")
    }
}

/// The CPU time that a simulated run counts, and where it is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuTable {
    /// Its origin, as results say it.
    pub name: Cow<'static, str>,
    /// The time of each step.
    pub costs: Costs,
}

impl CpuTable {
    /// The machine of the table that counts where none is given.
    pub const MEASURED_ON: &str = "AMD EPYC, two cores of a virtual machine";

    /// The table that counts where none is given: measured on [`MEASURED_ON`](Self::MEASURED_ON).
    pub const DEFAULT: CpuTable = CpuTable {
        name: Cow::Borrowed("the program's own: AMD EPYC, two cores of a virtual machine"),
        costs: Costs::MEASURED,
    };

    /// CPU time takes no simulated time, as was asked for.
    pub const OFF: CpuTable = CpuTable { name: Cow::Borrowed("off"), costs: Costs::none() };
}

impl Default for CpuTable {
    fn default() -> CpuTable {
        CpuTable::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_table_changes_the_steps_that_it_names_and_no_other() {
        let costs = Costs::MEASURED.with_written("call=800,block-copied=0").unwrap();
        assert_eq!((costs.of(Step::Call), costs.of(Step::BlockCopied)), (800, 0));
        assert_eq!(costs.of(Step::LogRecord), Costs::MEASURED.of(Step::LogRecord));
        for (text, said) in [
            ("", "no step=nanoseconds"),
            ("cal=8", "there are: call, name-looked-up"),
            ("call", "such as call=800"),
            ("call=-1", "from 0 to"),
            ("call=1,,", "no step=nanoseconds"),
            ("call=99999999999", "from 0 to 1000000000"),
        ] {
            let error = Costs::MEASURED.with_written(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn every_step_costs_something_unless_cpu_time_is_off() {
        assert!(CpuTable::DEFAULT.costs.named().all(|(_, ns)| ns > 0));
        assert!(CpuTable::OFF.costs.named().all(|(_, ns)| ns == 0));
        for (place, (name, step)) in Step::NAMES.into_iter().enumerate() {
            assert_eq!((step as usize, Step::named(name)), (place, Some(step)));
        }
        assert!(CpuTable::DEFAULT.name.contains(CpuTable::MEASURED_ON));
    }
}
