//! Mounts of damaged volumes: a call fails with an error that names the structure, or goes on; nothing panics or runs without
//! end; and a repair makes the volume whole again, whatever was written to it meanwhile.
//!
//! `EXT_DAMAGED` sets the number of damaged volumes of each kind, `EXT_DAMAGED_SEED` the first seed.

use crate::checking::{KINDS, damage, metadata_of, number, repair, worked};
use crate::image::{Image, call, can_mount, has_e2fsprogs, run};
use flashpath::fs::Durable;
use flashpath::fs::station::Access;
use flashpath::fs::volume::{
    Call, Change, FileKind, Hold, IfExists, InodeNumber, Locked, NewFile, Renaming, Volume, VolumeError,
};
use flashpath::random::Random;
use std::fs;

/// More entries than the volume has inodes: a listing that gets there has no end.
const MOST_ENTRIES: usize = 20_000;

/// A file of the volume.
#[derive(Clone)]
struct Found {
    directory: InodeNumber,
    name: Vec<u8>,
    inode: InodeNumber,
    kind: FileKind,
}

/// Notes an error, which must name what is damaged.
fn seen<T>(result: Result<T, VolumeError>, errors: &mut Vec<String>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            if let VolumeError::Damaged { what, why } = &error {
                assert!(!what.is_empty() && !why.is_empty());
                errors.push(error.to_string());
            }
            None
        }
    }
}

/// Reads all that can be reached: names, attributes, extended attributes, bytes.
fn read_all(volume: &dyn Volume, errors: &mut Vec<String>) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    let mut next = vec![(InodeNumber::ROOT, 0)];
    while let Some((directory, depth)) = next.pop() {
        let mut names = Vec::new();
        let listed = call(|call| {
            volume.list(call, directory, 0, &mut |entry| {
                names.push((entry.name.to_vec(), entry.inode, entry.kind));
                names.len() < MOST_ENTRIES
            })
        });
        seen(listed, errors);
        assert!(names.len() < MOST_ENTRIES, "a listing without end");
        for (name, ..) in names.into_iter().filter(|(name, ..)| name != b"." && name != b"..") {
            let Some(file) = seen(call(|call| volume.lookup(call, (directory, &name), Hold::No)), errors) else {
                continue;
            };
            let (inode, kind) = (file.inode, file.kind);
            seen(call(|call| volume.extended_attributes(call, inode)), errors);
            match kind {
                FileKind::Regular => {
                    for at in [0, 4096, file.size.saturating_sub(5000)] {
                        seen(call(|call| volume.read(call, inode, at, &mut [0; 5000])), errors);
                    }
                }
                FileKind::Symlink => drop(seen(call(|call| volume.target(call, inode)), errors)),
                // A damaged directory may be its own ancestor.
                FileKind::Directory if depth < 12 => next.push((inode, depth + 1)),
                _ => {}
            }
            found.push(Found { directory, name, inode, kind });
            assert!(found.len() < MOST_ENTRIES, "names without end");
        }
    }
    found
}

/// Changes files at random.
fn change_some(volume: &dyn Volume, found: &[Found], random: &mut Random, errors: &mut Vec<String>) {
    let new = |kind| NewFile { kind, permissions: 0o644, user: 0, group: 0, device: 0, target: b"", attributes: &[] };
    for number in 0..60 {
        let pick = |random: &mut Random| found[random.below(found.len() as u64) as usize].clone();
        let (one, other) = (pick(random), pick(random));
        let name = format!("new {number}").into_bytes();
        let place = (one.directory, &one.name[..]);
        match random.below(7) {
            0 => drop(seen(
                call(|c| volume.make(c, (one.directory, &name), &new(FileKind::Regular), Hold::No, None)),
                errors,
            )),
            1 => drop(seen(
                call(|c| volume.make(c, (one.directory, &name), &new(FileKind::Directory), Hold::No, None)),
                errors,
            )),
            2 | 3 => {
                let at = random.below(100_000);
                seen(call(|c| volume.write(c, one.inode, at, &[7; 3000], None)), errors);
            }
            4 => {
                let is_directory = one.kind == FileKind::Directory;
                let remove = |c: &Call| match is_directory {
                    true => volume.remove_directory(c, place, None),
                    false => volume.unlink(c, place, None),
                };
                seen(call(remove), errors);
            }
            5 => {
                let how = Renaming { if_exists: IfExists::Replace, whiteout: None };
                seen(call(|c| volume.rename(c, place, (other.directory, &name), how, None)), errors);
            }
            _ => {
                let size = random.below(50_000);
                let mut change = |_: &mut dyn Locked| Ok(Some(Change { size: Some(size), ..Change::default() }));
                seen(call(|c| volume.change(c, one.inode, &mut change)), errors);
            }
        }
        if random.below(10) == 0 {
            seen(call(|c| volume.sync_file(c, one.inode, Durable::All)), errors);
        }
    }
    seen(call(|call| volume.sync(call)), errors);
}

fn damaged_mounts(kind: usize) {
    if !has_e2fsprogs() {
        return;
    }
    let (count, seed) = (number("EXT_DAMAGED", 24), number("EXT_DAMAGED_SEED", 17));
    let image = worked(KINDS[kind], 600);
    let whole = fs::read(image.path()).unwrap();
    let places = metadata_of(&whole);
    let (mut mounted, mut with_errors) = (0, 0);
    for number in 0..count {
        let mut random = Random::new(seed + number, "damaged mounts");
        fs::write(image.path(), &whole).unwrap();
        let what: Vec<String> = (0..1 + random.below(4)).map(|_| damage(&image, &places, &mut random)).collect();
        let what = format!("{}: {}", seed + number, what.join("; "));
        let mut errors = Vec::new();
        if let Ok(volume) = image.open("", Access::IfWhole) {
            mounted += 1;
            let found = read_all(&*volume, &mut errors);
            if !found.is_empty() {
                change_some(&*volume, &found, &mut random, &mut errors);
            }
            let _ = call(|call| volume.unmount(call));
        }
        with_errors += u64::from(!errors.is_empty());
        let outcome = repair(&image);
        let left = image.findings();
        let is_whole = outcome.as_ref().is_some_and(|outcome| outcome.left.is_empty()) && left.is_none();
        assert!(is_whole, "{:?}, {what}\n  errors {errors:?}\n  repair {outcome:?}\n  e2fsck {left:?}", KINDS[kind]);
    }
    assert!(mounted > count / 4 && with_errors > 0, "of {count} {mounted} were mounted, {with_errors} with errors");
}

#[test]
fn a_damaged_volume_with_checksums_is_mounted_without_harm() {
    damaged_mounts(0);
}

#[test]
fn a_damaged_volume_without_checksums_is_mounted_without_harm() {
    damaged_mounts(1);
}

#[test]
fn a_damaged_volume_of_ext3_is_mounted_without_harm() {
    damaged_mounts(2);
}

/// A volume with a file whose inode is damaged: a read finds it.
fn found_damage(on_errors: &str) -> (Image, std::sync::Arc<dyn Volume>) {
    let image = Image::of_bytes(16 << 20);
    image.mke2fs(&["-t", "ext4", "-e", on_errors]);
    fs::write(image.path().with_file_name("source"), [1; 9000]).unwrap();
    image.debugfs(&format!("write {} file", image.path().with_file_name("source").display()));
    image.debugfs("set_inode_field file block[0] 0");
    let volume = image.volume("", Access::IfWhole);
    let file = call(|call| volume.lookup(call, (InodeNumber::ROOT, b"file"), Hold::No)).unwrap().inode;
    let read = call(|call| volume.read(call, file, 0, &mut [0; 4096])).map(drop);
    assert!(matches!(read, Err(VolumeError::Damaged { .. })), "{read:?}");
    (image, volume)
}

fn make_one(volume: &dyn Volume) -> Result<(), VolumeError> {
    let kind = FileKind::Regular;
    let new = NewFile { kind, permissions: 0o644, user: 0, group: 0, device: 0, target: b"", attributes: &[] };
    call(|call| volume.make(call, (InodeNumber::ROOT, b"new"), &new, Hold::No, None)).map(drop)
}

#[test]
fn damage_that_a_call_finds_is_noted_in_the_superblock_and_ends_writing_if_the_volume_says_so() {
    if !can_mount() {
        return;
    }
    let (image, volume) = found_damage("continue");
    make_one(&*volume).unwrap();
    call(|call| volume.unmount(call)).unwrap();
    let shown = String::from_utf8(run("dumpe2fs", &["-h", &image.text()]).stdout).unwrap();
    assert!(shown.contains("clean with errors"), "{shown}");

    let (image, volume) = found_damage("remount-ro");
    let refused = make_one(&*volume);
    assert!(matches!(&refused, Err(VolumeError::ReadOnly(why)) if why.contains("remount-ro")), "{refused:?}");
    assert!(call(|call| volume.unmount(call)).is_err(), "what waited could not be stored");
    drop(volume);
    let error = image.open("", Access::IfWhole).map(|volume| make_one(&*volume));
    assert!(matches!(&error, Ok(Err(VolumeError::ReadOnly(_)))), "errors are noted: {error:?}");
    assert!(repair(&image).is_some_and(|outcome| outcome.left.is_empty()));
    image.check();
    make_one(&*image.volume("", Access::IfWhole)).unwrap();
}
