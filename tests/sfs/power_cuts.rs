//! All short histories, cut at every operation of the device.
//!
//! The method is that of ACE (Mohan et al., "Finding Crash-Consistency Bugs with Bounded Black-Box Crash Testing", OSDI
//! 2018): one or two calls of each kind on a few files, each followed by a sync of the file, of its directory, of
//! everything, or by none.

use super::calls::Call;
use super::history::{History, look};
use super::machine::{Case, Device, Machine, seeds};
use super::model::split;
use flashpath::fs::Durable;
use flashpath::fs::sfs::{FileKind, SfsError};
use flashpath::random::Random;
use flashpath::task::Task;
use flashpath::time::Time;

/// The minimum number of segments for volumes of this size.
const SEGMENTS: u64 = 56;
const BLOCK: u64 = 4096;
/// One in this many histories of two calls is run per seed.
const SHARE: u64 = 4;

/// The calls of a history: one of each kind, with edge cases of some.
fn calls() -> Vec<Call> {
    let text = str::to_string;
    let write = |path: &str, offset, length| Call::Write { path: text(path), offset, length };
    let allocate =
        |path: &str, offset, length, keeps_size| Call::Allocate { path: text(path), offset, length, keeps_size };
    vec![
        Call::Create(text("/new")),
        Call::Create(text("/A/new")),
        write("/foo", 0, BLOCK),
        write("/foo", 2 * BLOCK + 100, BLOCK),
        write("/foo", 5 * BLOCK, 100),
        write("/A/bar", 50, 3 * BLOCK),
        Call::Truncate(text("/foo"), 0),
        Call::Truncate(text("/foo"), BLOCK + 10),
        Call::Truncate(text("/foo"), 6 * BLOCK),
        Call::Punch { path: text("/foo"), offset: 0, length: BLOCK + 7 },
        allocate("/A/bar", 0, 3 * BLOCK, false),
        allocate("/foo", BLOCK, 6 * BLOCK, true),
        Call::ZeroRange { path: text("/foo"), offset: 100, length: 4 * BLOCK, keeps_size: false },
        Call::Link(text("/foo"), text("/A/link")),
        Call::Symlink(text("/A/new"), 40),
        Call::Unlink(text("/foo")),
        Call::Unlink(text("/A/bar")),
        Call::Rename(text("/foo"), text("/new")),
        Call::Rename(text("/foo"), text("/A/bar")),
        Call::Rename(text("/A/bar"), text("/foo")),
        Call::Rename(text("/A"), text("/E")),
        Call::Exchange(text("/A"), text("/foo")),
        Call::MakeDirectory(text("/A/new")),
        Call::RemoveDirectory(text("/E")),
        Call::Whiteout(text("/foo"), text("/new")),
        Call::Whiteout(text("/A"), text("/E")),
        Call::SetAttribute(text("/foo"), "user.a", 30),
        Call::SetAttribute(text("/foo"), "user.a", 6000),
        Call::SetAttribute(text("/A/bar"), "user.b", 64 << 10),
    ]
}

/// The syncs that can follow a call: none, the file, its data, its directory, everything.
fn syncs(call: &Call) -> Vec<Option<Call>> {
    let path = match call {
        Call::Create(path) | Call::MakeDirectory(path) | Call::Symlink(path, _) | Call::Truncate(path, _) => path,
        Call::Write { path, .. } | Call::Punch { path, .. } => path,
        Call::Allocate { path, .. } | Call::ZeroRange { path, .. } => path,
        Call::Link(_, path) | Call::Rename(_, path) | Call::Exchange(_, path) | Call::Whiteout(_, path) => path,
        Call::Unlink(path) | Call::RemoveDirectory(path) | Call::SetAttribute(path, ..) => path,
        Call::SyncFile(..) | Call::Sync | Call::Wait(_) => unreachable!("syncs are not among the calls"),
    };
    let directory = Call::SyncFile(split(path).0.to_string(), Durable::All);
    let mut syncs = vec![None, Some(directory), Some(Call::Sync)];
    if !matches!(call, Call::Unlink(_) | Call::RemoveDirectory(_)) {
        syncs.push(Some(Call::SyncFile(path.clone(), Durable::All)));
        syncs.push(Some(Call::SyncFile(path.clone(), Durable::Data)));
    }
    syncs
}

/// A volume with a few files.
fn base(task: &Task<'_>, is_zoned: bool, is_unmounted: bool) -> (Machine, History) {
    let machine = Machine::new("sfs:segment=64K", 16, SEGMENTS, is_zoned);
    let mut sfs = machine.create();
    let text = str::to_string;
    let calls = [
        Call::Create(text("/foo")),
        Call::Write { path: text("/foo"), offset: 0, length: 2 * BLOCK + 100 },
        Call::MakeDirectory(text("/A")),
        Call::Create(text("/A/bar")),
        Call::Write { path: text("/A/bar"), offset: 0, length: BLOCK + 1 },
        Call::MakeDirectory(text("/E")),
        Call::SetAttribute(text("/A/bar"), "user.b", 10),
        Call::Sync,
    ];
    for (step, call) in (1..).zip(&calls) {
        call.run(task, &mut sfs, step).unwrap();
    }
    let history = History::of(&look(task, &mut sfs).unwrap(), calls.len() as u64);
    if is_unmounted {
        sfs.unmount(task).unwrap();
    }
    drop(sfs);
    machine.lose_power(&mut Random::new(0, "nothing is lost"));
    (machine, history)
}

/// The outcome of a history.
enum Ended {
    /// All calls were made; the number of device operations before the last call, and in all.
    Made(u64, u64),
    /// A call failed after those before it.
    Senseless,
    Cut,
}

/// Makes calls until the power fails.
fn make(task: &Task<'_>, machine: &Machine, history: &mut History, calls: &[Vec<Call>], cut: Option<u64>) -> Ended {
    let mut sfs = machine.open().unwrap();
    let begun = machine.power.operations();
    if let Some(cut) = cut {
        machine.power.cut_after(cut);
    }
    let mut before_last = 0;
    for part in calls {
        before_last = machine.power.operations() - begun;
        for call in part {
            match call.run(task, &mut sfs, history.step()) {
                Ok(made) => {
                    history.apply(call, made);
                    history.answered(call);
                    assert!(!machine.power.is_off(), "{call:?} succeeded without power");
                }
                Err(_) if machine.power.is_off() => {
                    history.cut_in(task, call, &mut sfs);
                    return Ended::Cut;
                }
                Err(SfsError::Device(error)) => panic!("{call:?}: {error}"),
                Err(SfsError::Damaged { what, why }) => panic!("{call:?}: {what} {why}"),
                Err(_) => return Ended::Senseless,
            }
        }
    }
    Ended::Made(before_last, machine.power.operations() - begun)
}

/// After recovery the volume is usable: new changes survive another mount.
fn go_on(
    task: &Task<'_>,
    machine: &Machine,
    mut sfs: flashpath::fs::sfs::Sfs,
    mut history: History,
) -> Result<(), String> {
    let files: Vec<String> = history.paths(FileKind::Regular).into_iter().cloned().collect();
    let mut calls = vec![Call::Create("/more".to_string())];
    for path in files {
        // Stale data after the end of a file must not become visible.
        let size = history.size(&path);
        calls.push(Call::Truncate(path, size.next_multiple_of(BLOCK) + BLOCK));
    }
    calls.push(Call::Write { path: "/more".to_string(), offset: 0, length: 20 * BLOCK });
    calls.push(Call::SyncFile("/more".to_string(), Durable::All));
    calls.push(Call::Sync);
    for call in calls {
        let made = call.run(task, &mut sfs, history.step()).map_err(|error| format!("then {call:?}: {error}"))?;
        history.apply(&call, made);
        history.answered(&call);
    }
    history.check(&look(task, &mut sfs)?).map_err(|why| format!("then: {why}"))?;
    sfs.unmount(task).map_err(|error| format!("it cannot be unmounted after recovery: {error}"))?;
    drop(sfs);
    machine.recover(task, &history).map_err(|why| format!("unmounted and mounted after recovery: {why}")).map(drop)
}

/// Cuts a history at every operation of its last call. Returns the number of cuts.
fn cut_everywhere(task: &Task<'_>, base: &(Machine, History), calls: &[Vec<Call>], seed: u64) -> u64 {
    let (machine, mut history) = (base.0.copy(), base.1.clone());
    let Ended::Made(first, last) = make(task, &machine, &mut history, calls, None) else { return 0 };
    for cut in first..=last {
        let case = Case(format!("{calls:?}, cut at operation {cut}, seed {seed}"));
        let (machine, mut history) = (base.0.copy(), base.1.clone());
        make(task, &machine, &mut history, calls, Some(cut));
        machine.lose_power(&mut Random::new(seed << 10 | cut, "cuts of short histories"));
        let overhead = base.1.overhead();
        let recovered = machine.recover(task, &history).and_then(|(sfs, found)| {
            if found.overhead > overhead {
                return Err(format!("{} blocks in use have no owner", found.overhead - overhead));
            }
            if (seed + cut).is_multiple_of(4) {
                go_on(task, &machine, sfs, History::of(&found, history.step()))
            } else {
                Ok(())
            }
        });
        recovered.unwrap_or_else(|why| panic!("{}:\n    {why}", case.0));
    }
    last + 1 - first
}

/// All histories of one call, and of two.
fn cut_all(task: &Task<'_>, is_zoned: bool) {
    let bases = [base(task, is_zoned, true), base(task, is_zoned, false)];
    let all: Vec<Vec<Call>> = calls()
        .into_iter()
        .flat_map(|call| syncs(&call).into_iter().map(move |sync| [Some(call.clone()), sync]))
        .map(|part| part.into_iter().flatten().collect())
        .collect();
    let (mut histories, mut cuts) = (0, 0);
    let mut run = |base: usize, calls: &[Vec<Call>], seed: u64| {
        let made = cut_everywhere(task, &bases[base], calls, seed);
        histories += u64::from(made > 0);
        cuts += made;
    };
    for seed in 0..seeds() * 2 {
        for call in &all {
            for base in 0..bases.len() {
                run(base, std::slice::from_ref(call), seed);
            }
        }
    }
    // One in this many pairs per seed: four times as many seeds cover all pairs.
    let mut seed = 0;
    for round in 0..seeds() {
        for (first, second) in all.iter().flat_map(|first| all.iter().map(move |second| (first, second))) {
            seed += 1;
            if (seed + round + u64::from(is_zoned)) % SHARE == 0 {
                run((round / SHARE + seed / SHARE) as usize % bases.len(), &[first.clone(), second.clone()], seed);
            }
        }
    }
    eprintln!("{histories} histories, {cuts} cuts");
}

#[test]
fn short_histories_survive_a_cut_at_every_operation_of_a_disk() {
    let task = &Task::at(Time::ZERO);
    cut_all(task, false);
}

#[test]
fn short_histories_survive_a_cut_at_every_operation_of_zones() {
    let task = &Task::at(Time::ZERO);
    cut_all(task, true);
}

#[test]
fn a_tail_that_one_crash_cut_off_is_not_replayed_after_the_next() {
    let task = &Task::at(Time::ZERO);
    // An fsync of many partial segments, the first of which is lost while others are stored: the log ends before it.
    // Recovery reuses their sequence numbers for fewer partial segments, so the remaining ones follow the new end of
    // the log.
    let machine = Machine::new("sfs:segment=64K,discard=off", 16, 560, false);
    let mut sfs = machine.create();
    let write = Call::Write { path: "/foo".to_string(), offset: 0, length: 120 * BLOCK };
    for (step, call) in (1..).zip([Call::Create("/foo".to_string()), write.clone(), Call::Sync]) {
        call.run(task, &mut sfs, step).unwrap();
    }
    let base = (machine, History::of(&look(task, &mut sfs).unwrap(), 3));
    drop(sfs);
    let calls = [vec![write, Call::SyncFile("/foo".to_string(), Durable::All)]];
    let (machine, mut history) = (base.0.copy(), base.1.clone());
    let Ended::Made(_, operations) = make(task, &machine, &mut history, &calls, None) else {
        panic!("every call can be made")
    };
    assert!(operations > 15, "{operations}");
    for seed in 0..seeds() * 10 {
        for cut in operations - 4..=operations {
            let case = Case(format!("cut at operation {cut} of {operations}, seed {seed}"));
            let mut random = Random::new(seed << 10 | cut, "two crashes");
            let (machine, mut history) = (base.0.copy(), base.1.clone());
            make(task, &machine, &mut history, &calls, Some(cut));
            machine.lose_power(&mut random);
            let found = machine.recover(task, &history).unwrap_or_else(|why| panic!("{}: {why}", case.0)).1;
            machine.lose_power(&mut random);
            let history = History::of(&found, history.step());
            machine.recover(task, &history).unwrap_or_else(|why| panic!("{}, after a second mount: {why}", case.0));
        }
    }
}

/// A mount after a crash writes its superblock, which is torn; the next mount writes another one of the same number. Sectors in
/// which both are equal must not complete the first, whose metadata was overwritten by then.
#[test]
fn a_torn_superblock_is_not_completed_by_the_next_one() {
    let task = &Task::at(Time::ZERO);
    let (machine, mut history) = base(task, false, false);
    let write = Call::Write { path: "/foo".to_string(), offset: 0, length: 5 * BLOCK };
    let calls = [vec![write, Call::SyncFile("/foo".to_string(), Durable::All)]];
    make(task, &machine, &mut history, &calls, None);
    machine.lose_power(&mut Random::new(0, "nothing is lost"));
    // The next mount ends behind its first superblock, which is torn: of the older state of a grouping, one sector is left.
    let bytes = |machine: &Machine, place| match &machine.device {
        Device::Blocks(disk) => disk.bytes(place),
        Device::Zones(_) => unreachable!("it has a disk"),
    };
    let cut_at = |cut| {
        let cut_one = machine.copy();
        cut_one.power.cut_after(cut);
        drop(cut_one.open());
        let is_written = |place: &u64| bytes(&cut_one, *place) != bytes(&machine, *place);
        let place = [0, machine.segment_blocks / 2].into_iter().find(is_written)?;
        Some((cut_one, place))
    };
    let (torn, place) = (1..100).find_map(cut_at).expect("a superblock is written");
    let mut superblock = bytes(&torn, place);
    superblock[512..1024].fill(7);
    torn.lose_power(&mut Random::new(0, "the superblock is torn"));
    let Device::Blocks(disk) = &torn.device else { unreachable!() };
    disk.put(place, &superblock);
    for (cut, seed) in (0..12).flat_map(|cut| (0..60).map(move |seed| (cut, seed))) {
        let case = Case(format!("cut at operation {cut}, seed {seed}"));
        let machine = torn.copy();
        machine.power.cut_after(cut);
        drop(machine.open());
        machine.lose_power(&mut Random::new(seed, "the next superblock is torn"));
        machine.recover(task, &history).unwrap_or_else(|why| panic!("{}: {why}", case.0));
    }
}
