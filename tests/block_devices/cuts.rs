//! One thread flushes while others write, and the power fails: writes completed before a successful flush began are
//! stored, and every block has the content of one of its writes.

use crate::power_cut::{Disk, Power, Zones};
use crate::threads::{filled, word, word_of, written_by};
use crate::{BLOCK, budget};
use flashpath::device::cache::{Cache, CacheSettings, Place};
use flashpath::device::{BlockDevice, Lba};
use flashpath::expression::parse_term;
use flashpath::label::{Content, Label};
use flashpath::random::Random;
use flashpath::run::Labelling;
use flashpath::time::Time;
use flashpath::translation::zoned::{Devices, DmZoned, Uuids, ZonedSettings, mkfs};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

const WRITERS: u64 = 3;
/// Blocks of each writer.
const OWN: u64 = 24;
const REACH: u64 = WRITERS * OWN;
const ZONE: u64 = 32;

/// Devices that survive a cut, and the stack that is opened on them repeatedly.
struct Machine {
    power: Power,
    disk: Disk,
    zones: Zones,
}

type Open = fn(&Machine) -> Box<dyn BlockDevice>;

static STATIONS: [(&str, Open); 5] = [
    ("a disk", |machine| Box::new(machine.disk.clone())),
    ("a labelled disk", |machine| Box::new(Labelling::new(machine.disk.clone(), Time::ZERO).unwrap())),
    ("cache in memory", |machine| cache("cache:size=64K,age=1ms", Place::memory(BLOCK), machine)),
    ("cache on a device", |machine| {
        // The content of the cache device is lost.
        let own = Disk::new(&machine.power, 20, 0);
        cache("cache:size=1M,policy=fifo", Place::device(Box::new(own)), machine)
    }),
    ("dm-zoned", |machine| Box::new(DmZoned::open(machine.devices(), &zoned()).unwrap())),
];

fn cache(term: &str, place: Place, machine: &Machine) -> Box<dyn BlockDevice> {
    let settings = CacheSettings::read(&parse_term(term).unwrap(), 1).unwrap();
    Box::new(Cache::new(&settings, place, Box::new(machine.disk.clone())))
}

fn zoned() -> ZonedSettings {
    ZonedSettings::read(&parse_term("dm-zoned:reserved=3").unwrap()).unwrap()
}

impl Machine {
    fn new(is_zoned: bool) -> Machine {
        let power = Power::new();
        let disk = Disk::new(&power, 8 * ZONE, if is_zoned { 2 * ZONE } else { 0 });
        let zones = Zones::new(&power, 20, ZONE, 0);
        let machine = Machine { power, disk, zones };
        if is_zoned {
            mkfs(machine.devices(), &zoned(), &Uuids::from_seed(1, 1)).unwrap();
        }
        machine
    }

    fn devices(&self) -> Devices {
        Devices { conventional: Some(Box::new(self.disk.clone())), zoned: vec![Box::new(self.zones.clone())] }
    }

    fn lose_power(&self, random: &mut Random) {
        self.disk.lose_power(random);
        self.zones.lose_power(random);
        self.power.restore();
    }
}

/// The number of the newest write of each block.
struct Newest(Vec<AtomicU64>);

impl Newest {
    fn new() -> Newest {
        Newest((0..REACH).map(|_| AtomicU64::new(0)).collect())
    }

    fn set(&self, first: u64, blocks: u64, number: u64) {
        self.0[first as usize..(first + blocks) as usize].iter().for_each(|newest| newest.store(number, SeqCst));
    }

    fn all(&self) -> Vec<u64> {
        self.0.iter().map(|newest| newest.load(SeqCst)).collect()
    }
}

/// Writes until the power fails.
fn write(device: &dyn BlockDevice, writer: u64, seed: u64, begun: &Newest, answered: &Newest) {
    let mut random = Random::new(seed, &format!("writer {writer}"));
    for number in 1.. {
        let own = random.below(OWN);
        let (first, blocks) = ((writer - 1) * OWN + own, 1 + random.below((OWN - own).min(4)));
        begun.set(first, blocks, number);
        let bytes = filled(word(writer, number), blocks);
        match device.write(Lba(first), &bytes, Label::host(Content::Data), Time(number * 10_000)) {
            Ok(_) => answered.set(first, blocks, number),
            Err(_) => return,
        }
    }
}

/// Flushes until the power fails. Returns the writes completed before the last successful flush.
fn flush(device: &dyn BlockDevice, answered: &Newest) -> Vec<u64> {
    let mut flushed = vec![0; REACH as usize];
    for moment in 1.. {
        let before = answered.all();
        if device.flush(Time(moment * 30_000)).is_err() {
            break;
        }
        flushed = before;
        std::thread::yield_now();
    }
    flushed
}

/// Returns the number of flushed writes, and of begun ones.
fn cut(name: &str, open: Open, seed: u64) -> (u64, u64) {
    let mut random = Random::new(seed, name);
    let machine = Machine::new(name == "dm-zoned");
    let device = open(&machine);
    machine.power.cut_after(1 + random.below(400));
    let (begun, answered) = (Newest::new(), Newest::new());
    let flushed = std::thread::scope(|scope| {
        for writer in 1..=WRITERS {
            let (device, begun, answered) = (&device, &begun, &answered);
            scope.spawn(move || write(&**device, writer, seed, begun, answered));
        }
        scope.spawn(|| {
            (1..).take_while(|moment| device.work(Time(moment * 20_000)).is_ok() && !machine.power.is_off()).count()
        });
        flush(&*device, &answered)
    });
    drop(device);
    machine.lose_power(&mut random);
    let device = open(&machine);
    for (block, (flushed, begun)) in flushed.iter().zip(begun.all()).enumerate() {
        let mut bytes = vec![0; BLOCK];
        device.read(Lba(block as u64), &mut bytes, Time::ZERO).unwrap();
        let found = written_by(word_of(name, &bytes)).map_or(0, |(writer, number)| {
            assert_eq!(
                writer,
                1 + block as u64 / OWN,
                "{name}, seed {seed}: block {block} has the content of another writer"
            );
            number
        });
        let what = format!("{name}, seed {seed}: block {block} has the content of write {found}");
        assert!(found >= *flushed, "{what}, but {flushed} was completed before a successful flush");
        assert!(found <= begun, "{what}, but only {begun} was begun");
    }
    (flushed.iter().sum(), begun.all().iter().sum())
}

#[test]
fn writes_completed_before_the_flush_of_another_thread_survive_a_power_cut() {
    for (name, open) in STATIONS {
        let mut has_budget = budget(40);
        let (mut flushed, mut begun) = (0, 0);
        for seed in 0.. {
            // Without a successful flush, nothing was tested.
            if !has_budget() && flushed > 0 {
                break;
            }
            let counts = cut(name, open, seed);
            (flushed, begun) = (flushed + counts.0, begun + counts.1);
        }
        assert!(begun > flushed, "{name}: writes were in flight when the power failed");
    }
}
