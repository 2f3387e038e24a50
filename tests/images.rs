//! Images: the state of a conventional device and a ZNS drive after restarts, killed programs and power cuts, and the
//! bytes that they reject.

use flashpath::device::conv::{ConvSettings, Conventional};
use flashpath::device::zns::{Zns, ZnsSettings};
use flashpath::device::{Abilities, BlockDevice, Disk, FileDisk, ImageError, Lba, ZoneState, ZonedDevice};
use flashpath::expression::parse_term;
use flashpath::label::{Content, Label};
use flashpath::random::Random;
use flashpath::time::Time;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

#[path = "images/bytes.rs"]
mod bytes;
#[path = "images/model.rs"]
mod model;

use bytes::Bytes;
use model::{Model, check, check_is_one_of, step};

const BLOCK: usize = 4096;
const LABEL: Label = Label::host(Content::Data);
/// A drive that reaches every limit: eight zones of eight blocks, six of them writable.
const SMALL: &str = "size=256K,zone=32K,capacity=24K,page=8K,conventional=1,max-open=2,max-active=4,zrwa=16K,zrwa-flush=8K,max-zrwa=2,\
     endurance=60,timing=off";

fn zns(text: &str) -> ZnsSettings {
    parse_term(text).and_then(|term| ZnsSettings::read(&term)).unwrap_or_else(|error| panic!("{error}"))
}

fn conv(text: &str) -> ConvSettings {
    parse_term(text).and_then(|term| ConvSettings::read(&term)).unwrap_or_else(|error| panic!("{error}"))
}

fn zns_at(path: &Path, options: &str) -> ZnsSettings {
    zns(&format!("zns:image={}{options}", path.display()))
}

fn conv_at(path: &Path, options: &str) -> ConvSettings {
    conv(&format!("conv:image={}{options}", path.display()))
}

/// The settings of any drive on a given disk.
fn small() -> ZnsSettings {
    zns(&format!("zns:image=unused,{SMALL}"))
}

fn anything() -> ZnsSettings {
    zns("zns:image=unused")
}

fn refusal<T>(answer: Result<T, ImageError>) -> ImageError {
    answer.map(drop).unwrap_err()
}

#[test]
fn a_conventional_image_holds_only_the_devices_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let device = Conventional::create(&conv_at(&path, ",size=1M"), false).unwrap();
    device.write(Lba(3), &[7; 2 * BLOCK], LABEL, Time::ZERO).unwrap();
    device.write(Lba(9), &[8; BLOCK], LABEL, Time::ZERO).unwrap();
    device.discard(Lba(4), 1, Time::ZERO).unwrap();
    device.flush(Time::ZERO).unwrap();
    drop(device);
    let mut expected = vec![0; 1 << 20];
    expected[3 * BLOCK..4 * BLOCK].fill(7);
    expected[9 * BLOCK..10 * BLOCK].fill(8);
    assert!(std::fs::read(&path).unwrap() == expected);
    let device = Conventional::open(&conv_at(&path, "")).unwrap();
    assert_eq!(device.blocks(), 256);
    let mut buffer = vec![1; 2 * BLOCK];
    device.read(Lba(3), &mut buffer, Time::ZERO).unwrap();
    assert!(buffer[..BLOCK] == [7; BLOCK] && buffer[BLOCK..] == [0; BLOCK]);
}

#[test]
fn the_holes_of_a_conventional_image_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let settings = conv_at(&folder.path().join("a"), ",size=1M");
    let mut in_file = Conventional::create(&settings, false).unwrap();
    let mut in_memory = Conventional::new(&settings, BLOCK);
    for device in [&mut in_file, &mut in_memory] {
        device.write(Lba(64), &[7; 64 * BLOCK], LABEL, Time::ZERO).unwrap();
        let mut stored = Vec::new();
        let mut at = 0;
        while at < 256 {
            let extent = device.extent(Lba(at), 256 - at).unwrap();
            assert!((1..=256 - at).contains(&extent.blocks));
            stored.extend((at..at + extent.blocks).filter(|_| extent.is_stored));
            at += extent.blocks;
        }
        assert_eq!(stored, (64..128).collect::<Vec<_>>());
    }
}

#[test]
fn an_image_is_created_once_and_opened_by_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (folder.path().join("a"), folder.path().join("b"));
    assert!(matches!(refusal(Conventional::open(&conv_at(&a, ""))), ImageError::Io { doing: "open", .. }));
    let first = Conventional::create(&conv_at(&a, ",size=1M"), false).unwrap();
    assert!(matches!(refusal(Conventional::open(&conv_at(&a, ""))), ImageError::InUse { .. }));
    assert!(matches!(refusal(Conventional::create(&conv_at(&a, ",size=1M"), true)), ImageError::InUse { .. }));
    drop(first);
    let refused = refusal(Conventional::create(&conv_at(&a, ",size=2M"), false));
    assert!(matches!(refused, ImageError::Exists { bytes: 1_048_576, .. }), "{refused}");
    let refused = refusal(Conventional::open(&conv_at(&a, ",size=2M"))).to_string();
    assert!(refused.starts_with("size=2M was asked for, but ") && refused.ends_with("was made with size=1M"));
    drop(Conventional::create(&conv_at(&a, ",size=2M"), true).unwrap());
    assert_eq!(Conventional::open(&conv_at(&a, ",size=2M")).unwrap().blocks(), 512);

    let drive = Zns::create(&zns_at(&b, &format!(",{SMALL}")), false).unwrap();
    assert!(matches!(refusal(Zns::open(&zns_at(&b, ""))), ImageError::InUse { .. }));
    drop(drive);
    assert!(matches!(refusal(Zns::create(&zns_at(&b, &format!(",{SMALL}")), false)), ImageError::Exists { .. }));
    let refused = refusal(Zns::open(&zns_at(folder.path(), ""))).to_string();
    assert!(refused.contains("cannot open"), "{refused}");
}

#[test]
fn a_file_without_a_whole_block_is_refused_and_what_lies_behind_the_last_one_is_no_block() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    for length in [0, 1, 4095] {
        std::fs::write(&path, vec![0; length]).unwrap();
        let refused = refusal(Conventional::open(&conv_at(&path, ""))).to_string();
        assert!(refused.contains(&format!("its length is {length} bytes, expected")), "{refused}");
    }
    std::fs::write(&path, vec![0; 4097]).unwrap();
    assert_eq!(Conventional::open(&conv_at(&path, "")).unwrap().blocks(), 1);
}

#[test]
fn the_image_determines_the_geometry_and_a_conflicting_option_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("b");
    let made = ",size=160M,zone=4M,capacity=3M,max-open=7,max-active=9,preset=ssd-m,erase=5ms";
    let made = *Zns::create(&zns_at(&path, made), false).unwrap().drive_shape();
    assert_eq!((made.zones, made.channels, made.latencies.erase_ns), (40, 10, 5_000_000));
    assert_eq!(*Zns::open(&zns_at(&path, "")).unwrap().drive_shape(), made);
    assert_eq!(*Zns::open(&zns_at(&path, ",size=160M,capacity=3M,max-open=7,page=4K")).unwrap().drive_shape(), made);
    let faster = Zns::open(&zns_at(&path, ",read=1us")).unwrap().drive_shape().latencies;
    assert_eq!((faster.read_ns, faster.program_ns), (1000, made.latencies.program_ns), "times are the run's matter");
    for (asked, was) in
        [("size=4G", "160M"), ("zone=8M", "4M"), ("capacity=4M", "3M"), ("max-active=0", "9"), ("dies=1", "2")]
    {
        let refused = refusal(Zns::open(&zns_at(&path, &format!(",{asked}")))).to_string();
        let name = asked.split('=').next().unwrap();
        assert!(refused.starts_with(&format!("{asked} was asked for, but ")), "{refused}");
        assert!(refused.ends_with(&format!("was made with {name}={was}")), "{refused}");
    }
}

#[test]
fn invalid_options_create_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("b");
    let refused = refusal(Zns::create(&zns_at(&path, ",size=100M"), false));
    assert!(matches!(refused, ImageError::Options(_)), "{refused}");
    assert!(!path.exists());
}

#[test]
fn a_drive_keeps_its_state_over_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let settings = zns_at(&folder.path().join("b"), &format!(",{SMALL}"));
    let (mut model, mut random) = (Model::new(60), Random::new(1, "restarts"));
    let mut drive = Zns::create(&settings, false).unwrap();
    for round in 0..300 {
        for _ in 0..20 {
            step(&mut drive, &mut model, &mut random);
        }
        drop(drive);
        model.lose_power();
        drive = Zns::open(&zns_at(settings.image.as_deref().unwrap(), "")).unwrap();
        check(&mut drive, &model, &format!("round {round}"));
    }
}

const NEVER_WORN: u32 = 10_000_000;

/// In the child process: works on the image until it is killed, and prints each step before and after it is done.
#[test]
fn child_that_is_killed() {
    let Ok(path) = std::env::var("FLASHPATH_KILLED_IMAGE") else { return };
    let mut drive = Zns::open(&zns_at(Path::new(&path), ",timing=off")).unwrap();
    let (mut model, mut random) = (Model::new(NEVER_WORN), Random::new(2, "killed"));
    let answered = File::create(format!("{path}.answered")).unwrap();
    for number in 0_u64.. {
        step(&mut drive, &mut model, &mut random);
        answered.write_all_at(&number.to_le_bytes(), 0).unwrap();
    }
}

#[test]
fn answered_writes_survive_a_killed_program() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("b");
    for milliseconds in [20, 35, 60, 90] {
        let options = SMALL.replace("endurance=60", &format!("endurance={NEVER_WORN}"));
        let settings = zns_at(&path, &format!(",{options}"));
        drop(Zns::create(&settings, true).unwrap());
        let answered = folder.path().join("b.answered");
        let _ = std::fs::remove_file(&answered);
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_that_is_killed"])
            .env("FLASHPATH_KILLED_IMAGE", &path)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let steps =
            || std::fs::read(&answered).ok().and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes);
        // On a busy machine they take longer.
        while steps() <= 20 {
            assert!(child.try_wait().unwrap().is_none(), "the child ended by itself");
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(milliseconds));
        child.kill().unwrap();
        child.wait().unwrap();
        let number = steps();
        // The same steps on a disk in memory: the image equals that after the last printed step, or after one more.
        let (mut model, mut random) = (Model::new(NEVER_WORN), Random::new(2, "killed"));
        let mut reference = Zns::create_on(Box::new(Bytes::for_drive(&settings)), &settings).unwrap();
        for _ in 0..=number {
            step(&mut reference, &mut model, &mut random);
        }
        let before = model.clone();
        step(&mut reference, &mut model, &mut random);
        let mut drive = Zns::open(&zns_at(&path, "")).unwrap();
        let versions = |zone: usize| vec![before.zones[zone].clone(), model.zones[zone].clone()];
        check_is_one_of(&mut drive, versions, &format!("killed after step {number}"));
    }
}

#[test]
fn flushed_blocks_survive_a_power_cut_at_any_write() {
    for seed in 0..200 {
        let disk = Bytes::for_drive(&small());
        let disk = if seed % 2 == 0 { disk } else { disk.of_blocks() };
        let (mut model, mut random) = (Model::new(60), Random::new(seed, "cut"));
        let mut drive = Zns::create_on(Box::new(disk.clone()), &small()).unwrap();
        disk.cut_after(1 + seed * 3 + random.below(3));
        while step(&mut drive, &mut model, &mut random) || !disk.is_cut() {}
        std::mem::forget(drive);
        for variant in 0..8 {
            let survived = disk.after_cut(&mut Random::new(seed * 100 + variant, "survivors"));
            let context = format!("seed {seed}, variant {variant}");
            // The power may fail again during recovery, and nothing more is lost.
            let recovering = survived.clone();
            recovering.cut_after(1 + random.below(4));
            std::mem::forget(Zns::open_on(Box::new(recovering), &anything()));
            let survived = survived.after_cut(&mut random);
            let mut drive = Zns::open_on(Box::new(survived), &anything()).unwrap_or_else(|e| panic!("{context}: {e}"));
            check_is_one_of(&mut drive, |zone| model.since_flush[zone].clone(), &context);
        }
    }
}

#[test]
fn a_zone_rewritten_at_once_never_mixes_old_and_new_data() {
    let disk = Bytes::for_drive(&small());
    let mut drive = Zns::create_on(Box::new(disk.clone()), &small()).unwrap();
    drive.write(Lba(8), &[1; 5 * BLOCK], LABEL, Time::ZERO).unwrap();
    drive.flush(Time::ZERO).unwrap();
    drive.reset(1, Time::ZERO).unwrap();
    drive.write(Lba(8), &[2; 3 * BLOCK], LABEL, Time::ZERO).unwrap();
    std::mem::forget(drive);
    for seed in 0..200 {
        let survived = disk.after_cut(&mut Random::new(seed, "lives"));
        let mut drive = Zns::open_on(Box::new(survived), &anything()).unwrap();
        // The reset had to be made durable before the second life began.
        assert_eq!(drive.zone(1).write_pointer, 0);
        let mut buffer = vec![9; 6 * BLOCK];
        drive.read(Lba(8), &mut buffer, Time::ZERO).unwrap();
        assert!(buffer.iter().all(|byte| *byte == 0));
    }
}

#[test]
fn a_torn_record_is_detected_and_the_previous_one_is_used() {
    let disk = Bytes::for_drive(&small());
    let mut drive = Zns::create_on(Box::new(disk.clone()), &small()).unwrap();
    drive.write(Lba(8), &[1; 2 * BLOCK], LABEL, Time::ZERO).unwrap();
    drive.flush(Time::ZERO).unwrap();
    drive.write(Lba(10), &[1; BLOCK], LABEL, Time::ZERO).unwrap();
    drive.flush(Time::ZERO).unwrap();
    drop(drive);
    // The two copies of the one block of the zone table are each valid on their own; the running one is not after a
    // reboot.
    let open = |image: Vec<u8>| Zns::open_on(Box::new(Bytes::after_reboot(image)), &anything());
    let pointer = |image: Vec<u8>| open(image).unwrap().zone(1).write_pointer;
    let whole = disk.bytes();
    assert_eq!(pointer(whole.clone()), 3);
    let flipped = |offsets: &[usize]| {
        let mut image = whole.clone();
        for offset in offsets {
            image[*offset] ^= 0x40;
        }
        image
    };
    let (first, second) = (2 * BLOCK, 3 * BLOCK);
    let pointers = [pointer(flipped(&[first + 24])), pointer(flipped(&[second + 24]))];
    assert!(pointers == [2, 3] || pointers == [3, 2], "{pointers:?}");
    for offset in (0..BLOCK).step_by(7) {
        assert!(pointer(flipped(&[first + offset])) >= 2 && pointer(flipped(&[second + offset])) >= 2);
        let refused = refusal(open(flipped(&[first + offset, second + offset]))).to_string();
        assert!(refused.contains("block 0 of the zone table is torn in both copies"), "{refused}");
    }
}

/// Each record once had a CRC-32C, and so had the block of them. The CRC over data that ends with its own CRC is a
/// constant, so the block's was useless: a block whose trailer alone had reached the disk was taken as the newest, and
/// reset the zones to the flush before the last.
#[test]
fn a_block_of_the_zone_table_with_only_a_new_trailer_is_torn() {
    let disk = Bytes::for_drive(&small());
    let mut drive = Zns::create_on(Box::new(disk.clone()), &small()).unwrap();
    for written in 1..=3 {
        drive.write(Lba(7 + written), &[1; BLOCK], LABEL, Time::ZERO).unwrap();
        drive.flush(Time::ZERO).unwrap();
    }
    let before = disk.bytes();
    drive.write(Lba(11), &[1; BLOCK], LABEL, Time::ZERO).unwrap();
    drive.flush(Time::ZERO).unwrap();
    let mut torn = before.clone();
    let after = disk.bytes();
    for block in [2, 3] {
        let last_sector = (block + 1) * BLOCK - 512..(block + 1) * BLOCK;
        torn[last_sector.clone()].copy_from_slice(&after[last_sector]);
    }
    assert!(torn != before, "the fourth flush wrote one of the copies");
    let drive = Zns::open_on(Box::new(Bytes::after_reboot(torn)), &anything()).unwrap();
    assert_eq!(drive.zone(1).write_pointer, 3);
}

#[test]
fn a_damaged_image_is_refused_by_field_or_read_unchanged() {
    let disk = Bytes::for_drive(&small());
    let mut drive = Zns::create_on(Box::new(disk.clone()), &small()).unwrap();
    drive.write(Lba(8), &[1; 2 * BLOCK], LABEL, Time::ZERO).unwrap();
    drop(drive);
    let whole = disk.bytes();
    let open = |image: Vec<u8>| Zns::open_on(Box::new(Bytes::holding(image)), &anything());
    for (offset, message) in [(0, "the magic is "), (8, "the version is "), (20, "the header's checksum is ")] {
        let mut image = whole.clone();
        image[offset] ^= 1;
        let refused = refusal(open(image)).to_string();
        assert!(refused.contains(message) && refused.contains(", expected "), "{refused}");
    }
    for length in [0, 1, BLOCK, 4 * BLOCK, whole.len() - 1] {
        let refused = refusal(open(whole[..length].to_vec())).to_string();
        assert!(refused.contains("its length is "), "{refused}");
    }
    // Invalid fields with correct checksums.
    for (offset, value, message) in [
        (16, u32::MAX, "the header's size is 4294967295 zones, expected 1 to 1048576 zones"),
        (16, 0, "the header's size is 0 zones"),
        (16, 9, "the data begins"),
        (20, 9, "the header's conventional is 9, expected at most all 8 zones"),
        (24, 7, "the header's zone is 7 blocks of 4K, expected a power of two"),
        (32, 9, "the header's capacity is 36K"),
        (40, 5, "the header's max-open is 5, expected at most max-active, 4"),
        (48, 5000, "the header's page is 5000, expected 2K, 4K, 8K or 16K"),
        (52, 0, "the header's channels is 0"),
        (56, 65, "the header's dies is 65"),
        (60, u32::MAX, "the header's planes is 4294967295"),
        (64, 0, "the header's endurance is 0"),
        (76, 3, "the header's read is "),
        (104, 5, "the header's data offset is 5"),
        (8, 1, "the header's zrwa is 4 blocks of 4K, expected an area in version 2, and none in version 1"),
        (112, 7, "the header's zrwa is 28K, expected at most 24K"),
        (116, 3, "the header's zrwa-flush is 12K, expected a size that divides zrwa, 16K"),
    ] {
        let mut image = whole.clone();
        image[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
        bytes::seal(&mut image[..BLOCK]);
        let refused = refusal(open(image)).to_string();
        let is_reported =
            refused.contains(message) || message == "the data begins" && refused.contains("its length is ");
        assert!(is_reported, "{message}: {refused}");
    }
    for (offset, value, message) in [
        (24 + 8, 5_u8, "the zone number in the record of zone 1 is 5, expected 1"),
        (24 + 16, 9, "the state in the record of zone 1 is 0x9"),
        (24, 7, "the write pointer in the record of zone 1 is 7, expected 0 to 6"),
        (24 + 17, 2, "the random write area in the record of zone 1 is 2, expected 0, or 1 in an open or closed zone"),
        (17, 1, "the random write area in the record of zone 0 is 1"),
        (0, 1, "the write pointer in the record of zone 0 is 1, expected 0 to 0"),
        (16, 4, "the state in the record of zone 0 is closed"),
        (2 * 24, 1, "the write pointer in the record of zone 2 is 1, expected 0 to 0 in a zone that is empty"),
        (4080 + 7, 0x7f, "the generation of block 0 of the zone table is "),
    ] {
        let mut image = whole.clone();
        for block in [2, 3] {
            let block = &mut image[block * BLOCK..(block + 1) * BLOCK];
            block[offset] = value;
            bytes::seal(block);
        }
        let refused = refusal(open(image)).to_string();
        assert!(refused.contains(message), "{message}: {refused}");
    }
}

#[test]
fn no_image_content_makes_a_drive_panic() {
    let disk = Bytes::for_drive(&small());
    let mut drive = Zns::create_on(Box::new(disk.clone()), &small()).unwrap();
    drive.write(Lba(8), &[1; 2 * BLOCK], LABEL, Time::ZERO).unwrap();
    drop(drive);
    let whole = disk.bytes();
    let mut opened = 0;
    for seed in 0..3000 {
        let mut random = Random::new(seed, "damage");
        let mut image = whole.clone();
        for _ in 0..=random.below(6) {
            let block = random.below(5) as usize * BLOCK;
            let within = if block == 0 { random.below(124) } else { random.below(200) } as usize;
            let value = [0, 1, 0x7f, 0xff, random.bits() as u8][random.below(5) as usize];
            image[block + within] = value;
        }
        if seed % 3 != 0 {
            bytes::seal(&mut image[..BLOCK]);
            for block in 2..4 {
                bytes::seal(&mut image[block * BLOCK..][..BLOCK]);
            }
            for record in 0..8 {
                bytes::seal(&mut image[4 * BLOCK + record * 24..][..24]);
            }
        }
        let mut settings = anything();
        settings.is_timed = seed % 2 == 0;
        let Ok(mut drive) = Zns::open_on(Box::new(Bytes::holding(image)), &settings) else { continue };
        opened += 1;
        // The geometry may differ: the drive works, or rejects it, and does not panic.
        let blocks = u64::from(drive.shape().zones) * drive.shape().zone_blocks;
        let mut buffer = vec![0; BLOCK];
        for zone in 0..drive.shape().zones.min(9) {
            let first = u64::from(zone) * drive.shape().zone_blocks;
            let _ = drive.read(Lba(first % blocks), &mut buffer, Time::ZERO);
            let _ = drive.append(zone, &buffer, LABEL, Time::ZERO);
            let _ = drive.finish(zone, Time::ZERO);
            let _ = drive.reset(zone, Time::ZERO);
        }
        let _ = drive.flush(Time::ZERO);
    }
    assert!(opened > 300, "only {opened} damaged images could be opened");
}

#[test]
fn the_bytes_of_an_image_never_change() {
    let small = zns(&format!("zns:image=unused,{}", SMALL.replace("zrwa=16K,zrwa-flush=8K,max-zrwa=2,", "")));
    let disk = Bytes::for_drive(&small);
    let mut drive = Zns::create_on(Box::new(disk.clone()), &small).unwrap();
    drive.write(Lba(8), &[1; 2 * BLOCK], LABEL, Time::ZERO).unwrap();
    drive.flush(Time::ZERO).unwrap();
    drop(drive);
    let image = disk.bytes();
    let field = |offset: usize, length: usize| {
        image[offset..offset + length].iter().rev().fold(0_u64, |value, byte| value << 8 | u64::from(*byte))
    };
    assert_eq!(&image[..8], b"FLASHZNS");
    let header: Vec<u64> = [8, 12, 16, 20].into_iter().map(|offset| field(offset, 4)).collect();
    assert_eq!(header, [1, 0, 8, 1]);
    assert_eq!((field(24, 8), field(32, 8)), (8, 6));
    let rest: Vec<u64> = (40..72).step_by(4).map(|offset| field(offset, 4)).collect();
    assert_eq!(rest, [2, 4, 8192, 4, 2, 2, 60, 0]);
    let times: Vec<u64> = (72..112).step_by(8).map(|offset| field(offset, 8)).collect();
    assert_eq!(times, [58_000, 187_000, 3_500_000, 36_000, 1 << 20]);
    // The second copy of the table's block is of the second generation; zone 1 was closed by the power cut.
    let table = 3 * BLOCK;
    assert_eq!(field(table + 4080, 8), 2);
    let record = table + 24;
    assert_eq!((field(record, 8), field(record + 8, 4), field(record + 12, 4), image[record + 16]), (2, 1, 0, 2));
    assert_eq!(&image[(1 << 20) + 8 * BLOCK..(1 << 20) + 10 * BLOCK], [1; 2 * BLOCK]);
    // A checksum computed outside this program: CRC-32C over all but the last four bytes.
    assert_eq!(field(BLOCK - 4, 4) as u32, bytes::crc32c(&image[..BLOCK - 4]));
    assert!(image[112..BLOCK - 4].iter().all(|byte| *byte == 0), "nothing tells of random write areas");
}

#[test]
fn the_bytes_of_an_image_with_random_write_areas_never_change() {
    let disk = Bytes::for_drive(&small());
    let mut drive = Zns::create_on(Box::new(disk.clone()), &small()).unwrap();
    drive.open_with_area(1, Time::ZERO).unwrap();
    drive.write(Lba(9), &[1; BLOCK], LABEL, Time::ZERO).unwrap();
    drive.write(Lba(12), &[2; BLOCK], LABEL, Time::ZERO).unwrap();
    drive.flush(Time::ZERO).unwrap();
    drop(drive);
    let image = disk.bytes();
    let field = |offset: usize| u32::from_le_bytes(image[offset..offset + 4].try_into().unwrap());
    assert_eq!((field(8), field(112), field(116), field(120)), (2, 4, 2, 2), "the version, and areas of four blocks");
    let record = 3 * BLOCK + 24;
    assert_eq!((field(record), &image[record + 16..record + 20]), (2, &[3, 1, 0, 0][..]));
    assert_eq!(&image[(1 << 20) + 12 * BLOCK..(1 << 20) + 13 * BLOCK], [2; BLOCK]);
    let drive = Zns::open_on(Box::new(Bytes::after_reboot(image)), &anything()).unwrap();
    let buffer = drive.account().buffer.unwrap();
    assert_eq!((buffer.held_before.total(), buffer.held.total()), (1, 1), "one block is before the write pointer");
}

#[test]
fn the_image_keeps_read_only_and_offline_zones() {
    let folder = tempfile::tempdir().unwrap();
    let settings = zns_at(&folder.path().join("b"), &format!(",{SMALL}"));
    let mut drive = Zns::create(&settings, false).unwrap();
    drive.set_state(2, ZoneState::ReadOnly).unwrap();
    drive.set_state(3, ZoneState::Offline).unwrap();
    drop(drive);
    let drive = Zns::open(&settings).unwrap();
    assert_eq!((drive.zone(2).state, drive.zone(3).state), (ZoneState::ReadOnly, ZoneState::Offline));
}

#[test]
fn a_reset_frees_the_space_of_its_zone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("b");
    let mut drive = Zns::create(&zns_at(&path, ",size=64M,zone=16M"), false).unwrap();
    let room = || std::fs::metadata(&path).unwrap().blocks() * 512;
    let empty = room();
    drive.write(Lba(0), &vec![1; 8 << 20], LABEL, Time::ZERO).unwrap();
    drive.flush(Time::ZERO).unwrap();
    assert!(room() >= empty + (8 << 20));
    drive.reset(0, Time::ZERO).unwrap();
    drive.flush(Time::ZERO).unwrap();
    assert!(room() < empty + (1 << 20), "{} of {empty}", room());
}

#[test]
fn a_drive_whose_disk_cannot_sync_becomes_read_only() {
    let disk = Bytes::for_drive(&small());
    let mut drive = Zns::create_on(Box::new(disk.clone()), &small()).unwrap();
    drive.write(Lba(8), &[1; BLOCK], LABEL, Time::ZERO).unwrap();
    disk.fail_syncs(1);
    assert!(drive.flush(Time::ZERO).is_err());
    let again = drive.flush(Time::ZERO).unwrap_err().to_string();
    assert!(again.contains("can only be read: making it durable failed"), "{again}");
    assert!(drive.write(Lba(9), &[1; BLOCK], LABEL, Time::ZERO).is_err());
    let mut buffer = vec![0; BLOCK];
    drive.read(Lba(8), &mut buffer, Time::ZERO).unwrap();
    assert_eq!(buffer, [1; BLOCK]);
}

#[test]
fn a_file_disk_has_the_content_of_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let disk = FileDisk::create(&path, 1 << 20, false).unwrap();
    assert!(!disk.is_block_device() && disk.length() == 1 << 20);
    disk.write_at(5000, b"hello").unwrap();
    disk.sync().unwrap();
    disk.punch(5001, 3).unwrap();
    assert_eq!(&std::fs::read(&path).unwrap()[5000..5005], b"h\0\0\0o");
    assert_eq!(disk.epoch(), disk.epoch());
}
