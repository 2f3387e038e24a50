//! Power cuts directed at the rules for segments that the log frees between two checkpoints.
//!
//! Random loads seldom reach these states: the log must free segments, and the power must fail before the next
//! checkpoint.

use super::calls::{Call, find};
use super::history::{History, look};
use super::machine::{Case, Device, Machine};
use super::{IDENTITY, settings};
use flashpath::device::{BlockDevice, Lba};
use flashpath::fs::Durable;
use flashpath::fs::sfs::{Medium, Sfs, check, repair, segment_map};
use flashpath::label::{Cause, Content, Label};
use flashpath::random::Random;
use flashpath::task::Task;
use flashpath::time::Time;
use std::ops::Range;

const BLOCK: u64 = 4096;
const SEGMENTS: u64 = 72;
const SUPERBLOCK: Label = Label::first(Cause::Checkpoint, Content::Metadata);
/// Data blocks that fill a segment of 64 KiB.
const CAPACITY: u64 = 15;
/// Blocks of the file that fills the volume.
const FULL: u64 = 540;
/// Distance of blocks that have separate map blocks.
const STRIDE: u64 = 512;
/// A checkpoint is taken only for lack of space.
const TEXT: &str = "sfs:segment=64K,groups=1,cleaner=greedy,checkpoint-segments=4096";

fn write(path: &str, block: u64, blocks: u64) -> Call {
    Call::Write { path: path.to_string(), offset: block * BLOCK, length: blocks * BLOCK }
}

fn sync_file(path: &str) -> Call {
    Call::SyncFile(path.to_string(), Durable::All)
}

fn event(sfs: &Sfs, name: &str) -> u64 {
    sfs.account().events.iter().find(|(event, _)| *event == name).map_or(0, |(_, count)| *count)
}

/// A nearly full volume and its model: one file that fills it, and one whose map blocks fill segments of their own.
fn nearly_full(task: &Task<'_>, is_zoned: bool) -> (Machine, History) {
    let machine = Machine::new(TEXT, 16, SEGMENTS, is_zoned);
    let mut sfs = machine.create();
    let mut calls = vec![Call::Create("/full".to_string()), Call::Create("/mapped".to_string())];
    calls.extend((0..FULL / CAPACITY).map(|part| write("/full", part * CAPACITY, CAPACITY)));
    for call in &calls {
        call.run(task, &mut sfs, 1).unwrap();
    }
    let mapped = find(task, &mut sfs, "/mapped").unwrap();
    // Reserved beyond the end: no data to read, but many map blocks.
    (0..60).for_each(|block| sfs.allocate(task, mapped, block * STRIDE * BLOCK, BLOCK, true).unwrap());
    let history = History::of(&look(task, &mut sfs).unwrap(), 1);
    sfs.unmount(task).unwrap();
    (machine, history)
}

/// Free segments after a mount.
fn free(machine: &Machine) -> u64 {
    let machine = machine.copy();
    let medium = match &machine.device {
        Device::Blocks(disk) => Medium::Blocks(Box::new(disk.clone())),
        Device::Zones(zones) => Medium::Zones(Box::new(zones.clone())),
    };
    let map = segment_map(medium, &settings(TEXT)).unwrap();
    map.segments.iter().filter(|segment| segment.state == "free").count() as u64
}

/// Makes all calls. Returns the device operations, the checkpoints, and the segments written.
fn work(task: &Task<'_>, machine: &Machine, history: &mut History, calls: &[Call]) -> (u64, u64, u64) {
    let (sfs, operations) = machine.work(task, history, calls, None);
    (operations, event(&sfs, "checkpoints"), event(&sfs, "segments written"))
}

/// Cuts the power at each of these operations, and recovers.
fn cut_at(task: &Task<'_>, base: &(Machine, History), calls: &[Call], operations: Range<u64>) {
    for cut in operations {
        let case = Case(format!("cut at operation {cut}"));
        let (machine, mut history) = (base.0.copy(), base.1.clone());
        machine.work(task, &mut history, calls, Some(cut));
        machine.lose_power(&mut Random::new(cut, "directed cuts"));
        machine.recover(task, &history).unwrap_or_else(|why| panic!("{}:\n    {why}", case.0));
    }
}

/// Cuts the power at each operation of a recovery.
fn cut_recovery(task: &Task<'_>, machine: &Machine, history: &History) {
    let uncut = machine.copy();
    uncut.recover(task, history).unwrap();
    for cut in 0..uncut.power.operations() {
        let case = Case(format!("recovery is cut at operation {cut}"));
        let machine = machine.copy();
        machine.power.cut_after(cut);
        assert!(machine.open().is_err() || !machine.power.is_off(), "a mount fails without power");
        machine.lose_power(&mut Random::new(cut, "directed cuts"));
        machine.recover(task, history).unwrap_or_else(|why| panic!("{}:\n    {why}", case.0));
    }
}

/// Deletes the file with many map blocks, and overwrites the full one: the log frees the segments of both.
fn cut_where_the_log_frees(task: &Task<'_>, is_zoned: bool) {
    let base = nearly_full(task, is_zoned);
    let mut calls = vec![Call::Unlink("/mapped".to_string())];
    calls.extend((0..FULL / CAPACITY).map(|part| write("/full", part * CAPACITY, CAPACITY)));
    calls.push(sync_file("/full"));
    let (machine, mut history) = (base.0.copy(), base.1.clone());
    let (operations, checkpoints, written) = work(task, &machine, &mut history, &calls);
    let free = free(&base.0);
    assert!(checkpoints == 0 && written > free, "{checkpoints} checkpoints, {written} segments, {free} were free");
    cut_at(task, &base, &calls, operations / 2..operations + 1);
    cut_recovery(task, &machine, &history);
}

/// Covers three rules for segments freed by the log: the log records it durably before; the records are complete, even
/// without a sync; and none is a segment of metadata, as recovery reads the maps of files that the log deletes.
#[test]
fn recovery_needs_no_segment_that_the_log_freed_on_a_disk() {
    let task = &Task::at(Time::ZERO);
    cut_where_the_log_frees(task, false);
}

/// The same on zones, where a freed segment is a reset zone.
#[test]
fn recovery_needs_no_segment_that_the_log_freed_on_zones() {
    let task = &Task::at(Time::ZERO);
    cut_where_the_log_frees(task, true);
}

/// A repair ends with a checkpoint, which fits only into segments that the log freed.
#[test]
fn a_volume_whose_log_continues_in_freed_segments_can_be_checked_and_repaired() {
    let task = &Task::at(Time::ZERO);
    let (machine, mut history) = nearly_full(task, false);
    let mut calls = vec![Call::Unlink("/mapped".to_string())];
    calls.extend((0..FULL / CAPACITY).map(|part| write("/full", part * CAPACITY, CAPACITY)));
    calls.push(sync_file("/full"));
    let (_, checkpoints, _) = work(task, &machine, &mut history, &calls);
    assert_eq!(checkpoints, 0);
    machine.lose_power(&mut Random::new(0, "directed cuts"));
    let Device::Blocks(disk) = &machine.device else { unreachable!("the medium is a disk") };
    let medium = || Medium::Blocks(Box::new(disk.clone()));
    assert_eq!(check(medium(), &settings(TEXT)).unwrap(), []);
    // The second superblock, in the middle of the first segment's space.
    disk.clone().write(Lba(8), &[0; BLOCK as usize], SUPERBLOCK, Time::ZERO).unwrap();
    let repaired = repair(medium(), &settings(TEXT), IDENTITY).unwrap();
    assert_eq!((repaired.findings.len(), repaired.left), (1, vec![]), "{:?}", repaired.findings);
    machine.recover(task, &history).unwrap();
}

/// Covers the rule that a segment with a part of the log since the last checkpoint is not freed before the next one,
/// even if no block in it is live: otherwise the log would have a gap, and end there.
#[test]
fn a_segment_of_the_log_without_live_blocks_is_freed_by_the_next_checkpoint() {
    let task = &Task::at(Time::ZERO);
    let base = nearly_full(task, false);
    // The same calls again and again: the log may free only the segments that it freed first.
    let hot = (0..60).map(|part| write("/full", part % 6 * CAPACITY, CAPACITY));
    let calls: Vec<Call> = hot.chain([sync_file("/full")]).collect();
    let (machine, mut history) = (base.0.copy(), base.1.clone());
    let (operations, _, written) = work(task, &machine, &mut history, &calls);
    let free = free(&base.0);
    assert!(written > free + 20, "{written} segments, {free} were free");
    cut_at(task, &base, &calls, operations - 40..operations);
    machine.lose_power(&mut Random::new(0, "directed cuts"));
    machine.recover(task, &history).unwrap();
}
