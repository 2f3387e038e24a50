//! Two zones of a chunk made one at once, where a journal or a write cannot wait for reclaim.

use super::Volume;
use super::media::ZoneId;
use super::metadata::Entry;
use super::reclaim::STEP_BLOCKS;
use super::zones::Use;
use crate::device::DeviceError;
use crate::time::Time;

impl Volume {
    /// Joins the zones of a chunk that need not be kept apart, in one conventional zone: a journal's zone stays beside it.
    /// Answers when that is done. A failure leaves the chunk as it was.
    pub(super) fn gather(&mut self, chunk: u32, mut at: Time) -> Result<Time, DeviceError> {
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
            self.take_over(from, to);
            self.zones.release(from);
        }
        self.zones.set_use(to, Use::Data(chunk));
        if journal.is_some() {
            self.zones.pin(to, false);
        }
        self.metadata.set_entry(chunk, Entry { data: to, buffer: journal.unwrap_or(ZoneId::NONE) });
        Ok(at)
    }

    /// Copies all that is valid in a buffer to its places in the conventional data zone of its chunk, and frees the buffer.
    /// A failure leaves the chunk as it was.
    pub(super) fn merge_into_data(&mut self, chunk: u32, at: Time) -> Result<Time, DeviceError> {
        let Entry { data, buffer } = self.metadata.entry(chunk);
        let at = self.copy_valid(chunk, buffer, data, at)?;
        self.take_over(buffer, data);
        self.zones.release(buffer);
        self.zones.unpin(data);
        self.metadata.set_entry(chunk, Entry { data, buffer: ZoneId::NONE });
        Ok(at)
    }

    /// Copies all that is valid in one zone of a chunk to its places in another. Which of them counts does not change yet.
    fn copy_valid(&mut self, chunk: u32, from: ZoneId, to: ZoneId, mut at: Time) -> Result<Time, DeviceError> {
        let blocks = self.media.zone_blocks;
        let mut next = 0;
        while next < blocks {
            let (is_valid, end) = self.metadata.run(from, next, blocks);
            let mut end = end.min(next + STEP_BLOCKS);
            if is_valid {
                let content;
                (content, end) = self.content_run(chunk, next, end);
                at = self.copy(from, to, (next, end), content, at)?;
            }
            next = end;
        }
        Ok(at)
    }

    /// What is valid in one zone has been copied to the same places of another: there it is valid from now on.
    pub(super) fn take_over(&mut self, from: ZoneId, to: ZoneId) {
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
