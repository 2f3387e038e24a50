//! Volumes that rot: every structure on a small volume is damaged, thousands of times. What is read afterwards is what
//! was written, or an error; fsck says what is wrong and puts it right; files that the damage did not touch are whole.

use super::model::{Node, Tree, resolve, tree_of};
use super::power_cut::{Disk, Power, Zones};
use super::random_work::Worker;
use super::unclean_damage::number_of;
use super::{IDENTITY, blocks, create, open, settings};
use flashpath::device::{Abilities, Account, BlockDevice, DeviceError, Lba};
use flashpath::fs::sfs::{
    FileKind, Finding, InodeNumber, Medium, NewFile, OpenSfsError, Sfs, SfsError, Structure, check, repair,
};
use flashpath::label::Label;
use flashpath::random::Random;
use flashpath::task::Task;
use flashpath::time::Time;
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

const BLOCK: usize = 4096;
/// Blocks of a segment of 64 KiB.
const SEGMENT: usize = 16;

/// A regular file of root.
const FILE: NewFile<'static> =
    NewFile { kind: FileKind::Regular, permissions: 0o644, user: 0, group: 0, device: 0, target: b"", attributes: &[] };

/// The content of a device, shared by clones.
#[derive(Clone)]
struct Image(Arc<Mutex<Overlay>>);

/// Blocks over an image that stays as it is.
struct Overlay {
    under: Arc<Vec<u8>>,
    over: BTreeMap<u64, Vec<u8>>,
    writes: u64,
}

impl Image {
    fn of(bytes: &Arc<Vec<u8>>) -> Image {
        Image(Arc::new(Mutex::new(Overlay { under: bytes.clone(), over: BTreeMap::new(), writes: 0 })))
    }

    fn writes(&self) -> u64 {
        self.0.lock().unwrap().writes
    }

    fn block(&self, block: u64) -> Vec<u8> {
        let image = self.0.lock().unwrap();
        let from = block as usize * BLOCK;
        image.over.get(&block).cloned().unwrap_or_else(|| image.under[from..from + BLOCK].to_vec())
    }

    fn change(&self, block: u64, change: impl FnOnce(&mut [u8])) {
        let mut bytes = self.block(block);
        change(&mut bytes);
        self.0.lock().unwrap().over.insert(block, bytes);
    }

    fn flip(&self, byte: u64, bit: u8) {
        self.change(byte / BLOCK as u64, |bytes| bytes[byte as usize % BLOCK] ^= 1 << bit);
    }
}

impl BlockDevice for Image {
    fn blocks(&self) -> u64 {
        (self.0.lock().unwrap().under.len() / BLOCK) as u64
    }

    fn block_width(&self) -> usize {
        BLOCK
    }

    fn read(&self, first: Lba, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        let image = self.0.lock().unwrap();
        let from = first.0 as usize * BLOCK;
        buffer.copy_from_slice(&image.under[from..from + buffer.len()]);
        for (block, over) in image.over.range(first.0..first.0 + (buffer.len() / BLOCK) as u64) {
            let at = (block - first.0) as usize * BLOCK;
            buffer[at..at + BLOCK].copy_from_slice(over);
        }
        Ok(at)
    }

    fn write(&self, first: Lba, buffer: &[u8], _label: Label, at: Time) -> Result<Time, DeviceError> {
        let mut image = self.0.lock().unwrap();
        for (block, bytes) in (first.0..).zip(buffer.chunks_exact(BLOCK)) {
            image.over.insert(block, bytes.to_vec());
            image.writes += 1;
        }
        Ok(at)
    }

    fn discard(&self, _first: Lba, _blocks: u64, at: Time) -> Result<Time, DeviceError> {
        Ok(at)
    }

    fn flush(&self, at: Time) -> Result<Time, DeviceError> {
        Ok(at)
    }

    fn account(&self) -> Account {
        Account { station: "conv", ..Account::default() }
    }
}

impl Abilities for Image {
    fn wrapped(&self) -> Option<&dyn BlockDevice> {
        None
    }
}

/// A volume with some of everything, and what it holds.
struct Populated {
    bytes: Arc<Vec<u8>>,
    tree: Tree,
}

const SIZE: usize = 128 * SEGMENT * BLOCK;

/// Ends in good order, or in the middle of the work, behind a sync of some files.
fn populate(task: &Task<'_>, seed: u64, is_unmounted: bool) -> Populated {
    let image = Image::of(&Arc::new(vec![0; SIZE]));
    let mut sfs = create(blocks(image.clone()), "sfs:segment=64K");
    let mut worker = Worker::new(seed, 60_000);
    for _ in 0..600 {
        match worker.step(task, &mut sfs) {
            Ok(()) | Err(SfsError::NoSpace { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    // One with a map of two levels, mostly holes, and one with attributes.
    let large = sfs.make(task, InodeNumber::ROOT, b"large", &FILE).unwrap();
    let mut expected = vec![0; 298_000];
    for place in 0..60 {
        let at = place * 5000;
        expected[at..at + 3000].fill(place as u8 + 1);
        sfs.write(task, large, at as u64, &vec![place as u8 + 1; 3000]).unwrap();
    }
    sfs.set_extended_attribute(task, large, b"user.colour", b"blue", None).unwrap();
    // And one whose attributes take several blocks.
    let wide = sfs.make(task, InodeNumber::ROOT, b"wide", &FILE).unwrap();
    sfs.set_extended_attribute(task, wide, b"user.wide", &[7; 20_000], None).unwrap();
    worker.tree.insert("/wide".to_string(), Node::File { bytes: Vec::new(), links: 1 });
    worker.tree.insert("/large".to_string(), Node::File { bytes: expected, links: 1 });
    sfs.sync(task).unwrap();
    if is_unmounted {
        sfs.unmount(task).unwrap();
    } else {
        for number in 0..40u8 {
            let path = format!("/synced{number}");
            let inode = sfs.make(task, InodeNumber::ROOT, &path.as_bytes()[1..], &FILE).unwrap();
            let bytes = vec![number + 1; 9000];
            sfs.write(task, inode, 0, &bytes).unwrap();
            worker.tree.insert(path, Node::File { bytes, links: 1 });
        }
        for number in 0..40 {
            let inode = resolve(task, &mut sfs, &format!("/synced{number}"));
            sfs.sync_file(task, inode, flashpath::fs::Durable::All).unwrap();
        }
    }
    drop(sfs);
    let mut bytes = vec![0; SIZE];
    for (block, place) in (0..).zip(bytes.chunks_exact_mut(BLOCK)) {
        place.copy_from_slice(&image.block(block));
    }
    Populated { bytes: Arc::new(bytes), tree: worker.tree }
}

/// The content of a file by blocks; `None` for unreadable ones.
type Read = Vec<Option<Vec<u8>>>;

/// All that can be read, by path.
fn read_all(task: &Task<'_>, sfs: &mut Sfs) -> BTreeMap<String, Read> {
    let (mut all, mut left) = (BTreeMap::new(), vec![(InodeNumber::ROOT, String::new())]);
    while let Some((directory, path)) = left.pop() {
        let mut entries = Vec::new();
        // A directory that cannot be read has no names.
        let _ = sfs.list(task, directory, 0, &mut |entry| {
            entries.push((entry.inode, entry.kind, entry.name.to_vec()));
            true
        });
        for (inode, kind, name) in entries.into_iter().filter(|(.., name)| name != b"." && name != b"..") {
            let path = format!("{path}/{}", String::from_utf8_lossy(&name));
            match kind {
                FileKind::Directory => left.push((inode, path)),
                FileKind::Symlink => drop(all.insert(path, vec![sfs.target(task, inode).ok()])),
                _ => {
                    let Ok(attributes) = sfs.attributes(task, inode) else { continue };
                    let size = attributes.size.min(1 << 20);
                    let read = (0..size).step_by(BLOCK).map(|offset| {
                        let mut bytes = vec![0xee; BLOCK.min((size - offset) as usize)];
                        sfs.read(task, inode, offset, &mut bytes).ok().map(|_| bytes)
                    });
                    all.insert(path, read.collect());
                }
            }
        }
    }
    all
}

fn expected(node: &Node) -> Option<Read> {
    match node {
        Node::File { bytes, .. } => Some(bytes.chunks(BLOCK).map(|block| Some(block.to_vec())).collect()),
        Node::Symlink(target) => Some(vec![Some(target.clone())]),
        Node::Directory => None,
    }
}

/// Differences between the data read and the data written.
#[derive(Debug, Default)]
struct Loss {
    /// Files that are not where they were.
    missing: BTreeSet<String>,
    /// Files of which parts cannot be read.
    unreadable: BTreeSet<String>,
}

/// True if the file was written after the last checkpoint: damage ends the log, as if nothing followed.
fn is_of_log(path: &str) -> bool {
    path.starts_with("/synced")
}

/// Panics if anything reads as what was never written.
fn compare(read: &BTreeMap<String, Read>, tree: &Tree, context: &str) -> Loss {
    let mut loss = Loss::default();
    let written: Vec<Read> = tree.values().filter_map(expected).collect();
    for (path, node) in tree {
        let Some(expected) = expected(node) else { continue };
        let Some(found) = read.get(path) else {
            loss.missing.insert(path.clone());
            continue;
        };
        if found.len() < expected.len() && is_of_log(path) {
            loss.missing.insert(path.clone());
            continue;
        }
        assert_eq!(found.len(), expected.len(), "{context}: {path} has another size");
        for (number, (found, expected)) in found.iter().zip(&expected).enumerate() {
            match found {
                None => drop(loss.unreadable.insert(path.clone())),
                Some(found) => {
                    let expected = expected.as_ref().unwrap();
                    assert!(found == expected, "{context}: wrong bytes in block {number} of {path}");
                }
            }
        }
    }
    for (path, found) in read.iter().filter(|(path, _)| !tree.contains_key(*path)) {
        // What lost its name is still one of the files.
        let is_one = |written: &Read| {
            written.len() == found.len()
                && written.iter().zip(found).all(|(written, found)| found.is_none() || written == found)
        };
        assert!(path.starts_with("/lost+found") && written.iter().any(is_one), "{context}: {path} was never written");
    }
    loss
}

/// Number of damaged volumes by outcome.
#[derive(Debug, Default)]
struct Outcomes {
    silent: u64,
    refused: u64,
    repaired: u64,
    rounds_with_loss: u64,
    older: u64,
    structures: BTreeMap<String, u64>,
}

/// Mounts a damaged volume and reads all of it, checks it, repairs it, and checks and reads it again.
fn examine(task: &Task<'_>, image: &Image, tree: &Tree, outcomes: &mut Outcomes, context: &str) -> Loss {
    let before = image.0.lock().unwrap().over.clone();
    // As it is, without a repair: only errors, and no wrong bytes.
    if let Ok(mut sfs) = Sfs::open(&Task::at(Time::ZERO), blocks(image.clone()), &settings("sfs"), IDENTITY, true) {
        compare(&read_all(task, &mut sfs), tree, &format!("{context}, damaged"));
    }
    let found = check(blocks(image.clone()), &settings("sfs"));
    assert_eq!(image.writes(), 0, "{context}: a check writes nothing");
    assert!(before == image.0.lock().unwrap().over);
    let findings = match found {
        Ok(findings) => findings,
        Err(error) => {
            assert!(repair(blocks(image.clone()), &settings("sfs"), IDENTITY).is_err(), "{context}: {error}");
            assert_eq!(image.writes(), 0, "{context}: what cannot be opened is left as it is");
            outcomes.refused += 1;
            return Loss { missing: tree.keys().cloned().collect(), unreadable: BTreeSet::new() };
        }
    };
    for finding in &findings {
        *outcomes.structures.entry(format!("{:?}", finding.structure)).or_default() += 1;
    }
    let repaired =
        repair(blocks(image.clone()), &settings("sfs"), IDENTITY).unwrap_or_else(|error| panic!("{context}: {error}"));
    assert_eq!(repaired.findings.is_empty(), findings.is_empty(), "{context}: {findings:?}");
    assert_eq!(repaired.left, [], "{context}: after {:?}", repaired.findings);
    let again = check(blocks(image.clone()), &settings("sfs")).unwrap();
    assert_eq!(again, [], "{context}: after {:?}", repaired.findings);
    let mut sfs = open(blocks(image.clone()), "sfs");
    if repaired.findings.iter().any(|finding| finding.place.starts_with("checkpoint")) {
        // An older one took its place, as it says: the files are older, too.
        read_all(task, &mut sfs);
        outcomes.older += 1;
        return Loss::default();
    }
    let loss = compare(&read_all(task, &mut sfs), tree, &format!("{context}, repaired"));
    assert_eq!(sfs.check(task).unwrap(), [], "{context}: mounted");
    let is_lost = loss.missing.iter().chain(&loss.unreadable).any(|path| !is_of_log(path));
    assert!(!is_lost || !findings.is_empty(), "{context}: {loss:?} and nothing was found");
    // What is unreadable was told, by name.
    for path in &loss.unreadable {
        let is_named = |finding: &Finding| finding.path.as_ref() == Some(path);
        assert!(repaired.findings.iter().any(is_named), "{context}: {path} among {:?}", repaired.findings);
    }
    outcomes.rounds_with_loss += u64::from(is_lost);
    if findings.is_empty() {
        outcomes.silent += 1
    } else {
        outcomes.repaired += 1
    }
    loss
}

#[test]
fn a_volume_with_some_of_everything_has_nothing_wrong_and_a_repair_writes_nothing() {
    let task = &Task::at(Time::ZERO);
    for is_unmounted in [true, false] {
        let volume = populate(task, 3, is_unmounted);
        let image = Image::of(&volume.bytes);
        let loss = examine(task, &image, &volume.tree, &mut Outcomes::default(), "whole");
        assert!(loss.missing.is_empty() && loss.unreadable.is_empty(), "{loss:?}");
    }
}

/// The kind of a block, by its block record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Superblock,
    Summary,
    Data,
    /// Of a directory, or a link's target.
    Named,
    /// Of a map, or extended attributes.
    Unnamed,
    DatPage,
    DatTree,
    InodePage,
    UsagePage,
}

fn number(bytes: &[u8], at: usize, width: usize) -> u64 {
    (0..width).rev().fold(0, |number, byte| number << 8 | u64::from(bytes[at + byte]))
}

/// The blocks of each class.
fn classes(bytes: &[u8]) -> BTreeMap<Class, Vec<u64>> {
    let mut classes: BTreeMap<Class, Vec<u64>> = BTreeMap::new();
    classes.insert(Class::Superblock, vec![0, SEGMENT as u64 / 2]);
    for segment in 1..bytes.len() / BLOCK / SEGMENT {
        let mut at = 0;
        while at < SEGMENT {
            let summary = &bytes[(segment * SEGMENT + at) * BLOCK..];
            if &summary[..4] != b"SFSL" {
                break;
            }
            let (own, count) = (number(summary, 20, 4) as usize, number(summary, 24, 4) as usize);
            let first = (segment * SEGMENT + at) as u64;
            classes.entry(Class::Summary).or_default().extend(first..first + own as u64);
            for block in 0..count {
                let record = &summary[64 + block * 32..];
                let class = match (record[28], number(record, 16, 8), number(record, 0, 8) >> 56) {
                    (1, ..) => Class::Data,
                    (2, u64::MAX, _) => Class::Unnamed,
                    (2, ..) => Class::Named,
                    (3, _, 0) => Class::DatPage,
                    (3, ..) => Class::DatTree,
                    (4, ..) => Class::InodePage,
                    _ => Class::UsagePage,
                };
                classes.entry(class).or_default().push(first + (own + block) as u64);
            }
            at += own + count;
        }
    }
    classes
}

/// Damages a block: a bit, some bytes, a sector, or all of it.
fn damage(image: &Image, block: u64, random: &mut Random) -> &'static str {
    let place = random.below(BLOCK as u64) as usize;
    let kind = random.below(8);
    let noise: Vec<u8> = (0..BLOCK).map(|_| random.bits() as u8).collect();
    image.change(block, |bytes| match kind {
        0..=3 => bytes[place] ^= 1 << (noise[0] % 8),
        4 => bytes[place / 8 * 8..place / 8 * 8 + 8].copy_from_slice(&noise[..8]),
        5 => bytes[place / 512 * 512..place / 512 * 512 + 512].fill(0),
        6 => bytes.fill(0),
        _ => bytes.copy_from_slice(&noise),
    });
    ["a bit", "a bit", "a bit", "a bit", "eight bytes", "a sector of zeros", "zeros", "noise"][kind as usize]
}

#[test]
fn each_structure_is_damaged_and_what_it_stands_for_survives_where_the_log_tells_of_it() {
    let task = &Task::at(Time::ZERO);
    let volume = populate(task, 4, true);
    let classes = classes(&volume.bytes);
    assert_eq!(classes.len(), 9, "{:?}", classes.keys());
    let mut random = Random::new(5, "damage");
    let mut outcomes: BTreeMap<Class, Outcomes> = BTreeMap::new();
    for (class, its_blocks) in &classes {
        for round in 0..60 {
            // The last ones are the newest, and more of them are live.
            let newest = its_blocks.len() as u64 / 2;
            let at = if round % 2 == 0 {
                random.below(its_blocks.len() as u64)
            } else {
                newest + random.below(its_blocks.len() as u64 - newest)
            };
            let block = its_blocks[at as usize];
            let image = Image::of(&volume.bytes);
            let how = damage(&image, block, &mut random);
            let context = format!("{class:?}, round {round}, {how} in block {block}");
            let loss = examine(task, &image, &volume.tree, outcomes.entry(*class).or_default(), &context);
            let lost = loss.missing.len() + loss.unreadable.len();
            match class {
                Class::Superblock | Class::Summary | Class::UsagePage | Class::DatPage | Class::DatTree => {
                    assert_eq!(lost, 0, "{context}: {loss:?}");
                }
                Class::Data => assert!(loss.missing.is_empty() && loss.unreadable.len() <= 1, "{context}: {loss:?}"),
                Class::Unnamed => assert!(loss.missing.is_empty() && loss.unreadable.len() <= 1, "{context}: {loss:?}"),
                Class::Named | Class::InodePage => {}
            }
        }
    }
    let found = |class: Class| outcomes[&class].repaired;
    for class in classes.keys().filter(|class| **class != Class::Summary) {
        assert!(found(*class) > 0, "{class:?}: {outcomes:?}");
    }
    eprintln!("{outcomes:#?}");
}

/// `SFS_DAMAGE_SEED` selects other volumes and other damage.
#[test]
fn random_damage_is_found_and_repaired() {
    let task = &Task::at(Time::ZERO);
    let mut outcomes = Outcomes::default();
    let seed = number_of("SFS_DAMAGE_SEED", 6);
    let mut random = Random::new(seed, "damage");
    for is_unmounted in [true, false] {
        let volume = populate(task, seed + 1, is_unmounted);
        let classes = classes(&volume.bytes);
        let written: Vec<u64> = classes
            .iter()
            .filter(|(class, _)| **class != Class::Superblock)
            .flat_map(|(_, blocks)| blocks)
            .copied()
            .collect();
        for round in 0..700 {
            let image = Image::of(&volume.bytes);
            let count = 1 + random.below(if round % 4 == 0 { 12 } else { 2 });
            let mut damaged = Vec::new();
            for _ in 0..count {
                let block = written[random.below(written.len() as u64) as usize];
                damaged.push((block, damage(&image, block, &mut random)));
            }
            let context = format!("SFS_DAMAGE_SEED={seed}, unmounted {is_unmounted}, round {round}, {damaged:?}");
            examine(task, &image, &volume.tree, &mut outcomes, &context);
        }
    }
    eprintln!("{outcomes:?}");
    assert!(outcomes.repaired > 500 && outcomes.rounds_with_loss > 100, "{outcomes:?}");
}

/// The page of lost inodes became a hole in memory, and the block above it was not written: the next check found the page
/// damaged again, as often as it was repaired.
#[test]
fn a_lost_page_of_inodes_stays_away_if_nothing_else_of_the_inode_file_changes() {
    let task = &Task::at(Time::ZERO);
    let image = Image::of(&Arc::new(vec![0; SIZE]));
    let mut sfs = create(blocks(image.clone()), "sfs:segment=64K");
    for file in 0..60 {
        sfs.make(task, InodeNumber::ROOT, format!("file{file}").as_bytes(), &FILE).unwrap();
    }
    sfs.unmount(task).unwrap();
    let bytes = Arc::new((0..(SIZE / BLOCK) as u64).flat_map(|block| image.block(block)).collect::<Vec<u8>>());
    let mut with_loss = 0;
    for block in &classes(&bytes)[&Class::InodePage] {
        let image = Image::of(&bytes);
        image.change(*block, |bytes| bytes.fill(0));
        let repaired = repair(blocks(image.clone()), &settings("sfs"), IDENTITY).unwrap();
        assert_eq!(repaired.left, [], "block {block}");
        assert_eq!(check(blocks(image.clone()), &settings("sfs")).unwrap(), [], "block {block}");
        with_loss += u64::from(!repaired.findings.is_empty());
    }
    assert!(with_loss >= 4, "{with_loss}");
}

/// A page of the DAT was lost, and the summary that had the newest record of a block was wiped, so that it looked like
/// the end of its segment: an older record counted, and the file read as it was before.
#[test]
fn an_older_version_does_not_come_back_if_the_summary_of_the_newest_one_was_wiped() {
    let task = &Task::at(Time::ZERO);
    let image = Image::of(&Arc::new(vec![0; SIZE]));
    let mut sfs = create(blocks(image.clone()), "sfs:segment=64K");
    let inodes: Vec<InodeNumber> = (0..8)
        .map(|file| sfs.make(task, InodeNumber::ROOT, format!("file{file}").as_bytes(), &FILE).unwrap())
        .collect();
    for version in 1..=3 {
        for inode in &inodes {
            sfs.write(task, *inode, 0, &vec![version; 9000]).unwrap();
            task.wait_until(task.now() + 1_000_000_000);
        }
        sfs.sync(task).unwrap();
    }
    sfs.unmount(task).unwrap();
    let bytes: Vec<u8> = (0..(SIZE / BLOCK) as u64).flat_map(|block| image.block(block)).collect();
    let classes = classes(&bytes);
    let bytes = Arc::new(bytes);
    let (mut read, mut lost) = (0, 0);
    for page in &classes[&Class::DatPage] {
        for summary in &classes[&Class::Summary] {
            let image = Image::of(&bytes);
            image.change(*page, |bytes| bytes[100] ^= 1);
            image.change(*summary, |bytes| bytes.fill(0));
            let repaired = repair(blocks(image.clone()), &settings("sfs"), IDENTITY).unwrap();
            assert_eq!(repaired.left, [], "page {page}, summary {summary}");
            let mut sfs = open(blocks(image.clone()), "sfs");
            for (path, blocks) in read_all(task, &mut sfs) {
                for block in blocks {
                    let is_newest = block.as_ref().is_none_or(|block| block.iter().all(|byte| *byte == 3));
                    assert!(is_newest, "page {page}, summary {summary}: {path} reads as before");
                    *(if block.is_some() { &mut read } else { &mut lost }) += 1;
                }
            }
        }
    }
    assert!(read > 0 && lost > 0, "{read} blocks are read, and {lost} are not");
}

#[test]
fn without_the_newest_superblock_an_older_checkpoint_and_the_log_are_all_there_is() {
    let task = &Task::at(Time::ZERO);
    let volume = populate(task, 8, false);
    for block in [0, SEGMENT as u64 / 2] {
        let image = Image::of(&volume.bytes);
        image.change(block, |bytes| bytes[100] ^= 1);
        let findings = check(blocks(image.clone()), &settings("sfs")).unwrap();
        assert!(findings.iter().any(|finding| finding.structure == Structure::Superblock), "{findings:?}");
        let repaired = repair(blocks(image.clone()), &settings("sfs"), IDENTITY).unwrap();
        assert_eq!(repaired.left, []);
        assert_eq!(check(blocks(image.clone()), &settings("sfs")).unwrap(), []);
        read_all(task, &mut open(blocks(image.clone()), "sfs"));
    }
    let image = Image::of(&volume.bytes);
    for block in [0, SEGMENT as u64 / 2] {
        image.change(block, |bytes| bytes[100] ^= 1);
    }
    let error = check(blocks(image.clone()), &settings("sfs")).unwrap_err();
    assert!(matches!(error, OpenSfsError::Superblocks(_)), "{error}");
    assert!(error.to_string().contains("block 0") && error.to_string().contains("block 8"), "{error}");
}

#[test]
fn what_is_no_volume_or_only_a_part_of_one_is_refused() {
    let task = &Task::at(Time::ZERO);
    let volume = populate(task, 9, true);
    for part in [1, 8, 100, 2047] {
        let image = Image::of(&Arc::new(volume.bytes[..part * BLOCK].to_vec()));
        let error = check(blocks(image.clone()), &settings("sfs")).unwrap_err();
        assert!(matches!(error, OpenSfsError::Shape { expected: 2048, .. }), "{part}: {error}");
        assert!(repair(blocks(image.clone()), &settings("sfs"), IDENTITY).is_err());
        assert_eq!(image.writes(), 0);
    }
    let mut random = Random::new(10, "garbage");
    for round in 0..200 {
        let mut bytes: Vec<u8> = (0..64 * BLOCK / 8).flat_map(|_| random.bits().to_le_bytes()).collect();
        if round % 2 == 0 {
            bytes[..8].copy_from_slice(b"FLASHSFS");
        }
        let error = check(blocks(Image::of(&Arc::new(bytes))), &settings("sfs")).unwrap_err();
        assert!(matches!(error, OpenSfsError::NoVolume | OpenSfsError::Superblocks(_)), "{error}");
    }
    let error = check(blocks(Image::of(&volume.bytes)), &settings("sfs:segment=128K")).unwrap_err();
    assert!(matches!(error, OpenSfsError::Segment { .. }), "{error}");
}

#[test]
fn a_file_that_holds_the_image_of_a_volume_is_not_taken_for_the_volume() {
    let task = &Task::at(Time::ZERO);
    let volume = populate(task, 11, true);
    let image = Image::of(&volume.bytes);
    // A later superblock of another volume, at a place where one with larger segments would have it.
    let other = Image::of(&Arc::new(vec![0; 2 * SIZE]));
    let mut sfs = create(blocks(other.clone()), "sfs:segment=128K");
    (0..200).for_each(|_| sfs.sync(task).unwrap());
    for _ in 0..100 {
        sfs.make(
            task,
            InodeNumber::ROOT,
            format!("{:?}", task.now()).as_bytes(),
            &NewFile {
                kind: FileKind::Regular,
                permissions: 0,
                user: 0,
                group: 0,
                device: 0,
                target: b"",
                attributes: &[],
            },
        )
        .ok();
        task.wait_until(task.now() + 1_000_000_000);
        sfs.sync(task).unwrap();
    }
    sfs.unmount(task).unwrap();
    let foreign = other.block(16);
    assert_eq!(&foreign[..8], b"FLASHSFS");
    image.change(16, |bytes| bytes.copy_from_slice(&foreign));
    let mut sfs = Sfs::open(&Task::at(Time::ZERO), blocks(image.clone()), &settings("sfs"), IDENTITY, true).unwrap();
    let loss = compare(&read_all(task, &mut sfs), &volume.tree, "foreign");
    assert!(loss.missing.is_empty(), "{loss:?}");
}

#[test]
fn a_block_that_was_given_up_can_be_read_again_once_it_is_written() {
    let task = &Task::at(Time::ZERO);
    let volume = populate(task, 12, true);
    let image = Image::of(&volume.bytes);
    let classes = classes(&volume.bytes);
    let mut sfs = None;
    for block in classes[&Class::Data].iter().rev() {
        let image = Image::of(&volume.bytes);
        image.flip(block * BLOCK as u64 + 77, 3);
        let repaired = repair(blocks(image.clone()), &settings("sfs"), IDENTITY).unwrap();
        let data =
            |finding: &&Finding| finding.structure == Structure::Data && finding.path.as_deref() != Some("/large");
        if let Some(finding) = repaired.findings.iter().find(data) {
            let path = finding.path.clone().unwrap();
            sfs = Some((open(blocks(image.clone()), "sfs"), path, finding.offset.unwrap()));
            break;
        }
    }
    let (mut sfs, path, offset) = sfs.unwrap();
    let inode = resolve(task, &mut sfs, &path);
    let mut bytes = vec![0; BLOCK];
    let error = sfs.read(task, inode, offset, &mut bytes).unwrap_err();
    assert!(error.errno() == Errno::IO && error.to_string().contains("lost in a repair"), "{error}");
    // Not in part: nobody knows the rest.
    assert_eq!(sfs.write(task, inode, offset + 1, b"part").unwrap_err().errno(), Errno::IO);
    sfs.write(task, inode, offset, &[9; BLOCK]).unwrap();
    sfs.read(task, inode, offset, &mut bytes).unwrap();
    assert_eq!(bytes, [9; BLOCK]);
    sfs.unmount(task).unwrap();
    drop(image);
}

#[test]
fn a_volume_at_work_has_nothing_wrong_at_any_moment() {
    let task = &Task::at(Time::ZERO);
    let power = Power::new();
    for (seed, text) in [(13, "sfs:segment=64K"), (14, "sfs:grouping=dac,fsync=checkpoint,segment=64K"), (15, "sfs")] {
        let zones = Zones::new(&power, 90, 64, 0);
        let medium = if text == "sfs" {
            Medium::Zones(Box::new(zones.clone()))
        } else {
            blocks(Disk::new(&power, SIZE as u64 / BLOCK as u64, 0))
        };
        let mut sfs = create(medium, text);
        let mut worker = Worker::new(seed, 120_000);
        for step in 0..3000 {
            match worker.step(task, &mut sfs) {
                Ok(()) | Err(SfsError::NoSpace { .. }) => {}
                Err(error) => panic!("{text}, step {step}: {error}"),
            }
            if step % 100 == 0 {
                assert_eq!(sfs.check(task).unwrap(), [], "{text}, step {step}");
            }
        }
        assert_eq!(tree_of(task, &mut sfs), worker.tree);
        if text == "sfs" {
            sfs.unmount(task).unwrap();
            let medium = || Medium::Zones(Box::new(zones.clone()));
            assert_eq!(check(medium(), &settings("sfs")).unwrap(), []);
            // The newest superblock rots: the one before it is as good.
            let repaired = repair(medium(), &settings("sfs"), IDENTITY).unwrap();
            assert_eq!((repaired.findings, repaired.left), (vec![], vec![]));
        }
    }
}
