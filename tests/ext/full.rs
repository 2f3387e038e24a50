//! Random calls on a volume that is nearly full, beside a model: a call that fails for want of room has changed nothing.
//!
//! A punch forgot the pages of its range and cleared its ends before it asked for room in the map. No test had it: no work
//! on a full volume was compared with a model. (Crossing: no room x a change in several steps.)

use crate::image::{Image, call};
use flashpath::fs::station::{Access, Mounting};
use flashpath::fs::volume::{Allocation, Change, FileKind, Hold, InodeNumber, Locked, NewFile, Volume, VolumeError};
use flashpath::random::Random;
use flashpath::run::{Path, check_file_system, make_volume, open_file_system};
use std::sync::Arc;

const ROOT: InodeNumber = InodeNumber::ROOT;
const LONGEST: u64 = 600_000;

fn make(volume: &dyn Volume, name: &str) -> InodeNumber {
    let new = NewFile {
        kind: FileKind::Regular,
        permissions: 0o644,
        user: 0,
        group: 0,
        device: 0,
        target: b"",
        attributes: &[],
    };
    call(|call| volume.make(call, (ROOT, name.as_bytes()), &new, Hold::Yes, None)).unwrap().inode
}

fn read(volume: &dyn Volume, file: InodeNumber) -> Vec<u8> {
    let mut bytes = vec![0; 2 * LONGEST as usize];
    let length = call(|call| volume.read(call, file, 0, &mut bytes)).unwrap().length;
    bytes.truncate(length);
    bytes
}

/// Fills what is left, down to the last block, and a map whose extents cannot be joined takes the blocks kept for maps.
fn fill(volume: &dyn Volume, block: u64) {
    let filler = make(volume, "filler");
    for piece in [256 * block, block] {
        let mut at = call(|call| volume.attributes(call, filler)).unwrap().size;
        let how = Allocation::Reserve { keep_size: false };
        while call(|call| volume.allocate(call, filler, (at, piece), how, None)).is_ok() {
            at += piece;
        }
    }
    let holes = make(volume, "holes");
    let mut at = 0;
    while call(|call| volume.allocate(call, holes, (at, block), Allocation::Reserve { keep_size: true }, None)).is_ok()
    {
        at += 2 * block;
    }
    // Punches free no block that can be used before the next commit, and need nodes of the map.
    let mut at = block;
    while at < 2000 * block && call(|call| volume.allocate(call, filler, (at, 1), Allocation::Punch, None)).is_ok() {
        at += 2 * block;
    }
}

/// Answers how many calls found no room.
fn work(options: &str, seed: u64) -> u32 {
    let image = Image::of_bytes(0);
    let text = format!("ext:block=1K/conv:image={},size=16M", image.text());
    make_volume(&Path::read(&text).unwrap(), true, seed, 0, None).unwrap();
    let path = Path::read(&format!("ext{options}/conv:image={}", image.text())).unwrap();
    let volume: Arc<dyn Volume> = open_file_system(&path, &Mounting::at(seed, 0), Access::IfWhole).unwrap();
    let mut random = Random::new(seed, "full");
    let mut files: Vec<(InodeNumber, Vec<u8>)> = Vec::new();
    for number in 0..6 {
        let (file, bytes) = (make(&*volume, &format!("{number}")), vec![number + 1; 300_000]);
        call(|call| volume.write(call, file, 0, &bytes, None)).unwrap();
        files.push((file, bytes));
    }
    fill(&*volume, 1024);
    let mut refused = 0;
    for step in 0..600 {
        let at = random.below(files.len() as u64) as usize;
        let (offset, length) = (random.below(LONGEST), 1 + random.below(60_000));
        let (offset, length) =
            if random.below(3) == 0 { (offset & !1023, length.next_multiple_of(1024)) } else { (offset, length) };
        let (file, model) = &mut files[at];
        let mut wanted = model.clone();
        let size = wanted.len() as u64;
        let within = (offset.min(size) as usize)..((offset + length).min(size) as usize);
        let kind = random.below(6);
        let done: Result<(), VolumeError> = match kind {
            0 => {
                wanted[within].fill(0);
                call(|call| volume.allocate(call, *file, (offset, length), Allocation::Punch, None))
            }
            1 | 2 => {
                let keep_size = kind == 1;
                if !keep_size {
                    wanted.resize(size.max(offset + length) as usize, 0);
                }
                let within =
                    (offset.min(wanted.len() as u64) as usize)..((offset + length).min(wanted.len() as u64) as usize);
                wanted[within].fill(0);
                call(|call| volume.allocate(call, *file, (offset, length), Allocation::Zero { keep_size }, None))
            }
            3 => call(|call| {
                volume.allocate(call, *file, (offset, length), Allocation::Reserve { keep_size: true }, None)
            }),
            4 => {
                wanted.resize(size.max(offset + length) as usize, 0);
                wanted[offset as usize..(offset + length) as usize].fill(step as u8 | 1);
                let bytes = vec![step as u8 | 1; length as usize];
                call(|call| volume.write(call, *file, offset, &bytes, None))
            }
            _ => {
                wanted.resize(offset as usize, 0);
                let mut rule = |_: &mut dyn Locked| Ok(Some(Change { size: Some(offset), ..Change::default() }));
                call(|call| volume.change(call, *file, &mut rule)).map(drop)
            }
        };
        match done {
            Ok(()) => *model = wanted,
            Err(VolumeError::NoSpace { .. }) => refused += 1,
            Err(error) => panic!("{options}, seed {seed}, step {step}: {error}"),
        }
        for (file, model) in &files {
            let found = read(&*volume, *file);
            let what = format!("{options}, seed {seed}, step {step}, call {kind} of {offset} and {length}");
            assert!(found == *model, "{what}: {} bytes, and {} are wanted", found.len(), model.len());
        }
        if random.below(40) == 0 {
            call(|call| volume.sync(call)).unwrap();
        }
    }
    call(|call| volume.unmount(call)).unwrap();
    drop(volume);
    assert_eq!(check_file_system(&path).unwrap(), [], "{options}, seed {seed}");
    image.check();
    refused
}

#[test]
fn a_call_that_finds_no_room_changes_nothing() {
    for options in ["", ":data=writeback", ":data=journal"] {
        let refused: u32 = (0..4).map(|seed| work(options, seed)).sum();
        assert!(refused > 40, "{options}: {refused} calls found no room");
    }
}
