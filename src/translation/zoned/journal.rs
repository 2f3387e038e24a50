//! Zones reserved for the file system's journal (zns-journal-separation, section 4).
//!
//! A write with the journal's label goes to the journal zone of its chunk, which is conventional and never reclaimed;
//! other writes never go there. The paper flags such writes in a patched kernel; here the label comes from the
//! workload, or from the file system's own metadata, which also locates the journal
//! ([`Abilities::set_journal`](crate::device::Abilities::set_journal)).
//!
//! | the chunk has | chunk is all journal | chunk is journal in part |
//! |---|---|---|
//! | no zone | takes a zone | takes a zone |
//! | a conventional zone | makes it the journal zone | takes a second zone; both stay |
//! | a sequential zone | takes a second zone | takes a second zone |
//! | a sequential zone and a buffer | makes the buffer the journal zone | merges both, takes a second zone |
//!
//! Two zones are merged in a conventional one. Otherwise no journal block is copied: old blocks stay where they are
//! until they are overwritten, and a zone without valid blocks is freed.
//!
//! The media have no mark for these zones: a journal zone on its own is a chunk's data zone, one with a sequential zone
//! is its buffer, and the stock kernel reads and writes both as such. Only two conventional zones in one chunk must not
//! reach the stock kernel: reclaim of Linux 6.1 treats such a data zone as one without a buffer, warns as it unmaps it
//! (`dmz_unmap_zone`), and dereferences a null pointer when it comes to the buffer (`dmz_get_zone_for_reclaim`). This
//! state exists while the volume is open, or after a crash; [`close`](crate::device::BlockDevice::close), opening
//! without `journal-zone`, and fsck merge the two.

use super::Volume;
use super::media::ZoneId;
use super::metadata::Entry;
use super::place::Place;
use super::zones::Use;
use crate::device::{DeviceError, Lba};
use crate::time::Time;
use std::ops::Range;

/// The part of a chunk that is journal, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Share {
    /// No block, or unknown.
    #[default]
    None,
    /// Some blocks.
    Part,
    /// All blocks.
    Whole,
}

/// The journal's location.
#[derive(Debug)]
pub(super) struct Journals {
    shares: Vec<Share>,
    /// True after a full volume had to release a journal zone: no further one is taken beside a data zone.
    is_crowded: bool,
}

impl Journals {
    pub fn new(chunks: usize) -> Journals {
        Journals { shares: vec![Share::None; chunks], is_crowded: false }
    }
}

impl Volume {
    /// The number of conventional zones that journals may still pin: two are always left.
    fn journal_zones_left(&self) -> u32 {
        let total = self.zones.total(self.zones.first_class()) as u32;
        let most = ((f64::from(total) * self.settings.journal_share) as u32).min(total.saturating_sub(2));
        most.saturating_sub(self.zones.pinned_conventional())
    }

    /// The journal zone of a chunk; `None` if journals have taken their maximum.
    pub(super) fn zone_of_journal(&mut self, chunk: u32, mut at: Time) -> Result<Option<Place>, DeviceError> {
        loop {
            let Entry { data, buffer } = self.metadata.entry(chunk);
            for zone in [data, buffer].into_iter().filter_map(ZoneId::some) {
                if self.zones.is_journal(zone) {
                    return Ok(Some((zone, at)));
                }
            }
            if self.adopt(chunk) {
                continue;
            }
            // The data zone beside the journal zone is pinned, too, if it is or becomes conventional.
            let has_data_beside =
                data.some().is_some_and(|data| self.zones.class(data).is_conventional() || buffer.some().is_some());
            let is_crowded = self.journals.is_crowded && data.some().is_some();
            if is_crowded || self.journal_zones_left() < 1 + u32::from(has_data_beside) {
                return Ok(None);
            }
            if buffer.some().is_some() {
                at = self.merge_zones(chunk, at)?;
                continue;
            }
            let use_of = if data.some().is_some() { Use::Buffer(chunk) } else { Use::Data(chunk) };
            let Some(zone) = self.take_conventional(use_of, &mut at)? else { continue };
            self.zones.pin(zone, true);
            self.events.journal_zones_taken += 1;
            let entry = match data.some() {
                None => Entry { data: zone, buffer: ZoneId::NONE },
                Some(data) => {
                    if self.zones.class(data).is_conventional() {
                        self.zones.pin(data, false);
                    }
                    Entry { data, buffer: zone }
                }
            };
            self.metadata.set_entry(chunk, entry);
            return Ok(Some((zone, at)));
        }
    }

    /// Makes a chunk's conventional zone its journal zone if the chunk is all journal; true if so.
    fn adopt(&mut self, chunk: u32) -> bool {
        let Entry { data, buffer } = self.metadata.entry(chunk);
        let zone = buffer.some().or(data.some()).filter(|zone| self.zones.class(*zone).is_conventional());
        let Some(zone) = zone else { return false };
        if self.journals.shares[chunk as usize] != Share::Whole
            || self.zones.is_journal(zone)
            || self.journal_zones_left() == 0
        {
            return false;
        }
        self.zones.pin(zone, true);
        self.events.journal_zones_taken += 1;
        true
    }

    /// Sets the journal's location, replacing the previous one.
    pub(super) fn set_journals(&mut self, journal: &[Range<Lba>]) -> Result<(), DeviceError> {
        if !self.settings.journal_zone {
            return Ok(());
        }
        let blocks = u64::from(self.media.zone_blocks);
        let mut covered = vec![0u64; self.journals.shares.len()];
        for range in journal {
            let end = range.end.0.min(covered.len() as u64 * blocks);
            let mut next = range.start.0.min(end);
            while next < end {
                let chunk_end = (next / blocks + 1) * blocks;
                covered[(next / blocks) as usize] += chunk_end.min(end) - next;
                next = chunk_end;
            }
        }
        self.worker.is_done_idling = false;
        let mut at = self.worker.last_access;
        for (chunk, covered) in covered.into_iter().enumerate() {
            let share = match covered {
                0 => Share::None,
                covered if covered >= blocks => Share::Whole,
                _ => Share::Part,
            };
            let chunk = chunk as u32;
            let before = std::mem::replace(&mut self.journals.shares[chunk as usize], share);
            match share {
                Share::None => at = self.detach(chunk, at)?,
                Share::Whole if before != share => {
                    at = self.interrupt(chunk, at)?;
                    self.adopt(chunk);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Makes the zones of a chunk without a journal ordinary ones.
    fn detach(&mut self, chunk: u32, at: Time) -> Result<Time, DeviceError> {
        let Entry { data, buffer } = self.metadata.entry(chunk);
        if buffer.some().is_some() && self.zones.class(data).is_conventional() {
            // Reclaim must not see the two before they are merged.
            return self.merge_into_data(chunk, at);
        }
        for zone in [data, buffer].into_iter().filter_map(ZoneId::some) {
            self.zones.unpin(zone);
        }
        Ok(at)
    }

    /// Makes a journal zone beside a data zone an ordinary buffer, or merges it with the data zone, since nothing else
    /// can be freed. False if there is none.
    pub(super) fn release_journal_zone(&mut self, at: &mut Time) -> Result<bool, DeviceError> {
        for chunk in 0..self.metadata.shape.chunks {
            let Entry { buffer, .. } = self.metadata.entry(chunk);
            if buffer.some().is_some_and(|buffer| self.zones.is_journal(buffer)) {
                self.journals.is_crowded = true;
                *at = self.detach(chunk, *at)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Merges the pairs of conventional zones that only this program understands.
    pub(super) fn merge_journal_zones(&mut self, mut at: Time) -> Result<Time, DeviceError> {
        if self.broken.is_some() {
            return Ok(at);
        }
        for chunk in 0..self.metadata.shape.chunks {
            let Entry { data, buffer } = self.metadata.entry(chunk);
            if buffer.some().is_some() && self.zones.class(data).is_conventional() {
                at = self.merge_into_data(chunk, at)?;
            }
        }
        Ok(at)
    }

    /// Restores the state at opening: a conventional zone beside a conventional one is a journal zone.
    pub(super) fn recover_journals(&mut self) -> Result<(), DeviceError> {
        if !self.settings.journal_zone {
            self.merge_journal_zones(Time::ZERO)?;
            return Ok(());
        }
        for chunk in 0..self.metadata.shape.chunks {
            let Entry { data, buffer } = self.metadata.entry(chunk);
            if let Some(buffer) = buffer.some()
                && self.zones.class(data).is_conventional()
            {
                self.zones.pin(data, false);
                self.zones.pin(buffer, true);
            }
        }
        Ok(())
    }
}
