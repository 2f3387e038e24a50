//! The names that a survey found, and the path of an inode from them.

use crate::fs::sfs::files::attributes::InodeNumber;
use std::collections::BTreeMap;

/// A name in a directory.
#[derive(Clone, Debug)]
pub(in crate::fs::sfs::recovery) struct NameSeen {
    pub directory: u64,
    /// The place of its record, in bytes.
    pub place: u64,
    pub inode: u64,
    pub kind: u8,
    pub name: Vec<u8>,
}

/// The first name of each inode.
pub(super) struct Paths<'a>(BTreeMap<u64, &'a NameSeen>);

impl<'a> Paths<'a> {
    pub fn of(names: &'a [NameSeen]) -> Paths<'a> {
        let mut first = BTreeMap::new();
        for name in names {
            first.entry(name.inode).or_insert(name);
        }
        Paths(first)
    }

    /// A path of an inode from the root; `None` if it hangs nowhere.
    pub fn path(&self, inode: u64) -> Option<String> {
        let (mut at, mut parts) = (inode, Vec::new());
        while at != InodeNumber::ROOT.0 {
            let name = self.0.get(&at)?;
            parts.push(String::from_utf8_lossy(&name.name));
            at = name.directory;
            if parts.len() > 1024 {
                return None;
            }
        }
        parts.reverse();
        Some(format!("/{}", parts.join("/")))
    }
}
