//! Merges the two zones of a chunk at once, for a journal or a write that cannot wait for reclaim.

use super::Volume;
use super::media::ZoneId;
use super::metadata::Entry;
use super::reclaim::STEP_BLOCKS;
use super::zones::Use;
use crate::device::DeviceError;
use crate::time::Time;

impl Volume {
    /// Merges the zones of a chunk in one conventional zone; a journal's zone stays separate. Returns the completion
    /// time. A failure leaves the chunk unchanged.
    pub(super) fn merge_zones(&mut self, chunk: u32, mut at: Time) -> Result<Time, DeviceError> {
        let Some(to) = self.take_conventional(Use::Target, &mut at)? else { return Ok(at) };
        let Entry { data, buffer } = self.metadata.entry(chunk);
        let journal = buffer.some().filter(|buffer| self.zones.is_journal(*buffer));
        let sources = [data.some(), buffer.some().filter(|_| journal.is_none())];
        let sources = || sources.into_iter().flatten();
        let at = match sources().try_fold(at, |at, from| self.copy_valid(chunk, from, to, at)) {
            Ok(at) => at,
            Err(error) => {
                self.zones.put_free(to);
                return Err(error);
            }
        };
        for from in sources() {
            self.move_valid_bits(from, to);
            self.zones.release(from);
        }
        self.zones.set_use(to, Use::Data(chunk));
        if journal.is_some() {
            self.zones.pin(to, false);
        }
        self.metadata.set_entry(chunk, Entry { data: to, buffer: journal.unwrap_or(ZoneId::NONE) });
        Ok(at)
    }

    /// Copies the valid blocks of a buffer to the conventional data zone of its chunk, and frees the buffer. A failure
    /// leaves the chunk unchanged.
    pub(super) fn merge_into_data(&mut self, chunk: u32, at: Time) -> Result<Time, DeviceError> {
        let Entry { data, buffer } = self.metadata.entry(chunk);
        let at = self.copy_valid(chunk, buffer, data, at)?;
        self.move_valid_bits(buffer, data);
        self.zones.release(buffer);
        self.zones.unpin(data);
        self.metadata.set_entry(chunk, Entry { data, buffer: ZoneId::NONE });
        Ok(at)
    }

    /// Copies the valid blocks of one zone of a chunk to the same offsets of another. The bitmaps stay unchanged.
    fn copy_valid(&mut self, chunk: u32, from: ZoneId, to: ZoneId, mut at: Time) -> Result<Time, DeviceError> {
        let blocks = self.media.zone_blocks;
        let mut next = 0;
        while next < blocks {
            let (is_valid, end) = self.metadata.run(from, next, blocks);
            let mut end = end.min(next + STEP_BLOCKS);
            if is_valid {
                let provenance;
                (provenance, end) = self.provenance_run(chunk, next, end);
                at = self.copy(from, to, (next, end), provenance, at)?;
            }
            next = end;
        }
        Ok(at)
    }

    /// Moves the valid bits of blocks copied from one zone to another.
    pub(super) fn move_valid_bits(&mut self, from: ZoneId, to: ZoneId) {
        let blocks = self.media.zone_blocks;
        let mut block = 0;
        while block < blocks {
            let (is_valid, end) = self.metadata.run(from, block, blocks);
            if is_valid {
                self.metadata.validate(to, block, end);
            }
            block = end;
        }
        self.metadata.invalidate(from, 0, blocks);
    }
}
