//! Fast commits: the changes of a running transaction so far, as a list of tags behind the records of the log. Numbers
//! are little-endian. A tag lies in one block; the last one of a fast commit fills its block.
//!
//! ```text
//! tag         0 kind (2)   2 bytes of the value (2)   4 value
//! add range   0 inode   4 extent, as in an inode's map (12)
//! cut range   0 inode   4 first block of the file   8 blocks
//! create, link, unlink    0 directory   4 inode   8 name
//! inode       0 inode   4 the inode's bytes, with those that it calls extra
//! pad         nothing: the next tag is in the next block
//! head        0 features, none is known   4 transaction: the first tag of a transaction's first fast commit
//! tail        0 transaction   4 checksum of all tags of this fast commit, up to here
//! ```

use super::bytes::{le16, le32, put16, put32};
use super::checksum::crc32c_raw;
use super::extents::{ENTRY, Extent};

/// Bytes of a tag before its value.
const HEAD: usize = 4;
const TAIL_BYTES: usize = 8;
/// Bytes of the value of a head, and of a range that is cut.
const HEAD_VALUE: usize = 8;
const CUT_VALUE: usize = 12;
/// Bytes of a tail up to its checksum, which covers them.
const TAIL_SUMMED: usize = HEAD + 4;
/// Bytes of an inode's oldest fields.
const INODE_BYTES: usize = 128;

mod kind {
    pub const ADD_RANGE: u16 = 1;
    pub const CUT_RANGE: u16 = 2;
    pub const CREATE: u16 = 3;
    pub const LINK: u16 = 4;
    pub const UNLINK: u16 = 5;
    pub const INODE: u16 = 6;
    pub const PAD: u16 = 7;
    pub const TAIL: u16 = 8;
    pub const HEAD: u16 = 9;
}

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameChange {
    pub directory: u32,
    pub inode: u32,
    pub name: Vec<u8>,
}

/// A change that a tag tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Blocks of a file have this place.
    AddRange { inode: u32, extent: Extent },
    /// Blocks of a file have no place.
    CutRange { inode: u32, first: u32, blocks: u32 },
    /// A new file has a name.
    Create(NameChange),
    /// A file has one more name.
    Link(NameChange),
    /// A name is gone.
    Unlink(NameChange),
    /// An inode has these bytes, but for its map.
    Inode { inode: u32, bytes: Vec<u8> },
}

/// The changes of a fast commit, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FastCommit {
    /// The first block of it, counted from the beginning of the area.
    pub at: usize,
    pub changes: Vec<Change>,
}

/// Reads the fast commits of a transaction, block by block.
pub struct Reader {
    transaction: u32,
    /// The checksum of the tags so far of the fast commit at hand.
    sum: u32,
    /// Blocks that were read.
    blocks: usize,
    pending: FastCommit,
    /// The fast commit at hand may begin with any tag: one with a head was read, or it follows a damaged one.
    is_begun: bool,
}

impl Reader {
    /// Reads fast commits of this transaction, from block `at` of the area on. The first of a transaction begins with a head
    /// (`is_first`).
    pub fn new(transaction: u32, at: usize, is_first: bool) -> Reader {
        let pending = FastCommit { at, changes: Vec::new() };
        Reader { transaction, sum: 0, blocks: at, pending, is_begun: !is_first }
    }

    /// Reads the next block, and answers the fast commit that ends in it.
    ///
    /// # Errors
    ///
    /// The fault of a tag, or the fast commit is one of another transaction.
    pub fn block(&mut self, block: &[u8]) -> Result<Option<FastCommit>, String> {
        self.blocks += 1;
        let mut at = 0;
        while at + HEAD <= block.len() {
            let (kind, length) = (le16(block, at), usize::from(le16(block, at + 2)));
            let end = at + HEAD + length;
            let wrong = |why: &str| format!("its tag at byte {at}, of kind {kind}, {why}");
            let value = block.get(at + HEAD..end).ok_or_else(|| wrong("is longer than the block"))?;
            if !self.is_begun && kind != kind::HEAD {
                return Err(wrong("should be the head"));
            }
            if kind == kind::TAIL {
                return self.tail(block, at, value).map(Some).map_err(|why| wrong(&why));
            }
            self.tag(kind, value).map_err(|why| wrong(&why))?;
            self.sum = crc32c_raw(self.sum, &block[at..end]);
            at = end;
        }
        Ok(None)
    }

    fn tag(&mut self, kind: u16, value: &[u8]) -> Result<(), String> {
        let change = match kind {
            kind::PAD => return Ok(()),
            kind::HEAD => {
                let is_whole = value.len() == HEAD_VALUE;
                self.is_begun = true;
                return match (le32(value, 0), le32(value, 4)) {
                    _ if !is_whole => Err(wrong_length(value)),
                    (_, transaction) if transaction != self.transaction => Err(self.of_another(transaction)),
                    (0, _) => Ok(()),
                    (features, _) => Err(format!("says that features are needed that are not known: {features:#x}")),
                };
            }
            kind => change(kind, value)?,
        };
        self.pending.changes.push(change);
        Ok(())
    }

    fn tail(&mut self, block: &[u8], at: usize, value: &[u8]) -> Result<FastCommit, String> {
        if value.len() < TAIL_BYTES {
            return Err(wrong_length(value));
        }
        if le32(value, 0) != self.transaction {
            return Err(self.of_another(le32(value, 0)));
        }
        let sum = crc32c_raw(self.sum, &block[at..at + TAIL_SUMMED]);
        if sum != le32(value, 4) {
            return Err(format!("has checksum {:08x}, and should have {sum:08x}", le32(value, 4)));
        }
        self.sum = 0;
        let next = FastCommit { at: self.blocks, changes: Vec::new() };
        Ok(std::mem::replace(&mut self.pending, next))
    }

    fn of_another(&self, transaction: u32) -> String {
        format!("is of transaction {transaction}, and should be of {}", self.transaction)
    }
}

fn wrong_length(value: &[u8]) -> String {
    format!("has {} bytes, which it cannot have", value.len())
}

/// Reads the change of a tag that has one.
fn change(kind: u16, value: &[u8]) -> Result<Change, String> {
    let inode = le32(value, 0);
    match kind {
        kind::ADD_RANGE if value.len() == HEAD + ENTRY => {
            Ok(Change::AddRange { inode, extent: Extent::read(&value[HEAD..]) })
        }
        kind::CUT_RANGE if value.len() == CUT_VALUE => {
            Ok(Change::CutRange { inode, first: le32(value, 4), blocks: le32(value, 8) })
        }
        kind::CREATE | kind::LINK | kind::UNLINK if value.len() > 8 => {
            let name = NameChange { directory: inode, inode: le32(value, 4), name: value[8..].to_vec() };
            Ok(match kind {
                kind::CREATE => Change::Create(name),
                kind::LINK => Change::Link(name),
                _ => Change::Unlink(name),
            })
        }
        kind::INODE if value.len() >= 4 + INODE_BYTES => Ok(Change::Inode { inode, bytes: value[4..].to_vec() }),
        kind::ADD_RANGE..=kind::INODE => Err(wrong_length(value)),
        _ => Err("is not known".to_string()),
    }
}

/// Writes a fast commit in whole blocks. `is_first`: it is the first of its transaction, and begins with a head.
///
/// # Panics
///
/// If a change is longer than a block, which has 1 KiB at least: an inode has 1012 bytes at the most, and a name 255.
pub fn write(transaction: u32, is_first: bool, changes: &[Change], block_bytes: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(block_bytes);
    let head = is_first.then(|| (kind::HEAD, [[0; 4], transaction.to_le_bytes()].concat()));
    for (kind, value) in head.into_iter().chain(changes.iter().map(value_of)) {
        // A tag leaves room for a pad behind it.
        assert!(value.len() <= block_bytes - 2 * HEAD, "a tag of {} bytes fits into a block", value.len());
        make_room(&mut bytes, value.len(), block_bytes);
        put_tag(&mut bytes, kind, &value);
    }
    make_room(&mut bytes, TAIL_BYTES, block_bytes);
    let at = bytes.len();
    let mut tail = vec![0; block_bytes - at % block_bytes - HEAD];
    put32(&mut tail, 0, transaction);
    put_tag(&mut bytes, kind::TAIL, &tail);
    let sum = crc32c_raw(0, &bytes[..at + TAIL_SUMMED]);
    put32(&mut bytes, at + TAIL_SUMMED, sum);
    bytes
}

/// The kind of a change's tag, and its value.
fn value_of(change: &Change) -> (u16, Vec<u8>) {
    let named = |kind, name: &NameChange| {
        (kind, [&name.directory.to_le_bytes()[..], &name.inode.to_le_bytes(), &name.name].concat())
    };
    match change {
        Change::AddRange { inode, extent } => {
            let mut value = vec![0; HEAD + ENTRY];
            put32(&mut value, 0, *inode);
            extent.write(&mut value[HEAD..]);
            (kind::ADD_RANGE, value)
        }
        Change::CutRange { inode, first, blocks } => {
            (kind::CUT_RANGE, [inode, first, blocks].into_iter().flat_map(|number| number.to_le_bytes()).collect())
        }
        Change::Create(name) => named(kind::CREATE, name),
        Change::Link(name) => named(kind::LINK, name),
        Change::Unlink(name) => named(kind::UNLINK, name),
        Change::Inode { inode, bytes } => (kind::INODE, [&inode.to_le_bytes()[..], bytes].concat()),
    }
}

/// Fills the block at hand up, unless a value of so many bytes and a pad behind it fit into it.
fn make_room(bytes: &mut Vec<u8>, value: usize, block_bytes: usize) {
    let left = block_bytes - bytes.len() % block_bytes;
    if 2 * HEAD + value > left {
        put_tag(bytes, kind::PAD, &vec![0; left - HEAD]);
    }
}

fn put_tag(bytes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let at = bytes.len();
    bytes.resize(at + HEAD, 0);
    put16(bytes, at, kind);
    put16(bytes, at + 2, value.len() as u16);
    bytes.extend_from_slice(value);
}

/// True if the first fast commit of a transaction begins in this block.
pub fn begins(block: &[u8]) -> bool {
    le16(block, 0) == kind::HEAD && usize::from(le16(block, 2)) == HEAD_VALUE
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name() -> impl Strategy<Value = NameChange> {
        let bytes = proptest::collection::vec(any::<u8>(), 1..=255);
        (any::<u32>(), any::<u32>(), bytes).prop_map(|(directory, inode, name)| NameChange { directory, inode, name })
    }

    fn change() -> impl Strategy<Value = Change> {
        let extent = (any::<u32>(), 1..=32767u32, 0..1u64 << 48, any::<bool>())
            .prop_map(|(first, count, place, is_written)| Extent { first, count, place, is_written });
        let bytes = proptest::collection::vec(any::<u8>(), 128..=256);
        prop_oneof![
            (any::<u32>(), extent).prop_map(|(inode, extent)| Change::AddRange { inode, extent }),
            any::<[u32; 3]>().prop_map(|[inode, first, blocks]| Change::CutRange { inode, first, blocks }),
            name().prop_map(Change::Create),
            name().prop_map(Change::Link),
            name().prop_map(Change::Unlink),
            (any::<u32>(), bytes).prop_map(|(inode, bytes)| Change::Inode { inode, bytes }),
        ]
    }

    fn read(transaction: u32, is_first: bool, bytes: &[u8], block_bytes: usize) -> Result<Option<FastCommit>, String> {
        let mut reader = Reader::new(transaction, 0, is_first);
        let mut found = None;
        for block in bytes.chunks(block_bytes) {
            assert!(found.is_none(), "the tail is in the last block");
            found = reader.block(block)?;
        }
        Ok(found)
    }

    proptest! {
        #[test]
        fn a_fast_commit_is_read_as_it_was_written(
            changes in proptest::collection::vec(change(), 0..60),
            transaction in any::<u32>(),
            is_first in any::<bool>(),
            block_bytes in prop_oneof![Just(1024usize), Just(2048), Just(4096)],
        ) {
            let bytes = write(transaction, is_first, &changes, block_bytes);
            prop_assert_eq!(bytes.len() % block_bytes, 0);
            let found = read(transaction, is_first, &bytes, block_bytes).unwrap();
            prop_assert_eq!(found, Some(FastCommit { at: 0, changes }));
            prop_assert!(read(transaction.wrapping_add(1), is_first, &bytes, block_bytes).is_err());
        }

        #[test]
        fn a_fast_commit_with_a_flipped_bit_is_not_read(
            changes in proptest::collection::vec(change(), 0..30),
            place in any::<prop::sample::Index>(),
        ) {
            let mut bytes = write(7, true, &changes, 1024);
            let bit = place.index(8 * bytes.len());
            bytes[bit / 8] ^= 1 << (bit % 8);
            // Bytes behind the checksum in the last block have no meaning.
            let found = read(7, true, &bytes, 1024);
            prop_assert!(!matches!(found, Ok(Some(found)) if found.changes != changes));
        }

        #[test]
        fn no_block_makes_the_reader_panic(mut block in proptest::collection::vec(any::<u8>(), 1024), kind in 0u8..11) {
            (block[0], block[1]) = (kind, 0);
            block[3] &= 1;
            for is_first in [true, false] {
                let _ = Reader::new(7, 0, is_first).block(&block);
            }
        }
    }
}
