//! Giving up a block whose bytes are unknown.

use crate::fs::sfs::Sfs;
use crate::fs::sfs::error::SfsError;
use crate::task::Task;

impl Sfs {
    /// Gives up a virtual block: reading it fails until it is written anew.
    pub(super) fn give_up(&mut self, task: &Task<'_>, number: u64) -> Result<(), SfsError> {
        self.metadata.blocks.remove(number);
        let mut entry = self.metadata.dat.get(task, number)?;
        (entry.address, entry.crc, entry.is_lost) = (0.into(), 0.into(), 1);
        self.metadata.dat.set(task, number, &entry)
    }
}
