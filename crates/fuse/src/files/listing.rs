//! Directories, listed in pages.

use super::Files;
use crate::error::CallError;
use flashpath::fs::sfs::{Attributes, DirectoryEntry, InodeNumber};

/// Entries that are taken from the volume before their attributes are looked up: about what fits into 4 KiB.
const ENTRIES_AT_ONCE: usize = 32;

/// An entry of a directory with what is known of its file.
pub struct Entry {
    /// Where the listing goes on behind it.
    pub next: u64,
    /// The name.
    pub name: Vec<u8>,
    /// What is known of the file.
    pub attributes: Attributes,
}

impl Entry {
    /// Whether it is the directory itself, or its parent: of these the kernel is not told by a listing.
    fn is_dot(&self) -> bool {
        self.name == b"." || self.name == b".."
    }
}

impl Files {
    /// Lists a directory from `from` on, until `take` answers false.
    pub fn list(
        &mut self,
        directory: InodeNumber,
        from: u64,
        take: &mut dyn FnMut(DirectoryEntry) -> bool,
    ) -> Result<(), CallError> {
        self.volume.list(directory, from, take)?;
        if from == 0 {
            self.touch(directory);
        }
        Ok(())
    }

    /// The same with attributes. The kernel knows each file whose entry is taken from then on.
    pub fn list_with_attributes(
        &mut self,
        directory: InodeNumber,
        from: u64,
        take: &mut dyn FnMut(&Entry) -> bool,
    ) -> Result<(), CallError> {
        let mut from = from;
        let mut is_first = true;
        loop {
            let mut page: Vec<(u64, InodeNumber, Vec<u8>)> = Vec::with_capacity(ENTRIES_AT_ONCE);
            self.list(directory, from, &mut |entry| {
                let has_room = page.len() < ENTRIES_AT_ONCE;
                if has_room {
                    page.push((entry.next, entry.inode, entry.name.to_vec()));
                }
                has_room
            })?;
            if page.is_empty() {
                return Ok(());
            }
            for (next, inode, name) in page {
                let attributes = match self.volume.attributes(inode) {
                    Ok(attributes) => attributes,
                    Err(error) if is_first => return Err(error.into()),
                    // The next page begins with it, and says so.
                    Err(_) => return Ok(()),
                };
                let entry = Entry { next, name, attributes };
                if !entry.is_dot() {
                    self.hold(inode)?;
                }
                if !take(&entry) {
                    return if entry.is_dot() { Ok(()) } else { self.forget(inode, 1) };
                }
                (from, is_first) = (next, false);
            }
        }
    }
}
