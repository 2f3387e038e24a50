//! Power cuts under load: small, nearly full volumes, so that segments are constantly cleaned, and freed by the log and
//! by checkpoints; repeated, and during recovery.

use super::calls::Call;
use super::history::{History, look};
use super::machine::{Case, Machine, seeds};
use flashpath::fs::Durable;
use flashpath::fs::sfs::{FileKind, Sfs, SfsError};
use flashpath::random::Random;
use flashpath::task::Task;
use flashpath::time::Time;
use std::collections::BTreeMap;

/// Segments of a volume.
const SEGMENTS: u64 = 72;
/// Maximum blocks in use without a name: at most the pages of the DAT and of the inode file, for each power cut.
const MOST_OVERHEAD: u64 = 60;

/// The volumes: options, and true for zones.
const VOLUMES: [(&str, bool); 14] = [
    ("sfs:segment=64K,groups=1,cleaner=cost-benefit", false),
    ("sfs:segment=64K,groups=4,cleaner=cost-hotness", false),
    ("sfs:segment=64K,grouping=sepbit", false),
    ("sfs:segment=64K,groups=4,fsync=checkpoint", false),
    // An fsync writes blocks, and no bytes as log records.
    ("sfs:segment=64K,groups=4,fsync=blocks", false),
    ("sfs:segment=64K,groups=4,fsync=blocks", true),
    ("sfs:segment=64K,groups=4,cleaner=cost-hotness,hotness=all", true),
    ("sfs:segment=64K,grouping=dac,cleaner=greedy", true),
    ("sfs:preset=paper,segment=64K", false),
    // Blocks that fill no segment of their group share one.
    ("sfs:segment=64K,groups=3,fsync=blocks,rest=mixed", true),
    // Rare checkpoints: the log continues in segments that it freed.
    ("sfs:segment=64K,groups=1,cleaner=greedy,checkpoint-segments=4096", false),
    ("sfs:segment=64K,groups=2,cleaner=greedy,checkpoint-segments=4096", true),
    // Little memory for metadata: it is written early, evicted and read again.
    ("sfs:segment=64K,groups=2,memory=28M", false),
    ("sfs:segment=64K,grouping=sepbit,memory=28M", true),
];

/// A volume and its random load.
struct Life {
    machine: Machine,
    random: Random,
    history: History,
    /// Number of names created.
    names: u64,
    is_full: bool,
    counts: BTreeMap<&'static str, u64>,
}

impl Life {
    fn new(task: &Task<'_>, volume: (&'static str, bool), seed: u64) -> Life {
        let (text, is_zoned) = volume;
        let machine = Machine::new(text, 16, SEGMENTS, is_zoned);
        let mut sfs = machine.create();
        let history = History::of(&look(task, &mut sfs).unwrap(), 0);
        let random = Random::new(seed, "cuts under load");
        Life { machine, random, history, names: 0, is_full: false, counts: BTreeMap::new() }
    }

    fn pick(&mut self, kind: FileKind) -> Option<String> {
        let paths = self.history.paths(kind);
        let at = self.random.below(paths.len().max(1) as u64) as usize;
        paths.get(at).map(|path| path.to_string())
    }

    fn new_path(&mut self) -> String {
        let directory = match self.random.below(3) {
            0 => String::new(),
            _ => self.pick(FileKind::Directory).unwrap_or_default(),
        };
        self.names += 1;
        let length = if self.random.below(20) == 0 { 200 } else { self.random.below(20) as usize };
        format!("{directory}/{}{}", self.names, "n".repeat(length))
    }

    fn next(&mut self) -> Option<Call> {
        if std::mem::take(&mut self.is_full) && self.random.below(4) > 0 {
            return self.pick(FileKind::Regular).map(Call::Unlink);
        }
        let file = self.pick(FileKind::Regular);
        Some(match self.random.below(100) {
            0..=13 => Call::Create(self.new_path()),
            14..=49 => {
                let path = file?;
                let most = self.history.size(&path) + 20_000;
                let offset = self.random.below(most.min(150_000));
                let most = if self.random.below(3) == 0 { 40_000 } else { 6_000 };
                Call::Write { path, offset, length: 1 + self.random.below(most) }
            }
            50..=54 => Call::Truncate(file?, self.random.below(100_000)),
            55..=58 => {
                let (offset, length) = (self.random.below(100_000), 1 + self.random.below(30_000));
                Call::Punch { path: file?, offset, length }
            }
            59..=60 => {
                let (offset, length) = (self.random.below(100_000), 1 + self.random.below(30_000));
                let (path, keeps_size) = (file?, self.random.below(2) == 0);
                match self.random.below(3) {
                    0 => Call::ZeroRange { path, offset, length, keeps_size },
                    _ => Call::Allocate { path, offset, length, keeps_size },
                }
            }
            61..=63 => Call::Link(file?, self.new_path()),
            64 => Call::Symlink(self.new_path(), 1 + self.random.below(4000) as usize),
            65..=67 => Call::MakeDirectory(self.new_path()),
            68..=69 => {
                let path =
                    self.pick(FileKind::Directory).filter(|path| !path.is_empty() && self.history.is_empty(path))?;
                Call::RemoveDirectory(path)
            }
            70..=75 => Call::Unlink(file?),
            76 => Call::Unlink(self.pick(FileKind::Symlink)?),
            77..=80 => Call::Rename(file?, self.new_path()),
            81..=84 => Call::Rename(file?, self.pick(FileKind::Regular)?),
            85 => {
                let (from, to) = (self.pick(FileKind::Directory)?, self.new_path());
                if from.is_empty() || to.starts_with(&format!("{from}/")) {
                    return None;
                }
                Call::Rename(from, to)
            }
            86 if self.random.below(2) == 0 => Call::Whiteout(file?, self.new_path()),
            86 => Call::Exchange(file?, self.pick(FileKind::Regular)?),
            87..=88 => Call::SetAttribute(file?, "user.some", self.random.below(9000) as usize),
            89..=93 => Call::SyncFile(file?, Durable::All),
            94..=95 => Call::SyncFile(file?, Durable::Data),
            96 => Call::SyncFile(self.pick(FileKind::Directory)?, Durable::All),
            97..=98 => Call::Wait(1 + self.random.below(7_000)),
            _ if self.random.below(4) == 0 => Call::Sync,
            _ => return None,
        })
    }

    /// Makes `calls` calls, or until the power fails.
    fn work(&mut self, task: &Task<'_>, sfs: &mut Sfs, calls: u64) {
        for _ in 0..calls {
            let Some(call) = self.next() else { continue };
            match call.run(task, sfs, self.history.step()) {
                Ok(made) => {
                    assert!(!self.machine.power.is_off(), "{call:?} succeeded without power");
                    self.history.apply(&call, made);
                    self.history.answered(&call);
                }
                Err(_) if self.machine.power.is_off() => {
                    self.history.cut_in(task, &call, sfs);
                    break;
                }
                Err(SfsError::NoSpace { .. }) if sfs.read_only().is_none() => {
                    self.is_full = true;
                    // The data is zeros by then, without allocated blocks.
                    if let Call::ZeroRange { path, offset, length, .. } = call {
                        self.history.apply(&Call::Punch { path, offset, length }, None);
                    }
                }
                Err(error) => panic!("{call:?}: {error}"),
            }
        }
        for (event, count) in sfs.account().events {
            *self.counts.entry(event).or_default() += count;
        }
    }

    /// One life of the volume: load, a cut, the given cuts of recovery, recovery.
    fn live(&mut self, task: &Task<'_>, cut: u64, cuts_of_recovery: &[u64]) -> Result<(), String> {
        let mut sfs = self.machine.open().map_err(|error| format!("it cannot be mounted: {error}"))?;
        self.machine.power.cut_after(cut);
        self.work(task, &mut sfs, 2000);
        drop(sfs);
        self.machine.lose_power(&mut self.random);
        for cut in cuts_of_recovery {
            self.machine.power.cut_after(*cut);
            match self.machine.open() {
                Err(error) if !self.machine.power.is_off() => return Err(format!("it cannot be mounted: {error}")),
                _ => {}
            }
            self.machine.lose_power(&mut self.random);
        }
        self.recover(task)
    }

    fn recover(&mut self, task: &Task<'_>) -> Result<(), String> {
        let (_, found) = self.machine.recover(task, &self.history)?;
        // The volume was mounted and not unmounted: the next mount recovers from this one.
        self.machine.lose_power(&mut self.random);
        self.history = History::of(&found, self.history.step());
        match found.overhead {
            0..=MOST_OVERHEAD => Ok(()),
            more => Err(format!("{more} blocks in use have no owner")),
        }
    }
}

#[test]
fn synced_data_survives_random_cuts_of_a_nearly_full_volume() {
    let task = &Task::at(Time::ZERO);
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let mut cuts = 0;
    for seed in 0..seeds() * 2 {
        for volume in VOLUMES {
            let mut life = Life::new(task, volume, seed);
            for number in 0..80 {
                let cut = life.random.below(if number % 4 == 0 { 1500 } else { 200 });
                let nested: Vec<u64> = (0..life.random.below(4)).map(|_| life.random.below(12)).collect();
                let case = Case(format!(
                    "{}, seed {seed}, life {number}, cut at operation {cut}, and at {nested:?} of recovery",
                    volume.0
                ));
                life.live(task, cut, &nested).unwrap_or_else(|why| panic!("{}:\n    {why}", case.0));
                cuts += 1 + nested.len();
            }
            life.counts.iter().for_each(|(event, count)| *counts.entry(event).or_default() += count);
        }
    }
    eprintln!("{cuts} cuts, {counts:?}");
    for event in ["segments cleaned", "checkpoints", "syncs"] {
        assert!(counts[event] > 1000, "{event}: {}", counts[event]);
    }
}

#[test]
fn a_volume_with_only_power_cuts_stays_mountable() {
    let task = &Task::at(Time::ZERO);
    for volume in VOLUMES {
        let mut life = Life::new(task, volume, 77);
        let mut sfs = life.machine.open().unwrap();
        life.work(task, &mut sfs, 2500);
        drop(sfs);
        for mount in 0..40 {
            let _case = Case(format!("{}, mount {mount}", volume.0));
            life.machine.lose_power(&mut life.random);
            life.recover(task).unwrap();
            let mut sfs = life.machine.open().unwrap();
            match mount % 3 {
                0 => sfs.unmount(task).unwrap(),
                1 => sfs.sync(task).unwrap(),
                _ => {}
            }
        }
    }
}

#[test]
fn recovery_survives_a_cut_at_each_of_its_operations() {
    let task = &Task::at(Time::ZERO);
    let mut cuts = 0;
    for seed in 0..seeds() * 4 {
        for volume in VOLUMES {
            let mut life = Life::new(task, volume, 1000 + seed);
            let mut sfs = life.machine.open().unwrap();
            let cut = 200 + life.random.below(2000);
            life.machine.power.cut_after(cut);
            life.work(task, &mut sfs, 4000);
            drop(sfs);
            life.machine.lose_power(&mut life.random);

            let uncut = life.machine.copy();
            uncut.recover(task, &life.history).unwrap();
            let operations = uncut.power.operations();
            for nested in 0..operations {
                let case = Case(format!(
                    "{}, seed {seed}, cut at operation {cut}, recovery cut at {nested} of {operations}",
                    volume.0
                ));
                let machine = life.machine.copy();
                // In the last round, the power fails there repeatedly.
                for _ in 0..if nested + 1 == operations { 40 } else { 1 } {
                    machine.power.cut_after(nested);
                    assert!(machine.open().is_err() || !machine.power.is_off(), "a mount fails without power");
                    machine.lose_power(&mut life.random);
                    cuts += 1;
                }
                machine.recover(task, &life.history).unwrap_or_else(|why| panic!("{}:\n    {why}", case.0));
            }
        }
    }
    eprintln!("{cuts} cuts of recovery");
}
