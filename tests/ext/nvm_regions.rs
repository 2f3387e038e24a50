//! A journal in non-volatile memory that is not what the mount says, or not that of the volume: what is refused names the
//! fault and the way out, and changes neither the volume nor the region.

use crate::image::{Image, call, has_e2fsprogs};
use flashpath::fs::Durable;
use flashpath::fs::station::{Access, Mounting};
use flashpath::fs::volume::{FileKind, Hold, InodeNumber, NewFile, Volume};
use flashpath::run::{OpenError, Path, check_file_system, make_volume, open_file_system, repair_file_system};
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

const NOW: i64 = 1_700_000_000_000_000_000;
/// Room for eight partitions of a new region, and little more.
const REGION: &str = "28M";

/// The path of a volume and the region of its journal.
fn text(volume: &Image, region: &Image, options: &str) -> String {
    format!("ext{options}/conv:image={}+nvm:image={}", volume.text(), region.text())
}

fn open(text: &str) -> Result<Arc<dyn Volume>, OpenError> {
    open_file_system(&Path::read(text).unwrap(), &Mounting::at(7, NOW), Access::IfWhole)
}

fn opened(text: &str) -> Arc<dyn Volume> {
    open(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A new volume with a region, both unmounted.
fn made(seed: u64) -> (Image, Image) {
    let (volume, region) = (Image::of_bytes(0), Image::of_bytes(0));
    let text = format!("ext/conv:image={},size=32M+nvm:image={},size={REGION}", volume.text(), region.text());
    make_volume(&Path::read(&text).unwrap(), true, seed, NOW, None).unwrap();
    (volume, region)
}

/// A new volume with its journal in itself.
fn plain(seed: u64) -> Image {
    let volume = Image::of_bytes(0);
    let text = format!("ext/conv:image={},size=32M", volume.text());
    make_volume(&Path::read(&text).unwrap(), true, seed, NOW, None).unwrap();
    volume
}

/// Writes a file that a sync has made durable.
fn write(volume: &dyn Volume, name: &str) {
    let new = NewFile {
        kind: FileKind::Regular,
        permissions: 0o644,
        user: 0,
        group: 0,
        device: 0,
        target: b"",
        attributes: &[],
    };
    let directory = InodeNumber::ROOT;
    let file = call(|call| volume.make(call, (directory, name.as_bytes()), &new, Hold::No, None)).unwrap().inode;
    call(|call| volume.write(call, file, 0, &[7; 10_000], None)).unwrap();
    call(|call| volume.sync_file(call, file, Durable::All)).unwrap();
}

/// The bytes of the file, if it is there.
fn read(volume: &dyn Volume, name: &str) -> Option<Vec<u8>> {
    let found = call(|call| volume.lookup(call, (InodeNumber::ROOT, name.as_bytes()), Hold::No)).ok()?;
    let mut bytes = vec![0; 20_000];
    let length = call(|call| volume.read(call, found.inode, 0, &mut bytes)).unwrap().length;
    bytes.truncate(length);
    Some(bytes)
}

/// A volume and a region as a crash leaves them: a file is in the region alone.
fn crashed(seed: u64) -> (Image, Image) {
    let (volume, region) = made(seed);
    let mounted = opened(&text(&volume, &region, ""));
    write(&*mounted, "synced");
    drop(mounted);
    (volume, region)
}

fn unmount(volume: Arc<dyn Volume>) {
    call(|call| volume.unmount(call)).unwrap();
}

/// A mount is refused with all of these words, and neither image changes.
fn refused(text: &str, images: &[&Image], words: &[&str]) {
    let before: Vec<Vec<u8>> = images.iter().map(|image| fs::read(image.path()).unwrap()).collect();
    let error = open(text).err().unwrap_or_else(|| panic!("{text} is refused")).to_string();
    words.iter().for_each(|word| assert!(error.contains(word), "{text}: {word}: {error}"));
    for (image, before) in images.iter().zip(before) {
        assert!(fs::read(image.path()).unwrap() == before, "{text}: a refusal changes nothing: {error}");
    }
}

fn flip(image: &Image, at: u64) {
    let file = OpenOptions::new().read(true).write(true).open(image.path()).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
}

/// What has to be there after a replay, and is clean then.
fn assert_replayed(text: &str, image: &Image) {
    let volume = opened(text);
    assert_eq!(read(&*volume, "synced"), Some(vec![7; 10_000]), "{text}");
    unmount(volume);
    assert_eq!(check_file_system(&Path::read(&format!("ext/conv:image={}", image.text())).unwrap()).unwrap(), []);
}

#[test]
fn options_that_contradict_the_devices_are_refused() {
    let (volume, region) = (plain(1), Image::of_bytes(28 << 20));
    let images = [&volume, &region];
    let inline = text(&volume, &region, ":journal=inline");
    refused(&inline, &images, &["journal=inline, and memory for a journal", "leave one of them out"]);
    for option in ["partitions=2", "hash=modulo", "scheme=paper", "slots=locked", "renew=on"] {
        let alone = format!("ext:{option}/conv:image={}", volume.text());
        let name = option.split('=').next().unwrap();
        refused(&alone, &images, &[name, "add its memory, such as +nvm:image=FILE"]);
    }
    let threaded = text(&volume, &region, ":commit-thread=on");
    refused(&threaded, &images, &["commit-thread=on is of a journal on a device", "leave it out"]);
    let none = format!("ext:journal=nvm/conv:image={}", volume.text());
    refused(&none, &images, &["journal=nvm needs its memory as the second device"]);
    let blocks = format!("ext:journal=nvm/conv:image={}+conv:image={}", volume.text(), region.text());
    refused(&blocks, &images, &["write +nvm in its place"]);
}

#[test]
fn a_region_that_is_too_small_is_refused_with_the_size_that_does() {
    let (volume, small) = (plain(2), Image::of_bytes(8 << 20));
    let said = "of 8 partitions, and 784 are needed: take ";
    refused(&text(&volume, &small, ""), &[&volume, &small], &["8388608 bytes", said, "or fewer partitions"]);
    unmount(opened(&text(&volume, &small, ":partitions=2")));
    let error = open(&text(&volume, &small, ":partitions=2,renew=on")).map(unmount).err();
    assert!(error.is_none(), "{error:?}");
    // A new volume is not begun either.
    let (target, small) = (Image::of_bytes(0), Image::of_bytes(0));
    let making = format!("ext/conv:image={},size=32M+nvm:image={},size=8M", target.text(), small.text());
    let error = make_volume(&Path::read(&making).unwrap(), true, 3, NOW, None).unwrap_err().to_string();
    assert!(error.contains(said), "{error}");
}

#[test]
fn a_region_of_another_volume_is_taken_over_only_when_that_one_has_nothing_in_it() {
    let (owner, region) = crashed(5);
    let other = plain(6);
    let (mine, theirs) = (text(&other, &region, ""), text(&owner, &region, ""));
    refused(
        &mine,
        &[&other, &region],
        &["has transactions of volume ", "mount that one with it first", "renew=on drops"],
    );
    assert_replayed(&theirs, &owner);
    let mounted = opened(&mine);
    write(&*mounted, "synced");
    drop(mounted);
    // It is the other one's now.
    refused(&theirs, &[&owner, &region], &["has transactions of volume ", "mount that one with it first"]);
    assert_replayed(&mine, &other);
    unmount(opened(&theirs));
}

#[test]
fn with_renew_a_region_is_taken_from_a_volume_which_says_so_then() {
    let (owner, region) = crashed(7);
    let other = plain(8);
    let mounted = opened(&text(&other, &region, ":renew=on"));
    assert_eq!(read(&*mounted, "synced"), None, "nothing of the owner is replayed");
    write(&*mounted, "synced");
    drop(mounted);
    refused(&text(&owner, &region, ""), &[&owner, &region], &["is in use by volume "]);
    assert_replayed(&text(&other, &region, ""), &other);
    refused(&text(&owner, &region, ""), &[&owner, &region], &["is in use by volume "]);
}

#[test]
fn another_shape_is_refused_before_a_replay_and_made_after_it_with_renew() {
    for options in ["partitions=2", "hash=multiplicative"] {
        let (volume, region) = crashed(9);
        let other = text(&volume, &region, &format!(":{options}"));
        refused(&other, &[&volume, &region], &["the region has 8 partitions", "renew=on format"]);
        assert_replayed(&text(&volume, &region, &format!(":{options},renew=on")), &volume);
        // It has that shape now.
        unmount(opened(&other));
        let before = text(&volume, &region, ":partitions=8,hash=modulo");
        refused(&before, &[&volume, &region], &["the region has ", options.split('=').nth(1).unwrap()]);
    }
}

#[test]
fn a_region_that_is_cut_off_or_damaged_is_refused_while_the_volume_needs_it() {
    let (volume, region) = crashed(10);
    let path = text(&volume, &region, "");
    let images = [&volume, &region];
    let whole = fs::read(region.path()).unwrap();
    let without = format!("ext/conv:image={}", volume.text());
    refused(&without, &[&volume], &["the volume uses journal ", "conv+nvm:image=FILE", "gives it up"]);
    fs::write(region.path(), &whole[..20 << 20]).unwrap();
    refused(&path, &images, &["it was made with ", "and has 20971520: it was cut off"]);
    fs::write(region.path(), vec![0; whole.len()]).unwrap();
    refused(&path, &images, &["the volume's journal is region ", "no superblock of a region", "gives it up"]);
    refused(&text(&volume, &region, ":renew=on"), &images, &["no superblock of a region"]);
    // The newer superblock is damaged, and the older one is of the time before the mount.
    fs::write(region.path(), &whole).unwrap();
    let newer = (0..2u64).max_by_key(|copy| whole[*copy as usize * 4096 + 72]).unwrap();
    flip(&region, newer * 4096 + 20);
    refused(&path, &images, &["is not in use", "gives it up"]);
    // Both.
    flip(&region, (1 - newer) * 4096 + 20);
    refused(&path, &images, &["no superblock of a region"]);
    fs::write(region.path(), &whole).unwrap();
    let other = plain(11);
    flip(&region, 20);
    flip(&region, 4096 + 20);
    refused(&text(&other, &region, ""), &[&other, &region], &["no region, or a damaged one", "renew=on formats it"]);
    fs::write(region.path(), &whole).unwrap();
    assert_replayed(&path, &volume);
}

/// A formatted region had records of its life before, of the same generation: they are none of the new one.
#[test]
fn a_damaged_region_that_is_formatted_has_nothing_of_its_owner() {
    let (_, region) = crashed(12);
    let other = plain(13);
    flip(&region, 20);
    flip(&region, 4096 + 20);
    // A crash before the first commit.
    drop(opened(&text(&other, &region, ":renew=on")));
    let volume = opened(&text(&other, &region, ""));
    assert_eq!(read(&*volume, "synced"), None);
    unmount(volume);
    other.check();
}

/// A slot below a commit is damaged: it is reported, and a repair says what it leaves out.
#[test]
fn a_damaged_slot_is_reported_and_never_left_out_in_silence() {
    let (volume, region) = crashed(14);
    let path = text(&volume, &region, "");
    let whole = fs::read(region.path()).unwrap();
    let header = (16_384..whole.len()).step_by(64).find(|at| whole[*at..*at + 4] == *b"nvmS").expect("a slot") as u64;
    flip(&region, header + 16);
    refused(&path, &[&volume, &region], &["the journal in non-volatile memory, slot ", "its checksum is "]);
    let found = check_file_system(&Path::read(&path).unwrap()).unwrap();
    assert!(found.iter().any(|finding| finding.what.contains("its checksum is ")), "{found:?}");
    let repaired = repair_file_system(&Path::read(&path).unwrap(), NOW).unwrap();
    assert!(repaired.left.is_empty() && !repaired.repaired.is_empty(), "{repaired:?}");
    volume.check();
    unmount(opened(&path));
}

fn repair(text: &str) -> Result<flashpath::fs::station::RepairOutcome, OpenError> {
    repair_file_system(&Path::read(text).unwrap(), NOW)
}

/// The region of an earlier mount was taken for today's: its replay went over blocks that were newer at home. No test had it:
/// none changed one of the two files alone. (Crossing: copies of different times x two files that belong together.)
#[test]
fn a_region_and_a_volume_of_different_mounts_are_refused_with_the_older_one() {
    let (volume, region) = crashed(20);
    let path = text(&volume, &region, "");
    let first = [&volume, &region].map(|image| fs::read(image.path()).unwrap());
    let mounted = opened(&path);
    write(&*mounted, "second");
    drop(mounted);
    let second = [&volume, &region].map(|image| fs::read(image.path()).unwrap());
    let images = [&volume, &region];
    for (pair, words) in [
        ([&second[0], &first[1]], "the journal is the older one"),
        ([&first[0], &second[1]], "the volume is the older one"),
    ] {
        images.iter().zip(pair).for_each(|(image, bytes)| fs::write(image.path(), bytes).unwrap());
        refused(&path, &images, &[words, "restore both from the same time", "gives it up"]);
        refused(&text(&volume, &region, ":renew=on"), &images, &[words]);
        let only_read = open_file_system(&Path::read(&path).unwrap(), &Mounting::at(7, NOW), Access::ReadOnly);
        assert!(only_read.err().unwrap().to_string().contains(words));
        assert!(repair(&path).unwrap_err().to_string().contains(words));
        assert!(check_file_system(&Path::read(&path).unwrap()).unwrap_err().to_string().contains(words));
    }
    for (image, bytes) in images.iter().zip(&second) {
        fs::write(image.path(), bytes).unwrap();
    }
    let mounted = opened(&path);
    assert!(read(&*mounted, "synced").is_some() && read(&*mounted, "second").is_some());
    unmount(mounted);
    // A volume that was unmounted since does not name the region: what came back with that is not taken either.
    fs::write(region.path(), &second[1]).unwrap();
    refused(&path, &images, &["which does not name it"]);
}

/// Copies of both were mounted apart: they have the same UUIDs, and as many mounts.
#[test]
fn the_regions_of_two_copies_of_a_volume_are_told_apart() {
    let (volume, region) = made(21);
    let (other, others) = (Image::of_bytes(0), Image::of_bytes(0));
    fs::copy(volume.path(), other.path()).unwrap();
    fs::copy(region.path(), others.path()).unwrap();
    write(&*opened(&text(&volume, &region, "")), "synced");
    let path = Path::read(&text(&other, &others, "")).unwrap();
    write(&*open_file_system(&path, &Mounting::at(8, NOW + 1), Access::IfWhole).unwrap(), "synced");
    refused(&text(&volume, &others, ""), &[&volume, &others], &["two copies of the volume"]);
    refused(&text(&other, &region, ""), &[&other, &region], &["two copies of the volume"]);
    assert_replayed(&text(&volume, &region, ""), &volume);
    assert_replayed(&text(&other, &others, ""), &other);
}

/// Puts bytes into an image.
fn put(image: &Image, at: u64, bytes: &[u8]) {
    OpenOptions::new().write(true).open(image.path()).unwrap().write_all_at(bytes, at).unwrap();
}

/// A volume and a region of version 1, which has no number of a mount: it is replayed, and has one from the next mount on.
#[test]
fn a_region_without_a_number_is_taken_and_then_counted() {
    let (volume, region) = crashed(22);
    let whole = fs::read(region.path()).unwrap();
    for at in [0usize, 4096] {
        let mut superblock = whole[at..at + 128].to_vec();
        if superblock[..4] == [0; 4] {
            continue;
        }
        superblock[8..12].copy_from_slice(&1u32.to_le_bytes());
        superblock[96..104].fill(0);
        superblock[4..8].fill(0);
        let sum = flashpath::crc::crc32c(&superblock);
        superblock[4..8].copy_from_slice(&sum.to_le_bytes());
        put(&region, at as u64, &superblock);
    }
    let mut superblock = fs::read(volume.path()).unwrap()[1024..2048].to_vec();
    superblock[996..1004].fill(0);
    let sum = !flashpath::crc::crc32c(&superblock[..1020]);
    superblock[1020..].copy_from_slice(&sum.to_le_bytes());
    put(&volume, 1024, &superblock);
    let path = text(&volume, &region, "");
    let old = fs::read(region.path()).unwrap();
    let mounted = opened(&path);
    assert!(read(&*mounted, "synced").is_some());
    write(&*mounted, "second");
    drop(mounted);
    let new = fs::read(region.path()).unwrap();
    fs::write(region.path(), old).unwrap();
    refused(&path, &[&volume, &region], &["the volume's journal is "]);
    fs::write(region.path(), new).unwrap();
    let mounted = opened(&path);
    assert!(read(&*mounted, "second").is_some());
    unmount(mounted);
}

/// The copy of the superblock in another group did not name the region: a repair said that the volume was clean, and all that
/// was in the region alone was orphaned. No test had it: damage was done to volumes with the journal inside. (Crossing: damage x
/// unclean, with each place of the journal.)
#[test]
fn a_damaged_superblock_leads_to_the_region_and_nothing_is_lost() {
    for damage in [&[0x30u64][..], &[56], &[104, 208, 230], &[]] {
        let (volume, region) = (Image::of_bytes(0), Image::of_bytes(0));
        let making =
            format!("ext:block=1K/conv:image={},size=32M+nvm:image={},size={REGION}", volume.text(), region.text());
        make_volume(&Path::read(&making).unwrap(), true, 23, NOW, None).unwrap();
        let path = text(&volume, &region, "");
        write(&*opened(&path), "synced");
        match damage {
            [] => put(&volume, 1024, &[0; 1024]),
            bits => bits.iter().for_each(|at| flip(&volume, 1024 + at)),
        }
        assert!(open(&path).is_err(), "{damage:?}");
        // Without the region it is not clean.
        let alone = format!("ext/conv:image={}", volume.text());
        let error = repair(&alone).unwrap_err().to_string();
        assert!(error.contains("the volume uses journal "), "{damage:?}: {error}");
        let found = check_file_system(&Path::read(&path).unwrap()).unwrap();
        assert!(!found.is_empty(), "{damage:?}");
        let repaired = repair(&path).unwrap();
        assert!(repaired.left.is_empty() && !repaired.repaired.is_empty(), "{damage:?}: {repaired:?}");
        assert_eq!(check_file_system(&Path::read(&path).unwrap()).unwrap(), [], "{damage:?}");
        if has_e2fsprogs() {
            volume.check();
        }
        let mounted = opened(&path);
        assert_eq!(read(&*mounted, "synced"), Some(vec![7; 10_000]), "{damage:?}");
        unmount(mounted);
        if has_e2fsprogs() {
            volume.check();
        }
    }
}

/// A volume of one group has no copy: what a cut tears is the checksum against the rest, and the rest can be proved.
#[test]
fn a_torn_superblock_of_one_group_is_mended_if_its_numbers_fit() {
    let (volume, region) = crashed(24);
    let path = text(&volume, &region, "");
    let whole = fs::read(volume.path()).unwrap();
    flip(&volume, 1024 + 0x30);
    assert!(open(&path).is_err());
    let repaired = repair(&path).unwrap();
    assert!(repaired.left.is_empty(), "{repaired:?}");
    assert_replayed(&path, &volume);
    // The same inside the volume.
    let inline = plain(25);
    let alone = format!("ext/conv:image={}", inline.text());
    write(&*opened(&alone), "synced");
    flip(&inline, 1024 + 0x30);
    assert!(open(&alone).is_err());
    assert!(repair(&alone).unwrap().left.is_empty());
    assert_replayed(&alone, &inline);
    // A number that decides where things are, or a UUID, is not believed.
    for at in [104, 0x18, 0x28] {
        fs::write(volume.path(), &whole).unwrap();
        flip(&volume, 1024 + at);
        assert!(repair(&path).is_err(), "byte {at}");
    }
}

/// e2fsck, tune2fs and resize2fs keep the number: a volume that they have changed goes together with its region.
#[test]
fn e2fsprogs_keep_the_number_of_the_mount_and_copies_are_clean_to_them() {
    if !has_e2fsprogs() {
        return;
    }
    let (volume, region) = made(26);
    let path = text(&volume, &region, "");
    write_and_unmount(&path);
    let number = || fs::read(volume.path()).unwrap()[1024 + 996..1024 + 1004].to_vec();
    let before = number();
    assert_ne!(before, [0; 8]);
    for (program, arguments) in [
        ("e2fsck", &["-fy"][..]),
        ("tune2fs", &["-L", "label", "-c", "20"]),
        ("e2fsck", &["-fyD"]),
        ("resize2fs", &["-f"]),
    ] {
        let output = crate::image::program(program).args(arguments).arg(volume.text()).output().unwrap();
        assert!(output.status.code().is_some_and(|code| code < 2), "{program}: {output:?}");
        assert_eq!(number(), before, "{program}");
    }
    write(&*opened(&path), "synced");
    assert_replayed(&path, &volume);
}

fn write_and_unmount(path: &str) {
    let mounted = opened(path);
    write(&*mounted, "first");
    unmount(mounted);
}
