//! Mutated images of volumes whose mount was killed, with sealed partial segments behind the checkpoint.
//!
//! Each round takes a volume, damages some places of it, and looks at it in every way: nothing panics or hangs, no
//! block reads as what was never written there, what is lost is told, nothing is written before a repair, and after it
//! a second check is clean. `SFS_DAMAGE_SECONDS` says for how long at least, `SFS_DAMAGE_SEED` from which round on.

use super::forged::{self, FIELDS};
use super::log_damage::BLOCKS;
use super::machine::{Case, Machine};
use super::unclean::{Partial, block, change, checked, log, opened_despite_damage, repaired, superblock};
use super::versions::{Read, Versions, read_all};
use super::{IDENTITY, settings};
use flashpath::fs::Durable;
use flashpath::fs::sfs::{Sfs, SfsError};
use flashpath::random::Random;
use flashpath::task::Task;
use flashpath::time::Time;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// Rounds that there are however long they take.
const LEAST_ROUNDS: u64 = 200;

/// Rounds whose volumes are the same.
const ROUNDS_OF_VOLUMES: u64 = 100;

/// Failures after which a campaign ends.
const MOST_FAILURES: usize = 20;

/// Rounds that once failed, each with the clock of the task that made its volume. Their fsyncs wrote blocks.
const FOUND: [(u64, u64); 25] = [
    (40458, 0),
    (211526, 0),
    (334606, 0),
    (353027, 0),
    (554751, 0),
    (625587, 0),
    (625819, 0),
    (7000786, 0),
    // A block in which a file ended when it was written, and whose newer version is lost, read as bytes and zeros.
    (2440, 53_636_970_404),
    (2676, 59_923_656_632),
    // Both superblocks of the newest checkpoint are lost, and the log was applied to the one before it, in which
    // numbers of blocks and inodes had other owners.
    (93, 6_060_000_000),
    (1105, 6_060_000_000),
    (6225, 6_060_000_000),
    (2857, 13_053_556_394),
    (4361, 22_311_340_773),
    // An entry of the DAT lies outside of the log: a check panicked.
    (1153, 19_870_979_531),
    (1348, 46_538_465_715),
    // The log could not be applied, and a repair gave its numbers out again.
    (4884, 35_808_576_796),
    // Of two superblocks of a checkpoint one has a wrong root; a repair took it and left wrong counts.
    (3253, 9_585_509_699),
    (3885, 14_377_928_319),
    (22844, 27_849_726_109),
    // Partial segments were lost twice.
    (20359, 44_283_482_376),
    // The DAT seemed to have more pages than it has: its numbers were given out again.
    (1003517, 55_541_418_959),
    (1016097, 7_399_209_648),
    // A file that the log deletes came back, as one of its entries was wrong.
    (1008436, 34_544_156_690),
];

/// A volume as it was killed.
struct Killed {
    machine: Machine,
    versions: Versions,
    log: Vec<Partial>,
    /// The content after each number of partial segments.
    cut: Vec<Read>,
}

impl Killed {
    /// The required content of a damaged copy if no damage is reported.
    ///
    /// The remains of the log show how much of it was durable. Everything up to there must be unchanged; after it the
    /// log ends at the first damaged partial segment, as after a crash.
    fn untold(&self, machine: &Machine) -> &Read {
        let same = |place: &(u64, u64)| block(machine, place.0, place.1) == block(&self.machine, place.0, place.1);
        let is_there = |partial: &Partial| partial.places().take(partial.summary_blocks as usize).all(|it| same(&it));
        let durable = self.reached(machine, is_there).iter().map(|partial| partial.durable).max().unwrap_or(0);
        let is_torn = |partial: &Partial| partial.number > durable && !partial.places().all(|it| same(&it));
        let end = self.log.iter().position(is_torn).unwrap_or(self.log.len());
        &self.cut[end]
    }

    /// Partial segments that are there and can be found: behind others from the head of their segment, or in a segment
    /// that the superblock or one before names.
    fn reached(&self, machine: &Machine, is_there: impl Fn(&Partial) -> bool) -> Vec<&Partial> {
        let mut named = BTreeSet::new();
        let newest = superblock(machine);
        if newest == superblock(&self.machine) {
            named.extend([forged::get(&newest, 84, 4), forged::get(&newest, 92, 4).wrapping_sub(1)]);
        }
        let mut reached: Vec<&Partial> = Vec::new();
        for partial in &self.log {
            let before = self.log.iter().filter(|it| it.segment == partial.segment && it.block < partial.block);
            let first = self.log.iter().filter(|it| it.segment == partial.segment).map(|it| it.block).min();
            let is_behind_head = first == Some(0) && before.into_iter().all(&is_there);
            if is_there(partial) && (is_behind_head || named.contains(&partial.segment)) {
                named.extend(partial.next_segment);
                named.extend(partial.is_mixed.then_some(partial.segment));
                reached.push(partial);
            }
        }
        reached
    }
}

/// `fill`: blocks of a file that takes up room before.
fn killed(task: &Task<'_>, text: &'static str, seed: u64, is_zoned: bool, fill: u64) -> Killed {
    let machine = Machine::new(text, 16, 64, is_zoned);
    let mut sfs = machine.create();
    let mut random = Random::new(seed, "unclean volumes");
    let mut versions = Versions::default();
    if fill > 0 {
        let inode = versions.fill(task, &mut sfs, fill * 4096).unwrap();
        sfs.sync_file(task, inode, Durable::All).unwrap();
        sfs.sync(task).unwrap();
    }
    loop {
        for _ in 0..60 {
            match versions.step(task, &mut sfs, &mut random) {
                Ok(()) | Err(SfsError::NoSpace { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        if log(&machine).len() >= 15 {
            break;
        }
    }
    drop(sfs);
    let log = log(&machine);
    let cut = (0..=log.len()).map(|count| {
        let cut = machine.copy();
        log[count..].iter().for_each(|lost| change(&cut, lost.segment, lost.block, |bytes| bytes.fill(0)));
        read_all(task, &mut cut.open().unwrap())
    });
    let cut: Vec<Read> = cut.collect();
    cut.iter().for_each(|read| versions.check(read).unwrap());
    Killed { machine, versions, log, cut }
}

/// The clock of the task that makes the volume of a round. It decides where checkpoints fall and what is buffered
/// between them.
fn clock_of(round: u64) -> u64 {
    let turn = round / ROUNDS_OF_VOLUMES;
    let mut random = Random::new(turn * 4 + round % 4, "clocks of unclean volumes");
    if turn == 0 { 0 } else { random.below(60_000_000_000) }
}

/// The options of the volume of a round: an fsync writes blocks, or bytes as log records.
fn text_of(round: u64) -> &'static str {
    if (round / ROUNDS_OF_VOLUMES).is_multiple_of(2) { BLOCKS } else { "sfs:segment=64K" }
}

/// The volumes of the last rounds, each with its options and clock, which serve the next ones with the same, too.
#[derive(Default)]
struct Volumes([Option<((&'static str, u64), Killed)>; 4]);

impl Volumes {
    fn of_round(&mut self, round: u64, text: &'static str, clock: u64) -> &Killed {
        let kinds = [(1, false, 0), (2, true, 0), (3, false, 480), (4, true, 480)];
        let at = round as usize % kinds.len();
        let made = self.0[at].take().filter(|(its, _)| *its == (text, clock));
        let (seed, is_zoned, fill) = kinds[at];
        let new = || ((text, clock), killed(&Task::at(Time(clock)), text, seed, is_zoned, fill));
        &self.0[at].insert(made.unwrap_or_else(new)).1
    }
}

/// Changes bytes of a block: a bit, some bytes, a sector, or all of it.
fn spoil(bytes: &mut [u8], random: &mut Random) {
    let at = random.below(bytes.len() as u64) as usize;
    match random.below(6) {
        0..=2 => bytes[at] ^= 1 << random.below(8),
        3 => bytes[at / 8 * 8..at / 8 * 8 + 8].fill(random.bits() as u8),
        4 => bytes[at / 512 * 512..at / 512 * 512 + 512].fill(0),
        _ => bytes.fill(0),
    }
}

/// Damages a volume somewhere. Answers what was done.
///
/// `is_alone`: nothing else is damaged. Only then a summary is forged, and not the last one: the next one alone tells
/// that its checksum is not the one that was written.
fn mutate(killed: &Killed, machine: &Machine, is_alone: bool, random: &mut Random) -> String {
    let any = |random: &mut Random| (random.below(machine.segments), random.below(machine.segment_blocks));
    let partial = &killed.log[random.below(killed.log.len() as u64) as usize];
    let in_log = (partial.segment, partial.block + random.below(partial.summary_blocks + partial.blocks));
    match random.below(12) {
        0..=2 => {
            change(machine, partial.segment, partial.block, |bytes| spoil(bytes, random));
            format!("the summary of {}", partial.number)
        }
        3 | 4 => {
            change(machine, in_log.0, in_log.1, |bytes| spoil(bytes, random));
            format!("{in_log:?} of the log")
        }
        5 => {
            let place = any(random);
            change(machine, place.0, place.1, |bytes| spoil(bytes, random));
            format!("{place:?}")
        }
        6 => {
            let (one, other) = (in_log, any(random));
            let (first, second) = (block(machine, one.0, one.1), block(machine, other.0, other.1));
            change(machine, one.0, one.1, |bytes| bytes.copy_from_slice(&second));
            change(machine, other.0, other.1, |bytes| bytes.copy_from_slice(&first));
            format!("{one:?} and {other:?} swapped")
        }
        7 => {
            let other = &killed.log[random.below(killed.log.len() as u64) as usize];
            let stale = block(machine, other.segment, other.block);
            change(machine, partial.segment, partial.block, |bytes| bytes.copy_from_slice(&stale));
            format!("the summary of {} in the place of that of {}", other.number, partial.number)
        }
        8 if is_alone && partial.number < killed.log.last().unwrap().number => {
            let at = random.below(96) as usize + if random.below(2) == 0 { 0 } else { 64 };
            let value = random.bits() as u8;
            change(machine, partial.segment, partial.block, |bytes| {
                bytes[at.max(8)] = value;
                forged::seal_summary(bytes);
            });
            format!("byte {at} of the summary of {} is {value}, with its checksum", partial.number)
        }
        9 | 10 => {
            let field = &FIELDS[random.below(FIELDS.len() as u64) as usize];
            let value = [0, 1, 2, u64::MAX, random.below(1000), random.bits()][random.below(6) as usize];
            let copies = random.below(3);
            forged::superblocks(machine, |copy, bytes| {
                if copies == 2 || copies == copy {
                    forged::set(bytes, field, value);
                }
            });
            format!("{} of superblock {copies} is {value}, with its checksum", field.name)
        }
        _ => {
            let (at, value) = (random.below(32) as usize, random.bits() as u8);
            let number = random.below(128);
            match forged::dat_entry(machine, number, |entry| entry[at] = value) {
                true => format!("byte {at} of the entry of virtual block {number} is {value}, with all checksums"),
                false => "nothing".to_string(),
            }
        }
    }
}

/// Works on a volume that was mounted, and unmounts it.
fn work_on(task: &Task<'_>, mut sfs: Sfs, versions: &mut Versions, random: &mut Random) -> Result<(), SfsError> {
    for _ in 0..20 {
        match versions.step_if_known(task, &mut sfs, random) {
            Ok(()) | Err(SfsError::NoSpace { .. }) => {}
            // What is damaged is refused, by name.
            Err(SfsError::Damaged { .. }) => {}
            Err(SfsError::ReadOnly(_)) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    match sfs.unmount(task) {
        Err(SfsError::Damaged { .. } | SfsError::ReadOnly(_)) | Ok(()) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Looks at a damaged volume in every way.
fn examine(task: &Task<'_>, killed: &Killed, machine: &Machine, random: &mut Random) -> Result<&'static str, String> {
    let words = |error: SfsError| error.to_string();
    let writes = machine.power.operations();
    if let Ok(mut sfs) = Sfs::open(&Task::at(Time::ZERO), machine.medium(), &settings("sfs"), IDENTITY, true) {
        killed.versions.check(&read_all(task, &mut sfs)).map_err(|why| format!("read-only: {why}"))?;
    }
    let found = checked(machine);
    if machine.power.operations() != writes {
        return Err("a check or a read-only mount writes".to_string());
    }
    let is_told = !matches!(&found, Ok(findings) if findings.is_empty());
    // Mounted as it is, with damage or without, and used.
    for despite in [false, true] {
        let used = machine.copy();
        let opened = if despite { opened_despite_damage(used.medium()) } else { used.open() };
        let mut sfs = match opened {
            Ok(sfs) => sfs,
            Err(error) if !is_told => {
                return Err(format!("a check finds nothing, and it cannot be mounted: {error}"));
            }
            Err(_) => continue,
        };
        let is_damaged = !sfs.damage().is_empty();
        if is_damaged && !is_told {
            return Err(format!("the mount tells of damage, and a check does not: {:?}", sfs.damage()));
        }
        let read = read_all(task, &mut sfs);
        killed.versions.check(&read).map_err(|why| format!("mounted, despite damage {despite}: {why}"))?;
        if !is_told {
            // Summaries that were swapped may all be found: then nothing is lost.
            let whole = killed.cut.last().expect("the whole log");
            let expected = if read == *whole { whole } else { killed.untold(machine) };
            let differs = |path: &&String| read.get(*path) != expected.get(*path);
            let paths: BTreeSet<&String> = expected.keys().chain(read.keys()).filter(differs).collect();
            if !paths.is_empty() {
                return Err(format!("nothing is told, and another version is read of {paths:?}: {:?}", killed.log));
            }
        }
        if is_damaged && !despite {
            let writes = used.power.operations();
            sfs.unmount(task).map_err(words)?;
            if used.power.operations() > writes + 1 {
                return Err("the mount of a damaged volume writes".to_string());
            }
            continue;
        }
        let mut versions = killed.versions.clone();
        work_on(task, sfs, &mut versions, random).map_err(words)?;
        if !is_told {
            let again = checked(&used).map_err(|error| format!("after use: {error}"))?;
            if !again.is_empty() {
                return Err(format!("a check found nothing, and after use finds {}", again[0]));
            }
        }
        if let Ok(mut sfs) = Sfs::open(&Task::at(Time::ZERO), used.medium(), &settings("sfs"), IDENTITY, true) {
            versions.check(&read_all(task, &mut sfs)).map_err(|why| format!("after use: {why}"))?;
        }
    }
    let Ok(found) = found else {
        let writes = machine.power.operations();
        return match repaired(machine).is_err() && machine.power.operations() == writes {
            true => Ok("refused"),
            false => Err("a check refuses the volume, and a repair does not".to_string()),
        };
    };
    let repaired = repaired(machine).map_err(|error| format!("repair: {error}"))?;
    if let Some(left) = repaired.left.first() {
        return Err(format!("the repair leaves {left}"));
    }
    if let Some(finding) = checked(machine).map_err(|error| format!("repaired: {error}"))?.first() {
        return Err(format!("after the repair a check finds {finding}"));
    }
    let mut sfs = machine.open().map_err(|error| format!("repaired: {error}"))?;
    killed.versions.check(&read_all(task, &mut sfs)).map_err(|why| format!("repaired: {why}"))?;
    let wrong = sfs.check(task).map_err(words)?;
    wrong.first().map_or(Ok(()), |finding| Err(format!("repaired and mounted: {finding}")))?;
    Ok(if found.is_empty() { "nothing found" } else { "repaired" })
}

/// The number in a variable of the environment.
pub fn number_of(variable: &str, by_default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|value| value.parse().ok()).unwrap_or(by_default)
}

/// Time since now.
#[allow(clippy::disallowed_methods, reason = "only how much is tried depends on it")]
fn stopwatch() -> impl Fn() -> Duration {
    let begun = std::time::Instant::now();
    move || begun.elapsed()
}

#[test]
fn mutated_images_of_unclean_volumes_never_read_as_what_was_not_written_and_are_repaired() {
    let task = &Task::at(Time::ZERO);
    let passed = stopwatch();
    let budget = Duration::from_secs(number_of("SFS_DAMAGE_SECONDS", 0));
    let first = number_of("SFS_DAMAGE_SEED", 0);
    let (mut outcomes, mut failures) = (BTreeMap::<&str, u64>::new(), Vec::new());
    let goes_on = |round: &u64| *round - first < LEAST_ROUNDS || passed() <= budget;
    let new = (first..).take_while(goes_on).map(|round| (round, text_of(round), clock_of(round)));
    let found = FOUND.into_iter().map(|(round, clock)| (round, BLOCKS, clock));
    let mut volumes = Volumes::default();
    for (round, text, clock) in found.chain(new) {
        let base = volumes.of_round(round, text, clock);
        let mut random = Random::new(round, "mutated unclean volumes");
        let machine = base.machine.copy();
        let count = 1 + if random.below(3) == 0 { random.below(5) } else { 0 };
        let done: Vec<String> = (0..count).map(|_| mutate(base, &machine, count == 1, &mut random)).collect();
        let case = Case(format!("SFS_DAMAGE_SEED={round}, {text}, clock {clock}: {done:?}"));
        let examined = || examine(task, base, &machine, &mut random);
        let outcome = catch_unwind(AssertUnwindSafe(examined)).unwrap_or_else(|_| Err("it panics".to_string()));
        match outcome {
            Ok(outcome) => *outcomes.entry(outcome).or_default() += 1,
            Err(why) => failures.push(format!("{}:\n    {why}", case.0)),
        }
        if failures.len() == MOST_FAILURES {
            break;
        }
    }
    eprintln!("{outcomes:?}");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(outcomes.contains_key("repaired"), "{outcomes:?}");
}

/// The log had the block anew, so that its entry of before counted no more for a check: it found nothing, and no mount
/// could read the page.
#[test]
fn a_dat_entry_that_lies_outside_of_the_log_is_found_although_the_log_has_the_block_anew() {
    let task = &Task::at(Time::ZERO);
    let killed = killed(&Task::at(Time(6_060_000_000)), BLOCKS, 2, true, 0);
    let mut refused = 0;
    for number in 1..128 {
        let machine = killed.machine.copy();
        assert!(forged::dat_entry(&machine, number, |entry| entry[6] = 189));
        let found = checked(&machine).unwrap();
        assert!(!found.is_empty(), "virtual block {number}");
        refused += u64::from(machine.open().is_err());
        assert_eq!(repaired(&machine).unwrap().left, []);
        assert_eq!(checked(&machine).unwrap(), [], "virtual block {number}");
        killed.versions.check(&read_all(task, &mut machine.open().unwrap())).unwrap();
    }
    assert!(refused > 0);
}
