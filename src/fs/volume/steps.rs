//! CPU time of a call to a volume: the steps of each kind of call. A volume spends it while it holds its locks, so that
//! calls that exclude each other also use the processor one after the other.
//!
//! A file system on a device spends all steps. One without storage omits the steps of storage
//! ([`Step::is_of_storage`]): checksums and the log.

use super::Call;
use crate::task::Step;
use crate::units::BLOCK_BYTES;

/// Steps, each with a count.
pub type Steps = [(Step, u64)];

/// No steps: a call that a mount or a run makes for itself.
pub const NONE: &Steps = &[];
/// Reads an inode.
pub const LOOK: &Steps = &[(Step::Call, 1), (Step::InodeRead, 1)];
/// Looks up a name in a directory, and reads its inode.
pub const LOOKUP: &Steps = &[(Step::Call, 1), (Step::NameLookedUp, 1), (Step::InodeRead, 1)];
/// Changes an inode.
pub const CHANGE: &Steps = &[(Step::Call, 1), (Step::InodeChanged, 1)];
/// Adds or removes a name: changes the directory and the inode, and logs a record.
pub const NAME: &Steps = &[(Step::Call, 1), (Step::NameLookedUp, 1), (Step::InodeChanged, 2), (Step::LogRecord, 1)];
/// Renames: changes two directories and the inode, and logs a record for each name.
pub const RENAME: &Steps = &[(Step::Call, 1), (Step::NameLookedUp, 2), (Step::InodeChanged, 3), (Step::LogRecord, 2)];
/// Makes a file durable: writes the log.
pub const SYNC: &Steps = &[(Step::Call, 1), (Step::InodeRead, 1), (Step::LogWritten, 1)];

/// Reads: looks up and copies each block.
pub fn read(offset: u64, length: usize) -> [(Step, u64); 4] {
    let blocks = touched(offset, length as u64);
    [(Step::Call, 1), (Step::InodeRead, 1), (Step::MapStep, blocks), (Step::BlockCopied, blocks)]
}

/// Writes: looks up, copies and checksums each block, and changes the inode.
pub fn write(offset: u64, length: usize) -> [(Step, u64); 5] {
    let blocks = touched(offset, length as u64);
    [
        (Step::Call, 1),
        (Step::InodeChanged, 1),
        (Step::MapStep, blocks),
        (Step::BlockCopied, blocks),
        (Step::BlockSummed, blocks),
    ]
}

/// Reserves or frees a range: looks up each block, changes the inode, and logs a record.
pub fn allocate(offset: u64, length: u64) -> [(Step, u64); 4] {
    [(Step::Call, 1), (Step::InodeChanged, 1), (Step::MapStep, touched(offset, length)), (Step::LogRecord, 1)]
}

impl Call<'_> {
    /// Spends the CPU time of these steps.
    pub fn spend(&self, steps: &Steps) {
        steps.iter().for_each(|(step, times)| self.task.spend(*step, *times));
    }

    /// Spends the CPU time of these steps in a file system without storage.
    pub fn spend_in_memory(&self, steps: &Steps) {
        let in_memory = steps.iter().filter(|(step, _)| !step.is_of_storage());
        in_memory.for_each(|(step, times)| self.task.spend(*step, *times));
    }
}

/// Number of blocks that the range overlaps.
fn touched(offset: u64, length: u64) -> u64 {
    if length == 0 { 0 } else { (offset.saturating_add(length) - 1) / BLOCK_BYTES - offset / BLOCK_BYTES + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{Alone, Costs, Task};
    use crate::time::Time;

    #[test]
    fn a_write_spends_the_cpu_time_of_its_blocks_and_its_inode() {
        let costs = Costs::none().with(Step::BlockCopied, 100).with(Step::BlockSummed, 10).with(Step::InodeChanged, 1);
        let task = Task::simulated(Time(0), &costs, &Alone);
        let call = Call::by_root(&task);
        call.spend(&write(4095, 2));
        assert_eq!(task.now(), Time(221), "the write overlaps two blocks");
        call.spend(&write(0, 0));
        assert_eq!(task.now(), Time(222), "the write overlaps none");
    }

    #[test]
    fn a_file_system_in_memory_spends_no_cpu_time_on_checksums_and_the_log() {
        let costs = Step::NAMES.iter().fold(Costs::none(), |costs, (_, step)| costs.with(*step, 1));
        let spent = |spend: &dyn Fn(&Call)| {
            let task = Task::simulated(Time(0), &costs, &Alone);
            spend(&Call::by_root(&task));
            task.now().0
        };
        for (steps, of_storage) in [(LOOK, 0), (LOOKUP, 0), (CHANGE, 0), (NAME, 1), (RENAME, 2), (SYNC, 1)] {
            let (stored, in_memory) = (spent(&|call| call.spend(steps)), spent(&|call| call.spend_in_memory(steps)));
            assert_eq!(stored - in_memory, of_storage, "{steps:?}");
        }
        assert_eq!(
            spent(&|call| call.spend(&write(0, 8192))) - spent(&|call| call.spend_in_memory(&write(0, 8192))),
            2
        );
    }
}
