//! The log's segments, and the two superblocks, on a device: of blocks, or of zones.
//!
//! | device | superblocks | segments |
//! |---|---|---|
//! | blocks | the first block, and the middle of the first segment's room | all that follows, each aligned to its size |
//! | zones | a log in the first two sequential zones: when one is full, the other is reset | every further sequential zone is one; nothing is written in place |

use super::format::{BLOCK, BlockBytes};
use crate::device::{Account, DeviceError, Lba, Medium, ZoneKind, ZoneState, ZonedDevice};
use crate::label::{Cause, Content, Label};
use crate::time::Time;

/// How superblocks are labelled.
const SUPERBLOCK: Label = Label { cause: Cause::Checkpoint, content: Content::Metadata };

/// A medium, cut into segments.
pub(super) struct Media {
    medium: Medium,
    segment_blocks: u32,
    segments: u32,
    /// The first sequential zone.
    first_zone: u32,
    /// Of zones: which of the two superblock zones is written, and how many blocks of it are.
    turn: u32,
    /// Whether what was written may still be on its way to an image.
    is_behind: bool,
}

/// How a volume is cut into segments.
impl Medium {
    /// Blocks of the segments that it can be cut into, if it prescribes that, and how many there are then of
    /// `segment_blocks` each.
    pub(super) fn cut(&self, segment_blocks: u32) -> (u32, u32) {
        match self {
            Medium::Blocks(device) => {
                let segments = (device.blocks() / u64::from(segment_blocks)).saturating_sub(1);
                (segment_blocks, segments.min(u64::from(u32::MAX - 1)) as u32)
            }
            Medium::Zones(device) => {
                let first = first_sequential(device.as_ref());
                let zones = device.shape().zones;
                let capacity = (first..zones).map(|zone| device.zone(zone).capacity).min().unwrap_or(0);
                (capacity.min(u64::from(u32::MAX)) as u32, zones.saturating_sub(first).saturating_sub(2))
            }
        }
    }

    /// True if it says how large a segment is.
    pub(super) fn prescribes_segments(&self) -> bool {
        matches!(self, Medium::Zones(_))
    }
}

pub(super) fn first_sequential(device: &dyn ZonedDevice) -> u32 {
    let zones = device.shape().zones;
    (0..zones).find(|zone| device.zone(*zone).kind == ZoneKind::Sequential).unwrap_or(zones)
}

impl Media {
    /// A medium in segments of so many blocks, as [`Medium::cut`] says.
    pub fn new(medium: Medium, segment_blocks: u32, segments: u32) -> Media {
        let first_zone = match &medium {
            Medium::Blocks(_) => 0,
            Medium::Zones(device) => first_sequential(device.as_ref()),
        };
        Media { medium, segment_blocks, segments, first_zone, turn: 0, is_behind: false }
    }

    /// From now on up to `bytes` of what is written may be on their way when they are answered, where the device can do
    /// that: what counts after a crash is what was flushed, and what the log's checksums vouch for.
    pub fn write_behind(&mut self, bytes: u64) {
        self.is_behind = match &mut self.medium {
            Medium::Blocks(device) => device.write_behind(bytes),
            Medium::Zones(_) => false,
        };
    }

    pub fn segment_blocks(&self) -> u32 {
        self.segment_blocks
    }

    pub fn segments(&self) -> u32 {
        self.segments
    }

    pub fn block_width(&self) -> usize {
        self.medium.block_width()
    }

    /// Whether what is read back are stamps, so that what is in memory must stay there.
    pub fn holds_stamps(&self) -> bool {
        self.block_width() != BLOCK
    }

    pub fn is_timed(&self) -> bool {
        self.medium.is_timed()
    }

    pub fn account(&self) -> Account {
        self.medium.account()
    }

    /// What it lies on.
    #[cfg(test)]
    pub fn into_medium(self) -> Medium {
        self.medium
    }

    /// Where a block of the log lies on the device.
    fn place(&self, address: u64) -> Lba {
        let (segment, block) = (address / u64::from(self.segment_blocks), address % u64::from(self.segment_blocks));
        match &self.medium {
            Medium::Blocks(_) => Lba((segment + 1) * u64::from(self.segment_blocks) + block),
            Medium::Zones(device) => {
                Lba((u64::from(self.first_zone) + 2 + segment) * device.shape().zone_blocks + block)
            }
        }
    }

    fn zone_of(&self, segment: u32) -> u32 {
        self.first_zone + 2 + segment
    }

    /// Reads blocks of one segment.
    pub fn read(&mut self, address: u64, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        debug_assert!(buffer.len().is_multiple_of(self.block_width()), "whole blocks are read");
        let place = self.place(address);
        match &mut self.medium {
            Medium::Blocks(device) => device.read(place, buffer, at),
            Medium::Zones(device) => device.read(place, buffer, at),
        }
    }

    /// Writes blocks of one segment, behind those that were written there before.
    pub fn write(&mut self, address: u64, buffer: &[u8], label: Label, at: Time) -> Result<Time, DeviceError> {
        let (blocks, segment_blocks) = ((buffer.len() / self.block_width()) as u64, u64::from(self.segment_blocks));
        assert!(
            address / segment_blocks < u64::from(self.segments)
                && address % segment_blocks + blocks <= segment_blocks
                && buffer.len().is_multiple_of(self.block_width()),
            "{blocks} blocks at {address} of the log are not within a segment"
        );
        let place = self.place(address);
        match &mut self.medium {
            Medium::Blocks(device) => device.write(place, buffer, label, at),
            Medium::Zones(device) => device.write(place, buffer, label, at),
        }
    }

    /// A segment will be written from its beginning.
    pub fn begin(&mut self, segment: u32, at: Time) -> Result<Time, DeviceError> {
        assert!(segment < self.segments, "segment {segment} is one of {}", self.segments);
        let zone = self.zone_of(segment);
        match &mut self.medium {
            Medium::Zones(device) if device.zone(zone).write_pointer > 0 => device.reset(zone, at),
            _ => Ok(at),
        }
    }

    /// Nothing more will be written to a segment until it begins anew.
    pub fn end(&mut self, segment: u32, at: Time) -> Result<Time, DeviceError> {
        assert!(segment < self.segments, "segment {segment} is one of {}", self.segments);
        let zone = self.zone_of(segment);
        match &mut self.medium {
            Medium::Zones(device) => match device.zone(zone).state {
                ZoneState::ImplicitlyOpen | ZoneState::ExplicitlyOpen | ZoneState::Closed => device.finish(zone, at),
                _ => Ok(at),
            },
            Medium::Blocks(_) => Ok(at),
        }
    }

    /// What a segment holds is no longer needed.
    pub fn discard(&mut self, segment: u32, at: Time) -> Result<Time, DeviceError> {
        assert!(segment < self.segments, "segment {segment} is one of {}", self.segments);
        let zone = self.zone_of(segment);
        let first = self.place(u64::from(segment) * u64::from(self.segment_blocks));
        match &mut self.medium {
            Medium::Blocks(device) => device.discard(first, u64::from(self.segment_blocks), at),
            Medium::Zones(device) => match device.zone(zone).write_pointer {
                0 => Ok(at),
                _ => device.reset(zone, at),
            },
        }
    }

    /// Whether a discard is better done when there is nothing else to do.
    pub fn discards_slowly(&self) -> bool {
        self.is_behind
    }

    /// Whether segments are zones.
    pub fn is_zoned(&self) -> bool {
        matches!(self.medium, Medium::Zones(_))
    }

    /// Whether a segment can be written on from a block of it.
    pub fn goes_on_at(&self, segment: u32, block: u32) -> bool {
        match &self.medium {
            Medium::Blocks(_) => true,
            Medium::Zones(device) => device.zone(self.zone_of(segment)).write_pointer == u64::from(block),
        }
    }

    /// Blocks of a segment that may hold anything: those of a zone up to its write pointer.
    pub fn written(&self, segment: u32) -> u32 {
        match &self.medium {
            Medium::Blocks(_) => self.segment_blocks,
            Medium::Zones(device) => {
                let zone = device.zone(self.zone_of(segment));
                match zone.state {
                    ZoneState::Full => self.segment_blocks,
                    _ => zone.write_pointer.min(self.segment_blocks.into()) as u32,
                }
            }
        }
    }

    /// Zones are emptied of what an earlier volume left.
    pub fn clear_zones(&mut self, at: Time) -> Result<Time, DeviceError> {
        match self.is_zoned() {
            true => (0..self.segments).try_fold(at, |at, segment| self.begin(segment, at)),
            false => Ok(at),
        }
    }

    pub fn flush(&mut self, at: Time) -> Result<Time, DeviceError> {
        match &mut self.medium {
            Medium::Blocks(device) => device.flush(at),
            Medium::Zones(device) => device.flush(at),
        }
    }

    /// Whatever the device does in the background.
    pub fn work(&mut self, at: Time) -> Result<Option<Time>, DeviceError> {
        match &mut self.medium {
            Medium::Blocks(device) => device.work(at),
            Medium::Zones(_) => Ok(None),
        }
    }

    /// Ends in good order.
    pub fn close(&mut self, at: Time) -> Result<Time, DeviceError> {
        match &mut self.medium {
            Medium::Blocks(device) => device.close(at),
            Medium::Zones(device) => device.flush(at),
        }
    }

    /// Writes the superblock with this sequence number.
    pub fn write_superblock(&mut self, sequence: u64, bytes: &BlockBytes, at: Time) -> Result<Time, DeviceError> {
        let width = self.block_width();
        let buffer = if width == BLOCK { &bytes[..] } else { &bytes[..width] };
        match &mut self.medium {
            Medium::Blocks(device) => {
                device.write(superblock_places(self.segment_blocks)[(sequence % 2) as usize], buffer, SUPERBLOCK, at)
            }
            Medium::Zones(device) => {
                let mut at = at;
                let zone = |turn: u32| self.first_zone + turn;
                let report = device.zone(zone(self.turn));
                if report.write_pointer >= report.capacity || report.state == ZoneState::Full {
                    self.turn = 1 - self.turn;
                    at = device.reset(zone(self.turn), at)?;
                }
                let first = u64::from(zone(self.turn)) * device.shape().zone_blocks;
                let pointer = device.zone(zone(self.turn)).write_pointer;
                device.write(Lba(first + pointer), buffer, SUPERBLOCK, at)
            }
        }
    }

    /// Empties the places of superblocks, before a volume is made: its own, and those in the same room where that of an
    /// older volume would be found first, should its own first one be damaged.
    pub fn clear_superblocks(&mut self, at: Time) -> Result<Time, DeviceError> {
        self.turn = 0;
        let width = self.block_width();
        match &mut self.medium {
            Medium::Blocks(device) => {
                let zeros = vec![0; width];
                let others =
                    (3..=17).map(|power| 1 << power).filter(|place| *place < u64::from(self.segment_blocks)).map(Lba);
                superblock_places(self.segment_blocks)
                    .into_iter()
                    .chain(others)
                    .try_fold(at, |at, place| device.write(place, &zeros, SUPERBLOCK, at))
            }
            Medium::Zones(device) => {
                (self.first_zone..self.first_zone + 2).try_fold(at, |at, zone| device.reset(zone, at))
            }
        }
    }

    /// Which of the two superblock zones goes on: the one in which `sequence` was found.
    pub fn go_on_in(&mut self, turn: u32) {
        assert!(turn < 2, "there are two places of superblocks");
        self.turn = turn;
    }
}

pub(super) fn superblock_places(segment_blocks: u32) -> [Lba; 2] {
    [Lba(0), Lba(u64::from(segment_blocks / 2))]
}
