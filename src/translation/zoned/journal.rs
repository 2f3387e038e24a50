//! Zones that hold the file system's journal and nothing else (zns-journal-separation, section 4).
//!
//! A write that carries the journal's label goes to the journal's zone of its chunk, which is conventional and never
//! reclaimed; no other write enters it. The paper flags such writes in a patched kernel; here the label comes from the
//! workload, or from reading the file system's own metadata, which also tells the journal's place
//! ([`Abilities::journal_is_at`](crate::device::Abilities::journal_is_at)).
//!
//! | the chunk has | and is all journal | and is journal in part |
//! |---|---|---|
//! | nothing | a zone is taken | a zone is taken |
//! | a conventional zone | it becomes the journal's | a zone is taken beside it; both stay |
//! | a sequential zone | a zone is taken beside it | a zone is taken beside it |
//! | a sequential zone and a buffer | the buffer becomes the journal's | both are joined, one is taken beside them |
//!
//! Two are joined in a conventional zone. Otherwise nothing of the journal is copied for it: old blocks stay where they
//! are until they are written anew, and a zone whose blocks have all gone is freed.
//!
//! On the media nothing marks these zones: a journal's zone alone is a chunk's data zone, one beside a sequential zone
//! is its buffer, and the stock kernel reads and writes both as such. Only a conventional zone beside a conventional
//! zone is a state that the stock kernel must not get: reclaim of Linux 6.1 takes such a data zone for one without a
//! buffer, warns as it unmaps it (`dmz_unmap_zone`), and ends in a null pointer when it comes to the buffer
//! (`dmz_get_zone_for_reclaim`). It exists while the volume is open, or after a crash;
//! [`close`](crate::device::BlockDevice::close), opening without `journal-zone`, and fsck join the two.

use super::Volume;
use super::media::ZoneId;
use super::metadata::Entry;
use super::place::Place;
use super::zones::Use;
use crate::device::{DeviceError, Lba};
use crate::time::Time;
use std::ops::Range;

/// What a chunk has of the file system's journal, as far as its place is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Share {
    /// Nothing, or nothing is known.
    #[default]
    None,
    /// Some of its blocks.
    Part,
    /// All of its blocks.
    Whole,
}

/// Where journals are.
#[derive(Debug)]
pub(super) struct Journals {
    shares: Vec<Share>,
    /// The volume was so full that a journal's zone had to be given up: none is taken beside a data zone any more.
    is_crowded: bool,
}

impl Journals {
    pub fn new(chunks: usize) -> Journals {
        Journals { shares: vec![Share::None; chunks], is_crowded: false }
    }
}

impl Volume {
    /// How many conventional zones journals may keep from reclaim: two are always left.
    fn journal_zones_left(&self) -> u32 {
        let total = self.zones.total(self.zones.first_class()) as u32;
        let most = ((f64::from(total) * self.settings.journal_share) as u32).min(total.saturating_sub(2));
        most.saturating_sub(self.zones.pinned_conventional())
    }

    /// The journal's zone of a chunk; none if journals have taken all that they may.
    pub(super) fn place_of_journal(&mut self, chunk: u32, mut at: Time) -> Result<Option<Place>, DeviceError> {
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
            // The data zone beside the journal's is kept, too, if it is conventional or becomes so.
            let has_data_beside =
                data.some().is_some_and(|data| self.zones.class(data).is_conventional() || buffer.some().is_some());
            let is_crowded = self.journals.is_crowded && data.some().is_some();
            if is_crowded || self.journal_zones_left() < 1 + u32::from(has_data_beside) {
                return Ok(None);
            }
            if buffer.some().is_some() {
                at = self.gather(chunk, at)?;
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

    /// Makes a conventional zone that a chunk has the journal's own, if the chunk is all journal, and answers whether.
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

    /// The journal is in these blocks from now on, and nowhere else.
    pub(super) fn move_journals(&mut self, journal: &[Range<Lba>]) -> Result<(), DeviceError> {
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

    /// A chunk has no journal any more: its zones are like others.
    fn detach(&mut self, chunk: u32, at: Time) -> Result<Time, DeviceError> {
        let Entry { data, buffer } = self.metadata.entry(chunk);
        if buffer.some().is_some() && self.zones.class(data).is_conventional() {
            // Reclaim must not see the two before they are one.
            return self.merge_into_data(chunk, at);
        }
        for zone in [data, buffer].into_iter().filter_map(ZoneId::some) {
            self.zones.unpin(zone);
        }
        Ok(at)
    }

    /// Nothing else can be freed: a journal's zone beside a data zone becomes an ordinary buffer, or is joined with it.
    /// Answers whether there was one.
    pub(super) fn surrender_journal(&mut self, at: &mut Time) -> Result<bool, DeviceError> {
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

    /// Joins what only this program understands: a conventional zone beside a conventional zone.
    pub(super) fn leave_journals(&mut self, mut at: Time) -> Result<Time, DeviceError> {
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

    /// What a volume is that was just opened: a conventional zone beside a conventional one is a journal's.
    pub(super) fn recover_journals(&mut self) -> Result<(), DeviceError> {
        if !self.settings.journal_zone {
            self.leave_journals(Time::ZERO)?;
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
