//! The CPU time of a call to a volume, as the steps that a call of its kind takes. A volume spends it behind its own
//! gates, so that calls that exclude each other also take the processor one after the other. `sfs` does; `tree` spends none yet.

use super::Call;
use crate::task::Step;
use crate::units::BLOCK_BYTES;

/// Steps, and the number of times that each is taken.
pub type Steps = [(Step, u64)];

/// Costs no step: what a mount or a run asks of a volume for itself.
pub const NONE: &Steps = &[];
/// Reads an inode.
pub const LOOK: &Steps = &[(Step::Call, 1), (Step::InodeChanged, 1)];
/// Finds a name in a directory.
pub const LOOKUP: &Steps = &[(Step::Call, 1), (Step::NameLookedUp, 1)];
/// Changes an inode.
pub const CHANGE: &Steps = &[(Step::Call, 1), (Step::InodeChanged, 1)];
/// Adds or removes a name: the directory and the inode change, and the log has a record of it.
pub const NAME: &Steps = &[(Step::Call, 1), (Step::NameLookedUp, 1), (Step::InodeChanged, 2), (Step::LogRecord, 1)];
/// Renames: two directories and the inode change, and the log has a record of each name.
pub const RENAME: &Steps = &[(Step::Call, 1), (Step::NameLookedUp, 2), (Step::InodeChanged, 3), (Step::LogRecord, 2)];
/// Makes a file durable: its inode goes to the log with a record.
pub const SYNC: &Steps = &[(Step::Call, 1), (Step::InodeChanged, 1), (Step::LogRecord, 1)];

/// Reads: each block is found and copied.
pub fn read(offset: u64, length: usize) -> [(Step, u64); 3] {
    let blocks = touched(offset, length as u64);
    [(Step::Call, 1), (Step::MapStep, blocks), (Step::BlockCopied, blocks)]
}

/// Writes: each block is found, copied and summed, and the inode changes.
pub fn write(offset: u64, length: usize) -> [(Step, u64); 5] {
    let [call, found, copied] = read(offset, length);
    [call, found, copied, (Step::BlockSummed, copied.1), (Step::InodeChanged, 1)]
}

/// Reserves a range or gives it back: each block is found, and the inode changes.
pub fn allocate(offset: u64, length: u64) -> [(Step, u64); 3] {
    [(Step::Call, 1), (Step::MapStep, touched(offset, length)), (Step::InodeChanged, 1)]
}

impl Call<'_> {
    /// Spends the CPU time of these steps.
    pub fn spend(&self, steps: &Steps) {
        steps.iter().for_each(|(step, times)| self.task.spend(*step, *times));
    }
}

/// The number of blocks that these bytes touch.
fn touched(offset: u64, length: u64) -> u64 {
    if length == 0 { 0 } else { (offset.saturating_add(length) - 1) / BLOCK_BYTES - offset / BLOCK_BYTES + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{Alone, Costs, Task};
    use crate::time::Time;

    #[test]
    fn a_write_costs_what_its_blocks_and_its_inode_cost() {
        let costs = Costs::none().with(Step::BlockCopied, 100).with(Step::BlockSummed, 10).with(Step::InodeChanged, 1);
        let task = Task::simulated(Time(0), &costs, &Alone);
        let call = Call::by_root(&task);
        call.spend(&write(4095, 2));
        assert_eq!(task.now(), Time(221), "two blocks are touched");
        call.spend(&write(0, 0));
        assert_eq!(task.now(), Time(222), "none is");
    }
}
