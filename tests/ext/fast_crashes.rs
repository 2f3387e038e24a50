//! Power is cut at any operation of a volume that writes fast commits. What was synced is there, by this program's replay and
//! by the kernel's; names that a sync has made durable are, too, and those that it has removed are gone.
//!
//! `EXT_CRASHES` sets the number of cuts of each kind.

use crate::crashes::{Disks, Place, crash_with, cuts, findings, mounting};
use crate::fast_commits;
use crate::image::{call, can_mount};
use crate::power_cut::Power;
use crate::walk::{Tree, assert_same, of_directory, of_volume};
use flashpath::expression::parse_term;
use flashpath::fs::Durable;
use flashpath::fs::ext::ExtSettings;
use flashpath::fs::station::{Access, StoredVolumes, VolumeSettings};
use flashpath::fs::volume::{
    Allocation, Change, FileKind, Hold, IfExists, InodeNumber, Locked, NewFile, Renaming, Volume, VolumeError,
};
use flashpath::random::Random;
use std::collections::BTreeMap;

const ROOT: InodeNumber = InodeNumber::ROOT;

/// The part of a tree that replays agree on: not the times of directories, nor how many blocks a file's map takes.
fn comparable(tree: Tree) -> Tree {
    let mut tree = fast_commits::comparable(tree);
    tree.values_mut().for_each(|seen| seen.blocks = 0);
    tree
}

fn settings(data: &str, seed: u64) -> ExtSettings {
    let term = format!("ext:data={data},dirty=1M,fast-commit=on");
    let mut settings = ExtSettings::read(&parse_term(&term).unwrap()).unwrap();
    if seed.is_multiple_of(4) {
        // Each inode leaves memory soon, and is read again.
        settings.cache_bytes = 0;
        settings.memory_bytes = Some(37 << 20);
    }
    settings
}

/// A file of the work: its number on the volume, its bytes and its names.
struct Known {
    inode: InodeNumber,
    bytes: Vec<u8>,
}

/// Files, and what must be there after a crash.
#[derive(Default)]
struct Model {
    files: BTreeMap<u64, Known>,
    names: BTreeMap<Vec<u8>, u64>,
    made: u64,
    /// Bytes of files that were synced and not touched since.
    promised_bytes: BTreeMap<u64, Vec<u8>>,
    /// Names whose last change was made durable, and the file that has each.
    promised_names: BTreeMap<Vec<u8>, Option<u64>>,
}

impl Model {
    fn pick(&self, random: &mut Random) -> Option<(Vec<u8>, u64)> {
        let at = random.below(self.names.len().max(1) as u64) as usize;
        self.names.iter().nth(at).map(|(name, file)| (name.clone(), *file))
    }

    /// The name is being changed: either state may be there after a crash.
    fn touch_name(&mut self, name: &[u8]) {
        self.promised_names.remove(name);
    }

    fn drop_nameless(&mut self, file: u64) {
        if !self.names.values().any(|other| *other == file) {
            self.files.remove(&file);
            self.promised_bytes.remove(&file);
        }
    }
}

fn name(random: &mut Random) -> Vec<u8> {
    let number = random.below(40);
    format!("{number} {}", "n".repeat(number as usize * 5)).into_bytes()
}

/// A step of work. An error is the cut of power.
fn step(volume: &dyn Volume, random: &mut Random, model: &mut Model, power: &Power) -> Result<(), VolumeError> {
    let kind = random.below(100);
    if kind < 22 || model.names.is_empty() {
        let name = name(random);
        if model.names.contains_key(&name) {
            return Ok(());
        }
        let new = NewFile {
            kind: FileKind::Regular,
            permissions: 0o644,
            user: 1,
            group: 2,
            device: 0,
            target: b"",
            attributes: &[],
        };
        model.touch_name(&name);
        let inode = call(|call| volume.make(call, (ROOT, &name), &new, Hold::No, None))?.inode;
        model.made += 1;
        let file = model.made;
        model.files.insert(file, Known { inode, bytes: Vec::new() });
        model.names.insert(name, file);
        return Ok(());
    }
    let (own, file) = model.pick(random).expect("there are names");
    let inode = model.files[&file].inode;
    match kind {
        22..40 => {
            let length = model.files[&file].bytes.len() as u64;
            let at = if random.below(2) == 0 { length } else { random.below(60_000) };
            let bytes: Vec<u8> = (0..1 + random.below(20_000)).map(|_| random.below(256) as u8).collect();
            model.promised_bytes.remove(&file);
            call(|call| volume.write(call, inode, at, &bytes, None))?;
            let known = &mut model.files.get_mut(&file).expect("it is there").bytes;
            let end = at as usize + bytes.len();
            known.resize(known.len().max(end), 0);
            known[at as usize..end].copy_from_slice(&bytes);
        }
        40..46 => {
            let size = random.below(50_000);
            model.promised_bytes.remove(&file);
            let mut rule = |_: &mut dyn Locked| Ok(Some(Change { size: Some(size), ..Change::default() }));
            call(|call| volume.change(call, inode, &mut rule))?;
            model.files.get_mut(&file).expect("it is there").bytes.resize(size as usize, 0);
        }
        46..50 => {
            let (at, length) = (random.below(40_000), 1 + random.below(20_000));
            let how = if random.below(2) == 0 { Allocation::Punch } else { Allocation::Reserve { keep_size: true } };
            model.promised_bytes.remove(&file);
            call(|call| volume.allocate(call, inode, (at, length), how, None))?;
            if how == Allocation::Punch {
                let known = &mut model.files.get_mut(&file).expect("it is there").bytes;
                let end = known.len().min((at + length) as usize);
                known[(at as usize).min(end)..end].fill(0);
            }
        }
        50..60 => {
            let to = name(random);
            let over = model.names.get(&to).copied();
            if over == Some(file) {
                return Ok(());
            }
            model.touch_name(&own);
            model.touch_name(&to);
            let how = Renaming { if_exists: IfExists::Replace, whiteout: None };
            call(|call| volume.rename(call, (ROOT, &own), (ROOT, &to), how, None))?;
            model.names.remove(&own);
            model.names.insert(to, file);
            over.into_iter().for_each(|over| model.drop_nameless(over));
        }
        60..64 => {
            let to = name(random);
            if model.names.contains_key(&to) {
                return Ok(());
            }
            model.touch_name(&to);
            call(|call| volume.link(call, inode, (ROOT, &to), Hold::No, None))?;
            model.names.insert(to, file);
        }
        64..72 => {
            model.touch_name(&own);
            call(|call| volume.unlink(call, (ROOT, &own), None))?;
            model.names.remove(&own);
            model.drop_nameless(file);
        }
        72..74 => {
            let mut rule = |_: &mut dyn Locked| Ok(Some(Change { permissions: Some(0o600), ..Change::default() }));
            call(|call| volume.change(call, inode, &mut rule))?;
        }
        74..78 => {
            call(|call| volume.sync_file(call, ROOT, Durable::All))?;
            if !power.is_off() {
                let names: Vec<Vec<u8>> =
                    (0..40).map(|number| format!("{number} {}", "n".repeat(number * 5)).into_bytes()).collect();
                for name in names {
                    let file = model.names.get(&name).copied();
                    model.promised_names.insert(name, file);
                }
            }
        }
        _ => {
            call(|call| volume.sync_file(call, inode, Durable::All))?;
            if !power.is_off() {
                model.promised_bytes.insert(file, model.files[&file].bytes.clone());
                let own = model.names.iter().filter(|(_, other)| **other == file);
                model.promised_names.extend(own.map(|(name, file)| (name.clone(), Some(*file))));
            }
        }
    }
    Ok(())
}

fn check(volume: &dyn Volume, model: &Model, what: &str) {
    let mut found: BTreeMap<u64, InodeNumber> = BTreeMap::new();
    for (name, file) in &model.promised_names {
        let text = String::from_utf8_lossy(name);
        let there = call(|call| volume.lookup(call, (ROOT, name), Hold::No));
        let Some(file) = file else {
            assert!(there.is_err(), "{what}: {text} was removed: {there:?}");
            continue;
        };
        let there = there.unwrap_or_else(|error| panic!("{what}: {text} is durable: {error}"));
        let first = *found.entry(*file).or_insert(there.inode);
        assert_eq!(there.inode, first, "{what}: {text} is another name of a file");
        let Some(bytes) = model.promised_bytes.get(file) else { continue };
        let mut read = vec![0; bytes.len() + 1];
        let length = call(|call| volume.read(call, there.inode, 0, &mut read)).unwrap().length;
        let wrong = read[..length].iter().zip(bytes).position(|(one, other)| one != other);
        assert!(length == bytes.len() && wrong.is_none(), "{what}: {text}: {length} of {}, {wrong:?}", bytes.len());
    }
}

/// Cuts the power while files are made, written, cut off, renamed, linked, removed and synced.
fn crash(data: &str, place: Place, seed: u64) -> u64 {
    let what = format!("data={data}, {place:?}, seed {seed}");
    let settings = settings(data, seed);
    let mut random = Random::new(seed, "fast crashes");
    let power = Power::new();
    let disks = Disks::new(&power, place);
    let volume = settings.create(disks.media(), &mounting()).unwrap();
    power.cut_after(20 + random.below(900));
    let mut model = Model::default();
    std::thread::scope(|scope| {
        let background = || while call(|call| volume.work(call)).is_ok() && !power.is_off() {};
        if seed % 2 == 1 {
            scope.spawn(background);
        }
        loop {
            if let Err(error) = step(&*volume, &mut random, &mut model, &power) {
                assert!(power.is_off(), "{what}: {error}");
            }
            if power.is_off() {
                break;
            }
        }
    });
    let events = call(|call| volume.account(call)).unwrap().events;
    drop(volume);
    disks.lose_power(&mut random);
    power.restore();
    let (left, copy) = (disks.images(), disks.copy(&power));
    // Cuts while it is replayed.
    for _ in 0..random.below(3) {
        power.cut_after(random.below(30));
        drop(settings.open(disks.media(), &mounting(), Access::IfWhole));
        disks.lose_power(&mut random);
        power.restore();
    }
    let volume = settings.open(disks.media(), &mounting(), Access::IfWhole);
    let volume = volume.unwrap_or_else(|error| panic!("{what}: {error}"));
    let state = call(|call| volume.state(call)).unwrap();
    assert!(state.read_only.is_none() && state.damage.is_empty(), "{what}: what a cut leaves is no damage: {state:?}");
    check(&*volume, &model, &what);
    let ours = comparable(of_volume(&*volume));
    call(|call| volume.unmount(call)).unwrap_or_else(|error| panic!("{what}: {error}"));
    drop(volume);
    if let Some(findings) = findings(&disks.images()) {
        panic!("{what}: e2fsck -fn: {findings}");
    }
    // In memory alone.
    let again = settings.open(copy.media(), &mounting(), Access::ReadOnly);
    let again = comparable(of_volume(&*again.unwrap_or_else(|error| panic!("{what}: {error}"))));
    assert_same(&ours, &again, &format!("{what}, in memory"));
    let (image, None) = left else { return fast_commits_of(&events) };
    let theirs = comparable(of_directory(&image.mount("").directory));
    assert_same(&ours, &theirs, &format!("{what}, by the kernel"));
    // Where it packs names otherwise, its replay gives a directory a block, and does not count it.
    let wrong = image.findings().unwrap_or_default();
    let wrong: Vec<&str> = wrong.lines().filter(|line| line.contains('?') && !line.contains("i_blocks is")).collect();
    assert!(wrong.is_empty(), "{what}, by the kernel: e2fsck -fn: {wrong:?}");
    fast_commits_of(&events)
}

fn fast_commits_of(events: &[(&str, u64)]) -> u64 {
    events.iter().find(|(name, _)| *name == "fast commits").expect("they are counted").1
}

#[test]
fn nothing_that_a_fast_commit_has_made_durable_is_lost_by_a_cut_of_power() {
    if can_mount() {
        for (at, data) in ["ordered", "writeback"].into_iter().enumerate() {
            let written: u64 = (0..cuts()).map(|seed| crash(data, Place::Inline, 1000 * at as u64 + seed)).sum();
            assert!(written > 5 * cuts(), "{written} fast commits");
        }
    }
}

#[test]
fn fast_commits_behind_a_journal_on_another_device_are_not_lost_either() {
    if can_mount() {
        (0..cuts()).for_each(|seed| assert!(crash("ordered", Place::Device, 2000 + seed) < 1000));
    }
}

#[test]
fn after_any_cut_of_power_a_volume_with_fast_commits_is_whole_and_shows_no_foreign_bytes() {
    if can_mount() {
        for place in [Place::Inline, Place::Device] {
            (0..cuts()).for_each(|seed| crash_with(&settings("ordered", seed), place, 3000 + seed, &comparable));
        }
    }
}
