//! Flips in the logs of volumes whose mount was killed: in the volume, on a device of their own, in non-volatile memory.
//!
//! Each round takes such a volume, flips bits of its log, and looks at it in every way. What was acknowledged is there
//! whole, or damage is told; no file has bytes that were not written to it; nothing is written before a repair; after it
//! e2fsck finds nothing, and the volume can be used.
//!
//! `EXT_LOG_DAMAGE_SECONDS` says for how long at least, `EXT_LOG_DAMAGE_SEED` from which round on.

use crate::checking::number;
use crate::crashes::{BLOCK, Disks, Place, Promised, check_no_foreign, findings, mounting, settings, work};
use crate::image::{call, has_e2fsprogs, program};
use crate::logs::{COMMIT, OnDisk, copied, open};
use crate::power_cut::{Memory, Power};
use crate::walk::{Tree, of_volume};
use flashpath::fs::ext::ExtSettings;
use flashpath::fs::station::{Access, StoredVolumes, VolumeSettings};
use flashpath::fs::volume::{Hold, InodeNumber, Volume};
use flashpath::random::Random;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// Rounds that there are however long they take.
const LEAST_ROUNDS: u64 = 40;
/// Rounds whose volumes are the same.
const ROUNDS_OF_VOLUMES: u64 = 60;
const MOST_FAILURES: usize = 20;

const KINDS: [(&str, Place); 5] = [
    ("ordered", Place::Inline),
    ("ordered", Place::Device),
    ("journal", Place::Memory),
    ("journal", Place::Inline),
    ("writeback", Place::Device),
];

/// A volume as it was killed.
struct Killed {
    disks: Disks,
    settings: ExtSettings,
    data: &'static str,
    place: Place,
    promised: Promised,
    /// Its files, and those that it has without its last transaction.
    whole: Tree,
    cut: Tree,
}

fn killed(data: &'static str, place: Place, seed: u64) -> Killed {
    let mut random = Random::new(seed, "unclean volumes of ext");
    let (power, settings) = (Power::new(), settings(data, place, seed));
    // A log with some transactions. Nothing that the last commit covers is home: the volume without it is that of before.
    loop {
        let disks = Disks::new(&power, place);
        let volume = settings.create(disks.media(), &mounting()).unwrap();
        let mut promised = Promised::default();
        power.cut_after(match place {
            Place::Memory => 10_000 + random.below(20_000),
            _ => 300 + random.below(1200),
        });
        work(&*volume, &mut random, &mut promised, &power);
        drop(volume);
        disks.lose_power(&mut random);
        power.restore();
        let whole = tree_of(&disks, &settings);
        if let Some(cut) = without_last_commit(&disks, place)
            && let Ok(cut) = catch_unwind(AssertUnwindSafe(|| tree_of(&cut, &settings)))
        {
            return Killed { disks, settings, data, place, promised, whole, cut };
        }
    }
}

/// The same volume with a log whose last commit is gone. `None` if it has few transactions.
fn without_last_commit(disks: &Disks, place: Place) -> Option<Disks> {
    let cut = copied(disks);
    if place == Place::Memory {
        cut_memory(&cut);
        return Some(cut);
    }
    let log = OnDisk::of(&cut);
    let last = log.last().filter(|last| last - log.begins().0 > 5)?;
    let commit = log.records().into_iter().find(|it| (it.kind, it.transaction) == (COMMIT, last)).unwrap();
    log.change(commit.block, |bytes| bytes.fill(0));
    Some(cut)
}

fn tree_of(disks: &Disks, settings: &ExtSettings) -> Tree {
    of_volume(&*open(disks, settings, Access::ReadOnly).unwrap())
}

/// Takes the last record of a commit out of the memory of a journal: of two, at 8,192, each with its transaction.
fn cut_memory(disks: &Disks) {
    let memory = disks.memory.as_ref().unwrap();
    let mut contents = memory.contents();
    let transaction = |at: usize| u32::from_le_bytes(contents[at + 16..at + 20].try_into().unwrap());
    let last = if transaction(8192) > transaction(9216) { 8192 } else { 9216 };
    contents[last..last + 1024].fill(0);
    change_memory(disks, contents);
}

fn change_memory(disks: &Disks, contents: Vec<u8>) {
    disks.memory.as_ref().unwrap().replace(contents);
}

/// Flips a bit of the log. Answers where.
fn flip(killed: &Killed, disks: &Disks, random: &mut Random) -> String {
    let bit = 1 << random.below(8);
    if killed.place == Place::Memory {
        let mut contents = disks.memory.as_ref().unwrap().contents();
        // Superblocks and records are small beside the slots.
        let at = loop {
            let most = if random.below(2) == 0 { 16_384 } else { contents.len() as u64 };
            let at = random.below(most) as usize;
            if contents[at] != 0 || random.below(32) == 0 {
                break at;
            }
        };
        contents[at] ^= bit;
        change_memory(disks, contents);
        return format!("byte {at} of the memory, bit {bit:#x}");
    }
    // After a flip in its superblock the log is not found any more.
    let sound = OnDisk::of(&killed.disks);
    let records = sound.records();
    let log = OnDisk { blocks: sound.blocks, ..OnDisk::of(disks) };
    let (block, at) = match random.below(8) {
        0 => (log.blocks[0], random.below(1024)),
        1 | 2 => (log.blocks[random.below(log.blocks.len() as u64) as usize], random.below(BLOCK as u64)),
        _ => {
            let record = records[random.below(records.len() as u64) as usize];
            // A copy behind it, or the record.
            let behind = if random.below(4) == 0 { random.below(4) } else { 0 };
            let most = if random.below(2) == 0 { 64 } else { BLOCK as u64 };
            ((record.block + behind).min(*log.blocks.last().expect("a log has blocks")), random.below(most))
        }
    };
    log.change(block, |bytes| bytes[at as usize] ^= bit);
    format!("byte {at} of block {} of the log, bit {bit:#x}", block - log.blocks[0])
}

/// Promised files that are whole, and the others.
fn kept(volume: &dyn Volume, promised: &Promised) -> (usize, Vec<String>) {
    let (mut whole, mut others) = (0, Vec::new());
    for (name, bytes) in &promised.files {
        let found = call(|call| volume.lookup(call, (InodeNumber::ROOT, name), Hold::No));
        let mut read = vec![0; bytes.len() + 1];
        let length = found.and_then(|found| call(|call| volume.read(call, found.inode, 0, &mut read)));
        match length {
            Ok(read_back) if read[..read_back.length] == bytes[..] => whole += 1,
            other => others.push(format!("{}: {:?}", String::from_utf8_lossy(name), other.map(|read| read.length))),
        }
    }
    (whole, others)
}

/// Promised files that are left, by their names and sizes, when e2fsck has repaired the volume.
fn kept_by_e2fsck(disks: &Disks, promised: &Promised) -> usize {
    let (volume, journal) = disks.images();
    let mut e2fsck = program("e2fsck");
    e2fsck.arg("-fy");
    if let Some(journal) = &journal {
        e2fsck.args(["-j", &journal.text()]);
    }
    let _ = e2fsck.arg(volume.text()).output().unwrap();
    let listed = volume.debugfs("ls -p /");
    let there: BTreeMap<&str, &str> = listed
        .lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.split('/').collect();
            Some((*fields.get(5)?, *fields.get(6)?))
        })
        .collect();
    let is_there = |name: &Vec<u8>, bytes: &Vec<u8>| {
        let name = String::from_utf8_lossy(name).into_owned();
        there.get(&name[..]).is_some_and(|size| *size == bytes.len().to_string())
    };
    promised.files.iter().filter(|(name, bytes)| is_there(name, bytes)).count()
}

/// Looks at a damaged volume in every way. `is_single`: one bit is flipped.
fn examine(killed: &Killed, disks: &Disks, is_single: bool, random: &mut Random) -> Result<&'static str, String> {
    let Killed { settings, promised, data, .. } = killed;
    let before = disks.images();
    let memory = disks.memory.as_ref().map(Memory::contents);
    let found = settings.check(disks.media());
    let is_told = !matches!(&found, Ok(findings) if findings.is_empty());
    let opened = open(disks, settings, Access::ReadOnly);
    if let Ok(volume) = &opened {
        let tree = of_volume(&**volume);
        let (_, others) = kept(&**volume, promised);
        if !is_told && !others.is_empty() && tree != killed.cut {
            return Err(format!("nothing is told, and {others:?}"));
        }
        if !is_told && tree != killed.whole && tree != killed.cut {
            return Err(
                "nothing is told, and the volume is neither that before the last transaction nor that after it".into(),
            );
        }
        // One flipped bit of a log in blocks is flipped back.
        if is_single && killed.place != Place::Memory && tree != killed.whole {
            return Err(format!("one bit is flipped, and changes are lost: {others:?}, {found:?}"));
        }
        if is_single && *data != "writeback" {
            check_no_foreign(&**volume, "read-only");
        }
    } else if !is_told {
        return Err(format!("a check finds nothing, and it cannot be mounted: {:?}", opened.err()));
    }
    drop(opened);
    let bytes_of = |images: &(crate::image::Image, Option<crate::image::Image>)| {
        let journal = images.1.as_ref().map(|journal| std::fs::read(journal.path()).unwrap());
        (std::fs::read(images.0.path()).unwrap(), journal)
    };
    if bytes_of(&before) != bytes_of(&disks.images()) || memory != disks.memory.as_ref().map(Memory::contents) {
        return Err("a check or a read-only mount writes".to_string());
    }
    // Mounted as it is.
    let used = copied(disks);
    if let Ok(volume) = open(&used, settings, Access::IfWhole) {
        let state = call(|call| volume.state(call)).unwrap();
        if state.read_only.is_some() != is_told {
            return Err(format!("a check tells {found:?}, and the mount says {state:?}"));
        }
        call(|call| volume.unmount(call)).map_err(|error| error.to_string())?;
    } else if !is_told {
        return Err("a check finds nothing, and it cannot be mounted".to_string());
    }
    let theirs =
        if random.below(4) == 0 && killed.place != Place::Memory { kept_by_e2fsck(disks, promised) } else { 0 };
    let outcome = match settings.repair(disks.media(), &mounting()) {
        Ok(outcome) => outcome,
        Err(fault) if is_told && killed.place == Place::Memory => {
            // The memory is not that of the volume any more: the user decides.
            let _ = fault;
            return Ok("refused");
        }
        Err(fault) => return Err(format!("the repair fails: {}", fault.source)),
    };
    if let Some(left) = outcome.left.first() {
        return Err(format!("the repair leaves {left:?}"));
    }
    if let Some(findings) = findings(&disks.images()) {
        return Err(format!("e2fsck -fn after the repair {:?}: {findings}", outcome.repaired));
    }
    let again = settings.check(disks.media()).map_err(|fault| format!("repaired: {}", fault.source))?;
    if let Some(finding) = again.first() {
        return Err(format!("after the repair a check finds {finding:?}"));
    }
    let volume = open(disks, settings, Access::IfWhole).map_err(|why| format!("repaired: {why}"))?;
    if let Some(why) = call(|call| volume.state(call)).unwrap().read_only {
        return Err(format!("repaired, and read-only: {why}"));
    }
    let (whole, others) = kept(&*volume, promised);
    if whole < theirs {
        return Err(format!(
            "e2fsck keeps {theirs} promised files, and {whole} are kept here: {others:?}, {outcome:?}"
        ));
    }
    if outcome.repaired.is_empty() && !others.is_empty() && of_volume(&*volume) != killed.cut {
        return Err(format!("nothing is told by the repair, and {others:?}"));
    }
    call(|call| volume.unmount(call)).map_err(|error| format!("repaired and used: {error}"))?;
    drop(volume);
    findings(&disks.images()).map_or(Ok(()), |findings| Err(format!("repaired and used: {findings}")))?;
    Ok(if is_told { "repaired" } else { "nothing found" })
}

/// Time since now.
#[allow(clippy::disallowed_methods, reason = "only how much is tried depends on it")]
fn stopwatch() -> impl Fn() -> Duration {
    let begun = std::time::Instant::now();
    move || begun.elapsed()
}

#[test]
fn flips_in_unclean_logs_are_told_or_lose_nothing_and_are_repaired() {
    if !has_e2fsprogs() {
        return;
    }
    let passed = stopwatch();
    let budget = Duration::from_secs(number("EXT_LOG_DAMAGE_SECONDS", 0));
    let first = number("EXT_LOG_DAMAGE_SEED", 0);
    let (mut outcomes, mut failures) = (BTreeMap::<&str, u64>::new(), Vec::new());
    let mut volumes: [Option<(u64, Killed)>; KINDS.len()] = Default::default();
    for round in (first..).take_while(|round| *round - first < LEAST_ROUNDS || passed() <= budget) {
        let (kind, turn) = (round as usize % KINDS.len(), round / ROUNDS_OF_VOLUMES);
        let (data, place) = KINDS[kind];
        let made = volumes[kind].take().filter(|(its, _)| *its == turn);
        let made = made.unwrap_or_else(|| (turn, killed(data, place, turn * KINDS.len() as u64 + kind as u64)));
        let killed = &volumes[kind].insert(made).1;
        let mut random = Random::new(round, "flips in unclean logs");
        let disks = copied(&killed.disks);
        let count = 1 + if random.below(4) == 0 { random.below(4) } else { 0 };
        let done: Vec<String> = (0..count).map(|_| flip(killed, &disks, &mut random)).collect();
        let examined = || examine(killed, &disks, count == 1, &mut random);
        let outcome = catch_unwind(AssertUnwindSafe(examined)).unwrap_or_else(|_| Err("it panics".to_string()));
        match outcome {
            Ok(outcome) => *outcomes.entry(outcome).or_default() += 1,
            Err(why) => {
                failures.push(format!("EXT_LOG_DAMAGE_SEED={round}, data={data}, {place:?}: {done:?}:\n    {why}"));
                // A campaign may be stopped.
                eprintln!("{}", failures[failures.len() - 1]);
            }
        }
        if failures.len() == MOST_FAILURES {
            break;
        }
    }
    eprintln!("{outcomes:?}");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(outcomes.contains_key("repaired"), "{outcomes:?}");
}
