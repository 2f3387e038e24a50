//! A write fails for lack of space only if the volume cannot hold it: every small geometry, filled and written at
//! random.
//!
//! A volume of 16 conventional zones with reserved=8 answered "no space" to the 225th random write of 4 KiB: reclaim
//! gave up a write while the chunks that it could have merged were only busy. With `timing=off` nothing was ever busy,
//! and with one reserved zone beside a zoned device there was really no zone left: mkfs had allocated a chunk for each.

use super::model::{Model, check_sums};
use super::power_cuts::seeds;
use super::{Machine, block_of, settings};
use flashpath::device::station::StationError;
use flashpath::device::{BlockDevice, DeviceError, Lba, STAMP_BYTES, fill_with_stamp};
use flashpath::label::{Content, Label};
use flashpath::random::Random;
use flashpath::run::{OpenError, Path, Payload, open_device};
use flashpath::time::Time;
use flashpath::translation::zoned::{DmZoned, Uuids, mkfs};
use std::ops::Range;

/// The number of blocks in a zone: a metadata set of all these volumes fits in one.
const ZONE: u64 = 32;
const MOST_ZONES: u64 = 8;
/// The blocks of the journal: the end of the first chunk, and all of the second.
const JOURNAL: Range<u64> = ZONE - 9..2 * ZONE;

/// A volume of conventional zones, and of zoned devices.
#[derive(Clone, Debug)]
struct Geometry {
    /// Zones of the conventional device; 0 for none.
    cache: u64,
    /// Conventional and sequential zones of each zoned device.
    zoned: Vec<(u64, u64)>,
    reserved: u64,
    is_timed: bool,
    has_journal: bool,
}

impl Geometry {
    fn conventional(&self) -> u64 {
        self.cache + self.zoned.iter().map(|(conventional, _)| conventional).sum::<u64>()
    }

    fn path(&self) -> String {
        let size = |zones: u64| format!("{}K", zones * ZONE * 4);
        let timing = if self.is_timed { "on" } else { "off" };
        let flash = format!("zone={},page=4K,channels=1,dies=1,planes=1,timing={timing}", size(1));
        let zoned = self.zoned.iter().map(|(conventional, sequential)| {
            format!("zns:size={},conventional={conventional},{flash}", size(conventional + sequential))
        });
        let cache = (self.cache > 0).then(|| format!("conv:size={},timing={timing}", size(self.cache)));
        let devices: Vec<String> = cache.into_iter().chain(zoned).collect();
        let journal = if self.has_journal { ",journal-zone" } else { "" };
        format!("dm-zoned:reserved={},idle=50ms,commit=20ms{journal}/{}", self.reserved, devices.join("+"))
    }

    /// True if mkfs must reject it: no conventional zone besides the metadata, or no sequential one besides the
    /// reserve.
    fn is_impossible(&self) -> bool {
        let row = if self.cache > 0 { self.cache } else { self.zoned[0].0 };
        let beside = if self.cache > 0 { self.zoned.len() as u64 } else { 0 };
        let sequential: u64 = self.zoned.iter().map(|(_, sequential)| sequential).sum();
        row < 3 || sequential.saturating_sub(beside) <= self.reserved
    }
}

/// All volumes of at most eight zones of each kind: a conventional device with a zoned one, one zoned device alone, a
/// conventional device with a zoned one that has conventional zones, too, and with two zoned ones.
fn geometries() -> Vec<Geometry> {
    let mut all = Vec::new();
    for (is_timed, has_journal) in [(true, false), (true, true), (false, false), (false, true)] {
        let mut add = |cache, zoned: &[(u64, u64)]| {
            let of = |reserved| Geometry { cache, zoned: zoned.to_vec(), reserved, is_timed, has_journal };
            all.extend((1..=of(1).conventional()).map(of));
        };
        for conventional in 1..=MOST_ZONES {
            for sequential in 1..=MOST_ZONES {
                add(conventional, &[(0, sequential)]);
                add(0, &[(conventional, sequential)]);
            }
        }
        for cache in 3..=5 {
            for sequential in 3..=5 {
                add(cache, &[(2, sequential)]);
                add(cache, &[(0, sequential), (0, 3)]);
            }
        }
    }
    all
}

/// The writes to a volume of stamps.
struct Work {
    device: Box<dyn BlockDevice>,
    newest: Vec<u32>,
    stamp: u32,
    now: Time,
    has_journal: bool,
}

impl Work {
    fn write(&mut self, first: u64, count: u64) -> Result<(), DeviceError> {
        let has_journal = self.has_journal;
        let content = |block| if has_journal && JOURNAL.contains(&block) { Content::Journal } else { Content::Data };
        let end = (first + count).min(self.newest.len() as u64);
        let count = (first..end).take_while(|block| content(*block) == content(first)).count();
        self.stamp += 1;
        let mut buffer = vec![0; count * STAMP_BYTES];
        fill_with_stamp(self.stamp, &mut buffer);
        self.newest[first as usize..][..count].fill(self.stamp);
        self.device.write(Lba(first), &buffer, Label::host(content(first)), self.now).map(|_| ())
    }

    /// One random operation: mostly single blocks anywhere, at once or a little later.
    fn step(&mut self, random: &mut Random) -> Result<(), DeviceError> {
        let blocks = self.newest.len() as u64;
        let first = random.below(blocks);
        if random.below(2) == 0 {
            self.now = self.now + random.below(3_000_000);
        }
        match random.below(40) {
            0 => self.device.flush(self.now).map(|_| ()),
            1 => {
                let count = (1 + random.below(2 * ZONE)).min(blocks - first);
                self.newest[first as usize..][..count as usize].fill(0);
                self.device.discard(Lba(first), count, self.now).map(|_| ())
            }
            2 => {
                self.now = self.now + 60_000_000;
                (0..random.below(9)).try_for_each(|_| self.device.work(self.now).map(|_| ()))
            }
            3 => (0..ZONE).try_for_each(|block| self.write(first / ZONE * ZONE + block, 1)),
            4..8 => self.device.work(self.now).map(|_| ()),
            8..10 => self.write(first, 1 + random.below(2 * ZONE)),
            _ => self.write(first, 1),
        }
    }

    fn check(&mut self) {
        let mut buffer = vec![0; self.newest.len() * STAMP_BYTES];
        self.device.read(Lba(0), &mut buffer, self.now).unwrap();
        let found = buffer.chunks_exact(STAMP_BYTES).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
        for (block, (found, newest)) in found.zip(&self.newest).enumerate() {
            assert_eq!(found, *newest, "block {block}");
        }
    }
}

/// Writes every block, and then random ones.
fn work(geometry: &Geometry, seed: u64) {
    let path = geometry.path();
    let device = match open_device(&Path::read(&path).unwrap(), Payload::Stamps, seed) {
        Ok(device) => device,
        Err(OpenError::Station(StationError::Volume { is_damaged: false, source })) => {
            assert!(geometry.is_impossible(), "{path} is refused: {source}");
            return;
        }
        Err(error) => panic!("{path}: {error}"),
    };
    assert!(!geometry.is_impossible(), "{path} is made");
    let blocks = device.blocks();
    let has_journal = geometry.has_journal && blocks > 2 * ZONE;
    let mut work = Work { device, newest: vec![0; blocks as usize], stamp: 0, now: Time::ZERO, has_journal };
    if has_journal {
        work.device.set_journal(&[Lba(JOURNAL.start)..Lba(JOURNAL.end)]).unwrap();
    }
    let mut random = Random::new(seed, "dm-zoned room");
    let expect_ok = |done: Result<(), DeviceError>| done.unwrap_or_else(|error| panic!("{path}, seed {seed}: {error}"));
    for chunk in 0..blocks / ZONE {
        // In any order, whole or in part.
        let count = if random.below(3) == 0 { ZONE } else { 1 + random.below(ZONE) };
        expect_ok((0..count).try_for_each(|block| work.write((chunk * 7 % (blocks / ZONE)) * ZONE + block, 1)));
    }
    for _ in 0..150 {
        expect_ok(work.step(&mut random));
    }
    work.check();
    expect_ok(work.device.close(work.now).map(|_| ()));
    work.check();
}

#[test]
fn no_write_to_a_small_volume_of_any_geometry_fails() {
    let geometries = geometries();
    let possible = geometries.iter().filter(|geometry| !geometry.is_impossible()).count();
    assert!(possible > 500, "{possible} of {} geometries can be made", geometries.len());
    for seed in 0..seeds().div_ceil(10) {
        geometries.iter().for_each(|geometry| work(geometry, seed));
    }
}

/// The volume of the bug report, when its zones were all busy: no write waits for the previous answer.
#[test]
fn a_write_waits_for_busy_zones_at_any_queue_depth() {
    for (reserved, depth) in [(3, 1), (3, 32), (8, 1), (8, 32)] {
        let path = format!("dm-zoned:reserved={reserved}/conv:size=16M+zns:size=64M,zone=1M,page=4K");
        let device = open_device(&Path::read(&path).unwrap(), Payload::Stamps, 1).unwrap();
        let (blocks, mut random) = (device.blocks(), Random::new(reserved, "dm-zoned depth"));
        let mut newest = vec![0u32; blocks as usize];
        let mut under_way = std::collections::VecDeque::new();
        let mut now = Time::ZERO;
        for stamp in 1..2000u32 {
            let block = random.below(blocks);
            let written = device.write(Lba(block), &stamp.to_le_bytes(), Label::host(Content::Data), now);
            let done = written.unwrap_or_else(|error| panic!("{path}, depth {depth}, write {stamp}: {error}"));
            assert!(done >= now);
            newest[block as usize] = stamp;
            under_way.push_back(done);
            if under_way.len() == depth {
                now = now.max(under_way.pop_front().unwrap());
            }
        }
        let mut stamp = [0; STAMP_BYTES];
        for (block, newest) in newest.iter().enumerate() {
            device.read(Lba(block as u64), &mut stamp, now).unwrap();
            assert_eq!(u32::from_le_bytes(stamp), *newest, "block {block}");
        }
    }
}

#[test]
fn power_may_fail_at_any_moment_of_a_write_that_waits_for_room() {
    let mut cut = 0;
    for seed in 0..seeds() * 3 {
        let mut random = Random::new(seed, "dm-zoned room cuts");
        let has_journal = random.below(2) == 0;
        let (cache, sequential) = (3 + random.below(3), 3 + random.below(4));
        let reserved = 1 + random.below(cache.min(sequential - 2));
        let journal = if has_journal { ",journal-zone" } else { "" };
        let text = format!("dm-zoned:reserved={reserved},idle=5s,commit=2s{journal}");
        let machine = Machine::new(ZONE, cache, sequential as u32);
        machine.power.set_latency(random.below(2) * 700_000);
        mkfs(machine.devices(), &settings(&text), &Uuids::from_seed(1, 1)).unwrap();
        let mut volume = machine.open(&text);
        let mut model = Model::new(volume.blocks());
        let has_journal = has_journal && volume.blocks() >= super::model::JOURNAL.end;
        for _ in 0..12 {
            let opened = volume.account();
            machine.power.cut_after(random.below(600));
            for _ in 0..200 {
                if let Err(error) = model.step(&mut volume, &mut random, ZONE, has_journal) {
                    assert!(machine.power.is_off(), "{text}, seed {seed}: {error}");
                    cut += 1;
                    break;
                }
            }
            if !machine.power.is_off() {
                check_sums(&volume, &opened);
            }
            drop(volume);
            machine.lose_power(&mut random);
            volume = DmZoned::open(machine.devices(), &settings(&text)).unwrap();
            model.check_after_power_cut(&mut volume);
        }
    }
    assert!(cut > 100, "the power was cut {cut} times");
}

/// A volume made by the kernel's tools with one reserved zone has a chunk for each zone. When all are mapped, a block
/// that is not at its zone's write pointer cannot be stored: the error says so, and names a remedy.
#[test]
fn a_write_without_space_fails_with_the_reason() {
    let machine = Machine::new(ZONE, 4, 4);
    machine.mkfs("dm-zoned:reserved=1");
    for set in 0..2 {
        let superblock = machine.disk.bytes(set * ZONE);
        let mut superblock = flashpath::translation::zoned::SuperBlock::read(&superblock, set * ZONE).unwrap();
        assert_eq!(superblock.chunks, 4, "one zone is left for reclaim");
        superblock.chunks = 5;
        machine.disk.put(set * ZONE, &superblock.to_bytes());
    }
    let volume = machine.open("dm-zoned");
    let write = |block: u64| volume.write(Lba(block), &block_of(1), Label::host(Content::Data), Time::ZERO);
    for chunk in 0..5 {
        (0..4).for_each(|block| assert_eq!(write(chunk * ZONE + block).unwrap(), Time::ZERO));
    }
    let errors: Vec<String> = (0..5).filter_map(|chunk| write(chunk * ZONE).err()).map(|e| e.to_string()).collect();
    assert!(!errors.is_empty());
    for error in errors {
        assert!(error.contains("it has 1 reserved zones and needs 2"), "{error}");
    }
}
