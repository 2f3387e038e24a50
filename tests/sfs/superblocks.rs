//! Damaged superblocks: each of the two replaces the other.

use super::calls::Call;
use super::history::{History, look};
use super::machine::{Device, Machine, seeds};
use super::unclean::checked;
use flashpath::fs::Durable;
use flashpath::fs::sfs::Structure;
use flashpath::random::Random;
use flashpath::task::Task;
use flashpath::time::Time;
use std::collections::BTreeSet;

/// Ways to damage a block.
fn damages() -> [fn(&mut [u8]); 3] {
    [|bytes| bytes.fill(0), |bytes| bytes[200] ^= 4, |bytes| bytes[..512].fill(0xff)]
}

/// Damages superblocks: at the first place, the second, or both. On zones: the newest, the previous one, or all.
fn damage(machine: &Machine, segment: u64, which: [bool; 2], how: fn(&mut [u8])) {
    match &machine.device {
        Device::Blocks(disk) => {
            for (place, _) in [0, segment / 2].into_iter().zip(which).filter(|(_, is_damaged)| *is_damaged) {
                let mut bytes = disk.bytes(place);
                how(&mut bytes);
                disk.put(place, &bytes);
            }
        }
        Device::Zones(zones) => {
            let sequence = |block: &Vec<u8>| u64::from_le_bytes(block[32..40].try_into().unwrap());
            let mut all: Vec<(u64, u32, usize)> = Vec::new();
            for zone in 0..2 {
                let blocks = zones.blocks_of(zone);
                all.extend(blocks.iter().enumerate().map(|(at, block)| (sequence(block), zone, at)));
            }
            all.sort_unstable();
            let newest = match which {
                [true, true] => all,
                [true, false] => all[all.len() - 1..].to_vec(),
                _ => all[all.len() - 2..all.len() - 1].to_vec(),
            };
            for (_, zone, at) in newest {
                let mut blocks = zones.blocks_of(zone);
                how(&mut blocks[at]);
                zones.put(zone, blocks);
            }
        }
    }
}

/// A volume after some checkpoints and syncs, with a power cut after `cut` operations; `None` if it needs fewer.
fn cut_volume(
    task: &Task<'_>,
    text: &'static str,
    segment: u64,
    is_zoned: bool,
    cut: u64,
) -> Option<(Machine, History)> {
    let machine = Machine::new(text, segment, 56, is_zoned);
    let mut sfs = machine.create();
    let mut history = History::of(&look(task, &mut sfs).unwrap(), 0);
    machine.power.cut_after(cut);
    let path = |number: u64| format!("/{}", number % 5);
    for round in 0..12 {
        let sync = if round % 3 == 2 { Call::Sync } else { Call::SyncFile(path(round), Durable::All) };
        let mut calls = vec![Call::Write { path: path(round), offset: round * 1000, length: 90_000 }, sync];
        if !history.has(&path(round)) {
            calls.insert(0, Call::Create(path(round)));
        }
        for call in calls {
            let made = call.run(task, &mut sfs, history.step());
            history.apply(&call, made.as_ref().ok().copied().flatten());
            if made.is_err() {
                assert!(machine.power.is_off());
                drop(sfs);
                machine.lose_power(&mut Random::new(cut, "superblocks"));
                return Some((machine, history));
            }
            history.answered(&call);
        }
    }
    None
}

fn volumes() -> [(&'static str, u64, bool); 3] {
    // With segments of 96K, the middle of the first is not at a power of two.
    [("sfs:segment=64K", 16, false), ("sfs:segment=96K", 24, false), ("sfs:segment=64K", 16, true)]
}

#[test]
fn a_volume_with_one_damaged_superblock_keeps_all_synced_data() {
    let task = &Task::at(Time::ZERO);
    let mut cases = 0;
    for (text, segment, is_zoned) in volumes() {
        for cut in 0.. {
            let Some((machine, history)) = cut_volume(task, text, segment, is_zoned, cut) else { break };
            for which in [[true, false], [false, true]] {
                for how in damages() {
                    let machine = machine.copy();
                    damage(&machine, segment, which, how);
                    let recovered = machine.recover(task, &history);
                    recovered.unwrap_or_else(|why| panic!("{text} (zones: {is_zoned}), cut {cut}, {which:?}: {why}"));
                    cases += 1;
                }
            }
        }
    }
    eprintln!("{cases} cases");
}

#[test]
fn a_volume_with_two_damaged_superblocks_is_refused_with_advice() {
    let task = &Task::at(Time::ZERO);
    for (text, segment, is_zoned) in volumes() {
        for (number, how) in damages().into_iter().enumerate() {
            let (machine, _) = cut_volume(task, text, segment, is_zoned, 20).unwrap();
            damage(&machine, segment, [true, true], how);
            let error = machine.open().err().expect("both superblocks are damaged").to_string();
            let advice = if number == 1 { "an older copy" } else { "mkfs" };
            assert!(error.contains(advice), "{error}");
        }
    }
}

#[test]
fn a_superblock_image_in_a_file_is_not_taken_for_the_volumes_superblock() {
    let task = &Task::at(Time::ZERO);
    // A volume with larger segments, whose second superblock is where a file of the other volume will be.
    let inner = Machine::new("sfs:segment=512K", 128, 60, false);
    for _ in 0..20 {
        drop(inner.create());
        drop(inner.open().unwrap());
    }
    let Device::Blocks(inner) = &inner.device else { unreachable!() };
    let image = inner.bytes(64);
    assert_eq!(&image[..8], b"FLASHSFS");

    let machine = Machine::new("sfs:segment=96K,fsync=blocks", 24, 56, false);
    let mut sfs = machine.create();
    let Device::Blocks(outer) = &machine.device else { unreachable!() };
    let file = Call::Create("/image".to_string()).run(task, &mut sfs, 1).unwrap().unwrap();
    let before = outer.bytes(64);
    let mut blocks = 0;
    while outer.bytes(64) == before || outer.bytes(64) != image {
        assert!(blocks < 500, "a block of the file is at block 64");
        // After a first partial segment of three blocks and others of two, the block is not a summary.
        sfs.write(task, file, blocks * 4096, &image.repeat(if blocks == 0 { 2 } else { 1 })).unwrap();
        blocks += 2;
        sfs.sync_file(task, file, Durable::All).unwrap();
    }
    let history = History::of(&look(task, &mut sfs).unwrap(), 1);
    sfs.unmount(task).unwrap();
    machine.recover(task, &history).unwrap();
    let damaged = machine.copy();
    damage(&damaged, 24, [true, false], damages()[0]);
    damaged.recover(task, &history).unwrap();
}

/// Version 2 introduced attributes of more than one block, version 3 an open segment for each group, version 4 bytes in log
/// records. Older volumes must stay readable, also after a crash.
#[test]
fn a_volume_of_version_1_is_read_and_one_of_a_later_version_is_refused_by_its_number() {
    let task = &Task::at(Time::ZERO);
    for is_unmounted in [true, false] {
        let machine = Machine::new("sfs:segment=64K", 16, 56, false);
        let mut sfs = machine.create();
        let mut history = History::of(&look(task, &mut sfs).unwrap(), 0);
        for call in [
            Call::Create("/file".to_string()),
            Call::Write { path: "/file".to_string(), offset: 0, length: 30_000 },
            Call::SetAttribute("/file".to_string(), "user.a", 3000),
            Call::SyncFile("/file".to_string(), Durable::All),
        ] {
            let made = call.run(task, &mut sfs, history.step()).unwrap();
            history.apply(&call, made);
            history.answered(&call);
        }
        if is_unmounted {
            sfs.unmount(task).unwrap();
        }
        drop(sfs);
        let Device::Blocks(disk) = &machine.device else { unreachable!("the medium is a disk") };
        let with_version = |version: u32| {
            for place in [0, 8] {
                let mut bytes = disk.bytes(place);
                bytes[8..12].copy_from_slice(&version.to_le_bytes());
                bytes[12..16].fill(0);
                let crc = crc32c::crc32c(&bytes);
                bytes[12..16].copy_from_slice(&crc.to_le_bytes());
                disk.put(place, &bytes);
            }
        };
        with_version(5);
        assert_eq!(
            machine.open().err().unwrap().to_string(),
            "the volume has format version 5, and this program knows version 4"
        );
        with_version(1);
        let found = machine.recover(task, &history).unwrap().1;
        assert_eq!(found.all["/file"].attributes()["user.a".as_bytes()].len(), 3000);
        assert_eq!(disk.bytes(0)[8], 4, "the volume becomes version 4");
    }
}

/// Superblocks, by their places or zones.
fn superblocks(machine: &Machine) -> [Vec<Vec<u8>>; 2] {
    match &machine.device {
        Device::Blocks(disk) => [0, machine.segment_blocks / 2].map(|place| vec![disk.bytes(place)]),
        Device::Zones(zones) => [0, 1].map(|zone| zones.blocks_of(zone)),
    }
}

/// Tears the superblock that the last operation of a device wrote over these: its first half alone is there.
fn tear(machine: &Machine, before: &[Vec<Vec<u8>>; 2], random: &mut Random) {
    let after = superblocks(machine);
    let turn = (0..2).find(|turn| after[*turn] != before[*turn]).expect("a superblock was written");
    machine.lose_power(random);
    let mut blocks = after[turn].clone();
    let last = blocks.last_mut().expect("there is the one that was written");
    last[2048..].fill(0xff);
    match &machine.device {
        Device::Blocks(disk) => disk.put([0, machine.segment_blocks / 2][turn], last),
        Device::Zones(zones) => zones.put(turn as u32, blocks),
    }
}

/// The volume as it is after a mount in which the power failed, and tore the superblock that was being written: the
/// `which`-th that the mount writes. `None` if it writes fewer.
fn torn_in_mount(machine: &Machine, which: usize, random: &mut Random) -> Option<Machine> {
    let cut_off = |cut: u64| {
        let machine = machine.copy();
        machine.power.cut_after(cut);
        let is_cut = machine.open().is_err();
        is_cut.then_some(machine)
    };
    let (mut before, mut written) = (superblocks(machine), 0);
    for cut in 0.. {
        let machine = cut_off(cut)?;
        let after = superblocks(&machine);
        // A zone is emptied before it is written anew.
        let is_longer = (0..2).any(|turn| after[turn] != before[turn] && !after[turn].is_empty());
        written += usize::from(is_longer);
        if is_longer && written > which {
            tear(&machine, &before, random);
            return Some(machine);
        }
        before = after;
    }
    None
}

/// Each crash tore the superblock that was just being written. On zones the second torn one was taken for damage, and
/// the volume could only be read.
#[test]
fn crashes_in_a_row_that_each_tear_a_superblock_damage_nothing() {
    let task = &Task::at(Time::ZERO);
    let mut torn_in_a_row = [0; 5];
    for (text, segment, is_zoned) in volumes() {
        for cut in (0..).step_by((11 / seeds()).max(1) as usize) {
            let Some((mut machine, history)) = cut_volume(task, text, segment, is_zoned, cut) else { break };
            let mut random = Random::new(cut, "torn superblocks");
            for (torn, count) in torn_in_a_row.iter_mut().enumerate().skip(1) {
                // Most often the first of the two that a checkpoint writes.
                let which = usize::from(random.below(4) == 0);
                let Some(next) = torn_in_mount(&machine, which, &mut random) else { break };
                machine = next;
                *count += 1;
                let recovered = machine.copy().recover(task, &history);
                recovered.unwrap_or_else(|why| panic!("{text} (zones: {is_zoned}), cut {cut}, {torn} torn: {why}"));
            }
        }
    }
    eprintln!("{torn_in_a_row:?} volumes with so many torn superblocks");
    assert!(torn_in_a_row[4] > 5, "{torn_in_a_row:?}");
}

/// Two crashes in a row tear one superblock in each zone at most, so that two in one zone were damaged later.
#[test]
fn both_superblocks_of_a_checkpoint_on_zones_that_rot_are_told_wherever_they_lie() {
    let task = &Task::at(Time::ZERO);
    let machine = Machine::new("sfs:segment=64K", 16, 56, true);
    let Device::Zones(zones) = &machine.device else { unreachable!("it has zones") };
    let mut sfs = machine.create();
    let mut places = BTreeSet::new();
    for round in 0..40 {
        Call::Create(format!("/{round}")).run(task, &mut sfs, round).unwrap();
        sfs.sync(task).unwrap();
        let rotten = machine.copy();
        let Device::Zones(its) = &rotten.device else { unreachable!("it has zones") };
        let sequence = |block: &[u8]| u64::from_le_bytes(block[32..40].try_into().unwrap());
        let all = [0, 1].map(|zone| zones.blocks_of(zone));
        let newest = all.iter().flatten().map(|block| sequence(block)).max().unwrap();
        for (zone, mut blocks) in (0..).zip(all) {
            for (at, block) in blocks.iter_mut().enumerate().filter(|(_, block)| sequence(block) + 1 >= newest) {
                block[300] ^= 1;
                places.insert((zone, at));
            }
            its.put(zone, blocks);
        }
        let found = checked(&rotten).unwrap();
        assert!(found.iter().any(|finding| finding.structure == Structure::Superblock), "{round}: {found:?}");
        // What the older checkpoint names may have been written over.
        if let Ok(mounted) = rotten.open() {
            assert!(!mounted.damage().is_empty() && mounted.read_only().is_some(), "{round}");
        }
    }
    assert!(places.len() >= 30, "both zones were written from their first block to their last: {places:?}");
}
