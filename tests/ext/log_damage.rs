//! Damage in the middle of a log that was not replayed. A flipped bit in one record silently undid every later acknowledged
//! transaction: whatever had no right checksum was the end of the log. No test of ours damaged a log and looked for what was
//! acknowledged behind the damage (damage x unclean): `damaged_and_unclean` asks whether a repair ends, and what
//! power cuts leave is never damage.

use crate::crashes::{BLOCKS, Disks, Place, findings, mounting, settings};
use crate::image::{Image, call, has_e2fsprogs, program};
use crate::logs::{COMMIT, DESCRIPTOR, OnDisk, REVOKES, Record, be32, copied, open, put_image};
use crate::power_cut::Power;
use flashpath::fs::Durable;
use flashpath::fs::ext::ExtSettings;
use flashpath::fs::station::{Access, StoredVolumes, VolumeSettings};
use flashpath::fs::volume::{Damage, FileKind, Hold, InodeNumber, NewFile, Volume, VolumeError};
use flashpath::random::Random;

const FILES: u32 = 20;

fn new(kind: FileKind) -> NewFile<'static> {
    NewFile { kind, permissions: 0o755, user: 0, group: 0, device: 0, target: b"", attributes: &[] }
}

fn bytes_of(number: u32) -> Vec<u8> {
    vec![number as u8 | 0x80; 5000]
}

fn name(number: u32) -> Vec<u8> {
    format!("f{number}").into_bytes()
}

/// Makes a file, and syncs it. After each third one a directory comes and goes, which revokes its block.
fn make_synced(volume: &dyn Volume, number: u32) {
    let root = InodeNumber::ROOT;
    let made = call(|call| volume.make(call, (root, &name(number)), &new(FileKind::Regular), Hold::No, None)).unwrap();
    call(|call| volume.write(call, made.inode, 0, &bytes_of(number), None)).unwrap();
    call(|call| volume.sync_file(call, made.inode, Durable::All)).unwrap();
    if number % 3 == 2 {
        call(|call| volume.make(call, (root, b"d"), &new(FileKind::Directory), Hold::No, None)).unwrap();
        call(|call| volume.sync(call)).unwrap();
        call(|call| volume.remove_directory(call, (root, b"d"), None)).unwrap();
    }
}

/// A volume that is killed after an fsync of each of its files.
fn killed(volume: &dyn Volume) {
    (0..FILES).for_each(|number| make_synced(volume, number));
    call(|call| volume.sync(call)).unwrap();
}

fn made(place: Place, options: &ExtSettings) -> Disks {
    let disks = Disks::new(&Power::new(), place);
    killed(&*options.create(disks.media(), &mounting()).unwrap());
    disks
}

/// Synced files that are there, each with its bytes.
fn there(volume: &dyn Volume) -> u32 {
    let is_there = |number: &u32| {
        let found = call(|call| volume.lookup(call, (InodeNumber::ROOT, &name(*number)), Hold::No));
        let Ok(found) = found else { return false };
        let mut bytes = vec![0; 5001];
        let read = call(|call| volume.read(call, found.inode, 0, &mut bytes)).unwrap();
        assert!(bytes[..read.length] == bytes_of(*number)[..read.length], "wrong bytes in file {number}");
        read.length == 5000
    };
    (0..FILES).filter(is_there).count() as u32
}

/// Synced files that are left when e2fsck has repaired the image.
fn left_by_e2fsck(image: &Image) -> u32 {
    let _ = program("e2fsck").args(["-fy", &image.text()]).output().unwrap();
    let listed = image.debugfs("ls -p /");
    let names: Vec<&str> = listed.lines().filter_map(|line| line.split('/').nth(5)).collect();
    (0..FILES).filter(|number| names.contains(&&format!("f{number}")[..])).count() as u32
}

fn check(disks: &Disks, options: &ExtSettings) -> Vec<Damage> {
    options.check(disks.media()).unwrap_or_else(|fault| panic!("{}", fault.source))
}

/// The record of its kind in the middle of the log.
fn in_the_middle(log: &OnDisk, kind: u32) -> Record {
    let of_kind: Vec<Record> = log.records().into_iter().filter(|record| record.kind == kind).collect();
    of_kind[of_kind.len() / 2]
}

#[test]
fn a_flipped_bit_in_a_record_is_told_and_loses_nothing() {
    if !has_e2fsprogs() {
        return;
    }
    for place in [Place::Inline, Place::Device] {
        let options = settings("ordered", place, 0);
        let disks = made(place, &options);
        assert_eq!(check(&disks, &options), []);
        let last = OnDisk::of(&disks).last().unwrap();
        for (kind, byte) in
            [(DESCRIPTOR, 30), (COMMIT, 50), (REVOKES, 14), (DESCRIPTOR, 2), (COMMIT, 9), (REVOKES, 4095)]
        {
            let damaged = copied(&disks);
            let log = OnDisk::of(&damaged);
            let record = in_the_middle(&log, kind);
            log.change(record.block, |bytes| bytes[byte] ^= 4);
            let (what, number) = (format!("{place:?}, {record:?}, byte {byte}"), record.block - log.blocks[0]);
            let number = if place == Place::Device { record.block } else { number };
            let before = damaged.images();
            let found = check(&damaged, &options);
            let behind = last - record.transaction;
            let wanted = format!("transaction {} in block {number} of the journal", record.transaction);
            assert!(found.len() == 1 && found[0].what.starts_with(&wanted), "{what}: {found:?}");
            assert!(found[0].what.contains(&format!("{behind} committed transactions")), "{what}: {found:?}");
            let volume = open(&damaged, &options, Access::IfWhole).unwrap();
            assert_eq!(there(&*volume), FILES, "{what}: mounted");
            let state = call(|call| volume.state(call)).unwrap();
            assert!(state.read_only.is_some() && state.damage == found, "{what}: {state:?}");
            let refused =
                call(|call| volume.make(call, (InodeNumber::ROOT, b"n"), &new(FileKind::Regular), Hold::No, None));
            assert!(matches!(refused, Err(VolumeError::ReadOnly(_))), "{what}");
            call(|call| volume.unmount(call)).unwrap();
            drop(volume);
            let after = damaged.images();
            assert!(
                std::fs::read(before.0.path()).unwrap() == std::fs::read(after.0.path()).unwrap(),
                "{what}: it is written"
            );

            let despite = copied(&damaged);
            let volume = open(&despite, &options, Access::DespiteDamage).unwrap();
            make_synced(&*volume, 100);
            assert_eq!(there(&*volume), FILES, "{what}: despite damage");
            call(|call| volume.unmount(call)).unwrap();
            drop(volume);
            assert_eq!((check(&despite, &options), findings(&despite.images())), (Vec::new(), None), "{what}");

            let outcome = options.repair(damaged.media(), &mounting()).unwrap();
            assert_eq!((outcome.repaired, outcome.left), (found, Vec::new()), "{what}");
            assert_eq!((check(&damaged, &options), findings(&damaged.images())), (Vec::new(), None), "{what}");
            let volume = open(&damaged, &options, Access::IfWhole).unwrap();
            assert_eq!(there(&*volume), FILES, "{what}: repaired");
            make_synced(&*volume, 100);
            call(|call| volume.unmount(call)).unwrap();
            assert_eq!(findings(&damaged.images()), None, "{what}: used");
        }
    }
}

/// More than one bit: nothing says how the record was.
#[test]
fn a_record_that_cannot_be_read_is_told_and_more_is_kept_than_e2fsck_keeps() {
    if !has_e2fsprogs() {
        return;
    }
    let options = settings("ordered", Place::Inline, 0);
    let disks = made(Place::Inline, &options);
    for kind in [DESCRIPTOR, COMMIT, REVOKES] {
        let records: Vec<Record> =
            OnDisk::of(&disks).records().into_iter().filter(|record| record.kind == kind).collect();
        for record in &records[..records.len() - 1] {
            for (how, bytes) in [("zeros", 0..4096), ("sixteen bytes", 16..32), ("no magic number", 0..4)] {
                let damaged = copied(&disks);
                OnDisk::of(&damaged).change(record.block, |block| block[bytes].fill(0x5a));
                let what = format!("{record:?}, {how}");
                let images = damaged.images();
                let found = check(&damaged, &options);
                let wanted = format!("transaction {} in block", record.transaction);
                assert!(found.first().is_some_and(|first| first.what.starts_with(&wanted)), "{what}: {found:?}");
                let volume = open(&damaged, &options, Access::IfWhole).unwrap();
                assert!(call(|call| volume.state(call)).unwrap().read_only.is_some(), "{what}");
                drop(volume);
                let outcome = options.repair(damaged.media(), &mounting()).unwrap();
                assert!(outcome.left.is_empty() && !outcome.repaired.is_empty(), "{what}: {outcome:?}");
                assert_eq!((check(&damaged, &options), findings(&damaged.images())), (Vec::new(), None), "{what}");
                let ours = there(&*open(&damaged, &options, Access::IfWhole).unwrap());
                let theirs = left_by_e2fsck(&images.0);
                assert!(ours >= theirs, "{what}: {ours} files are left, and e2fsck leaves {theirs}");
                assert!(ours + 1 >= FILES, "{what}: {ours} files are left");
            }
        }
    }
}

/// A volume whose damaged log was given a word to go on keeps the mark of it until a check has seen all structures.
#[test]
fn a_mount_despite_lost_records_notes_that_there_are_errors() {
    let options = settings("ordered", Place::Inline, 0);
    let disks = made(Place::Inline, &options);
    let log = OnDisk::of(&disks);
    log.change(in_the_middle(&log, DESCRIPTOR).block, |bytes| bytes.fill(0));
    call(|call| open(&disks, &options, Access::DespiteDamage).unwrap().unmount(call)).unwrap();
    let found = check(&disks, &options);
    assert!(found.first().is_some_and(|first| first.what.contains("errors were found")), "{found:?}");
    assert!(call(|call| open(&disks, &options, Access::IfWhole).unwrap().state(call)).unwrap().read_only.is_some());
    assert!(options.repair(disks.media(), &mounting()).unwrap().left.is_empty());
    assert_eq!(check(&disks, &options), []);
}

/// What a cut of power leaves of the last transaction is no damage, whatever older rounds of the log have left behind it.
#[test]
fn a_torn_tail_is_not_damage() {
    let options = settings("ordered", Place::Inline, 0);
    let disks = Disks::new(&Power::new(), Place::Inline);
    let volume = options.create(disks.media(), &mounting()).unwrap();
    // The log goes round.
    for number in 0..400 {
        make_synced(&*volume, number % FILES + 1000 * (number / FILES));
        (0..3).for_each(|_| {
            call(|call| volume.work(call)).unwrap();
        });
    }
    drop(volume);
    let log = OnDisk::of(&disks);
    let last = log.last().unwrap();
    let of_last: Vec<Record> = log.records().into_iter().filter(|record| record.transaction == last).collect();
    let mut random = Random::new(5, "torn tails");
    for number in 0..60 {
        let torn = copied(&disks);
        let log = OnDisk::of(&torn);
        // The commit is never there; of the rest any block may be an old one.
        for record in &of_last {
            if record.kind == COMMIT || random.below(2) == 0 {
                log.change(record.block, |bytes| match random.below(3) {
                    0 => bytes.fill(0),
                    // Its first sector has all of a commit, and is stored when the rest is durable.
                    1 if record.kind == COMMIT => bytes.fill(7),
                    1 => bytes[random.below(8) as usize * 512..].fill(7),
                    _ => bytes[8..12].copy_from_slice(&(last - 300).to_be_bytes()),
                });
            }
        }
        assert_eq!(check(&torn, &options), [], "{number}");
        let volume = open(&torn, &options, Access::IfWhole).unwrap();
        assert_eq!(call(|call| volume.state(call)).unwrap().read_only, None, "{number}");
    }
}

/// Makes a volume by mke2fs, works on it here, and leaves its log.
fn foreign(mke2fs: &[&str]) -> (Disks, ExtSettings) {
    let image = Image::of_bytes(16 << 20);
    image.mke2fs(mke2fs);
    let disks = Disks::new(&Power::new(), Place::Inline);
    put_image(&disks.volume, &image);
    let options = settings("ordered", Place::Inline, 0);
    killed(&*open(&disks, &options, Access::IfWhole).unwrap());
    (disks, options)
}

/// Without checksums the magic number, the kind and the number alone say what a record is.
#[test]
fn a_broken_head_in_a_log_without_checksums_is_damage_if_commits_follow() {
    if !has_e2fsprogs() {
        return;
    }
    for mke2fs in [&["-t", "ext3", "-b", "4096"][..], &["-t", "ext4", "-b", "4096", "-O", "^metadata_csum,64bit"]] {
        let (disks, options) = foreign(mke2fs);
        assert_eq!(check(&disks, &options), [], "{mke2fs:?}");
        for kind in [DESCRIPTOR, COMMIT, REVOKES] {
            for byte in [1, 7, 11] {
                let damaged = copied(&disks);
                let log = OnDisk::of(&damaged);
                let record = in_the_middle(&log, kind);
                log.change(record.block, |bytes| bytes[byte] ^= 0x40);
                let what = format!("{mke2fs:?}, {record:?}, byte {byte}");
                let images = damaged.images();
                let found = check(&damaged, &options);
                let wanted = format!("transaction {} in block", record.transaction);
                assert!(found.first().is_some_and(|first| first.what.starts_with(&wanted)), "{what}: {found:?}");
                let outcome = options.repair(damaged.media(), &mounting()).unwrap();
                assert!(outcome.left.is_empty(), "{what}: {outcome:?}");
                assert_eq!((check(&damaged, &options), findings(&damaged.images())), (Vec::new(), None), "{what}");
                let ours = there(&*open(&damaged, &options, Access::IfWhole).unwrap());
                let theirs = left_by_e2fsck(&images.0);
                assert!(ours >= theirs && ours + 1 >= FILES, "{what}: {ours}, and e2fsck leaves {theirs}");
            }
        }
    }
}

/// Bytes of a file whose blocks fill some descriptors.
const LARGE: usize = 600 << 10;

/// The last tag of a descriptor has a flag, which the format does not need if the block is full. The transaction was
/// dropped, and the volume called clean.
#[test]
fn a_full_descriptor_without_a_flag_at_its_last_tag_is_whole() {
    if !has_e2fsprogs() {
        return;
    }
    let options = settings("journal", Place::Inline, 0);
    let image = Image::of_bytes(16 << 20);
    image.mke2fs(&["-t", "ext3", "-b", "1024"]);
    let disks = Disks::new(&Power::new(), Place::Inline);
    put_image(&disks.volume, &image);
    let volume = open(&disks, &options, Access::IfWhole).unwrap();
    let root = InodeNumber::ROOT;
    let large =
        call(|call| volume.make(call, (root, b"large"), &new(FileKind::Regular), Hold::No, None)).unwrap().inode;
    // 124 tags of 8 bytes, with a UUID behind the first, leave 4 bytes of a block.
    call(|call| volume.write(call, large, 0, &vec![9; LARGE], None)).unwrap();
    call(|call| volume.sync_file(call, large, Durable::All)).unwrap();
    drop(volume);
    let mut full = 0;
    for number in 0..BLOCKS {
        let mut bytes = disks.volume.bytes(number);
        for block in bytes.chunks_mut(1024) {
            let is_descriptor = block.starts_with(&[0xc0, 0x3b, 0x39, 0x98, 0, 0, 0, 1]);
            if is_descriptor && block[1019] & 8 != 0 {
                block[1019] &= !8;
                full += 1;
            }
        }
        disks.volume.put(number, &bytes);
    }
    assert!(full > 0, "a descriptor is full");
    assert_eq!(check(&disks, &options), []);
    let volume = open(&disks, &options, Access::IfWhole).unwrap();
    let found = call(|call| volume.lookup(call, (root, b"large"), Hold::No)).unwrap();
    let mut bytes = vec![0; LARGE];
    assert_eq!(call(|call| volume.read(call, found.inode, 0, &mut bytes)).unwrap().length, bytes.len());
    assert!(bytes.iter().all(|byte| *byte == 9));
    call(|call| volume.unmount(call)).unwrap();
    drop(volume);
    assert_eq!(findings(&disks.images()), None);
}

/// A log that was made anew began with transaction 1, and what an older log of the volume had left behind the first one was
/// replayed with it.
#[test]
fn a_log_that_is_made_anew_has_no_records_of_its_past() {
    let options = settings("ordered", Place::Inline, 0);
    let disks = made(Place::Inline, &options);
    let log = OnDisk::of(&disks);
    log.change(log.blocks[0], |bytes| bytes[..64].fill(0x11));
    let outcome = options.repair(disks.media(), &mounting()).unwrap();
    assert!(outcome.left.is_empty() && outcome.repaired[0].what.starts_with("the journal's superblock"), "{outcome:?}");
    assert!(log.records().is_empty());
    assert_eq!(check(&disks, &options), []);
    make_synced(&*open(&disks, &options, Access::IfWhole).unwrap(), 100);
    assert_eq!(check(&disks, &options), []);
}

/// Flips of the log's superblock, whose checksum tells which bit it was.
#[test]
fn a_flipped_bit_in_the_superblock_of_the_log_is_told_and_loses_nothing() {
    for place in [Place::Inline, Place::Device] {
        let options = settings("ordered", place, 0);
        let disks = made(place, &options);
        for byte in [0, 5, 7, 13, 18, 23, 27, 31, 43, 50, 67, 80, 254, 600] {
            let damaged = copied(&disks);
            let log = OnDisk::of(&damaged);
            log.change(log.blocks[0], |bytes| bytes[byte] ^= 0x10);
            let what = format!("{place:?}, byte {byte}");
            let found = check(&damaged, &options);
            assert!(found.len() == 1 && found[0].what.starts_with("the journal's superblock"), "{what}: {found:?}");
            assert_eq!(there(&*open(&damaged, &options, Access::IfWhole).unwrap()), FILES, "{what}");
            assert!(options.repair(damaged.media(), &mounting()).unwrap().left.is_empty(), "{what}");
            assert_eq!(check(&damaged, &options), [], "{what}");
            let volume = open(&damaged, &options, Access::IfWhole).unwrap();
            assert_eq!(there(&*volume), FILES, "{what}");
            assert_eq!(call(|call| volume.state(call)).unwrap().read_only, None, "{what}");
        }
    }
}

/// Transactions that debugfs writes: each has block 0 of `first`, and one of its own.
const TRANSACTIONS: u8 = 6;

/// A volume with a log of debugfs, and the first of the blocks that it changes.
fn of_debugfs(mke2fs: &[&str], open: &str) -> (Image, usize, u64) {
    let image = Image::of_bytes(16 << 20);
    image.mke2fs(mke2fs);
    let block_bytes = 1024 << std::fs::read(image.path()).unwrap()[1024 + 24];
    let first = (16 << 20) / block_bytes as u64 - 200;
    let mut requests = format!("{open}\n");
    for number in 1..=TRANSACTIONS {
        let source = image.path().with_file_name(format!("source{number}"));
        std::fs::write(&source, vec![0x30 + number; 2 * block_bytes]).unwrap();
        requests += &format!("jw -b {first},{} {}\n", first + u64::from(number), source.display());
    }
    // One that is not committed.
    let source = image.path().with_file_name("source1");
    requests += &format!("jw -b {first},{} -c {}\njc\n", first + 100, source.display());
    let commands = image.path().with_file_name("commands");
    std::fs::write(&commands, requests).unwrap();
    crate::image::run("debugfs", &["-w", "-f", &commands.display().to_string(), &image.text()]);
    (image, block_bytes, first)
}

/// Logs of another maker, in every form of checksums, on blocks of every size. debugfs's `logdump` names the records.
#[test]
fn a_damaged_log_of_debugfs_is_told_and_what_can_be_read_is_replayed() {
    if !has_e2fsprogs() {
        return;
    }
    for (mke2fs, open, has_sums) in [
        (&["-t", "ext4", "-b", "4096", "-O", "metadata_csum,64bit"][..], "jo -c -v 3", true),
        (&["-t", "ext4", "-b", "1024", "-O", "metadata_csum,^64bit"], "jo -c -v 3", true),
        (&["-t", "ext4", "-b", "2048", "-O", "metadata_csum,64bit"], "jo -c -v 2", true),
        (&["-t", "ext4", "-b", "4096", "-O", "metadata_csum,^64bit"], "jo -c -v 2", true),
        (&["-t", "ext4", "-b", "1024", "-O", "^metadata_csum,64bit"], "jo", false),
        (&["-t", "ext3", "-b", "4096"], "jo", false),
    ] {
        let (image, block_bytes, first) = of_debugfs(mke2fs, open);
        let whole = std::fs::read(image.path()).unwrap();
        let dumped = image.debugfs("logdump -c");
        let logged = dumped.matches("(commit block)").count();
        assert_eq!(logged, usize::from(TRANSACTIONS), "{mke2fs:?}: {dumped}");
        let ours = |image: &Image| {
            let path = flashpath::run::Path::read(&format!("ext/conv:image={}", image.text())).unwrap();
            flashpath::run::check_file_system(&path).unwrap()
        };
        assert_eq!(ours(&image), [], "{mke2fs:?}, {open}");
        let record = |kind: u32, transaction: u32| {
            let wanted = [&crate::logs::MAGIC[..], &kind.to_be_bytes(), &transaction.to_be_bytes()].concat();
            whole.chunks(block_bytes).position(|block| block.starts_with(&wanted)).unwrap() * block_bytes
        };
        for (what, kind, bytes) in [
            ("a bit of the descriptor", DESCRIPTOR, 14..15),
            ("a bit of its head", DESCRIPTOR, 10..11),
            ("the descriptor", DESCRIPTOR, 0..64),
            ("a bit of the commit", COMMIT, 6..7),
            ("the commit", COMMIT, 0..64),
        ] {
            if what == "a bit of the descriptor" && !has_sums {
                continue;
            }
            let is_single = bytes.len() == 1;
            let what = format!("{mke2fs:?}, {open}, {what} of transaction 3");
            let mut damaged = whole.clone();
            let at = record(kind, 3);
            damaged[at + bytes.start..at + bytes.end].iter_mut().for_each(|byte| *byte ^= 0x40);
            std::fs::write(image.path(), &damaged).unwrap();
            let found = ours(&image);
            let is_told = found.first().is_some_and(|first| first.what.starts_with("transaction 3 in block"));
            assert!(is_told && found[0].what.contains("; 3 committed"), "{what}: {found:?}");
            assert!(std::fs::read(image.path()).unwrap() == damaged, "{what}: a check writes");
            let outcome = crate::checking::repair(&image).unwrap();
            assert!(outcome.left.is_empty(), "{what}: {outcome:?}");
            image.check();
            let repaired = std::fs::read(image.path()).unwrap();
            let is_lost = kind == DESCRIPTOR && !(is_single && has_sums);
            for number in 0..=TRANSACTIONS {
                let byte = repaired[(first + u64::from(number)) as usize * block_bytes];
                let right = match number {
                    0 => 0x30 + TRANSACTIONS,
                    3 if is_lost => 0,
                    _ => 0x30 + number,
                };
                assert_eq!(byte, right, "{what}: block {number}");
            }
            assert_eq!(repaired[(first + 100) as usize * block_bytes], 0, "{what}: it was not committed");
        }
        // Twice: of the second and of the fourth one.
        let mut damaged = whole.clone();
        [2, 4].iter().for_each(|transaction| damaged[record(DESCRIPTOR, *transaction)..][..16].fill(0));
        std::fs::write(image.path(), &damaged).unwrap();
        let told: Vec<String> = ours(&image).into_iter().map(|damage| damage.what).collect();
        let names = |number| told.iter().any(|what| what.starts_with(&format!("transaction {number} in block")));
        assert!(names(2) && names(4), "{mke2fs:?}, {open}: {told:?}");
    }
}

/// With `journal_async_commit` the kernel writes a commit beside its transaction: a cut of power may leave the commit alone.
#[test]
fn a_commit_that_was_written_before_its_transaction_may_be_torn() {
    if !crate::image::can_mount() {
        return;
    }
    for mke2fs in [&["-t", "ext4", "-b", "4096", "-O", "^metadata_csum"][..], &["-t", "ext4", "-b", "4096"]] {
        let image = Image::of_bytes(32 << 20);
        image.mke2fs(mke2fs);
        let mounted = image.mount(",journal_async_commit,data=writeback");
        for number in 0..6 {
            let path = mounted.directory.join(format!("f{number}"));
            std::fs::write(&path, [7; 5000]).unwrap();
            std::fs::File::open(&path).unwrap().sync_all().unwrap();
        }
        let crashed = crate::replay::copied(&image);
        drop(mounted);
        let whole = std::fs::read(crashed.path()).unwrap();
        let check = || {
            let path = flashpath::run::Path::read(&format!("ext/conv:image={}", crashed.text())).unwrap();
            flashpath::run::check_file_system(&path).unwrap()
        };
        assert_eq!(check(), [], "{mke2fs:?}");
        let descriptors: Vec<(u32, usize)> = (0..whole.len() / 4096)
            .map(|block| block * 4096)
            .filter(|at| whole[*at..].starts_with(&[0xc0, 0x3b, 0x39, 0x98, 0, 0, 0, 1]))
            .map(|at| (be32(&whole, at + 8), at))
            .collect();
        let (last, first) = (descriptors.iter().max().unwrap().1, descriptors.iter().min().unwrap().1);
        for (at, is_damage) in [(last, false), (first, true)] {
            let mut torn = whole.clone();
            torn[at + 4096..at + 8192].fill(0x11);
            std::fs::write(crashed.path(), &torn).unwrap();
            assert_eq!(!check().is_empty(), is_damage, "{mke2fs:?}: {:?}", check());
        }
    }
}
