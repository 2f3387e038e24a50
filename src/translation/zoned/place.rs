//! Selects the zone of a write.

use super::media::ZoneId;
use super::metadata::Entry;
use super::zones::Use;
use super::{Label, Volume};
use crate::device::{DeviceError, ZoneState};
use crate::label::Content;
use crate::time::Time;

/// The zone of a part of a write, and the time at which it can be written.
pub(super) type Place = (ZoneId, Time);

impl Volume {
    /// Marks the zones of a chunk as the most recently used.
    #[inline]
    pub(super) fn touch(&mut self, chunk: u32, at: Time) {
        self.worker.last_access = at;
        self.worker.is_done_idling = false;
        let Entry { data, buffer } = self.metadata.entry(chunk);
        for zone in [data, buffer].into_iter().filter_map(ZoneId::some) {
            self.zones.use_now(zone);
        }
    }

    /// Begins a change of a chunk: interrupts a reclaim of it.
    #[inline]
    pub(super) fn begin_change(&mut self, chunk: u32, at: Time) -> Result<Time, DeviceError> {
        let at = self.interrupt(chunk, at)?;
        self.touch(chunk, at);
        Ok(at)
    }

    pub(super) fn write_part(
        &mut self,
        (chunk, from, count): (u32, u32, u32),
        bytes: &[u8],
        label: Label,
        at: Time,
    ) -> Result<Time, DeviceError> {
        let at = self.begin_change(chunk, at)?;
        let end = from + count;
        let (zone, at) = self.zone_of_write(chunk, from, label.content, at)?;
        let done = match self.media.write(zone, from, bytes, label, at) {
            Ok(done) => done,
            Err(error) => return Err(self.write_failed(chunk, zone, error)),
        };
        self.record_provenance(chunk, from, end, label.provenance());
        if !self.zones.class(zone).is_conventional() {
            self.zones.set_write_pointer(zone, end);
        }
        self.metadata.validate(zone, from, end);
        let Entry { data, buffer } = self.metadata.entry(chunk);
        self.zones.keep_busy(data, done);
        let other = if zone == data { buffer } else { data };
        if let Some(other) = other.some() {
            self.metadata.invalidate(other, from, end);
            self.drop_empty(chunk);
        }
        Ok(done)
    }

    /// Finds the zone for a write, and maps one if there is none.
    #[inline]
    fn zone_of_write(&mut self, chunk: u32, from: u32, content: Content, at: Time) -> Result<Place, DeviceError> {
        if content == Content::Journal && self.settings.journal_zone {
            if let Some(place) = self.zone_of_journal(chunk, at)? {
                return Ok(place);
            }
            self.events.journal_blocks_elsewhere += 1;
        }
        self.zone_of_data(chunk, from, at)
    }

    fn zone_of_data(&mut self, chunk: u32, from: u32, mut at: Time) -> Result<Place, DeviceError> {
        loop {
            let Entry { data, buffer } = self.metadata.entry(chunk);
            let Some(data) = data.some() else {
                let Some(zone) = self.take_conventional(Use::Data(chunk), &mut at)? else { continue };
                self.metadata.set_entry(chunk, Entry { data: zone, buffer: ZoneId::NONE });
                return Ok((zone, at));
            };
            if self.zones.is_journal(data) {
                // The chunk has a journal zone only: other blocks get a second zone.
                let Some(zone) = self.take_conventional(Use::Data(chunk), &mut at)? else { continue };
                self.zones.set_use(data, Use::Buffer(chunk));
                self.zones.pin(zone, false);
                self.metadata.set_entry(chunk, Entry { data: zone, buffer: data });
                return Ok((zone, at));
            }
            if self.zones.class(data).is_conventional() || self.zones.write_pointer(data) == from {
                return Ok((data, at));
            }
            match buffer.some() {
                Some(buffer) if self.zones.is_journal(buffer) => at = self.merge_zones(chunk, at)?,
                Some(buffer) => return Ok((buffer, at)),
                None => {
                    let Some(zone) = self.take_conventional(Use::Buffer(chunk), &mut at)? else { continue };
                    self.metadata.set_entry(chunk, Entry { data, buffer: zone });
                    return Ok((zone, at));
                }
            }
        }
    }

    /// Takes a free conventional zone for a chunk. `None` if it had to wait for one: reclaim may have changed the
    /// chunk.
    pub(super) fn take_conventional(&mut self, use_of: Use, at: &mut Time) -> Result<Option<ZoneId>, DeviceError> {
        match self.zones.take(self.zones.first_class()) {
            Some(zone) => {
                self.zones.set_use(zone, use_of);
                self.worker.is_kicked = true;
                Ok(Some(zone))
            }
            None => {
                *at = self.make_room(*at)?;
                Ok(None)
            }
        }
    }

    /// Frees the zones of a chunk without valid blocks.
    pub(super) fn drop_empty(&mut self, chunk: u32) {
        let Entry { data, buffer } = self.metadata.entry(chunk);
        let Some(data) = data.some() else { return };
        if let Some(buffer) = buffer.some() {
            if self.metadata.weight(buffer) == 0 {
                self.zones.release(buffer);
                self.zones.unpin(data);
                self.metadata.set_entry(chunk, Entry { data, buffer: ZoneId::NONE });
            } else if self.metadata.weight(data) == 0 {
                self.zones.release(data);
                self.zones.set_use(buffer, Use::Data(chunk));
                self.metadata.set_entry(chunk, Entry { data: buffer, buffer: ZoneId::NONE });
                return;
            }
        }
        if self.metadata.weight(data) == 0 {
            self.zones.release(data);
            self.metadata.set_entry(chunk, Entry::UNMAPPED);
        }
    }

    /// Updates the state of a zone after a failed write.
    fn write_failed(&mut self, chunk: u32, zone: ZoneId, error: DeviceError) -> DeviceError {
        if !self.zones.class(zone).is_conventional() {
            let written = self.media.write_pointer(zone);
            self.zones.set_write_pointer(zone, written);
            self.record_lost(chunk, zone);
        }
        match self.media.state(zone) {
            Some(ZoneState::ReadOnly) => DeviceError::ReadOnly {
                what: format!("chunk {chunk}"),
                why: format!("its zone {} has become read-only", zone.0),
            },
            _ => error,
        }
    }
}
