//! Makes a volume: `flashpath mkfs`, and every simulation.
//!
//! Its features are those of mke2fs's ext4, but for resize_inode: has_journal, ext_attr, dir_index, filetype, extent, 64bit, flex_bg, metadata_csum, sparse_super, large_file, huge_file,
//! dir_nlink, extra_isize; and fast_commit with `fast-commit=on`.
//!
//! ```text
//! first group of 16   superblock | descriptors | 16 block bitmaps | 16 inode bitmaps | 16 inode tables | data
//! others              superblock and descriptors in groups 1 and powers of 3, 5, 7 | data
//! ```
//!
//! Bitmaps of groups in which nothing lies are not written, nor are inode tables: their descriptors say so.

use super::allocation::bits;
use super::error::OpenExtError;
use super::format::entries;
use super::format::extents::{self, Child, Extent, Node, most_entries};
use super::format::features::{
    DIR_INDEX, DIR_NLINK, EXT_ATTR, EXTENTS, EXTRA_ISIZE, FAST_COMMIT, FILETYPE, FLEX_BG, Features, HAS_JOURNAL,
    HUGE_FILE, LARGE_FILE, METADATA_CSUM, SPARSE_SUPER, WIDE,
};
use super::format::group::{Descriptor, bitmap_sum, flag as group_flag};
use super::format::inode::{Inode, MAP_BYTES, Stamp, flag};
use super::format::log::{LogSuperblock, feature};
use super::format::shape::{JOURNAL, ROOT, Shape};
use super::format::superblock::{LENGTH, MAGIC, PLACE, Superblock, state};
use super::found_log::FoundLog;
use super::journal::{LogPlace, TransactionId};
use super::journal_device::{self, first_record};
use super::media::{Below, JournalMemory, Media};
use super::recovery::{Opening, refuse_kept, usable_region, wanted_memory};
use super::settings::LEAST_LOG;
use super::{Ext, ExtSettings};
use crate::device::{BlockDevice, Medium};
use crate::fs::station::Mounting;
use crate::fs::volume::{FileKind, Timestamp};
use crate::label::{Cause, Content, Label};
use crate::random::Random;
use crate::task::Task;
use crate::time::Time;
use crate::units::BLOCK_BYTES;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

const INODE_BYTES: u16 = 256;
const EXTRA_BYTES: u16 = 32;
const DESCRIPTOR_BYTES: u16 = 64;
const FIRST_INODE: u32 = 11;
/// The inode of `lost+found`.
const LOST_AND_FOUND: u32 = 11;
const FLEXIBLE_LOG: u8 = 4;
/// Blocks of data that a last group has at least; one with fewer is left out.
const LEAST_DATA: u64 = 64;
/// Bytes of a log on a device of its own, unless `journal-size=` says more.
const MOST_BY_ITSELF: u64 = 128 << 20;
/// The features of a new log.
const LOG_FEATURES: u32 = feature::REVOKES | feature::WIDE | feature::SUMS_V3;
const LABEL: Label = Label::first(Cause::Checkpoint, Content::Metadata);

/// A volume that is being made.
struct Maker<'m> {
    shape: Shape,
    superblock: Superblock,
    now: Timestamp,
    descriptors: Vec<Descriptor>,
    /// The block bitmap of each group.
    used: Vec<Vec<u8>>,
    /// Blocks of metadata, to be written.
    blocks: BTreeMap<u64, Vec<u8>>,
    settings: &'m ExtSettings,
}

/// A log that is being made.
struct NewLog {
    superblock: LogSuperblock,
    /// Its blocks on the volume's device; none if it has a device of its own.
    runs: Vec<Range<u64>>,
}

/// Makes an empty volume on these devices, and mounts it.
pub fn create(below: Vec<Medium>, settings: &ExtSettings, mounting: &Mounting) -> Result<Ext, OpenExtError> {
    let Below { volume: device, journal, memory } = Below::of(below)?;
    let task = Task::at(Time::ZERO);
    let block_bytes = settings.block_bytes as usize;
    if device.block_width() != BLOCK_BYTES as usize && block_bytes != BLOCK_BYTES as usize {
        return Err(OpenExtError::Unsupported("a stamp stands for a block of 4K: leave block= away".to_string()));
    }
    let media = Media::new(device, block_bytes);
    let on_device = journal.as_ref().map(|device| new_log_on_device(&**device, settings, mounting)).transpose()?;
    let in_volume =
        if on_device.is_some() { 0 } else { settings.journal_blocks(media.size_bytes() / settings.block_bytes) };
    let mut superblock = first_superblock(media.size_bytes(), in_volume, settings, mounting)?;
    let on_device = on_device.map(|log| log.on_device(first_record(block_bytes), superblock.uuid()));
    if let Some(log) = &on_device {
        superblock.set_bytes(208, &log.uuid());
        superblock.set32(224, 0);
        superblock.sum();
    }
    let shape = Shape::of(&superblock, media.size_bytes()).map_err(OpenExtError::Superblock)?;
    let memory = wanted_memory(settings, memory, journal.is_some(), true)?;
    match &memory {
        Some(JournalMemory::Region(nvm)) => {
            usable_region(
                &**nvm,
                &settings.nvm,
                (superblock.uuid(), superblock.mount_number()),
                (block_bytes, media.width()),
            )?;
        }
        Some(JournalMemory::Kept(monitor)) => refuse_kept(&**monitor, superblock.uuid())?,
        None => {}
    }
    let mut maker = Maker {
        descriptors: vec![Descriptor::default(); shape.groups as usize],
        used: Vec::new(),
        blocks: BTreeMap::new(),
        now: mounting.origin,
        shape,
        superblock,
        settings,
    };
    let log = maker.make(on_device)?;
    for (block, bytes) in &maker.blocks {
        media.write_metadata(&task, *block, bytes, LABEL)?;
    }
    media.flush(&task)?;
    let mut opening = Opening::on(media, (journal, memory), maker.superblock, settings, mounting)?;
    opening.check_journal_options()?;
    for (block, bytes) in maker.blocks {
        opening.parts.metadata.blocks.set(block, &bytes);
        opening.parts.metadata.blocks.release(block);
    }
    opening.parts.sum_groups(&task)?;
    let next = TransactionId(log.superblock.sequence());
    let place = match &opening.below.media {
        Some(media) => journal_device::make(&task, media, &log.superblock, mounting.origin)?,
        None => LogPlace::in_file(Arc::clone(&opening.parts.metadata.media), log.runs).expect("a new log has blocks"),
    };
    opening.begin_journal(&task, FoundLog { superblock: log.superblock, place, flipped: None }, next)?;
    Ok(opening.mounted())
}

/// The numbers of a new volume on a device of so many bytes, of which a journal takes so many blocks.
fn first_superblock(
    device_bytes: u64,
    journal: u64,
    settings: &ExtSettings,
    mounting: &Mounting,
) -> Result<Superblock, OpenExtError> {
    let block = settings.block_bytes;
    let first = u64::from(block == 1024);
    let group_blocks = 8 * block;
    let mut blocks = device_bytes / block;
    let ratio = if device_bytes < 512 << 20 { 4096 } else { 16384 };
    let in_block = block / u64::from(INODE_BYTES);
    let mut groups = (blocks - first).div_ceil(group_blocks);
    let inodes = (device_bytes / ratio).min(u64::from(u32::MAX) / 2).max(64);
    let group_inodes = inodes.div_ceil(groups).next_multiple_of(in_block.max(8)).min(8 * block);
    let table = group_inodes * u64::from(INODE_BYTES) / block;
    let last = blocks - first - (groups - 1) * group_blocks;
    let descriptors = (groups * u64::from(DESCRIPTOR_BYTES)).div_ceil(block);
    if groups > 1 && last < 1 + descriptors + 2 + table + LEAST_DATA {
        groups -= 1;
        blocks = first + groups * group_blocks;
    }
    let needed = first + (groups * (2 + table)) + 1 + descriptors + journal + LEAST_DATA;
    if blocks < needed {
        let what = format!("the device has {blocks} blocks of {block} bytes, and a volume takes {needed} at least");
        return Err(OpenExtError::Unsupported(what));
    }
    let mut random = Random::new(mounting.seed, "ext");
    let mut number = || random.below(1 << 32) as u32;
    let seconds = mounting.origin.0.div_euclid(1_000_000_000) as u32;
    let mut made = Superblock::empty();
    for (at, field) in [
        (0, (groups * group_inodes) as u32),
        (4, blocks as u32),
        (336, (blocks >> 32) as u32),
        (20, first as u32),
        (24, block.ilog2() - 10),
        (28, block.ilog2() - 10),
        (32, group_blocks as u32),
        (36, group_blocks as u32),
        (40, group_inodes as u32),
        (48, seconds),
        (64, seconds),
        (76, 1),
        (84, FIRST_INODE),
        (224, JOURNAL),
        // Attributes of users, and access control lists.
        (256, 0xC),
        (264, seconds),
        // Names are hashed as signed bytes.
        (352, 1),
    ] {
        made.set32(at, field);
    }
    for (at, field) in [
        (54, u16::MAX),
        (56, MAGIC),
        (58, state::CLEAN),
        (60, 1),
        (88, INODE_BYTES),
        (254, DESCRIPTOR_BYTES),
        (348, EXTRA_BYTES),
        (350, EXTRA_BYTES),
    ] {
        made.set16(at, field);
    }
    // Half of MD4; the log of groups that lie together; CRC-32C.
    made.set_bytes(252, &[1]);
    made.set_bytes(372, &[FLEXIBLE_LOG, 1]);
    (0..4).for_each(|word| made.set32(104 + 4 * word, number()));
    (0..4).for_each(|word| made.set32(236 + 4 * word, number() | 1));
    // A random UUID: version 4.
    made.set_bytes(110, &[made.u8(110) & 0x0F | 0x40]);
    made.set_bytes(112, &[made.u8(112) & 0x3F | 0x80]);
    let features = Features::of(&[
        HAS_JOURNAL,
        EXT_ATTR,
        DIR_INDEX,
        FILETYPE,
        EXTENTS,
        WIDE,
        FLEX_BG,
        SPARSE_SUPER,
        LARGE_FILE,
        HUGE_FILE,
        DIR_NLINK,
        EXTRA_ISIZE,
        METADATA_CSUM,
    ]);
    made.set_features(if settings.fast_commits == Some(true) { features.with(FAST_COMMIT) } else { features });
    made.sum();
    Ok(made)
}

/// The superblock of a new log on a device of its own: it takes as much of it as `journal-size=` says, or all, up to
/// [`MOST_BY_ITSELF`].
fn new_log_on_device(
    device: &dyn BlockDevice,
    settings: &ExtSettings,
    mounting: &Mounting,
) -> Result<LogSuperblock, OpenExtError> {
    let device_bytes = device.blocks() * BLOCK_BYTES;
    let (block, before) = (settings.block_bytes, u64::from(first_record(settings.block_bytes as usize)) - 1);
    let bytes = settings.journal_bytes.unwrap_or(device_bytes.min(MOST_BY_ITSELF));
    // As many records as a log of this size has in a file, and behind them those for fast commits.
    let fast = settings.fast_blocks(bytes / block);
    let blocks = (bytes / block + before + fast).min(device_bytes / block);
    if bytes > device_bytes || blocks < LEAST_LOG + before + fast {
        let least = (LEAST_LOG + before + fast) * block;
        let what = format!("it has {device_bytes} bytes; this journal would take {bytes}, and {least} are the least");
        return Err(OpenExtError::JournalDevice(what));
    }
    let mut number = [0; 16];
    let mut random = Random::new(mounting.seed, "ext journal");
    number.fill_with(|| random.below(256) as u8);
    // A random UUID: version 4.
    (number[6], number[8]) = (number[6] & 0x0F | 0x40, number[8] & 0x3F | 0x80);
    let superblock = LogSuperblock::new(settings.block_bytes as u32, blocks as u32, LOG_FEATURES, number);
    Ok(superblock.with_fast_blocks(fast as u32))
}

impl Maker<'_> {
    fn make(&mut self, on_device: Option<LogSuperblock>) -> Result<NewLog, OpenExtError> {
        self.place_groups()?;
        let log = match on_device {
            Some(superblock) => {
                // The block of its inode is in use, and the inode is not.
                let (place, _) = self.place_of_inode(JOURNAL);
                self.blocks.entry(place).or_insert_with(|| vec![0; self.shape.block_bytes]);
                NewLog { superblock, runs: Vec::new() }
            }
            None => self.place_journal()?,
        };
        self.place_directories()?;
        self.finish_groups();
        self.finish_superblocks();
        Ok(log)
    }

    fn mark(&mut self, blocks: Range<u64>) {
        let mut at = blocks.start;
        while at < blocks.end {
            let (group, first) = self.shape.place_of_block(at);
            let count = (blocks.end - at).min(self.shape.group_blocks - u64::from(first));
            bits::put(&mut self.used[group as usize], first..first + count as u32, true);
            at += count;
        }
    }

    /// Takes a run of `count` blocks, in or behind this group.
    fn take(&mut self, group: u32, count: u64) -> Result<Range<u64>, OpenExtError> {
        for step in 0..self.shape.groups {
            let group = (group + step) % self.shape.groups;
            let end = self.shape.blocks_of_group(group) as u32;
            let found = bits::find_run(&self.used[group as usize], 0, end, count as u32);
            if let Some(run) = found.filter(|run| u64::from(run.end - run.start) == count) {
                let first = self.shape.group_start(group);
                let run = first + u64::from(run.start)..first + u64::from(run.end);
                self.mark(run.clone());
                return Ok(run);
            }
        }
        Err(OpenExtError::Unsupported(format!("no group has room for {count} blocks in one run")))
    }

    /// Superblocks and descriptors, bitmaps and inode tables.
    fn place_groups(&mut self) -> Result<(), OpenExtError> {
        for group in 0..self.shape.groups {
            let mut bits = vec![0; self.shape.block_bytes];
            let count = self.shape.blocks_of_group(group) as u32;
            bits::put(&mut bits, count..8 * self.shape.block_bytes as u32, true);
            bits::put(&mut bits, 0..self.shape.blocks_before(group) as u32, true);
            self.used.push(bits);
        }
        let table = self.shape.table_blocks();
        for first in (0..self.shape.groups).step_by(self.shape.flexible_groups as usize) {
            let end = self.shape.groups.min(first.saturating_add(self.shape.flexible_groups));
            for group in first..end {
                self.descriptors[group as usize].block_bitmap = self.take(first, 1)?.start;
            }
            for group in first..end {
                self.descriptors[group as usize].inode_bitmap = self.take(first, 1)?.start;
            }
            for group in first..end {
                self.descriptors[group as usize].inode_table = self.take(first, table)?.start;
            }
        }
        Ok(())
    }

    fn new_inode(&self, kind: FileKind, permissions: u16, links: u16) -> Inode {
        let mut inode = Inode::empty(self.shape.inode_bytes, self.shape.extra_bytes);
        inode.set_mode(kind, permissions);
        inode.set_links(links);
        inode.set_flags(flag::EXTENTS);
        for stamp in [Stamp::Accessed, Stamp::Changed, Stamp::Modified, Stamp::Created] {
            inode.set_stamp(stamp, self.now);
        }
        inode
    }

    /// The block of an inode in the first table, and its first byte there.
    fn place_of_inode(&self, number: u32) -> (u64, usize) {
        let in_block = self.shape.inodes_of_block();
        let place = self.descriptors[0].inode_table + u64::from((number - 1) / in_block);
        (place, ((number - 1) % in_block) as usize * self.shape.inode_bytes)
    }

    /// Puts an inode with these runs into the first table.
    fn put_inode(&mut self, number: u32, mut inode: Inode, runs: &[Range<u64>]) -> Result<(), OpenExtError> {
        let mut first = 0;
        let mut extents = Vec::new();
        for run in runs {
            extents.extend(super::files::extent_tree::in_extents(first, run.clone(), true));
            first += run.end - run.start;
        }
        let extents: Vec<Extent> = extents;
        inode.add_blocks(first as i64, self.shape.block_bytes);
        inode.set_size(first * self.shape.block_bytes as u64);
        let leaf = Node::Leaf(extents);
        if leaf.len() <= most_entries(MAP_BYTES, false) {
            leaf.write(inode.map_mut(), false);
        } else {
            let block = self.take(self.shape.groups / 2, 1)?.start;
            let mut bytes = vec![0; self.shape.block_bytes];
            leaf.write(&mut bytes, true);
            if let Some(seed) = self.shape.checksums.inode_seed(number, inode.generation()) {
                extents::sum(&mut bytes, seed);
            }
            self.blocks.insert(block, bytes);
            Node::Index(1, vec![Child { first: 0, block }]).write(inode.map_mut(), false);
            inode.add_blocks(1, self.shape.block_bytes);
        }
        inode.sum(number, self.shape.checksums);
        let (place, at) = self.place_of_inode(number);
        let block = self.blocks.entry(place).or_insert_with(|| vec![0; self.shape.block_bytes]);
        block[at..at + inode.bytes().len()].copy_from_slice(inode.bytes());
        Ok(())
    }

    /// The journal, in the middle of the volume.
    fn place_journal(&mut self) -> Result<NewLog, OpenExtError> {
        let mut left = self.settings.journal_blocks(self.shape.blocks);
        let mut runs: Vec<Range<u64>> = Vec::new();
        while left > 0 {
            let count = left.min(self.shape.group_blocks / 2).min(32_768);
            let run = self.take(self.shape.groups / 2, count)?;
            left -= count;
            match runs.last_mut() {
                Some(last) if last.end == run.start => last.end = run.end,
                _ => runs.push(run),
            }
        }
        let blocks: u64 = runs.iter().map(|run| run.end - run.start).sum();
        let superblock =
            LogSuperblock::new(self.shape.block_bytes as u32, blocks as u32, LOG_FEATURES, self.superblock.uuid());
        let superblock = superblock.with_fast_blocks(self.settings.fast_blocks_of(self.shape.blocks) as u32);
        let mut block = superblock.bytes().to_vec();
        block.resize(self.shape.block_bytes, 0);
        self.blocks.insert(runs[0].start, block);
        self.put_inode(JOURNAL, self.new_inode(FileKind::Regular, 0o600, 1), &runs)?;
        self.copy_journal();
        Ok(NewLog { superblock, runs })
    }

    /// The copy of the journal's inode in the superblock: its map, and its size.
    fn copy_journal(&mut self) {
        let (place, at) = self.place_of_inode(JOURNAL);
        let inode = Inode::new(&self.blocks[&place][at..at + self.shape.inode_bytes]);
        self.superblock.set_bytes(253, &[1]);
        self.superblock.set_bytes(268, inode.map());
        self.superblock.set32(268 + 60, (inode.size() >> 32) as u32);
        self.superblock.set32(268 + 64, inode.size() as u32);
    }

    /// The root, and `lost+found` in it.
    fn place_directories(&mut self) -> Result<(), OpenExtError> {
        let root = self.take(0, 1)?;
        let mut block = self.directory(ROOT, ROOT);
        let kind = entries::kind_number(FileKind::Directory);
        let is_put = entries::put(&mut block, true, LOST_AND_FOUND, b"lost+found", kind);
        debug_assert_eq!(is_put, Ok(true), "an empty directory has room");
        self.put_directory(ROOT, root, block, (0o755, 3))?;
        let lost = self.take(0, 1)?;
        let block = self.directory(LOST_AND_FOUND, ROOT);
        self.put_directory(LOST_AND_FOUND, lost, block, (0o700, 2))?;
        Ok(())
    }

    fn directory(&self, own: u32, parent: u32) -> Vec<u8> {
        let mut block = vec![0; self.shape.block_bytes];
        let end = entries::room(block.len(), true).end;
        let kind = entries::kind_number(FileKind::Directory);
        entries::write_entry(&mut block, 0, 12, own, b".", kind);
        entries::write_entry(&mut block, 12, end - 12, parent, b"..", kind);
        entries::write_tail(&mut block);
        block
    }

    fn put_directory(
        &mut self,
        number: u32,
        run: Range<u64>,
        mut block: Vec<u8>,
        (permissions, links): (u16, u16),
    ) -> Result<(), OpenExtError> {
        let seed = self.shape.checksums.inode_seed(number, 0).expect("a new volume has checksums");
        entries::sum(&mut block, seed);
        self.blocks.insert(run.start, block);
        self.put_inode(number, self.new_inode(FileKind::Directory, permissions, links), &[run])
    }

    /// Bitmaps, and descriptors with the counts that follow from them.
    fn finish_groups(&mut self) {
        let shape = self.shape.clone();
        let (block_bytes, last) = (shape.block_bytes, shape.groups - 1);
        for group in 0..shape.groups {
            let mut descriptor = self.descriptors[group as usize];
            let bits = self.used[group as usize].clone();
            descriptor.free_blocks = bits::count_clear(&bits, shape.blocks_of_group(group) as u32);
            let used = if group == 0 { LOST_AND_FOUND } else { 0 };
            descriptor.free_inodes = shape.group_inodes - used;
            descriptor.never_used = shape.group_inodes - used;
            descriptor.directories = if group == 0 { 2 } else { 0 };
            let untouched = shape.blocks_of_group(group) - shape.blocks_before(group);
            if group != last && group != 0 && u64::from(descriptor.free_blocks) == untouched {
                descriptor.flags |= group_flag::NO_BLOCKS;
            } else {
                let sum = bitmap_sum(&bits[..shape.group_blocks as usize / 8], shape.descriptor_bytes, shape.checksums);
                descriptor.block_bitmap_sum = sum.unwrap_or(0);
                self.blocks.insert(descriptor.block_bitmap, bits);
            }
            if group == 0 {
                let mut inodes = vec![0xFF; block_bytes];
                bits::put(&mut inodes, used..shape.group_inodes, false);
                let length = shape.group_inodes as usize / 8;
                let sum = bitmap_sum(&inodes[..length], shape.descriptor_bytes, shape.checksums);
                descriptor.inode_bitmap_sum = sum.unwrap_or(0);
                self.blocks.insert(descriptor.inode_bitmap, inodes);
            } else {
                descriptor.flags |= group_flag::NO_INODES;
            }
            self.descriptors[group as usize] = descriptor;
        }
    }

    /// The superblock and the descriptors, and their copies.
    fn finish_superblocks(&mut self) {
        let free: u64 = self.descriptors.iter().map(|descriptor| u64::from(descriptor.free_blocks)).sum();
        let inodes = self.descriptors.iter().map(|descriptor| descriptor.free_inodes).sum();
        self.superblock.set_free(free, inodes);
        let shape = self.shape.clone();
        let mut descriptors = vec![0; shape.descriptor_blocks() as usize * shape.block_bytes];
        for (group, bytes) in (0..shape.groups).zip(descriptors.chunks_exact_mut(shape.descriptor_bytes)) {
            self.descriptors[group as usize].write(bytes, group, shape.checksums);
        }
        for group in (0..shape.groups).filter(|group| shape.has_superblock(*group)) {
            let mut copy = self.superblock.clone();
            copy.set16(90, group as u16);
            copy.sum();
            let place = shape.superblock_block(group);
            let at = if group == 0 { PLACE as usize % shape.block_bytes } else { 0 };
            let mut block = vec![0; shape.block_bytes];
            block[at..at + LENGTH].copy_from_slice(copy.bytes());
            self.blocks.insert(place, block);
            for (block, bytes) in (place + 1..).zip(descriptors.chunks_exact(shape.block_bytes)) {
                self.blocks.insert(block, bytes.to_vec());
            }
        }
        self.superblock.sum();
    }
}
