//! Random calls of one thread: sfs returns the same results as `tree`, over syncs and remounts, and leaves the same
//! files with the same time stamps.

use crate::remounts::on_images;
use crate::world::{ROOT, World, errno};
use flashpath::fs::Durable;
use flashpath::fs::posix::{CreateRequest, Posix, SetAttributes};
use flashpath::fs::station::Access;
use flashpath::fs::volume::{
    Allocation, Attributes, Call, Caller, FileKind, Hold, IfExists, InodeNumber, Renaming, VolumeError,
};
use flashpath::run::{Path, check_file_system, make_volume};
use proptest::prelude::*;
use rustix::io::Errno;

/// A name in one of few directories: `DIRECTORIES[.0]` and `NAMES[.1]`.
type Place = (usize, usize);

const DIRECTORIES: [&[&[u8]]; 4] = [&[], &[b"a"], &[b"a", b"b"], &[b"c"]];
const NAMES: [&[u8]; 6] = [b"a", b"b", b"c", b"file", b"..", b"a name that is longer than the others"];

/// A call.
#[derive(Clone, Debug)]
enum Op {
    Make(Place, FileKind, u32),
    Link(Place, Place),
    Unlink(Place),
    RemoveDirectory(Place),
    Rename(Place, Place, IfExists, bool),
    Write(Place, u64, usize),
    Read(Place, u64, usize),
    Allocate(Place, u64, u64, Allocation),
    Change(Place, SetAttributes),
    SetAttribute(Place, usize, Option<bool>),
    RemoveAttribute(Place),
    SyncFile(Place),
    Sync,
    Remount,
}

fn place() -> impl Strategy<Value = Place> {
    (0..DIRECTORIES.len(), prop_oneof![8 => 0..4usize, 1 => 4..NAMES.len()])
}

fn op() -> impl Strategy<Value = Op> {
    let kind = prop_oneof![
        4 => Just(FileKind::Regular),
        4 => Just(FileKind::Directory),
        1 => Just(FileKind::Symlink),
        1 => Just(FileKind::Fifo)
    ];
    let taken = prop_oneof![2 => Just(IfExists::Replace), 1 => Just(IfExists::Refuse), 1 => Just(IfExists::Exchange)];
    let how = prop_oneof![
        any::<bool>().prop_map(|keep_size| Allocation::Reserve { keep_size }),
        any::<bool>().prop_map(|keep_size| Allocation::Zero { keep_size }),
        Just(Allocation::Punch)
    ];
    let wish = (0..4u8, 0u32..0o10000, 0u64..40_000).prop_map(|(what, mode, size)| match what {
        0 => SetAttributes { mode: Some(mode), ..SetAttributes::default() },
        1 => SetAttributes { user: Some(mode), group: Some(3), ..SetAttributes::default() },
        _ => SetAttributes { size: Some(size), ..SetAttributes::default() },
    });
    prop_oneof![
        6 => (place(), kind, 0u32..0o10000).prop_map(|(place, kind, mode)| Op::Make(place, kind, mode)),
        2 => (place(), place()).prop_map(|(of, place)| Op::Link(of, place)),
        3 => place().prop_map(Op::Unlink),
        2 => place().prop_map(Op::RemoveDirectory),
        5 => (place(), place(), taken, any::<bool>()).prop_map(|(from, to, taken, white)| Op::Rename(from, to, taken, white)),
        6 => (place(), 0u64..30_000, 0usize..12_000).prop_map(|(place, offset, length)| Op::Write(place, offset, length)),
        2 => (place(), 0u64..40_000, 0usize..12_000).prop_map(|(place, offset, length)| Op::Read(place, offset, length)),
        2 => (place(), 0u64..40_000, 0u64..12_000, how)
            .prop_map(|(place, offset, length, how)| Op::Allocate(place, offset, length, how)),
        4 => (place(), wish).prop_map(|(place, wish)| Op::Change(place, wish)),
        2 => (place(), 0usize..6000, any::<Option<bool>>())
            .prop_map(|(place, length, exists)| Op::SetAttribute(place, length, exists)),
        1 => place().prop_map(Op::RemoveAttribute),
        1 => place().prop_map(Op::SyncFile),
        1 => Just(Op::Sync),
        1 => Just(Op::Remount),
    ]
}

/// The part of a result that two file systems have in common.
#[derive(Debug, PartialEq)]
enum Answer {
    Failed(Errno),
    Done,
    Known(Seen),
    Bytes(Vec<u8>),
}

/// Attributes of a file, except those that depend on the file system.
type Seen = (FileKind, u16, u32, (u32, u32), u64, flashpath::fs::volume::Times);

fn seen(attributes: &Attributes) -> Seen {
    let Attributes { kind, permissions, links, user, group, size, times, .. } = *attributes;
    (kind, permissions, links, (user, group), if kind == FileKind::Directory { 0 } else { size }, times)
}

fn directory(posix: &Posix, call: &Call, place: Place) -> Result<InodeNumber, VolumeError> {
    DIRECTORIES[place.0]
        .iter()
        .try_fold(ROOT, |at, name| Ok(posix.lookup(call, (at, name), Hold::No)?.ok_or(VolumeError::NotFound)?.inode))
}

fn file(posix: &Posix, call: &Call, place: Place) -> Result<InodeNumber, VolumeError> {
    let name = (directory(posix, call, place)?, NAMES[place.1]);
    Ok(posix.lookup(call, name, Hold::No)?.ok_or(VolumeError::NotFound)?.inode)
}

fn ask(posix: &Posix, call: &Call, op: &Op, step: usize) -> Result<Answer, VolumeError> {
    let done = |()| Answer::Done;
    let known = |attributes: Attributes| Answer::Known(seen(&attributes));
    let name = |place: Place| Ok::<_, VolumeError>((directory(posix, call, place)?, NAMES[place.1]));
    match op {
        Op::Make(place, kind, mode) => {
            let target: &[u8] = if *kind == FileKind::Symlink { b"where/it/points" } else { b"" };
            let made = CreateRequest { kind: *kind, mode: *mode, device: 0, target };
            posix.make(call, name(*place)?, &made, Hold::No).map(known)
        }
        Op::Link(of, place) => posix.link(call, file(posix, call, *of)?, name(*place)?, Hold::No).map(known),
        Op::Unlink(place) => posix.unlink(call, name(*place)?).map(done),
        Op::RemoveDirectory(place) => posix.remove_directory(call, name(*place)?).map(done),
        Op::Rename(from, to, taken, leaves) => {
            let how = Renaming { if_exists: *taken, whiteout: leaves.then_some((1, 2)) };
            posix.rename(call, name(*from)?, name(*to)?, how).map(done)
        }
        Op::Write(place, offset, length) => {
            posix.write(call, file(posix, call, *place)?, *offset, &vec![step as u8 | 1; *length], false).map(done)
        }
        Op::Read(place, offset, length) => {
            let mut bytes = vec![9; *length];
            let length = posix.read(call, file(posix, call, *place)?, *offset, &mut bytes, false)?;
            bytes.truncate(length);
            Ok(Answer::Bytes(bytes))
        }
        Op::Allocate(place, offset, length, how) => {
            posix.allocate(call, file(posix, call, *place)?, (*offset, *length), *how).map(done)
        }
        Op::Change(place, wish) => posix.change(call, file(posix, call, *place)?, wish).map(known),
        Op::SetAttribute(place, length, exists) => {
            let value = vec![step as u8; *length];
            posix.set_extended_attribute(call, file(posix, call, *place)?, b"user.a", &value, *exists).map(done)
        }
        Op::RemoveAttribute(place) => {
            posix.remove_extended_attribute(call, file(posix, call, *place)?, b"user.a").map(done)
        }
        Op::SyncFile(place) => posix.sync_file(call, file(posix, call, *place)?, Durable::All).map(done),
        Op::Sync => posix.volume().sync(call).map(done),
        Op::Remount => Ok(Answer::Done),
    }
}

fn answer(world: &World, op: &Op, step: usize) -> Answer {
    world
        .by(Caller::ROOT, |posix, call| ask(posix, call, op, step))
        .unwrap_or_else(|error| Answer::Failed(error.errno()))
}

/// Collects a file and everything below it, by path.
fn walk(world: &World, inode: InodeNumber, path: &str, found: &mut Vec<(String, Seen, Vec<u8>, Vec<u8>)>) {
    let attributes = world.attributes(inode);
    let bytes = match attributes.kind {
        FileKind::Regular => world.read(inode),
        FileKind::Symlink => world.root(|posix, call| posix.volume().target(call, inode)).0,
        _ => Vec::new(),
    };
    let value = world.by(Caller::ROOT, |posix, call| posix.extended_attribute(call, inode, b"user.a"));
    found.push((path.to_string(), seen(&attributes), bytes, value.unwrap_or_default()));
    if attributes.kind == FileKind::Directory {
        let mut names = Vec::new();
        // On the volume itself, so that reading does not update the access time.
        world.root(|posix, call| {
            posix.volume().list(call, inode, 0, &mut |entry| {
                if !entry.is_dot() {
                    names.push((entry.name.to_vec(), entry.inode));
                }
                true
            })
        });
        names.sort();
        for (name, inode) in names {
            walk(world, inode, &format!("{path}/{}", String::from_utf8_lossy(&name)), found);
        }
    }
}

fn all(world: &World) -> Vec<(String, Seen, Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    walk(world, ROOT, "", &mut found);
    found
}

fn compare(text: &str, ops: &[Op]) {
    let path = Path::read(text).unwrap();
    make_volume(&path, true, 3, 1_000_000_000, Some((0, 0))).unwrap();
    let tree = World::new("tree:size=64M");
    let mut sfs = World::opened(text, Access::IfWhole, 0);
    for (step, op) in ops.iter().enumerate() {
        if let Op::Remount = op {
            sfs.unmount();
            let now = sfs.now();
            drop(sfs);
            assert_eq!(check_file_system(&path).unwrap(), [], "{text}, step {step}");
            sfs = World::opened(text, Access::IfWhole, now);
        }
        tree.go_to(sfs.now());
        assert_eq!(answer(&sfs, op, step), answer(&tree, op, step), "{text}, step {step}: {op:?}");
    }
    let [mut ours, mut model] = [all(&sfs), all(&tree)];
    // The roots were created at different times.
    (ours[0].1.5, model[0].1.5) = Default::default();
    assert_eq!(ours, model, "{text}");
    sfs.unmount();
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("VOLUME_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(24),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn sfs_returns_the_same_results_as_tree(ops in proptest::collection::vec(op(), 1..120)) {
        let place = tempfile::tempdir().unwrap();
        for text in on_images(place.path()) {
            compare(&text, &ops);
        }
    }
}

#[test]
fn a_different_error_number_is_detected() {
    let (one, other) = (World::new("tree:size=1M"), World::new("tree:size=1M"));
    one.file((ROOT, b"file"), 0o644);
    let op = Op::Unlink((0, 3));
    assert_ne!(answer(&one, &op, 0), answer(&other, &op, 0));
    assert_eq!(errno(one.by(Caller::ROOT, |posix, call| ask(posix, call, &op, 0))), Some(Errno::NOENT));
}
