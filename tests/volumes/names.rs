//! Names: lookup, create, link, rename, unlink, list.

use crate::world::{ROOT, World, each, errno};
use flashpath::fs::posix::CreateRequest;
use flashpath::fs::volume::{Caller, FileKind, Hold, IfExists, InodeNumber, Name, Renaming, VolumeError};
use rustix::io::Errno;

const REPLACE: Renaming = Renaming { if_exists: IfExists::Replace, whiteout: None };

fn rename(world: &World, from: Name, to: Name, how: Renaming) -> Result<(), VolumeError> {
    world.by(Caller::ROOT, |posix, call| posix.rename(call, from, to, how))
}

fn unlink(world: &World, name: Name) -> Result<(), VolumeError> {
    world.by(Caller::ROOT, |posix, call| posix.unlink(call, name))
}

fn remove(world: &World, name: Name) -> Result<(), VolumeError> {
    world.by(Caller::ROOT, |posix, call| posix.remove_directory(call, name))
}

#[test]
fn invalid_names_and_removals_are_refused_with_the_error_number_of_posix() {
    each(|world| {
        let directory = world.directory((ROOT, b"d"), 0o755, (0, 0));
        let file = world.file((directory, b"f"), 0o644);
        let make = |name, kind| errno(world.make(Caller::ROOT, name, kind, 0o644));
        let long = [b'x'; 256];
        for (name, expected) in [
            ((directory, &b"f"[..]), Errno::EXIST),
            ((file, b"x"), Errno::NOTDIR),
            ((directory, b""), Errno::NOENT),
            ((directory, b"."), Errno::INVAL),
            ((directory, b".."), Errno::INVAL),
            ((directory, b"a/b"), Errno::INVAL),
            ((directory, b"a\0b"), Errno::INVAL),
            ((directory, &long), Errno::NAMETOOLONG),
            ((InodeNumber(123_456), b"x"), Errno::NOENT),
        ] {
            assert_eq!(make(name, FileKind::Regular), Some(expected), "{}: {name:?}", world.name);
        }
        assert_eq!(make((directory, &long[..255]), FileKind::Directory), None);
        assert_eq!(errno(unlink(world, (ROOT, b"d"))), Some(Errno::ISDIR));
        assert_eq!(errno(unlink(world, (directory, b"no"))), Some(Errno::NOENT));
        assert_eq!(errno(remove(world, (directory, b"f"))), Some(Errno::NOTDIR));
        assert_eq!(errno(remove(world, (ROOT, b"d"))), Some(Errno::NOTEMPTY));
        assert_eq!(errno(remove(world, (directory, b"."))), Some(Errno::INVAL));
        assert_eq!(errno(remove(world, (directory, b".."))), Some(Errno::NOTEMPTY));
        let link = world.by(Caller::ROOT, |posix, call| posix.link(call, directory, (ROOT, b"e"), Hold::No));
        assert_eq!(errno(link), Some(Errno::PERM), "a directory cannot have a second name");
        let target = [b't'; 4096];
        let made = CreateRequest { kind: FileKind::Symlink, mode: 0o777, device: 0, target: &target };
        let made = world.by(Caller::ROOT, |posix, call| posix.make(call, (ROOT, b"s"), &made, Hold::No));
        assert_eq!(errno(made), Some(Errno::NAMETOOLONG));
        assert_eq!(world.names(ROOT), [b"d"]);
    });
}

#[test]
fn a_rename_replaces_refuses_exchanges_or_leaves_a_whiteout() {
    each(|world| {
        let [one, two] = [b"1", b"2"].map(|name| world.directory((ROOT, name), 0o755, (0, 0)));
        let file = world.file((one, b"f"), 0o644);
        let other = world.file((two, b"g"), 0o644);
        let inner = world.directory((one, b"i"), 0o755, (0, 0));
        let refused = |from, to, how| errno(rename(world, from, to, how));
        let refuse = Renaming { if_exists: IfExists::Refuse, whiteout: None };
        let exchange = Renaming { if_exists: IfExists::Exchange, whiteout: None };
        assert_eq!(refused((one, b"f"), (two, b"g"), refuse), Some(Errno::EXIST));
        assert_eq!(refused((one, b"no"), (two, b"g"), REPLACE), Some(Errno::NOENT));
        assert_eq!(refused((one, b"f"), (two, b"no"), exchange), Some(Errno::NOENT));
        assert_eq!(refused((ROOT, b"1"), (inner, b"x"), REPLACE), Some(Errno::INVAL), "into itself");
        assert_eq!(refused((one, b"i"), (two, b"g"), REPLACE), Some(Errno::NOTDIR));
        assert_eq!(refused((one, b"f"), (ROOT, b"2"), REPLACE), Some(Errno::ISDIR));
        assert_eq!(refused((one, b"i"), (ROOT, b"2"), REPLACE), Some(Errno::NOTEMPTY));
        rename(world, (one, b"f"), (two, b"g"), REPLACE).unwrap();
        assert_eq!((world.find((two, b"g")), world.find((one, b"f"))), (Some(file), None));
        let gone = world.by(Caller::ROOT, |posix, call| posix.attributes(call, other));
        assert_eq!(errno(gone), Some(Errno::NOENT), "{}: the replaced file is freed", world.name);
        assert_eq!((world.attributes(one).links, world.attributes(two).links), (3, 2));
        rename(world, (one, b"i"), (two, b"g"), exchange).unwrap();
        assert_eq!((world.find((two, b"g")), world.find((one, b"i"))), (Some(inner), Some(file)));
        assert_eq!((world.attributes(one).links, world.attributes(two).links), (2, 3));
        assert_eq!(world.find((inner, b"..")), Some(two));
        let whiteout = Renaming { if_exists: IfExists::Replace, whiteout: Some((3, 4)) };
        rename(world, (one, b"i"), (one, b"j"), whiteout).unwrap();
        let left = world.attributes(world.find((one, b"i")).unwrap());
        assert_eq!((left.kind, left.device, left.user, left.group), (FileKind::CharacterDevice, 0, 3, 4));
        rename(world, (one, b"j"), (one, b"j"), REPLACE).unwrap();
        assert_eq!(world.names(one), [b"i", b"j"]);
    });
}

#[test]
fn a_file_without_a_name_exists_until_its_references_are_dropped() {
    each(|world| {
        let before = world.root(|posix, call| posix.space(call)).free_blocks;
        let file = world.file((ROOT, b"f"), 0o644);
        world.root(|posix, call| posix.lookup(call, (ROOT, b"f"), Hold::Yes));
        world.root(|posix, call| posix.link(call, file, (ROOT, b"g"), Hold::Yes));
        assert_eq!(world.attributes(file).links, 2);
        unlink(world, (ROOT, b"f")).unwrap();
        unlink(world, (ROOT, b"g")).unwrap();
        world.write(file, 0, &[5; 100_000]);
        assert_eq!(world.read(file), [5; 100_000]);
        let again = world.by(Caller::ROOT, |posix, call| posix.link(call, file, (ROOT, b"h"), Hold::No));
        assert_eq!(errno(again), Some(Errno::NOENT), "a file without names gets no new one");
        world.root(|posix, call| posix.forget(call, file, 1));
        assert_eq!(world.attributes(file).links, 0);
        world.root(|posix, call| posix.forget(call, file, 1));
        let gone = world.by(Caller::ROOT, |posix, call| posix.attributes(call, file));
        assert_eq!(errno(gone), Some(Errno::NOENT), "{}", world.name);
        world.root(|posix, call| posix.volume().sync(call));
        assert!(world.root(|posix, call| posix.space(call)).free_blocks + 2 >= before, "{}", world.name);
    });
}

#[test]
fn a_listing_in_pages_returns_each_permanent_name_once() {
    each(|world| {
        for number in 0..300 {
            world.file((ROOT, format!("file {number}").as_bytes()), 0o644);
        }
        let (mut from, mut seen, mut page) = (0, Vec::new(), 0);
        loop {
            let before = seen.len();
            world.root(|posix, call| {
                posix.list_with_attributes(call, ROOT, from, &mut |full| {
                    let has_room = seen.len() < before + 7;
                    if has_room {
                        assert_eq!(full.attributes.inode, full.entry.inode);
                        seen.push(full.entry.name.to_vec());
                        from = full.entry.next;
                    }
                    has_room
                })
            });
            if seen.len() == before {
                break;
            }
            // Other names are added and removed meanwhile.
            if page < 30 {
                world.file((ROOT, format!("new {page}").as_bytes()), 0o644);
            }
            if page < 30 && page % 2 == 1 {
                unlink(world, (ROOT, format!("new {}", page - 1).as_bytes())).unwrap();
            }
            page += 1;
        }
        assert_eq!(seen[..2], [&b"."[..], b".."]);
        let mut files: Vec<_> = seen.iter().filter(|name| name.starts_with(b"file ")).collect();
        files.sort();
        files.dedup();
        assert_eq!((files.len(), seen.iter().filter(|name| name.starts_with(b"file ")).count()), (300, 300));
    });
}
