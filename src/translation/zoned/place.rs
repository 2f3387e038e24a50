//! Where a write goes.

use super::media::ZoneId;
use super::metadata::Entry;
use super::zones::Use;
use super::{Label, Volume};
use crate::device::{DeviceError, ZoneState};
use crate::label::Content;
use crate::time::Time;

/// Where a part of a write goes: the zone, and when that is settled.
pub(super) type Place = (ZoneId, Time);

impl Volume {
    /// A chunk is asked for: its zones are the most recently used.
    #[inline]
    pub(super) fn see(&mut self, chunk: u32, at: Time) {
        self.worker.last_access = at;
        self.worker.is_done_idling = false;
        let Entry { data, buffer } = self.metadata.entry(chunk);
        for zone in [data, buffer].into_iter().filter_map(ZoneId::some) {
            self.zones.use_now(zone);
        }
    }

    /// A chunk is to be changed: a reclaim of it is interrupted.
    #[inline]
    pub(super) fn enter(&mut self, chunk: u32, at: Time) -> Result<Time, DeviceError> {
        let at = self.interrupt(chunk, at)?;
        self.see(chunk, at);
        Ok(at)
    }

    pub(super) fn write_part(
        &mut self,
        (chunk, from, count): (u32, u32, u32),
        bytes: &[u8],
        label: Label,
        at: Time,
    ) -> Result<Time, DeviceError> {
        let at = self.enter(chunk, at)?;
        let end = from + count;
        let (zone, at) = self.place_of(chunk, from, label.content, at)?;
        let done = match self.media.write(zone, from, bytes, label, at) {
            Ok(done) => done,
            Err(error) => return Err(self.write_failed(chunk, zone, error)),
        };
        self.note_content(chunk, from, end, label.content);
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

    /// Finds the zone that takes a write, and maps one if there is none.
    #[inline]
    fn place_of(&mut self, chunk: u32, from: u32, content: Content, at: Time) -> Result<Place, DeviceError> {
        if content == Content::Journal && self.settings.journal_zone {
            if let Some(place) = self.place_of_journal(chunk, at)? {
                return Ok(place);
            }
            self.events.journal_blocks_elsewhere += 1;
        }
        self.place_of_data(chunk, from, at)
    }

    fn place_of_data(&mut self, chunk: u32, from: u32, mut at: Time) -> Result<Place, DeviceError> {
        loop {
            let Entry { data, buffer } = self.metadata.entry(chunk);
            let Some(data) = data.some() else {
                let Some(zone) = self.take_conventional(Use::Data(chunk), &mut at)? else { continue };
                self.metadata.set_entry(chunk, Entry { data: zone, buffer: ZoneId::NONE });
                return Ok((zone, at));
            };
            if self.zones.is_journal(data) {
                // A journal's zone has a chunk alone, and other blocks of it are written: they get a zone beside it.
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
                Some(buffer) if self.zones.is_journal(buffer) => at = self.gather(chunk, at)?,
                Some(buffer) => return Ok((buffer, at)),
                None => {
                    let Some(zone) = self.take_conventional(Use::Buffer(chunk), &mut at)? else { continue };
                    self.metadata.set_entry(chunk, Entry { data, buffer: zone });
                    return Ok((zone, at));
                }
            }
        }
    }

    /// Takes a free conventional zone for a chunk. Answers none if it had to wait for one: reclaim may have changed what
    /// the chunk needs.
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

    /// Gives back the zones of a chunk that hold nothing any more.
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

    /// A zone did not take a write: what is known of it is asked for again.
    fn write_failed(&mut self, chunk: u32, zone: ZoneId, error: DeviceError) -> DeviceError {
        if !self.zones.class(zone).is_conventional() {
            let written = self.media.write_pointer(zone);
            self.zones.set_write_pointer(zone, written);
            self.note_lost(chunk, zone);
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
