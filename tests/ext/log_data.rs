//! `log-data=delayed` and `log-data=overwrites` of `data=journal`: what is logged, what goes to its place, and what a cut of power
//! leaves.
//!
//! `EXT_CRASHES` sets the number of cuts of each kind.

use crate::crashes::{Disks, Place, crash_with, cuts, mounting};
use crate::image::{call, can_mount, has_e2fsprogs};
use crate::power_cut::Power;
use flashpath::device::Account;
use flashpath::expression::parse_term;
use flashpath::fs::Durable;
use flashpath::fs::ext::ExtSettings;
use flashpath::fs::station::{Access, StoredVolumes, VolumeSettings};
use flashpath::fs::volume::{FileKind, Hold, InodeNumber, NewFile, Volume, VolumeError};
use flashpath::label::{Cause, Content, Label};
use flashpath::random::Random;
use flashpath::run::{Path, simulated_file_system};

const BLOCK: usize = 4096;
const KINDS: [&str; 2] = ["delayed", "overwrites"];

fn settings(options: &str, place: Place, seed: u64) -> ExtSettings {
    // The memory has room for two partitions.
    let of_place = if let Place::Memory = place { ",partitions=2" } else { "" };
    let mut settings = ExtSettings::read(&parse_term(&format!("ext:{options}{of_place},dirty=1M")).unwrap()).unwrap();
    if seed.is_multiple_of(4) {
        // Each inode leaves memory soon, and is read again.
        settings.cache_bytes = 0;
        settings.memory_bytes = Some(37 << 20);
    }
    settings
}

fn make(volume: &dyn Volume, name: &[u8]) -> Result<InodeNumber, VolumeError> {
    let kind = FileKind::Regular;
    let new = NewFile { kind, permissions: 0o644, user: 0, group: 0, device: 0, target: b"", attributes: &[] };
    Ok(call(|call| volume.make(call, (InodeNumber::ROOT, name), &new, Hold::No, None))?.inode)
}

#[test]
fn after_any_cut_of_power_a_volume_that_logs_bytes_later_is_whole_and_shows_no_foreign_bytes() {
    let places = [(Place::Inline, can_mount()), (Place::Device, can_mount()), (Place::Memory, has_e2fsprogs())];
    for (at, kind) in KINDS.into_iter().enumerate() {
        for (number, (place, _)) in places.into_iter().enumerate().filter(|(_, (_, is_possible))| *is_possible) {
            let first = 40_000 + 10_000 * at as u64 + 1000 * number as u64;
            for seed in first..first + cuts() {
                let settings = settings(&format!("data=journal,log-data={kind}"), place, seed);
                crash_with(&settings, place, seed, &|tree| tree);
            }
        }
    }
}

#[test]
fn after_any_death_of_the_process_bytes_that_are_logged_later_go_together_with_what_a_monitor_keeps() {
    if has_e2fsprogs() {
        for (at, kind) in KINDS.into_iter().enumerate() {
            for seed in 60_000 + 1000 * at as u64..60_000 + 1000 * at as u64 + cuts() {
                let settings = settings(&format!("data=journal,log-data={kind}"), Place::Monitor, seed);
                crash_with(&settings, Place::Monitor, seed, &|tree| tree);
            }
        }
    }
}

/// Blocks of the file whose blocks are overwritten.
const SLOTS: u64 = 60;

/// Overwrites blocks of a file, until the power fails at any operation. After the replay each block has one version, whole, and no older
/// one than was synced. Answers the blocks that have not.
fn overwrite(options: &str, place: Place, seed: u64) -> usize {
    let what = format!("{options}, {place:?}, seed {seed}");
    let (settings, mut random, power) = (settings(options, place, seed), Random::new(seed, "overwrites"), Power::new());
    let disks = Disks::new(&power, place);
    let volume = settings.create(disks.media(), &mounting()).unwrap();
    let file = make(&*volume, b"slots").unwrap();
    call(|call| volume.write(call, file, 0, &vec![1; SLOTS as usize * BLOCK], None)).unwrap();
    call(|call| volume.sync_file(call, file, Durable::All)).unwrap();
    // The newest version of each block, and the newest that was synced.
    let mut versions = [(1u8, 1u8); SLOTS as usize];
    power.cut_after(20 + random.below(1000));
    std::thread::scope(|scope| {
        let background = || while call(|call| volume.work(call)).is_ok() && !power.is_off() {};
        if seed % 2 == 1 {
            scope.spawn(background);
        }
        let mut step = |versions: &mut [(u8, u8); SLOTS as usize]| -> Result<(), VolumeError> {
            let at = random.below(SLOTS);
            let next = versions[at as usize].0 + 1;
            // One version more may be there than was answered.
            versions[at as usize].0 = next;
            call(|call| volume.write(call, file, at * BLOCK as u64, &[next; BLOCK], None))?;
            if random.below(5) == 0 {
                call(|call| volume.sync_file(call, file, Durable::Data))?;
                if !power.is_off() {
                    versions.iter_mut().for_each(|(newest, synced)| *synced = *newest);
                }
            }
            Ok(())
        };
        while !power.is_off() && versions.iter().all(|(newest, _)| *newest < 250) {
            if let Err(error) = step(&mut versions) {
                assert!(power.is_off(), "{what}: {error}");
            }
        }
    });
    power.cut_after(0);
    drop(volume);
    disks.lose_power(&mut random);
    power.restore();
    let volume = settings.open(disks.media(), &mounting(), Access::IfWhole);
    let volume = volume.unwrap_or_else(|error| panic!("{what}: {error}"));
    let found = call(|call| volume.lookup(call, (InodeNumber::ROOT, b"slots"), Hold::No)).unwrap().inode;
    let mut bytes = vec![0; SLOTS as usize * BLOCK];
    assert_eq!(call(|call| volume.read(call, found, 0, &mut bytes)).unwrap().length, bytes.len(), "{what}");
    let mut torn = 0;
    for (block, (newest, synced)) in bytes.chunks(BLOCK).zip(versions) {
        let is_whole = block.iter().all(|byte| *byte == block[0]);
        torn += usize::from(!is_whole);
        let oldest = block.iter().min().expect("a block has bytes");
        assert!((synced..=newest).contains(oldest), "{what}: {oldest}, and {synced} to {newest} may be there");
    }
    torn
}

#[test]
fn an_overwritten_block_is_old_or_new_after_a_cut_and_never_torn() {
    for (at, kind) in KINDS.into_iter().enumerate() {
        for place in [Place::Inline, Place::Device, Place::Memory] {
            for seed in 70_000 + 1000 * at as u64..70_000 + 1000 * at as u64 + cuts() {
                assert_eq!(overwrite(&format!("data=journal,log-data={kind}"), place, seed), 0, "{kind}, {place:?}");
            }
        }
    }
    // The cause: blocks that are overwritten in place are torn.
    let torn: usize = (0..cuts().max(12)).map(|seed| overwrite("data=ordered", Place::Device, 73_000 + seed)).sum();
    assert!(torn > 0, "no block was torn that was overwritten in place");
}

/// The account after this work on a simulated drive.
fn counted(options: &str, work: impl Fn(&dyn Volume)) -> Account {
    let path = format!("ext:{options},journal-size=4M/page/nand:size=64M,timing=off");
    let volume = simulated_file_system(&Path::read(&path).unwrap(), 3).unwrap();
    work(&*volume);
    let account = call(|call| volume.account(call)).unwrap();
    call(|call| volume.unmount(call)).unwrap();
    account
}

/// Its blocks by cause and content.
fn blocks(account: &Account, cause: Cause, content: Content) -> u64 {
    account.sent.of(Label::first(cause, content))
}

/// Writes 100 files of four blocks, removes every second one, overwrites two blocks of the others, and syncs between.
fn files(volume: &dyn Volume, is_synced_before: bool) {
    let names: Vec<Vec<u8>> = (0..100).map(|number: u32| number.to_string().into_bytes()).collect();
    let made: Vec<InodeNumber> = names.iter().map(|name| make(volume, name).unwrap()).collect();
    for file in &made {
        call(|call| volume.write(call, *file, 0, &[1; 4 * BLOCK], None)).unwrap();
    }
    if is_synced_before {
        call(|call| volume.sync(call)).unwrap();
    }
    for name in names.iter().step_by(2) {
        call(|call| volume.unlink(call, (InodeNumber::ROOT, name), None)).unwrap();
    }
    for file in made.iter().skip(1).step_by(2) {
        call(|call| volume.write(call, *file, BLOCK as u64, &[2; 2 * BLOCK], None)).unwrap();
    }
    call(|call| volume.sync(call)).unwrap();
}

#[test]
fn bytes_that_nobody_reads_after_a_sync_are_not_logged_when_they_are_logged_later() {
    let logged = |options: &str| {
        let account = counted(options, |volume| files(volume, false));
        let commits = account.events.iter().find(|(name, _)| *name == "commits").expect("commits are counted").1;
        (blocks(&account, Cause::JournalCommit, Content::Journal), commits)
    };
    let (metadata, commits) = logged("data=ordered");
    let (at_once, _) = logged("data=journal");
    let (delayed, delayed_commits) = logged("data=journal,log-data=delayed");
    // 50 files of four blocks are left. A further commit has a descriptor, a record, and metadata: no more than the one without
    // bytes. A log that takes bytes at once may have those of the other files, and blocks twice.
    let (data, most) = (delayed - metadata, 200 + metadata / commits * (delayed_commits - commits));
    assert!(
        (200..=most).contains(&data),
        "{data} blocks more with the bytes; {delayed_commits} commits, {commits} without"
    );
    assert!(at_once >= delayed, "{at_once} blocks logged at once, {delayed} later");
}

#[test]
fn new_blocks_go_to_their_places_once_and_overwritten_ones_through_the_log() {
    let account = counted("data=journal,log-data=overwrites", |volume| files(volume, true));
    assert_eq!(blocks(&account, Cause::HostWrite, Content::Data), 400, "each new block, once");
    let ordered = counted("data=ordered", |volume| files(volume, true));
    assert_eq!(blocks(&ordered, Cause::HostWrite, Content::Data), 500, "all go to their places");
    let [logged, metadata] =
        [&account, &ordered].map(|account| blocks(account, Cause::JournalCommit, Content::Journal));
    assert!(
        (logged - metadata).abs_diff(100) <= 4,
        "{logged} blocks are logged for 100 that are overwritten, and {metadata} without them"
    );
}

/// A block that was logged, freed, and given to another file, is not written over by the log's older copy.
#[test]
fn a_freed_block_that_was_logged_does_not_come_back_over_new_bytes() {
    let settings = settings("data=journal,log-data=overwrites,journal-size=5M", Place::Inline, 1);
    for seed in 0..cuts() {
        let (mut random, power) = (Random::new(seed, "freed blocks"), Power::new());
        let disks = Disks::new(&power, Place::Inline);
        let volume = settings.create(disks.media(), &mounting()).unwrap();
        let mut newest = Vec::new();
        for round in 1..=40u8 {
            let name = [b'f', round];
            let file = make(&*volume, &name).unwrap();
            let blocks = 40 + random.below(40);
            let bytes = vec![round; blocks as usize * BLOCK];
            for _ in 0..2 {
                // The second time through the log.
                call(|call| volume.write(call, file, 0, &bytes, None)).unwrap();
                call(|call| volume.sync_file(call, file, Durable::All)).unwrap();
            }
            newest.push((name, round, bytes.len()));
            if newest.len() > 3 {
                let (gone, ..) = newest.remove(random.below(3) as usize);
                call(|call| volume.unlink(call, (InodeNumber::ROOT, &gone), None)).unwrap();
            }
        }
        power.cut_after(0);
        drop(volume);
        disks.lose_power(&mut random);
        power.restore();
        let volume = settings.open(disks.media(), &mounting(), Access::IfWhole).unwrap();
        for (name, byte, length) in newest {
            let file = call(|call| volume.lookup(call, (InodeNumber::ROOT, &name), Hold::No)).unwrap().inode;
            let mut read = vec![0; length];
            assert_eq!(call(|call| volume.read(call, file, 0, &mut read)).unwrap().length, length);
            assert!(read.iter().all(|read| *read == byte), "seed {seed}: bytes of another file in {byte}");
        }
    }
}

#[test]
fn it_is_an_option_of_data_journal() {
    let refused = |text: &str| ExtSettings::read(&parse_term(text).unwrap()).unwrap_err().to_string();
    let found = refused("ext:data=ordered,log-data=delayed");
    assert!(found.contains("the bytes of files are not in the journal"), "{found}");
    let found = refused("ext:data=journal,log-data=overwrites,flush=optimistic");
    assert!(found.contains("no checksums outside of the journal"), "{found}");
    for text in [
        "ext:data=journal,log-data=delayed,flush=optimistic",
        "ext:data=journal,log-data=overwrites,flush=barrier",
        "ext:journal=nvm,log-data=delayed",
        "ext:journal=vmm,log-data=overwrites",
    ] {
        ExtSettings::read(&parse_term(text).unwrap()).unwrap();
    }
    // The default mode is ordered where nothing makes it another.
    let found = refused("ext:log-data=delayed");
    assert!(found.contains("add data=journal"), "{found}");
}
