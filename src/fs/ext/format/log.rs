//! The records of jbd2, the log of ext4. Numbers are big-endian. Each block of the log but a copy begins with a head:
//!
//! ```text
//! head        0 magic 0xC03B3998   4 kind   8 number of the transaction
//! superblock  0 head   12 block's bytes  16 blocks  20 first block of records  24 first transaction  28 its block, 0: none
//!             32 error  36 features: compatible, 40 incompatible, 44 read-only  48 UUID (16)  64 users  80 sums (1)
//!             84 blocks of the fast-commit area, the last ones of the log
//!             244 number of the volume's mount (8, in padding, which the kernel and e2fsck leave as it is)
//!             252 checksum  256 UUIDs of the file systems whose log it is (48 x 16)
//! descriptor  0 head   12 tags, each of a block whose copy follows            the last 4 bytes: checksum
//! tag         0 block (low)   4 flags   8 block (high)   12 checksum of the copy      (checksum v3: 16 bytes)
//!             0 block (low)   4 checksum (2)   6 flags (2)   8 block (high, with 64bit) (others: 8 or 12; 2 more with v2)
//!             and 16 bytes of UUID behind a tag without the flag SAME_UUID
//! revokes     0 head   12 bytes that are used   16 blocks, of 4 or 8 bytes    the last 4 bytes: checksum
//! commit      0 head   12 type of sums (1)  13 bytes of a sum (1)  16 checksum  48 seconds (8)  56 nanoseconds
//!             60 with the feature OPTIMISTIC: the last transaction that was durable when it was written
//! ```
//!
//! A copy that begins with the magic number has zeros there, and a flag says so.

use super::bytes::{be16, be32, be64, joined, put, put_be32};
use super::checksum::{crc32_be, crc32c_raw, flipped_bit};
use super::mount_number::MountNumber;

pub const MAGIC: u32 = 0xC03B_3998;
pub const SUPERBLOCK_BYTES: usize = 1024;
const HEAD: usize = 12;
const MOUNT_NUMBER: usize = 244;
const SUPERBLOCK_SUM: usize = 252;
/// The number of blocks for fast commits; zero stands for the usual number.
const FAST_BLOCKS: usize = 84;
const USUAL_FAST_BLOCKS: u32 = 256;
/// Bytes of a superblock of version 1.
const OLD_BYTES: usize = 36;
const USERS: usize = 256;
/// File systems whose UUIDs fit behind it.
const MOST_USERS: u32 = 48;
const LATER_FIELDS: &str = "it is of version 1, and has fields of version 2";
const COMMIT_SUM: usize = 16;
/// The last durable transaction in a commit of an optimistic log.
const DURABLE: usize = 60;
/// Bytes of a commit's fields.
const COMMIT_BYTES: usize = 64;
const UUID: usize = 16;

/// The kinds of blocks.
pub mod kind {
    pub const DESCRIPTOR: u32 = 1;
    pub const COMMIT: u32 = 2;
    pub const OLD_SUPERBLOCK: u32 = 3;
    pub const SUPERBLOCK: u32 = 4;
    pub const REVOKES: u32 = 5;
}

/// The incompatible features of a log.
pub mod feature {
    pub const REVOKES: u32 = 1;
    pub const WIDE: u32 = 2;
    pub const ASYNC_COMMIT: u32 = 4;
    pub const SUMS_V2: u32 = 8;
    pub const SUMS_V3: u32 = 16;
    pub const FAST_COMMIT: u32 = 32;
    /// Of this program alone: no flush stands between transactions, and those behind one that is not whole do not count.
    pub const OPTIMISTIC: u32 = 1 << 31;
    /// Those that are known here.
    pub const ALL: u32 = REVOKES | WIDE | ASYNC_COMMIT | SUMS_V2 | SUMS_V3 | FAST_COMMIT | OPTIMISTIC;
}

/// The compatible feature of a log whose commits have a checksum of their transaction: that of version 1.
const SUMS_V1: u32 = 1;

mod tag_flag {
    pub const ESCAPED: u32 = 1;
    pub const SAME_UUID: u32 = 2;
    pub const LAST: u32 = 8;
}

/// The head of a block of the log; `None` if it has none.
pub fn head(block: &[u8]) -> Option<(u32, u32)> {
    (be32(block, 0) == MAGIC).then(|| (be32(block, 4), be32(block, 8)))
}

fn put_head(block: &mut [u8], kind: u32, transaction: u32) {
    put_be32(block, 0, MAGIC);
    put_be32(block, 4, kind);
    put_be32(block, 8, transaction);
}

/// The superblock of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSuperblock(Box<[u8]>);

impl LogSuperblock {
    /// That in these bytes, of a block of the volume, of which the log may take `blocks`. Fails with the fault.
    pub fn read(bytes: &[u8], blocks: u64) -> Result<LogSuperblock, String> {
        let found = LogSuperblock(bytes[..SUPERBLOCK_BYTES].into());
        let (kind, _) = head(bytes).ok_or("its magic number is missing")?;
        if ![kind::SUPERBLOCK, kind::OLD_SUPERBLOCK].contains(&kind) {
            return Err(format!("it is a block of kind {kind}"));
        }
        if kind == kind::OLD_SUPERBLOCK && found.has_later_fields() {
            return Err(LATER_FIELDS.to_string());
        }
        if found.users().0 > MOST_USERS {
            return Err(format!(
                "it is the log of {} file systems, of which {MOST_USERS} have a place",
                found.users().0
            ));
        }
        if be32(bytes, 12) as usize != bytes.len() {
            return Err(format!("its blocks have {} bytes, and those of the volume {}", be32(bytes, 12), bytes.len()));
        }
        if found.has_sums() && found.checksum() != be32(bytes, SUPERBLOCK_SUM) {
            return Err(format!("its checksum should be {:08x}", found.checksum()));
        }
        if u64::from(found.blocks()) > blocks || found.first() == 0 || found.first() >= found.blocks() {
            let (first, end) = (found.first(), found.blocks());
            return Err(format!("records from block {first} to {end} do not lie in {blocks} blocks"));
        }
        if found.first() >= found.records_end() {
            let (fast, all) = (found.fast_blocks(), found.blocks());
            return Err(format!("{fast} of its {all} blocks are for fast commits, and none is left for records"));
        }
        if found.start() != 0 && !(found.first()..found.records_end()).contains(&found.start()) {
            return Err(format!("it begins at block {}, which is not one of its records", found.start()));
        }
        Ok(found)
    }

    /// True if it has features, or users, which version 1 has not.
    fn has_later_fields(&self) -> bool {
        self.0[OLD_BYTES..OLD_BYTES + 12].iter().any(|byte| *byte != 0) || self.users().0 != 0
    }

    /// That in these bytes, of which one bit is flipped, as its checksum says, or whose fields do not fit its version; and
    /// what was wrong. `None` if more is.
    pub fn mended(bytes: &[u8], blocks: u64) -> Option<(LogSuperblock, String)> {
        let said = be32(bytes, SUPERBLOCK_SUM);
        let stored = LogSuperblock(bytes[..SUPERBLOCK_BYTES].into());
        if head(bytes).is_some_and(|(kind, _)| kind == kind::OLD_SUPERBLOCK) {
            let mut plain = bytes.to_vec();
            plain[OLD_BYTES..SUPERBLOCK_BYTES].fill(0);
            let found = LogSuperblock::read(&plain, blocks).ok().filter(|_| stored.has_later_fields());
            return found.map(|found| (found, LATER_FIELDS.to_string()));
        }
        if stored.users().0 > MOST_USERS && (!stored.has_sums() || stored.checksum() == said) {
            let mut one = bytes.to_vec();
            put_be32(&mut one, 64, 1);
            let mut made = LogSuperblock(one[..SUPERBLOCK_BYTES].into());
            made.sum();
            one[..SUPERBLOCK_BYTES].copy_from_slice(made.bytes());
            let why = format!("it is the log of {} file systems", stored.users().0);
            return LogSuperblock::read(&one, blocks).ok().map(|found| (found, why));
        }
        // Without checksums the field is zero, and so is their type.
        if said == 0 && bytes[80] == 0 {
            let mut plain = bytes.to_vec();
            put_be32(&mut plain, 40, stored.features() & !(feature::SUMS_V2 | feature::SUMS_V3));
            let why = "it says that there are checksums, and has none".to_string();
            let found = LogSuperblock::read(&plain, blocks).ok().filter(|_| stored.has_sums());
            return found.map(|found| (found, why));
        }
        let mut whole = bytes.to_vec();
        let change = said ^ stored.checksum();
        let at = match change.is_power_of_two() {
            true => {
                put_be32(&mut whole, SUPERBLOCK_SUM, said ^ change);
                SUPERBLOCK_SUM
            }
            false => {
                let (at, bit) = flipped_bit(change, SUPERBLOCK_BYTES)?;
                whole[at] ^= bit;
                at
            }
        };
        let found = LogSuperblock::read(&whole, blocks).ok().filter(LogSuperblock::has_sums)?;
        Some((found, format!("a bit of its byte {at} is flipped")))
    }

    /// True if it has a checksum, and says that it has none: the feature is lost.
    pub fn hides_sums(&self) -> bool {
        !self.has_sums() && self.start() != 0 && be32(&self.0, SUPERBLOCK_SUM) != 0
    }

    /// A new one, of an empty log with these features.
    pub fn new(block_bytes: u32, blocks: u32, features: u32, uuid: [u8; 16]) -> LogSuperblock {
        let mut made = LogSuperblock(vec![0; SUPERBLOCK_BYTES].into());
        put_head(&mut made.0, kind::SUPERBLOCK, 0);
        for (at, number) in [(12, block_bytes), (16, blocks), (20, 1), (24, 1), (28, 0), (40, features), (64, 1)] {
            put_be32(&mut made.0, at, number);
        }
        made.0[48..64].copy_from_slice(&uuid);
        made.0[80] = if features & (feature::SUMS_V2 | feature::SUMS_V3) != 0 { 4 } else { 0 };
        made.sum();
        made
    }

    /// The same on a device of its own: records begin at block `first`, and it is the log of this file system.
    pub fn on_device(mut self, first: u32, user: [u8; 16]) -> LogSuperblock {
        put_be32(&mut self.0, 20, first);
        self.0[USERS..USERS + UUID].copy_from_slice(&user);
        self.sum();
        self
    }

    /// The file systems whose log it is: their number, and the UUID of the first one.
    pub fn users(&self) -> (u32, [u8; UUID]) {
        (be32(&self.0, 64), self.0[USERS..USERS + UUID].try_into().expect("16 bytes"))
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn blocks(&self) -> u32 {
        be32(&self.0, 16)
    }

    /// Blocks of the area for fast commits, at the end of the log; 0 if it has none.
    fn fast_blocks(&self) -> u32 {
        match be32(&self.0, FAST_BLOCKS) {
            _ if !self.has(feature::FAST_COMMIT) => 0,
            0 => USUAL_FAST_BLOCKS,
            blocks => blocks,
        }
    }

    /// A new one whose last `blocks` blocks are for fast commits, once it has the feature.
    pub fn with_fast_blocks(mut self, blocks: u32) -> LogSuperblock {
        put_be32(&mut self.0, FAST_BLOCKS, blocks);
        self.sum();
        self
    }

    /// Gives it an area for fast commits: in its last blocks, as many as it says, or the usual number. False, and nothing is
    /// changed, if less than `least` blocks are left: the kernel then has none, either.
    pub fn add_fast_area(&mut self, least: u32) -> bool {
        let mut with = self.clone();
        with.add_feature(feature::FAST_COMMIT);
        let has_room = with.records_end() >= least;
        if has_room {
            *self = with;
        }
        has_room
    }

    /// The block behind the last one for records.
    pub fn records_end(&self) -> u32 {
        self.blocks().saturating_sub(self.fast_blocks())
    }

    /// The blocks for fast commits. The first block of the area has none: the kernel begins behind it.
    pub fn fast_area(&self) -> std::ops::Range<u32> {
        let end = self.blocks();
        (self.records_end() + 1).min(end)..end
    }

    /// The first block of records.
    pub fn first(&self) -> u32 {
        be32(&self.0, 20)
    }

    /// The first transaction.
    pub fn sequence(&self) -> u32 {
        be32(&self.0, 24)
    }

    /// The block at which it begins; 0 if there is none.
    pub fn start(&self) -> u32 {
        be32(&self.0, 28)
    }

    /// The incompatible features.
    pub fn features(&self) -> u32 {
        be32(&self.0, 40)
    }

    pub fn uuid(&self) -> [u8; 16] {
        self.0[48..64].try_into().expect("16 bytes")
    }

    pub fn has(&self, feature: u32) -> bool {
        self.features() & feature != 0
    }

    pub fn add_feature(&mut self, feature: u32) {
        let features = self.features() | feature;
        put_be32(&mut self.0, 40, features);
        self.sum();
    }

    /// Adds an incompatible feature, or takes it away.
    pub fn set_feature(&mut self, feature: u32, is_set: bool) {
        let others = self.features() & !feature;
        put_be32(&mut self.0, 40, if is_set { others | feature } else { others });
        self.sum();
    }

    /// True if it is of version 1.
    pub fn is_old(&self) -> bool {
        be32(&self.0, 4) == kind::OLD_SUPERBLOCK
    }

    /// Gives it checksums, of the newest version.
    pub fn use_sums(&mut self) {
        let features = self.features() & !feature::SUMS_V2 | feature::SUMS_V3;
        // Sums of whole transactions, which the first version had, end with them.
        let compatible = be32(&self.0, 36) & !1;
        put_be32(&mut self.0, 36, compatible);
        put_be32(&mut self.0, 40, features);
        // CRC-32C.
        self.0[80] = 4;
        self.sum();
    }

    /// It begins at this block with this transaction; block 0: it is empty, so that every replay knows it.
    pub fn set_start(&mut self, start: u32, sequence: u32) {
        put_be32(&mut self.0, 24, sequence);
        put_be32(&mut self.0, 28, start);
        match start {
            0 => self.set_feature(feature::OPTIMISTIC, false),
            _ => self.sum(),
        }
    }

    /// The number of the volume's mount that has used it last.
    pub fn mount_number(&self) -> MountNumber {
        MountNumber(u64::from(be32(&self.0, MOUNT_NUMBER)) << 32 | u64::from(be32(&self.0, MOUNT_NUMBER + 4)))
    }

    pub fn set_mount_number(&mut self, number: MountNumber) {
        self.0[MOUNT_NUMBER..MOUNT_NUMBER + 8].copy_from_slice(&number.0.to_be_bytes());
        self.sum();
    }

    fn has_sums(&self) -> bool {
        self.has(feature::SUMS_V2) || self.has(feature::SUMS_V3)
    }

    /// The seed of the log's other checksums, if it has some.
    pub fn seed(&self) -> Option<u32> {
        self.has_sums().then(|| crc32c_raw(!0, &self.uuid()))
    }

    fn checksum(&self) -> u32 {
        let before = crc32c_raw(crc32c_raw(!0, &self.0[..SUPERBLOCK_SUM]), &[0; 4]);
        crc32c_raw(before, &self.0[SUPERBLOCK_SUM + 4..])
    }

    fn sum(&mut self) {
        if self.has_sums() {
            let sum = self.checksum();
            put_be32(&mut self.0, SUPERBLOCK_SUM, sum);
        }
    }
}

/// How the records of a log are written: its features and its seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    is_wide: bool,
    has_v3: bool,
    has_v2: bool,
    has_v1: bool,
    seed: Option<u32>,
    uuid: [u8; 16],
}

/// Flips the one bit back that makes the checksum at `sum_at` wrong, and says where it is. The bytes there count as zeros
/// for the checksum, which is `right`; it covers `covered` bytes.
fn flip_back(block: &[u8], sum_at: usize, right: u32, covered: usize) -> Option<(Vec<u8>, usize)> {
    let mut mended = block.to_vec();
    let change = be32(block, sum_at) ^ right;
    if change.is_power_of_two() {
        put_be32(&mut mended, sum_at, right);
        return Some((mended, sum_at));
    }
    let (at, bit) = flipped_bit(change, covered)?;
    mended[at] ^= bit;
    Some((mended, at))
}

/// A block that a transaction has a copy of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    pub block: u64,
    /// The copy had the magic number at its beginning.
    pub is_escaped: bool,
    /// The checksum of the copy, as far as the tag holds it.
    sum: u32,
}

impl Dialect {
    pub fn of(superblock: &LogSuperblock) -> Dialect {
        Dialect {
            is_wide: superblock.has(feature::WIDE),
            has_v3: superblock.has(feature::SUMS_V3),
            has_v2: superblock.has(feature::SUMS_V2),
            has_v1: be32(superblock.bytes(), 36) & SUMS_V1 != 0 && !superblock.has_sums(),
            seed: superblock.seed(),
            uuid: superblock.uuid(),
        }
    }

    /// True if records have checksums.
    pub fn has_sums(&self) -> bool {
        self.seed.is_some()
    }

    fn tag_bytes(&self) -> usize {
        match (self.has_v3, self.is_wide) {
            (true, _) => 16,
            (false, is_wide) => 8 + if is_wide { 4 } else { 0 } + if self.has_v2 { 2 } else { 0 },
        }
    }

    fn tail_bytes(&self) -> usize {
        if self.seed.is_some() { 4 } else { 0 }
    }

    /// Tags of a descriptor.
    pub fn tags_of_block(&self, block_bytes: usize) -> usize {
        (block_bytes - HEAD - UUID - self.tail_bytes()) / self.tag_bytes()
    }

    /// Numbers of a block of revokes.
    pub fn revokes_of_block(&self, block_bytes: usize) -> usize {
        (block_bytes - HEAD - 4 - self.tail_bytes()) / self.revoke_bytes()
    }

    fn revoke_bytes(&self) -> usize {
        if self.is_wide { 8 } else { 4 }
    }

    /// The checksum of a copy, as a tag holds it.
    fn copy_sum(&self, copy: &[u8], transaction: u32) -> u32 {
        let Some(seed) = self.seed else { return 0 };
        let sum = crc32c_raw(crc32c_raw(seed, &transaction.to_be_bytes()), copy);
        if self.has_v3 { sum } else { sum & 0xFFFF }
    }

    /// True if a copy is that of its tag.
    pub fn is_copy(&self, tag: &Tag, copy: &[u8], transaction: u32) -> bool {
        self.seed.is_none() || self.copy_sum(copy, transaction) == tag.sum
    }

    /// Makes a block's bytes a copy, and says its tag.
    pub fn escape(&self, copy: &mut [u8], block: u64, transaction: u32) -> Tag {
        let is_escaped = be32(copy, 0) == MAGIC;
        if is_escaped {
            put_be32(copy, 0, 0);
        }
        Tag { block, is_escaped, sum: self.copy_sum(copy, transaction) }
    }

    /// Makes a copy the block's bytes again.
    pub fn unescape(tag: &Tag, copy: &mut [u8]) {
        if tag.is_escaped {
            put_be32(copy, 0, MAGIC);
        }
    }

    /// The sum of a block whose last four bytes hold it.
    fn tail_sum(block: &[u8], seed: u32) -> u32 {
        crc32c_raw(crc32c_raw(seed, &block[..block.len() - 4]), &[0; 4])
    }

    fn has_sound_tail(&self, block: &[u8]) -> bool {
        self.seed.is_none_or(|seed| be32(block, block.len() - 4) == Dialect::tail_sum(block, seed))
    }

    fn put_tail(&self, block: &mut [u8]) {
        if let Some(seed) = self.seed {
            let sum = Dialect::tail_sum(block, seed);
            let at = block.len() - 4;
            put_be32(block, at, sum);
        }
    }

    /// The tags of a descriptor; `None` if its checksum is wrong. The last one has a flag, unless there is no room for
    /// another.
    pub fn read_descriptor(&self, block: &[u8]) -> Option<Vec<Tag>> {
        if !self.has_sound_tail(block) {
            return None;
        }
        let (width, end) = (self.tag_bytes(), block.len() - self.tail_bytes());
        let mut tags = Vec::new();
        let mut at = HEAD;
        while at + width <= end {
            let low = be32(block, at);
            let (flags, sum) = match self.has_v3 {
                true => (be32(block, at + 4), be32(block, at + 12)),
                false => (u32::from(be16(block, at + 6)), u32::from(be16(block, at + 4))),
            };
            let high = if self.is_wide { be32(block, at + 8) } else { 0 };
            let is_escaped = flags & tag_flag::ESCAPED != 0;
            tags.push(Tag { block: joined(high, low), is_escaped, sum });
            if flags & tag_flag::LAST != 0 {
                return Some(tags);
            }
            at += width + if flags & tag_flag::SAME_UUID != 0 { 0 } else { UUID };
        }
        Some(tags)
    }

    /// A descriptor of these tags.
    ///
    /// # Panics
    ///
    /// If they do not fit.
    pub fn write_descriptor(&self, block: &mut [u8], transaction: u32, tags: &[Tag]) {
        assert!(!tags.is_empty() && tags.len() <= self.tags_of_block(block.len()), "the tags fit");
        block.fill(0);
        put_head(block, kind::DESCRIPTOR, transaction);
        let mut at = HEAD;
        for (number, tag) in tags.iter().enumerate() {
            let mut flags = if tag.is_escaped { tag_flag::ESCAPED } else { 0 };
            flags |= if number > 0 { tag_flag::SAME_UUID } else { 0 };
            flags |= if number + 1 == tags.len() { tag_flag::LAST } else { 0 };
            put_be32(block, at, tag.block as u32);
            match self.has_v3 {
                true => {
                    put_be32(block, at + 4, flags);
                    put_be32(block, at + 12, tag.sum);
                }
                false => {
                    put(block, at + 4, (tag.sum as u16).to_be_bytes());
                    put(block, at + 6, (flags as u16).to_be_bytes());
                }
            }
            if self.is_wide {
                put_be32(block, at + 8, (tag.block >> 32) as u32);
            }
            at += self.tag_bytes();
            if number == 0 {
                block[at..at + UUID].copy_from_slice(&self.uuid);
                at += UUID;
            }
        }
        self.put_tail(block);
    }

    /// The blocks that a block of revokes names; `None` if its checksum or its length is wrong.
    pub fn read_revokes(&self, block: &[u8]) -> Option<Vec<u64>> {
        let used = be32(block, HEAD) as usize;
        let end = block.len() - self.tail_bytes();
        if !self.has_sound_tail(block) || !(HEAD + 4..=end).contains(&used) {
            return None;
        }
        let records = block[HEAD + 4..used].chunks_exact(self.revoke_bytes());
        Some(
            records
                .map(
                    |record| {
                        if self.is_wide { joined(be32(record, 0), be32(record, 4)) } else { be32(record, 0).into() }
                    },
                )
                .collect(),
        )
    }

    /// A block of revokes.
    ///
    /// # Panics
    ///
    /// If they do not fit.
    pub fn write_revokes(&self, block: &mut [u8], transaction: u32, revokes: &[u64]) {
        assert!(revokes.len() <= self.revokes_of_block(block.len()), "the numbers fit");
        block.fill(0);
        put_head(block, kind::REVOKES, transaction);
        let width = self.revoke_bytes();
        put_be32(block, HEAD, (HEAD + 4 + revokes.len() * width) as u32);
        for (record, revoked) in block[HEAD + 4..].chunks_exact_mut(width).zip(revokes) {
            record.copy_from_slice(&revoked.to_be_bytes()[8 - width..]);
        }
        self.put_tail(block);
    }

    fn commit_sum(block: &[u8], seed: u32) -> u32 {
        let before = crc32c_raw(crc32c_raw(seed, &block[..COMMIT_SUM]), &[0; 4]);
        crc32c_raw(before, &block[COMMIT_SUM + 4..])
    }

    /// True if the checksum of a commit is right. Bytes behind its fields are zero when it is written: if old bytes are
    /// there, the block was torn, and its first sector alone has reached the medium. Nothing is missing then.
    pub fn is_commit(&self, block: &[u8]) -> bool {
        let mut whole = block.to_vec();
        whole[COMMIT_BYTES..].fill(0);
        self.seed.is_none_or(|seed| be32(block, COMMIT_SUM) == Dialect::commit_sum(&whole, seed))
    }

    /// A record of a transaction, or its commit, of which one bit is flipped, as its checksum says; and the byte in which
    /// it is. `None` if more is wrong, or the log has no checksums.
    pub fn mended_record(&self, block: &[u8], transaction: u32) -> Option<(Vec<u8>, usize)> {
        let seed = self.seed?;
        let is_one_of = |block: &[u8], kinds: &[u32]| {
            head(block).is_some_and(|(kind, number)| number == transaction && kinds.contains(&kind))
        };
        let tail = block.len() - 4;
        let record = flip_back(block, tail, Dialect::tail_sum(block, seed), block.len());
        let record = record.filter(|(block, _)| is_one_of(block, &[kind::DESCRIPTOR, kind::REVOKES]));
        if record.as_ref().is_some_and(|(block, _)| self.has_sound_tail(block)) {
            return record;
        }
        let mut whole = block.to_vec();
        whole[COMMIT_BYTES..].fill(0);
        let commit = flip_back(&whole, COMMIT_SUM, Dialect::commit_sum(&whole, seed), whole.len());
        commit.filter(|(block, _)| is_one_of(block, &[kind::COMMIT]) && self.is_commit(block))
    }

    /// A copy of which one bit is flipped, as the checksum in its tag says. `None` if more is wrong, or that checksum is
    /// too short to tell.
    pub fn mended_copy(&self, tag: &Tag, copy: &[u8], transaction: u32) -> Option<Vec<u8>> {
        if !self.has_v3 {
            return None;
        }
        let (at, bit) = flipped_bit(self.copy_sum(copy, transaction) ^ tag.sum, copy.len())?;
        let mut mended = copy.to_vec();
        mended[at] ^= bit;
        Some(mended)
    }

    /// The time in a commit, in nanoseconds since 1970.
    pub fn time_of_commit(block: &[u8]) -> u128 {
        u128::from(be64(block, 48)) * 1_000_000_000 + u128::from(be32(block, 56))
    }

    /// The checksum of a transaction, if commits have one: that of no block yet.
    pub fn begin_sum(&self) -> Option<u32> {
        self.has_v1.then_some(!0)
    }

    /// The same of one more block.
    pub fn add_to_sum(sum: Option<u32>, block: &[u8]) -> Option<u32> {
        sum.map(|sum| crc32_be(sum, block))
    }

    /// True if a commit has no other checksum of its transaction than this one.
    pub fn agrees(&self, commit: &[u8], sum: Option<u32>) -> bool {
        let is_crc32 = commit[12] == 1 && commit[13] == 4;
        let is_none = commit[12] == 0 && commit[13] == 0 && be32(commit, COMMIT_SUM) == 0;
        sum.is_none_or(|sum| is_none || is_crc32 && be32(commit, COMMIT_SUM) == sum)
    }

    /// The last transaction that was durable when a commit of an optimistic log was written.
    pub fn durable_of_commit(block: &[u8]) -> u32 {
        be32(block, DURABLE)
    }

    /// The record that ends a transaction, written at this time (nanoseconds since 1970). `durable`: of an optimistic log,
    /// the last transaction that is durable.
    pub fn write_commit(&self, block: &mut [u8], transaction: u32, at_ns: i64, durable: Option<u32>) {
        block.fill(0);
        put_head(block, kind::COMMIT, transaction);
        put_be32(block, DURABLE, durable.unwrap_or_default());
        put(block, 48, at_ns.div_euclid(1_000_000_000).to_be_bytes());
        put_be32(block, 56, at_ns.rem_euclid(1_000_000_000) as u32);
        if let Some(seed) = self.seed {
            let sum = Dialect::commit_sum(block, seed);
            put_be32(block, COMMIT_SUM, sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIALECTS: [u32; 5] =
        [0, feature::WIDE, feature::WIDE | feature::SUMS_V3, feature::SUMS_V3, feature::WIDE | feature::SUMS_V2];

    #[test]
    fn fields_that_do_not_fit_the_version_of_a_superblock_are_told_and_cost_no_record() {
        for features in [0, feature::SUMS_V3] {
            let mut right = LogSuperblock::new(1024, 1000, features, [7; 16]);
            right.set_start(5, 30);
            let mut wrong = right.clone();
            put_be32(&mut wrong.0, 64, 4_181_113_953);
            wrong.sum();
            assert!(LogSuperblock::read(&wrong.0, 1000).is_err());
            assert_eq!(LogSuperblock::mended(&wrong.0, 1000).unwrap().0, right);
        }
        let mut old = LogSuperblock::new(1024, 1000, 0, [0; 16]);
        old.set_start(5, 30);
        put_be32(&mut old.0, 4, kind::OLD_SUPERBLOCK);
        put_be32(&mut old.0, 64, 0);
        assert_eq!(LogSuperblock::read(&old.0, 1000), Ok(old.clone()));
        for at in [36, 40, 44, 64] {
            let mut wrong = old.clone();
            put_be32(&mut wrong.0, at, 1);
            assert!(LogSuperblock::read(&wrong.0, 1000).is_err(), "byte {at}");
            assert_eq!(LogSuperblock::mended(&wrong.0, 1000).unwrap().0, old, "byte {at}");
        }
    }

    #[test]
    fn records_are_read_as_they_were_written_in_every_dialect() {
        for features in DIALECTS {
            let superblock = LogSuperblock::new(1024, 1024, features | feature::REVOKES, [5; 16]);
            let mut whole = superblock.bytes().to_vec();
            assert_eq!(LogSuperblock::read(&whole, 1024), Ok(superblock.clone()));
            whole[250] = 1;
            assert_eq!(LogSuperblock::read(&whole, 1024).is_err(), superblock.seed().is_some());
            let dialect = Dialect::of(&superblock);
            let mut copies = vec![vec![7u8; 1024]; dialect.tags_of_block(1024)];
            put_be32(&mut copies[1], 0, MAGIC);
            let tags: Vec<Tag> = (9..).zip(&mut copies).map(|(block, copy)| dialect.escape(copy, block, 3)).collect();
            assert!(tags[1].is_escaped && be32(&copies[1], 0) == 0 && dialect.is_copy(&tags[1], &copies[1], 3));
            let mut block = vec![1; 1024];
            dialect.write_descriptor(&mut block, 3, &tags);
            assert_eq!((head(&block), dialect.read_descriptor(&block)), (Some((kind::DESCRIPTOR, 3)), Some(tags)));
            let revokes: Vec<u64> = (0..dialect.revokes_of_block(1024) as u64).collect();
            dialect.write_revokes(&mut block, 4, &revokes);
            assert_eq!((head(&block), dialect.read_revokes(&block)), (Some((kind::REVOKES, 4)), Some(revokes)));
            dialect.write_commit(&mut block, 5, 1_000_000_007, Some(4));
            assert_eq!(Dialect::durable_of_commit(&block), 4);
            assert!(head(&block) == Some((kind::COMMIT, 5)) && dialect.is_commit(&block));
            block[600] ^= 1;
            assert!(dialect.is_commit(&block), "a torn block, whose first sector is there");
            block[50] ^= 1;
            assert_eq!(dialect.is_commit(&block), superblock.seed().is_none());
        }
    }
}
