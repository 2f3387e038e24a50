//! All files of a volume, and all files of a directory of the system, in one form: what differs is the volume's fault.

use crate::image::call;
use flashpath::fs::volume::{FileKind, Hold, InodeNumber, Volume};
use rustix::fs::{lgetxattr, llistxattr};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// The known state of a file.
#[derive(Debug, PartialEq, Eq, Clone)]
pub struct Seen {
    pub kind: FileKind,
    pub permissions: u16,
    pub links: u32,
    pub owner: (u32, u32),
    pub device: u64,
    pub size: u64,
    pub blocks: u64,
    /// Modified and changed.
    pub times: [i64; 2],
    /// A hash of its bytes, or its target.
    pub content: Vec<u8>,
    pub attributes: BTreeMap<Vec<u8>, Vec<u8>>,
}

pub type Tree = BTreeMap<Vec<u8>, Seen>;

fn hashed(bytes: &[u8], so_far: u32) -> u32 {
    crc32c::crc32c_append(so_far, bytes)
}

/// All files below the root of a volume.
pub fn of_volume(volume: &dyn Volume) -> Tree {
    let mut tree = Tree::new();
    walk_volume(volume, InodeNumber::ROOT, b"", &mut tree);
    tree
}

fn walk_volume(volume: &dyn Volume, directory: InodeNumber, path: &[u8], tree: &mut Tree) {
    let mut names = Vec::new();
    // A few at a time, as a front end does.
    let mut from = 0;
    loop {
        let mut left = 17;
        let before = from;
        let listed = call(|call| {
            volume.list(call, directory, from, &mut |entry| {
                left -= 1;
                if left > 0 {
                    from = entry.next;
                    if !entry.is_dot() {
                        names.push((entry.name.to_vec(), entry.inode, entry.kind));
                    }
                }
                left > 0
            })
        });
        listed.unwrap_or_else(|error| panic!("{}: {error}", String::from_utf8_lossy(path)));
        if from == before {
            break;
        }
    }
    for (name, inode, kind) in names {
        let path = [path, b"/", &name].concat();
        let found = call(|call| volume.lookup(call, (directory, &name), Hold::No));
        let found = found.unwrap_or_else(|error| panic!("{}: {error}", String::from_utf8_lossy(&path)));
        assert_eq!((found.inode, found.kind), (inode, kind), "{}", String::from_utf8_lossy(&path));
        if kind == FileKind::Directory {
            walk_volume(volume, inode, &path, tree);
        }
        let seen = seen_in_volume(volume, inode);
        let seen = seen.unwrap_or_else(|error| panic!("{}: {error}", String::from_utf8_lossy(&path)));
        assert!(tree.insert(path.clone(), seen).is_none(), "{} is listed twice", String::from_utf8_lossy(&path));
    }
}

fn seen_in_volume(volume: &dyn Volume, inode: InodeNumber) -> Result<Seen, flashpath::fs::volume::VolumeError> {
    call(|call| {
        let found = volume.attributes(call, inode)?;
        let content = match found.kind {
            FileKind::Symlink => volume.target(call, inode)?.0,
            FileKind::Regular => {
                // In pieces that are no whole blocks.
                let (mut buffer, mut at, mut hash) = (vec![0; 1_000_003], 0, 0);
                loop {
                    let length = volume.read(call, inode, at, &mut buffer)?.length;
                    if length == 0 {
                        break;
                    }
                    hash = hashed(&buffer[..length], hash);
                    at += length as u64;
                }
                hash.to_le_bytes().to_vec()
            }
            _ => Vec::new(),
        };
        let mut attributes = BTreeMap::new();
        for name in volume.extended_attributes(call, inode)? {
            let value = volume.extended_attribute(call, inode, &name)?;
            attributes.insert(name, value);
        }
        Ok(Seen {
            kind: found.kind,
            permissions: found.permissions,
            links: found.links,
            owner: (found.user, found.group),
            device: found.device,
            size: found.size,
            blocks: found.blocks,
            times: [found.times.modified.0, found.times.changed.0],
            content,
            attributes,
        })
    })
}

/// All files below a directory of the system.
pub fn of_directory(directory: &Path) -> Tree {
    let mut tree = Tree::new();
    walk_directory(directory, b"", &mut tree);
    tree
}

fn walk_directory(directory: &Path, path: &[u8], tree: &mut Tree) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let path = [path, b"/", entry.file_name().as_bytes()].concat();
        if entry.file_type().unwrap().is_dir() {
            walk_directory(&entry.path(), &path, tree);
        }
        tree.insert(path, seen_in_system(&entry.path()));
    }
}

fn seen_in_system(path: &Path) -> Seen {
    let found = fs::symlink_metadata(path).unwrap();
    let file_type = found.file_type();
    let kind = [
        (file_type.is_file(), FileKind::Regular),
        (file_type.is_dir(), FileKind::Directory),
        (file_type.is_symlink(), FileKind::Symlink),
        (file_type.is_fifo(), FileKind::Fifo),
        (file_type.is_socket(), FileKind::Socket),
        (file_type.is_char_device(), FileKind::CharacterDevice),
        (file_type.is_block_device(), FileKind::BlockDevice),
    ];
    let kind = kind.into_iter().find(|(is_it, _)| *is_it).unwrap().1;
    let content = match kind {
        FileKind::Symlink => fs::read_link(path).unwrap().into_os_string().into_vec(),
        FileKind::Regular => hashed(&fs::read(path).unwrap(), 0).to_le_bytes().to_vec(),
        _ => Vec::new(),
    };
    let time = |seconds: i64, ns: i64| seconds * 1_000_000_000 + ns;
    Seen {
        kind,
        permissions: (found.mode() & 0o7777) as u16,
        links: found.nlink() as u32,
        owner: (found.uid(), found.gid()),
        device: found.rdev(),
        size: found.size(),
        blocks: found.blocks().div_ceil(8),
        times: [time(found.mtime(), found.mtime_nsec()), time(found.ctime(), found.ctime_nsec())],
        content,
        attributes: attributes_in_system(path),
    }
}

fn attributes_in_system(path: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut names = vec![0; 64 << 10];
    let length = llistxattr(path, &mut names[..]).unwrap_or(0);
    let mut attributes = BTreeMap::new();
    for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let mut value = vec![0; 64 << 10];
        let length = lgetxattr(path, name, &mut value[..]).unwrap();
        attributes.insert(name.to_vec(), value[..length].to_vec());
    }
    attributes
}

/// Fails with the first files that differ.
pub fn assert_same(ours: &Tree, theirs: &Tree, what: &str) {
    let paths: std::collections::BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
    let differ: Vec<String> = paths
        .into_iter()
        .filter(|path| ours.get(*path) != theirs.get(*path))
        .take(3)
        .map(|path| {
            format!("{}\n  ours   {:?}\n  theirs {:?}", String::from_utf8_lossy(path), ours.get(path), theirs.get(path))
        })
        .collect();
    assert!(differ.is_empty(), "{what}: {}", differ.join("\n"));
}
