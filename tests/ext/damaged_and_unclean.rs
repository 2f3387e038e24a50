//! Volumes that lose power and are damaged, too: a repair applies the log, repairs the rest, and may be cut off itself.
//!
//! `EXT_CRASHES` sets the number of volumes of each kind.

use crate::crashes::{BLOCK, BLOCKS, Disks, Place, Promised, findings, mounting, settings, work};
use crate::image::has_e2fsprogs;
use crate::power_cut::Power;
use flashpath::fs::ext::ExtSettings;
use flashpath::fs::station::StoredVolumes;
use flashpath::fs::station::VolumeSettings;
use flashpath::layout::{Layout, Region};
use flashpath::random::Random;

/// Repairs the volume, with cuts of power at first. True if nothing is left; false if it cannot be repaired.
fn repair(disks: &Disks, power: &Power, settings: &ExtSettings, random: &mut Random, what: &str) -> bool {
    for _ in 0..random.below(4) {
        power.cut_after(1 + random.below(40));
        let _ = settings.repair(disks.media(), &mounting());
        disks.lose_power(random);
        power.restore();
    }
    match settings.repair(disks.media(), &mounting()) {
        Ok(outcome) if outcome.left.is_empty() => true,
        Ok(outcome) if outcome.left[0].repair.contains("backup") => false,
        Ok(outcome) => panic!("{what}: {:?}", outcome.left),
        Err(fault) => {
            assert!(fault.is_lost, "{what}: {}", fault.source);
            false
        }
    }
}

/// Flips a bit of metadata, or of the journal.
fn damage(disks: &Disks, random: &mut Random) -> String {
    let mut read = |offset: u64, buffer: &mut [u8]| {
        let block = disks.volume.bytes(offset / BLOCK as u64);
        let at = offset as usize % BLOCK;
        let here = buffer.len().min(BLOCK - at);
        buffer[..here].copy_from_slice(&block[at..at + here]);
        for (part, number) in buffer[here..].chunks_mut(BLOCK).zip(offset / BLOCK as u64 + 1..) {
            part.copy_from_slice(&disks.volume.bytes(number)[..part.len()]);
        }
        Ok(())
    };
    let Ok(layout) = Layout::read_with_files(&mut read, BLOCKS * BLOCK as u64) else { return "nothing".to_string() };
    let regions = layout.regions.iter().filter(|(_, region)| [Region::Metadata, Region::Journal].contains(region));
    let places: Vec<_> = regions.map(|(range, _)| range).collect();
    loop {
        let range = &places[random.below(places.len() as u64) as usize];
        let at = range.start + random.below(range.end - range.start);
        let (block, byte) = (at / BLOCK as u64, at as usize % BLOCK);
        let mut bytes = disks.volume.bytes(block);
        if block > 0 && (bytes[byte] != 0 || random.below(16) == 0) {
            bytes[byte] ^= 1 << random.below(8);
            disks.volume.put(block, &bytes);
            return format!("block {block}, byte {byte}");
        }
    }
}

/// True if the volume could be repaired.
fn damage_and_crash(data: &str, place: Place, seed: u64) -> bool {
    let mut random = Random::new(seed, "damaged and unclean");
    let power = Power::new();
    let disks = Disks::new(&power, place);
    let settings = settings(data, place, seed);
    let volume = settings.create(disks.media(), &mounting()).unwrap();
    power.cut_after(20 + random.below(1500));
    work(&*volume, &mut random, &mut Promised::default(), &power);
    drop(volume);
    disks.lose_power(&mut random);
    power.restore();
    let damaged: Vec<String> = (0..1 + random.below(4)).map(|_| damage(&disks, &mut random)).collect();
    let what = format!("data={data}, {place:?}, seed {seed}, {}", damaged.join("; "));
    if !repair(&disks, &power, &settings, &mut random, &what) {
        return false;
    }
    if let Some(findings) = findings(&disks.images()) {
        panic!("{what}: e2fsck -fn: {findings}");
    }
    let found = settings.check(disks.media());
    assert_eq!(found.map_err(|fault| fault.source.to_string()), Ok(Vec::new()), "{what}");
    let again = settings.repair(disks.media(), &mounting());
    assert!(again.is_ok_and(|again| again.repaired.is_empty() && again.left.is_empty()), "{what}: repaired twice");
    true
}

#[test]
fn a_volume_that_is_damaged_and_unclean_is_repaired_although_the_repair_is_cut_off() {
    if !has_e2fsprogs() {
        return;
    }
    let count: u64 = std::env::var("EXT_CRASHES").map_or(12, |count| count.parse().expect("EXT_CRASHES is a number"));
    for (at, (data, place)) in [
        ("ordered", Place::Inline),
        ("journal", Place::Inline),
        ("writeback", Place::Inline),
        ("ordered", Place::Device),
        ("journal", Place::Memory),
    ]
    .into_iter()
    .enumerate()
    {
        let seeds = (0..count).map(|seed| 5000 * (1 + at as u64) + seed);
        let repaired = seeds.filter(|seed| damage_and_crash(data, place, *seed)).count() as u64;
        // The first group has no copy of its descriptor.
        assert!(repaired > count / 2, "data={data}, {place:?}: {repaired} of {count} could be repaired");
    }
}
