//! Lost blocks: beyond a write pointer, or in worn-out zones.
//!
//! A block that is valid by the bitmap but lies beyond its zone's write pointer is lost: the zoned device is an older
//! copy, or has lost durable data. Such a block stays valid and cannot be read until it is overwritten, discarded, or
//! given up by fsck: opening the volume must not turn it into zeros and call the volume clean. Reclaim skips its chunk.

use super::media::ZoneId;
use super::{Volume, ZoneClass};
use crate::device::{DeviceError, ZoneState};
use crate::translation::zoned::zones::Use;

/// The maximum number of zones listed in a message.
const MOST_NAMED: usize = 4;

/// The kinds of warnings.
pub(super) const LOST_BLOCKS: &str = "lost-blocks";
pub(super) const OUT_OF_USE: &str = "zone-out-of-use";
pub(super) const RECLAIM_FAILED: &str = "reclaim-failed";
pub(super) const METADATA: &str = "metadata-recovered";
/// A super block was damaged, and its set is restored from the other.
pub(super) const SUPER_BLOCK: &str = "super-block-recovered";
pub(super) const COMMIT_FAILED: &str = "commit-failed";

/// Zones by number and state; the first ones of many.
pub(super) fn list(zones: &[(ZoneId, &'static str)]) -> String {
    let mut named: Vec<String> =
        zones.iter().take(MOST_NAMED).map(|(zone, state)| format!("zone {} is {state}", zone.0)).collect();
    if zones.len() > MOST_NAMED {
        named.push(format!("{} more", zones.len() - MOST_NAMED));
    }
    named.join(", ")
}

impl Volume {
    /// The number of valid blocks beyond the write pointer of a zone.
    pub(super) fn lost_blocks(&self, zone: ZoneId) -> u32 {
        let blocks = self.media.zone_blocks;
        let mut block = self.zones.write_pointer(zone);
        let mut lost = 0;
        while block < blocks {
            let (is_valid, end) = self.metadata.run(zone, block, blocks);
            lost += if is_valid { end - block } else { 0 };
            block = end;
        }
        lost
    }

    /// Finds the zones with lost blocks, and warns of them.
    pub(super) fn find_lost(&mut self) {
        let zones = (0..self.media.zones()).map(ZoneId);
        let data = zones.filter(|zone| {
            self.zones.class(*zone) == ZoneClass::Sequential && matches!(self.zones.use_of(*zone), Use::Data(_))
        });
        let lost: Vec<(ZoneId, u32)> =
            data.map(|zone| (zone, self.lost_blocks(zone))).filter(|(_, lost)| *lost > 0).collect();
        if lost.is_empty() {
            return;
        }
        let blocks: u32 = lost.iter().map(|(_, lost)| lost).sum();
        self.warnings.add(
            LOST_BLOCKS,
            format!(
                "the device has lost {blocks} blocks, which should lie beyond the write pointers of {} zones; reading them fails; is it an older copy? 'flashpath fsck' gives them up",
                lost.len()
            ),
        );
        self.lost = lost.into_iter().map(|(zone, _)| zone).collect();
    }

    /// Records the lost blocks of a zone whose write pointer went back, or stayed behind.
    pub(super) fn record_lost(&mut self, chunk: u32, zone: ZoneId) {
        let lost = self.lost_blocks(zone);
        if lost > 0 {
            self.lost.insert(zone);
            let what =
                format!("the device has lost {lost} blocks of chunk {chunk}, in zone {}; reading them fails", zone.0);
            self.warnings.add(LOST_BLOCKS, what);
        }
    }

    /// True if blocks of the zone are lost and not overwritten.
    pub(super) fn has_lost(&self, zone: ZoneId) -> bool {
        self.lost.contains(&zone) && self.lost_blocks(zone) > 0
    }

    /// Fails if valid blocks up to `end` lie beyond the write pointer of the zone.
    #[inline]
    pub(super) fn check_not_lost(&self, zone: ZoneId, end: u32) -> Result<(), DeviceError> {
        if self.lost.is_empty() || !self.lost.contains(&zone) || end <= self.zones.write_pointer(zone) {
            return Ok(());
        }
        let (zone, written) = (zone.0, self.zones.write_pointer(zone));
        let reason = format!("the device has lost the blocks after block {written} of zone {zone}");
        Err(DeviceError::Station { station: "dm-zoned", reason })
    }

    /// Invalidates all lost blocks: they read as zeros.
    pub(super) fn discard_lost(&mut self) {
        for zone in std::mem::take(&mut self.lost) {
            let Use::Data(chunk) = self.zones.use_of(zone) else { continue };
            self.metadata.invalidate(zone, self.zones.write_pointer(zone), self.media.zone_blocks);
            self.drop_empty(chunk);
        }
    }

    /// The zones that cannot be written any more, and the reasons.
    pub(super) fn worn_out_zones(&self) -> Vec<(ZoneId, &'static str)> {
        let zones = (0..self.media.zones()).map(ZoneId);
        let out_of_use = zones.filter_map(|zone| match self.media.state(zone) {
            Some(state @ (ZoneState::ReadOnly | ZoneState::Offline)) => Some((zone, state.name())),
            _ if self.media.class(zone) == ZoneClass::Unusable => None,
            _ => (self.zones.use_of(zone) == Use::Unusable).then_some((zone, "not resettable")),
        });
        out_of_use.collect()
    }

    /// Warns of the zones that were worn out before the volume was opened.
    pub(super) fn warn_of_worn_out_zones(&mut self) {
        let worn_out = self.worn_out_zones();
        if !worn_out.is_empty() {
            let what = format!("{} zones have worn out, and are out of use: {}", worn_out.len(), list(&worn_out));
            self.warnings.add(OUT_OF_USE, what);
        }
    }

    /// Takes a zone out of use.
    pub(super) fn retire(&mut self, zone: ZoneId, why: &str) {
        self.warnings.add(OUT_OF_USE, format!("zone {} {why}, and is out of use", zone.0));
        self.zones.retire(zone);
    }
}
