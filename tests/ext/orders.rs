//! Order without flushes. Power is cut at any operation of a volume whose commits keep their order by barriers or by checksums, and
//! what is left is a prefix of the work: if a step is there, all before it are. What was synced is there. What was only put in order
//! may be lost from some step on, and how much that is, is counted: the volume says how much it can be at most.
//!
//! The causes are taken away: a device that takes barriers and keeps no order, and a replay that does not know that no flush
//! stands between transactions, break the promise.
//!
//! `EXT_CRASHES` sets the number of cuts of each kind.

use crate::crashes::{BLOCK, BLOCKS, Disks, Place, cuts, findings, mounting};
use crate::image::{call, can_mount, has_e2fsprogs};
use crate::logs::{COMMIT, OnDisk};
use crate::power_cut::{Order, Power};
use crate::walk::{assert_same, of_directory, of_volume};
use flashpath::expression::parse_term;
use flashpath::fs::Durable;
use flashpath::fs::ext::ExtSettings;
use flashpath::fs::station::{Access, StoredVolumes, VolumeSettings};
use flashpath::fs::volume::{FileKind, Hold, IfExists, InodeNumber, NewFile, Renaming, Volume, VolumeError};
use flashpath::random::Random;
use flashpath::run::{Path, simulated_file_system};
use std::sync::Arc;

const ROOT: InodeNumber = InodeNumber::ROOT;
/// Slots of the file of records: each step that writes one takes the next, round and round.
const SLOTS: u64 = 64;

fn settings(options: &str) -> ExtSettings {
    ExtSettings::read(&parse_term(&format!("ext:dirty=1M,{options}")).unwrap()).unwrap()
}

/// A step of the work, and how a crash shows that it was done.
#[derive(Clone, Debug)]
enum Step {
    /// A file of this name is made, with bytes that follow from the number of the step.
    Make(Vec<u8>),
    /// The number of the step is written over a slot of the file of records.
    Record(u64),
    /// A file that an earlier step has made is renamed, for good.
    Rename { from: Vec<u8>, to: Vec<u8>, made_in: u64 },
    /// A file that was synced is removed.
    Remove(Vec<u8>),
}

/// The work so far.
#[derive(Default)]
struct Done {
    steps: Vec<Step>,
    /// Steps that were told to be in order, and those of them that a sync has made durable.
    in_order: u64,
    durable: u64,
    records: u64,
    /// Files with the steps that have made them.
    files: Vec<(Vec<u8>, u64)>,
}

fn bytes_of(step: u64) -> Vec<u8> {
    let length = 1 + step * 7919 % 20_000;
    (0..length).map(|at| (at * 7 + step) as u8 | 1).collect()
}

fn new_file() -> NewFile<'static> {
    NewFile { kind: FileKind::Regular, permissions: 0o644, user: 0, group: 0, device: 0, target: b"", attributes: &[] }
}

/// Does a step, and puts it in order or makes it durable. An error is the cut of power.
fn step(volume: &dyn Volume, records: InodeNumber, random: &mut Random, done: &mut Done) -> Result<(), VolumeError> {
    let number = done.steps.len() as u64 + 1;
    let kind = random.below(10);
    let (inode, what) = match kind {
        0..4 => {
            let name = format!("{number} {}", "n".repeat(random.below(60) as usize)).into_bytes();
            done.steps.push(Step::Make(name.clone()));
            let file = call(|call| volume.make(call, (ROOT, &name), &new_file(), Hold::No, None))?.inode;
            call(|call| volume.write(call, file, 0, &bytes_of(number), None))?;
            done.files.push((name, number));
            (file, Durable::All)
        }
        4 if !done.files.is_empty() => {
            let at = random.below(done.files.len() as u64) as usize;
            let (from, made_in) = done.files.swap_remove(at);
            let to = format!("{number} moved").into_bytes();
            done.steps.push(Step::Rename { from: from.clone(), to: to.clone(), made_in });
            let how = Renaming { if_exists: IfExists::Replace, whiteout: None };
            call(|call| volume.rename(call, (ROOT, &from), (ROOT, &to), how, None))?;
            (ROOT, Durable::All)
        }
        5 if done.files.iter().any(|(_, made_in)| *made_in <= done.durable) => {
            let at = done.files.iter().position(|(_, made_in)| *made_in <= done.durable).unwrap();
            let (name, _) = done.files.swap_remove(at);
            done.steps.push(Step::Remove(name.clone()));
            call(|call| volume.unlink(call, (ROOT, &name), None))?;
            (ROOT, Durable::All)
        }
        _ => {
            let slot = done.records % SLOTS;
            done.records += 1;
            done.steps.push(Step::Record(slot));
            let mut bytes = vec![1; BLOCK];
            bytes[..8].copy_from_slice(&number.to_le_bytes());
            call(|call| volume.write(call, records, slot * BLOCK as u64, &bytes, None))?;
            (records, Durable::Data)
        }
    };
    if random.below(40) == 0 {
        call(|call| volume.sync_file(call, inode, what))?;
        done.durable = number;
    } else {
        call(|call| volume.order_file(call, inode, what))?;
    }
    done.in_order = number;
    Ok(())
}

/// The number that a slot of the file of records has.
fn record(volume: &dyn Volume, records: InodeNumber, slot: u64) -> u64 {
    let mut bytes = [0; 8];
    call(|call| volume.read(call, records, slot * BLOCK as u64, &mut bytes)).unwrap();
    u64::from_le_bytes(bytes)
}

fn read_whole(volume: &dyn Volume, name: &[u8]) -> Option<Vec<u8>> {
    let found = call(|call| volume.lookup(call, (ROOT, name), Hold::No)).ok()?;
    let mut bytes = vec![0; 30_000];
    let length = call(|call| volume.read(call, found.inode, 0, &mut bytes)).unwrap().length;
    bytes.truncate(length);
    Some(bytes)
}

/// True if a step was done, as far as its own traces show it: later steps may have removed them.
fn shows(volume: &dyn Volume, step: &Step, number: u64, slots: &[u64]) -> bool {
    match step {
        Step::Make(name) => read_whole(volume, name).is_some(),
        Step::Record(slot) => slots[*slot as usize] == number,
        Step::Rename { to, .. } => read_whole(volume, to).is_some(),
        Step::Remove(name) => read_whole(volume, name).is_none(),
    }
}

/// The last step that is there. Fails if one before it is not, or what was synced is lost.
fn prefix(volume: &dyn Volume, done: &Done) -> Result<u64, String> {
    let records = call(|call| volume.lookup(call, (ROOT, b"records"), Hold::No)).map_err(|error| error.to_string())?;
    let slots: Vec<u64> = (0..SLOTS).map(|slot| record(volume, records.inode, slot)).collect();
    let numbered = || done.steps.iter().zip(1..);
    let last = numbered().filter(|(step, number)| shows(volume, step, *number, &slots)).map(|(_, number)| number).max();
    let last = last.unwrap_or(0);
    if last < done.durable {
        return Err(format!("step {} was synced, and {last} is the last one that is there", done.durable));
    }
    for (step, number) in numbered().take_while(|(_, number)| *number < last) {
        let is_there = match step {
            Step::Make(name) => {
                let goes = numbered().skip(number as usize).find(|(later, _)| match later {
                    Step::Rename { from, .. } => from == name,
                    Step::Remove(gone) => gone == name,
                    Step::Make(_) | Step::Record(_) => false,
                });
                match goes {
                    Some((_, later)) if later <= last => read_whole(volume, name).is_none(),
                    _ => read_whole(volume, name).is_some_and(|bytes| bytes == bytes_of(number)),
                }
            }
            Step::Record(slot) => slots[*slot as usize] >= number,
            Step::Rename { to, made_in, .. } => read_whole(volume, to).is_some_and(|bytes| bytes == bytes_of(*made_in)),
            Step::Remove(name) => read_whole(volume, name).is_none(),
        };
        if !is_there {
            return Err(format!("step {last} is there, and step {number} is not: {step:?}"));
        }
    }
    Ok(last)
}

/// The end of a volume whose power was cut.
struct Crashed {
    disks: Disks,
    power: Power,
    done: Done,
    random: Random,
    /// The most steps that a cut could take, as the volume has counted.
    most: u64,
}

/// Works until the power fails.
fn crash(settings: &ExtSettings, order: Order, place: Place, seed: u64) -> Crashed {
    let mut random = Random::new(seed, "orders");
    let power = Power::new();
    let disks = Disks::new(&power, place);
    disks.volume.takes_barriers(order);
    let volume = settings.create(disks.media(), &mounting()).unwrap();
    let records = call(|call| volume.make(call, (ROOT, b"records"), &new_file(), Hold::No, None)).unwrap().inode;
    call(|call| volume.write(call, records, 0, &vec![0; SLOTS as usize * BLOCK], None)).unwrap();
    call(|call| volume.sync(call)).unwrap();
    power.cut_after(20 + random.below(2500));
    let mut done = Done::default();
    while step(&*volume, records, &mut random, &mut done).is_ok() && !power.is_off() {
        if seed % 2 == 1 && random.below(8) == 0 {
            // Checkpoints between steps.
            let _ = call(|call| volume.work(call));
        }
    }
    assert!(power.is_off(), "nothing else fails, at step {}", done.steps.len());
    let events = call(|call| volume.account(call)).unwrap().events;
    let most = events.iter().find(|(name, _)| *name == "most orders that a cut of power could take");
    let most = most.map_or(0, |(_, most)| *most);
    drop(volume);
    disks.lose_power(&mut random);
    power.restore();
    Crashed { disks, power, done, random, most }
}

impl Crashed {
    /// Cuts while the volume is mounted again.
    fn cut_again(&mut self, settings: &ExtSettings) {
        for _ in 0..self.random.below(3) {
            self.power.cut_after(self.random.below(30));
            drop(settings.open(self.disks.media(), &mounting(), Access::IfWhole));
            self.disks.lose_power(&mut self.random);
            self.power.restore();
        }
    }

    fn open(&self, settings: &ExtSettings) -> Result<Arc<dyn Volume>, String> {
        let volume =
            settings.open(self.disks.media(), &mounting(), Access::IfWhole).map_err(|error| error.to_string())?;
        let state = call(|call| volume.state(call)).unwrap();
        if state.read_only.is_some() || !state.damage.is_empty() {
            return Err(format!("what a cut leaves is no damage: {state:?}"));
        }
        Ok(volume)
    }

    /// Opens it, and answers how many steps that were told to be in order are lost. Fails if what is there is no prefix.
    fn lost(&self, settings: &ExtSettings) -> Result<u64, String> {
        let volume = self.open(settings)?;
        let last = prefix(&*volume, &self.done)?;
        call(|call| volume.unmount(call)).map_err(|error| error.to_string())?;
        drop(volume);
        findings(&self.disks.images()).map_or(Ok(()), |findings| Err(format!("e2fsck -fn: {findings}")))?;
        Ok(self.done.in_order.saturating_sub(last))
    }
}

/// Cuts with these options; answers the most steps that one has taken.
fn campaign(options: &str, order: Order, place: Place, first_seed: u64) -> u64 {
    let settings = settings(options);
    let lost = (first_seed..first_seed + cuts()).map(|seed| {
        let mut crashed = crash(&settings, order, place, seed);
        crashed.cut_again(&settings);
        let lost = crashed.lost(&settings).unwrap_or_else(|why| panic!("{options}, seed {seed}: {why}"));
        // The step in flight may be durable, and is not told yet.
        assert!(
            lost <= crashed.most,
            "{options}, seed {seed}: {lost} steps are lost, and {} were at risk",
            crashed.most
        );
        println!(
            "{options}, seed {seed}: of {} steps in order {lost} are lost, of at most {}",
            crashed.done.in_order, crashed.most
        );
        lost
    });
    lost.max().unwrap_or(0)
}

#[test]
fn with_barriers_a_cut_of_power_leaves_a_prefix_and_all_that_was_synced() {
    if has_e2fsprogs() {
        for (at, data) in ["ordered", "journal", "writeback"].into_iter().enumerate() {
            let most = campaign(&format!("flush=barrier,data={data}"), Order::Kept, Place::Inline, 1000 * at as u64);
            assert!(most > 0, "order is no durability: some cut takes what was told to be in order");
        }
    }
}

#[test]
fn fast_commits_keep_their_order_by_barriers_too() {
    if has_e2fsprogs() {
        campaign("flush=barrier,fast-commit=on", Order::Kept, Place::Inline, 5000);
    }
}

#[test]
fn with_checksums_a_cut_of_power_leaves_a_prefix_and_all_that_was_synced() {
    if has_e2fsprogs() {
        for place in [Place::Inline, Place::Device] {
            let most = campaign("flush=optimistic,data=journal", Order::Refused, place, 6000);
            assert!(most > 0, "order is no durability: some cut takes what was told to be in order");
        }
    }
}

#[test]
fn with_flushes_what_is_told_to_be_in_order_is_durable() {
    if has_e2fsprogs() {
        assert_eq!(campaign("data=ordered", Order::Refused, Place::Inline, 7000), 0);
    }
}

/// The records of `flush=barrier` are those of any log of jbd2.
#[test]
fn the_kernel_replays_a_log_whose_commits_were_kept_in_order_by_barriers() {
    if !can_mount() {
        return;
    }
    for seed in 8000..8000 + cuts().min(20) {
        let settings = settings("flush=barrier");
        let crashed = crash(&settings, Order::Kept, Place::Inline, seed);
        let (image, _) = crashed.disks.images();
        let volume = crashed.open(&settings).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        let theirs = of_directory(&image.mount("").directory);
        assert_same(&of_volume(&*volume), &theirs, &format!("seed {seed}, by the kernel"));
    }
}

/// The cause of the order is the device's: with one that takes barriers and keeps no order, the promise breaks.
#[test]
fn a_device_that_takes_barriers_and_reorders_breaks_the_promise() {
    if has_e2fsprogs() {
        let settings = settings("flush=barrier");
        let broken = (9000..9200).find_map(|seed| {
            crash(&settings, Order::Ignored, Place::Inline, seed).lost(&settings).err().map(|why| (seed, why))
        });
        let (seed, why) = broken.expect("two hundred cuts leave a prefix without any order");
        println!("seed {seed}: {why}");
    }
}

/// The cause of the order is the rule of the replay: with the rule for logs with flushes, which takes a commit for a proof that
/// all before it is there, what is left is damaged or no prefix.
#[test]
fn an_optimistic_log_that_is_replayed_as_one_with_flushes_breaks_the_promise() {
    if has_e2fsprogs() {
        let settings = settings("flush=optimistic,data=journal");
        let broken = (9500..9700).any(|seed| {
            let crashed = crash(&settings, Order::Refused, Place::Inline, seed);
            OnDisk::of(&crashed.disks).takes_it_for_one_with_flushes();
            crashed.lost(&settings).is_err()
        });
        assert!(broken, "two hundred cuts leave a prefix without the rule");
    }
}

/// Damage of what was durable is told, and never taken for the end of the log: a later commit says that it was there.
#[test]
fn damage_in_an_optimistic_log_is_told_and_what_lies_before_it_is_there() {
    if !has_e2fsprogs() {
        return;
    }
    let settings = settings("flush=optimistic,data=journal");
    let mut told = 0;
    for seed in 9800..9800 + cuts() {
        let crashed = crash(&settings, Order::Refused, Place::Inline, seed);
        let log = OnDisk::of(&crashed.disks);
        let records = log.records();
        let commits: Vec<_> = records.iter().filter(|record| record.kind == COMMIT).collect();
        let newest = commits.iter().map(|commit| be32_at(&crashed, commit.block, 60)).max();
        let Some(damaged) = commits.iter().find(|commit| newest.is_some_and(|newest| commit.transaction < newest))
        else {
            continue;
        };
        // More than a bit, which would be flipped back.
        let mut bytes = crashed.disks.volume.bytes(damaged.block);
        bytes[48..56].iter_mut().for_each(|byte| *byte ^= 0x5a);
        crashed.disks.volume.put(damaged.block, &bytes);
        let volume = settings.open(crashed.disks.media(), &mounting(), Access::IfWhole).unwrap();
        let state = call(|call| volume.state(call)).unwrap();
        assert!(!state.damage.is_empty(), "seed {seed}: transaction {} is damaged", damaged.transaction);
        told += 1;
    }
    assert!(told > 0, "some cut leaves a log with a transaction that a later one says was durable");
}

fn be32_at(crashed: &Crashed, block: u64, at: usize) -> u32 {
    u32::from_be_bytes(crashed.disks.volume.bytes(block)[at..at + 4].try_into().unwrap())
}

/// A volume that was unmounted is one for everybody, and e2fsck touches none that was not.
#[test]
fn e2fsck_refuses_an_optimistic_log_that_is_not_empty_and_takes_one_that_is() {
    if !has_e2fsprogs() {
        return;
    }
    let settings = settings("flush=optimistic,data=journal");
    let power = Power::new();
    let disks = Disks::new(&power, Place::Inline);
    let volume = settings.create(disks.media(), &mounting()).unwrap();
    let file = call(|call| volume.make(call, (ROOT, b"a"), &new_file(), Hold::No, None)).unwrap().inode;
    call(|call| volume.write(call, file, 0, &bytes_of(5), None)).unwrap();
    call(|call| volume.sync_file(call, file, Durable::All)).unwrap();
    let (image, _) = disks.images();
    let before = std::fs::read(image.path()).unwrap();
    let output = crate::image::program("e2fsck").args(["-fy", &image.text()]).output().unwrap();
    assert!(output.status.code().is_some_and(|code| code >= 8), "e2fsck -fy: {output:?}");
    assert!(std::fs::read(image.path()).unwrap() == before, "e2fsck has changed what it does not know");
    call(|call| volume.unmount(call)).unwrap();
    let (image, _) = disks.images();
    image.check();
    if can_mount() {
        let mounted = image.mount("");
        assert_eq!(std::fs::read(mounted.directory.join("a")).unwrap(), bytes_of(5));
    }
    assert_eq!(BLOCKS * BLOCK as u64, std::fs::metadata(image.path()).unwrap().len());
}

#[test]
fn an_order_that_cannot_be_kept_is_refused_with_what_would_be_right() {
    for (options, place, right) in [
        ("flush=barrier", Place::Inline, "page:buffer=32M"),
        ("flush=barrier", Place::Device, "leave the second device out"),
        ("flush=optimistic,data=journal", Place::Monitor, "leave it out"),
    ] {
        let disks = Disks::new(&Power::new(), place);
        let refused = settings(options).create(disks.media(), &mounting()).err().expect("it is refused").to_string();
        assert!(refused.contains(right), "{options}, {place:?}: {refused}");
    }
    for (options, right) in [
        ("flush=optimistic", "data=journal"),
        ("flush=barrier,journal=nvm", "leave it out"),
        ("flush=optimistic,data=journal,journal=vmm", "leave it out"),
    ] {
        let refused = ExtSettings::read(&parse_term(&format!("ext:{options}")).unwrap()).unwrap_err().to_string();
        assert!(refused.contains(right), "{options}: {refused}");
    }
}

/// The same volume on a simulated drive: its commits flush twice, or a sync once, or an order never.
#[test]
fn a_drive_with_a_buffer_keeps_order_and_what_stands_above_it_and_reorders_does_not() {
    let open = |path: &str| simulated_file_system(&Path::read(path).unwrap(), 3);
    for path in [
        "ext:flush=barrier/page/nand:size=64M,timing=off",
        "ext:flush=barrier/conv:size=64M,timing=off",
        "ext:flush=barrier/cache:size=1M/page:buffer=1M/nand:size=64M,timing=off",
    ] {
        let refused = open(path).err().unwrap_or_else(|| panic!("{path} keeps no order")).to_string();
        assert!(refused.contains("page:buffer=32M"), "{path}: {refused}");
    }
    let events = |flush: &str, is_order: bool| {
        let policy = "buffer=1M,buffer-policy=volatile";
        let volume = open(&format!("ext:flush={flush}/page:{policy}/nand:size=64M,timing=off")).unwrap();
        for number in 0..50u32 {
            let name = number.to_string().into_bytes();
            let file = call(|call| volume.make(call, (ROOT, &name), &new_file(), Hold::No, None)).unwrap().inode;
            call(|call| volume.write(call, file, 0, &[number as u8; BLOCK], None)).unwrap();
            match is_order {
                true => call(|call| volume.order_file(call, file, Durable::All)).unwrap(),
                false => call(|call| volume.sync_file(call, file, Durable::All)).unwrap(),
            }
        }
        let account = call(|call| volume.account(call)).unwrap();
        let event = |name: &str| account.events.iter().find(|(other, _)| *other == name).map_or(0, |(_, count)| *count);
        let buffer = account.below[0].buffer.as_ref().expect("the drive has a buffer");
        let held = buffer.held.total();
        let orders = [event("orders without a flush"), event("most orders that a cut of power could take")];
        (orders, event("flushes of commits in order"), held)
    };
    assert_eq!(events("barrier", true).0, [50, 50]);
    assert!(events("barrier", true).2 > 50, "a barrier empties no buffer");
    assert_eq!(events("barrier", false), ([0, 0], 50, 0));
    assert_eq!(events("full", true), ([0, 0], 0, 0), "with flushes an order is durable");
    assert_eq!(events("optimistic,data=journal", true).0, [50, 50]);
}
