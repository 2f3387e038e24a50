//! A volume with a memory bound behaves like one without.

use super::machine::seeds;
use super::model::tree_of;
use super::power_cut::{Disk, Power};
use super::random_work::{Worker, assert_same};
use super::{IDENTITY, blocks, create, open, settings};
use flashpath::fs::sfs::{Change, FileKind, InodeNumber, MemoryUse, NewFile, OpenSfsError, Sfs, SfsError};
use flashpath::random::Random;
use flashpath::task::Task;
use flashpath::time::Time;

/// Segments of 256K, the default for a device of 96 MiB.
const BOUND: u64 = 32 << 20;
const MIB: u64 = 1 << 20;

fn new_file() -> NewFile<'static> {
    NewFile { kind: FileKind::Regular, permissions: 0o644, user: 1, group: 2, device: 0, target: b"", attributes: &[] }
}

/// The counted memory is within the bound, less the fixed part and the allocator's overhead.
fn assert_within(used: MemoryUse, when: &str) {
    let counted = used.dirty + used.changed + used.cached;
    assert!(counted < BOUND / 2, "{when}: {counted} bytes: {used:?}");
}

/// Regression: a mount kept every inode known to the kernel, and checked its memory only at checkpoints: a million
/// files took 927 MiB, and clean metadata was never evicted.
#[test]
fn many_files_in_one_directory_stay_within_the_memory_bound() {
    let task = &Task::at(Time::ZERO);
    const FILES: u64 = 60_000;
    let power = Power::new();
    let disk = Disk::new(&power, 96 << 8, 0);
    let text = format!("sfs:memory={}M", BOUND / MIB);
    let mut sfs = create(blocks(disk.clone()), &text);
    let mut most = MemoryUse::default();
    let mut look = |sfs: &mut Sfs, when: &str| {
        let used = sfs.memory_use();
        assert_within(used, when);
        most.changed = most.changed.max(used.changed);
        most.cached = most.cached.max(used.cached);
    };
    let name = |number: u64| format!("file{number:07}").into_bytes();
    for number in 0..FILES {
        let file = sfs.make(task, InodeNumber::ROOT, &name(number), &new_file()).unwrap();
        // As the kernel does, which drops references late.
        sfs.retain(task, file).unwrap();
        if number.is_multiple_of(100) {
            sfs.write(task, file, 0, &[number as u8; 100]).unwrap();
        }
        look(&mut sfs, "made");
    }
    let mut listed = 0;
    sfs.list(task, InodeNumber::ROOT, 0, &mut |entry| {
        listed += u64::from(entry.name.starts_with(b"file"));
        true
    })
    .unwrap();
    assert_eq!(listed, FILES);
    look(&mut sfs, "listed");
    let mut random = Random::new(5, "any order");
    for _ in 0..FILES {
        let number = random.below(FILES);
        let file = sfs.lookup(task, InodeNumber::ROOT, &name(number)).unwrap();
        let size = if number.is_multiple_of(100) { 100 } else { 0 };
        assert_eq!(sfs.attributes(task, file).unwrap().size, size, "file {number}");
        look(&mut sfs, "looked up");
    }
    // Changes of inodes only, each in a different page of the inode file.
    for number in (0..FILES).step_by(16) {
        let file = sfs.lookup(task, InodeNumber::ROOT, &name(number)).unwrap();
        sfs.change(task, file, &Change { permissions: Some(0o600), ..Change::default() }).unwrap();
        look(&mut sfs, "changed");
    }
    sfs.unmount(task).unwrap();
    let mut sfs = open(blocks(disk.clone()), &text);
    for number in 0..FILES {
        sfs.unlink(task, InodeNumber::ROOT, &name(number)).unwrap();
        look(&mut sfs, "removed");
    }
    sfs.sync(task).unwrap();
    assert_eq!(tree_of(task, &mut sfs).len(), 0);
    assert_eq!(sfs.check(task).unwrap(), []);
    assert!(most.changed > MIB && most.cached > MIB, "memory use did not approach the bound: {most:?}");
}

#[test]
fn an_unused_directory_index_is_evicted_and_rebuilt() {
    let task = &Task::at(Time::ZERO);
    const DIRECTORIES: u64 = 20;
    const NAMES: u64 = 1000;
    let power = Power::new();
    let mut sfs = create(blocks(Disk::new(&power, 36 << 8, 0)), "sfs:segment=64K,memory=28M");
    let name = |number: u64| format!("{number}").into_bytes();
    let directory = NewFile { kind: FileKind::Directory, ..new_file() };
    let mut most = 0;
    for number in 0..DIRECTORIES {
        let directory = sfs.make(task, InodeNumber::ROOT, &name(number), &directory).unwrap();
        for file in 0..NAMES {
            sfs.make(task, directory, &name(file), &new_file()).unwrap();
            most = most.max(sfs.memory_use().indexes);
        }
    }
    let all = DIRECTORIES * NAMES * 16;
    for round in 0..2 {
        for number in 0..DIRECTORIES {
            let directory = sfs.lookup(task, InodeNumber::ROOT, &name(number)).unwrap();
            assert!(sfs.lookup(task, directory, &name(round * 7)).is_ok());
            assert!(matches!(sfs.lookup(task, directory, b"none"), Err(SfsError::NotFound)));
            most = most.max(sfs.memory_use().indexes);
        }
    }
    assert!(most < all / 4, "{most} of {all} bytes: unused indexes are kept");
}

/// Regression: inodes were evicted together with the directory of their lookup, and its index: `stat` of a million
/// files after a mount read the whole directory again for each 2,500 of them.
#[test]
fn a_directory_is_read_at_most_twice_while_its_files_are_looked_up_in_turn() {
    let task = &Task::at(Time::ZERO);
    const FILES: u64 = 20_000;
    let power = Power::new();
    let disk = Disk::new(&power, 36 << 8, 0);
    let text = "sfs:segment=64K,memory=28M";
    let mut sfs = create(blocks(disk.clone()), text);
    let name = |number: u64| format!("{number:0100}").into_bytes();
    let directory = NewFile { kind: FileKind::Directory, ..new_file() };
    let directory = sfs.make(task, InodeNumber::ROOT, b"many", &directory).unwrap();
    for number in 0..FILES {
        sfs.make(task, directory, &name(number), &new_file()).unwrap();
    }
    let size = sfs.attributes(task, directory).unwrap().size;
    sfs.unmount(task).unwrap();
    let mut sfs = open(blocks(disk), text);
    for number in 0..FILES {
        let file = sfs.lookup(task, directory, &name(number)).unwrap();
        sfs.retain(task, file).unwrap();
        sfs.attributes(task, file).unwrap();
    }
    let (read, has) = (sfs.account().read_blocks, size / 4096);
    assert!(has > 500 && read < 3 * has, "{read} blocks were read of a directory that has {has}");
}

#[test]
fn random_work_within_little_memory_matches_the_model() {
    let task = &Task::at(Time::ZERO);
    for (seed, text) in [(11, "sfs:segment=64K,memory=28M"), (12, "sfs:segment=64K,fsync=checkpoint,memory=28M")] {
        let power = Power::new();
        let disk = Disk::new(&power, 24 << 8, 0);
        let mut sfs = create(blocks(disk.clone()), text);
        let mut worker = Worker::new(seed, 200_000);
        for round in 0..4 * seeds() {
            for step in 0..1500 {
                match worker.step(task, &mut sfs) {
                    Ok(()) | Err(SfsError::NoSpace { .. }) => {}
                    Err(error) => panic!("{text}, round {round}, step {step}: {error}"),
                }
            }
            assert_same(task, &mut sfs, &worker.tree, &format!("{text}, round {round}"));
            sfs.unmount(task).unwrap();
            sfs = open(blocks(disk.clone()), text);
            assert_same(task, &mut sfs, &worker.tree, &format!("{text}, remounted after round {round}"));
        }
        assert_eq!(sfs.check(task).unwrap(), []);
    }
}

#[test]
fn an_evicted_inode_with_references_exists_without_a_name_until_they_are_dropped() {
    let task = &Task::at(Time::ZERO);
    let power = Power::new();
    let mut sfs = create(blocks(Disk::new(&power, 36 << 8, 0)), "sfs:segment=64K,memory=28M");
    let held = sfs.make(task, InodeNumber::ROOT, b"held", &new_file()).unwrap();
    sfs.write(task, held, 0, b"file contents").unwrap();
    for _ in 0..3 {
        sfs.retain(task, held).unwrap();
    }
    // Other inodes evict it.
    for number in 0..10_000 {
        let name = format!("{number}").into_bytes();
        let file = sfs.make(task, InodeNumber::ROOT, &name, &new_file()).unwrap();
        sfs.retain(task, file).unwrap();
        sfs.release(task, file, 1).unwrap();
    }
    sfs.sync(task).unwrap();
    sfs.unlink(task, InodeNumber::ROOT, b"held").unwrap();
    sfs.sync(task).unwrap();
    let mut bytes = [0; 13];
    sfs.release(task, held, 2).unwrap();
    assert_eq!(sfs.read(task, held, 0, &mut bytes).unwrap(), 13);
    assert_eq!(&bytes, b"file contents");
    sfs.release(task, held, 1).unwrap();
    assert!(matches!(sfs.attributes(task, held), Err(SfsError::NotFound)));
    sfs.sync(task).unwrap();
    assert_eq!(sfs.check(task).unwrap(), []);
}

#[test]
fn memory_too_small_for_the_segments_is_refused_but_the_machines_share_is_accepted() {
    let task = &Task::at(Time::ZERO);
    let device = || blocks(Disk::new(&Power::new(), 96 << 8, 0));
    let refused = Sfs::create(&Task::at(Time::ZERO), device(), &settings("sfs:segment=1M,memory=20M"), IDENTITY);
    let Err(error @ OpenSfsError::Memory { .. }) = refused.map(drop) else { panic!("it was accepted") };
    let said = error.to_string();
    assert!(said.contains("memory=20M") && said.contains("segments of 1M") && said.contains("memory=34M"), "{said}");
    let mut small_machine = settings("sfs:segment=1M");
    small_machine.machine_memory_bytes = Some(1 << 20);
    let mut sfs = Sfs::create(&Task::at(Time::ZERO), device(), &small_machine, IDENTITY).unwrap();
    // The size of the volume does not depend on the memory of the machine.
    assert_eq!(sfs.space(), create(device(), "sfs:segment=1M").space());
    sfs.make(task, InodeNumber::ROOT, b"file", &new_file()).unwrap();
}
