//! Lost blocks are reported in every way, and never turned into zeros silently.
//!
//! A volume whose zoned device was an older copy was opened without a warning; it cleared the bits of the missing
//! blocks, and was "clean" from then on: its blocks read as zeros. The warning was in a field that nobody read.

use super::model::Model;
use super::power_cut::Disk;
use super::{BLOCK, Machine, read, settings, try_read, warnings, write};
use flashpath::device::{Abilities, Account, BlockDevice, DeviceError, Lba, ZoneState};
use flashpath::label::{Content, Label};
use flashpath::random::Random;
use flashpath::run::{Labelling, Path, Payload, open_device};
use flashpath::time::Time;
use flashpath::translation::zoned::{Devices, DmZoned, Finding, Remedy, Uuids, check, mkfs, repair, survey};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const ZONE: u64 = 32;
const TEXT: &str = "dm-zoned:reserved=2,idle=1s";

/// Lets reclaim empty all conventional zones.
fn rest(volume: &mut DmZoned, from: Time) {
    let until = from + 4_000_000_000;
    let mut now = from + 2_000_000_000;
    while let Some(next) = volume.work(now).unwrap().filter(|next| *next <= until) {
        now = now.max(next);
    }
}

fn put(volume: &mut DmZoned, block: u64, stamp: u32) {
    write(volume, block, &[stamp], Content::Data, Time::ZERO);
}

/// A volume whose zoned device is older than the other: chunk 1 was not moved there yet.
fn stale() -> Machine {
    let machine = Machine::new(ZONE, 8, 12);
    machine.mkfs(TEXT);
    let mut volume = machine.open(TEXT);
    put(&mut volume, 0, 1);
    rest(&mut volume, Time::ZERO);
    volume.close(Time::ZERO).unwrap();
    let old = machine.zones.copy(&machine.power);
    (0..4).for_each(|block| put(&mut volume, ZONE + block, 2));
    rest(&mut volume, Time(8_000_000_000));
    volume.close(Time::ZERO).unwrap();
    Machine { zones: old, ..machine }
}

fn findings(machine: &Machine) -> Vec<Finding> {
    check(machine.devices()).unwrap().0
}

#[test]
fn blocks_that_a_stale_zoned_device_has_lost_fail_and_stay_found_until_fsck_gives_them_up() {
    let machine = stale();
    for _ in 0..2 {
        let found = findings(&machine);
        assert!(found.len() == 1 && found[0].what.contains("chunk 1: 4 blocks should lie beyond"), "{found:?}");
        assert!(survey(machine.devices()).unwrap().warnings[0].contains("chunk 1: 4 blocks"));
        // After opening, using and closing the volume, the lost blocks are still known.
        let mut volume = machine.open(TEXT);
        assert!(warnings(&volume)[0].contains("dm-zoned: the device has lost 4 blocks"), "{:?}", warnings(&volume));
        assert_eq!(read(&mut volume, 0), 1);
        let error = try_read(&mut volume, ZONE + 3).unwrap_err().to_string();
        assert!(error.contains("the device has lost the blocks after block 0 of zone"), "{error}");
        assert_eq!(read(&mut volume, ZONE + 4), 0, "what was never written is not lost");
        put(&mut volume, 3 * ZONE, 7);
        rest(&mut volume, Time(20_000_000_000));
        volume.close(Time::ZERO).unwrap();
    }
    repair(machine.devices(), &settings(TEXT)).unwrap();
    assert_eq!(findings(&machine), []);
    let mut volume = machine.open(TEXT);
    assert!(warnings(&volume).is_empty(), "{:?}", warnings(&volume));
    assert_eq!((read(&mut volume, 0), read(&mut volume, ZONE), read(&mut volume, 3 * ZONE)), (1, 0, 7));
}

#[test]
fn a_lost_block_is_readable_after_it_is_overwritten() {
    for first in [0, 2] {
        let machine = stale();
        let mut volume = machine.open(TEXT);
        // At the write pointer, or in a buffer.
        for block in (0..4).map(|block| (first + block) % 4) {
            put(&mut volume, ZONE + block, 9);
        }
        for chunk in 3..12 {
            put(&mut volume, chunk * ZONE, 7);
        }
        rest(&mut volume, Time(20_000_000_000));
        volume.close(Time::ZERO).unwrap();
        assert_eq!(findings(&machine), []);
        let mut volume = machine.open(TEXT);
        assert!(warnings(&volume).is_empty());
        assert!((ZONE..ZONE + 4).all(|block| read(&mut volume, block) == 9));
    }
}

/// The account of a wrapper contains the warnings of the wrapped device.
#[test]
fn a_wrapper_and_a_file_system_above_pass_warnings_on() {
    let volume: Box<dyn BlockDevice> = Box::new(stale().open(TEXT));
    let labelling = Labelling::new(volume, Time::ZERO).unwrap();
    assert!(labelling.account().all_warnings()[0].contains("the device has lost 4 blocks"));
    let later = labelling.account().since(&labelling.account());
    assert_eq!(later.all_warnings().len(), 1, "a warning from before counting began holds still");
    let top = Account { station: "sfs", below: vec![labelling.account()], ..Account::default() };
    assert!(top.all_warnings()[0].starts_with("dm-zoned: "));
}

#[test]
fn worn_out_zones_are_reported_and_lose_no_data() {
    let flash = "page=4K,channels=1,dies=1,planes=1,endurance=3";
    for timing in ["on", "off"] {
        let path =
            format!("dm-zoned:reserved=2/conv:size=768K,timing={timing}+zns:size=1M,zone=128K,{flash},timing={timing}");
        let device = open_device(&Path::read(&path).unwrap(), Payload::Stamps, 1).unwrap();
        let (mut newest, mut random) = (vec![0u32; device.blocks() as usize], Random::new(1, "wear"));
        let mut now = Time::ZERO;
        let error = (1u32..100_000).find_map(|stamp| {
            let block = random.below(newest.len() as u64);
            now = now + 100_000;
            match device.write(Lba(block), &stamp.to_le_bytes(), Label::host(Content::Data), now) {
                Ok(_) => {
                    newest[block as usize] = stamp;
                    None
                }
                Err(error) => Some(error),
            }
        });
        let error = error.expect("a drive that stands three erases ends");
        assert!(matches!(error, DeviceError::WornOut { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("zones are out of use (zone ") && text.contains("is offline"), "{text}");
        assert!(!text.contains("make the conventional device larger"), "{text}");
        let warnings = device.account().all_warnings();
        assert!(warnings.iter().any(|line| line.contains("has become offline, and is out of use")), "{warnings:?}");
        let mut stamp = [0; 4];
        for (block, newest) in newest.iter().enumerate() {
            device.read(Lba(block as u64), &mut stamp, now).unwrap();
            assert_eq!(u32::from_le_bytes(stamp), *newest, "block {block}");
        }
    }
}

#[test]
fn worn_out_zones_are_named_by_fsck_and_inspect_and_at_the_start() {
    let machine = Machine::new(ZONE, 8, 12);
    machine.mkfs(TEXT);
    let mut volume = machine.open(TEXT);
    put(&mut volume, 0, 1);
    rest(&mut volume, Time::ZERO);
    volume.close(Time::ZERO).unwrap();
    machine.zones.set_state(9, ZoneState::ReadOnly);
    machine.zones.set_state(10, ZoneState::Offline);
    let found = findings(&machine);
    assert!(
        found.iter().all(|finding| finding.remedy == Remedy::Note),
        "a free zone that is gone is no damage: {found:?}"
    );
    assert_eq!(found[0].what, "zone 17 is read-only, and is out of use");
    assert_eq!(survey(machine.devices()).unwrap().warnings.len(), 2);
    let message = warnings(&machine.open(TEXT));
    assert_eq!(
        message,
        ["dm-zoned: 2 zones have worn out, and are out of use: zone 17 is read-only, zone 18 is offline"]
    );
    // The zone of chunk 0: its blocks are lost.
    machine.zones.set_state(3, ZoneState::Offline);
    let found = findings(&machine);
    let lost = found.iter().find(|finding| finding.remedy == Remedy::None).unwrap();
    assert_eq!(lost.what, "chunk 0: zone 11 is offline: 1 blocks cannot be read");
}

/// A conventional device whose n-th operation fails.
struct Failing {
    disk: Disk,
    /// Operations until the next failure; it fails once.
    left: Arc<AtomicU64>,
}

impl Failing {
    fn operation(&self) -> Result<(), DeviceError> {
        match self.left.fetch_sub(1, Ordering::Relaxed) {
            1 => Err(DeviceError::Station { station: "test", reason: "a medium error".to_string() }),
            _ => Ok(()),
        }
    }
}

impl BlockDevice for Failing {
    fn blocks(&self) -> u64 {
        self.disk.blocks()
    }

    fn block_width(&self) -> usize {
        BLOCK
    }

    fn read(&self, first: Lba, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        self.operation()?;
        self.disk.read(first, buffer, at)
    }

    fn write(&self, first: Lba, buffer: &[u8], label: Label, at: Time) -> Result<Time, DeviceError> {
        self.operation()?;
        self.disk.write(first, buffer, label, at)
    }

    fn discard(&self, first: Lba, blocks: u64, at: Time) -> Result<Time, DeviceError> {
        self.disk.discard(first, blocks, at)
    }

    fn flush(&self, at: Time) -> Result<Time, DeviceError> {
        self.operation()?;
        self.disk.flush(at)
    }

    fn account(&self) -> Account {
        self.disk.account()
    }
}

impl Abilities for Failing {
    fn wrapped(&self) -> Option<&dyn BlockDevice> {
        None
    }
}

/// Merging a chunk's zones for its journal freed the first before the second was read: a failed read in between lost
/// the blocks of the first. A reclaim that failed once was never tried again, and its conventional zone was lost.
#[test]
fn one_failure_of_a_conventional_device_loses_no_data_and_leaves_a_usable_volume() {
    let (mut failed, mut read_only, mut reclaims) = (0, 0, 0);
    for seed in 0..super::power_cuts::seeds() * 12 {
        let mut random = Random::new(seed, "dm-zoned failing");
        let has_journal = seed % 2 == 0;
        let text = format!("dm-zoned:reserved=2,idle=5s,commit=2s{}", if has_journal { ",journal-zone" } else { "" });
        let machine = Machine::new(ZONE, 3 + random.below(6), 8);
        mkfs(machine.devices(), &settings(&text), &Uuids::from_seed(1, 1)).unwrap();
        let left = Arc::new(AtomicU64::new(u64::MAX));
        let open = || {
            let conventional = Failing { disk: machine.disk.clone(), left: Arc::clone(&left) };
            let devices =
                Devices { conventional: Some(Box::new(conventional)), zoned: vec![Box::new(machine.zones.clone())] };
            DmZoned::open(devices, &settings(&text)).unwrap()
        };
        let mut volume = open();
        let mut model = Model::new(volume.blocks());
        let has_journal = has_journal && volume.blocks() >= super::model::JOURNAL.end;
        for _ in 0..6 {
            left.store(random.below(700), Ordering::Relaxed);
            for _ in 0..120 {
                if let Err(error) = model.step(&mut volume, &mut random, ZONE, has_journal) {
                    let text = error.to_string();
                    assert!(text.contains("a medium error"), "seed {seed}: {text}");
                    failed += 1;
                    if text.contains("commit") || warnings(&volume).iter().any(|line| line.contains("commit failed")) {
                        // It has become read-only, and reports that: it is opened again.
                        read_only += 1;
                        left.store(u64::MAX, Ordering::Relaxed);
                        drop(volume);
                        volume = open();
                        model.check_after_power_cut(&mut volume);
                    } else {
                        model.check_after_failure(&mut volume);
                    }
                }
            }
            left.store(u64::MAX, Ordering::Relaxed);
            model.check(&mut volume);
            reclaims += warnings(&volume).iter().filter(|line| line.contains("the reclaim of chunk")).count();
        }
        volume.close(Time::ZERO).unwrap();
        let mut volume = machine.open(&text);
        model.check(&mut volume);
        assert_eq!(check(machine.devices()).unwrap().0, [], "seed {seed}");
    }
    assert!(failed > 50 && read_only > 0 && reclaims > 0, "{failed} failed, {read_only} commits, {reclaims} reclaims");
}
