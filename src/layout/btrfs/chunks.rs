//! The chunk tree: maps ranges of the device to data, metadata, or system chunks.
//!
//! ```text
//! key    0 object   8 type   9 offset (the chunk's logical address)                       17 bytes
//! chunk  0 length   24 type   44 stripes   46 substripes   48 stripe: device 0, offset 8   48 + 32 a stripe
//! node   48 its own place   96 items   100 level   101 items
//! leaf's item     key, 17 data's offset after 101, 21 data's length                      25 bytes
//! inner item      key, 17 child's logical address, 25 generation                          33 bytes
//! ```

use super::super::bytes::{Bytes, Device};
use super::{LayoutError, Region, damaged};
use std::collections::BTreeMap;
use std::ops::Range;

const SYSTEM_STRUCTURE: &str = "the btrfs system chunks";
const TREE_STRUCTURE: &str = "the btrfs chunk tree";
const KEY_BYTES: usize = 17;
const CHUNK_BYTES: usize = 48;
const STRIPE_BYTES: usize = 32;
const CHUNK_ITEM: u8 = 228;
const NODE_HEADER_BYTES: usize = 101;
/// More nodes than the chunks of an exabyte need; bounds the walk of a damaged tree.
const MOST_NODES: usize = 1 << 16;

const DATA: u64 = 1;
const SYSTEM: u64 = 2;
const METADATA: u64 = 4;
const RAID0: u64 = 8;
const RAID10: u64 = 64;
const RAID5: u64 = 128;
const RAID6: u64 = 256;

/// The location of a tree node: its logical address, and the levels below it.
#[derive(Clone, Copy)]
pub(super) struct Node {
    pub at: u64,
    pub level: u8,
}

/// The chunk tree.
pub(super) struct Tree {
    pub node_bytes: usize,
    pub root: Node,
}

/// One chunk on this device.
#[derive(Clone)]
struct Chunk {
    length: u64,
    kind: u64,
    /// The first byte and the length of each of its stripes on this device.
    stripes: Vec<(u64, u64)>,
    /// True if a byte of the chunk is at the same distance from the start of each stripe.
    is_linear: bool,
}

/// The chunks of one device, by logical address.
pub(super) struct Chunks {
    device_number: u64,
    size_bytes: u64,
    by_address: BTreeMap<u64, Chunk>,
}

impl Chunks {
    pub fn new(device_number: u64, size_bytes: u64) -> Chunks {
        Chunks { device_number, size_bytes, by_address: BTreeMap::new() }
    }

    /// Adds the chunks that the superblock lists; the chunk tree lies in them.
    pub fn add_system(&mut self, array: &[u8]) -> Result<(), LayoutError> {
        let array = Bytes(array.to_vec());
        let mut at = 0;
        while at < array.0.len() {
            if array.part(at, KEY_BYTES + CHUNK_BYTES).is_none() || array.u8(at + 8) != CHUNK_ITEM {
                return Err(damaged(SYSTEM_STRUCTURE, format!("there is no chunk at byte {at} of the list")));
            }
            let (chunk, length) = self.chunk(&array, at + KEY_BYTES, SYSTEM_STRUCTURE)?;
            self.by_address.insert(array.le64(at + 9), chunk);
            at += KEY_BYTES + length;
        }
        Ok(())
    }

    /// Adds the chunks of the whole tree.
    pub fn add_tree(&mut self, device: &mut Device, tree: &Tree) -> Result<(), LayoutError> {
        let mut waiting = vec![tree.root];
        let mut seen = 0;
        while let Some(node) = waiting.pop() {
            seen += 1;
            if seen > MOST_NODES || node.level > 7 {
                return Err(damaged(TREE_STRUCTURE, "it has more nodes or levels than a chunk tree can have"));
            }
            let wrong = |what: &str| damaged(TREE_STRUCTURE, format!("the node at logical byte {}: {what}", node.at));
            let place = self.physical(node.at, tree.node_bytes as u64).ok_or_else(|| wrong("it is in no chunk"))?;
            let bytes = device.read(place, tree.node_bytes)?;
            if bytes.le64(48) != node.at || bytes.u8(100) != node.level {
                return Err(wrong("its header is another's"));
            }
            let items = bytes.le32(96) as usize;
            let item_bytes = if node.level == 0 { KEY_BYTES + 8 } else { KEY_BYTES + 16 };
            if items > (tree.node_bytes - NODE_HEADER_BYTES) / item_bytes {
                return Err(wrong("it has more items than fit"));
            }
            for item in 0..items {
                let at = NODE_HEADER_BYTES + item * item_bytes;
                if node.level > 0 {
                    waiting.push(Node { at: bytes.le64(at + KEY_BYTES), level: node.level - 1 });
                } else if bytes.u8(at + 8) == CHUNK_ITEM {
                    let data = NODE_HEADER_BYTES + bytes.le32(at + KEY_BYTES) as usize;
                    let (chunk, _) = self.chunk(&bytes, data, TREE_STRUCTURE)?;
                    self.by_address.insert(bytes.le64(at + 9), chunk);
                }
            }
        }
        Ok(())
    }

    /// Parses the chunk at `at`; also returns the bytes it takes.
    fn chunk(&self, bytes: &Bytes, at: usize, structure: &'static str) -> Result<(Chunk, usize), LayoutError> {
        let length = bytes.le64(at);
        let kind = bytes.le64(at + 24);
        let count = u64::from(bytes.le16(at + 44));
        let substripes = u64::from(bytes.le16(at + 46)).max(1);
        let taken = CHUNK_BYTES + count as usize * STRIPE_BYTES;
        if count == 0 || length == 0 || bytes.part(at, taken).is_none() {
            return Err(damaged(structure, format!("a chunk of {length} bytes in {count} stripes")));
        }
        // The number of stripes that share the chunk's bytes.
        let shares = match kind {
            kind if kind & RAID0 != 0 => count,
            kind if kind & RAID10 != 0 => (count / substripes).max(1),
            kind if kind & RAID5 != 0 => count.saturating_sub(1).max(1),
            kind if kind & RAID6 != 0 => count.saturating_sub(2).max(1),
            _ => 1,
        };
        let stripe_bytes = length / shares;
        let mut stripes = Vec::new();
        for stripe in 0..count as usize {
            let stripe = at + CHUNK_BYTES + stripe * STRIPE_BYTES;
            if bytes.le64(stripe) == self.device_number {
                let start = bytes.le64(stripe + 8);
                if start.checked_add(stripe_bytes).is_none_or(|end| end > self.size_bytes) {
                    return Err(damaged(structure, format!("a stripe of {stripe_bytes} bytes at {start} is outside")));
                }
                stripes.push((start, stripe_bytes));
            }
        }
        Ok((Chunk { length, kind, stripes, is_linear: shares == 1 }, taken))
    }

    /// The address on this device of `length` logical bytes at `at`.
    fn physical(&self, at: u64, length: u64) -> Option<u64> {
        let (start, chunk) = self.by_address.range(..=at).next_back()?;
        let within = at - start;
        let inside = within.checked_add(length).is_some_and(|end| end <= chunk.length);
        chunk.stripes.first().filter(|_| inside && chunk.is_linear).map(|(first, _)| first + within)
    }

    /// The ranges of this device with a known content.
    pub fn regions(&self) -> impl Iterator<Item = (Range<u64>, Region)> + '_ {
        self.by_address.values().flat_map(|chunk| {
            let region = match chunk.kind & (DATA | SYSTEM | METADATA) {
                DATA => Some(Region::Data),
                METADATA | SYSTEM => Some(Region::Metadata),
                // Mixed block groups: only a request's own flag decides.
                _ => None,
            };
            chunk.stripes.iter().filter_map(move |(start, length)| Some((*start..start + length, region?)))
        })
    }
}
