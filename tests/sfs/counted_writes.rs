//! The writes that count in the history of blocks (`hotness=`): those of the host, or copies made by cleaning, too. Counts
//! are in the log, so that a checkpoint, a crash and another mount's options leave them as they are.

use super::machine::Machine;
use flashpath::fs::Durable;
use flashpath::fs::sfs::{FileKind, InodeNumber, NewFile, Sfs};
use flashpath::label::{Cause, Content};
use flashpath::random::Random;
use flashpath::task::Task;
use flashpath::time::Time;

const BLOCK: u64 = 4096;
const FILE_BLOCKS: u64 = 600;
const BY_HOST: &str = "sfs:segment=64K,groups=3,cleaner=cost-hotness,checkpoint-segments=4096,fsync=blocks";
const ALL: &str = "sfs:segment=64K,groups=3,cleaner=cost-hotness,checkpoint-segments=4096,fsync=blocks,hotness=all";
const NEW: NewFile<'static> =
    NewFile { kind: FileKind::Regular, permissions: 0o644, user: 0, group: 0, device: 0, target: &[], attributes: &[] };

/// The sums of write counts and of modification times of all live blocks, with no segment open.
fn sums(sfs: &Sfs) -> (u64, u128) {
    let segments = sfs.census().segments;
    (segments.iter().map(|it| it.writes).sum(), segments.iter().map(|it| it.modified).sum())
}

/// A volume in which a file was written once and then in random blocks, and synced, when the power fails; the blocks of
/// files that were written for the host, and those that were copied by cleaning.
fn worked(text: &'static str, is_zoned: bool) -> (Machine, u64, u64) {
    let task = &Task::at(Time::ZERO);
    let machine = Machine::new(text, 16, 72, is_zoned);
    let mut sfs = machine.create();
    let inode = sfs.make(task, InodeNumber::ROOT, b"file", &NEW).unwrap();
    sfs.write(task, inode, 0, &vec![1; (FILE_BLOCKS * BLOCK) as usize]).unwrap();
    let mut random = Random::new(3, "counted writes");
    for round in 0..3000_u64 {
        sfs.write(task, inode, random.below(FILE_BLOCKS) * BLOCK, &vec![round as u8; BLOCK as usize]).unwrap();
        if round % 16 == 15 {
            sfs.sync_file(task, inode, Durable::Data).unwrap();
        }
    }
    let sent = sfs.account().sent;
    let of = |cause: Cause| sent.get(cause, Content::Data);
    let (written, copied) = (of(Cause::HostWrite), of(Cause::SegmentCleaning));
    assert!(copied > 1000, "{copied} blocks were copied");
    drop(sfs);
    machine.lose_power(&mut random);
    (machine, written, copied)
}

#[test]
fn copies_count_as_writes_only_if_all_writes_count_and_counts_survive_a_crash() {
    let task = &Task::at(Time::ZERO);
    for (text, other) in [(BY_HOST, ALL), (ALL, BY_HOST)] {
        for is_zoned in [false, true] {
            let (machine, written, copied) = worked(text, is_zoned);
            let expected = if text == ALL { written + copied } else { written };
            let mut times = Vec::new();
            // A log is read as it was written, whatever the mount counts.
            for next in [text, other] {
                let context = format!("{text}, then {next}, zones {is_zoned}");
                let copy = machine.copy();
                for mount in 0..2 {
                    let mut sfs = super::open(copy.medium(), next);
                    let (writes, modified) = sums(&sfs);
                    assert_eq!(writes, expected, "{context}, mount {mount}");
                    times.push(modified);
                    assert_eq!(sfs.check(task).unwrap(), [], "{context}, mount {mount}");
                    sfs.unmount(task).unwrap();
                }
            }
            assert!(times.iter().all(|time| *time == times[0]), "{text}, zones {is_zoned}: {times:?}");
        }
    }
}
