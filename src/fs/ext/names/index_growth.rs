//! An index that grows: a directory gets one with its second block, a full block of names is cut in two by hash, a full
//! node likewise, and a full root goes one level down.

use super::blocks::{BlockKind, DirectoryBlock};
use super::hashed::Way;
use crate::fs::ext::files::node::File;
use crate::fs::ext::format::entries::{self, Entry, entry_length};
use crate::fs::ext::format::hash::Hash;
use crate::fs::ext::format::index::{self, Child, MOST_LEVELS, RootInfo, most_entries};
use crate::fs::ext::format::inode::flag;
use crate::fs::ext::journal::Handle;
use crate::fs::ext::names::Directories;
use crate::fs::volume::{FileKind, VolumeError};

/// The index of a directory, into which a name is put.
pub struct GrowingIndex<'g> {
    pub directories: Directories<'g>,
    pub handle: &'g Handle<'g>,
    pub directory: &'g mut File,
}

impl GrowingIndex<'_> {
    /// Makes the index of a directory whose only block is full: its names go into a second one.
    pub fn make(&mut self) -> Result<(), VolumeError> {
        let (directories, shape, task) = (self.directories, &self.directories.metadata.shape, self.handle.task);
        let first = directories.directory_block(task, self.directory, 0, BlockKind::Names)?;
        let parent = directories.parent_of(task, self.directory)?;
        let kind = shape.hasher.kind.expect("an index is made if the hash is known");
        let names = directories.hashed_names(self.directory, &first, kind)?;
        let (number, place) = directories.add_directory_block(self.handle, self.directory)?;
        self.put_names(place, &first, &names);
        let mut root = vec![0; shape.block_bytes];
        let info = RootInfo { hash_number: kind.number(), levels: 0 };
        index::clear_root(&mut root, self.directory.number, parent, directories.entry_kind(FileKind::Directory), info);
        index::write(&mut root, true, shape.has_checksums(), &[Child { hash: 0, block: number as u32 }]);
        self.directory.inode.set_flags(self.directory.inode.flags() | flag::INDEX);
        directories.put_directory_block(self.handle, self.directory, first.place, root, BlockKind::Root);
        Ok(())
    }

    /// Writes these names of a block into the block at `place`, without gaps.
    fn put_names(&self, place: u64, from: &DirectoryBlock, names: &[(Hash, Entry)]) {
        let has_tail = self.directories.metadata.shape.has_checksums();
        let mut bytes = vec![0; self.directories.metadata.shape.block_bytes];
        entries::clear(&mut bytes, has_tail);
        let end = entries::room(bytes.len(), has_tail).end;
        let mut at = 0;
        for (number, (_, entry)) in names.iter().enumerate() {
            let name = entry.name(&from.bytes);
            let length = if number + 1 == names.len() { end - at } else { entry_length(name.len()) };
            // The kind is kept as it is, known or not.
            entries::write_entry(&mut bytes, at, length, entry.inode, name, from.bytes[entry.at + 7]);
            at += length;
        }
        self.directories.put_directory_block(self.handle, self.directory, place, bytes, BlockKind::Names);
    }

    /// Puts a name into a directory with an index.
    pub fn add(&mut self, entry: (&[u8], u32, FileKind)) -> Result<(), VolumeError> {
        let (directories, task) = (self.directories, self.handle.task);
        let seed = directories.metadata.shape.hasher.seed;
        loop {
            let way = directories.way_to(task, self.directory, |kind| kind.hash(entry.0, seed).major)?;
            let block = directories.directory_block(task, self.directory, way.leaf(), BlockKind::Names)?;
            if directories.put_entry(self.handle, self.directory, &block, entry)? {
                return Ok(());
            }
            // Room in the nodes first, from the root down: then the way is another.
            if !self.make_room_in_nodes(&way)? {
                self.cut_names(&way, &block)?;
            }
        }
    }

    /// Makes room for an entry in the last node of a way. False if there is room already.
    fn make_room_in_nodes(&mut self, way: &Way) -> Result<bool, VolumeError> {
        let (block, has_tail) =
            (self.directories.metadata.shape.block_bytes, self.directories.metadata.shape.has_checksums());
        let is_full = |level: usize| way.levels[level].children.len() == most_entries(block, level == 0, has_tail);
        let last = way.levels.len() - 1;
        if !is_full(last) {
            return Ok(false);
        }
        if is_full(0) {
            if last == usize::from(MOST_LEVELS) {
                return Err(self.directories.maps.allocation.no_space());
            }
            self.lower_root(way)?;
        } else {
            self.cut_node(way)?;
        }
        Ok(true)
    }

    /// A full root without nodes below it: its entries go into one.
    fn lower_root(&mut self, way: &Way) -> Result<(), VolumeError> {
        let root = &way.levels[0];
        let (number, place) = self.directories.add_directory_block(self.handle, self.directory)?;
        self.put_node(place, &root.children);
        let mut bytes = root.block.bytes.to_vec();
        index::set_levels(&mut bytes, 1);
        self.put_root(root.block.place, bytes, &[Child { hash: 0, block: number as u32 }]);
        Ok(())
    }

    /// A full node below the root: its second half goes into a new one.
    fn cut_node(&mut self, way: &Way) -> Result<(), VolumeError> {
        let (root, node) = (&way.levels[0], &way.levels[way.levels.len() - 1]);
        let (number, place) = self.directories.add_directory_block(self.handle, self.directory)?;
        let (kept, moved) = node.children.split_at(node.children.len() / 2);
        self.put_node(place, moved);
        self.put_node(node.block.place, kept);
        let mut children = root.children.clone();
        children.insert(root.at + 1, Child { hash: moved[0].hash, block: number as u32 });
        self.put_root(root.block.place, root.block.bytes.to_vec(), &children);
        Ok(())
    }

    fn put_node(&self, place: u64, children: &[Child]) {
        let mut bytes = vec![0; self.directories.metadata.shape.block_bytes];
        index::clear_node(&mut bytes);
        index::write(&mut bytes, false, self.directories.metadata.shape.has_checksums(), children);
        self.directories.put_directory_block(self.handle, self.directory, place, bytes, BlockKind::Node);
    }

    fn put_root(&self, place: u64, mut bytes: Vec<u8>, children: &[Child]) {
        index::write(&mut bytes, true, self.directories.metadata.shape.has_checksums(), children);
        self.directories.put_directory_block(self.handle, self.directory, place, bytes, BlockKind::Root);
    }

    /// Cuts a full block of names in two, by hash, and names the new one in the node above, which has room.
    fn cut_names(&mut self, way: &Way, block: &DirectoryBlock) -> Result<(), VolumeError> {
        let names = self.directories.hashed_names(self.directory, block, way.kind)?;
        let all: usize = names.iter().map(|(_, entry)| entry.needed()).sum();
        let mut bytes = 0;
        let at = names.iter().position(|(_, entry)| {
            bytes += entry.needed();
            bytes > all / 2
        });
        let at = at.unwrap_or(0).clamp(1, names.len().max(2) - 1);
        if names.len() < 2 {
            // One name cannot fill a block of 1 KiB and leave no room for another.
            return Err(self.directories.maps.allocation.no_space());
        }
        let (kept, moved) = names.split_at(at);
        // Names with the same hash in both: the mark says that it goes on.
        let goes_on = u32::from(kept[kept.len() - 1].0.major == moved[0].0.major);
        let (number, place) = self.directories.add_directory_block(self.handle, self.directory)?;
        self.put_names(place, block, moved);
        self.put_names(block.place, block, kept);
        let last = &way.levels[way.levels.len() - 1];
        let mut children = last.children.clone();
        children.insert(last.at + 1, Child { hash: moved[0].0.major | goes_on, block: number as u32 });
        match way.levels.len() {
            1 => self.put_root(last.block.place, last.block.bytes.to_vec(), &children),
            _ => self.put_node(last.block.place, &children),
        }
        Ok(())
    }
}
