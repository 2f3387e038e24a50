//! A zoned device as a backend of the engine, for workloads that write its zones in order: fio jobs with `zonemode=zbd`.

use super::answered::{Answered, answers_with_times};
use super::device::stamp_of;
use super::{Backend, HostWrite};
use crate::device::{Account, DeviceError, Lba, ZonedDevice, ZonedShape, fill_with_stamp};
use crate::label::Label;
use crate::run::accounts::Stored;
use crate::run::blocks::{AT_ONCE, covered, cut, parts, touched};
use crate::run::error::{InputFault, RunError};
use crate::time::Time;
use crate::units::{BLOCK_BYTES, format_size};
use std::ops::Range;

/// A zoned device as a backend. A discard resets the zones that it covers.
pub struct ZonesBackend {
    device: Box<dyn ZonedDevice>,
    shape: ZonedShape,
    width: usize,
    is_timed: bool,
    /// Holds the largest part of a request.
    buffer: Vec<u8>,
    answered: Answered,
}

impl ZonesBackend {
    pub fn new(device: Box<dyn ZonedDevice>) -> ZonesBackend {
        let (shape, width, is_timed) = (device.shape(), device.block_width(), device.is_timed());
        let buffer = vec![0; AT_ONCE as usize * width];
        ZonesBackend { device, shape, width, is_timed, buffer, answered: Answered::default() }
    }

    /// The parts of a range of blocks, (first block, number), none of which crosses the end of a zone.
    fn parts_in_zones(&self, blocks: Range<u64>) -> impl Iterator<Item = (u64, u64)> + use<> {
        let zone_blocks = self.shape.zone_blocks;
        let zones = blocks.start / zone_blocks..blocks.end.div_ceil(zone_blocks);
        zones.flat_map(move |zone| {
            let of_zone = zone * zone_blocks..(zone + 1) * zone_blocks;
            parts(blocks.start.max(of_zone.start)..blocks.end.min(of_zone.end))
        })
    }

    /// What a workload for such zones is like.
    fn refused(&self, what: String) -> RunError {
        let (zone, capacity) = (self.shape.zone_blocks * BLOCK_BYTES, self.device.zone(self.shape.zones - 1).capacity);
        let help = format!(
            "zones are written in order: run a fio job with zonemode=zbd, zonesize={}, zonecapacity={} and max_open_zones={}, or \
             put dm-zoned or sfs on top of them",
            format_size(zone),
            format_size(capacity * BLOCK_BYTES),
            self.shape.max_open
        );
        InputFault::Refused { what, help: Some(help) }.into()
    }
}

impl Backend for ZonesBackend {
    answers_with_times!();

    fn is_timed(&self) -> bool {
        self.is_timed
    }

    fn unit_bytes(&self) -> u64 {
        BLOCK_BYTES
    }

    fn exported_bytes(&self) -> u64 {
        u64::from(self.shape.zones) * self.shape.zone_blocks * BLOCK_BYTES
    }

    fn is_stored(&self, offset: u64) -> bool {
        let block = offset / BLOCK_BYTES;
        let zone = (block / self.shape.zone_blocks) as u32;
        block % self.shape.zone_blocks < self.device.zone(zone).capacity
    }

    fn write(&mut self, range: (u64, u64), write: HostWrite, at: Time) -> Result<Time, RunError> {
        if cut(range).next().is_some() {
            return Err(self.refused(format!(
                "a write of bytes {} to {} is not in whole blocks",
                range.0,
                range.0 + range.1
            )));
        }
        let mut done = at;
        for (block, count) in self.parts_in_zones(touched(range)) {
            let buffer = &mut self.buffer[..count as usize * self.width];
            fill_with_stamp(write.stamp, buffer);
            done = match self.device.write(Lba(block), buffer, Label::host(write.content), at) {
                Ok(written) => done.max(written),
                Err(DeviceError::Zone(error)) => return Err(self.refused(error.to_string())),
                Err(error) => return Err(error.into()),
            };
        }
        Ok(done)
    }

    fn read(&mut self, range: (u64, u64), at: Time, mut see: impl FnMut(u64, Option<u32>)) -> Result<Time, RunError> {
        let mut done = at;
        for (block, count) in self.parts_in_zones(touched(range)) {
            let buffer = &mut self.buffer[..count as usize * self.width];
            done = done.max(self.device.read(Lba(block), buffer, at)?);
            for (bytes, number) in buffer.chunks_exact(self.width).zip(block..) {
                see(number, stamp_of(bytes));
            }
        }
        Ok(done)
    }

    fn discard(&mut self, range: (u64, u64), at: Time) -> Result<(Range<u64>, Time), RunError> {
        let (blocks, zone_blocks) = (covered(range), self.shape.zone_blocks);
        let first = blocks.start.div_ceil(zone_blocks);
        let zones = first..(blocks.end / zone_blocks).max(first);
        let mut done = at;
        for zone in zones.clone() {
            done = done.max(self.device.reset(zone as u32, at)?);
        }
        Ok((zones.start * zone_blocks..zones.end * zone_blocks, done))
    }

    fn flush(&mut self, at: Time) -> Result<Time, RunError> {
        Ok(self.device.flush(at)?)
    }

    fn account(&self) -> Account {
        self.device.account()
    }

    fn stored(&self) -> Stored {
        Stored::of(&self.device.account())
    }
}
