//! `fsck` against e2fsck: which volumes are clean, which are not, and what a repair leaves.
//!
//! `EXT_DAMAGED` sets the number of damaged images of each kind, `EXT_DAMAGED_SEED` the first seed.

use crate::image::{Image, call, can_mount, has_e2fsprogs};
use crate::reading::fill;
use crate::work::Work;
use flashpath::fs::station::Access;
use flashpath::fs::station::RepairOutcome;
use flashpath::fs::volume::{Call, FileKind, Hold, InodeNumber, NewFile, Volume, VolumeError};
use flashpath::layout::{Layout, Region};
use flashpath::random::Random;
use flashpath::run::{OpenError, Path, check_file_system, repair_file_system};
use std::fs::{self, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// What this program finds; `None` if nothing. A volume that cannot be opened is damaged.
fn ours(image: &Image) -> Option<String> {
    let path = Path::read(&format!("ext/conv:image={}", image.text())).unwrap();
    match check_file_system(&path) {
        Ok(findings) if findings.is_empty() => None,
        Ok(findings) => Some(findings.iter().map(|finding| finding.what.as_str()).collect::<Vec<_>>().join("\n")),
        Err(error @ OpenError::FileSystem { .. }) => Some(error.to_string()),
        Err(error) => panic!("{error}"),
    }
}

pub fn worked(mke2fs: &[&str], calls: u32) -> Image {
    let image = Image::of_bytes(16 << 20);
    image.mke2fs(mke2fs);
    let volume = image.volume("", Access::IfWhole);
    let mut work = Work::new(31);
    (0..calls).for_each(|_| work.step(&*volume));
    call(|call| volume.unmount(call)).unwrap();
    image
}

pub const KINDS: [&[&str]; 3] = [
    &["-t", "ext4", "-b", "1024"],
    &["-t", "ext4", "-b", "1024", "-O", "^metadata_csum,^64bit"],
    &["-t", "ext3", "-b", "1024"],
];

#[test]
fn a_volume_that_e2fsck_calls_clean_is_clean() {
    if !can_mount() {
        return;
    }
    for mke2fs in KINDS {
        let image = worked(mke2fs, 1500);
        image.check();
        assert_eq!(ours(&image), None, "{mke2fs:?}");
    }
    for mke2fs in [
        &["-t", "ext4"][..],
        &["-t", "ext4", "-O", "metadata_csum_seed,orphan_file,meta_bg,^resize_inode"],
        &["-t", "ext3"],
    ] {
        let image = Image::of_bytes(128 << 20);
        image.mke2fs(mke2fs);
        let mounted = image.mount("");
        fill(&mounted.directory, 2000, true);
        drop(mounted);
        image.check();
        assert_eq!(ours(&image), None, "{mke2fs:?}, filled by the kernel");
    }
}

/// Repairs the volume; `None` if it cannot be opened.
pub fn repair(image: &Image) -> Option<RepairOutcome> {
    let path = Path::read(&format!("ext/conv:image={}", image.text())).unwrap();
    match repair_file_system(&path, 1_700_000_000_000_000_000) {
        Ok(outcome) => Some(outcome),
        Err(OpenError::FileSystem { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

const BLOCK: u64 = 1024;

/// Damages metadata of 1 KiB blocks: flips a bit, or fills or replaces a part of a block. Says what it did.
pub fn damage(image: &Image, places: &[Range<u64>], random: &mut Random) -> String {
    let file = OpenOptions::new().read(true).write(true).open(image.path()).unwrap();
    let pick = |random: &mut Random| {
        let range = &places[random.below(places.len() as u64) as usize];
        range.start + random.below(range.end - range.start)
    };
    let read = |at: u64, bytes: &mut [u8]| file.read_exact_at(bytes, at).unwrap();
    // Most of metadata is empty: it is damaged seldom.
    let mut place = pick(random);
    for _ in 0..64 {
        let mut byte = [0];
        read(place, &mut byte);
        if byte[0] != 0 || random.below(8) == 0 {
            break;
        }
        place = pick(random);
    }
    let block = place / BLOCK * BLOCK;
    match random.below(10) {
        0 => {
            file.write_all_at(&[0; BLOCK as usize], block).unwrap();
            format!("block {} is zeros", block / BLOCK)
        }
        1 => {
            let bytes: Vec<u8> = (0..16).map(|_| random.below(256) as u8).collect();
            file.write_all_at(&bytes, place.min(block + BLOCK - 16)).unwrap();
            format!("16 random bytes at {place}, block {}", block / BLOCK)
        }
        2 => {
            let other = pick(random) / BLOCK * BLOCK;
            let mut bytes = [0; BLOCK as usize];
            read(other, &mut bytes);
            file.write_all_at(&bytes, block).unwrap();
            format!("block {} is a copy of block {}", block / BLOCK, other / BLOCK)
        }
        _ => {
            let mut byte = [0];
            read(place, &mut byte);
            let flip = 1 << random.below(8);
            file.write_all_at(&[byte[0] ^ flip], place).unwrap();
            format!("byte {place}, block {}: {:#04x} for {:#04x}", block / BLOCK, byte[0] ^ flip, byte[0])
        }
    }
}

pub fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect("a number"))
}

/// The places of metadata in an image.
pub fn metadata_of(whole: &[u8]) -> Vec<Range<u64>> {
    let mut read = |offset: u64, buffer: &mut [u8]| {
        buffer.copy_from_slice(&whole[offset as usize..offset as usize + buffer.len()]);
        Ok(())
    };
    let layout = Layout::read_with_files(&mut read, whole.len() as u64).unwrap();
    let metadata = layout.regions.iter().filter(|(_, region)| *region == Region::Metadata);
    metadata.map(|(range, _)| range).collect()
}

/// Damages images of a kind, and compares what this program and e2fsck find, before a repair and after it.
fn damaged_images(kind: usize) {
    if !has_e2fsprogs() {
        return;
    }
    let (count, seed) = (number("EXT_DAMAGED", 24), number("EXT_DAMAGED_SEED", 17));
    let image = worked(KINDS[kind], 600);
    let whole = fs::read(image.path()).unwrap();
    let places = metadata_of(&whole);
    let (mut wrong, mut damaged) = (Vec::new(), 0);
    for number in 0..count {
        let mut random = Random::new(seed + number, "damage");
        fs::write(image.path(), &whole).unwrap();
        // Some volumes are damaged in several places.
        let times = if random.below(4) == 0 { 2 + random.below(14) } else { 1 };
        let what: Vec<String> = (0..times).map(|_| damage(&image, &places, &mut random)).collect();
        let what = what.join("; ");
        let before = fs::read(image.path()).unwrap();
        let (found, theirs) = (ours(&image), image.findings());
        assert!(fs::read(image.path()).unwrap() == before, "{what}: a check wrote to the volume");
        damaged += u64::from(theirs.is_some());
        // e2fsck looks at the first quarter of the blocks that are reserved for group descriptors.
        let is_stricter = |found: &String| found.contains("reserves blocks for group descriptors");
        if found.is_some() != theirs.is_some() && !found.as_ref().is_some_and(is_stricter) {
            wrong.push(format!("{}, {what}:\n  ours {found:?}\n  theirs {theirs:?}", seed + number));
        }
        let outcome = repair(&image);
        let (left, theirs) = (ours(&image), image.findings());
        if outcome.as_ref().is_none_or(|outcome| !outcome.left.is_empty()) || left.is_some() || theirs.is_some() {
            let number = seed + number;
            if let Ok(place) = std::env::var("EXT_KEEP") {
                fs::copy(image.path(), format!("{place}/{number}-after")).unwrap();
                fs::write(format!("{place}/{number}-before"), &before).unwrap();
            }
            wrong.push(format!("{number}, {what}:\n  repair {outcome:?}\n  ours {left:?}\n  theirs {theirs:?}"));
        }
        if found.is_none() && outcome.is_some_and(|outcome| outcome.repaired.is_empty()) {
            assert!(fs::read(image.path()).unwrap() == before, "{what}: a repair without findings wrote to the volume");
        }
    }
    assert!(damaged > count / 4, "{damaged} of {count} were damaged");
    assert!(wrong.is_empty(), "{:?}: {} of {count} are wrong:\n{}", KINDS[kind], wrong.len(), wrong.join("\n"));
}

/// A directory with an index, in a volume of 1 KiB blocks, and names in it.
const NAMED: u32 = 40;

fn in_many<T>(volume: &dyn Volume, act: impl FnOnce(&Call, InodeNumber) -> Result<T, VolumeError>) -> T {
    let many = call(|call| volume.lookup(call, (InodeNumber::ROOT, b"many"), Hold::No)).unwrap().inode;
    call(|call| act(call, many)).unwrap()
}

fn make(volume: &dyn Volume, directory: InodeNumber, name: &str, kind: FileKind) {
    let new = NewFile { kind, permissions: 0o755, user: 0, group: 0, device: 0, target: b"", attributes: &[] };
    call(|call| volume.make(call, (directory, name.as_bytes()), &new, Hold::No, None)).unwrap();
}

fn long_name(number: u32) -> String {
    format!("{number} {}", "a name of some length ".repeat(1 + number as usize % 4))
}

/// Makes a directory with an index and so many files, and breaks the index.
fn make_broken_index(image: &Image, files: u32) {
    let volume = &*image.volume("", Access::IfWhole);
    make(volume, InodeNumber::ROOT, "many", FileKind::Directory);
    let many = in_many(volume, |_, many| Ok(many));
    for number in 0..files.max(NAMED) {
        make(volume, many, &long_name(number), FileKind::Regular);
    }
    for number in files..NAMED {
        call(|call| volume.unlink(call, (many, long_name(number).as_bytes()), None)).unwrap();
    }
    call(|call| volume.unmount(call)).unwrap();
    let first: u64 = image.debugfs("bmap /many 0").trim().parse().unwrap();
    // The levels that the root says.
    let file = OpenOptions::new().write(true).open(image.path()).unwrap();
    file.write_all_at(&[9], first * BLOCK + 30).unwrap();
}

#[test]
fn a_directory_that_is_written_anew_has_an_index_if_it_has_more_than_one_block() {
    if !has_e2fsprogs() {
        return;
    }
    for mke2fs in KINDS {
        // A block of names; a root; a root and nodes below it.
        for (files, has_index) in [(7, false), (300, true), (7000, true)] {
            let what = format!("{mke2fs:?}, {files} files");
            let image = Image::of_bytes(32 << 20);
            image.mke2fs(&[mke2fs, &["-N", "8000"]].concat());
            make_broken_index(&image, files);
            assert!(ours(&image).is_some() && image.findings().is_some(), "{what}");
            let outcome = repair(&image).unwrap();
            assert!(outcome.left.is_empty() && !outcome.repaired.is_empty(), "{what}: {outcome:?}");
            image.check();
            assert_eq!(ours(&image), None, "{what}");
            let stat = image.debugfs("stat /many");
            let flags = stat.split("Flags: 0x").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap();
            assert_eq!(u32::from_str_radix(flags, 16).unwrap() & 0x1000 != 0, has_index, "{what}: {stat}");
            let volume = &*image.volume("", Access::IfWhole);
            for number in 0..files {
                in_many(volume, |call, many| volume.lookup(call, (many, long_name(number).as_bytes()), Hold::No));
            }
            let many = in_many(volume, |_, many| Ok(many));
            for number in 0..200 {
                make(volume, many, &format!("one more: {}", long_name(number)), FileKind::Regular);
            }
            call(|call| volume.unmount(call)).unwrap();
            image.check();
        }
    }
}

#[test]
fn a_damaged_volume_with_checksums_is_found_and_repaired_as_e2fsck_says() {
    damaged_images(0);
}

#[test]
fn a_damaged_volume_without_checksums_is_found_and_repaired_as_e2fsck_says() {
    damaged_images(1);
}

#[test]
fn a_damaged_volume_of_ext3_is_found_and_repaired_as_e2fsck_says() {
    damaged_images(2);
}
