//! A node of an extent tree: the 60 bytes of an inode's map, or a block.
//!
//! ```text
//! header   0 magic 0xF30A (2)   2 entries (2)   4 most entries (2)   6 depth (2)   8 generation      12 bytes
//! leaf     0 first block of the file   4 blocks (2)   6 place (high, 2)   8 place (low)              12 bytes each
//! index    0 first block of the file   4 child (low)   8 child (high, 2)                             12 bytes each
//! behind the most entries of a block: checksum (4)
//! ```
//!
//! An extent of more than 32,768 blocks is not written, and this much shorter: it reads as zeros.

use super::bytes::{joined, le16, le32, put16, put32};
use super::checksum::crc32c_raw;

pub const MAGIC: u16 = 0xF30A;
pub const HEADER: usize = 12;
pub const ENTRY: usize = 12;
/// The longest written extent, in blocks.
pub const MOST_WRITTEN: u32 = 32768;
/// The longest one that is not written.
pub const MOST_UNWRITTEN: u32 = 32767;
pub const DEEPEST: u16 = 5;

/// A run of a file's blocks that lie one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Its first block in the file.
    pub first: u32,
    pub count: u32,
    /// Its first block on the volume.
    pub place: u64,
    pub is_written: bool,
}

impl Extent {
    /// The first block of the file behind it.
    pub fn end(&self) -> u64 {
        u64::from(self.first) + u64::from(self.count)
    }

    /// The part of it within these blocks of the file.
    pub fn part(&self, from: u64, to: u64) -> Option<Extent> {
        let (start, end) = (from.max(u64::from(self.first)), to.min(self.end()));
        (start < end).then(|| Extent {
            first: start as u32,
            count: (end - start) as u32,
            place: self.place + (start - u64::from(self.first)),
            is_written: self.is_written,
        })
    }

    /// True if `next` continues it, and both can be one.
    pub fn joins(&self, next: &Extent) -> bool {
        let most = if self.is_written { MOST_WRITTEN } else { MOST_UNWRITTEN };
        self.is_written == next.is_written
            && self.end() == u64::from(next.first)
            && self.place + u64::from(self.count) == next.place
            && u64::from(self.count) + u64::from(next.count) <= u64::from(most)
    }

    pub fn read(entry: &[u8]) -> Extent {
        let count = u32::from(le16(entry, 4));
        let is_written = count <= MOST_WRITTEN;
        let count = if is_written { count } else { count - MOST_WRITTEN };
        let place = joined(u32::from(le16(entry, 6)), le32(entry, 8));
        Extent { first: le32(entry, 0), count, place, is_written }
    }

    pub fn write(&self, entry: &mut [u8]) {
        put32(entry, 0, self.first);
        put16(entry, 4, (self.count + if self.is_written { 0 } else { MOST_WRITTEN }) as u16);
        put16(entry, 6, (self.place >> 32) as u16);
        put32(entry, 8, self.place as u32);
    }
}

/// An entry of an index: the child that holds the blocks from `first` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Child {
    pub first: u32,
    pub block: u64,
}

impl Child {
    pub fn read(entry: &[u8]) -> Child {
        Child { first: le32(entry, 0), block: joined(u32::from(le16(entry, 8)), le32(entry, 4)) }
    }

    pub fn write(&self, entry: &mut [u8]) {
        put32(entry, 0, self.first);
        put32(entry, 4, self.block as u32);
        put16(entry, 8, (self.block >> 32) as u16);
        put16(entry, 10, 0);
    }
}

/// The entries of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    Leaf(Vec<Extent>),
    /// An index, and its height above the leaves.
    Index(u16, Vec<Child>),
}

impl Node {
    pub fn depth(&self) -> u16 {
        match self {
            Node::Leaf(_) => 0,
            Node::Index(depth, _) => *depth,
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Node::Leaf(extents) => extents.len(),
            Node::Index(_, children) => children.len(),
        }
    }

    /// The first block of the file that it names.
    pub fn first(&self) -> Option<u32> {
        match self {
            Node::Leaf(extents) => extents.first().map(|extent| extent.first),
            Node::Index(_, children) => children.first().map(|child| child.first),
        }
    }

    /// Reads a node, at `depth` if its parent says so. Its entries are in order, and name blocks that `holds` accepts.
    /// Fails with the fault.
    pub fn read(bytes: &[u8], depth: Option<u16>, holds: impl Fn(u64, u64) -> bool) -> Result<Node, String> {
        let (magic, count, most, at) = (le16(bytes, 0), le16(bytes, 2), le16(bytes, 4), le16(bytes, 6));
        if magic != MAGIC {
            return Err(format!("its magic number is {magic:#06x}, and should be {MAGIC:#06x}"));
        }
        if count > most || HEADER + usize::from(most) * ENTRY > bytes.len() {
            return Err(format!("it says {count} of {most} entries, and has {} bytes", bytes.len()));
        }
        if at > DEEPEST || depth.is_some_and(|depth| depth != at) {
            return Err(format!("its depth is {at}, and should be {}", depth.unwrap_or(DEEPEST)));
        }
        let entries = bytes[HEADER..].chunks_exact(ENTRY).take(usize::from(count));
        let node = match at {
            0 => Node::Leaf(entries.map(Extent::read).collect()),
            depth => Node::Index(depth, entries.map(Child::read).collect()),
        };
        node.check(holds)?;
        Ok(node)
    }

    fn check(&self, holds: impl Fn(u64, u64) -> bool) -> Result<(), String> {
        let mut next = 0;
        match self {
            Node::Leaf(extents) => {
                for extent in extents {
                    let fits = extent.count > 0 && extent.end() <= u64::from(u32::MAX);
                    if !fits || u64::from(extent.first) < next || !holds(extent.place, u64::from(extent.count)) {
                        return Err(format!("{extent:?} is out of order, or out of the volume"));
                    }
                    next = extent.end();
                }
            }
            Node::Index(_, children) => {
                if children.is_empty() {
                    return Err("its index is empty".to_string());
                }
                for child in children {
                    if u64::from(child.first) < next || !holds(child.block, 1) {
                        return Err(format!("{child:?} is out of order, or out of the volume"));
                    }
                    next = u64::from(child.first) + 1;
                }
            }
        }
        Ok(())
    }

    /// Puts it into a node's bytes; bytes behind its entries become zero. `has_tail`: a checksum's place is left.
    ///
    /// # Panics
    ///
    /// If it does not fit: the caller looks before it adds an entry.
    pub fn write(&self, bytes: &mut [u8], has_tail: bool) {
        let most = most_entries(bytes.len(), has_tail);
        assert!(self.len() <= most, "{} entries of a node of {most}", self.len());
        put16(bytes, 0, MAGIC);
        put16(bytes, 2, self.len() as u16);
        put16(bytes, 4, most as u16);
        put16(bytes, 6, self.depth());
        bytes[HEADER..].fill(0);
        for (number, entry) in bytes[HEADER..].chunks_exact_mut(ENTRY).take(self.len()).enumerate() {
            match self {
                Node::Leaf(extents) => extents[number].write(entry),
                Node::Index(_, children) => children[number].write(entry),
            }
        }
    }
}

/// Entries that fit into a node of so many bytes.
pub fn most_entries(bytes: usize, has_tail: bool) -> usize {
    (bytes - HEADER - if has_tail { 4 } else { 0 }) / ENTRY
}

/// The place of a block's checksum: behind as many entries as fit.
fn tail(bytes: &[u8]) -> usize {
    HEADER + usize::from(le16(bytes, 4)) * ENTRY
}

/// True if a block's checksum is right.
pub fn is_sound(bytes: &[u8], inode_seed: u32) -> bool {
    let tail = tail(bytes);
    tail + 4 <= bytes.len() && le32(bytes, tail) == crc32c_raw(inode_seed, &bytes[..tail])
}

/// Puts a block's checksum in.
pub fn sum(bytes: &mut [u8], inode_seed: u32) {
    let tail = tail(bytes);
    let sum = crc32c_raw(inode_seed, &bytes[..tail]);
    put32(bytes, tail, sum);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(first: u32, count: u32, place: u64, is_written: bool) -> Extent {
        Extent { first, count, place, is_written }
    }

    #[test]
    fn a_node_is_read_as_it_was_written() {
        let leaf = Node::Leaf(vec![extent(0, 32768, 1 << 40, true), extent(40000, 32767, 7, false)]);
        let index = Node::Index(2, vec![Child { first: 0, block: 1 << 40 }, Child { first: 9, block: 3 }]);
        for node in [leaf, index] {
            let mut bytes = vec![0xFF; 1024];
            node.write(&mut bytes, true);
            sum(&mut bytes, 5);
            assert!(is_sound(&bytes, 5) && !is_sound(&bytes, 6));
            assert_eq!(Node::read(&bytes, Some(node.depth()), |_, _| true), Ok(node));
        }
    }

    #[test]
    fn a_node_out_of_order_or_out_of_the_volume_is_refused() {
        let read = |extents: &[Extent], holds: bool| {
            let mut bytes = vec![0; 60];
            Node::Leaf(extents.to_vec()).write(&mut bytes, false);
            Node::read(&bytes, None, |_, _| holds)
        };
        assert!(read(&[extent(0, 2, 9, true), extent(1, 1, 20, true)], true).is_err(), "they overlap");
        assert!(read(&[extent(0, 2, 9, true)], false).is_err());
        assert!(read(&[extent(u32::MAX, 2, 9, true)], true).is_err(), "beyond the last block");
        assert!(Node::read(&[0; 60], None, |_, _| true).is_err());
    }

    #[test]
    fn runs_join_if_they_are_one_on_the_volume_and_not_too_long() {
        let one = extent(0, 10, 100, true);
        assert!(one.joins(&extent(10, 5, 110, true)));
        assert!(!one.joins(&extent(10, 5, 110, false)) && !one.joins(&extent(11, 5, 111, true)));
        assert!(!one.joins(&extent(10, 32760, 110, true)), "it would have 32,770 blocks");
        assert_eq!(one.part(3, 5), Some(extent(3, 2, 103, true)));
        assert_eq!(one.part(10, 12), None);
    }
}
