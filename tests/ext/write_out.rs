//! What waits of files is written out in pieces: by the background work from half of `dirty=` on, by a writer who comes to
//! the whole of it.

use crate::crashes::{BLOCK, findings, image_of, mounting};
use crate::image::{call, has_e2fsprogs};
use crate::power_cut::{Disk, Power};
use flashpath::device::Medium;
use flashpath::expression::parse_term;
use flashpath::fs::Durable;
use flashpath::fs::ext::ExtSettings;
use flashpath::fs::station::{Access, StoredVolumes, VolumeSettings};
use flashpath::fs::volume::{FileKind, Hold, InodeNumber, NewFile, Volume, VolumeError};
use flashpath::label::{Cause, Content};
use flashpath::random::Random;
use flashpath::run::{Path, simulated_file_system};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a piece.
const PIECE: u64 = 4 << 20;
/// Bytes of a write.
const STEP: u64 = 256 << 10;

fn file(volume: &dyn Volume, name: &[u8]) -> Result<InodeNumber, VolumeError> {
    let kind = FileKind::Regular;
    let new = NewFile { kind, permissions: 0o644, user: 0, group: 0, device: 0, target: b"", attributes: &[] };
    Ok(call(|call| volume.make(call, (InodeNumber::ROOT, name), &new, Hold::No, None))?.inode)
}

/// Writes steps of a file's range.
fn fill(volume: &dyn Volume, file: InodeNumber, range: Range<u64>) {
    for at in range.step_by(STEP as usize) {
        call(|call| volume.write(call, file, at, &[7; STEP as usize], None)).unwrap();
    }
}

/// Bytes of files that were sent to the device.
fn sent(volume: &dyn Volume) -> u64 {
    let account = call(|call| volume.account(call)).unwrap();
    account.sent.get(Cause::HostWrite, Content::Data) * BLOCK as u64
}

/// Does all background work that is due now.
fn work(volume: &dyn Volume) {
    while call(|call| volume.work(call)).unwrap().is_some_and(|at| at.0 == 0) {}
}

fn volume() -> Arc<dyn Volume> {
    simulated_file_system(&Path::read("ext:dirty=16M/conv:size=128M,timing=off").unwrap(), 3).unwrap()
}

#[test]
fn half_of_what_may_wait_is_written_out_in_the_background() {
    let volume = volume();
    let large = file(&*volume, b"large").unwrap();
    fill(&*volume, large, 0..8 << 20);
    work(&*volume);
    assert_eq!(sent(&*volume), 0, "half may wait");
    fill(&*volume, large, 8 << 20..13 << 20);
    work(&*volume);
    assert_eq!(sent(&*volume), 2 * PIECE, "13 MiB waited, 8 MiB may: two pieces, and no more");
    fill(&*volume, large, 13 << 20..17 << 20);
    work(&*volume);
    assert_eq!(sent(&*volume), 3 * PIECE, "9 MiB waited: one piece");
    call(|call| volume.sync_file(call, large, Durable::All)).unwrap();
    assert_eq!(sent(&*volume), 17 << 20, "each block once");
}

#[test]
fn small_files_are_written_out_in_the_background_the_oldest_first() {
    let volume = volume();
    let files: Vec<InodeNumber> = (0..36).map(|n| file(&*volume, format!("{n}").as_bytes()).unwrap()).collect();
    files.iter().for_each(|file| fill(&*volume, *file, 0..STEP));
    work(&*volume);
    assert_eq!(sent(&*volume), 4 * STEP, "9 MiB waited, 8 MiB may");
    // A file that is stored has nothing to sync.
    let flushed_by_sync = |file| {
        call(|call| volume.sync_file(call, file, Durable::All)).unwrap();
        sent(&*volume)
    };
    assert_eq!(flushed_by_sync(files[0]), 4 * STEP);
    assert_eq!(flushed_by_sync(files[3]), 4 * STEP);
    assert_eq!(flushed_by_sync(files[4]), 5 * STEP);
}

#[test]
fn a_writer_who_comes_to_the_limit_writes_out_a_piece_and_not_all() {
    let volume = volume();
    let large = file(&*volume, b"large").unwrap();
    fill(&*volume, large, 0..16 << 20);
    assert_eq!(sent(&*volume), 0);
    fill(&*volume, large, 16 << 20..(16 << 20) + STEP);
    assert_eq!(sent(&*volume), PIECE);
    // What is written again behind it does not keep the rest waiting.
    fill(&*volume, large, 0..PIECE);
    assert_eq!(sent(&*volume), 2 * PIECE);
    call(|call| volume.sync_file(call, large, Durable::All)).unwrap();
    assert_eq!(sent(&*volume), (16 << 20) + STEP + PIECE, "each write once");
}

/// The byte of a file at this offset; never zero, and never one of the file that had the blocks before.
fn byte(at: u64) -> u8 {
    (at / 512 * 7) as u8 | 1
}

/// Appends to a file beside the background work. Syncs it once, and notes how long it was then.
fn append(volume: &dyn Volume, random: &mut Random, synced: &mut u64) -> Result<(), VolumeError> {
    let file = file(volume, b"new")?;
    let synced_at = random.below(60);
    for step in 0..80 {
        // Not whole blocks: the last one is written again.
        let at = step * (STEP - 1000);
        let bytes: Vec<u8> = (at..at + STEP - 1000).map(byte).collect();
        call(|call| volume.write(call, file, at, &bytes, None))?;
        call(|call| volume.work(call))?;
        if step == synced_at {
            call(|call| volume.sync_file(call, file, Durable::All))?;
            *synced = at + bytes.len() as u64;
        }
    }
    call(|call| volume.sync(call))
}

/// The length of the file after the cut, if it is there. All its bytes are those that were written.
fn check_appended(volume: &dyn Volume, what: &str) -> u64 {
    let found = match call(|call| volume.lookup(call, (InodeNumber::ROOT, b"new"), Hold::No)) {
        Ok(found) => found,
        Err(VolumeError::NotFound) => return 0,
        Err(error) => panic!("{what}: {error}"),
    };
    let mut bytes = vec![0; found.size as usize];
    assert_eq!(call(|call| volume.read(call, found.inode, 0, &mut bytes)).unwrap().length, bytes.len());
    let wrong = bytes.iter().zip(0..).find(|(found, at)| **found != byte(*at));
    assert!(wrong.is_none(), "{what}: of {} bytes: {wrong:?}", bytes.len());
    found.size
}

/// Power is cut while a file is written out in pieces, in blocks that another file had.
#[test]
fn after_a_cut_of_power_a_file_that_was_written_out_in_pieces_has_its_bytes_up_to_its_end() {
    const BLOCKS: u64 = 64 << 8;
    let settings = ExtSettings::read(&parse_term("ext:dirty=12M").unwrap()).unwrap();
    let (mut cuts, mut lengths) = (0, BTreeSet::new());
    for seed in 0..16 {
        let what = format!("seed {seed}");
        let mut random = Random::new(seed, "pieces");
        let power = Power::new();
        let disk = Disk::new(&power, BLOCKS, 0);
        let media = || vec![Medium::Blocks(Box::new(disk.clone()))];
        let volume = settings.create(media(), &mounting()).unwrap();
        let old = file(&*volume, b"old").unwrap();
        for at in (0..24 << 20).step_by(STEP as usize) {
            call(|call| volume.write(call, old, at, &[0xEE; STEP as usize], None)).unwrap();
        }
        call(|call| volume.sync(call)).unwrap();
        call(|call| volume.unlink(call, (InodeNumber::ROOT, b"old"), None)).unwrap();
        call(|call| volume.sync(call)).unwrap();
        let mut synced = 0;
        power.cut_after(random.below(60));
        cuts += u32::from(append(&*volume, &mut random, &mut synced).is_err());
        drop(volume);
        disk.lose_power(&mut random);
        power.restore();
        let volume = settings.open(media(), &mounting(), Access::IfWhole).unwrap_or_else(|error| panic!("{error}"));
        let length = check_appended(&*volume, &what);
        assert!(length >= synced, "{what}: {synced} bytes were synced, and {length} are there");
        lengths.insert(length);
        call(|call| volume.unmount(call)).unwrap();
        drop(volume);
        if has_e2fsprogs()
            && let Some(findings) = findings(&(image_of(&disk, BLOCKS), None))
        {
            panic!("{what}: e2fsck -fn: {findings}");
        }
    }
    assert!(cuts >= 4 && lengths.len() >= 4, "{cuts} cuts left lengths of {lengths:?}");
}
