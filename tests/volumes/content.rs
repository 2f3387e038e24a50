//! Data, holes, sizes, times, and lack of space.

use crate::world::{ROOT, World, each, errno};
use flashpath::fs::posix::SetAttributes;
use flashpath::fs::volume::{Allocation, Caller, FileKind, InodeNumber, Seek};
use rustix::io::Errno;

fn seek(world: &World, file: InodeNumber, offset: u64, what: Seek) -> Option<u64> {
    world.root(|posix, call| posix.seek(call, file, offset, what))
}

fn resize(world: &World, file: InodeNumber, size: u64) {
    let wish = SetAttributes { size: Some(size), ..SetAttributes::default() };
    world.root(|posix, call| posix.change(call, file, &wish));
}

#[test]
fn holes_read_as_zeros_and_are_found_by_seek() {
    each(|world| {
        let file = world.file((ROOT, b"f"), 0o644);
        world.write(file, 20_000, &[7; 10_000]);
        let found = world.read(file);
        assert!(found[..20_000].iter().all(|byte| *byte == 0) && found[20_000..] == [7; 10_000]);
        assert_eq!(seek(world, file, 0, Seek::Data), Some(16_384), "{}", world.name);
        assert_eq!(seek(world, file, 17_000, Seek::Hole), Some(30_000), "the end is a hole");
        assert_eq!((seek(world, file, 30_000, Seek::Data), seek(world, file, 40_000, Seek::Hole)), (None, None));
        let allocate = |range, how| world.root(|posix, call| posix.allocate(call, file, range, how));
        allocate((21_000, 6_000), Allocation::Punch);
        let found = world.read(file);
        assert!(found[20_000..21_000] == [7; 1000] && found[21_000..27_000] == [0; 6000]);
        assert!(found[27_000..] == [7; 3000]);
        allocate((28_000, 10_000), Allocation::Zero { keep_size: true });
        assert_eq!(world.read(file)[27_990..], [[7; 10].as_slice(), &[0; 2000]].concat());
        let blocks = world.attributes(file).blocks;
        allocate((1 << 20, 1 << 20), Allocation::Reserve { keep_size: true });
        let reserved = world.attributes(file);
        assert_eq!(reserved.size, 30_000);
        assert!(reserved.blocks >= blocks + 256, "{}: {} and {blocks}", world.name, reserved.blocks);
        allocate((1 << 20, 1 << 20), Allocation::Reserve { keep_size: false });
        assert_eq!(world.attributes(file).size, 2 << 20);
        assert_eq!(seek(world, file, 1 << 20, Seek::Data), None, "reserved blocks are not data");
        resize(world, file, 20_500);
        resize(world, file, 40_000);
        let found = world.read(file);
        assert!(found[20_000..20_500] == [7; 500] && found[20_500..].iter().all(|byte| *byte == 0));
        let nothing = world.by(Caller::ROOT, |posix, call| posix.allocate(call, file, (0, 0), Allocation::Punch));
        assert_eq!(errno(nothing), Some(Errno::INVAL));
        let far = world.by(Caller::ROOT, |posix, call| posix.write(call, file, i64::MAX as u64, b"x", false));
        assert_eq!(errno(far), Some(Errno::FBIG));
        let directory = world.by(Caller::ROOT, |posix, call| posix.write(call, ROOT, 0, b"x", false));
        assert_eq!(errno(directory), Some(Errno::ISDIR));
    });
}

#[test]
fn each_call_sets_the_time_stamps_that_posix_names() {
    each(|world| {
        let directory = world.directory((ROOT, b"d"), 0o755, (0, 0));
        let file = world.file((directory, b"f"), 0o644);
        // True for each of the access, modification and change times that increased.
        let moved = |inode, act: &dyn Fn()| {
            let before = world.attributes(inode).times;
            act();
            let after = world.attributes(inode).times;
            assert_eq!(before.created, after.created);
            [after.accessed > before.accessed, after.modified > before.modified, after.changed > before.changed]
        };
        assert_eq!(moved(file, &|| world.write(file, 0, b"bytes")), [false, true, true], "{}", world.name);
        assert_eq!(moved(file, &|| resize(world, file, 3)), [false, true, true]);
        let read = || {
            let mut bytes = [0; 3];
            world.root(|posix, call| posix.read(call, file, 0, &mut bytes, false));
        };
        assert_eq!(moved(file, &read), [true, false, false]);
        assert_eq!(moved(file, &read), [false, false, false], "once after a change (relatime)");
        let chmod = SetAttributes { mode: Some(0o600), ..SetAttributes::default() };
        let change = || {
            world.root(|posix, call| posix.change(call, file, &chmod));
        };
        assert_eq!(moved(file, &change), [false, false, true]);
        let make = |kind, name: &[u8]| {
            world.make(Caller::ROOT, (directory, name), kind, 0o755).unwrap();
        };
        assert_eq!(moved(directory, &|| make(FileKind::Fifo, b"p")), [false, true, true]);
        assert_eq!(moved(directory, &|| make(FileKind::Directory, b"i")), [false, true, true]);
        let unlink = || world.root(|posix, call| posix.unlink(call, (directory, b"p")));
        assert_eq!(moved(directory, &unlink), [false, true, true]);
        let how =
            flashpath::fs::volume::Renaming { if_exists: flashpath::fs::volume::IfExists::Replace, whiteout: None };
        let rename = || world.root(|posix, call| posix.rename(call, (directory, b"f"), (directory, b"g"), how));
        assert_eq!(moved(file, &rename), [false, false, true]);
        assert_eq!(moved(directory, &|| drop(world.names(directory))), [true, false, false]);
    });
}

#[test]
fn a_full_volume_reports_enospc_and_is_writable_after_a_deletion() {
    each(|world| {
        let file = world.file((ROOT, b"f"), 0o644);
        let bytes = vec![9; 1 << 20];
        let mut written = 0;
        let full = loop {
            match world.by(Caller::ROOT, |posix, call| posix.write(call, file, written, &bytes, false)) {
                Ok(()) => written += bytes.len() as u64,
                Err(error) => break error,
            }
        };
        assert_eq!(full.errno(), Errno::NOSPC, "{}: {full}", world.name);
        assert_eq!(world.attributes(file).size, written, "{}: a failed write leaves the size unchanged", world.name);
        assert!(written > 16 << 20, "{}: {written}", world.name);
        world.root(|posix, call| posix.unlink(call, (ROOT, b"f")));
        let again = world.file((ROOT, b"g"), 0o644);
        world.write(again, 0, &bytes);
        assert!(world.read(again) == bytes);
    });
}
