//! dm-zoned: the states of the kernel, the kernel's defects that must not be repeated, power cuts, and damaged
//! metadata.

#[path = "dm_zoned/damage.rs"]
mod damage;
mod failing_disk;
#[path = "dm_zoned/failing_store.rs"]
mod failing_store;
#[path = "dm_zoned/fixtures.rs"]
mod fixtures;
#[path = "dm_zoned/journal.rs"]
mod journal;
#[path = "dm_zoned/lost.rs"]
mod lost;
#[path = "dm_zoned/model.rs"]
mod model;
mod power_cut;
#[path = "dm_zoned/power_cuts.rs"]
mod power_cuts;
#[path = "dm_zoned/recovery.rs"]
mod recovery;
#[path = "dm_zoned/room.rs"]
mod room;

use flashpath::device::{BlockDevice, DeviceError, Lba, fill_with_stamp};
use flashpath::expression::parse_term;
use flashpath::label::{Content, Label};
use flashpath::time::Time;
use flashpath::translation::zoned::{Devices, DmZoned, Uuids, ZonedSettings, mkfs};
use power_cut::{Disk, Power, Zones};

const BLOCK: usize = 4096;

/// A machine with a conventional and a zoned device.
#[derive(Clone)]
struct Machine {
    power: Power,
    disk: Disk,
    zones: Zones,
}

impl Machine {
    fn new(zone_blocks: u64, conventional: u64, sequential: u32) -> Machine {
        let power = Power::new();
        let disk = Disk::new(&power, conventional * zone_blocks, 2 * zone_blocks);
        let zones = Zones::new(&power, sequential, zone_blocks, 0);
        Machine { power, disk, zones }
    }

    fn devices(&self) -> Devices {
        Devices { conventional: Some(Box::new(self.disk.clone())), zoned: vec![Box::new(self.zones.clone())] }
    }

    fn mkfs(&self, text: &str) {
        mkfs(self.devices(), &settings(text), &Uuids::from_seed(1, 1)).unwrap();
    }

    fn open(&self, text: &str) -> DmZoned {
        DmZoned::open(self.devices(), &settings(text)).unwrap()
    }

    /// Cuts the power and restores it.
    fn lose_power(&self, random: &mut flashpath::random::Random) {
        self.disk.lose_power(random);
        self.zones.lose_power(random);
        self.power.restore();
    }
}

fn settings(text: &str) -> ZonedSettings {
    ZonedSettings::read(&parse_term(text).unwrap()).unwrap()
}

fn block_of(stamp: u32) -> Vec<u8> {
    let mut bytes = vec![0; BLOCK];
    fill_with_stamp(stamp, &mut bytes);
    bytes
}

fn write(volume: &mut DmZoned, first: u64, stamps: &[u32], content: Content, at: Time) {
    let bytes: Vec<u8> = stamps.iter().flat_map(|stamp| block_of(*stamp)).collect();
    volume.write(Lba(first), &bytes, Label::host(content), at).unwrap();
}

/// The stamp of a block. A block that is not a repeated stamp is torn.
fn try_read(volume: &mut DmZoned, block: u64) -> Result<u32, DeviceError> {
    let mut bytes = vec![0; BLOCK];
    volume.read(Lba(block), &mut bytes, Time::ZERO)?;
    let stamp = u32::from_le_bytes(bytes[..4].try_into().unwrap());
    assert!(bytes == block_of(stamp), "block {block} is torn");
    Ok(stamp)
}

fn read(volume: &mut DmZoned, block: u64) -> u32 {
    try_read(volume, block).unwrap()
}

/// The warnings of the volume.
fn warnings(volume: &DmZoned) -> Vec<String> {
    volume.account().all_warnings()
}
