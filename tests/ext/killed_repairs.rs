//! A repair that is killed at any of its writes: the next one completes it, and the volume has the same files as after one
//! that was not killed.
//!
//! `EXT_CRASHES` sets the number of volumes of each kind; of each, cuts are taken all over the repair.

use crate::crashes::{Disks, Place, Promised, findings, mounting, settings, work};
use crate::image::has_e2fsprogs;
use crate::logs::{COMMIT, OnDisk, open};
use crate::power_cut::Power;
use crate::walk::{Tree, of_volume};
use flashpath::fs::ext::ExtSettings;
use flashpath::fs::station::{Access, StoredVolumes, VolumeSettings};
use flashpath::random::Random;

/// Cuts of each repair.
const CUTS: u64 = 12;

/// A volume whose mount was killed, with the damage of its kind.
fn killed(data: &str, place: Place, damage: Damaged, seed: u64) -> (Disks, ExtSettings) {
    let mut random = Random::new(seed, "killed repairs");
    let (power, settings) = (Power::new(), settings(data, place, seed));
    let disks = Disks::new(&power, place);
    let volume = settings.create(disks.media(), &mounting()).unwrap();
    power.cut_after(match place {
        Place::Inline | Place::Device => 100 + random.below(600),
        Place::Memory => 4000 + random.below(20_000),
        Place::Monitor => 60 + random.below(200),
    });
    work(&*volume, &mut random, &mut Promised::default(), &power);
    drop(volume);
    disks.lose_power(&mut random);
    power.restore();
    damage.apply(&disks, &mut random);
    (disks, settings)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damaged {
    Nothing,
    /// A record of the log, but the last ones.
    Log,
    /// A block of the inode table, of which one inode has another checksum.
    Inodes,
    /// The inode of the journal, and a record of the log.
    Journal,
}

impl Damaged {
    fn apply(self, disks: &Disks, random: &mut Random) {
        if matches!(self, Damaged::Log | Damaged::Journal) {
            let log = OnDisk::of(disks);
            let records = log.records();
            let last = log.last().unwrap_or(0);
            let before: Vec<_> = records.iter().filter(|it| it.kind == COMMIT || it.transaction < last).collect();
            if let Some(record) = before.get(random.below(before.len().max(1) as u64) as usize) {
                log.change(record.block, |bytes| bytes[12..40].fill(0x77));
            }
        }
        if matches!(self, Damaged::Inodes | Damaged::Journal) {
            let first = first_table(disks);
            let (number, byte) = if self == Damaged::Journal { (7, 0x1a) } else { (20 + random.below(10), 0x28) };
            let (block, at) = (first + number / 16, number as usize % 16 * 256 + byte);
            let mut bytes = disks.volume.bytes(block);
            bytes[at] ^= 1;
            disks.volume.put(block, &bytes);
        }
    }
}

/// The first block of the inode table.
fn first_table(disks: &Disks) -> u64 {
    let descriptors = disks.volume.bytes(1);
    u64::from(u32::from_le_bytes(descriptors[8..12].try_into().unwrap()))
}

/// The files after a repair; `None` if the volume cannot be repaired.
fn tree_after(disks: &Disks, settings: &ExtSettings, what: &str) -> Option<Tree> {
    let outcome = settings.repair(disks.media(), &mounting());
    let outcome = outcome.map_err(|fault| assert!(fault.is_lost, "{what}: {}", fault.source)).ok()?;
    if outcome.left.first().is_some_and(|left| left.repair.contains("backup")) {
        return None;
    }
    assert!(outcome.left.is_empty(), "{what}: {outcome:?}");
    if let Some(findings) = findings(&disks.images()) {
        panic!("{what}: e2fsck -fn: {findings}\n{outcome:?}");
    }
    let again = settings.repair(disks.media(), &mounting());
    assert!(again.is_ok_and(|again| again.repaired.is_empty() && again.left.is_empty()), "{what}: repaired twice");
    let volume = open(disks, settings, Access::ReadOnly).unwrap_or_else(|why| panic!("{what}: {why}"));
    let mut tree = of_volume(&*volume);
    // The time at which it was mended.
    tree.values_mut().for_each(|seen| seen.times = [0; 2]);
    Some(tree)
}

/// True if the volume could be repaired.
fn kill_repairs(data: &str, place: Place, damage: Damaged, seed: u64) -> bool {
    let (disks, settings) = killed(data, place, damage, seed);
    let mut random = Random::new(seed, "cuts of repairs");
    let what = format!("data={data}, {place:?}, {damage:?}, seed {seed}");
    let power = Power::new();
    let whole = disks.copy(&power);
    let _ = settings.repair(whole.media(), &mounting());
    let operations = power.operations();
    assert!(operations > 0, "{what}: the repair writes");
    let wanted = tree_after(&whole, &settings, &what);
    let step = (operations / CUTS).max(1);
    for from in (0..operations).step_by(step as usize) {
        let at = from + random.below(step.min(operations - from));
        let what = format!("{what}, killed at {at} of {operations}");
        let power = Power::new();
        let cut = disks.copy(&power);
        power.cut_after(at);
        let _ = settings.repair(cut.media(), &mounting());
        cut.lose_power(&mut random);
        power.restore();
        let left = tree_after(&cut, &settings, &what);
        assert_eq!(left.is_some(), wanted.is_some(), "{what}");
        if let (Some(left), Some(wanted)) = (&left, &wanted) {
            let differs = |path: &&Vec<u8>| left.get(*path) != wanted.get(*path);
            let paths: Vec<_> =
                left.keys().chain(wanted.keys()).filter(differs).map(|p| String::from_utf8_lossy(p)).collect();
            assert!(paths.is_empty(), "{what}: {paths:?}");
        }
    }
    wanted.is_some()
}

#[test]
fn a_repair_that_is_killed_at_any_write_is_completed_by_the_next_one() {
    if !has_e2fsprogs() {
        return;
    }
    let count: u64 = std::env::var("EXT_CRASHES").map_or(1, |count| count.parse().expect("EXT_CRASHES is a number"));
    let mut repaired = 0;
    for (kind, (data, place, damage)) in [
        ("ordered", Place::Inline, Damaged::Nothing),
        ("ordered", Place::Inline, Damaged::Log),
        ("journal", Place::Inline, Damaged::Inodes),
        ("writeback", Place::Inline, Damaged::Journal),
        ("ordered", Place::Device, Damaged::Log),
        ("journal", Place::Device, Damaged::Inodes),
        ("journal", Place::Memory, Damaged::Nothing),
        ("ordered", Place::Memory, Damaged::Inodes),
        ("journal", Place::Monitor, Damaged::Nothing),
        ("ordered", Place::Monitor, Damaged::Inodes),
    ]
    .into_iter()
    .enumerate()
    {
        let seeds = (0..count).map(|seed| 1000 * kind as u64 + seed);
        repaired += seeds.filter(|seed| kill_repairs(data, place, damage, *seed)).count();
    }
    assert!(repaired > 5, "{repaired} could be repaired");
}
