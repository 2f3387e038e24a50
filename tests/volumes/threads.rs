//! Real threads on one volume: each in its own directory, where the outcome is determined, and all in a shared one,
//! whose final state must be consistent.

use crate::remounts::on_images;
use crate::world::{ROOT, World};
use flashpath::fs::station::Access;
use flashpath::fs::volume::{Caller, FileKind, IfExists, InodeNumber, Renaming};
use flashpath::random::Random;
use flashpath::run::{Path, check_file_system, make_volume};
use std::collections::BTreeMap;

const THREADS: u64 = 4;
const STEPS: u64 = 400;

/// The files that a thread left in its own directory: bytes by name.
type Left = BTreeMap<Vec<u8>, Vec<u8>>;

/// Works in `own`, used by this thread only, and in `shared`, used by all.
fn work(world: &World, thread: u64, own: InodeNumber, shared: InodeNumber) -> Left {
    let mut random = Random::new(thread, "threads on a volume");
    let mut left = Left::new();
    let how = Renaming { if_exists: IfExists::Replace, whiteout: None };
    for step in 0..STEPS {
        let name = format!("file {}", random.below(12)).into_bytes();
        let other = format!("file {}", random.below(12)).into_bytes();
        match random.below(6) {
            0 | 1 => {
                let (offset, length) = (random.below(30_000), random.below(20_000) as usize + 1);
                let file = world.find((own, &name)).unwrap_or_else(|| world.file((own, &name), 0o644));
                world.write(file, offset, &vec![step as u8; length]);
                let bytes = left.entry(name).or_default();
                let end = offset as usize + length;
                bytes.resize(bytes.len().max(end), 0);
                bytes[offset as usize..end].fill(step as u8);
            }
            2 => {
                let gone = world.by(Caller::ROOT, |posix, call| posix.unlink(call, (own, &name)));
                assert_eq!(gone.is_ok(), left.remove(&name).is_some(), "{}", world.name);
            }
            3 => {
                let moved = world.by(Caller::ROOT, |posix, call| posix.rename(call, (own, &name), (own, &other), how));
                assert_eq!(moved.is_ok(), left.contains_key(&name), "{}", world.name);
                if name != other
                    && let Some(bytes) = left.remove(&name)
                {
                    left.insert(other, bytes);
                }
            }
            // In the shared directory, other threads may have been first.
            4 => drop(world.make(Caller::ROOT, (shared, &name), FileKind::Regular, 0o644)),
            _ => {
                let _ = world.by(Caller::ROOT, |posix, call| match step % 3 {
                    0 => posix.unlink(call, (shared, &name)),
                    1 => posix.rename(call, (shared, &name), (shared, &other), how),
                    _ => posix.volume().work(call).map(drop),
                });
            }
        }
        if step % 50 == thread {
            world.root(|posix, call| posix.volume().sync(call));
        }
    }
    left
}

/// Runs all threads, then checks each thread's own files, and the consistency of the shared directory.
fn run(world: &World) {
    let links = u64::from(world.attributes(ROOT).links);
    let shared = world.directory((ROOT, b"shared"), 0o755, (0, 0));
    let own: Vec<InodeNumber> =
        (0..THREADS).map(|thread| world.directory((ROOT, &[b'0' + thread as u8]), 0o755, (0, 0))).collect();
    let left: Vec<Left> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            own.iter().zip(0..).map(|(own, thread)| scope.spawn(move || work(world, thread, *own, shared))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for (directory, left) in own.iter().zip(&left) {
        assert_eq!(world.names(*directory), left.keys().cloned().collect::<Vec<_>>(), "{}", world.name);
        for (name, bytes) in left {
            assert!(world.read(world.find((*directory, name)).unwrap()) == *bytes, "{}: {name:?}", world.name);
        }
    }
    for name in world.names(shared) {
        let file = world.find((shared, &name)).expect("each listed name is found");
        assert_eq!(world.attributes(file).links, 1, "{}", world.name);
    }
    assert_eq!(u64::from(world.attributes(ROOT).links), links + 1 + THREADS);
}

#[test]
fn threads_lose_no_file_of_their_own_and_leave_the_shared_directory_consistent() {
    crate::world::each(run);
}

/// `ext` took a file out of its table by number after the inode was free: the number was another thread's new file by
/// then, whose bytes were lost.
#[test]
fn an_inode_that_one_thread_frees_holds_the_bytes_of_the_next_thread_that_takes_it() {
    const ROUNDS: u64 = 1500;
    crate::world::each(|world| {
        let own: Vec<InodeNumber> =
            (0..THREADS).map(|thread| world.directory((ROOT, &[b'0' + thread as u8]), 0o755, (0, 0))).collect();
        std::thread::scope(|scope| {
            for (directory, thread) in own.into_iter().zip(0..) {
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let byte = (round * THREADS + thread) as u8;
                        let file = world.file((directory, b"file"), 0o644);
                        world.write(file, 0, &[byte; 100]);
                        // Others free and take inodes meanwhile.
                        std::thread::yield_now();
                        assert_eq!(world.read(file), [byte; 100], "{}: round {round}", world.name);
                        world.root(|posix, call| posix.unlink(call, (directory, b"file")));
                    }
                });
            }
        });
    });
}

#[test]
fn a_volume_used_by_threads_passes_its_check() {
    let place = tempfile::tempdir().unwrap();
    for text in on_images(place.path()) {
        let path = Path::read(&text).unwrap();
        make_volume(&path, false, 3, 0, None).unwrap();
        let world = World::opened(&text, Access::IfWhole, 0);
        run(&world);
        world.unmount();
        drop(world);
        assert_eq!(check_file_system(&path).unwrap(), [], "{text}");
    }
}
