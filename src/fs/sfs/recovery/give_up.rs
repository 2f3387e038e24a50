//! Giving up a block whose bytes are unknown, or their newest version.

use crate::fs::sfs::error::SfsError;
use crate::fs::sfs::files::Files;
use crate::fs::sfs::media::format::{DIRTY, DatEntry};
use crate::task::Task;

impl Files {
    /// Gives up a virtual block: reading it fails until it is written anew.
    pub(super) fn give_up(&mut self, task: &Task<'_>, number: u64) -> Result<(), SfsError> {
        self.metadata.blocks.remove(number);
        let mut entry = self.metadata.dat.get(task, number)?;
        self.drop_dirty(&mut entry);
        (entry.address, entry.crc, entry.is_lost) = (0.into(), 0.into(), 1);
        self.metadata.dat.set(task, number, &entry)
    }

    /// If a block is dirty, drops its bytes in memory: its entry then has the address of the stored version.
    pub(super) fn drop_dirty(&mut self, entry: &mut DatEntry) {
        let address = entry.address.get();
        if address & DIRTY != 0 {
            let slot = (address & !DIRTY) as u32;
            entry.address = self.dirty_blocks.slot(slot).before.into();
            self.dirty_blocks.remove(slot);
        }
    }
}
