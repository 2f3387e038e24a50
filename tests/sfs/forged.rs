//! Structures with wrong fields and right checksums, as left by a bug or an attacker.

use super::machine::{Device, Machine};
use super::unclean::{block, change, superblock};

/// A field of the superblock.
pub struct Field {
    pub name: &'static str,
    pub at: usize,
    pub width: usize,
}

const fn field(name: &'static str, at: usize, width: usize) -> Field {
    Field { name, at, width }
}

/// All fields but the checksum itself; the format's own test holds their places.
pub const FIELDS: [Field; 41] = [
    field("magic", 0, 8),
    field("version", 8, 4),
    field("identity", 16, 8),
    field("identity's second half", 24, 8),
    field("sequence", 32, 8),
    field("created", 40, 8),
    field("device_blocks", 48, 8),
    field("segment_blocks", 56, 4),
    field("segments", 60, 4),
    field("clean", 64, 4),
    field("memories", 68, 4),
    field("next_partial", 72, 8),
    field("chain", 80, 4),
    field("open_segment", 84, 4),
    field("open_block", 88, 4),
    field("next_segment", 92, 4),
    field("tick", 96, 8),
    field("first_orphan", 104, 8),
    field("first_free_inode", 112, 8),
    field("inodes", 120, 8),
    field("used_inodes", 128, 8),
    field("used_blocks", 136, 8),
    field("dat.top.address", 144, 8),
    field("dat.top.crc", 152, 4),
    field("dat.top.taken", 156, 4),
    field("dat.pages", 160, 8),
    field("inode_file.top.address", 168, 8),
    field("inode_file.top.crc", 176, 4),
    field("inode_file.top.taken", 180, 4),
    field("inode_file.pages", 184, 8),
    field("usage_file.top.address", 192, 8),
    field("usage_file.top.crc", 200, 4),
    field("usage_file.top.taken", 204, 4),
    field("usage_file.pages", 208, 8),
    field("memory's first", 216, 8),
    field("memory's second", 224, 8),
    field("head 0's segment", 472, 4),
    field("head 0's block", 476, 4),
    field("head 1's segment", 480, 4),
    field("head 1's block", 484, 4),
    field("behind the last field", 600, 8),
];

/// The checksum of a structure, with that field zero.
fn crc_without(bytes: &[u8], at: usize) -> u32 {
    let crc = crc32c::crc32c(&bytes[..at]);
    let crc = crc32c::crc32c_append(crc, &[0; 4]);
    crc32c::crc32c_append(crc, &bytes[at + 4..])
}

/// A number in a structure.
pub fn get(bytes: &[u8], at: usize, width: usize) -> u64 {
    (0..width).rev().fold(0, |number, byte| number << 8 | u64::from(bytes[at + byte]))
}

/// Puts a value, as far as its field is wide, into a superblock, and its checksum right.
pub fn set(bytes: &mut [u8], field: &Field, value: u64) {
    bytes[field.at..field.at + field.width].copy_from_slice(&value.to_le_bytes()[..field.width]);
    let crc = crc_without(bytes, 12);
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
}

/// Puts the checksum of a summary of one block right.
pub fn seal_summary(bytes: &mut [u8]) {
    let crc = crc_without(bytes, 4);
    bytes[4..8].copy_from_slice(&crc.to_le_bytes());
}

/// Changes the two newest superblocks: 0 is the newest.
pub fn superblocks(machine: &Machine, mut change: impl FnMut(u64, &mut [u8])) {
    match &machine.device {
        Device::Blocks(disk) => {
            let mut places = [0, machine.segment_blocks / 2];
            places.sort_by_key(|place| std::cmp::Reverse(get(&disk.bytes(*place), 32, 8)));
            for (copy, place) in (0..).zip(places) {
                let mut bytes = disk.bytes(place);
                change(copy, &mut bytes);
                disk.put(place, &bytes);
            }
        }
        Device::Zones(zones) => {
            let mut all: Vec<(u64, u32, usize)> = Vec::new();
            for zone in 0..2 {
                let blocks = zones.blocks_of(zone);
                all.extend(blocks.iter().enumerate().map(|(at, bytes)| (get(bytes, 32, 8), zone, at)));
            }
            all.sort_unstable_by(|one, other| other.cmp(one));
            for (copy, (_, zone, at)) in (0..2).zip(all) {
                let mut blocks = zones.blocks_of(zone);
                change(copy, &mut blocks[at]);
                zones.put(zone, blocks);
            }
        }
    }
}

/// Changes the entry of a virtual block, and puts all checksums above it right. Answers false if none can be found.
pub fn dat_entry(machine: &Machine, number: u64, forge: impl FnOnce(&mut [u8])) -> bool {
    let newest = superblock(machine);
    let place = |address: u64| (address / machine.segment_blocks, address % machine.segment_blocks);
    let (page, pages) = (number / 128, get(&newest, 160, 8));
    if page >= pages {
        return false;
    }
    let top = get(&newest, 144, 8);
    let is_in_log = |address: u64| (1..machine.segments * machine.segment_blocks).contains(&address);
    if !is_in_log(top) {
        return false;
    }
    let mut crc = 0;
    let forge_page = |address: u64| {
        let (segment, at) = place(address);
        let mut bytes = block(machine, segment, at);
        forge(&mut bytes[(number % 128) as usize * 32..][..32]);
        crc = crc32c::crc32c(&bytes);
        change(machine, segment, at, |block| block.copy_from_slice(&bytes));
    };
    if pages == 1 {
        forge_page(top);
    } else {
        // Up to 256 pages have one block of pointers.
        let (segment, at) = place(top);
        let mut tree = block(machine, segment, at);
        let pointer = page as usize * 16;
        let address = get(&tree, pointer, 8);
        if !is_in_log(address) {
            return false;
        }
        forge_page(address);
        tree[pointer + 8..pointer + 12].copy_from_slice(&crc.to_le_bytes());
        crc = crc32c::crc32c(&tree);
        change(machine, segment, at, |block| block.copy_from_slice(&tree));
    }
    let is_its = |bytes: &[u8]| get(bytes, 144, 8) == top;
    superblocks(machine, |_, bytes| {
        if is_its(bytes) {
            set(bytes, &field("dat.top.crc", 152, 4), crc.into());
        }
    });
    true
}
