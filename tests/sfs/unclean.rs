//! Volumes whose mount was killed, and the partial segments of their logs, as they lie on the device.

use super::machine::{Device, Machine};
use super::settings;
use flashpath::fs::sfs::{Finding, Medium, OpenSfsError, Repaired, Sfs, check, repair};
use flashpath::task::Task;
use flashpath::time::Time;

/// Bytes of a block.
pub const BLOCK: usize = 4096;

/// A partial segment behind the last checkpoint.
#[derive(Clone, Debug)]
pub struct Partial {
    pub number: u64,
    pub segment: u64,
    /// Its first block in the segment.
    pub block: u64,
    pub summary_blocks: u64,
    pub blocks: u64,
    /// The newest number that was durable when it was written.
    pub durable: u64,
    /// The segment that the log was to take next, if that is told.
    pub next_segment: Option<u64>,
    /// True if its blocks are of several groups, so that others may follow it in its segment.
    pub is_mixed: bool,
}

impl Partial {
    /// All its blocks, each with its segment.
    pub fn places(&self) -> impl Iterator<Item = (u64, u64)> {
        let segment = self.segment;
        (self.block..self.block + self.summary_blocks + self.blocks).map(move |block| (segment, block))
    }
}

fn number(bytes: &[u8], at: usize, width: usize) -> u64 {
    (0..width).rev().fold(0, |number, byte| number << 8 | u64::from(bytes[at + byte]))
}

/// The bytes of a block of a segment.
pub fn block(machine: &Machine, segment: u64, block: u64) -> Vec<u8> {
    match &machine.device {
        Device::Blocks(disk) => disk.bytes((segment + 1) * machine.segment_blocks + block),
        Device::Zones(zones) => {
            zones.blocks_of(segment as u32 + 2).get(block as usize).cloned().unwrap_or_else(|| vec![0; BLOCK])
        }
    }
}

/// Changes a block of a segment, where one was written.
pub fn change(machine: &Machine, segment: u64, at: u64, change: impl FnOnce(&mut [u8])) {
    let mut bytes = block(machine, segment, at);
    change(&mut bytes);
    match &machine.device {
        Device::Blocks(disk) => disk.put((segment + 1) * machine.segment_blocks + at, &bytes),
        Device::Zones(zones) => {
            let mut written = zones.blocks_of(segment as u32 + 2);
            if let Some(place) = written.get_mut(at as usize) {
                *place = bytes;
                zones.put(segment as u32 + 2, written);
            }
        }
    }
}

/// The newest superblock.
pub fn superblock(machine: &Machine) -> Vec<u8> {
    let all = match &machine.device {
        Device::Blocks(disk) => vec![disk.bytes(0), disk.bytes(machine.segment_blocks / 2)],
        Device::Zones(zones) => [zones.blocks_of(0), zones.blocks_of(1)].concat(),
    };
    all.into_iter().max_by_key(|bytes| number(bytes, 32, 8)).unwrap()
}

/// The partial segments behind the last checkpoint, in order.
pub fn log(machine: &Machine) -> Vec<Partial> {
    let first = number(&superblock(machine), 72, 8);
    let mut log = Vec::new();
    for segment in 0..machine.segments {
        for at in 0..machine.segment_blocks {
            let bytes = block(machine, segment, at);
            if &bytes[..4] == b"SFSL" && number(&bytes, 8, 8) >= first {
                let (summary_blocks, blocks) = (number(&bytes, 20, 4), number(&bytes, 24, 4));
                let sequence = number(&bytes, 8, 8);
                log.push(Partial {
                    number: sequence,
                    segment,
                    block: at,
                    summary_blocks,
                    blocks,
                    durable: sequence - number(&bytes, 58, 2),
                    next_segment: number(&bytes, 60, 4).checked_sub(1),
                    is_mixed: bytes[56] == u8::MAX,
                });
            }
        }
    }
    log.sort_by_key(|partial| partial.number);
    log
}

/// The whole content of the device.
pub fn image(machine: &Machine) -> Vec<Vec<u8>> {
    let blocks = (0..machine.segments).flat_map(|segment| (0..machine.segment_blocks).map(move |at| (segment, at)));
    blocks.map(|(segment, at)| block(machine, segment, at)).chain([superblock(machine)]).collect()
}

/// Checks a volume without a repair.
pub fn checked(machine: &Machine) -> Result<Vec<Finding>, OpenSfsError> {
    check(machine.medium(), &settings("sfs"))
}

/// Repairs it.
pub fn repaired(machine: &Machine) -> Result<Repaired, OpenSfsError> {
    repair(machine.medium(), &settings("sfs"), super::IDENTITY)
}

/// Mounts it although its log is damaged.
pub fn opened_despite_damage(medium: Medium) -> Result<Sfs, OpenSfsError> {
    Sfs::open_despite_damage(&Task::at(Time::ZERO), medium, &settings("sfs"), super::IDENTITY)
}
