//! The files and names of a recording, as its calls change them.

use crate::units::BLOCK_BYTES;
use rustc_hash::FxHashMap;

/// A file or directory: its place among all that the recording names. The root is 0.
pub type Node = u32;

/// The root.
pub const ROOT: Node = 0;
/// The longest path, in bytes, as Linux has it. What lies deeper cannot be named.
const LONGEST_PATH: usize = 4095;

/// A file or directory.
#[derive(Clone, Debug, Default)]
struct Entry {
    is_directory: bool,
    length: u64,
    /// Its names: a directory and a name in it.
    names: Vec<(Node, Vec<u8>)>,
    /// The names in it, if it is a directory.
    names_inside: u64,
}

/// The files and names.
#[derive(Debug)]
pub struct Tree {
    entries: Vec<Entry>,
    live_bytes: u64,
    children: FxHashMap<(Node, Vec<u8>), Node>,
}

/// Bytes of whole blocks: a small file takes one.
fn in_blocks(length: u64) -> u64 {
    length.div_ceil(BLOCK_BYTES).saturating_mul(BLOCK_BYTES)
}

impl Tree {
    /// The root, and `nodes` others without a name.
    pub fn new(nodes: usize) -> Tree {
        let mut entries = vec![Entry::default(); nodes + 1];
        entries[ROOT as usize].is_directory = true;
        Tree { entries, live_bytes: 0, children: FxHashMap::default() }
    }

    fn entry(&self, node: Node) -> &Entry {
        &self.entries[node as usize]
    }

    pub fn is_directory(&self, node: Node) -> bool {
        self.entry(node).is_directory
    }

    pub fn length(&self, node: Node) -> u64 {
        self.entry(node).length
    }

    pub fn set_length(&mut self, node: Node, length: u64) {
        let before = std::mem::replace(&mut self.entries[node as usize].length, length);
        if self.has_name(node) {
            self.live_bytes = self.live_bytes.saturating_sub(in_blocks(before)).saturating_add(in_blocks(length));
        }
    }

    pub fn has_name(&self, node: Node) -> bool {
        node == ROOT || !self.entry(node).names.is_empty()
    }

    /// The number of names of a file.
    pub fn names_of(&self, node: Node) -> usize {
        self.entry(node).names.len()
    }

    /// True if a directory is not empty.
    pub fn has_names_in(&self, directory: Node) -> bool {
        self.entry(directory).names_inside > 0
    }

    /// The file or directory of a name.
    pub fn find(&self, parent: Node, name: &[u8]) -> Option<Node> {
        self.children.get(&(parent, name.to_vec())).copied()
    }

    /// All names: the directory, the name, and whose it is.
    pub fn all_names(&self) -> impl Iterator<Item = (Node, &[u8], Node)> {
        self.children.iter().map(|((parent, name), node)| (*parent, &name[..], *node))
    }

    /// The bytes of the blocks of all files that have a name.
    pub fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// The path of a name in a directory; `None` if the directory is none or has none, or if it is too long.
    pub fn path_in(&self, parent: Node, name: &[u8]) -> Option<String> {
        if !self.is_directory(parent) {
            return None;
        }
        let path = format!("{}/{}", self.path(parent)?, text(name));
        (path.len() <= LONGEST_PATH).then_some(path)
    }

    /// A path of a file or directory; `None` if it has none.
    pub fn path(&self, node: Node) -> Option<String> {
        if node == ROOT {
            return Some(super::DIRECTORY.to_string());
        }
        let (mut names, mut length, mut at) = (Vec::new(), super::DIRECTORY.len(), node);
        while at != ROOT {
            let (parent, name) = self.entry(at).names.first()?;
            let name = text(name);
            length += 1 + name.len();
            if length > LONGEST_PATH {
                return None;
            }
            names.push(name);
            at = *parent;
        }
        names.push(super::DIRECTORY.to_string());
        names.reverse();
        Some(names.join("/"))
    }

    /// Gives a name; false if it is taken, or if the directory is none.
    pub fn add(&mut self, parent: Node, name: &[u8], node: Node) -> bool {
        if !self.is_directory(parent) || !self.has_name(parent) || self.find(parent, name).is_some() {
            return false;
        }
        if !self.has_name(node) {
            self.live_bytes = self.live_bytes.saturating_add(in_blocks(self.length(node)));
        }
        self.children.insert((parent, name.to_vec()), node);
        self.entries[node as usize].names.push((parent, name.to_vec()));
        self.entries[parent as usize].names_inside += 1;
        true
    }

    /// Makes a file or directory with its first name; false as for [`add`](Tree::add).
    pub fn make(&mut self, parent: Node, name: &[u8], node: Node, is_directory: bool) -> bool {
        self.entries[node as usize] = Entry { is_directory, ..Entry::default() };
        self.add(parent, name, node)
    }

    /// Removes a name, and answers whose it was.
    pub fn remove(&mut self, parent: Node, name: &[u8]) -> Option<Node> {
        let node = self.children.remove(&(parent, name.to_vec()))?;
        self.entries[parent as usize].names_inside -= 1;
        self.entries[node as usize].names.retain(|known| *known != (parent, name.to_vec()));
        if !self.has_name(node) {
            self.live_bytes = self.live_bytes.saturating_sub(in_blocks(self.length(node)));
        }
        Some(node)
    }

    /// True if a directory is another, or lies in it: it cannot be renamed there.
    pub fn is_within(&self, directory: Node, other: Node) -> bool {
        let mut at = directory;
        loop {
            match self.entry(at).names.first() {
                _ if at == other => return true,
                Some((parent, _)) => at = *parent,
                None => return false,
            }
        }
    }
}

/// A name as text. One that is not UTF-8 is written in hexadecimal digits.
fn text(name: &[u8]) -> String {
    match std::str::from_utf8(name) {
        Ok(text) => text.to_string(),
        Err(_) => name.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_follow_renamed_directories() {
        let mut tree = Tree::new(3);
        assert!(tree.make(ROOT, b"a", 1, true) && tree.make(1, b"f", 2, false));
        assert!(!tree.make(2, b"g", 3, false), "a file has no names in it");
        assert!(!tree.add(1, b"f", 2), "the name is taken");
        assert_eq!(tree.path(2).unwrap(), "recorded/a/f");
        assert!(tree.is_within(1, ROOT) && tree.is_within(1, 1) && !tree.is_within(ROOT, 1));
        assert_eq!(tree.remove(ROOT, b"a"), Some(1));
        assert_eq!(tree.path(2), None, "its directory has no name");
        assert!(tree.add(ROOT, b"b", 1));
        assert_eq!(tree.path(2).unwrap(), "recorded/b/f");
        assert_eq!(tree.path_in(1, &[0xff, b'x']).unwrap(), "recorded/b/ff78");
        assert!(tree.add(ROOT, b"link", 2));
        tree.remove(1, b"f");
        assert_eq!(tree.path(2).unwrap(), "recorded/link");
        assert_eq!(tree.path_in(ROOT, &[b'n'; 5000]), None);
    }
}
