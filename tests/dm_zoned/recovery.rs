//! Defects of the kernel's dm-zoned (6.12) at its start, and the correct behaviour.

use super::{BLOCK, Machine, read, settings, write};
use flashpath::device::{Abilities, BlockDevice, ZoneState};
use flashpath::label::Content;
use flashpath::time::Time;
use flashpath::translation::zoned::{DmZoned, SuperBlock};

const ZONE: u64 = 64;
const TEXT: &str = "dm-zoned:reserved=2";

fn machine() -> Machine {
    let machine = Machine::new(ZONE, 8, 16);
    machine.mkfs(TEXT);
    machine
}

fn put(volume: &mut DmZoned, chunk: u64, block: u64, stamp: u32) {
    write(volume, chunk * ZONE + block, &[stamp], Content::Data, Time::ZERO);
}

/// The metadata set in a zone.
fn save(machine: &Machine, zone: u64) -> Vec<Vec<u8>> {
    (0..ZONE).map(|block| machine.disk.bytes(zone * ZONE + block)).collect()
}

fn restore(machine: &Machine, zone: u64, set: &[Vec<u8>]) {
    (0..).zip(set).for_each(|(block, bytes)| machine.disk.put(zone * ZONE + block, bytes));
}

fn generation(machine: &Machine, zone: u64) -> u64 {
    SuperBlock::read(&machine.disk.bytes(zone * ZONE), zone * ZONE).unwrap().generation
}

/// A commit was torn: the second set has it, the first does not. The kernel mounts from the second, and reads chunk 7
/// correctly. Its next commit writes only the blocks that change then to the first set; both sets reach the same
/// generation, and at the next mount the first is taken, which lacks chunk 7: it reads zeros. So the older set must be
/// completed before any commit.
#[test]
fn a_metadata_set_older_than_a_torn_commit_is_not_used() {
    let machine = machine();
    let mut volume = machine.open(TEXT);
    put(&mut volume, 3, 0, 0x33);
    volume.flush(Time::ZERO).unwrap();
    let old_first_set = save(&machine, 0);
    put(&mut volume, 7, 0, 0x42);
    volume.flush(Time::ZERO).unwrap();
    drop(volume);
    restore(&machine, 0, &old_first_set);
    assert_eq!((generation(&machine, 0), generation(&machine, 1)), (2, 3));

    let mut volume = machine.open(TEXT);
    assert!(super::warnings(&volume)[0].contains("the newer one counts"), "{:?}", super::warnings(&volume));
    assert_eq!(read(&mut volume, 7 * ZONE), 0x42);
    // A write that changes only a bit of chunk 3's bitmap.
    put(&mut volume, 3, 1, 0x34);
    volume.flush(Time::ZERO).unwrap();
    drop(volume);
    assert_eq!(generation(&machine, 0), generation(&machine, 1));

    let mut volume = machine.open(TEXT);
    assert!(super::warnings(&volume).is_empty(), "{:?}", super::warnings(&volume));
    assert_eq!(read(&mut volume, 7 * ZONE), 0x42, "what was read after the recovery is there at the next start, too");
    assert_eq!((read(&mut volume, 3 * ZONE), read(&mut volume, 3 * ZONE + 1)), (0x33, 0x34));
}

/// The first super block of a volume on two devices cannot be read. The kernel searches for the second set among as
/// many zones as the zoned device has conventional ones, which is none, and dereferences a null pointer.
#[test]
fn a_first_set_that_cannot_be_read_is_recovered_from_the_second() {
    for zeroed_blocks in [1, ZONE] {
        let machine = machine();
        let mut volume = machine.open(TEXT);
        put(&mut volume, 5, 9, 0x59);
        volume.flush(Time::ZERO).unwrap();
        drop(volume);
        (0..zeroed_blocks).for_each(|block| machine.disk.put(block, &[0; BLOCK]));

        let mut volume = machine.open(TEXT);
        assert!(
            super::warnings(&volume)[0].contains("the first metadata set is damaged"),
            "{:?}",
            super::warnings(&volume)
        );
        assert_eq!(read(&mut volume, 5 * ZONE + 9), 0x59);
        drop(volume);
        // It has been restored, and is used again.
        (0..ZONE).for_each(|block| machine.disk.put(ZONE + block, &[0; BLOCK]));
        assert_eq!(read(&mut machine.open(TEXT), 5 * ZONE + 9), 0x59);
    }
}

/// The kernel marks a released zone as free at once, and may reset it before the metadata that releases it is durable:
/// a power cut in between leaves a map that names a zone without data.
#[test]
fn a_zone_is_not_written_again_before_its_release_is_committed() {
    let machine = machine();
    let mut volume = machine.open(TEXT);
    put(&mut volume, 1, 0, 0x11);
    volume.flush(Time::ZERO).unwrap();
    let status = volume.status();
    volume.discard(flashpath::device::Lba(ZONE), ZONE, Time::ZERO).unwrap();
    assert_eq!(volume.status(), status, "nothing is free before the commit");
    volume.flush(Time::ZERO).unwrap();
    assert!(volume.status().contains(" 6/6 cache"), "{}", volume.status());
}

#[test]
fn a_read_only_or_offline_zone_affects_only_its_chunk() {
    let machine = machine();
    let text = "dm-zoned:idle=1s";
    let mut volume = machine.open(text);
    for chunk in 0..3 {
        put(&mut volume, chunk, 0, 0x100 + chunk as u32);
    }
    let mut now = Time(2_000_000_000);
    while let Some(next) = volume.work(now).unwrap().filter(|next| *next <= Time(3_000_000_000)) {
        now = now.max(next);
    }
    // They are in sequential zones now, the first after the member's super block and the reserve.
    machine.zones.set_state(3, ZoneState::ReadOnly);
    machine.zones.set_state(4, ZoneState::Offline);
    let at = |chunk: u64, block: u64| flashpath::device::Lba(chunk * ZONE + block);
    let host = flashpath::label::Label::host(Content::Data);
    let bytes = super::block_of(9);
    let error = volume.write(at(0, 1), &bytes, host, now).unwrap_err();
    assert_eq!(error.to_string(), "chunk 0 can only be read: its zone 11 has become read-only");
    assert_eq!(read(&mut volume, 0), 0x100);
    assert!(volume.read(at(1, 0), &mut [0; BLOCK], now).unwrap_err().to_string().contains("zone is offline"));
    volume.write(at(2, 1), &bytes, host, now).unwrap();
    volume.write(at(5, 1), &bytes, host, now).unwrap();
    volume.flush(now).unwrap();
    drop(volume);
    // The same after a restart, and reclaim continues around them.
    let mut volume = DmZoned::open(machine.devices(), &settings(text)).unwrap();
    assert_eq!((read(&mut volume, 0), read(&mut volume, 2 * ZONE + 1), read(&mut volume, 5 * ZONE + 1)), (0x100, 9, 9));
    assert!(volume.read(at(1, 0), &mut [0; BLOCK], now).is_err());
    for chunk in 6..16 {
        volume.write(at(chunk, 0), &bytes, host, Time::ZERO).unwrap();
    }
    assert_eq!(read(&mut volume, 15 * ZONE), 9);
}

#[test]
fn a_volume_of_one_device_has_its_metadata_and_its_cache_in_the_devices_own_conventional_zones() {
    use super::power_cut::{Power, Zones};
    use flashpath::translation::zoned::{Devices, Uuids, mkfs};
    let zones = Zones::new(&Power::new(), 24, ZONE, 8);
    let devices = || Devices { conventional: None, zoned: vec![Box::new(zones.clone())] };
    mkfs(devices(), &settings(TEXT), &Uuids::from_seed(5, 1)).unwrap();
    let mut volume = DmZoned::open(devices(), &settings("dm-zoned:idle=1s")).unwrap();
    assert_eq!(volume.status(), "0 10240 zoned 24 zones 0/0 cache 6/6 random 14/14 sequential");
    for chunk in 0..20 {
        put(&mut volume, chunk, chunk, 1 + chunk as u32);
    }
    volume.flush(Time::ZERO).unwrap();
    drop(volume);
    let mut volume = DmZoned::open(devices(), &settings("dm-zoned")).unwrap();
    for chunk in 0..20 {
        assert_eq!(read(&mut volume, chunk * ZONE + chunk), 1 + chunk as u32);
    }
}
