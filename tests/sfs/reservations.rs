//! Blocks reserved by fallocate: synced reservations survive a crash, like a file's size.

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

/// Makes calls on a new volume, cuts the power after them, and checks the recovered content. Returns size and blocks of
/// the file.
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

/// Regression: after `fallocate -l 100M m/f; sync m/f; kill -9`, the size was recovered, but the 205,208 blocks of 512
/// bytes had become 0. No log record described reservations (xfstests generic/468).
#[test]
fn a_synced_reservation_survives_a_crash() {
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

/// Regression: data written beyond the synced end is lost in a crash, and the reservation was lost with it.
#[test]
fn an_unsynced_write_into_a_reservation_leaves_the_reservation_after_a_crash() {
    let task = &Task::at(Time::ZERO);
    for is_zoned in [false, true] {
        let calls = [
            allocate("/f", 0, 8, true),
            sync("/f", Durable::All),
            write("/f", 0, 6),
            // It is written back, and the log is sealed after it.
            Call::Wait(6_000),
            sync("/other", Durable::All),
        ];
        let (size, blocks) = after_a_crash(task, is_zoned, &calls);
        assert!((size, blocks) == (0, 8) || size == 6 * BLOCK, "{size} {blocks}");
    }
}

/// A truncation to the current size frees blocks reserved after it, as on the kernel's file systems, and they stay
/// freed.
#[test]
fn a_truncated_or_unlinked_file_has_no_reservation_after_a_crash() {
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

/// One record for each range, not for each block.
#[test]
fn an_fsync_of_a_large_reservation_writes_one_block() {
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

/// Regression: virtual block numbers are not reused between two checkpoints, and so rise far above the blocks of a
/// small volume. Recovery silently skipped synced data with such numbers.
#[test]
fn a_file_synced_after_many_short_reservations_survives_a_crash() {
    let task = &Task::at(Time::ZERO);
    let mut calls = Vec::new();
    for _ in 0..60 {
        calls.push(allocate("/other", 0, 250, false));
        calls.push(Call::Truncate("/other".to_string(), 0));
    }
    calls.extend([write("/f", 0, 8), sync("/f", Durable::All)]);
    assert_eq!(after_a_crash(task, false, &calls), (8 * BLOCK, 8));
}

/// Regression: with sixteen inodes per block, there can be many more inodes than blocks. Recovery took inodes with
/// numbers larger than twice the blocks for damage, and skipped them.
#[test]
fn a_file_synced_after_more_inodes_than_blocks_survives_a_crash() {
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
