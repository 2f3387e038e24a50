//! Frees a conventional zone for a write that waits; fails only if no zone can be freed.
//!
//! Reclaim can always free a zone, by counting. A zone without metadata is a data zone, a buffer or free. If there is a
//! buffer, its chunk can be merged without a further zone: into the sequential zone, or into the buffer, which frees
//! the sequential zone as the destination of a move. Without a buffer, all conventional zones are data zones, and
//! moving one needs a free zone. There is one if the volume has fewer chunks than such zones; mkfs ensures that
//! ([`set_shape`](super::format)). A volume made by another program with fewer reserved zones than zoned devices, or
//! with worn-out zones, may lack it.

use super::Volume;
use super::lost::list;
use super::media::ZoneId;
use super::metadata::Entry;
use crate::device::DeviceError;
use crate::time::Time;

impl Volume {
    /// Frees a conventional zone for a write that waits for one at `at`; returns the time.
    ///
    /// Fails if no zone can be freed, after any wait.
    pub(super) fn make_room(&mut self, mut at: Time) -> Result<Time, DeviceError> {
        if self.zones.has_released() {
            return self.commit(at);
        }
        self.events.waits += 1;
        let mut has_retried = false;
        while self.zones.free(self.zones.first_class()) == 0 {
            if self.is_reclaiming() {
                // The copier does not pause while a write waits.
                at = at.max(self.copy_step(at)?);
            } else if let Some(victim) = self.next_victim(true, at) {
                // Without a destination, the next victim is another.
                at = at.max(victim.idle_at);
                self.begin(victim.chunk, at)?;
            } else if self.release_journal_zone(&mut at)? {
            } else if !has_retried && self.retry_failed() {
                has_retried = true;
            } else {
                return Err(self.is_full());
            }
            if self.zones.has_released() && !self.is_reclaiming() {
                at = self.commit(at)?;
            }
            at = at.max(self.reclaim_done());
        }
        Ok(at)
    }

    /// Unpins the chunks whose reclaim failed: the failure may have been temporary. False if there are none.
    fn retry_failed(&mut self) -> bool {
        let failed = self.take_failed();
        let has_any = !failed.is_empty();
        for chunk in failed {
            let Entry { data, buffer } = self.metadata.entry(chunk);
            let zones = [data, buffer].into_iter().filter_map(ZoneId::some);
            if !zones.clone().any(|zone| self.zones.is_journal(zone)) {
                zones.for_each(|zone| self.zones.unpin(zone));
            }
        }
        has_any
    }

    /// The error that explains why no conventional zone can be freed.
    fn is_full(&self) -> DeviceError {
        if let Some((chunk, why)) = self.last_failed() {
            let reason = format!("no conventional zone is free, and the reclaim of chunk {chunk} failed: {why}");
            return DeviceError::Station { station: "dm-zoned", reason };
        }
        let lost = self.lost.iter().filter(|zone| self.has_lost(**zone)).count();
        if lost > 0 {
            let reason = format!(
                "no conventional zone is free, and reclaim skips {lost} chunks with lost blocks: 'flashpath fsck' gives the blocks up"
            );
            return DeviceError::Station { station: "dm-zoned", reason };
        }
        let worn_out = self.worn_out_zones();
        if worn_out.is_empty() {
            let why = format!(
                "every zone holds data, and none is free for reclaim: it has {} reserved zones and needs {}; copy it to a new volume",
                self.sets.superblock.reserved_zones,
                self.media.first_zones_beside().len() + 1
            );
            return DeviceError::Full { what: "the volume".to_string(), why };
        }
        let why = format!(
            "{} of its {} zones are out of use ({}), and no other can be freed{}; copy it to a volume on a new zoned device",
            worn_out.len(),
            self.media.whole_zones(),
            list(&worn_out),
            self.cause_of_wear()
        );
        DeviceError::WornOut { what: "the zoned device".to_string(), why }
    }

    /// The part of the message that names a working set too large for the conventional zones, if reclaim wrote most of what
    /// wore out the zones.
    fn cause_of_wear(&self) -> String {
        let (received, sent) = (self.received.total(), self.media.sent().total());
        match sent / received.max(1) {
            0..=9 => String::new(),
            times => format!(
                ": for each block that it received, reclaim made it write {times}, as it copies a zone for each write to a chunk \
                 that has no conventional zone; a larger conventional device or smaller zones avoid that"
            ),
        }
    }
}
