//! A server of one file is killed under a loop device and ext4: a file with an fsync before the kill has the synced
//! version or a later one.
//!
//! Files are overwritten in place, and also written beside their place and renamed. Every sector holds its file and
//! version, as disks write only sectors atomically; ext4 has blocks of 1 KiB here, so that parts of the device's blocks
//! are written. `SERVER_KILL_SECONDS` sets the time for each way of attaching.

use super::bench::Bench;
use super::campaign::Campaign;
use super::serve::{Served, bench_to_mount_in, client, succeeds};
use super::skipped::skipped;
use flashpath::random::Random;
use flashpath_kernel::{LoopDevice, Mount};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const SERVED: &str = "conv:image=a,timing=off";
const SECTOR: usize = 512;
pub const WRITERS: u64 = 3;
/// Files of each writer.
pub const FILES: u64 = 8;
const MOST_SECTORS: u64 = 200;

/// The versions of a file.
#[derive(Clone, Copy, Default)]
pub struct Versions {
    sectors: u64,
    /// The latest version synced before the kill.
    durable: u64,
    /// The latest version begun.
    begun: u64,
    /// The latest version synced at all.
    answered: u64,
}

impl Versions {
    /// No version yet of a file with a random number of sectors.
    pub fn draw(random: &mut Random) -> Versions {
        Versions { sectors: 1 + random.below(MOST_SECTORS), ..Versions::default() }
    }
}

/// A sector of a version of a file.
fn sector(file: u64, version: u64, number: u64) -> Vec<u8> {
    let words = [file, version, number, file.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ version ^ number << 32];
    words.iter().flat_map(|word| word.to_le_bytes()).cycle().take(SECTOR).collect()
}

/// The version of a sector, if it is one of this file.
fn version_of(file: u64, number: u64, bytes: &[u8]) -> Option<u64> {
    let version = u64::from_le_bytes(bytes.get(8..16)?.try_into().ok()?);
    (bytes == sector(file, version, number)).then_some(version)
}

/// Writes a version of a file and fsyncs it.
fn write(place: &Path, file: u64, known: &Versions, beside: bool) -> io::Result<()> {
    let name = place.join(file.to_string());
    let target = if beside { place.join(format!("{file}.new")) } else { name.clone() };
    let target_file = File::options().write(true).create(true).truncate(false).open(&target)?;
    let bytes: Vec<u8> = (0..known.sectors).flat_map(|number| sector(file, known.begun, number)).collect();
    for (number, part) in (0..).zip(bytes.chunks(20 * SECTOR)) {
        target_file.write_all_at(part, number * 20 * SECTOR as u64)?;
    }
    target_file.sync_all()?;
    if beside {
        fs::rename(&target, &name)?;
        File::open(place)?.sync_all()?;
    }
    Ok(())
}

/// One writer's work until its file system fails.
fn keep_writing(
    place: &Path,
    writer: u64,
    mut random: Random,
    files: &Mutex<Vec<Versions>>,
    killed: &AtomicBool,
    synced: &AtomicU64,
) {
    loop {
        let file = writer * FILES + random.below(FILES);
        let known = {
            let known = &mut files.lock().unwrap()[file as usize];
            known.begun += 1;
            *known
        };
        // Overwriting in place keeps the length.
        let beside = file % 2 == 1 || known.begun == 1;
        if write(place, file, &known, beside).is_err() {
            // After the kill every call may fail; an fsync that succeeds is still checked.
            assert!(killed.load(Ordering::SeqCst), "a call failed before the kill");
            if random.below(4) == 0 {
                return;
            }
            continue;
        }
        let mut files = files.lock().unwrap();
        let entry = &mut files[file as usize];
        entry.answered = known.begun;
        // The kill holds the lock.
        if !killed.load(Ordering::SeqCst) {
            entry.durable = known.begun;
        }
        synced.fetch_add(1, Ordering::SeqCst);
    }
}

/// Writes and syncs files in several threads, and kills their server after `most` fsyncs; answers the number of fsyncs.
pub fn write_until_killed(
    (name, seed): (&str, u64),
    place: &Path,
    files: &Mutex<Vec<Versions>>,
    most: u64,
    kill: impl FnOnce(),
) -> u64 {
    let (killed, synced) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (killed, synced) = (&killed, &synced);
                let random = Random::new(seed, &format!("{name} {writer}"));
                scope.spawn(move || keep_writing(place, writer, random, files, killed, synced))
            })
            .collect();
        while synced.load(Ordering::SeqCst) < most && !writers.iter().any(|writer| writer.is_finished()) {
            std::thread::yield_now();
        }
        let files = files.lock().unwrap();
        killed.store(true, Ordering::SeqCst);
        kill();
        drop(files);
    });
    synced.into_inner()
}

/// Checks the files after the kill, and takes their versions for the next round. Returns the number of fsyncs answered
/// after the kill whose version is missing.
pub fn check(place: &Path, files: &mut [Versions], context: &str) -> u64 {
    let mut lost_later = 0;
    for (file, known) in (0..).zip(files.iter_mut()) {
        let bytes = match fs::read(place.join(file.to_string())) {
            Ok(bytes) => bytes,
            Err(error) if known.durable == 0 && error.kind() == io::ErrorKind::NotFound => {
                *known = Versions { sectors: known.sectors, ..Versions::default() };
                continue;
            }
            Err(error) => panic!("{context}: file {file}, version {}: {error}", known.durable),
        };
        let versions: Vec<Option<u64>> =
            (0..).zip(bytes.chunks(SECTOR)).map(|(number, bytes)| version_of(file, number, bytes)).collect();
        // Renamed files are complete.
        let is_one = file % 2 == 0 || versions.iter().all(|version| *version == versions[0]);
        let allowed = known.durable..=known.begun;
        let is_whole = is_one
            && versions.len() as u64 == known.sectors
            && versions.iter().all(|version| version.is_some_and(|version| allowed.contains(&version)));
        assert!(
            is_whole,
            "{context}: file {file} of {} sectors holds versions {versions:?}; {} is durable, {} was answered, {} begun",
            known.sectors, known.durable, known.answered, known.begun
        );
        let oldest = versions.iter().flatten().min().copied().unwrap_or_default();
        lost_later += u64::from(known.answered > known.durable && oldest < known.answered);
        known.durable = oldest;
    }
    lost_later
}

/// The file of a server as a block device.
enum Attached {
    Buffered(LoopDevice),
    /// Without a page cache of its own.
    Direct(String),
}

impl Attached {
    fn new(bench: &Bench, is_direct: bool) -> Option<Attached> {
        if is_direct {
            let losetup = ["--find", "--show", "--direct-io=on", "m/disk"];
            return Some(Attached::Direct(succeeds(client(bench, "losetup")?.args(losetup)).trim().to_string()));
        }
        let file = File::options().read(true).write(true).open(bench.path("m/disk")).unwrap();
        LoopDevice::attach(&file).map(Attached::Buffered).map_err(|error| skipped(&error.to_string())).ok()
    }

    fn path(&self) -> &Path {
        match self {
            Attached::Buffered(device) => device.path(),
            Attached::Direct(path) => Path::new(path),
        }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        if let Attached::Direct(path) = self {
            let _ = std::process::Command::new("losetup").args(["-d", path]).status();
        }
    }
}

/// A file system on a served file. Fields are in the order of dropping.
struct ServedFileSystem {
    mount: Mount,
    device: Attached,
    served: Served,
}

impl ServedFileSystem {
    fn new(bench: &Bench, is_direct: bool, options: &str) -> Option<ServedFileSystem> {
        let served = Served::file(bench, SERVED, &[]);
        let device = Attached::new(bench, is_direct)?;
        let mount = Mount::new(device.path(), "ext4", options, bench.directory.path()).unwrap();
        Some(ServedFileSystem { mount, device, served })
    }
}

fn kill_again_and_again(name: &'static str, is_direct: bool) {
    let Some(bench) = bench_to_mount_in() else { return };
    let (Some(mut mkfs), Some(_)) = (client(&bench, "mkfs.ext4"), client(&bench, "losetup")) else { return };
    File::create(bench.path("a")).unwrap().set_len(64 << 20).unwrap();
    succeeds(mkfs.args(["-q", "-F", "-E", "lazy_itable_init=0", "a"]));
    let mut campaign = Campaign::new(name, "SERVER_KILL_SECONDS");
    let mut random = Random::new(0, name);
    let known = |_| Versions::draw(&mut random);
    let mut files = Mutex::new((0..WRITERS * FILES).map(known).collect::<Vec<_>>());
    let (mut syncs, mut lost_later) = (0, 0);
    while let Some((mut random, seed)) = campaign.round() {
        let options = if random.below(2) == 0 { "discard" } else { "" };
        let Some(ServedFileSystem { mount, device, served }) = ServedFileSystem::new(&bench, is_direct, options) else {
            return;
        };
        let most = random.below(60);
        syncs += write_until_killed((name, seed), mount.path(), &files, most, || served.signal("-KILL"));
        drop((mount, device, served));
        let Some(again) = ServedFileSystem::new(&bench, is_direct, "") else { return };
        lost_later += check(again.mount.path(), files.get_mut().unwrap(), &format!("{name}, seed {seed}"));
    }
    campaign.end(&format!("{syncs} fsyncs, {lost_later} answered after a kill and not there"));
}

#[test]
fn synced_files_on_a_loop_device_survive_a_kill_of_the_server() {
    kill_again_and_again("kills under a loop device", false);
}

#[test]
fn synced_files_on_an_uncached_loop_device_survive_a_kill_of_the_server() {
    kill_again_and_again("kills under a direct loop device", true);
}
