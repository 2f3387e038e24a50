//! Blocks that fallocate reserves: what was synced of them is there after a crash, as a file's size is.

use super::calls::{Call, find};
use super::history::{History, look};
use super::machine::Machine;
use flashpath::device::Account;
use flashpath::fs::Durable;
use flashpath::fs::sfs::{FileKind, InodeNumber, NewFile, Sfs};
use flashpath::random::Random;
use flashpath::task::Task;
use flashpath::time::Time;

const BLOCK: u64 = 4096;

fn allocate(path: &str, block: u64, blocks: u64, keeps_size: bool) -> Call {
    Call::Allocate { path: path.to_string(), offset: block * BLOCK, length: blocks * BLOCK, keeps_size }
}

fn write(path: &str, block: u64, blocks: u64) -> Call {
    Call::Write { path: path.to_string(), offset: block * BLOCK, length: blocks * BLOCK }
}

fn sync(path: &str, what: Durable) -> Call {
    Call::SyncFile(path.to_string(), what)
}

/// Makes calls on a new volume, cuts the power behind them, and holds what is found against them. Answers size and
/// blocks of the file.
fn after_a_crash(task: &Task<'_>, is_zoned: bool, calls: &[Call]) -> (u64, u64) {
    let machine = Machine::new("sfs:segment=64K", 16, 400, is_zoned);
    let mut sfs = machine.create();
    let mut history = History::of(&look(task, &mut sfs).unwrap(), 0);
    for call in [&[Call::Create("/f".to_string()), Call::Create("/other".to_string())], calls].concat() {
        let made = call.run(task, &mut sfs, history.step()).unwrap();
        history.apply(&call, made);
        history.answered(&call);
    }
    drop(sfs);
    machine.lose_power(&mut Random::new(1, "reservations"));
    let (mut sfs, _) = machine.recover(task, &history).unwrap();
    let inode = find(task, &mut sfs, "/f").unwrap();
    let attributes = sfs.attributes(task, inode).unwrap();
    (attributes.size, attributes.blocks)
}

/// `fallocate -l 100M m/f; sync m/f; kill -9`: the size came back, and the 205,208 blocks of 512 bytes had become 0. No
/// record of the log told of a reservation (xfstests generic/468).
#[test]
fn what_was_reserved_and_synced_is_reserved_after_a_crash() {
    let task = &Task::at(Time::ZERO);
    for is_zoned in [false, true] {
        for what in [Durable::All, Durable::Data] {
            let calls = [allocate("/f", 0, 1200, false), sync("/f", what)];
            assert_eq!(after_a_crash(task, is_zoned, &calls), (1200 * BLOCK, 1200 + 3), "{what:?}");
            let calls = [write("/f", 0, 2), allocate("/f", 0, 8, true), sync("/f", what)];
            assert_eq!(after_a_crash(task, is_zoned, &calls), (2 * BLOCK, 8), "beyond the end, {what:?}");
            let zero = Call::ZeroRange { path: "/f".to_string(), offset: BLOCK, length: 4 * BLOCK, keeps_size: false };
            let calls = [write("/f", 0, 8), sync("/f", what), zero, sync("/f", what)];
            assert_eq!(after_a_crash(task, is_zoned, &calls), (8 * BLOCK, 8), "zeroed, {what:?}");
            let punch = Call::Punch { path: "/f".to_string(), offset: 2 * BLOCK, length: 3 * BLOCK };
            let calls = [allocate("/f", 0, 8, true), sync("/f", what), punch, sync("/f", what)];
            assert_eq!(after_a_crash(task, is_zoned, &calls), (0, 5), "punched, {what:?}");
        }
    }
}

/// What is written behind the end that was synced does not count after a crash, and took the reservation with it.
#[test]
fn a_reservation_that_was_written_and_not_synced_is_a_reservation_again() {
    let task = &Task::at(Time::ZERO);
    for is_zoned in [false, true] {
        let calls = [
            allocate("/f", 0, 8, true),
            sync("/f", Durable::All),
            write("/f", 0, 6),
            // It is written out, and the log is sealed behind it.
            Call::Wait(6_000),
            sync("/other", Durable::All),
        ];
        let (size, blocks) = after_a_crash(task, is_zoned, &calls);
        assert!((size, blocks) == (0, 8) || size == 6 * BLOCK, "{size} {blocks}");
    }
}

/// A file that is cut off where it ends loses what is reserved behind, as on the kernel's file systems; and what is
/// gone stays so.
#[test]
fn a_file_that_is_cut_off_or_unlinked_has_no_reservation_left_after_a_crash() {
    let task = &Task::at(Time::ZERO);
    for is_zoned in [false, true] {
        let cut = |size| Call::Truncate("/f".to_string(), size);
        let calls = [write("/f", 0, 2), allocate("/f", 0, 8, true), sync("/f", Durable::All), cut(2 * BLOCK)];
        let synced = [&calls[..], &[sync("/f", Durable::Data)]].concat();
        assert_eq!(after_a_crash(task, is_zoned, &synced), (2 * BLOCK, 2));
        let again = [&calls[..], &[allocate("/f", 4, 2, true), sync("/f", Durable::All)]].concat();
        assert_eq!(after_a_crash(task, is_zoned, &again), (2 * BLOCK, 4));
        let unlink = [
            allocate("/other", 0, 800, false),
            sync("/other", Durable::All),
            Call::Unlink("/other".to_string()),
            sync("/f", Durable::All),
            Call::SyncFile(String::new(), Durable::All),
        ];
        assert_eq!(after_a_crash(task, is_zoned, &unlink), (0, 0));
    }
}

fn new_file(kind: FileKind) -> NewFile<'static> {
    NewFile { kind, permissions: 0o644, user: 0, group: 0, device: 0, target: b"", attributes: &[] }
}

fn written(sfs: &Sfs) -> u64 {
    let account: Account = sfs.account();
    account.sent.total()
}

/// A record for each range, not for each block.
#[test]
fn an_fsync_of_a_large_reservation_writes_a_block() {
    let task = &Task::at(Time::ZERO);
    let machine = Machine::new("sfs:segment=256K", 64, 400, false);
    let mut sfs = machine.create();
    let new = new_file(FileKind::Regular);
    let inode = sfs.make(task, InodeNumber::ROOT, b"f", &new).unwrap();
    sfs.sync(task).unwrap();
    sfs.allocate(task, inode, 0, 5000 * BLOCK, false).unwrap();
    let before = written(&sfs);
    sfs.sync_file(task, inode, Durable::All).unwrap();
    assert_eq!(written(&sfs) - before, 1);
}

/// Numbers of virtual blocks are not given out twice between two checkpoints, and so rise far above the blocks of a
/// small volume: what was synced with such a number was left out by recovery, in silence.
#[test]
fn a_file_that_was_synced_behind_many_short_reservations_is_there_after_a_crash() {
    let task = &Task::at(Time::ZERO);
    let mut calls = Vec::new();
    for _ in 0..60 {
        calls.push(allocate("/other", 0, 250, false));
        calls.push(Call::Truncate("/other".to_string(), 0));
    }
    calls.extend([write("/f", 0, 8), sync("/f", Durable::All)]);
    assert_eq!(after_a_crash(task, false, &calls), (8 * BLOCK, 8));
}

/// Inodes are sixteen to a block, so that there can be many more of them than blocks: recovery took those whose number
/// is larger than twice the blocks for damage, and left them out.
#[test]
fn a_file_that_was_synced_behind_more_inodes_than_blocks_is_there_after_a_crash() {
    let task = &Task::at(Time::ZERO);
    let machine = Machine::new("sfs:segment=64K", 16, 200, false);
    let mut sfs = machine.create();
    let new = new_file(FileKind::Fifo);
    for number in 0..2 * 200 * 16 + 200 {
        sfs.make(task, InodeNumber::ROOT, format!("{number}").as_bytes(), &new).unwrap();
    }
    sfs.sync(task).unwrap();
    let last = sfs.make(task, InodeNumber::ROOT, b"last", &NewFile { kind: FileKind::Regular, ..new }).unwrap();
    sfs.write(task, last, 0, b"synced").unwrap();
    sfs.sync_file(task, last, Durable::All).unwrap();
    drop(sfs);
    machine.lose_power(&mut Random::new(1, "inodes"));
    let mut sfs = machine.open().unwrap();
    assert_eq!(sfs.check(task).unwrap(), []);
    let last = sfs.lookup(task, InodeNumber::ROOT, b"last").unwrap();
    let mut bytes = [0; 6];
    sfs.read(task, last, 0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"synced");
}
