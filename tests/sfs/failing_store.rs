//! A store with one failing operation: the n-th write, sync, punch or read, once or always, with EIO or ENOSPC.
//!
//! After the store is healed and the volume is mounted again, synced data is stored, and the content is one that a
//! crash could have left. After a failed write or sync no further sync succeeds, changes are refused, and the unmount
//! reports the loss. After a failed read the volume stays usable, and its unmount stores all changes.

use super::calls::Call;
use super::failing_disk::{Budget, FailingDisk, Fault};
use super::history::{History, look};
use super::machine::Case;
use super::{IDENTITY, settings};
use flashpath::device::conv::{ConvSettings, Conventional};
use flashpath::device::zns::{Zns, ZnsSettings};
use flashpath::expression::parse_term;
use flashpath::fs::Durable;
use flashpath::fs::sfs::{FileKind, InodeNumber, Medium, OpenSfsError, Sfs, SfsError, mark_lost};
use flashpath::random::Random;
use flashpath::task::Task;
use flashpath::time::Time;
use rustix::io::Errno;
use std::collections::BTreeMap;

const BLOCK: u64 = 4096;
/// Bytes of a volume on blocks.
const BYTES: usize = 73 << 16;
const ZONES: &str = "zns:image=unused,size=5M,zone=64K,page=4K,timing=off";
/// Calls per load.
const CALLS: u64 = 250;

/// The volumes: options, and true for zones.
const VOLUMES: [(&str, bool); 5] = [
    ("sfs:segment=64K,groups=4", false),
    ("sfs:segment=64K,groups=4,fsync=checkpoint", false),
    ("sfs:segment=64K,groups=1,cleaner=greedy,checkpoint-segments=4096", false),
    ("sfs:groups=4", true),
    ("sfs:groups=2,cleaner=greedy,checkpoint-segments=4096", true),
];

fn conv() -> ConvSettings {
    ConvSettings::read(&parse_term("conv:image=unused,timing=off").unwrap()).unwrap()
}

fn zns() -> ZnsSettings {
    ZnsSettings::read(&parse_term(ZONES).unwrap()).unwrap()
}

fn medium(disk: &FailingDisk, is_zoned: bool) -> Result<Medium, String> {
    let disk = Box::new(disk.clone());
    match is_zoned {
        true => {
            let zones = Zns::open_on(disk, &zns()).map_err(|error| error.to_string())?;
            Ok(Medium::Zones(Box::new(zones)))
        }
        false => {
            let conv = Conventional::open_on(disk, &conv()).map_err(|error| error.to_string())?;
            Ok(Medium::Blocks(Box::new(conv)))
        }
    }
}

fn new_disk(is_zoned: bool) -> FailingDisk {
    match is_zoned {
        true => {
            let disk = FailingDisk::holding(vec![0; Zns::image_bytes(&zns().shape().unwrap()) as usize]);
            Zns::create_on(Box::new(disk.clone()), &zns()).unwrap();
            disk
        }
        false => FailingDisk::holding(vec![0; BYTES]),
    }
}

/// A source of random calls.
struct Load {
    random: Random,
    history: History,
    names: u64,
}

impl Load {
    fn pick(&mut self, kind: FileKind) -> Option<String> {
        let paths = self.history.paths(kind);
        let at = self.random.below(paths.len().max(1) as u64) as usize;
        paths.get(at).map(|path| path.to_string())
    }

    fn new_path(&mut self) -> String {
        self.names += 1;
        format!("{}/{}", self.pick(FileKind::Directory).unwrap_or_default(), self.names)
    }

    fn next(&mut self) -> Option<Call> {
        let file = self.pick(FileKind::Regular);
        Some(match self.random.below(100) {
            0..=13 => Call::Create(self.new_path()),
            14..=54 => {
                let path = file?;
                let most = if self.random.below(3) == 0 { 40_000 } else { 6_000 };
                Call::Write { path, offset: self.random.below(100_000), length: 1 + self.random.below(most) }
            }
            55..=58 => Call::Truncate(file?, self.random.below(80_000)),
            59..=62 => {
                Call::Punch { path: file?, offset: self.random.below(80_000), length: 1 + self.random.below(30_000) }
            }
            63..=65 => Call::MakeDirectory(self.new_path()),
            66..=67 => Call::Link(file?, self.new_path()),
            68..=76 => Call::Unlink(file?),
            77..=80 => Call::Rename(file?, self.new_path()),
            81..=84 => Call::Rename(file?, self.pick(FileKind::Regular)?),
            85..=86 => Call::SetAttribute(file?, "user.some", self.random.below(2000) as usize),
            87..=93 => Call::SyncFile(file?, Durable::All),
            94..=95 => Call::SyncFile(self.pick(FileKind::Directory)?, Durable::All),
            96..=97 => Call::Wait(1 + self.random.below(40_000)),
            _ => Call::Sync,
        })
    }

    /// Makes calls until one fails, and returns that call.
    fn work(&mut self, task: &Task<'_>, sfs: &mut Sfs, calls: u64, disk: &FailingDisk) -> Result<Option<Call>, String> {
        for _ in 0..calls {
            let Some(call) = self.next() else { continue };
            match call.run(task, sfs, self.history.step()) {
                Ok(made) => {
                    self.history.apply(&call, made);
                    self.history.answered(&call);
                }
                Err(SfsError::NoSpace { .. }) if sfs.read_only().is_none() => {
                    if let Some(path) = self.pick(FileKind::Regular) {
                        let unlink = Call::Unlink(path);
                        if unlink.run(task, sfs, self.history.step()).is_ok() {
                            self.history.apply(&unlink, None);
                        }
                    }
                }
                Err(_) if disk.has_failed() => return Ok(Some(call)),
                Err(error) => return Err(format!("{call:?} fails without a fault of the store: {error}")),
            }
        }
        Ok(None)
    }
}

/// The number of cases by outcome.
#[derive(Default)]
struct Counts(BTreeMap<String, u64>);

impl Counts {
    fn add(&mut self, what: String) {
        *self.0.entry(what).or_default() += 1;
    }
}

/// A volume with some content, and its history.
struct Base {
    volume: (&'static str, bool),
    bytes: Vec<u8>,
    history: History,
}

impl Base {
    fn new(task: &Task<'_>, volume: (&'static str, bool), seed: u64) -> Base {
        let (text, is_zoned) = volume;
        let disk = new_disk(is_zoned);
        let mut sfs =
            Sfs::create(&Task::at(Time::ZERO), medium(&disk, is_zoned).unwrap(), &settings(text), IDENTITY).unwrap();
        let history = History::of(&look(task, &mut sfs).unwrap(), 0);
        let mut load = Load { random: Random::new(seed, "before the failure"), history, names: 0 };
        load.work(task, &mut sfs, 150 + seed % 3 * 200, &disk).unwrap();
        let history = History::of(&look(task, &mut sfs).unwrap(), load.history.step());
        sfs.unmount(task).unwrap();
        Base { volume, bytes: disk.bytes(), history }
    }

    fn open(&self, disk: &FailingDisk) -> Result<Sfs, String> {
        let open = |medium| Sfs::open(&Task::at(Time::ZERO), medium, &settings(self.volume.0), IDENTITY, false);
        medium(disk, self.volume.1).and_then(|medium| open(medium).map_err(|error: OpenSfsError| error.to_string()))
    }

    /// Runs the load with a fault. Returns the number of operations by kind.
    fn run(&self, task: &Task<'_>, fault: Option<Fault>, seed: u64, counts: &mut Counts) -> Result<[u64; 4], String> {
        let disk = FailingDisk::holding(self.bytes.clone());
        disk.fail(fault, seed);
        let mut load = Load { random: Random::new(seed, "load"), history: self.history.clone(), names: 1 << 20 };
        let mut lost = None;
        match self.open(&disk) {
            Err(_) if disk.has_failed() => counts.add("mount refused".to_string()),
            Err(error) => return Err(format!("it cannot be mounted: {error}")),
            Ok(mut sfs) => {
                let failed = load.work(task, &mut sfs, CALLS, &disk)?;
                lost = self.end(task, &mut sfs, &mut load, failed, &disk, counts)?;
            }
        }
        let operations = disk.counts();
        let mut random = Random::new(seed, "healing");
        let is_same_boot = random.below(2) == 0;
        let healed = disk.healed(&mut random, is_same_boot);
        if let Some(number) = lost {
            mark_lost(medium(&healed, self.volume.1)?, number)
                .map_err(|error| format!("it cannot be marked: {error}"))?;
        }
        let mut sfs = self.open(&healed).map_err(|error| format!("healed, it cannot be mounted: {error}"))?;
        if sfs.has_lost_before() != lost.is_some() {
            return Err(format!("its report of lost changes is {}", sfs.has_lost_before()));
        }
        let wrong = sfs.check(task).map_err(|error| format!("it cannot be checked: {error}"))?;
        if let Some(finding) = wrong.first() {
            return Err(format!("{} faults, the first: {finding}", wrong.len()));
        }
        load.history.check(&look(task, &mut sfs)?)?;
        sfs.unmount(task).map_err(|error| format!("healed, it cannot be unmounted: {error}"))?;
        Ok(operations)
    }

    /// Ends the mount, after a failed call or none. Returns the volume's identifier if the unmount reported lost
    /// changes.
    fn end(
        &self,
        task: &Task<'_>,
        sfs: &mut Sfs,
        load: &mut Load,
        failed: Option<Call>,
        disk: &FailingDisk,
        counts: &mut Counts,
    ) -> Result<Option<[u8; 16]>, String> {
        let is_read_only = sfs.read_only().is_some();
        if is_read_only {
            let changed = Call::Create("/after".to_string()).run(task, sfs, load.history.step());
            if !matches!(changed, Err(SfsError::ReadOnly(_))) {
                return Err(format!("it is read-only, and a change returned {changed:?}"));
            }
            // A successful sync must be true. It is if no data is dirty; the effect of the failed call is unknown.
            if sfs.sync(task).is_ok() || sfs.sync_file(task, InodeNumber::ROOT, Durable::All).is_ok() {
                load.history.answered(&Call::Sync);
            }
            if let Some(call) = &failed {
                load.history.apply(call, None);
            }
        }
        match sfs.unmount(task) {
            Ok(()) if is_read_only => Err("a write failed, but the unmount succeeds".to_string()),
            Ok(()) => {
                load.history.answered(&Call::Sync);
                if let Some(call) = &failed {
                    load.history.apply(call, None);
                }
                counts.add("the unmount stored all changes".to_string());
                Ok(None)
            }
            Err(SfsError::Lost(_)) => {
                if let Some(call) = failed.filter(|_| !is_read_only) {
                    load.history.apply(&call, None);
                }
                counts.add("the unmount reported lost changes".to_string());
                Ok(Some(sfs.number()))
            }
            Err(_) if disk.has_failed() => {
                if let Some(call) = failed.filter(|_| !is_read_only) {
                    load.history.apply(&call, None);
                }
                counts.add("the unmount failed".to_string());
                Ok(None)
            }
            Err(error) => Err(format!("it cannot be unmounted: {error}")),
        }
    }
}

fn number_of(variable: &str) -> u64 {
    std::env::var(variable).ok().and_then(|value| value.parse().ok()).unwrap_or(0)
}

#[test]
fn synced_data_survives_the_failure_of_any_operation_of_the_store() {
    let task = &Task::at(Time::ZERO);
    let mut budget = Budget::new(600);
    let mut counts = Counts::default();
    let mut seed = number_of("FAILING_STORE_SEED");
    let first = seed;
    while budget.goes_on() {
        let base = Base::new(task, VOLUMES[seed as usize % VOLUMES.len()], seed);
        let whole =
            base.run(task, None, seed, &mut counts).unwrap_or_else(|why| panic!("seed {seed}, no fault: {why}"));
        let mut random = Random::new(seed, "faults");
        for _ in 0..20 {
            let fault = Fault::any(whole, &mut random);
            let case = Case(format!("{}, seed {seed}, {fault:?}", base.volume.0));
            base.run(task, Some(fault), seed, &mut counts).unwrap_or_else(|why| panic!("{}:\n    {why}", case.0));
            counts.add(format!("{:?}", fault.operation));
            if !budget.goes_on() {
                break;
            }
        }
        seed += 1;
    }
    eprintln!("{} loads from seed {first}, {:?}", seed - first, counts.0);
    assert!(counts.0["the unmount reported lost changes"] > 0);
}

/// Fails each write, sync, punch and read of one short load in turn, on blocks and on zones.
#[test]
fn any_operation_of_a_load_may_fail() {
    let task = &Task::at(Time::ZERO);
    let mut counts = Counts::default();
    for volume in [VOLUMES[0], VOLUMES[3]] {
        let base = Base::new(task, volume, 1);
        let whole = base.run(task, None, 1, &mut counts).unwrap();
        for (operation, number) in super::failing_disk::OPERATIONS.into_iter().zip(whole) {
            // At most some hundred of each kind: most are reads.
            for after in (0..number).step_by(number.div_ceil(150).max(1) as usize) {
                let fault = Fault { operation, after, error: Errno::IO, lasts: after % 2 == 1 };
                let case = Case(format!("{}, {fault:?}", base.volume.0));
                base.run(task, Some(fault), 1, &mut counts).unwrap_or_else(|why| panic!("{}:\n    {why}", case.0));
            }
        }
    }
    eprintln!("{:?}", counts.0);
}

/// Data written to a volume whose flush failed is lost, and a second sync must not succeed.
#[test]
fn a_sync_after_a_failed_sync_fails_too() {
    let task = &Task::at(Time::ZERO);
    let base = Base::new(task, VOLUMES[0], 2);
    let disk = FailingDisk::holding(base.bytes.clone());
    let mut sfs = base.open(&disk).unwrap();
    Call::Create("/new".to_string()).run(task, &mut sfs, 1).unwrap();
    Call::Write { path: "/new".to_string(), offset: 0, length: BLOCK }.run(task, &mut sfs, 2).unwrap();
    disk.fail(
        Some(Fault { operation: super::failing_disk::Operation::Sync, after: 0, error: Errno::IO, lasts: false }),
        0,
    );
    let sync = Call::SyncFile("/new".to_string(), Durable::All);
    assert!(sync.run(task, &mut sfs, 3).is_err() && sync.run(task, &mut sfs, 4).is_err() && sfs.sync(task).is_err());
    let lost = sfs.lost().expect("the loss is recorded").clone();
    assert!(lost.inodes == 2 && lost.blocks >= 1, "the file and the root: {lost:?}");
    assert!(matches!(sfs.unmount(task), Err(SfsError::Lost(_))));
}
