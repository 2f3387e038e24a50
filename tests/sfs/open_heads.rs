//! Power cuts while the segments of several groups are open, each with blocks before and behind the last seal.

use super::calls::Call;
use super::history::{History, look};
use super::machine::{Case, Machine, seeds};
use super::settings;
use flashpath::fs::Durable;
use flashpath::fs::sfs::segment_map;
use flashpath::random::Random;
use flashpath::task::Task;
use flashpath::time::Time;
use std::collections::BTreeSet;

const BLOCK: u64 = 4096;
const SEGMENTS: u64 = 72;
/// Blocks that may wait: the limit is a segment.
const WAITING: u64 = 16;
/// New blocks go to the groups that the names state, or to that of new blocks. A checkpoint is taken only for lack of space.
const TEXT: &str =
    "sfs:segment=64K,cleaner=greedy,checkpoint-segments=4096,dirty=1M,fsync=blocks,short-lived=.short,long-lived=.long";
/// A file for each of three groups.
const FILES: [&str; 3] = ["/a.short", "/b.long", "/c"];
const ROUNDS: u64 = 5;

/// An empty volume with the files.
fn volume(text: &'static str, task: &Task<'_>, is_zoned: bool) -> (Machine, History) {
    let machine = Machine::new(text, 16, SEGMENTS, is_zoned);
    let mut sfs = machine.create();
    FILES.iter().for_each(|path| {
        Call::Create(path.to_string()).run(task, &mut sfs, 1).unwrap();
    });
    let history = History::of(&look(task, &mut sfs).unwrap(), 1);
    sfs.unmount(task).unwrap();
    (machine, history)
}

/// Calls that append to each file and sync it, then append to all until blocks are written out without a seal. Between
/// them, synced blocks are overwritten, which moves them to other groups.
fn calls(random: &mut Random) -> Vec<Call> {
    let write = |file: usize, block: u64, blocks: u64| Call::Write {
        path: FILES[file].to_string(),
        offset: block * BLOCK,
        length: blocks * BLOCK,
    };
    let (mut calls, mut ends) = (Vec::new(), [0; FILES.len()]);
    let mut append = |file: usize, blocks: u64| {
        ends[file] += blocks;
        (write(file, ends[file] - blocks, blocks), ends[file])
    };
    for _ in 0..ROUNDS {
        for (file, path) in FILES.iter().enumerate() {
            calls.push(append(file, 1 + random.below(4)).0);
            calls.push(Call::SyncFile(path.to_string(), Durable::All));
        }
        for file in 0..FILES.len() {
            let (call, end) = append(file, WAITING / 3 + random.below(3));
            calls.extend([write(file, random.below(end), 1), call]);
        }
    }
    calls
}

/// Groups with an open segment on the device.
fn open_heads(machine: &Machine) -> BTreeSet<u8> {
    let map = segment_map(machine.medium(), &settings(TEXT)).unwrap();
    map.heads.iter().map(|head| head.group).collect()
}

fn cut(is_zoned: bool) {
    let task = &Task::at(Time::ZERO);
    let base = volume(TEXT, task, is_zoned);
    for seed in 0..seeds() {
        let calls = calls(&mut Random::new(seed, "open heads"));
        // Each round ends with appends: they are written out before the next sync.
        let operations = |calls: &[Call]| base.0.copy().work(task, &mut base.1.clone(), calls, None).1;
        let of_round = calls.len() / ROUNDS as usize;
        let synced = calls.len() - of_round / 2;
        let (before, all) = (operations(&calls[..synced]), operations(&calls));
        assert!(before < all, "blocks are written out behind the seal");
        let (mut several, mut recovered) = (0, 0);
        for cut in 0..=all {
            let case = Case(format!("seed {seed}, cut at operation {cut}"));
            let (machine, mut history) = (base.0.copy(), base.1.clone());
            machine.work(task, &mut history, &calls, Some(cut));
            machine.lose_power(&mut Random::new(cut, "open heads"));
            several += u64::from(open_heads(&machine).len() >= FILES.len());
            machine.recover(task, &history).unwrap_or_else(|why| panic!("{}:\n    {why}", case.0));
            recovered += 1;
        }
        assert!(several * 8 > recovered, "{several} of {recovered} cuts were at 3 open segments or more");
    }
}

#[test]
fn a_cut_at_three_open_segments_loses_nothing_that_was_synced_on_a_disk() {
    cut(false);
}

#[test]
fn a_cut_at_three_open_segments_loses_nothing_that_was_synced_on_zones() {
    cut(true);
}

/// The groups' blocks share a segment unless they fill one of their own.
#[test]
fn a_mixed_rest_has_one_open_segment_and_the_groups_none() {
    const MIXED: &str = "sfs:segment=64K,cleaner=greedy,checkpoint-segments=4096,dirty=1M,fsync=blocks,short-lived=.short,\
                         long-lived=.long,rest=mixed";
    let task = &Task::at(Time::ZERO);
    for is_zoned in [false, true] {
        for (text, is_mixed) in [(TEXT, false), (MIXED, true)] {
            let (machine, history) = volume(text, task, is_zoned);
            let calls = calls(&mut Random::new(5, "a mixed rest"));
            let (mut sfs, _) = machine.work(task, &mut history.clone(), &calls, None);
            sfs.sync(task).unwrap();
            drop(sfs);
            let open = open_heads(&machine);
            assert_eq!(open.len() == 1, is_mixed, "{text}, zones {is_zoned}: {open:?}");
        }
    }
}
