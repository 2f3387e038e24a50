//! Cuts that are aimed at one rule each of what the log may free between two checkpoints.
//!
//! Random loads seldom come there: segments must be freed by the log, and the power must fail before the next
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
/// Blocks of files that fill a segment of 64 KiB.
const CAPACITY: u64 = 15;
/// Of the file that fills the volume.
const FULL: u64 = 540;
/// Blocks that lie so far apart have a map block each.
const STRIDE: u64 = 512;
/// A checkpoint is taken only where there is too little room.
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

/// A volume that is nearly full, and what it holds: a file that fills it, and one whose map blocks fill segments of
/// their own.
fn nearly_full(task: &Task<'_>, is_zoned: bool) -> (Machine, History) {
    let machine = Machine::new(TEXT, 16, SEGMENTS, is_zoned);
    let mut sfs = machine.create();
    let mut calls = vec![Call::Create("/full".to_string()), Call::Create("/mapped".to_string())];
    calls.extend((0..FULL / CAPACITY).map(|part| write("/full", part * CAPACITY, CAPACITY)));
    for call in &calls {
        call.run(task, &mut sfs, 1).unwrap();
    }
    let mapped = find(task, &mut sfs, "/mapped").unwrap();
    // Reserved behind its end: there is nothing to read, and much to map.
    (0..60).for_each(|block| sfs.allocate(task, mapped, block * STRIDE * BLOCK, BLOCK, true).unwrap());
    let history = History::of(&look(task, &mut sfs).unwrap(), 1);
    sfs.unmount(task).unwrap();
    (machine, history)
}

/// Segments that are free when the volume is mounted.
fn free(machine: &Machine) -> u64 {
    let machine = machine.copy();
    let medium = match &machine.device {
        Device::Blocks(disk) => Medium::Blocks(Box::new(disk.clone())),
        Device::Zones(zones) => Medium::Zones(Box::new(zones.clone())),
    };
    let map = segment_map(medium, &settings(TEXT)).unwrap();
    map.segments.iter().filter(|segment| segment.state == "free").count() as u64
}

/// All calls are made: answers the operations of the device, the checkpoints, and the segments written.
fn work(task: &Task<'_>, machine: &Machine, history: &mut History, calls: &[Call]) -> (u64, u64, u64) {
    let (sfs, operations) = machine.work(task, history, calls, None);
    (operations, event(&sfs, "checkpoints"), event(&sfs, "segments written"))
}

/// Cuts the power at each of these operations of the calls, and recovers.
fn cut_at(task: &Task<'_>, base: &(Machine, History), calls: &[Call], operations: Range<u64>) {
    for cut in operations {
        let case = Case(format!("cut at operation {cut}"));
        let (machine, mut history) = (base.0.copy(), base.1.clone());
        machine.work(task, &mut history, calls, Some(cut));
        machine.lose_power(&mut Random::new(cut, "directed cuts"));
        machine.recover(task, &history).unwrap_or_else(|why| panic!("{}:\n    {why}", case.0));
    }
}

/// Cuts recovery at each of its operations.
fn cut_recovery(task: &Task<'_>, machine: &Machine, history: &History) {
    let uncut = machine.copy();
    uncut.recover(task, history).unwrap();
    for cut in 0..uncut.power.operations() {
        let case = Case(format!("recovery is cut at operation {cut}"));
        let machine = machine.copy();
        machine.power.cut_after(cut);
        assert!(machine.open().is_err() || !machine.power.is_off(), "a mount is answered without power");
        machine.lose_power(&mut Random::new(cut, "directed cuts"));
        machine.recover(task, history).unwrap_or_else(|why| panic!("{}:\n    {why}", case.0));
    }
}

/// The file with many map blocks is deleted, and the full one is written anew: the log frees segments that both leave.
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

/// Holds three rules of segments that the log frees: that it says so before, durably; that it says all, with no call to
/// sync anything; and that none is one of metadata, as recovery reads the map of a file that the log says is gone.
#[test]
fn what_the_log_frees_on_a_disk_is_needed_by_no_recovery() {
    let task = &Task::at(Time::ZERO);
    cut_where_the_log_frees(task, false);
}

/// The same, where a segment that is free is a zone that is reset.
#[test]
fn what_the_log_frees_on_zones_is_needed_by_no_recovery() {
    let task = &Task::at(Time::ZERO);
    cut_where_the_log_frees(task, true);
}

/// A repair ends with a checkpoint, for which there is no room but in what the log freed.
#[test]
fn a_volume_whose_log_goes_on_in_what_it_freed_can_be_checked_and_repaired() {
    let task = &Task::at(Time::ZERO);
    let (machine, mut history) = nearly_full(task, false);
    let mut calls = vec![Call::Unlink("/mapped".to_string())];
    calls.extend((0..FULL / CAPACITY).map(|part| write("/full", part * CAPACITY, CAPACITY)));
    calls.push(sync_file("/full"));
    let (_, checkpoints, _) = work(task, &machine, &mut history, &calls);
    assert_eq!(checkpoints, 0);
    machine.lose_power(&mut Random::new(0, "directed cuts"));
    let Device::Blocks(disk) = &machine.device else { unreachable!("it lies on blocks") };
    let medium = || Medium::Blocks(Box::new(disk.clone()));
    assert_eq!(check(medium(), &settings(TEXT)).unwrap(), []);
    // The second superblock, in the middle of the first segment's room.
    disk.clone().write(Lba(8), &[0; BLOCK as usize], SUPERBLOCK, Time::ZERO).unwrap();
    let repaired = repair(medium(), &settings(TEXT), IDENTITY).unwrap();
    assert_eq!((repaired.findings.len(), repaired.left), (1, vec![]), "{:?}", repaired.findings);
    machine.recover(task, &history).unwrap();
}

/// Holds the rule that a segment with a part of the log since the last checkpoint waits for the next one, though
/// nothing in it is live: without it the log would have a gap, and end there.
#[test]
fn a_segment_of_the_log_waits_for_the_checkpoint_when_all_in_it_is_dead() {
    let task = &Task::at(Time::ZERO);
    let base = nearly_full(task, false);
    // The same again and again: what the log frees first is all that it may free.
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
