//! A file system as maps: the expected content of sfs.

use flashpath::fs::sfs::{FileKind, InodeNumber, Sfs};
use flashpath::task::Task;
use std::collections::BTreeMap;

/// A file or directory of the model, by its path from the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    File { bytes: Vec<u8>, links: u32 },
    Directory,
    Symlink(Vec<u8>),
}

/// All nodes by path; the root is "".
pub type Tree = BTreeMap<String, Node>;

/// The content of a volume.
pub fn tree_of(task: &Task<'_>, sfs: &mut Sfs) -> Tree {
    let mut tree = Tree::new();
    walk(task, sfs, InodeNumber::ROOT, "", &mut tree);
    tree
}

fn walk(task: &Task<'_>, sfs: &mut Sfs, directory: InodeNumber, path: &str, tree: &mut Tree) {
    let mut entries = Vec::new();
    sfs.list(task, directory, 0, &mut |entry| {
        entries.push((entry.inode, entry.kind, entry.name.to_vec()));
        true
    })
    .unwrap();
    let mut directories = 0;
    for (inode, kind, name) in entries.into_iter().filter(|(.., name)| name != b"." && name != b"..") {
        let path = format!("{path}/{}", String::from_utf8(name.clone()).unwrap());
        let attributes = sfs.attributes(task, inode).unwrap();
        assert_eq!(attributes.kind, kind, "{path}");
        assert_eq!(sfs.lookup(task, directory, &name).unwrap(), inode, "{path}");
        let node = match kind {
            FileKind::Directory => {
                directories += 1;
                tree.insert(path.clone(), Node::Directory);
                walk(task, sfs, inode, &path, tree);
                continue;
            }
            FileKind::Symlink => Node::Symlink(sfs.target(task, inode).unwrap()),
            _ => {
                let mut bytes = vec![0xee; attributes.size as usize];
                assert_eq!(
                    sfs.read(task, inode, 0, &mut bytes).unwrap_or_else(|error| panic!("{path}: {error}")),
                    bytes.len()
                );
                Node::File { bytes, links: attributes.links }
            }
        };
        tree.insert(path, node);
    }
    assert_eq!(sfs.attributes(task, directory).unwrap().links, 2 + directories, "links of directory '{path}'");
}

/// The inode of a path.
pub fn resolve(task: &Task<'_>, sfs: &mut Sfs, path: &str) -> InodeNumber {
    path.split('/').filter(|name| !name.is_empty()).fold(InodeNumber::ROOT, |directory, name| {
        sfs.lookup(task, directory, name.as_bytes()).unwrap_or_else(|error| panic!("{path}: {error}"))
    })
}

/// The directory and the last name of a path.
pub fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap()
}
