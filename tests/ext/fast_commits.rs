//! Fast commits of the kernel are replayed here: at a mount, in memory alone, and by a repair; damaged ones are told, and all
//! before them is there. A volume that had some was mounted read-only, and no repair took them.

use crate::checking::repair;
use crate::crashes::{BLOCKS, Disks, Place, mounting, settings};
use crate::image::{Image, call, can_mount, program};
use crate::logs::put_image;
use crate::power_cut::Power;
use crate::replay::{copied, needs_recovery};
use crate::walk::{Tree, assert_same, of_directory, of_volume};
use flashpath::fs::station::{Access, StoredVolumes};
use flashpath::fs::volume::{FileKind, Hold, InodeNumber, NewFile};
use flashpath::random::Random;
use flashpath::run::{Path as StationPath, check_file_system};
use rustix::fs::{AtFlags, CWD, FallocateFlags, Mode, Timespec, Timestamps};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

const MKE2FS: [&str; 4] = ["-t", "ext4", "-O", "fast_commit"];
const HEAD: usize = 4;
const TAIL: u16 = 8;

/// Everything but the times, sizes and blocks of directories: fast commits do not have them.
pub fn comparable(tree: Tree) -> Tree {
    let rows = tree.into_iter().map(|(path, mut seen)| {
        if seen.kind == FileKind::Directory {
            (seen.times, seen.size, seen.blocks) = ([0; 2], 0, 0);
        }
        (path, seen)
    });
    rows.collect()
}

fn synced(path: &Path) {
    File::open(path).unwrap().sync_all().unwrap();
}

/// Files on a volume whose log is home, and one full commit after that: fast commits follow one.
fn begun(directory: &Path) {
    for number in 0..20 {
        fs::write(directory.join(format!("old{number}")), vec![number as u8; 9000]).unwrap();
    }
    fs::create_dir(directory.join("d")).unwrap();
    rustix::fs::sync();
    synced(&directory.join("old0"));
}

/// One of everything that the kernel puts into fast commits, synced by `sync`.
fn everything(directory: &Path, sync: &mut dyn FnMut(&Path)) {
    let at = |name: &str| directory.join(name);
    fs::write(at("made"), vec![1; 10_000]).unwrap();
    sync(&at("made"));
    fs::hard_link(at("made"), at("d/link")).unwrap();
    fs::remove_file(at("old1")).unwrap();
    let made = OpenOptions::new().write(true).open(at("made")).unwrap();
    made.write_all_at(&[2; 70_000], 300_000).unwrap();
    sync(&at("made"));
    fs::create_dir(at("d/new")).unwrap();
    fs::write(at("d/new/file"), b"short").unwrap();
    std::os::unix::fs::symlink("target", at("d/new/link")).unwrap();
    rustix::fs::mknodat(CWD, at("pipe"), rustix::fs::FileType::Fifo, Mode::from_bits_truncate(0o600), 0).unwrap();
    let device = rustix::fs::makedev(7, 300);
    let kind = rustix::fs::FileType::BlockDevice;
    rustix::fs::mknodat(CWD, at("device"), kind, Mode::from_bits_truncate(0o600), device).unwrap();
    sync(&at("d/new/file"));
    OpenOptions::new().write(true).open(at("old2")).unwrap().set_len(5000).unwrap();
    fs::rename(at("old3"), at("old4")).unwrap();
    fs::rename(at("d/new"), at("d/newer")).unwrap();
    fs::set_permissions(at("old5"), fs::Permissions::from_mode(0o4711)).unwrap();
    let time = Timespec { tv_sec: 77, tv_nsec: 8 };
    let times = Timestamps { last_access: time, last_modification: time };
    rustix::fs::utimensat(CWD, at("old6"), &times, AtFlags::empty()).unwrap();
    sync(&at("old2"));
    // Space that is not written, and a part of it that is then.
    let space = File::create(at("space")).unwrap();
    rustix::fs::fallocate(&space, FallocateFlags::empty(), 0, 400_000).unwrap();
    sync(&at("space"));
    space.write_all_at(&[3; 9000], 100_000).unwrap();
    rustix::fs::fallocate(&space, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 20_000, 30_000).unwrap();
    sync(&at("space"));
    // A map that does not fit into its inode, and a directory that needs an index.
    let holes = File::create(at("holes")).unwrap();
    (0..40).for_each(|number| holes.write_all_at(&[4; 100], number * 50_000).unwrap());
    for number in 0..300 {
        fs::write(at(&format!("d/a name that is long enough to fill blocks, number {number}")), b"").unwrap();
    }
    fs::remove_file(at("d/newer/link")).unwrap();
    sync(&at("holes"));
}

/// The blocks of the area for fast commits in an image, and the bytes of a block.
pub fn area(image: &Image) -> (Vec<u64>, usize) {
    let blocks: Vec<u64> =
        image.debugfs("blocks <8>").split_whitespace().filter_map(|number| number.parse().ok()).collect();
    let stat = image.debugfs("stats");
    let size = stat.lines().find_map(|line| line.strip_prefix("Block size:"));
    let size = size.unwrap_or_else(|| panic!("debugfs tells a block size: {stat}")).trim().parse().unwrap();
    let mut superblock = vec![0; 1024];
    File::open(image.path()).unwrap().read_exact_at(&mut superblock, blocks[0] * size as u64).unwrap();
    let number = |at: usize| u32::from_be_bytes(superblock[at..at + 4].try_into().unwrap()) as usize;
    let (all, fast) = (number(16), number(84));
    assert_eq!(blocks.len(), all, "the journal has one extent, and no block of a map");
    assert!(number(40) & 32 != 0, "the log has the feature");
    (blocks[all - fast + 1..].to_vec(), size)
}

pub fn le16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap())
}

pub fn le32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// The tags of a block: kind, first byte, bytes of the value.
pub fn tags(block: &[u8]) -> Vec<(u16, usize, usize)> {
    let (mut tags, mut at) = (Vec::new(), 0);
    while at + HEAD <= block.len() && (1..=9).contains(&le16(block, at)) {
        let length = usize::from(le16(block, at + 2));
        tags.push((le16(block, at), at, length));
        at += HEAD + length;
    }
    tags
}

pub fn block_of(image: &Image, block: u64, size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    File::open(image.path()).unwrap().read_exact_at(&mut bytes, block * size as u64).unwrap();
    bytes
}

pub fn put_block(image: &Image, block: u64, bytes: &[u8]) {
    let file = OpenOptions::new().write(true).open(image.path()).unwrap();
    file.write_all_at(bytes, block * bytes.len() as u64).unwrap();
}

/// Puts the right checksum into the tail of a fast commit that is in one block.
pub fn sum(block: &mut [u8]) {
    let tail = tags(block).into_iter().find(|(kind, ..)| *kind == TAIL).expect("it ends in this block").1;
    // As the format has it: from zero, and not inverted at the end.
    let sum = !crc32c::crc32c_append(!0, &block[..tail + 8]);
    block[tail + 8..tail + 12].copy_from_slice(&sum.to_le_bytes());
}

/// The files of a volume, read in memory alone, and why it is damaged.
pub fn read_only(image: &Image) -> (Tree, Vec<String>) {
    let volume = image.volume("", Access::ReadOnly);
    let state = call(|call| volume.state(call)).unwrap();
    let tree = comparable(of_volume(&*volume));
    call(|call| volume.unmount(call)).unwrap();
    (tree, state.damage.into_iter().map(|damage| damage.what).collect())
}

/// What a check finds, by this program.
pub fn check(image: &Image) -> Vec<String> {
    let path = StationPath::read(&format!("ext/conv:image={}", image.text())).unwrap();
    check_file_system(&path).unwrap().into_iter().map(|damage| damage.what).collect()
}

pub fn mounted_tree(image: &Image, access: Access) -> Tree {
    let volume = image.volume("", access);
    let state = call(|call| volume.state(call)).unwrap();
    assert_eq!(state.read_only, None);
    let tree = comparable(of_volume(&*volume));
    call(|call| volume.unmount(call)).unwrap();
    tree
}

#[test]
fn fast_commits_of_the_kernel_are_replayed_by_a_mount_in_memory_and_by_a_repair() {
    if !can_mount() {
        return;
    }
    for (more, options) in [
        (&[][..], ""),
        (&["-b", "1024"], ",data=writeback"),
        (&["-b", "2048", "-O", "^metadata_csum,^64bit"], ""),
        (&["-b", "4096", "-O", "^orphan_file,^metadata_csum_seed"], ""),
    ] {
        let image = Image::of_bytes(128 << 20);
        image.mke2fs(&[&MKE2FS, more].concat());
        let mounted = image.mount(options);
        begun(&mounted.directory);
        let mut snapshots = Vec::new();
        everything(&mounted.directory, &mut |path| {
            synced(path);
            snapshots.push((copied(&image), comparable(of_directory(&mounted.directory))));
        });
        drop(mounted);
        let mut found = 0;
        for (number, (crashed, theirs)) in (1..).zip(&snapshots) {
            let what = format!("{more:?}{options}, fsync {number}");
            let (blocks, size) = area(crashed);
            found += usize::from(le16(&block_of(crashed, blocks[0], size), 0) == 9);
            assert!(needs_recovery(crashed), "{what}");
            let (ours, damage) = read_only(crashed);
            assert!(damage.is_empty(), "{what}: {damage:?}");
            assert_same(&ours, theirs, &format!("{what}, in memory"));
            let findings = check(crashed);
            assert!(findings.is_empty(), "{what}: {findings:?}");
            assert!(needs_recovery(crashed), "{what}: who only reads changes nothing");
            let repaired = copied(crashed);
            assert!(repair(&repaired).unwrap().repaired.is_empty(), "{what}");
            repaired.check();
            assert_same(
                &comparable(of_directory(&repaired.mount(",ro").directory)),
                theirs,
                &format!("{what}, repaired"),
            );
            assert_same(&mounted_tree(crashed, Access::IfWhole), theirs, &format!("{what}, replayed"));
            assert!(!needs_recovery(crashed), "{what}");
            crashed.check();
            // The log goes on in its part, and e2fsck replays it.
            let volume = crashed.volume("", Access::IfWhole);
            let new = NewFile {
                kind: FileKind::Regular,
                permissions: 0o644,
                user: 0,
                group: 0,
                device: 0,
                target: b"",
                attributes: &[],
            };
            call(|call| volume.make(call, (InodeNumber::ROOT, b"unclean"), &new, Hold::No, None)).unwrap();
            call(|call| volume.sync(call)).unwrap();
            drop(volume);
            assert!(needs_recovery(crashed), "{what}");
            let preened = program("e2fsck").args(["-fp", &crashed.text()]).output().unwrap();
            assert!(preened.status.code().is_some_and(|code| code <= 1), "{what}: {preened:?}");
            crashed.debugfs("rm unclean");
            let mounted = crashed.mount("");
            assert_same(&comparable(of_directory(&mounted.directory)), theirs, &format!("{what}, by the kernel"));
            fs::write(mounted.directory.join("more"), b"more").unwrap();
            synced(&mounted.directory.join("more"));
        }
        assert!(found > snapshots.len() / 2, "{more:?}: {found} of {} have fast commits", snapshots.len());
    }
}

/// A volume with `files` files of which each has a fast commit of its own, and their number in the area.
fn with_files(bytes: u64, mke2fs: &[&str], files: u32) -> Image {
    let image = Image::of_bytes(bytes);
    image.mke2fs(&[&MKE2FS, mke2fs].concat());
    let mounted = image.mount("");
    begun(&mounted.directory);
    for number in 0..files {
        let at = mounted.directory.join(format!("f{number}"));
        fs::write(&at, vec![number as u8 | 0x80; 5000]).unwrap();
        fs::hard_link(&at, mounted.directory.join(format!("d/f{number}"))).unwrap();
        fs::remove_file(mounted.directory.join(format!("old{}", number + 1))).unwrap();
        OpenOptions::new().write(true).open(&at).unwrap().set_len(4500).unwrap();
        synced(&at);
    }
    copied(&image)
}

/// The files that are there, each with its bytes and both of its names, if all before it are.
fn files_in(tree: &Tree) -> u32 {
    let made = |number: u32| tree.get(format!("/f{number}").as_bytes());
    let count = (0..).take_while(|number| made(*number).is_some()).count() as u32;
    for number in 0..20 {
        let is_there = number < count;
        assert_eq!(made(number).is_some(), is_there, "file {number} of {count}");
        assert_eq!(tree.contains_key(format!("/d/f{number}").as_bytes()), is_there, "link {number} of {count}");
        if let Some(seen) = made(number) {
            let content = crc32c::crc32c(&vec![number as u8 | 0x80; 4500]);
            assert_eq!((seen.size, seen.links, &seen.content[..]), (4500, 2, &content.to_le_bytes()[..]), "{number}");
        }
        if number < 19 {
            assert_eq!(tree.contains_key(format!("/old{}", number + 1).as_bytes()), !is_there, "old file {number}");
        }
    }
    count
}

const FILES: u32 = 6;

/// Each tag of a fast commit in the middle, with a wrong kind, a wrong length, a flipped bit, and zeros in its place.
#[test]
fn a_damaged_tag_is_told_and_all_before_its_fast_commit_is_there() {
    if !can_mount() {
        return;
    }
    let image = with_files(32 << 20, &["-b", "1024"], FILES);
    let (blocks, size) = area(&image);
    let commits: Vec<u64> =
        blocks.iter().copied().take_while(|at| tags(&block_of(&image, *at, size)).len() > 1).collect();
    assert_eq!(files_in(&read_only(&image).0), FILES);
    let before = commits.len() as u32 - 3;
    let there = FILES - 3;
    let block = commits[before as usize];
    let whole = block_of(&image, block, size);
    for (kind, at, length) in tags(&whole) {
        let value = at + HEAD..at + HEAD + length.min(12);
        for (what, range, bits) in [
            ("kind", at..at + 2, 0x40),
            ("length", at + 2..at + 4, 0x10),
            ("value", value.clone(), 4),
            ("all", at..value.end, 0),
        ] {
            let mut bytes = whole.clone();
            match bits {
                0 => bytes[range].fill(0),
                bits => bytes[range.start] ^= bits,
            }
            put_block(&image, block, &bytes);
            let (tree, damage) = read_only(&image);
            let what = format!("{what} of tag {kind} at byte {at}");
            assert_eq!(files_in(&tree), there, "{what}: {damage:?}");
            assert!(damage.len() == 1 && damage[0].contains("2 fast commits of transaction"), "{what}: {damage:?}");
        }
    }
    // The last fast commit: a cut of power may have torn it, and nobody was told that it is durable.
    put_block(&image, block, &whole);
    let last = *commits.last().unwrap();
    let mut torn = block_of(&image, last, size);
    torn[100..].fill(0);
    let torn_image = copied(&image);
    put_block(&torn_image, last, &torn);
    let (tree, damage) = read_only(&torn_image);
    assert_eq!((files_in(&tree), damage.len()), (FILES - 1, 0), "{damage:?}");
    assert_eq!(files_in(&mounted_tree(&torn_image, Access::IfWhole)), FILES - 1);
    torn_image.check();
    // The user goes on, or repairs.
    let mut bytes = whole;
    bytes[30] ^= 1;
    put_block(&image, block, &bytes);
    let volume = image.volume("", Access::IfWhole);
    assert!(call(|call| volume.state(call)).unwrap().read_only.unwrap().contains("journal is damaged"));
    drop(volume);
    let despite = copied(&image);
    assert_eq!(files_in(&mounted_tree(&despite, Access::DespiteDamage)), there);
    let volume = despite.volume("", Access::IfWhole);
    assert!(call(|call| volume.state(call)).unwrap().read_only.unwrap().contains("errors were found"));
    drop(volume);
    assert!(!check(&image).is_empty());
    let outcome = repair(&image).unwrap();
    assert!(outcome.repaired.iter().any(|damage| damage.what.contains("fast commits")), "{outcome:?}");
    image.check();
    assert_eq!(files_in(&mounted_tree(&image, Access::IfWhole)), there);
}

/// Fast commits that are right by their checksums, and of another life of the device, or of nothing that can be.
#[test]
fn a_fast_commit_that_contradicts_the_volume_is_left_out_and_told() {
    if !can_mount() {
        return;
    }
    let image = with_files(32 << 20, &["-b", "1024"], FILES);
    let (blocks, size) = area(&image);
    let commits: Vec<u64> =
        blocks.iter().copied().take_while(|at| tags(&block_of(&image, *at, size)).len() > 1).collect();
    let block = commits[commits.len() - 2];
    let whole = block_of(&image, block, size);
    let there = FILES - 2;
    // The kind of a tag, a place in its value, and what is put there.
    let cases: [(&str, u16, usize, &[u8]); 13] = [
        ("changed before the volume was made", 6, 4 + 12, &1_000_000_000u32.to_le_bytes()),
        ("an inode that the volume has not", 6, 0, &u32::MAX.to_le_bytes()),
        ("a reserved inode", 6, 0, &7u32.to_le_bytes()),
        ("the inode of another file", 6, 0, &11u32.to_le_bytes()),
        ("an inode of no kind", 6, 4, &[0, 0]),
        ("too many extra bytes", 6, 4 + 128, &[0xF0, 0xFF]),
        ("a block of attributes", 6, 4 + 104, &[1, 2]),
        ("blocks of the volume's own", 1, 12, &3u32.to_le_bytes()),
        ("blocks behind the end", 1, 12, &u32::MAX.to_le_bytes()),
        ("no blocks", 1, 8, &[0, 0]),
        ("a directory that is none", 3, 0, &7u32.to_le_bytes()),
        ("a name with a slash", 3, 8, b"/"),
        ("a name of an inode that is not in use", 4, 4, &4000u32.to_le_bytes()),
    ];
    let names: Vec<u16> = tags(&whole).into_iter().map(|(kind, ..)| kind).collect();
    for (what, kind, place, put) in cases {
        let at = tags(&whole).into_iter().find(|(found, ..)| *found == kind);
        let (_, at, _) = at.unwrap_or_else(|| panic!("{what}: the kernel's tags are {names:?}"));
        let mut bytes = whole.clone();
        bytes[at + HEAD + place..at + HEAD + place + put.len()].copy_from_slice(put);
        sum(&mut bytes);
        put_block(&image, block, &bytes);
        let (tree, damage) = read_only(&image);
        assert_eq!(files_in(&tree), there, "{what}: {damage:?}");
        assert!(damage.len() == 1 && damage[0].contains("contradicts the volume"), "{what}: {damage:?}");
        let repaired = copied(&image);
        assert!(!repair(&repaired).unwrap().repaired.is_empty(), "{what}");
        repaired.check();
        assert_eq!(files_in(&mounted_tree(&repaired, Access::IfWhole)), there, "{what}");
    }
    // The block of a file that is there, for another one.
    let used = image.debugfs("blocks old19").split_whitespace().next().unwrap().parse::<u32>().unwrap();
    let at = tags(&whole).into_iter().find(|(kind, ..)| *kind == 1).unwrap().1 + HEAD + 12;
    let mut bytes = whole.clone();
    bytes[at..at + 4].copy_from_slice(&used.to_le_bytes());
    sum(&mut bytes);
    put_block(&image, block, &bytes);
    let (tree, damage) = read_only(&image);
    assert!(files_in(&tree) == there && damage[0].contains("is in use"), "{damage:?}");
    // An area of an older transaction says nothing.
    let first = commits[0];
    let mut head = block_of(&image, first, size);
    assert_eq!((le16(&head, 0), le32(&head, 4)), (9, 0));
    let older = le32(&head, 8) - 1;
    head[8..12].copy_from_slice(&older.to_le_bytes());
    put_block(&image, first, &head);
    for at in &commits[1..] {
        put_block(&image, *at, &vec![0; size]);
    }
    let (tree, damage) = read_only(&image);
    assert!(damage.is_empty() && !tree.contains_key(&b"/f5"[..]), "{damage:?}");
}

/// Fast commits that leave a block of the area free: the kernel and e2fsck read beyond one that is full, and fail.
const CUT_FILES: u32 = 10;

/// A replay that is cut off is repeated: all is there, wherever power is lost.
#[test]
fn a_replay_of_fast_commits_is_done_or_repeated_wherever_power_is_cut() {
    if !can_mount() {
        return;
    }
    let image = with_files(BLOCKS << 12, &["-b", "4096", "-J", "size=4"], CUT_FILES);
    let options = settings("ordered", Place::Inline, 1);
    let disks = Disks::new(&Power::new(), Place::Inline);
    put_image(&disks.volume, &image);
    let mut random = Random::new(11, "fast commits");
    let (mut cuts, mut done) = (0, false);
    while !done {
        cuts += 1;
        let power = Power::new();
        let cut = disks.copy(&power);
        power.cut_after(cuts);
        done = match options.open(cut.media(), &mounting(), Access::IfWhole) {
            Ok(_) if cuts % 2 == 0 => !power.is_off(),
            Ok(volume) => {
                let _ = call(|call| volume.unmount(call));
                !power.is_off()
            }
            Err(_) => false,
        };
        cut.lose_power(&mut random);
        power.restore();
        let left = cut.copy(&Power::new());
        let volume = options.open(left.media(), &mounting(), Access::IfWhole).unwrap_or_else(|error| panic!("{error}"));
        let state = call(|call| volume.state(call)).unwrap();
        assert_eq!((state.read_only, state.damage.len()), (None, 0), "cut {cuts}");
        assert_eq!(files_in(&of_volume(&*volume)), CUT_FILES, "cut {cuts}");
        call(|call| volume.unmount(call)).unwrap();
        drop(volume);
        if cuts % 7 == 0 {
            left.images().0.check();
            // What the cut has left is the same for the kernel.
            let image = cut.images().0;
            drop(image.mount(""));
            image.check();
            assert_eq!(files_in(&read_only(&image).0), CUT_FILES, "cut {cuts}, by the kernel");
        }
    }
    assert!(cuts > 20, "{cuts}");
}
