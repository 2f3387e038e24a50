//! Space that a volume reports as available can be used, and deletions free all of it, including metadata blocks.

use super::calls::Call;
use super::history::{History, look};
use super::machine::{Case, Machine, seeds};
use super::power_cut::{Disk, Power};
use super::{IDENTITY, blocks, create, open, settings};
use flashpath::device::conv::Conventional;
use flashpath::device::zns::{Zns, ZnsSettings};
use flashpath::device::{BlockDevice, Lba};
use flashpath::expression::parse_term;
use flashpath::fs::Durable;
use flashpath::fs::sfs::placement::Hint;
use flashpath::fs::sfs::{Change, FileKind, InodeNumber, Medium, NewFile, Sfs, SfsError, Space};
use flashpath::label::{Cause, Content, Label};
use flashpath::random::Random;
use flashpath::task::Task;
use flashpath::time::Time;

const BLOCK: u64 = 4096;
const ROOT: InodeNumber = InodeNumber::ROOT;

fn new(kind: FileKind) -> NewFile<'static> {
    NewFile { kind, permissions: 0o644, user: 0, group: 0, device: 0, target: b"", attributes: &[] }
}

fn make_many(task: &Task<'_>, sfs: &mut Sfs, directory: InodeNumber, count: u64) -> u64 {
    for number in 0..count {
        match sfs.make(task, directory, format!("{number}").as_bytes(), &new(FileKind::CharacterDevice)) {
            Ok(_) => {}
            Err(SfsError::NoSpace { .. }) => return number,
            Err(error) => panic!("{number}: {error}"),
        }
    }
    count
}

/// An emptied volume keeps the first block of a directory and the first page of the DAT, which a new volume does not
/// have.
fn assert_as_new(now: Space, new: Space, when: &str) {
    assert!(now.free_blocks + 2 >= new.free_blocks, "{when}: {now:?}, and {new:?} when it was new");
    assert_eq!(now.inodes - now.free_inodes, new.inodes - new.free_inodes, "{when}");
}

/// Regression: a volume of 96 MiB that was filled with 289,149 device nodes and emptied by `rm -rf` kept only 4.6 MiB
/// free, and `df -i` showed 18,688 inodes: pages of the inode file were never freed.
#[test]
fn a_volume_filled_with_inodes_and_emptied_has_the_free_space_of_a_new_one() {
    let task = &Task::at(Time::ZERO);
    for is_zoned in [false, true] {
        let machine = Machine::new("sfs:segment=64K", 16, 240, is_zoned);
        let mut sfs = machine.create();
        let fresh = sfs.space();
        let directory = sfs.make(task, ROOT, b"d", &new(FileKind::Directory)).unwrap();
        let made = make_many(task, &mut sfs, directory, u64::MAX);
        assert!(made >= fresh.free_inodes && made < fresh.free_inodes * 11 / 10, "{made} of {}", fresh.free_inodes);
        sfs.sync(task).unwrap();
        assert_eq!(sfs.check(task).unwrap(), []);
        for number in 0..made {
            sfs.unlink(task, directory, format!("{number}").as_bytes()).unwrap();
        }
        sfs.remove_directory(task, ROOT, b"d").unwrap();
        assert_as_new(sfs.space(), fresh, "before the checkpoint");
        assert_eq!(make_many(task, &mut sfs, ROOT, 1000), 1000, "a checkpoint frees space when needed");
        (0..1000).for_each(|number| sfs.unlink(task, ROOT, format!("{number}").as_bytes()).unwrap());
        sfs.sync(task).unwrap();
        assert_as_new(sfs.space(), fresh, "emptied");
        assert_eq!(sfs.check(task).unwrap(), []);
        sfs.unmount(task).unwrap();
        drop(sfs);
        let mut sfs = machine.open().unwrap();
        assert_as_new(sfs.space(), fresh, "after a remount");
        assert_eq!(sfs.check(task).unwrap(), []);
        let made_again = make_many(task, &mut sfs, ROOT, u64::MAX);
        assert!(made_again + 400 >= made, "{made_again} of {made}");
    }
}

/// Regression: one large file on 4 GiB cost 36 MiB even after its deletion: pages of the DAT, and map blocks.
#[test]
fn a_deleted_or_truncated_large_file_frees_all_its_metadata() {
    let task = &Task::at(Time::ZERO);
    let power = Power::new();
    let disk = Disk::new(&power, 16 << 10, 0);
    let mut sfs = create(blocks(disk.clone()), "sfs");
    let fresh = sfs.space();
    let file = sfs.make(task, ROOT, b"f", &new(FileKind::Regular)).unwrap();
    sfs.allocate(task, file, 0, fresh.available_blocks * BLOCK, false).unwrap();
    sfs.sync(task).unwrap();
    sfs.change(task, file, &Change { size: Some(5 * BLOCK), ..Change::default() }).unwrap();
    assert_eq!(sfs.attributes(task, file).unwrap().blocks, 5, "no map block is left");
    sfs.unlink(task, ROOT, b"f").unwrap();
    sfs.sync(task).unwrap();
    assert_as_new(sfs.space(), fresh, "gone");
    sfs.unmount(task).unwrap();
    let mut sfs = open(blocks(disk), "sfs");
    assert_eq!(sfs.check(task).unwrap(), []);
    assert_as_new(sfs.space(), fresh, "after a remount");
}

/// A directory without names in its last blocks is truncated; a listing offset after the new end is at the end.
#[test]
fn a_directory_is_truncated_when_its_last_blocks_are_empty() {
    let task = &Task::at(Time::ZERO);
    let mut sfs = create(blocks(Disk::new(&Power::new(), 8 << 10, 0)), "sfs");
    let directory = sfs.make(task, ROOT, b"d", &new(FileKind::Directory)).unwrap();
    make_many(task, &mut sfs, directory, 5000);
    let full = sfs.attributes(task, directory).unwrap();
    let mut places = Vec::new();
    sfs.list(task, directory, 0, &mut |entry| {
        places.push(entry.next);
        true
    })
    .unwrap();
    (10..5000).for_each(|number| sfs.unlink(task, directory, format!("{number}").as_bytes()).unwrap());
    let left = sfs.attributes(task, directory).unwrap();
    assert!(full.size >= 20 * BLOCK && left.size == BLOCK && left.blocks == 1, "{full:?} {left:?}");
    sfs.list(task, directory, *places.last().unwrap(), &mut |_| panic!("no entry follows the end")).unwrap();
    sfs.sync(task).unwrap();
    assert_eq!(sfs.check(task).unwrap(), []);
}

/// Inode numbers are reused, each time with another generation.
#[test]
fn a_reused_inode_number_has_another_generation() {
    let task = &Task::at(Time::ZERO);
    let disk = Disk::new(&Power::new(), 8 << 10, 0);
    let mut sfs = create(blocks(disk.clone()), "sfs");
    let mut seen = std::collections::BTreeSet::new();
    for round in 0..6 {
        for number in 0..40 {
            let name = format!("{number}");
            let inode = sfs.make(task, ROOT, name.as_bytes(), &new(FileKind::Regular)).unwrap();
            let generation = sfs.attributes(task, inode).unwrap().generation;
            assert!(seen.insert((inode, generation)), "{inode:?} was generation {generation} before");
            assert!(inode.0 < 200, "low numbers are reused: {inode:?}");
            sfs.unlink(task, ROOT, name.as_bytes()).unwrap();
        }
        match round % 2 {
            0 => sfs.sync(task).unwrap(),
            _ => {
                sfs.unmount(task).unwrap();
                sfs = open(blocks(disk.clone()), "sfs");
            }
        }
    }
}

/// Writes the available space into one file, to the last block.
fn fill_as_promised(task: &Task<'_>, mut sfs: Sfs, reserves: bool, before: u64, case: &str) {
    let width = sfs.block_width();
    let write = |sfs: &mut Sfs, file: InodeNumber, blocks: u64| {
        let buffer = vec![7; 64 * width];
        for first in (0..blocks).step_by(64) {
            let count = (blocks - first).min(64) as usize;
            sfs.write_whole(task, file, first, &buffer[..count * width], Content::Data, Hint::None)
                .unwrap_or_else(|error| panic!("{case}: block {first} of {blocks}: {error}"));
        }
    };
    let other = sfs.make(task, ROOT, b"other", &new(FileKind::Regular)).unwrap();
    write(&mut sfs, other, before);
    let promised = sfs.space();
    let file = sfs.make(task, ROOT, b"file", &new(FileKind::Regular)).unwrap();
    let blocks = promised.available_blocks;
    if reserves && blocks > 0 {
        sfs.allocate(task, file, 0, blocks * BLOCK, false)
            .unwrap_or_else(|error| panic!("{case}: {blocks} blocks: {error}"));
    }
    write(&mut sfs, file, blocks);
    sfs.sync(task).unwrap();
    // Overwrites all of it: every accepted block can be written.
    write(&mut sfs, file, blocks);
    sfs.sync(task).unwrap();
    let left = sfs.space();
    assert!(left.free_blocks <= 40 + promised.free_blocks / 500, "{case}: {promised:?}, then {left:?}");
    assert_eq!(sfs.check(task).unwrap(), [], "{case}");
}

/// Regression: `df` reported 2 % more than `fallocate` could reserve: the map blocks and the DAT entries were not
/// subtracted.
#[test]
fn one_file_can_use_the_available_space_to_the_last_block() {
    let task = &Task::at(Time::ZERO);
    // Blocks of 4 bytes: stamps.
    let shapes: [(u64, &str); 7] = [
        (57 * 16, "sfs:segment=64K"),
        (61 * 16, "sfs:segment=64K,groups=1"),
        (200 * 16, "sfs:segment=64K"),
        (64 << 8, "sfs"),
        (256 << 8, "sfs"),
        (777 << 8, "sfs:segment=1M"),
        (2048 << 8, "sfs"),
    ];
    let mut random = Random::new(seeds(), "promises");
    for (size, text) in shapes {
        for reserves in [false, true] {
            let shares: &[u64] = if size > 100_000 { &[95] } else { &[0, 50, 95, 100] };
            for share in shares {
                let device = || Medium::Blocks(Box::new(Conventional::in_memory(size, 4)));
                let free = create(device(), text).space().available_blocks;
                let before = free.saturating_sub(random.below(40)) * share / 100;
                let case = format!("{size} blocks, {text}, {before} of {free} written before, reserves: {reserves}");
                fill_as_promised(task, create(device(), text), reserves, before, &case);
            }
        }
    }
    for zones in ["zns:zone=1M,size=64M,timing=off", "zns:zone=4M,size=512M,timing=off"] {
        for share in [0, 90] {
            let device =
                || Medium::Zones(Box::new(Zns::new(&ZnsSettings::read(&parse_term(zones).unwrap()).unwrap(), 4)));
            let before = create(device(), "sfs").space().available_blocks * share / 100;
            fill_as_promised(task, create(device(), "sfs"), true, before, &format!("{zones}, {before} written before"));
        }
    }
}

/// A volume with many pages in its metadata files, and calls that empty and refill them.
fn shrinking(task: &Task<'_>, is_zoned: bool) -> (Machine, History, Vec<Call>) {
    let machine = Machine::new("sfs:segment=64K", 16, 120, is_zoned);
    let mut sfs = machine.create();
    let file = |number: u64| format!("/d/{number}");
    let allocate = |path: &str, blocks: u64| Call::Allocate {
        path: path.to_string(),
        offset: 0,
        length: blocks * BLOCK,
        keeps_size: false,
    };
    let mut calls = vec![Call::MakeDirectory("/d".to_string()), Call::Create("/large".to_string())];
    calls.push(allocate("/large", 400));
    calls.extend((0..60).map(|number| Call::Create(file(number))));
    calls.push(Call::Create("/last".to_string()));
    calls.push(Call::Write { path: "/last".to_string(), offset: 0, length: 3 * BLOCK });
    calls.push(Call::Sync);
    for (step, call) in (1..).zip(&calls) {
        call.run(task, &mut sfs, step).unwrap();
    }
    let history = History::of(&look(task, &mut sfs).unwrap(), calls.len() as u64);
    drop(sfs);
    let mut calls: Vec<Call> = (0..60).map(|number| Call::Unlink(file(number))).collect();
    calls.push(Call::Truncate("/large".to_string(), BLOCK));
    // The checkpoint frees pages and truncates the files.
    calls.push(Call::Sync);
    calls.extend((60..90).map(|number| Call::Create(file(number))));
    calls.push(allocate("/large", 150));
    calls.push(Call::SyncFile("/large".to_string(), Durable::All));
    calls.push(Call::Unlink("/large".to_string()));
    calls.extend((70..90).map(|number| Call::Unlink(file(number))));
    calls.push(Call::Sync);
    calls.push(Call::Create("/more".to_string()));
    calls.push(Call::Write { path: "/more".to_string(), offset: 0, length: 9 * BLOCK });
    calls.push(Call::SyncFile("/more".to_string(), Durable::Data));
    (machine, history, calls)
}

/// Blocks of metadata files that a checkpoint frees are live in the previous checkpoint.
#[test]
fn truncated_metadata_files_survive_a_cut_at_every_operation() {
    let task = &Task::at(Time::ZERO);
    for is_zoned in [false, true] {
        let (machine, history, calls) = shrinking(task, is_zoned);
        let (_, operations) = machine.copy().work(task, &mut history.clone(), &calls, None);
        for seed in 0..seeds() {
            for cut in 0..=operations {
                let case = Case(format!("zones: {is_zoned}, cut at operation {cut} of {operations}, seed {seed}"));
                let (machine, mut history) = (machine.copy(), history.clone());
                machine.work(task, &mut history, &calls, Some(cut));
                let mut random = Random::new(seed << 10 | cut, "metadata files that become shorter");
                machine.lose_power(&mut random);
                let (mut sfs, found) =
                    machine.recover(task, &history).unwrap_or_else(|why| panic!("{}:\n    {why}", case.0));
                let mut history = History::of(&found, history.step());
                // The next calls reuse the free numbers.
                for number in 0..20 {
                    let call = Call::Create(format!("/n{number}"));
                    let made = call.run(task, &mut sfs, history.step()).unwrap();
                    history.apply(&call, made);
                }
                drop(sfs);
                machine.lose_power(&mut random);
                machine
                    .recover(task, &history)
                    .unwrap_or_else(|why| panic!("{}, after a second mount:\n    {why}", case.0));
            }
        }
    }
}

/// A damaged tree block of the inode file is rebuilt from the log, which holds pages that have become holes since:
/// deleted files must not reappear and claim blocks of others.
#[test]
fn a_deleted_file_does_not_reappear_when_the_inode_files_tree_is_rebuilt() {
    let task = &Task::at(Time::ZERO);
    let power = Power::new();
    let disk = Disk::new(&power, 16 << 10, 0);
    let text = "sfs:segment=256K";
    let mut sfs = create(blocks(disk.clone()), text);
    let content = |number: u64| vec![number as u8; 5000];
    for number in 0..200 {
        let file = sfs.make(task, ROOT, format!("{number}").as_bytes(), &new(FileKind::Regular)).unwrap();
        sfs.write(task, file, 0, &content(number)).unwrap();
    }
    sfs.sync(task).unwrap();
    // Pages in the middle become holes, and other files reuse their blocks.
    (16..180).for_each(|number| sfs.unlink(task, ROOT, format!("{number}").as_bytes()).unwrap());
    sfs.sync(task).unwrap();
    let large = sfs.make(task, ROOT, b"large", &new(FileKind::Regular)).unwrap();
    sfs.write(task, large, 0, &[9; 300 << 12]).unwrap();
    sfs.unmount(task).unwrap();
    drop(sfs);
    let tree = newest_tree_block_of_the_inode_file(&disk);
    let label = Label::first(Cause::Checkpoint, Content::Metadata);
    disk.clone().write(Lba(tree), &[0; BLOCK as usize], label, Time::ZERO).unwrap();
    let repaired = flashpath::fs::sfs::repair(blocks(disk.clone()), &settings(text), IDENTITY).unwrap();
    assert!(!repaired.findings.is_empty() && repaired.left.is_empty(), "{repaired:?}");
    let mut sfs = open(blocks(disk), text);
    let mut names = 0;
    sfs.list(task, ROOT, 0, &mut |_| {
        names += 1;
        true
    })
    .unwrap();
    assert_eq!(names, 2 + 36 + 1, "nothing is in lost+found: {:?}", repaired.findings);
    for number in (0..16).chain(180..200) {
        let file = sfs.lookup(task, ROOT, format!("{number}").as_bytes()).unwrap();
        let mut bytes = vec![0; 5000];
        sfs.read(task, file, 0, &mut bytes).unwrap();
        assert_eq!(bytes, content(number));
    }
    let mut bytes = vec![0; 300 << 12];
    sfs.read(task, large, 0, &mut bytes).unwrap();
    assert!(bytes.iter().all(|byte| *byte == 9));
}

/// The partial segment with the highest number that holds a tree block of the inode file.
fn newest_tree_block_of_the_inode_file(disk: &Disk) -> u64 {
    let number = |bytes: &[u8], at: usize, width: usize| {
        (0..width).rev().fold(0, |number, byte| number << 8 | u64::from(bytes[at + byte]))
    };
    let mut newest = (0, 0);
    for block in 0..disk.clone().blocks() {
        let summary = disk.bytes(block);
        if &summary[..4] != b"SFSL" {
            continue;
        }
        let (sequence, own, count) = (number(&summary, 8, 8), number(&summary, 20, 4), number(&summary, 24, 4));
        for at in 0..count.min(126) {
            let record = &summary[64 + at as usize * 32..];
            if record[28] == 4 && number(record, 0, 8) >> 56 == 1 && sequence > newest.0 {
                newest = (sequence, block + own + at);
            }
        }
    }
    assert!(newest.1 > 0);
    newest.1
}

/// Images of 8 MiB that earlier programs made, with `d/f2`, `d/f4` up to `d/f60`, `link` and `old`; the odd files in
/// between were deleted. The programs of versions 2 and 3 also made one that was killed after an fsync of `old`.
#[test]
fn volumes_of_earlier_versions_are_read_and_become_version_4() {
    let task = &Task::at(Time::ZERO);
    for (name, number) in
        [("version-1", 1), ("version-2", 2), ("version-2-crashed", 2), ("version-3", 3), ("version-3-crashed", 3)]
    {
        let fixture = format!("{}/tests/fixtures/sfs/{name}.img.zst", env!("CARGO_MANIFEST_DIR"));
        let image = zstd::decode_all(std::fs::File::open(fixture).unwrap()).unwrap();
        let disk = Disk::new(&Power::new(), image.len() as u64 / BLOCK, 0);
        (0..).zip(image.chunks_exact(BLOCK as usize)).for_each(|(block, bytes)| disk.put(block, bytes));
        let text = "sfs:segment=64K";
        assert_eq!(flashpath::fs::sfs::check(blocks(disk.clone()), &settings(text)).unwrap(), [], "{name}");
        let version = |disk: &Disk| u32::from_le_bytes(disk.bytes(0)[8..12].try_into().unwrap());
        assert_eq!(version(&disk), number, "{name}");
        for round in 0..2 {
            let mut sfs = open(blocks(disk.clone()), text);
            assert_eq!(version(&disk), 4, "{name}: before any record that it does not know");
            assert_eq!(sfs.check(task).unwrap(), [], "{name}");
            let directory = sfs.lookup(task, ROOT, b"d").unwrap();
            for number in (2..=60).step_by(2) {
                let file = sfs.lookup(task, directory, format!("f{number}").as_bytes()).unwrap();
                let mut bytes = [0; 20];
                let length = sfs.read(task, file, 0, &mut bytes).unwrap();
                assert_eq!(bytes[..length], *format!("file {number}\n").as_bytes());
            }
            let link = sfs.lookup(task, ROOT, b"link").unwrap();
            assert_eq!(sfs.target(task, link).unwrap(), b"d/f2");
            if number >= 2 {
                let old = sfs.lookup(task, ROOT, b"old").unwrap();
                assert_eq!(bytes_of_old(task, &mut sfs, old), expected_of_old(), "{name}");
            }
            make_many(task, &mut sfs, directory, 40);
            (0..40).for_each(|number| sfs.unlink(task, directory, format!("{number}").as_bytes()).unwrap());
            match round {
                0 => drop(sfs),
                _ => sfs.unmount(task).unwrap(),
            }
        }
        assert_eq!(flashpath::fs::sfs::check(blocks(disk), &settings(text)).unwrap(), [], "{name}");
    }
}

fn bytes_of_old(task: &Task<'_>, sfs: &mut Sfs, old: InodeNumber) -> Vec<u8> {
    let mut bytes = vec![0; 200_000];
    let length = sfs.read(task, old, 0, &mut bytes).unwrap();
    bytes.truncate(length);
    bytes
}

/// 400 times all bytes; three blocks were overwritten and synced, each with its index.
fn expected_of_old() -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..400).flat_map(|_| 0..=255).collect();
    [3, 17, 9].into_iter().for_each(|block| bytes[block * 4096..][..4096].fill(block as u8));
    bytes
}
