//! Rot in what was synced since the last checkpoint.
//!
//! Roll-forward took the first bad checksum for the tail that a crash had torn, although sealed partial segments with
//! higher numbers followed: one flipped bit in the first of fifteen fsyncs took all fifteen back, a check said "clean",
//! and the checkpoint of the next mount hid it. What is missing or wrong in front of what is known to have been durable
//! is damage: it is told, nothing is overwritten, and the rest of the log counts.

use super::forged::seal_summary;
use super::machine::Machine;
use super::unclean::{BLOCK, Partial, block, change, checked, image, log, opened_despite_damage, repaired};
use flashpath::fs::Durable;
use flashpath::fs::sfs::{FileKind, InodeNumber, NewFile, Sfs, SfsError, Structure};
use flashpath::random::Random;
use flashpath::task::Task;
use flashpath::time::Time;
use rustix::io::Errno;

const FILES: u64 = 8;
const SYNCS: u64 = 15;
/// One block: with its summary it fits into any room that is left, so that each fsync is one partial segment.
const LENGTH: usize = 4000;
const NEW: NewFile =
    NewFile { kind: FileKind::Regular, permissions: 0o644, user: 0, group: 0, device: 0, target: b"", attributes: &[] };

fn contents(round: u64) -> Vec<u8> {
    vec![round as u8 + 1; LENGTH]
}

fn name(file: u64) -> Vec<u8> {
    format!("file{file}").into_bytes()
}

/// The volumes: options, and true for zones. An fsync writes bytes as log records, or a block.
const VOLUMES: [(&str, bool); 4] =
    [("sfs:segment=64K", false), ("sfs:segment=64K", true), (BLOCKS, false), (BLOCKS, true)];
/// An fsync writes blocks.
pub const BLOCKS: &str = "sfs:segment=64K,fsync=blocks";

/// A volume on which fifteen fsyncs followed the last checkpoint, of eight files in turn, and the mount was killed.
pub fn killed(task: &Task<'_>, (text, is_zoned): (&'static str, bool)) -> Machine {
    let machine = Machine::new(text, 16, 56, is_zoned);
    let mut sfs = machine.create();
    for file in 0..FILES {
        let inode = sfs.make(task, InodeNumber::ROOT, &name(file), &NEW).unwrap();
        sfs.write(task, inode, 0, &contents(100 + file)).unwrap();
    }
    sfs.sync(task).unwrap();
    for round in 0..SYNCS {
        let inode = sfs.lookup(task, InodeNumber::ROOT, &name(round % FILES)).unwrap();
        sfs.write(task, inode, 0, &contents(round)).unwrap();
        sfs.sync_file(task, inode, Durable::All).unwrap();
    }
    drop(sfs);
    machine
}

/// The versions of a file, the newest first: the fsync of each, or none for that of the checkpoint.
fn versions(file: u64) -> Vec<(Option<u64>, Vec<u8>)> {
    let rounds = (0..SYNCS).rev().filter(|round| round % FILES == file);
    rounds.map(|round| (Some(round), contents(round))).chain([(None, contents(100 + file))]).collect()
}

/// All files are in the newest version that is not of this fsync.
fn assert_without(task: &Task<'_>, sfs: &mut Sfs, lost: u64, context: &str) {
    for file in 0..FILES {
        let expected = versions(file).into_iter().find(|(round, _)| *round != Some(lost)).unwrap().1;
        let inode = sfs.lookup(task, InodeNumber::ROOT, &name(file)).unwrap();
        let mut bytes = vec![0; LENGTH + 1];
        assert_eq!(sfs.read(task, inode, 0, &mut bytes).unwrap(), LENGTH, "{context}");
        assert!(bytes[..LENGTH] == expected, "{context}: file {file} begins {:?}", &bytes[..4]);
    }
}

/// All files are in their newest version, but for one block of one of them, which cannot be read.
fn assert_all_but(task: &Task<'_>, sfs: &mut Sfs, damaged: (u64, u64), context: &str) {
    for file in 0..FILES {
        let expected = versions(file).remove(0).1;
        let inode = sfs.lookup(task, InodeNumber::ROOT, &name(file)).unwrap();
        for (place, block) in (0..).zip(expected.chunks(BLOCK)) {
            let mut bytes = vec![0; block.len()];
            match sfs.read(task, inode, place * BLOCK as u64, &mut bytes) {
                Err(error) => assert!((file, place) == damaged && error.errno() == Errno::IO, "{context}: {error}"),
                Ok(_) => assert!((file, place) != damaged && bytes == block, "{context}: {place} of file {file}"),
            }
        }
    }
}

/// Each file can be read, and is in its newest version; or reading fails.
pub fn assert_newest(task: &Task<'_>, sfs: &mut Sfs, context: &str) {
    for file in 0..FILES {
        let expected = versions(file).remove(0).1;
        let mut bytes = vec![0; LENGTH];
        let inode = sfs.lookup(task, InodeNumber::ROOT, &name(file));
        match inode.and_then(|inode| sfs.read(task, inode, 0, &mut bytes)) {
            Ok(_) => assert!(bytes == expected, "{context}: file {file} begins {:?}", &bytes[..4]),
            Err(error) => assert_eq!(error.errno(), Errno::IO, "{context}: file {file}: {error}"),
        }
    }
}

fn is_told(error: SfsError) -> bool {
    matches!(&error, SfsError::ReadOnly(why) if why.contains("damaged"))
}

/// A damaged volume is checked, mounted, repaired and mounted again; what is there is asserted each time.
fn examine(task: &Task<'_>, machine: &Machine, context: &str, assert: impl Fn(&mut Sfs, &str)) {
    let before = image(machine);
    let findings = checked(machine).unwrap();
    assert!(findings.iter().any(|finding| finding.structure == Structure::Log), "{context}: {findings:?}");
    let mut sfs = machine.open().unwrap();
    assert!(!sfs.damage().is_empty(), "{context}");
    assert!(is_told(sfs.make(task, InodeNumber::ROOT, b"new", &NEW).unwrap_err()), "{context}");
    assert(&mut sfs, context);
    sfs.sync(task).unwrap();
    sfs.unmount(task).unwrap();
    drop(sfs);
    assert!(before == image(machine), "{context}: the mount has overwritten evidence");
    let despite = machine.copy();
    let mut sfs = opened_despite_damage(despite.medium()).unwrap();
    assert!(!sfs.damage().is_empty(), "{context}");
    assert(&mut sfs, context);
    sfs.make(task, InodeNumber::ROOT, b"new", &NEW).unwrap();
    sfs.unmount(task).unwrap();
    let repaired = repaired(machine).unwrap();
    assert_eq!(repaired.left, [], "{context}");
    assert!(repaired.findings.iter().any(|finding| finding.structure == Structure::Log), "{context}");
    assert_eq!(checked(machine).unwrap(), [], "{context}");
    let mut sfs = machine.open().unwrap();
    assert!(sfs.damage().is_empty() && sfs.read_only().is_none(), "{context}");
    assert(&mut sfs, context);
    assert_eq!(sfs.check(task).unwrap(), [], "{context}");
}

/// A way to damage a summary, with its name.
type Damage = (&'static str, fn(&mut [u8]));

fn damages() -> [Damage; 4] {
    [
        ("a bit of the header", |bytes| bytes[9] ^= 4),
        ("a bit of the records", |bytes| bytes[100] ^= 1),
        ("the magic", |bytes| bytes[0] = 0),
        ("zeros", |bytes| bytes.fill(0)),
    ]
}

fn fsyncs(machine: &Machine) -> Vec<Partial> {
    let log = log(machine);
    assert_eq!(log.len() as u64, SYNCS, "each fsync is one partial segment");
    log
}

fn damage_each_summary(task: &Task<'_>, volume: (&'static str, bool)) {
    let killed = killed(task, volume);
    for (round, partial) in fsyncs(&killed).iter().enumerate().take(SYNCS as usize - 1) {
        for (how, damage) in damages() {
            let machine = killed.copy();
            change(&machine, partial.segment, partial.block, damage);
            let context = format!("{volume:?}, {how} in the summary of fsync {round}");
            examine(task, &machine, &context, |sfs, context| assert_without(task, sfs, round as u64, context));
        }
    }
}

#[test]
fn a_damaged_summary_on_a_disk_is_told_and_costs_what_it_said_alone() {
    let task = &Task::at(Time::ZERO);
    VOLUMES.into_iter().filter(|(_, is_zoned)| !is_zoned).for_each(|volume| damage_each_summary(task, volume));
}

#[test]
fn a_damaged_summary_on_zones_is_told_and_costs_what_it_said_alone() {
    let task = &Task::at(Time::ZERO);
    VOLUMES.into_iter().filter(|(_, is_zoned)| *is_zoned).for_each(|volume| damage_each_summary(task, volume));
}

#[test]
fn a_damaged_block_of_a_file_in_the_log_costs_that_block_alone() {
    let task = &Task::at(Time::ZERO);
    for is_zoned in [false, true] {
        let killed = killed(task, (BLOCKS, is_zoned));
        for (round, partial) in fsyncs(&killed).iter().enumerate().take(SYNCS as usize - 1) {
            for place in 0..partial.blocks {
                let machine = killed.copy();
                let at = partial.block + partial.summary_blocks + place;
                change(&machine, partial.segment, at, |bytes| bytes[77] ^= 8);
                let context = format!("zones {is_zoned}, block {place} of fsync {round}");
                // What was written again since is whole.
                let is_newest = round as u64 + FILES >= SYNCS;
                let damaged = if is_newest { (round as u64 % FILES, place) } else { (u64::MAX, 0) };
                examine(task, &machine, &context, |sfs, context| assert_all_but(task, sfs, damaged, context));
                let named = format!("/file{}", round as u64 % FILES);
                let machine = killed.copy();
                change(&machine, partial.segment, at, |bytes| bytes[77] ^= 8);
                let findings = checked(&machine).unwrap();
                let is_named = findings.iter().any(|finding| finding.path.as_ref() == Some(&named));
                assert_eq!(is_named, is_newest, "{context}: {findings:?}");
            }
        }
    }
}

/// Several at once: the first of the log, whose place only the superblock tells, with others.
#[test]
fn several_damaged_summaries_are_told_and_the_others_count() {
    let task = &Task::at(Time::ZERO);
    for volume in VOLUMES {
        let killed = killed(task, volume);
        let log = fsyncs(&killed);
        let mut random = Random::new(3, "several summaries");
        for turn in 0..40 {
            let machine = killed.copy();
            let mut lost: Vec<u64> = (0..2 + random.below(4)).map(|_| random.below(SYNCS - 1)).collect();
            lost.extend((turn % 2 == 0).then_some(0));
            for round in &lost {
                let partial = &log[*round as usize];
                change(&machine, partial.segment, partial.block, |bytes| bytes.fill(0));
            }
            let context = format!("{volume:?}, fsyncs {lost:?}");
            examine(task, &machine, &context, |sfs, context| {
                for file in 0..FILES {
                    let is_there = |round: &Option<u64>| round.is_none_or(|round| !lost.contains(&round));
                    let expected = versions(file).into_iter().find(|(round, _)| is_there(round)).unwrap().1;
                    let inode = sfs.lookup(task, InodeNumber::ROOT, &name(file)).unwrap();
                    let mut bytes = vec![0; LENGTH];
                    sfs.read(task, inode, 0, &mut bytes).unwrap();
                    assert!(bytes == expected, "{context}: file {file} begins {:?}", &bytes[..4]);
                }
            });
        }
    }
}

/// The summary of one fsync was written over that of another: what lies behind it was not looked for, as something that
/// is whole lay there, and two later fsyncs were lost in silence.
#[test]
fn a_summary_over_another_hides_nothing_behind_it() {
    let task = &Task::at(Time::ZERO);
    for volume in VOLUMES {
        let killed = killed(task, volume);
        let log = fsyncs(&killed);
        for round in 0..SYNCS as usize - 1 {
            for other in (0..SYNCS as usize).filter(|other| *other != round) {
                let machine = killed.copy();
                let stale = block(&killed, log[other].segment, log[other].block);
                change(&machine, log[round].segment, log[round].block, |bytes| bytes.copy_from_slice(&stale));
                let context = format!("{volume:?}, the summary of fsync {other} over that of {round}");
                examine(task, &machine, &context, |sfs, context| assert_without(task, sfs, round as u64, context));
            }
        }
    }
}

/// A summary with other records and a checksum that is right was applied, and the next one left out for it.
#[test]
fn a_summary_that_the_next_one_contradicts_is_lost_and_the_next_one_is_not() {
    let task = &Task::at(Time::ZERO);
    for volume in VOLUMES {
        let killed = killed(task, volume);
        for (round, partial) in fsyncs(&killed).iter().enumerate().take(SYNCS as usize - 1) {
            // The clock, and of the first block its number, its inode and its place in it.
            for at in [33, 65, 77, 80] {
                let machine = killed.copy();
                change(&machine, partial.segment, partial.block, |bytes| {
                    bytes[at] ^= 3;
                    seal_summary(bytes);
                });
                let context = format!("{volume:?}, byte {at} of the summary of fsync {round}");
                examine(task, &machine, &context, |sfs, context| assert_without(task, sfs, round as u64, context));
            }
        }
    }
}

/// The last fsync was answered, and then its summary or a block rots. Nothing on the device tells that from a crash
/// before its flush: it ends the log, as it always has.
#[test]
fn the_last_partial_segment_cannot_be_told_from_a_torn_one() {
    let task = &Task::at(Time::ZERO);
    for volume in VOLUMES {
        let killed = killed(task, volume);
        let last = fsyncs(&killed).pop().unwrap();
        for at in last.block..last.block + last.summary_blocks + last.blocks {
            let machine = killed.copy();
            change(&machine, last.segment, at, |bytes| bytes[50] ^= 2);
            assert_eq!(checked(&machine).unwrap(), []);
            let mut sfs = machine.open().unwrap();
            assert!(sfs.damage().is_empty() && sfs.read_only().is_none());
            assert_without(task, &mut sfs, SYNCS - 1, "the last");
        }
    }
}

/// A file to which each fsync adds three blocks and a half. Where one is lost, a later size reaches beyond it: what was
/// there must not read as zeros.
#[test]
fn what_a_lost_part_added_to_a_file_cannot_be_read_and_is_not_zeros() {
    let task = &Task::at(Time::ZERO);
    const PART: usize = 3 * BLOCK + 2000;
    for is_zoned in [false, true] {
        let machine = Machine::new(BLOCKS, 16, 56, is_zoned);
        let mut sfs = machine.create();
        let inode = sfs.make(task, InodeNumber::ROOT, b"journal", &NEW).unwrap();
        let mut expected = Vec::new();
        for part in 0..6 {
            let bytes = vec![part + 1; PART];
            sfs.write(task, inode, expected.len() as u64, &bytes).unwrap();
            expected.extend(bytes);
            if part == 0 {
                sfs.sync(task).unwrap();
            } else {
                sfs.sync_file(task, inode, Durable::All).unwrap();
            }
        }
        drop(sfs);
        for (part, partial) in (1..).zip(log(&machine)).take(4) {
            let machine = machine.copy();
            change(&machine, partial.segment, partial.block, |bytes| bytes[60] ^= 1);
            // The blocks that the lost part alone holds. The next one has the block in which it ends.
            let lost = part * PART / BLOCK..(part + 1) * PART / BLOCK;
            examine(task, &machine, &format!("zones {is_zoned}, part {part}"), |sfs, context| {
                let inode = sfs.lookup(task, InodeNumber::ROOT, b"journal").unwrap();
                assert_eq!(sfs.attributes(task, inode).unwrap().size, expected.len() as u64, "{context}");
                for (place, block) in expected.chunks(BLOCK).enumerate() {
                    let mut bytes = vec![0; block.len()];
                    match sfs.read(task, inode, (place * BLOCK) as u64, &mut bytes) {
                        Err(error) => {
                            assert!(lost.contains(&place) && error.errno() == Errno::IO, "{context}: {error}")
                        }
                        Ok(_) => assert!(!lost.contains(&place) && bytes == block, "{context}: block {place}"),
                    }
                }
            });
        }
    }
}

/// Two files grew in a lost part of the log, and the map of the first one is damaged: what is unknown of the second one
/// was not given up, and read as zeros.
#[test]
fn what_is_unknown_of_a_file_is_given_up_although_another_one_has_a_damaged_map() {
    let task = &Task::at(Time::ZERO);
    const PART: usize = 3 * BLOCK + 2000;
    for (text, is_zoned) in VOLUMES {
        let killed = Machine::new(text, 16, 56, is_zoned);
        let mut sfs = killed.create();
        let inodes = [b"first ", b"second"].map(|name| sfs.make(task, InodeNumber::ROOT, name, &NEW).unwrap());
        let mut lengths = [12 * BLOCK, 10];
        for (inode, length) in inodes.iter().zip(lengths) {
            sfs.write(task, *inode, 0, &vec![1; length]).unwrap();
        }
        sfs.sync(task).unwrap();
        for _ in 0..4 {
            for (inode, length) in inodes.iter().zip(&mut lengths) {
                sfs.write(task, *inode, *length as u64, &[1; PART]).unwrap();
                *length += PART;
                sfs.sync_file(task, *inode, Durable::All).unwrap();
            }
        }
        drop(sfs);
        // The map block of the first file, as the checkpoint wrote it.
        let places = (0..killed.segments).flat_map(|segment| (0..killed.segment_blocks).map(move |at| (segment, at)));
        let mut maps = Vec::new();
        for (segment, at) in places {
            let summary = block(&killed, segment, at);
            let is_its =
                |record: &[u8]| record[28] == 2 && record[16..24] == [0xff; 8] && record[8] == inodes[0].0 as u8;
            if summary[..4] == *b"SFSL" {
                let blocks = u64::from(summary[24]);
                maps.extend(
                    (0..blocks)
                        .filter(|it| is_its(&summary[64 + *it as usize * 32..][..32]))
                        .map(|it| (segment, at + 1 + it)),
                );
            }
        }
        assert_eq!(maps.len(), 1);
        let log = log(&killed);
        for lost in &log[..log.len() - 2] {
            let machine = killed.copy();
            change(&machine, lost.segment, lost.block, |bytes| bytes[60] ^= 1);
            change(&machine, maps[0].0, maps[0].1, |bytes| bytes[60] ^= 1);
            let context = format!("{text}, zones {is_zoned}, partial segment {}", lost.number);
            let assert_no_zeros = |sfs: &mut Sfs| {
                for name in [b"first ", b"second"] {
                    let Ok(inode) = sfs.lookup(task, InodeNumber::ROOT, name) else { continue };
                    let size = sfs.attributes(task, inode).unwrap().size;
                    for at in (0..size).step_by(BLOCK) {
                        let mut bytes = vec![0; BLOCK.min((size - at) as usize)];
                        let is_read = sfs.read(task, inode, at, &mut bytes).is_ok();
                        assert!(!is_read || bytes.iter().all(|byte| *byte == 1), "{context}: byte {at} of {name:?}");
                    }
                }
            };
            assert_no_zeros(&mut opened_despite_damage(machine.copy().medium()).unwrap());
            assert_eq!(repaired(&machine).unwrap().left, [], "{context}");
            assert_eq!(checked(&machine).unwrap(), [], "{context}");
            assert_no_zeros(&mut machine.open().unwrap());
        }
    }
}

/// The fsync that told a file's name is lost, and a later one of the same file is there: the file is found again.
#[test]
fn a_file_whose_name_is_lost_goes_to_lost_and_found() {
    let task = &Task::at(Time::ZERO);
    let machine = Machine::new("sfs:segment=64K", 16, 56, false);
    let mut sfs = machine.create();
    let inode = sfs.make(task, InodeNumber::ROOT, b"nameless", &NEW).unwrap();
    for round in 0..3 {
        sfs.write(task, inode, 0, &contents(round)).unwrap();
        sfs.sync_file(task, inode, Durable::All).unwrap();
    }
    drop(sfs);
    let first = &log(&machine)[0];
    change(&machine, first.segment, first.block, |bytes| bytes.fill(0));
    let found = repaired(&machine).unwrap();
    assert_eq!(found.left, []);
    let mut sfs = machine.open().unwrap();
    let directory = sfs.lookup(task, InodeNumber::ROOT, b"lost+found").unwrap();
    let inode = sfs.lookup(task, directory, format!("#{}", inode.0).as_bytes()).unwrap();
    let mut bytes = vec![0; LENGTH];
    sfs.read(task, inode, 0, &mut bytes).unwrap();
    assert!(bytes == contents(2));
}
