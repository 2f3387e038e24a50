//! Compares a zoned block device of the kernel with the drive in memory: the same commands give the same results.
//!
//! They need a device to overwrite, in `FLASHPATH_ZONED_DEVICE`; `scripts/zoned-guest` boots a kernel with one.

use super::*;
use flashpath::device::zns::{Zns, ZnsSettings};
use flashpath::expression::parse_term;
use flashpath::label::Content;
use flashpath::random::Random;
use flashpath::units::format_size;

#[path = "../../../../tests/skipped/mod.rs"]
mod skipped;

const LABEL: Label = Label::host(Content::Data);
/// A guest without KVM takes half a minute for them.
const STEPS: usize = 3_000;
/// The number of zones in use: their content is held in memory.
const ZONES: u32 = 24;

fn device() -> Option<SystemZoned> {
    let Some(path) = std::env::var_os("FLASHPATH_ZONED_DEVICE") else {
        skipped::skipped("FLASHPATH_ZONED_DEVICE names no zoned block device that may be overwritten");
        return None;
    };
    Some(SystemZoned::open(Path::new(&path)).unwrap_or_else(|error| panic!("{error}")))
}

/// A drive in memory with the shape of the device.
fn model(device: &SystemZoned) -> Zns {
    let ZonedShape { zones, zone_blocks, max_open, max_active, .. } = device.shape();
    let conventional = device.zones.iter().filter(|zone| zone.kind == ZoneKind::Conventional).count();
    let capacity = device.zones.last().map_or(zone_blocks, |zone| zone.capacity);
    let text = format!(
        "zns:size={},zone={},capacity={},page=4K,conventional={conventional},max-open={max_open},max-active={max_active},\
         endurance=1000000,timing=off",
        format_size(u64::from(zones) * zone_blocks * BLOCK_BYTES),
        format_size(zone_blocks * BLOCK_BYTES),
        format_size(capacity * BLOCK_BYTES),
    );
    let settings =
        parse_term(&text).and_then(|term| ZnsSettings::read(&term)).unwrap_or_else(|error| panic!("{error}"));
    Zns::new(&settings, BLOCK_BYTES as usize)
}

fn result<T>(answer: Result<T, DeviceError>) -> String {
    answer.err().map_or_else(|| "done".to_string(), |error| error.to_string())
}

#[test]
fn a_device_of_the_kernel_answers_as_the_drive_in_memory_does() {
    let Some(mut device) = device() else { return };
    let mut model = model(&device);
    let ZonedShape { zones, zone_blocks, max_open, max_active, .. } = device.shape();
    let (zones, is_limited) = (zones.min(ZONES), max_open + max_active > 0);
    for zone in 0..zones {
        match device.zone(zone).kind {
            ZoneKind::Sequential => drop(device.reset(zone, Time::ZERO).unwrap()),
            ZoneKind::Conventional => {
                let zeros = vec![0; (zone_blocks * BLOCK_BYTES) as usize];
                device.write(Lba(u64::from(zone) * zone_blocks), &zeros, LABEL, Time::ZERO).unwrap();
            }
        }
    }
    // The drive chooses the zone to close.
    let comparable = |zone: Zone| match zone.state {
        ZoneState::ImplicitlyOpen if max_open > 0 => Zone { state: ZoneState::Closed, ..zone },
        _ => zone,
    };
    let mut random = Random::new(7, "a kernel's zones");
    let mut answers = std::collections::BTreeMap::<String, usize>::new();
    for number in 0..STEPS {
        let zone = random.below(u64::from(zones)) as u32;
        let known = model.zone(zone);
        let command = random.below(100);
        let from = match random.below(8) {
            0 => random.below(zone_blocks),
            _ if known.kind == ZoneKind::Conventional => continue,
            _ => known.write_pointer.min(zone_blocks - 1),
        };
        let first = Lba(u64::from(zone) * zone_blocks + from);
        let count = 1 + random.below(700.min(zone_blocks - from));
        let mut buffers = [(); 2].map(|()| vec![(number % 251) as u8; (count * BLOCK_BYTES) as usize]);
        let [ours, theirs] = match command {
            0..55 => [
                model.write(first, &buffers[0], LABEL, Time::ZERO),
                device.write(first, &buffers[1], LABEL, Time::ZERO),
            ],
            55..65 => [model.open(zone, Time::ZERO), device.open(zone, Time::ZERO)],
            // A zone closed without data is closed in NVMe, empty in null_blk.
            65..75 if known.write_pointer == 0 => continue,
            65..75 => [model.close(zone, Time::ZERO), device.close(zone, Time::ZERO)],
            // Finishing an empty or closed zone takes a resource in ZBC, which null_blk follows, and none in NVMe.
            75..78 if [ZoneState::Empty, ZoneState::Closed].contains(&known.state) && is_limited => continue,
            75..78 => [model.finish(zone, Time::ZERO), device.finish(zone, Time::ZERO)],
            78..88 => [model.reset(zone, Time::ZERO), device.reset(zone, Time::ZERO)],
            88..90 => [model.flush(Time::ZERO), device.flush(Time::ZERO)],
            _ => {
                let [ours, theirs] = &mut buffers;
                [model.read(first, ours, Time::ZERO), device.read(first, theirs, Time::ZERO)]
            }
        };
        let ours = result(ours);
        assert_eq!(result(theirs), ours, "step {number}, command {command}: zone {zone} is {known:?}");
        let differs = buffers[0].iter().zip(&buffers[1]).position(|(ours, theirs)| ours != theirs);
        assert_eq!(differs, None, "step {number}: {ours}, from block {from} of {count} in zone {zone}, {known:?}");
        *answers.entry(ours.split(':').next().unwrap_or_default().to_string()).or_default() += 1;
        device.refresh(zone).unwrap();
        assert_eq!(comparable(device.zone(zone)), comparable(model.zone(zone)), "step {number}");
    }
    println!("{answers:#?}");
    // Compares all zones once more, in full.
    for zone in 0..zones {
        device.refresh(zone).unwrap();
        assert_eq!(comparable(device.zone(zone)), comparable(model.zone(zone)), "zone {zone} at the end");
        let [mut ours, mut theirs] = [(); 2].map(|()| vec![0; (zone_blocks * BLOCK_BYTES) as usize]);
        let first = Lba(u64::from(zone) * zone_blocks);
        model.read(first, &mut ours, Time::ZERO).unwrap();
        device.read(first, &mut theirs, Time::ZERO).unwrap();
        assert!(ours == theirs, "zone {zone} at the end");
    }
}

#[test]
fn a_device_without_zones_is_refused_by_its_name() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = open(file.path()).map(drop).unwrap_err().to_string();
    assert!(error.contains(&file.path().display().to_string()) && error.contains("is not a block device"), "{error}");
}
