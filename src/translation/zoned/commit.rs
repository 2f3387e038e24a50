//! Commits changed metadata to both sets.
//!
//! 1. Write the changed blocks to the secondary set; flush all devices, so that the data that they map is durable, too.
//! 2. Write its super block with the next generation, and flush: from here on this set is the newer one.
//! 3. Do the same for the primary set. Both are equal again.
//! 4. Free the released zones: reset the sequential ones.
//!
//! A power cut in step 1 leaves the primary set valid; in step 2 either; in step 3 the newer set. After a failure the
//! state of the media is unknown: the volume is read-only until it is opened again, which recovers it.

use super::lost::COMMIT_FAILED;
use super::media::{Media, ZoneId};
use super::{Sets, Volume};
use crate::device::{DeviceError, ZoneState};
use crate::label::{Cause, Content, Label};
use crate::time::Time;
use crate::units::BLOCK_BYTES;

/// Blocks of metadata written with one call.
const BATCH: u32 = 64;

const LABEL: Label = Label::first(Cause::Mapping, Content::Mapping);

impl Sets {
    /// The zone and block of block `block` of a set.
    pub fn place(&self, media: &Media, set: usize, block: u32) -> (ZoneId, u32) {
        (ZoneId(self.first_zones[set] + block / media.zone_blocks), block % media.zone_blocks)
    }

    /// Writes the super block of a set.
    pub fn write_super(&self, media: &mut Media, set: usize, generation: u64, at: Time) -> Result<Time, DeviceError> {
        let place = u64::from(self.first_zones[set]) * u64::from(media.zone_blocks);
        let superblock = super::SuperBlock { generation, place, ..self.superblock.clone() };
        let mut bytes = superblock.to_bytes();
        bytes.truncate(media.width);
        media.write(ZoneId(self.first_zones[set]), 0, &bytes, LABEL, at)
    }
}

impl Volume {
    /// Makes everything durable that was done before.
    pub(super) fn commit(&mut self, at: Time) -> Result<Time, DeviceError> {
        self.last_commit = self.last_commit.max(at);
        if !self.metadata.has_dirty() {
            let at = self.media.flush(at)?;
            // Zones that were mapped and released since the last commit are in no set.
            return self.free_released(at);
        }
        self.check_writable()?;
        let dirty = self.metadata.take_dirty();
        match self.commit_blocks(&dirty, at) {
            Ok(at) => {
                self.events.commits += 1;
                self.free_released(at)
            }
            Err(error) => {
                self.metadata.give_back_dirty(&dirty);
                self.warnings.add(COMMIT_FAILED, format!("the volume can only be read: a commit failed: {error}"));
                self.broken = Some(format!("a commit of its metadata failed ({error}); open it again to recover it"));
                Err(error)
            }
        }
    }

    fn commit_blocks(&mut self, dirty: &[u32], at: Time) -> Result<Time, DeviceError> {
        let generation = self.sets.superblock.generation + 1;
        let mut at = at;
        for set in [1 - self.sets.primary, self.sets.primary] {
            at = self.write_set(set, dirty, at)?;
            at = self.media.flush(at)?;
            at = self.sets.write_super(&mut self.media, set, generation, at)?;
            at = self.media.flush(at)?;
        }
        self.sets.superblock.generation = generation;
        self.sets.primary = 0;
        Ok(at)
    }

    /// Writes blocks of a set except its super block, neighbours with one call.
    fn write_set(&mut self, set: usize, blocks: &[u32], mut at: Time) -> Result<Time, DeviceError> {
        let width = self.media.width;
        let mut bytes = vec![0; BATCH as usize * BLOCK_BYTES as usize];
        let mut rest = blocks;
        while let Some(&first) = rest.first() {
            let (zone, within) = self.sets.place(&self.media, set, first);
            let most = BATCH.min(self.media.zone_blocks - within) as usize;
            let count = rest.iter().take(most).zip(first..).take_while(|(block, next)| **block == *next).count();
            for (block, bytes) in rest[..count].iter().zip(bytes.chunks_exact_mut(BLOCK_BYTES as usize)) {
                self.metadata.to_bytes(*block, bytes);
            }
            at = self.media.write(zone, within, &bytes[..count * width], LABEL, at)?;
            rest = &rest[count..];
        }
        Ok(at)
    }

    /// Makes the secondary set equal to the primary one before anything else is written: a power cut may have torn its
    /// last commit, or it may be damaged. Then rewrites the primary set, too: its unused blocks may be damaged.
    pub(super) fn make_sets_equal(&mut self, mut at: Time) -> Result<Time, DeviceError> {
        let all: Vec<u32> = (1..self.metadata.shape.set_blocks() as u32).collect();
        let generation = self.sets.superblock.generation;
        for set in [1 - self.sets.primary, self.sets.primary] {
            at = self.write_set(set, &all, at)?;
            at = self.media.flush(at)?;
            at = self.sets.write_super(&mut self.media, set, generation, at)?;
            at = self.media.flush(at)?;
        }
        self.sets.primary = 0;
        Ok(at)
    }

    /// Frees the zones that no set on the media maps.
    fn free_released(&mut self, mut at: Time) -> Result<Time, DeviceError> {
        for zone in self.zones.take_released() {
            at = at.max(self.free_zone(zone, at)?);
        }
        Ok(at)
    }

    /// Frees a zone that no set maps. A zone that cannot be written or reset is retired.
    pub(super) fn free_zone(&mut self, zone: ZoneId, at: Time) -> Result<Time, DeviceError> {
        let mut done = at;
        if !self.media.is_dead(zone) && !self.zones.class(zone).is_conventional() && self.zones.write_pointer(zone) > 0
        {
            match self.media.reset(zone, at) {
                Ok(at) => done = at,
                Err(error) => {
                    self.retire(zone, &format!("cannot be reset ({error})"));
                    return Ok(at);
                }
            }
            self.events.resets += 1;
            self.zones.set_write_pointer(zone, 0);
        }
        // The reset may have been the zone's last erase.
        if let Some(state @ (ZoneState::ReadOnly | ZoneState::Offline)) = self.media.state(zone) {
            self.retire(zone, &format!("has become {}", state.name()));
            return Ok(done);
        }
        self.zones.put_free(zone);
        Ok(done)
    }
}
