//! Small syncs: changed bytes are log records beside others, and a crash loses none of them.

use super::log_damage::BLOCKS;
use super::machine::Machine;
use super::unclean::{change, checked, log, opened_despite_damage, repaired};
use flashpath::fs::Durable;
use flashpath::fs::sfs::{FileKind, InodeNumber, NewFile, Sfs};
use flashpath::random::Random;
use flashpath::task::Task;
use flashpath::time::Time;

const BLOCK: usize = 4096;
const NEW: NewFile =
    NewFile { kind: FileKind::Regular, permissions: 0o644, user: 0, group: 0, device: 0, target: b"", attributes: &[] };
const LOGGED: &str = "sfs:segment=64K";

fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut random = Random::new(seed, "small syncs");
    (0..length).map(|_| random.below(256) as u8).collect()
}

/// Blocks that were written, and changed blocks that became log records.
fn counts(sfs: &Sfs) -> (u64, u64) {
    let account = sfs.account();
    let logged = account.events.iter().find(|(event, _)| *event == "blocks logged").unwrap().1;
    (account.sent.total(), logged)
}

fn read(task: &Task<'_>, sfs: &mut Sfs) -> Vec<u8> {
    let inode = sfs.lookup(task, InodeNumber::ROOT, b"file").unwrap();
    let mut bytes = vec![0; sfs.attributes(task, inode).unwrap().size as usize];
    sfs.read(task, inode, 0, &mut bytes).unwrap();
    bytes
}

/// Writes to a file that has `before`, each write with an fsync. Returns the blocks written and logged per sync, after
/// the mount was killed, and mounted and checked twice.
fn synced(text: &'static str, is_zoned: bool, before: &[u8], writes: &[(usize, Vec<u8>)]) -> (f64, f64) {
    let task = &Task::at(Time::ZERO);
    let machine = Machine::new(text, 16, 64, is_zoned);
    let mut sfs = machine.create();
    let inode = sfs.make(task, InodeNumber::ROOT, b"file", &NEW).unwrap();
    let mut expected = before.to_vec();
    if !before.is_empty() {
        sfs.write(task, inode, 0, before).unwrap();
    }
    sfs.sync(task).unwrap();
    let begun = counts(&sfs);
    for (at, bytes) in writes {
        sfs.write(task, inode, *at as u64, bytes).unwrap();
        expected.resize(expected.len().max(at + bytes.len()), 0);
        expected[*at..at + bytes.len()].copy_from_slice(bytes);
        sfs.sync_file(task, inode, Durable::All).unwrap();
    }
    let ended = counts(&sfs);
    drop(sfs);
    assert_eq!(checked(&machine).unwrap(), [], "{text}");
    for _ in 0..2 {
        let mut sfs = machine.open().unwrap();
        assert_eq!(sfs.check(task).unwrap(), [], "{text}");
        assert!(read(task, &mut sfs) == expected, "{text}, zones {is_zoned}");
    }
    let per_sync = |begun: u64, ended: u64| (ended - begun) as f64 / writes.len() as f64;
    (per_sync(begun.0, ended.0), per_sync(begun.1, ended.1))
}

#[test]
fn a_sync_of_few_bytes_writes_one_block_and_one_of_a_whole_block_two() {
    for is_zoned in [false, true] {
        let appends: Vec<(usize, Vec<u8>)> = (0..40).map(|at| (at * 100, noise(at as u64, 100))).collect();
        assert_eq!(synced(LOGGED, is_zoned, &[], &appends), (1.0, 1.0));
        assert_eq!(synced(BLOCKS, is_zoned, &[], &appends), (2.0, 0.0));
        // Pages that can be compressed, over others, which are in no block of the device's log.
        let pages: Vec<(usize, Vec<u8>)> = (0..12).map(|at| (at % 5 * BLOCK, vec![at as u8; BLOCK])).collect();
        assert_eq!(synced(LOGGED, is_zoned, &noise(1, 5 * BLOCK), &pages), (1.0, 1.0));
        // Others cannot.
        let pages: Vec<(usize, Vec<u8>)> = (0..12).map(|at| (at % 5 * BLOCK, noise(at as u64, BLOCK))).collect();
        assert_eq!(synced(LOGGED, is_zoned, &noise(1, 5 * BLOCK), &pages), (2.0, 0.0));
        assert_eq!(synced(BLOCKS, is_zoned, &noise(1, 5 * BLOCK), &pages), (2.0, 0.0));
    }
}

/// A database's log in front of its pages: a frame of 24 bytes and a page lies over two blocks. The shorter part of it
/// is a record beside the other one's block.
#[test]
fn a_frame_over_two_blocks_is_written_as_a_block_and_a_record() {
    const FRAME: usize = 24 + BLOCK;
    let frames: Vec<(usize, Vec<u8>)> = (0..10).map(|at| (32 + at * FRAME, noise(at as u64, FRAME))).collect();
    for is_zoned in [false, true] {
        let (written, logged) = synced(LOGGED, is_zoned, &noise(7, 50_000), &frames);
        assert!(written <= 2.1 && logged >= 0.9, "{written} blocks, {logged} logged");
        let (written, _) = synced(BLOCKS, is_zoned, &noise(7, 50_000), &frames);
        assert!(written >= 2.9, "{written} blocks");
    }
}

/// Two syncs change bytes of one block. The first is lost: with the bytes of the second alone, the block would be a
/// mixture that never was.
#[test]
fn bytes_over_a_lost_version_are_left_out_and_told() {
    let task = &Task::at(Time::ZERO);
    for is_zoned in [false, true] {
        for (before, is_whole) in [(noise(3, BLOCK), false), (Vec::new(), false), (noise(3, BLOCK), true)] {
            let machine = Machine::new(LOGGED, 16, 64, is_zoned);
            let mut sfs = machine.create();
            let inode = sfs.make(task, InodeNumber::ROOT, b"file", &NEW).unwrap();
            sfs.make(task, InodeNumber::ROOT, b"other", &NEW).unwrap();
            sfs.write(task, inode, 0, &before).unwrap();
            sfs.sync(task).unwrap();
            let mut whole = before.clone();
            whole.resize(BLOCK, 0);
            for (at, byte) in [(100, 1), (200, 2)] {
                let (at, count) = if is_whole && byte == 2 { (0, BLOCK) } else { (at, 50) };
                whole[at..at + count].fill(byte);
                sfs.write(task, inode, at as u64, &vec![byte; count]).unwrap();
                sfs.sync_file(task, inode, Durable::All).unwrap();
            }
            // Proof that the second one was durable.
            let other = sfs.lookup(task, InodeNumber::ROOT, b"other").unwrap();
            sfs.write(task, other, 0, b"more").unwrap();
            sfs.sync_file(task, other, Durable::All).unwrap();
            assert_eq!(counts(&sfs).1, 3);
            drop(sfs);
            let first = &log(&machine)[0];
            change(&machine, first.segment, first.block, |bytes| bytes[9] ^= 4);
            let context = format!("zones {is_zoned}, {} bytes before, whole {is_whole}", before.len());
            let findings = checked(&machine).unwrap();
            let is_named = findings.iter().any(|finding| finding.path.as_deref() == Some("/file"));
            // A block that is in the log as a whole needs no version below.
            assert_eq!(is_named, !is_whole, "{context}: {findings:?}");
            let look = |sfs: &mut Sfs| {
                let inode = sfs.lookup(task, InodeNumber::ROOT, b"file").unwrap();
                let mut bytes = vec![0; BLOCK];
                match sfs.read(task, inode, 0, &mut bytes) {
                    Ok(length) if is_whole => assert!(bytes[..length] == whole[..length], "{context}"),
                    Ok(length) => assert!(length > 0 && bytes[..length] == before[..], "{context}: {:?}", &bytes[..4]),
                    Err(_) => assert!(before.is_empty(), "{context}"),
                }
            };
            look(&mut machine.open().unwrap());
            look(&mut opened_despite_damage(machine.copy().medium()).unwrap());
            assert_eq!(repaired(&machine).unwrap().left, [], "{context}");
            assert_eq!(checked(&machine).unwrap(), [], "{context}");
            look(&mut machine.open().unwrap());
        }
    }
}

/// The stored version below logged bytes was cleaned away after the block was written anew: nothing is missing.
#[test]
fn logged_bytes_whose_block_was_written_later_need_no_version_below() {
    let task = &Task::at(Time::ZERO);
    for is_zoned in [false, true] {
        let text = "sfs:segment=64K,cleaner=greedy,checkpoint-segments=4096";
        let machine = Machine::new(text, 16, 64, is_zoned);
        let mut sfs = machine.create();
        let inode = sfs.make(task, InodeNumber::ROOT, b"file", &NEW).unwrap();
        let mut expected = noise(1, 400 * BLOCK);
        sfs.write(task, inode, 0, &expected).unwrap();
        sfs.sync(task).unwrap();
        let mut random = Random::new(5, "logged and written");
        for round in 0..900 {
            let at = random.below(400) as usize * BLOCK + random.below(4000) as usize;
            let bytes = noise(round, 1 + random.below(90) as usize);
            sfs.write(task, inode, at as u64, &bytes).unwrap();
            expected[at..at + bytes.len()].copy_from_slice(&bytes);
            sfs.sync_file(task, inode, Durable::All).unwrap();
            if round % 60 == 59 {
                let killed = machine.copy();
                let mut sfs = killed.open().unwrap();
                assert!(sfs.damage().is_empty(), "zones {is_zoned}, round {round}: {:?}", sfs.damage());
                assert_eq!(sfs.check(task).unwrap(), [], "zones {is_zoned}, round {round}");
                assert!(read(task, &mut sfs) == expected, "zones {is_zoned}, round {round}");
            }
        }
        let event = |name: &str| sfs.account().events.iter().find(|(event, _)| *event == name).unwrap().1;
        // More than the volume has, and most between two checkpoints: the log freed segments.
        assert!(event("segments written") > 64 && event("checkpoints") <= 12, "{:?}", sfs.account().events);
        assert!(counts(&sfs).1 > 800);
    }
}
