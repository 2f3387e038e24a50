//! A volume within a bound on its memory does all that one without a bound does.

use super::machine::seeds;
use super::model::tree_of;
use super::power_cut::{Disk, Power};
use super::random_work::{Worker, assert_same};
use super::{IDENTITY, blocks, create, open, settings};
use flashpath::fs::sfs::{Change, FileKind, InodeNumber, MemoryUse, NewFile, OpenSfsError, Sfs, SfsError};
use flashpath::random::Random;

/// Segments of 256K, as a device of 96 MiB is cut into by default.
const BOUND: u64 = 32 << 20;
const MIB: u64 = 1 << 20;

fn new_file() -> NewFile<'static> {
    NewFile { kind: FileKind::Regular, permissions: 0o644, user: 1, group: 2, device: 0, target: b"", attributes: &[] }
}

/// What is counted must be within the bound, less what is kept for the program and the allocator.
fn assert_within(used: MemoryUse, when: &str) {
    let counted = used.waiting + used.changed + used.cached;
    assert!(counted < BOUND / 2, "{when}: {counted} bytes: {used:?}");
}

/// A mount kept every inode that the kernel knew, and checked its memory at checkpoints only: a million files took
/// 927 MiB, and what was only read was never let go.
#[test]
fn many_files_in_one_directory_take_no_more_memory_than_they_may() {
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
        let file = sfs.make(InodeNumber::ROOT, &name(number), &new_file()).unwrap();
        // As the kernel does, which forgets late.
        sfs.retain(file).unwrap();
        if number.is_multiple_of(100) {
            sfs.write(file, 0, &[number as u8; 100]).unwrap();
        }
        look(&mut sfs, "made");
    }
    let mut listed = 0;
    sfs.list(InodeNumber::ROOT, 0, &mut |entry| {
        listed += u64::from(entry.name.starts_with(b"file"));
        true
    })
    .unwrap();
    assert_eq!(listed, FILES);
    look(&mut sfs, "listed");
    let mut random = Random::new(5, "any order");
    for _ in 0..FILES {
        let number = random.below(FILES);
        let file = sfs.lookup(InodeNumber::ROOT, &name(number)).unwrap();
        let size = if number.is_multiple_of(100) { 100 } else { 0 };
        assert_eq!(sfs.attributes(file).unwrap().size, size, "file {number}");
        look(&mut sfs, "looked up");
    }
    // Changes of inodes alone, each in another page of the inode file.
    for number in (0..FILES).step_by(16) {
        let file = sfs.lookup(InodeNumber::ROOT, &name(number)).unwrap();
        sfs.change(file, &Change { permissions: Some(0o600), ..Change::default() }).unwrap();
        look(&mut sfs, "changed");
    }
    sfs.unmount().unwrap();
    let mut sfs = open(blocks(disk.clone()), &text);
    for number in 0..FILES {
        sfs.unlink(InodeNumber::ROOT, &name(number)).unwrap();
        look(&mut sfs, "removed");
    }
    sfs.sync().unwrap();
    assert_eq!(tree_of(&mut sfs).len(), 0);
    assert_eq!(sfs.check().unwrap(), []);
    assert!(most.changed > MIB && most.cached > MIB, "the bound was not come near: {most:?}");
}

#[test]
fn the_index_of_a_directory_that_is_not_used_goes_and_is_made_again() {
    const DIRECTORIES: u64 = 20;
    const NAMES: u64 = 1000;
    let power = Power::new();
    let mut sfs = create(blocks(Disk::new(&power, 36 << 8, 0)), "sfs:segment=64K,memory=28M");
    let name = |number: u64| format!("{number}").into_bytes();
    let directory = NewFile { kind: FileKind::Directory, ..new_file() };
    let mut most = 0;
    for number in 0..DIRECTORIES {
        let directory = sfs.make(InodeNumber::ROOT, &name(number), &directory).unwrap();
        for file in 0..NAMES {
            sfs.make(directory, &name(file), &new_file()).unwrap();
            most = most.max(sfs.memory_use().indexes);
        }
    }
    let all = DIRECTORIES * NAMES * 16;
    for round in 0..2 {
        for number in 0..DIRECTORIES {
            let directory = sfs.lookup(InodeNumber::ROOT, &name(number)).unwrap();
            assert!(sfs.lookup(directory, &name(round * 7)).is_ok());
            assert!(matches!(sfs.lookup(directory, b"none"), Err(SfsError::NotFound)));
            most = most.max(sfs.memory_use().indexes);
        }
    }
    assert!(most < all / 4, "{most} of {all} bytes: indexes that are not used are kept");
}

#[test]
fn random_work_within_little_memory_is_what_the_model_says() {
    for (seed, text) in [(11, "sfs:segment=64K,memory=28M"), (12, "sfs:segment=64K,fsync=checkpoint,memory=28M")] {
        let power = Power::new();
        let disk = Disk::new(&power, 24 << 8, 0);
        let mut sfs = create(blocks(disk.clone()), text);
        let mut worker = Worker::new(seed, 200_000);
        for round in 0..4 * seeds() {
            for step in 0..1500 {
                match worker.step(&mut sfs) {
                    Ok(()) | Err(SfsError::NoSpace { .. }) => {}
                    Err(error) => panic!("{text}, round {round}, step {step}: {error}"),
                }
            }
            assert_same(&mut sfs, &worker.tree, &format!("{text}, round {round}"));
            sfs.unmount().unwrap();
            sfs = open(blocks(disk.clone()), text);
            assert_same(&mut sfs, &worker.tree, &format!("{text}, remounted after round {round}"));
        }
        assert_eq!(sfs.check().unwrap(), []);
    }
}

#[test]
fn an_inode_that_is_held_and_let_go_from_memory_lives_without_a_name_until_it_is_released() {
    let power = Power::new();
    let mut sfs = create(blocks(Disk::new(&power, 36 << 8, 0)), "sfs:segment=64K,memory=28M");
    let held = sfs.make(InodeNumber::ROOT, b"held", &new_file()).unwrap();
    sfs.write(held, 0, b"what it holds").unwrap();
    for _ in 0..3 {
        sfs.retain(held).unwrap();
    }
    // Others push it out.
    for number in 0..10_000 {
        let name = format!("{number}").into_bytes();
        let file = sfs.make(InodeNumber::ROOT, &name, &new_file()).unwrap();
        sfs.retain(file).unwrap();
        sfs.release(file, 1).unwrap();
    }
    sfs.sync().unwrap();
    sfs.unlink(InodeNumber::ROOT, b"held").unwrap();
    sfs.sync().unwrap();
    let mut bytes = [0; 13];
    sfs.release(held, 2).unwrap();
    assert_eq!(sfs.read(held, 0, &mut bytes).unwrap(), 13);
    assert_eq!(&bytes, b"what it holds");
    sfs.release(held, 1).unwrap();
    assert!(matches!(sfs.attributes(held), Err(SfsError::NotFound)));
    sfs.sync().unwrap();
    assert_eq!(sfs.check().unwrap(), []);
}

#[test]
fn too_little_memory_for_the_segments_is_refused_and_the_machines_share_is_not() {
    let device = || blocks(Disk::new(&Power::new(), 96 << 8, 0));
    let refused = Sfs::create(device(), &settings("sfs:segment=1M,memory=20M"), IDENTITY);
    let Err(error @ OpenSfsError::Memory { .. }) = refused.map(drop) else { panic!("it was taken") };
    let said = error.to_string();
    assert!(said.contains("memory=20M") && said.contains("segments of 1M") && said.contains("memory=34M"), "{said}");
    let mut small_machine = settings("sfs:segment=1M");
    small_machine.machine_memory_bytes = Some(1 << 20);
    let mut sfs = Sfs::create(device(), &small_machine, IDENTITY).unwrap();
    // How much there is room for is the volume's, and not the machine's.
    assert_eq!(sfs.space(), create(device(), "sfs:segment=1M").space());
    sfs.make(InodeNumber::ROOT, b"file", &new_file()).unwrap();
}
