//! Power is cut at any operation of the device, or of both if the journal has its own. What is left is replayed by this program, again after further cuts, and by
//! the kernel: e2fsck finds nothing, both see the same files, and what was synced is there.
//!
//! `EXT_CRASHES` sets the number of cuts of each mode.

use crate::image::{Image, call, can_mount, has_e2fsprogs, program};
use crate::pair::Pair;
use crate::power_cut::{Disk, Keeper, Memory, Power};
use crate::walk::{Tree, assert_same, of_directory, of_volume};
use flashpath::device::Medium;
use flashpath::expression::parse_term;
use flashpath::fs::Durable;
use flashpath::fs::ext::{DataMode, ExtSettings};
use flashpath::fs::station::{Access, Mounting, StoredVolumes, VolumeSettings};
use flashpath::fs::volume::{FileKind, Hold, IfExists, InodeNumber, NewFile, Renaming, Volume, VolumeError};
use flashpath::random::Random;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

pub const BLOCKS: u64 = 16 << 8;
/// Little more than the least with blocks for fast commits, so that the log goes round.
pub const JOURNAL_BLOCKS: u64 = (4 << 8) + 170;
pub const BLOCK: usize = 4096;

pub fn mounting() -> Mounting {
    Mounting::at(5, 1_700_000_000_000_000_000)
}

pub fn settings(data: &str, place: Place, seed: u64) -> ExtSettings {
    let of_memory = match place {
        Place::Memory if seed.is_multiple_of(3) => ",partitions=2,scheme=paper",
        Place::Memory => ",partitions=2,hash=multiplicative",
        Place::Inline | Place::Device | Place::Monitor => "",
    };
    let mut settings =
        ExtSettings::read(&parse_term(&format!("ext:data={data},dirty=1M{of_memory}")).unwrap()).unwrap();
    if seed.is_multiple_of(4) {
        // Each inode leaves memory soon, and is read again.
        settings.cache_bytes = 0;
        settings.memory_bytes = Some(37 << 20);
    }
    settings
}

/// The devices of a volume, which lose power together.
pub struct Disks {
    pub volume: Disk,
    pub journal: Option<Disk>,
    pub memory: Option<Memory>,
    keeper: Option<Keeper>,
}

/// Where the journal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Inline,
    Device,
    Memory,
    /// In the volume's own memory, which a monitor keeps.
    Monitor,
}

/// Little more than the least for two partitions, so that their slots go round.
const MEMORY_BYTES: u64 = 16_384 + 2 * 800 * (4096 + 64);

impl Disks {
    /// Blocks of a journal's own device may be torn, and those of the volume then, too, but for its superblock.
    pub fn new(power: &Power, place: Place) -> Disks {
        let journal = (place == Place::Device).then(|| Disk::new(power, JOURNAL_BLOCKS, JOURNAL_BLOCKS));
        let memory = (place == Place::Memory).then(|| Memory::new(power, MEMORY_BYTES));
        let volume = Disk::new(power, BLOCKS, if place == Place::Inline { 0 } else { BLOCKS });
        volume.never_tears(0);
        let keeper = (place == Place::Monitor).then(|| Keeper::new(power));
        Disks { volume, journal, memory, keeper }
    }

    pub fn copy(&self, power: &Power) -> Disks {
        Disks {
            volume: self.volume.copy(power),
            journal: self.journal.as_ref().map(|disk| disk.copy(power)),
            memory: self.memory.as_ref().map(|memory| Memory::of(power, memory.contents())),
            keeper: self.keeper.as_ref().map(|keeper| keeper.copy(power)),
        }
    }

    pub fn media(&self) -> Vec<Medium> {
        let disks = [&self.volume].into_iter().chain(&self.journal);
        let disks = disks.map(|disk| Medium::Blocks(Box::new(disk.clone())));
        let memory = self.memory.iter().map(|memory| Medium::Memory(Box::new(memory.clone())));
        let keeper = self.keeper.iter().map(|keeper| Medium::Monitor(Arc::new(keeper.clone())));
        disks.chain(memory).chain(keeper).collect()
    }

    pub fn lose_power(&self, random: &mut Random) {
        self.volume.lose_power(random);
        self.journal.iter().for_each(|disk| disk.lose_power(random));
        self.memory.iter().for_each(|memory| memory.lose_power(random));
    }

    /// The devices as images.
    pub fn images(&self) -> (Image, Option<Image>) {
        (image_of(&self.volume, BLOCKS), self.journal.as_ref().map(|disk| image_of(disk, JOURNAL_BLOCKS)))
    }

    fn open(&self, settings: &ExtSettings) -> Arc<dyn Volume> {
        settings.open(self.media(), &mounting(), Access::IfWhole).unwrap_or_else(|error| panic!("{error}"))
    }
}

/// What `e2fsck -fn` finds; `None` if nothing.
pub fn findings(images: &(Image, Option<Image>)) -> Option<String> {
    let (volume, Some(journal)) = images else { return images.0.findings() };
    let output = program("e2fsck").args(["-fn", "-j", &journal.text(), &volume.text()]).output().unwrap();
    (!output.status.success()).then(|| format!("{output:?}"))
}

/// What must be there after a crash: the bytes of files that were synced and not touched again.
#[derive(Clone, Default)]
pub struct Promised {
    pub files: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// Works until the power fails. Stores to memory are lost then, and nothing says so.
pub fn work(volume: &dyn Volume, random: &mut Random, promised: &mut Promised, power: &Power) {
    let end = work_on(volume, random, promised, power);
    assert!(power.is_off(), "nothing else fails: {end:?}");
}

fn work_on(
    volume: &dyn Volume,
    random: &mut Random,
    promised: &mut Promised,
    power: &Power,
) -> Result<(), VolumeError> {
    let mut others: Vec<Vec<u8>> = Vec::new();
    for number in (0..).take_while(|_| !power.is_off()) {
        let name = format!("{number} {}", "n".repeat(random.below(100) as usize)).into_bytes();
        let new =
            |kind| NewFile { kind, permissions: 0o644, user: 0, group: 0, device: 0, target: b"", attributes: &[] };
        let length = random.below(40_000) as usize;
        let bytes: Vec<u8> = (0..length).map(|at| (at as u64 * 7 + number) as u8 | 1).collect();
        let directory = InodeNumber::ROOT;
        let file = call(|call| volume.make(call, (directory, &name), &new(FileKind::Regular), Hold::No, None))?.inode;
        for (part, at) in bytes.chunks(9000).zip((0..).step_by(9000)) {
            call(|call| volume.write(call, file, at, part, None))?;
        }
        match random.below(6) {
            0 | 1 => {
                call(|call| volume.sync_file(call, file, Durable::All))?;
                if !power.is_off() {
                    promised.files.insert(name, bytes);
                }
            }
            2 => {
                let to = [b"moved ", &name[..]].concat();
                let how = Renaming { if_exists: IfExists::Replace, whiteout: None };
                call(|call| volume.rename(call, (directory, &name), (directory, &to), how, None))?;
                others.push(to);
            }
            3 if !others.is_empty() => {
                let gone = others.swap_remove(random.below(others.len() as u64) as usize);
                call(|call| volume.unlink(call, (directory, &gone), None))?;
            }
            _ => others.push(name),
        }
        if promised.files.len() > 20 {
            let gone = promised.files.keys().next().cloned().expect("there are some");
            promised.files.remove(&gone);
            call(|call| volume.unlink(call, (directory, &gone), None))?;
        }
        if others.len() > 20 {
            let gone = others.remove(0);
            call(|call| volume.unlink(call, (directory, &gone), None))?;
        }
    }
    Ok(())
}

/// A device as an image.
pub fn image_of(disk: &Disk, blocks: u64) -> Image {
    let image = Image::of_bytes(blocks * BLOCK as u64);
    let file = OpenOptions::new().write(true).open(image.path()).unwrap();
    for block in 0..blocks {
        let bytes = disk.bytes(block);
        if bytes.iter().any(|byte| *byte != 0) {
            file.write_all_at(&bytes, block * BLOCK as u64).unwrap();
        }
    }
    image
}

fn check_promises(volume: &dyn Volume, promised: &Promised, what: &str) {
    for (name, bytes) in &promised.files {
        let name_text = String::from_utf8_lossy(name);
        let found = call(|call| volume.lookup(call, (InodeNumber::ROOT, name), Hold::No));
        let found = found.unwrap_or_else(|error| panic!("{what}: {name_text} was synced: {error}"));
        let mut read = vec![0; bytes.len() + 1];
        let length = call(|call| volume.read(call, found.inode, 0, &mut read)).unwrap().length;
        assert!(read[..length] == bytes[..], "{what}: the bytes of {name_text}, {length} of {}", bytes.len());
    }
}

/// Cuts the power once, `cuts` times in a row on the same volume.
fn crash(data: &str, place: Place, seed: u64) {
    crash_with(&settings(data, place, seed), place, seed, &|tree| tree);
}

/// The same with these settings. `comparable`: what this program and the kernel agree on.
pub fn crash_with(settings: &ExtSettings, place: Place, seed: u64, comparable: &dyn Fn(Tree) -> Tree) {
    let what = format!("data={:?}, {place:?}, seed {seed}", settings.data);
    let mut random = Random::new(seed, "crashes");
    let power = Power::new();
    let disks = Disks::new(&power, place);
    let volume = settings.create(disks.media(), &mounting()).unwrap();
    let mut promised = Promised::default();
    let operations = match place {
        Place::Inline | Place::Device => 1500,
        // A store of memory is a small part of a block.
        Place::Memory => 8_000,
        // A commit is one operation, and none writes.
        Place::Monitor => 300,
    };
    power.cut_after(20 + random.below(operations));
    // Of every second volume, checkpoints go on beside commits.
    std::thread::scope(|scope| {
        let background = || while call(|call| volume.work(call)).is_ok() && !power.is_off() {};
        if seed % 2 == 1 {
            scope.spawn(background);
        }
        work(&*volume, &mut random, &mut promised, &power);
    });
    drop(volume);
    disks.lose_power(&mut random);
    power.restore();
    // Cuts while it is mounted again.
    for _ in 0..random.below(3) {
        power.cut_after(random.below(30));
        drop(settings.open(disks.media(), &mounting(), Access::IfWhole));
        disks.lose_power(&mut random);
        power.restore();
    }
    let (left, copy) = (disks.images(), disks.copy(&power));
    let volume = disks.open(settings);
    let state = call(|call| volume.state(call)).unwrap();
    assert!(state.read_only.is_none() && state.damage.is_empty(), "{what}: what a cut leaves is no damage: {state:?}");
    check_promises(&*volume, &promised, &what);
    if settings.data != DataMode::Writeback {
        check_no_foreign(&*volume, &what);
    }
    let ours = of_volume(&*volume);
    call(|call| volume.unmount(call)).unwrap_or_else(|error| panic!("{what}: {error}"));
    drop(volume);
    if let Some(findings) = findings(&disks.images()) {
        panic!("{what}: e2fsck -fn: {findings}");
    }
    let (theirs, by) = match left {
        // The kernel knows no journal in memory: this program replays once more, and writes nothing.
        _ if matches!(place, Place::Memory | Place::Monitor) => {
            let again = settings.open(copy.media(), &mounting(), Access::ReadOnly);
            (of_volume(&*again.unwrap_or_else(|error| panic!("{what}: {error}"))), "replayed again")
        }
        (volume, Some(journal)) => {
            (of_directory(&Pair { volume, journal }.mount("").volume.directory), "by the kernel")
        }
        (volume, None) => (of_directory(&volume.mount("").directory), "by the kernel"),
    };
    // Times of deletion differ: the kernel frees orphans at its own time, which no file shows.
    assert_same(&comparable(ours), &comparable(theirs), &format!("{what}, {by}"));
}

/// No byte of any file is zero or of another file, but at its end where nothing was written yet: all are odd.
pub fn check_no_foreign(volume: &dyn Volume, what: &str) {
    let mut files = Vec::new();
    call(|call| {
        volume.list(call, InodeNumber::ROOT, 0, &mut |entry| {
            if entry.kind == FileKind::Regular {
                files.push((entry.name.to_vec(), entry.inode));
            }
            true
        })
    })
    .unwrap();
    for (name, inode) in files {
        let text = String::from_utf8_lossy(&name).into_owned();
        let number: u64 = text.trim_start_matches("moved ").split(' ').next().unwrap().parse().unwrap();
        let mut bytes = vec![0; 50_000];
        let length = call(|call| volume.read(call, inode, 0, &mut bytes)).unwrap().length;
        let first_wrong =
            bytes[..length].iter().enumerate().find(|(at, byte)| **byte != (*at as u64 * 7 + number) as u8 | 1);
        assert!(first_wrong.is_none(), "{what}: {text} of {length} bytes: {first_wrong:?}");
    }
}

pub fn cuts() -> u64 {
    std::env::var("EXT_CRASHES").map_or(12, |count| count.parse().expect("EXT_CRASHES is a number"))
}

#[test]
fn after_any_cut_of_power_an_ordered_volume_is_whole_and_shows_no_foreign_bytes() {
    if can_mount() {
        (0..cuts()).for_each(|seed| crash("ordered", Place::Inline, seed));
    }
}

#[test]
fn after_any_cut_of_power_a_volume_that_journals_data_is_whole_and_shows_no_foreign_bytes() {
    if can_mount() {
        (0..cuts()).for_each(|seed| crash("journal", Place::Inline, 100 + seed));
    }
}

#[test]
fn after_any_cut_of_power_a_writeback_volume_has_whole_metadata() {
    if can_mount() {
        (0..cuts()).for_each(|seed| crash("writeback", Place::Inline, 200 + seed));
    }
}

#[test]
fn after_any_cut_of_power_a_volume_and_its_journal_on_another_device_go_together() {
    if can_mount() {
        for (at, data) in ["ordered", "journal", "writeback"].into_iter().enumerate() {
            (0..cuts()).for_each(|seed| crash(data, Place::Device, 1000 * (1 + at as u64) + seed));
        }
    }
}

#[test]
fn after_any_cut_of_power_a_volume_and_its_journal_in_memory_go_together() {
    if has_e2fsprogs() {
        for (at, data) in ["ordered", "journal", "writeback"].into_iter().enumerate() {
            (0..cuts()).for_each(|seed| crash(data, Place::Memory, 10_000 * (1 + at as u64) + seed));
        }
    }
}

#[test]
fn after_any_death_of_the_process_its_volume_and_the_memory_that_a_monitor_keeps_go_together() {
    if has_e2fsprogs() {
        for (at, data) in ["ordered", "journal", "writeback"].into_iter().enumerate() {
            (0..cuts()).for_each(|seed| crash(data, Place::Monitor, 20_000 * (1 + at as u64) + seed));
        }
    }
}
