//! Blocks of a sync that were overwritten with the bytes that they had: databases write pages of which only a part
//! changed. They are not written again.

use crate::crc;
use crate::fs::sfs::{Sfs, SfsError};
use crate::task::Task;

impl Sfs {
    /// The blocks whose bytes differ from the stored version. The others are dirty no more: the stored version stays.
    pub(super) fn without_unchanged(&mut self, task: &Task<'_>, slots: Vec<u32>) -> Result<Vec<u32>, SfsError> {
        if self.media.holds_stamps() {
            return Ok(slots);
        }
        let mut changed = Vec::with_capacity(slots.len());
        let mut stored = vec![0; self.media.block_width()];
        for slot in slots {
            if self.is_unchanged(task, slot, &mut stored) {
                let waits = *self.dirty_blocks.slot(slot);
                let mut entry = self.metadata.dat.get(task, waits.number)?;
                entry.address = waits.before.into();
                self.metadata.dat.set(task, waits.number, &entry)?;
                self.dirty_blocks.remove(slot);
            } else {
                changed.push(slot);
            }
        }
        Ok(changed)
    }

    /// True if a changed block equals its stored version, which can stay where it is. `stored` is overwritten.
    fn is_unchanged(&self, task: &Task<'_>, slot: u32, stored: &mut [u8]) -> bool {
        let waits = *self.dirty_blocks.slot(slot);
        debug_assert!(!waits.is_cleaned, "slot {slot} was changed");
        // The checksum tells almost all others apart without a read.
        if waits.before == 0 || crc::crc32c(self.dirty_blocks.bytes(slot)) != waits.crc_before {
            return false;
        }
        let segment = (waits.before / u64::from(self.media.segment_blocks())) as u32;
        // The cleaner left dirty blocks to be written, and waits for the segment to become empty.
        if self.log.segments.get(segment).is_being_cleaned {
            return false;
        }
        // A stored version that cannot be read is replaced.
        self.media.read(task, waits.before, stored).is_ok() && *stored == *self.dirty_blocks.bytes(slot)
    }
}
