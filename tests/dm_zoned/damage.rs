//! Damaged metadata: the error names the field, and nothing panics; the findings and repairs of fsck.

use super::{BLOCK, Machine, read, settings, write};
use flashpath::device::{Abilities, BlockDevice};
use flashpath::label::Content;
use flashpath::random::Random;
use flashpath::time::Time;
use flashpath::translation::zoned::{DmZoned, Finding, Remedy, SuperBlock, ZonedVolumeError, check, repair, survey};

const ZONE: u64 = 64;
const TEXT: &str = "dm-zoned:reserved=2,label=hurt";
/// The block of the map in a set; the first bitmap follows it.
const MAP: u64 = 1;

/// A volume with chunks 0 and 1 in sequential zones, 0 with a buffer, and 2 in a conventional zone.
fn machine() -> Machine {
    let machine = Machine::new(ZONE, 8, 16);
    machine.mkfs(TEXT);
    let mut volume = machine.open("dm-zoned:idle=1s");
    write(&mut volume, 0, &[1; 8], Content::Data, Time::ZERO);
    write(&mut volume, ZONE, &[2; 8], Content::Data, Time::ZERO);
    let mut now = Time(2_000_000_000);
    while let Some(next) = volume.work(now).unwrap().filter(|next| *next <= Time(3_000_000_000)) {
        now = now.max(next);
    }
    write(&mut volume, 3, &[3], Content::Data, now);
    write(&mut volume, 2 * ZONE, &[4; 4], Content::Data, now);
    volume.close(now).unwrap();
    machine
}

/// Changes a block of both sets.
fn change(machine: &Machine, block: u64, change: impl Fn(&mut [u8])) {
    for set in 0..2 {
        let mut bytes = machine.disk.bytes(set * ZONE + block);
        change(&mut bytes);
        machine.disk.put(set * ZONE + block, &bytes);
    }
}

/// Changes a field of both super blocks, and recomputes their checksums.
fn change_super(machine: &Machine, change: impl Fn(&mut SuperBlock)) {
    for set in 0..2 {
        let mut superblock = SuperBlock::read(&machine.disk.bytes(set * ZONE), set * ZONE).unwrap();
        change(&mut superblock);
        machine.disk.put(set * ZONE, &superblock.to_bytes());
    }
}

fn refusal(machine: &Machine) -> String {
    match DmZoned::open(machine.devices(), &settings(TEXT)) {
        Ok(_) => panic!("it was opened"),
        Err(error) => error.to_string(),
    }
}

fn findings(machine: &Machine) -> Vec<Finding> {
    check(machine.devices()).unwrap().0
}

#[test]
fn an_impossible_super_block_is_refused_by_its_field() {
    type Change = fn(&mut SuperBlock);
    let changes: [(&str, Change); 8] = [
        ("chunks is 1000, and from 1 to 20 would be right", |super_block| super_block.chunks = 1000),
        ("chunks is 0,", |super_block| super_block.chunks = 0),
        ("reserved zones is 0,", |super_block| super_block.reserved_zones = 0),
        ("reserved zones is 4294967295,", |super_block| super_block.reserved_zones = u32::MAX),
        ("bitmap blocks is 7,", |super_block| super_block.bitmap_blocks = 7),
        ("blocks of a set is 4294967295,", |super_block| super_block.set_blocks = u32::MAX),
        ("map blocks is 0,", |super_block| (super_block.map_blocks, super_block.set_blocks) = (0, 25)),
        ("volume uuid is zero,", |super_block| super_block.identity.volume = [0; 16]),
    ];
    for (message, change) in changes {
        let machine = machine();
        change_super(&machine, change);
        let error = refusal(&machine);
        assert!(error.starts_with("the super block at block 0: ") && error.contains(message), "{error}");
    }
    for (message, at) in [("magic", 0), ("version", 4), ("checksum", 44), ("checksum", 300)] {
        let machine = machine();
        change(&machine, 0, |bytes| bytes[at] ^= 0x10);
        assert!(refusal(&machine).contains(message), "{message}");
    }
}

#[test]
fn an_impossible_map_is_refused_by_its_entry() {
    for (message, at, zone) in [
        ("chunk 2: data zone is 99, and one of the 24 zones", 16, 99u32),
        ("chunk 2: data zone is 1, and a zone that holds no metadata", 16, 1),
        ("chunk 2: data zone is 8, and a zone that holds no metadata", 16, 8),
        ("chunk 1: data zone is 11, and a zone that chunk 0 does not have", 8, 11),
        ("chunk 0: buffer zone is 20, and a conventional zone", 4, 20),
        ("chunk 0: data zone is none, and a zone, as there is a buffer zone", 0, u32::MAX),
    ] {
        let machine = machine();
        change(&machine, MAP, |bytes| bytes[at..at + 4].copy_from_slice(&zone.to_le_bytes()));
        let error = refusal(&machine);
        assert!(error.contains(message), "{error}");
        assert!(check(machine.devices()).is_err_and(|error| error.to_string().contains(message)));
    }
}

#[test]
fn a_map_that_is_damaged_in_one_set_is_made_again_from_the_other() {
    for set in 0..2 {
        let machine = machine();
        let mut bytes = machine.disk.bytes(set * ZONE + MAP);
        bytes[16..20].copy_from_slice(&99u32.to_le_bytes());
        machine.disk.put(set * ZONE + MAP, &bytes);
        assert!(
            findings(&machine).iter().all(|finding| finding.remedy == Remedy::Repair) && !findings(&machine).is_empty()
        );
        let mut volume = machine.open(TEXT);
        assert_eq!(read(&mut volume, 2 * ZONE), 4);
        drop(volume);
        assert_eq!(findings(&machine), []);
    }
}

#[test]
fn devices_of_two_volumes_are_not_joined() {
    let (one, other) = (machine(), Machine::new(ZONE, 8, 16));
    flashpath::translation::zoned::mkfs(
        other.devices(),
        &settings("dm-zoned:reserved=2,label=other"),
        &flashpath::translation::zoned::Uuids::from_seed(2, 1),
    )
    .unwrap();
    let mixed = Machine { zones: other.zones.clone(), ..one.clone() };
    let error = refusal(&mixed);
    assert!(error.contains("volume uuid or label is that of 'other', and that of volume 'hurt'"), "{error}");
    assert!(findings(&mixed).iter().any(|finding| finding.remedy != Remedy::Repair));
}

#[test]
fn fsck_repairs_all_that_it_calls_repairable() {
    let machine = machine();
    // A bit of an unmapped zone, one beyond a write pointer, one that is valid twice, and a lost super block of a
    // member.
    let bitmap_of = |zone: u64| 1 + 1 + zone;
    change(&machine, bitmap_of(6), |bytes| bytes[0] = 1);
    change(&machine, bitmap_of(12), |bytes| bytes[2] |= 1);
    change(&machine, bitmap_of(11), |bytes| bytes[0] |= 8);
    machine.zones.put(0, vec![vec![0; BLOCK]]);
    let messages: Vec<String> = findings(&machine).into_iter().map(|finding| finding.what).collect();
    for expected in [
        "does not say of which volume it is",
        "zone 6 belongs to no chunk, and 1 of its blocks",
        "chunk 1: 1 blocks should lie beyond the write pointer 8 of zone 12",
        "chunk 0: 1 blocks are marked valid in zones 11 and",
    ] {
        assert!(messages.iter().any(|what| what.contains(expected)), "{expected} in {messages:#?}");
    }
    assert_eq!(messages.len(), 4, "{messages:#?}");
    repair(machine.devices(), &settings(TEXT)).unwrap();
    assert_eq!(findings(&machine), []);
    let mut volume = machine.open(TEXT);
    assert_eq!((read(&mut volume, ZONE + 7), read(&mut volume, 2 * ZONE + 3), read(&mut volume, 5)), (2, 4, 1));
}

#[test]
fn a_survey_shows_the_state_of_chunks_and_zones() {
    let survey = survey(machine().devices()).unwrap();
    assert_eq!((survey.label.as_str(), survey.zone_blocks, survey.reserved_zones), ("hurt", 64, 2));
    let chunk = &survey.chunks[0];
    assert_eq!((chunk.data_zone, chunk.data_blocks.clone()), (11, vec![(0, 2), (4, 7)]));
    assert_eq!((chunk.buffer_zone, chunk.buffer_blocks.clone()), (Some(4), vec![(3, 3)]));
    assert_eq!(
        (survey.zones[8].used_as, survey.zones[11].write_pointer, survey.zones[4].chunk),
        ("metadata", Some(8), Some(0))
    );
    assert_eq!(survey.generations[0], survey.generations[1]);
}

/// Any bytes in the metadata: the volume is opened, repaired or rejected, without a panic.
#[test]
fn no_damage_to_the_metadata_causes_a_panic() {
    let whole = machine();
    let blocks: Vec<Vec<u8>> = (0..2 * ZONE).map(|block| whole.disk.bytes(block)).collect();
    let mut opened = 0;
    for seed in 0..600 {
        let mut random = Random::new(seed, "damage");
        let machine = machine();
        let has_valid_super = random.below(2) == 0;
        for _ in 0..1 + random.below(20) {
            // Mostly in blocks that are in use.
            let block = [0, 1, 2, 8, 64, 65, 66, 70][random.below(8) as usize] + random.below(3);
            let mut bytes = machine.disk.bytes(block);
            let from = if random.below(2) == 0 { random.below(200) } else { random.below(BLOCK as u64) } as usize;
            let until = (from + random.below(9) as usize).min(BLOCK);
            bytes[from..until].iter_mut().for_each(|byte| *byte = random.bits() as u8);
            machine.disk.put(block, &bytes);
        }
        if has_valid_super {
            [0, ZONE].into_iter().for_each(|block| machine.disk.put(block, &blocks[block as usize]));
        }
        if let Ok((_, devices)) = check(machine.devices()) {
            let _: Result<_, ZonedVolumeError> = survey(devices);
        }
        if let Ok(volume) = DmZoned::open(machine.devices(), &settings(TEXT)) {
            opened += 1;
            let mut bytes = vec![0; BLOCK];
            for block in (0..volume.blocks()).step_by(7) {
                // A bit beyond a write pointer is a lost block: reading it fails, writing it does not.
                if let Err(error) = volume.read(flashpath::device::Lba(block), &mut bytes, Time::ZERO) {
                    assert!(error.to_string().contains("the device has lost"), "seed {seed}: {error}");
                }
                volume
                    .write(
                        flashpath::device::Lba(block),
                        &bytes,
                        flashpath::label::Label::host(Content::Data),
                        Time::ZERO,
                    )
                    .unwrap();
            }
            volume.close(Time::ZERO).unwrap();
            drop(volume);
            let found = findings(&machine);
            assert!(found.iter().all(|finding| finding.what.contains("the device has lost")), "seed {seed}: {found:?}");
            repair(machine.devices(), &settings(TEXT)).unwrap();
            assert_eq!(findings(&machine), [], "seed {seed}");
        }
    }
    assert!(opened > 100, "{opened} were opened");
}
