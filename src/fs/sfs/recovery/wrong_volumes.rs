//! Volumes whose checksums are all right, and which are wrong all the same, as after a bug: each is made, found, and
//! repaired.

use super::finding::Structure;
use super::open::{Tolerance, open};
use super::repair::repair_opened;
use crate::device::Medium;
use crate::device::conv::Conventional;
use crate::device::zns::{Zns, ZnsSettings};
use crate::expression::parse_term;
use crate::fs::Durable;
use crate::fs::sfs::files::attributes::{FileKind, InodeNumber, NewFile, Timestamp};
use crate::fs::sfs::files::map::set_number;
use crate::fs::sfs::files::names::Names;
use crate::fs::sfs::make::Identity;
use crate::fs::sfs::metadata::blocks::NO_PLACE;
use crate::fs::sfs::{Sfs, SfsSettings};
use crate::task::Task;
use crate::time::Time;
use crate::units::BLOCK_BYTES;
use rustix::io::Errno;

const IDENTITY: Identity = Identity { seed: 1, origin: Timestamp(1_000_000) };

fn settings() -> SfsSettings {
    SfsSettings::read(&parse_term("sfs:segment=64K").unwrap()).unwrap()
}

fn new(kind: FileKind) -> NewFile<'static> {
    NewFile { kind, permissions: 0o755, user: 0, group: 0, device: 0, target: b"there", attributes: &[] }
}

/// Numbers of what lies on the volume.
struct TestPartialSegment {
    directory: u64,
    within: u64,
    file: u64,
    large: u64,
}

fn volume(task: &Task<'_>) -> (Sfs, TestPartialSegment) {
    let device = Conventional::in_memory(128 * 16, BLOCK_BYTES as usize);
    let mut sfs = Sfs::create(task, Medium::Blocks(Box::new(device)), &settings(), IDENTITY).unwrap();
    let root = InodeNumber::ROOT;
    let directory = sfs.make(task, root, b"directory", &new(FileKind::Directory)).unwrap();
    let within = sfs.make(task, directory, b"within", &new(FileKind::Directory)).unwrap();
    let file = sfs.make(task, within, b"file", &new(FileKind::Regular)).unwrap();
    let large = sfs.make(task, root, b"large", &new(FileKind::Regular)).unwrap();
    sfs.write(task, file, 0, &[1; 10_000]).unwrap();
    sfs.write(task, large, 0, &[2; 100_000]).unwrap();
    sfs.set_extended_attribute(task, file, b"user.a", b"b", None).unwrap();
    sfs.sync(task).unwrap();
    (sfs, TestPartialSegment { directory: directory.0, within: within.0, file: file.0, large: large.0 })
}

/// Unmounts it as it is, repairs it, mounts it, and finds nothing more. Answers what was found, and the volume.
fn repaired(task: &Task<'_>, mut sfs: Sfs) -> (Vec<Structure>, String, Sfs) {
    sfs.files.is_changed = true;
    sfs.write_back(task).checkpoint(true).unwrap();
    let opened = open(task, sfs.into_medium(), &settings(), IDENTITY, Tolerance::Lenient).unwrap();
    let (repaired, sfs) = repair_opened(task, opened).unwrap();
    assert_eq!(repaired.left, []);
    let structures = repaired.findings.iter().map(|finding| finding.structure).collect();
    let text: Vec<String> = repaired.findings.iter().map(|finding| finding.to_string()).collect();
    let mut sfs = Sfs::open(task, sfs.into_medium(), &settings(), IDENTITY, false).unwrap();
    assert_eq!(sfs.check(task).unwrap(), [], "mounted");
    (structures, text.join("\n"), sfs)
}

/// Checks that both files are at their paths, or in lost+found, and whole.
fn assert_files(task: &Task<'_>, sfs: &mut Sfs, path: &[&[u8]]) {
    let mut bytes = vec![0; 100_000];
    let large = sfs.lookup(task, InodeNumber::ROOT, b"large").unwrap();
    assert!(sfs.read(task, large, 0, &mut bytes).unwrap() == 100_000 && bytes == [2; 100_000]);
    let file = path.iter().fold(InodeNumber::ROOT, |directory, name| sfs.lookup(task, directory, name).unwrap());
    assert!(sfs.read(task, file, 0, &mut bytes).unwrap() == 10_000 && bytes[..10_000] == [1; 10_000]);
}

const FILE: &[&[u8]] = &[b"directory", b"within", b"file"];

#[test]
fn a_volume_that_is_right_has_nothing_wrong() {
    let task = &Task::at(Time::ZERO);
    let (structures, text, mut sfs) = repaired(task, volume(task).0);
    assert!(structures.is_empty(), "{text}");
    assert_files(task, &mut sfs, FILE);
}

#[test]
fn links_and_parents_are_put_right() {
    let task = &Task::at(Time::ZERO);
    let (mut sfs, made) = volume(task);
    sfs.files.inode_mut(task, made.file).unwrap().links = 3;
    sfs.files.inode_mut(task, made.directory).unwrap().links = 9;
    sfs.files.inode_mut(task, made.within).unwrap().parent = 1;
    sfs.files.inode_mut(task, made.large).unwrap().blocks = 4;
    let (structures, text, mut sfs) = repaired(task, sfs);
    assert_eq!(structures.len(), 4, "{text}");
    for said in ["3 names; right would be: 1", "9 links; right would be: 3", "'..' is directory 1", "have 4 blocks"] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert_eq!(sfs.attributes(task, InodeNumber(made.file)).unwrap().links, 1);
    assert_files(task, &mut sfs, FILE);
}

#[test]
fn what_lost_its_name_gets_one_in_lost_and_found() {
    let task = &Task::at(Time::ZERO);
    let (mut sfs, made) = volume(task);
    Names::of(task, &mut sfs.files).remove_name(1, b"directory").unwrap();
    let (structures, text, mut sfs) = repaired(task, sfs);
    assert!(structures.contains(&Structure::Directory) && text.contains("has no name"), "{text}");
    let name = format!("#{}", made.directory);
    assert_files(task, &mut sfs, &[b"lost+found", name.as_bytes(), b"within", b"file"]);
    assert_eq!(
        sfs.lookup(task, InodeNumber(made.directory), b"..").unwrap(),
        sfs.lookup(task, InodeNumber::ROOT, b"lost+found").unwrap()
    );
}

#[test]
fn directories_that_lie_in_each_other_are_taken_apart() {
    let task = &Task::at(Time::ZERO);
    let (mut sfs, made) = volume(task);
    Names::of(task, &mut sfs.files).remove_name(1, b"directory").unwrap();
    Names::of(task, &mut sfs.files).add_name(made.within, b"loop", made.directory, FileKind::Directory).unwrap();
    sfs.files.inode_mut(task, made.directory).unwrap().parent = made.within;
    let (_, text, mut sfs) = repaired(task, sfs);
    assert!(text.contains("it lies in itself"), "{text}");
    let name = format!("#{}", made.directory);
    assert_files(task, &mut sfs, &[b"lost+found", name.as_bytes(), b"within", b"file"]);
}

#[test]
fn names_that_cannot_be_are_taken_away() {
    let task = &Task::at(Time::ZERO);
    let (mut sfs, made) = volume(task);
    // Twice the same; of an inode that is none; of a directory that has one; with a slash; of the wrong kind.
    for (name, inode, kind) in [
        (&b"large"[..], made.file, FileKind::Regular),
        (b"none", 77, FileKind::Regular),
        (b"second", made.within, FileKind::Directory),
        (b"sl/ash", made.file, FileKind::Regular),
        (b"kind", made.file, FileKind::Fifo),
    ] {
        Names::of(task, &mut sfs.files).add_name(1, name, inode, kind).unwrap();
    }
    let (_, text, mut sfs) = repaired(task, sfs);
    for said in ["it is there twice", "inode 77, which is none", "has another name", "no name can be so", "of kind 4"] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert_eq!(sfs.attributes(task, InodeNumber(made.file)).unwrap().links, 2);
    assert_files(task, &mut sfs, FILE);
}

#[test]
fn a_block_that_two_maps_name_is_the_firsts_and_the_others_is_given_up() {
    let task = &Task::at(Time::ZERO);
    let (mut sfs, made) = volume(task);
    let taken = sfs.files.mapped(task, made.file, 0).unwrap();
    let map = sfs.files.inode(task, made.large).unwrap().roots[0];
    set_number(sfs.files.metadata_block_mut(task, map, made.large, NO_PLACE).unwrap(), 3, taken);
    set_number(sfs.files.metadata_block_mut(task, map, made.large, NO_PLACE).unwrap(), 4, 1 << 40);
    let (_, text, mut sfs) = repaired(task, sfs);
    assert!(text.contains("it is named elsewhere, too") && text.contains("there are 128"), "{text}");
    let mut bytes = vec![0; 4096];
    for place in [3, 4] {
        assert_eq!(sfs.read(task, InodeNumber(made.large), place * 4096, &mut bytes).unwrap_err().errno(), Errno::IO);
    }
    sfs.read(task, InodeNumber(made.large), 5 * 4096, &mut bytes).unwrap();
    sfs.read(task, InodeNumber(made.file), 0, &mut bytes).unwrap();
    assert_eq!(bytes, [1; 4096]);
}

#[test]
fn what_nobody_names_is_freed_and_counts_are_made_anew() {
    let task = &Task::at(Time::ZERO);
    let (mut sfs, made) = volume(task);
    let used = sfs.files.metadata.dat.used();
    for _ in 0..5 {
        sfs.files.metadata.dat.take(task).unwrap();
    }
    sfs.files.metadata.dat.set_counted(0, 90);
    sfs.files.inode_mut(task, made.file).unwrap().attributes = 0;
    let (structures, text, sfs) = repaired(task, sfs);
    assert!(text.contains("6 virtual blocks") && text.contains("90 entries"), "{text}");
    assert!(structures.contains(&Structure::Count));
    assert_eq!(sfs.files.metadata.dat.used(), used - 1);
}

#[test]
fn which_inodes_are_in_use_is_counted_anew() {
    let task = &Task::at(Time::ZERO);
    let (mut sfs, _) = volume(task);
    let (taken, used) = (sfs.files.metadata.inode_file.taken(0), sfs.files.metadata.inode_file.used());
    sfs.files.metadata.inode_file.set_taken(0, u16::MAX);
    let (structures, text, sfs) = repaired(task, sfs);
    assert!(structures == [Structure::Count] && text.contains("inodes 1111111111111111"), "{text}");
    assert_eq!((sfs.files.metadata.inode_file.taken(0), sfs.files.metadata.inode_file.used()), (taken, used));
}

#[test]
fn usage_is_counted_anew() {
    let task = &Task::at(Time::ZERO);
    let (mut sfs, made) = volume(task);
    let number = sfs.files.mapped(task, made.large, 0).unwrap();
    let address = sfs.files.metadata.dat.get(task, number).unwrap().address.get();
    sfs.files.segments.lose((address / 16) as u32, crate::fs::sfs::media::format::Kind::Data, 1, 5);
    assert_eq!(sfs.check(task).unwrap()[0].structure, Structure::Usage, "while it is mounted");
    let (structures, text, mut sfs) = repaired(task, sfs);
    assert_eq!(structures, [Structure::Usage], "{text}");
    assert_files(task, &mut sfs, FILE);
}

#[test]
fn a_root_that_is_none_is_made_anew() {
    let task = &Task::at(Time::ZERO);
    let (mut sfs, made) = volume(task);
    sfs.files.inode_mut(task, 1).unwrap().kind = FileKind::Fifo;
    let (_, text, mut sfs) = repaired(task, sfs);
    assert!(text.contains("it is no directory"), "{text}");
    let found = sfs.lookup(task, InodeNumber::ROOT, b"lost+found").unwrap();
    sfs.lookup(task, found, format!("#{}", made.large).as_bytes()).unwrap();
}

#[test]
fn attributes_whose_list_names_blocks_of_others_or_none_are_taken_away_and_the_rest_stays() {
    let task = &Task::at(Time::ZERO);
    for wrong in 0..3 {
        let (mut sfs, made) = volume(task);
        let used = sfs.files.metadata.used_blocks();
        sfs.set_extended_attribute(task, InodeNumber(made.large), b"user.wide", &[7; 20_000], None).unwrap();
        let first = sfs.files.inode(task, made.large).unwrap().attributes;
        let other = sfs.files.mapped(task, made.large, 0).unwrap();
        let list = sfs.files.metadata_block_mut(task, first, made.large, NO_PLACE).unwrap();
        match wrong {
            0 => set_number(list, 2, other),
            1 => set_number(list, 3, 1 << 40),
            _ => list[..4].copy_from_slice(&[0xff; 4]),
        }
        let (structures, text, mut sfs) = repaired(task, sfs);
        assert!(structures.contains(&Structure::Attributes), "{text}");
        assert_eq!(sfs.extended_attributes(task, InodeNumber(made.large)).unwrap(), Vec::<Vec<u8>>::new());
        assert_eq!(sfs.extended_attribute(task, InodeNumber(made.file), b"user.a").unwrap(), b"b");
        let mut bytes = [0; 100_000];
        assert_eq!(sfs.read(task, InodeNumber(made.large), 0, &mut bytes).unwrap(), bytes.len());
        assert!(
            bytes == [2; 100_000] && sfs.files.metadata.used_blocks() <= used + 1,
            "{wrong}: {} {used}",
            sfs.files.metadata.used_blocks()
        );
    }
}

/// A repair left the zones open that the killed mount had open, and took as many again: the drive refused them.
#[test]
fn a_repair_ends_the_zones_that_a_killed_mount_had_open() {
    let task = &Task::at(Time::ZERO);
    let zones = "zns:size=8M,zone=64K,page=4K,max-active=3,max-open=3,timing=off";
    let zones = ZnsSettings::read(&parse_term(zones).unwrap()).unwrap();
    let settings = SfsSettings::read(&parse_term("sfs").unwrap()).unwrap();
    let medium = Medium::Zones(Box::new(Zns::new(&zones, BLOCK_BYTES as usize)));
    let mut sfs = Sfs::create(task, medium, &settings, IDENTITY).unwrap();
    let file = sfs.make(task, InodeNumber::ROOT, b"file", &new(FileKind::Regular)).unwrap();
    for round in 0..8 {
        sfs.write(task, file, round * 9000, &[round as u8; 9000]).unwrap();
        sfs.sync(task).unwrap();
        sfs.write(task, file, round * 9000, &[1; 9000]).unwrap();
        sfs.sync_file(task, file, Durable::All).unwrap();
        // The mount is killed here.
        let mut opened = open(task, sfs.into_medium(), &settings, IDENTITY, Tolerance::Lenient).unwrap();
        opened.volume.files.inode_mut(task, file.0).unwrap().links = 7;
        let (repaired, repaired_volume) = repair_opened(task, opened).unwrap();
        assert!(!repaired.findings.is_empty() && repaired.left.is_empty());
        sfs = Sfs::open(task, repaired_volume.into_medium(), &settings, IDENTITY, false).unwrap();
    }
}
