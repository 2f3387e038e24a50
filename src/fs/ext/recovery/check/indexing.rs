//! Indexes of directories that were written anew. They are lists at first, since later passes add names and remove
//! them; at the end, a list of more than one block gets the hashed index that it would have if it had grown to this size.

use super::Check;
use super::directories::{DOT, Name};
use crate::fs::ext::format::entries::{self, entry_length};
use crate::fs::ext::format::hash::{Hash, HashKind};
use crate::fs::ext::format::index::{self, Child, RootInfo, most_entries};
use crate::fs::ext::format::inode::{Inode, flag};
use crate::fs::volume::{FileKind, VolumeError};
use std::ops::Range;

/// The parts of a block that are filled, as names and children will be added: four of five.
const FILLED: (usize, usize) = (4, 5);

type Hashed = (Hash, Name);

/// Divides sorted names into blocks of names with so many bytes: the hash in the index and the names of each.
fn leaves(names: &[Hashed], room: usize) -> Vec<(u32, Range<usize>)> {
    let mut leaves: Vec<(u32, Range<usize>)> = Vec::new();
    let mut bytes = 0;
    for (at, (hash, name)) in names.iter().enumerate() {
        let needed = entry_length(name.text.len());
        match leaves.last_mut() {
            Some((_, range)) if bytes + needed <= room * FILLED.0 / FILLED.1 => range.end = at + 1,
            _ => {
                // Names with the same hash in both: the mark says that it goes on.
                let goes_on = at > 0 && names[at - 1].0.major == hash.major;
                leaves.push((hash.major | u32::from(goes_on), at..at + 1));
                bytes = 0;
            }
        }
        bytes += needed;
    }
    leaves
}

/// The children of each node between a root with room for `root` children and so many blocks of names: 0 if none is needed,
/// `None` if an index cannot have so many blocks.
fn children_of_node(leaves: usize, root: usize, node: usize) -> Option<usize> {
    if leaves <= root {
        return Some(0);
    }
    let filled = node * FILLED.0 / FILLED.1;
    [filled, node].into_iter().find(|children| leaves.div_ceil(*children) <= root)
}

impl Check<'_> {
    /// Gives directories that were written anew an index, if the volume has indexes.
    pub(super) fn index_lists(&mut self) -> Result<(), VolumeError> {
        let lists = std::mem::take(&mut self.walk.lists);
        let Some(kind) = self.parts.metadata.shape.hasher.kind.filter(|_| self.parts.metadata.shape.has_indexes())
        else {
            return Ok(());
        };
        for number in lists {
            self.index_list(number, kind)?;
        }
        Ok(())
    }

    /// Gives a list an index. It stays as it is if it has one block, or if no index is large enough or there are too few
    /// free blocks for it.
    fn index_list(&mut self, number: u32, kind: HashKind) -> Result<(), VolumeError> {
        let (block_bytes, has_tail) =
            (self.parts.metadata.shape.block_bytes, self.parts.metadata.shape.has_checksums());
        let room = entries::room(block_bytes, has_tail).end;
        let places = self.directory_places(number)?;
        let seed = self.parts.metadata.shape.hasher.seed;
        let names = self.names_in(&places)?.into_iter();
        let mut names: Vec<Hashed> = names.map(|name| (kind.hash(&name.text, seed), name)).collect();
        if 2 * DOT + names.iter().map(|(_, name)| entry_length(name.text.len())).sum::<usize>() <= room {
            return Ok(());
        }
        names.sort_by_key(|(hash, _)| *hash);
        let leaves = leaves(&names, room);
        let most = |is_root| most_entries(block_bytes, is_root, has_tail);
        let Some(in_node) = children_of_node(leaves.len(), most(true), most(false)) else { return Ok(()) };
        let nodes = if in_node == 0 { 0 } else { leaves.len().div_ceil(in_node) };
        let Some(places) = self.blocks_of_index(places, 1 + leaves.len() + nodes) else { return Ok(()) };

        let mut inode = self.inode(number)?;
        inode.set_flags(inode.flags() | flag::INDEX);
        self.put_inode(number, &inode)?;
        // The root, the blocks of names, the nodes.
        let mut children = Vec::new();
        for (at, (hash, range)) in (1..).zip(&leaves) {
            let block = self.block_of_names(&names[range.clone()]);
            self.put_directory_block(number, &inode, places[at], at, block)?;
            children.push(Child { hash: *hash, block: at as u32 });
        }
        if in_node > 0 {
            let mut above = Vec::new();
            for (at, children) in (1 + leaves.len()..).zip(children.chunks(in_node)) {
                let mut node = vec![0; block_bytes];
                index::clear_node(&mut node);
                self.put_node(number, &inode, places[at], node, children, false);
                above.push(Child { hash: children[0].hash, block: at as u32 });
            }
            children = above;
        }
        let mut root = vec![0; block_bytes];
        let (parent, directory) = (self.walk.dot_dots[&number], self.entry_kind(FileKind::Directory));
        let info = RootInfo { hash_number: kind.number(), levels: u8::from(in_node > 0) };
        index::clear_root(&mut root, number, parent, directory, info);
        self.put_node(number, &inode, places[0], root, &children, true);
        self.put_directory_map(number, &places)
    }

    /// So many blocks, these ones first; the others of these are free then. `None` if there are too few.
    fn blocks_of_index(&mut self, mut places: Vec<u64>, count: usize) -> Option<Vec<u64>> {
        // The map of the directory is written anew, and may need blocks, too.
        let (old, spare) = (places.len(), count / 64 + 4);
        while places.len() < count + spare {
            match self.take_block() {
                Some(place) => places.push(place),
                None => break,
            }
        }
        // A directory that becomes shorter gives blocks back.
        let is_enough = places.len() >= count + spare || old >= count;
        for place in places.split_off(if is_enough { count } else { old }) {
            self.unmark(place..place + 1);
        }
        is_enough.then_some(places)
    }

    fn block_of_names(&self, names: &[Hashed]) -> Vec<u8> {
        let has_tail = self.parts.metadata.shape.has_checksums();
        let mut block = vec![0; self.parts.metadata.shape.block_bytes];
        entries::clear(&mut block, has_tail);
        for (_, name) in names {
            let is_put = entries::put(&mut block, has_tail, name.inode, &name.text, name.kind);
            debug_assert_eq!(is_put, Ok(true), "the names were divided by the room");
        }
        block
    }

    fn put_node(
        &mut self,
        number: u32,
        inode: &Inode,
        place: u64,
        mut node: Vec<u8>,
        children: &[Child],
        is_root: bool,
    ) {
        index::write(&mut node, is_root, self.parts.metadata.shape.has_checksums(), children);
        if let Some(seed) = self.seed(number, inode) {
            index::sum(&mut node, is_root, seed);
        }
        self.write(place, node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(majors: &[u32], bytes: usize) -> Vec<Hashed> {
        let name = || Name { text: vec![b'x'; bytes], inode: 12, kind: 1 };
        majors.iter().map(|major| (Hash { major: *major, minor: 0 }, name())).collect()
    }

    #[test]
    fn a_hash_that_goes_on_in_the_next_block_has_the_mark() {
        // 400 of 500 bytes are filled: four names of 100 bytes.
        let found = leaves(&names(&[2, 4, 6, 8, 10, 12, 14, 16, 16, 20], 92), 500);
        assert_eq!(found, [(2, 0..4), (10, 4..8), (17, 8..10)]);
        let found = leaves(&names(&[8; 9], 92), 500);
        assert_eq!(found, [(8, 0..4), (9, 4..8), (9, 8..9)]);
    }

    #[test]
    fn nodes_are_filled_up_only_if_the_root_has_no_room_for_more_of_them() {
        assert_eq!(
            [123, 124, 12_300].map(|leaves| children_of_node(leaves, 123, 126)),
            [Some(0), Some(100), Some(100)]
        );
        assert_eq!(
            [12_301, 15_498, 15_499].map(|leaves| children_of_node(leaves, 123, 126)),
            [Some(126), Some(126), None]
        );
    }
}
