//! Rolling forward: a mount after a crash does again what the log says since the last checkpoint.
//!
//! The log's partial segments are looked for in all segments, as the log may have freed those that were in use then and
//! gone on in them, and behind where the open one ended.
//! Each has the next number, and the checksum of the one before it; the first that is missing, torn or damaged ends the
//! log. What an fsync waited for was flushed with everything before it, and so lies before that end. What follows the
//! last one that seals the log was never answered for: a part of an fsync, blocks whose files' names are not told, or a
//! checkpoint that was not ended.
//!
//! Of what the checkpoint names, nothing was overwritten since but blocks of files that the log says are dead; nor was
//! any number given out again. So the log's blocks and records can be applied in order to the checkpoint's state in
//! memory, as often as need be, until the checkpoint that ends the mount is durable.

use super::format::{BLOCK, BlockRecord, Kind, NO_GROUP, SummaryHeader};
use super::inode::Inode;
use super::map::MOST_BLOCKS;
use super::placement::Tick;
use super::records::{self, Record};
use super::segments::State;
use super::{FileKind, InodeNumber, Sfs, SfsError, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use zerocopy::FromBytes;
use zerocopy::little_endian::U32;

/// A partial segment that was found.
struct Found {
    segment: u32,
    /// Its first block in the segment.
    block: u32,
    header: SummaryHeader,
    summary: Vec<u8>,
}

impl Found {
    fn blocks(&self) -> impl Iterator<Item = (u32, BlockRecord)> + '_ {
        let first = self.block + self.header.summary_blocks.get();
        let records = &self.summary[size_of::<SummaryHeader>()..];
        let records = records.chunks_exact(size_of::<BlockRecord>()).take(self.header.blocks.get() as usize);
        (first..).zip(records.map(|record| BlockRecord::read_from_bytes(record).expect("a record's length")))
    }

    fn log(&self) -> &[u8] {
        let from = size_of::<SummaryHeader>() + self.header.blocks.get() as usize * size_of::<BlockRecord>();
        &self.summary[from..from + self.header.log_bytes.get() as usize]
    }
}

impl Sfs {
    /// Applies the log since the last checkpoint, in memory.
    pub(super) fn roll_forward(&mut self) -> Result<(), SfsError> {
        let log = self.find_log()?;
        let orphans = !self.orphans.is_empty();
        if log.is_empty() && !orphans {
            return Ok(());
        }
        self.take_found(&log)?;
        self.make_told_inodes(&log)?;
        // Each record goes before the blocks of the partial segment that it names.
        let told = log.iter().flat_map(|found| records::read(found.log()));
        let mut told: Vec<(u64, Record)> = told.collect();
        told.sort_by_key(|(before, _)| *before);
        let mut told = told.into_iter().peekable();
        let mut filled = BTreeSet::new();
        for found in &log {
            while let Some((_, record)) = told.next_if(|(before, _)| *before <= found.header.sequence.get()) {
                self.apply(&record)?;
            }
            self.tick = self.tick.max(Tick(found.header.tick.get()));
            for (block, record) in found.blocks() {
                if record.kind == Kind::Data as u8 {
                    self.apply_block(found, block, &record, &mut filled)?;
                }
            }
        }
        told.try_for_each(|(_, record)| self.apply(&record))?;
        self.trim_inodes(&filled)?;
        self.give_back_unused(&log)?;
        let segments: BTreeSet<u32> = log.iter().map(|found| found.segment).collect();
        for segment in segments {
            if self.segments.get(segment).state == State::Open {
                self.segments.close(segment);
            }
        }
        self.is_changed = true;
        Ok(())
    }

    /// The partial segments of the log since the checkpoint, in order.
    fn find_log(&mut self) -> Result<Vec<Found>, SfsError> {
        let first = self.superblock.next_partial.get();
        let mut found: BTreeMap<u64, Vec<(u32, u32)>> = BTreeMap::new();
        let open = (self.superblock.open_segment.get(), self.superblock.open_block.get());
        for segment in 0..self.segments.count() {
            // In one that was not written anew, the first is of before the checkpoint, and ends the search.
            self.find_in(segment, 0, first, &mut found)?;
            if segment == open.0 && open.1 > 0 {
                self.find_in(segment, open.1, first, &mut found)?;
            }
        }
        let (mut log, mut next, mut chain) = (Vec::new(), first, self.superblock.chain);
        while let Some(candidates) = found.get(&next) {
            let Some(found) = self.continues(candidates, chain)? else { break };
            (next, chain) = (next + 1, found.header.crc);
            log.push(found);
        }
        log.truncate(log.iter().rposition(|found| found.header.seals == 1).map_or(0, |last| last + 1));
        if let Some(last) = log.last() {
            self.superblock.next_partial = (last.header.sequence.get() + 1).into();
            self.superblock.chain = last.header.crc;
        }
        Ok(log)
    }

    /// The one of these partial segments that follows the one with this checksum, and is whole.
    fn continues(&mut self, candidates: &[(u32, u32)], chain: U32) -> Result<Option<Found>, SfsError> {
        for (segment, block) in candidates {
            let address = u64::from(*segment) * u64::from(self.media.segment_blocks()) + u64::from(*block);
            let mut summary = Vec::new();
            if let Some(header) = self.summary_at(address, *block, &mut summary)?
                && header.chain == chain
            {
                let found = Found { segment: *segment, block: *block, header, summary };
                if self.is_whole(&found)? {
                    return Ok(Some(found));
                }
            }
        }
        Ok(None)
    }

    /// Looks for partial segments with a number from `first` on.
    fn find_in(
        &mut self,
        segment: u32,
        from: u32,
        first: u64,
        found: &mut BTreeMap<u64, Vec<(u32, u32)>>,
    ) -> Result<(), SfsError> {
        let start = u64::from(segment) * u64::from(self.media.segment_blocks());
        let mut at = from;
        let mut summary = Vec::new();
        while at < self.media.segment_blocks() {
            let Some(header) = self.summary_at(start + u64::from(at), at, &mut summary)? else { break };
            if header.sequence.get() < first {
                // It is of an earlier use of the segment.
                break;
            }
            found.entry(header.sequence.get()).or_default().push((segment, at));
            at += header.summary_blocks.get() + header.blocks.get();
        }
        Ok(())
    }

    /// Whether all blocks of a partial segment are what its summary says.
    fn is_whole(&mut self, found: &Found) -> Result<bool, SfsError> {
        let blocks = found.header.blocks.get() as usize;
        let first = u64::from(found.segment) * u64::from(self.media.segment_blocks())
            + u64::from(found.block + found.header.summary_blocks.get());
        let mut bytes = vec![0; blocks * BLOCK];
        if blocks > 0 {
            self.now = self.media.read(first, &mut bytes, self.now)?;
        }
        Ok(found
            .blocks()
            .zip(bytes.chunks_exact(BLOCK))
            .all(|((_, record), block)| crc32c::crc32c(block) == record.crc.get()))
    }

    /// Takes the segments and virtual blocks that the log uses, so that nothing else is put there.
    fn take_found(&mut self, log: &[Found]) -> Result<(), SfsError> {
        let open = self.superblock.open_segment.get();
        for found in log {
            if found.segment == open && self.segments.get(open).state != State::Open {
                self.segments.reopen(open);
            }
            self.segments.take_found(found.segment, Tick(found.header.tick.get()), found.header.group);
            // It holds a part of the log until the checkpoint that ends the mount.
            self.segments.touch(found.segment, self.epoch);
            for (_, record) in found.blocks().filter(|(_, record)| record.kind == Kind::Data as u8) {
                if self.may_be_taken(record.number.get()) {
                    self.dat.take_found(record.number.get(), &mut self.media, &mut self.now)?;
                }
            }
        }
        Ok(())
    }

    /// Virtual blocks that there can be: as many as blocks of the device; as many again that were freed; and what can
    /// be given out between two checkpoints, when no number is given out twice.
    fn most_taken(&self) -> u64 {
        let blocks = u64::from(self.media.segments()) * u64::from(self.media.segment_blocks());
        2 * blocks + (self.limits.metadata as u64 + 1) * super::dat::ENTRIES
    }

    /// Whether a virtual block of this number can be.
    fn may_be_taken(&self, number: u64) -> bool {
        number != 0 && number < self.most_taken()
    }

    /// Whether an inode of this number can be.
    fn may_be_inode(&self, number: u64) -> bool {
        number != 0 && number < self.most_taken() * super::inode_file::INODES
    }

    /// Makes the inodes that the log speaks of and the checkpoint does not know.
    fn make_told_inodes(&mut self, log: &[Found]) -> Result<(), SfsError> {
        for found in log {
            for (_, record) in records::read(found.log()) {
                let Record::Inode(image) = record else { continue };
                let number = image.number.get();
                if !self.may_be_inode(number) || self.is_inode(number)? {
                    continue;
                }
                let Some(kind) = FileKind::of_number(image.kind) else { continue };
                self.inode_file.take_found(number);
                self.inodes.insert(number, Inode::new(number, image.generation.get(), kind, Timestamp(0)));
            }
        }
        Ok(())
    }

    /// Whether an inode is in use. One that cannot be read is no free one: what the log says of it must not be left out
    /// in silence.
    fn is_inode(&mut self, number: u64) -> Result<bool, SfsError> {
        match self.inode(number) {
            Ok(_) => Ok(true),
            Err(SfsError::NotFound) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn apply(&mut self, record: &Record) -> Result<(), SfsError> {
        let number = match record {
            Record::Name { directory, .. } | Record::NoName { directory, .. } => *directory,
            Record::Unmap { inode, .. } | Record::Reserve { inode, .. } => *inode,
            Record::Contents { inode, .. } | Record::Freed { inode } => *inode,
            Record::Inode(image) => image.number.get(),
            Record::Holes { .. } => return Ok(()),
        };
        // The log speaks of what was freed, too.
        if !self.is_inode(number)? {
            return Ok(());
        }
        match record {
            Record::Name { directory, inode, kind, name } => {
                if self.inode(*directory)?.kind != FileKind::Directory {
                    return Ok(());
                }
                self.take_name(*directory, name)?;
                self.put_name(*directory, name, *inode, *kind)
            }
            Record::NoName { directory, name } => match self.inode(*directory)?.kind {
                FileKind::Directory => self.take_name(*directory, name).map(drop),
                _ => Ok(()),
            },
            Record::Unmap { inode, places } => self.unmap(*inode, places.clone()),
            Record::Reserve { inode, places } => {
                let is_sane = self.inode(*inode)?.kind == FileKind::Regular && places.end <= MOST_BLOCKS;
                let most = u64::from(self.media.segments()) * u64::from(self.media.segment_blocks());
                match is_sane && places.end.saturating_sub(places.start) <= most {
                    // The numbers need not be those that it had: what was written there since is in the log.
                    true => self.reserve(*inode, places.clone()),
                    false => Ok(()),
                }
            }
            Record::Contents { inode, are_attributes, bytes } => self.put_contents(*inode, *are_attributes, bytes),
            Record::Inode(image) => {
                let file = self.inode_mut(number)?;
                file.take(image);
                match file.links {
                    0 => self.orphans.insert(number),
                    _ => self.orphans.remove(&number),
                };
                Ok(())
            }
            Record::Freed { inode } => {
                self.orphans.remove(inode);
                match InodeNumber(*inode) {
                    InodeNumber::ROOT => Ok(()),
                    _ => self.free_inode(*inode),
                }
            }
            Record::Holes { .. } => Ok(()),
        }
    }

    /// A block of the log takes its place in its file. `filled`: virtual blocks at places where there was none.
    fn apply_block(
        &mut self,
        found: &Found,
        block: u32,
        record: &BlockRecord,
        filled: &mut BTreeSet<u64>,
    ) -> Result<(), SfsError> {
        let (number, place) = (record.number.get(), record.place.get());
        if !self.may_be_taken(number) || place > MOST_BLOCKS {
            return Ok(());
        }
        let owner = record.inode.get();
        if !self.is_inode(owner)? || self.inode(owner)?.holds_metadata() {
            return Ok(());
        }
        let mapped = self.mapped(owner, place)?;
        let mut entry = self.dat.get(number, &mut self.media, &mut self.now)?;
        if entry.is_taken != 1 {
            return Ok(());
        }
        if mapped != number {
            if mapped != 0 {
                self.free_block(owner, mapped)?;
            }
            if mapped == 0 || filled.contains(&mapped) {
                filled.insert(number);
            }
            self.map(owner, place, number)?;
            self.inode_mut(owner)?.blocks += 1;
        }
        let segment_blocks = u64::from(self.media.segment_blocks());
        let before = entry.address.get();
        if before != 0 {
            self.segments.lose((before / segment_blocks) as u32, Kind::Data, entry.writes.get(), entry.modified.get());
        }
        if record.is_cleaned == 0 {
            entry.writes += 1;
            entry.modified = found.header.tick;
            let file = self.inode_mut(owner)?;
            file.history.writes += 1;
            file.history.modified = Tick(found.header.tick.get());
            // What was cleaned should be what it was before, and may have been damaged then.
            entry.crc = record.crc;
        }
        entry.address = (u64::from(found.segment) * segment_blocks + u64::from(block)).into();
        entry.group = if record.group < NO_GROUP { record.group } else { NO_GROUP };
        self.segments.gain(found.segment, Kind::Data, entry.writes.get(), entry.modified.get());
        self.dat.set(number, &entry, &mut self.media, &mut self.now)
    }

    /// Blocks behind the end of a file were written and never synced: those at places where there was none go, the
    /// others are reserved as before. Inodes without a name are held by nobody any more.
    fn trim_inodes(&mut self, filled: &BTreeSet<u64>) -> Result<(), SfsError> {
        for orphan in std::mem::take(&mut self.orphans) {
            if self.is_inode(orphan)? && self.inode(orphan)?.links == 0 {
                self.free_inode(orphan)?;
            }
        }
        let mut loaded: Vec<u64> =
            self.inodes.values().filter(|inode| inode.is_dirty).map(|inode| inode.number).collect();
        loaded.sort_unstable();
        for number in loaded {
            let inode = self.inode(number)?;
            if inode.kind == FileKind::Regular {
                let (mut at, mut gone) = (inode.size.div_ceil(BLOCK as u64), 0..0);
                while let Some((place, virtual_block)) = self.next_mapped(number, at, MOST_BLOCKS)? {
                    at = place + 1;
                    if !filled.contains(&virtual_block) {
                        self.unwrite(virtual_block)?;
                    } else if gone.end == place {
                        gone.end = at;
                    } else {
                        self.unmap(number, std::mem::replace(&mut gone, place..at))?;
                    }
                }
                self.unmap(number, gone)?;
            }
        }
        Ok(())
    }

    /// A virtual block of a file is reserved, as if it had never been written.
    fn unwrite(&mut self, number: u64) -> Result<(), SfsError> {
        let mut entry = self.dat.get(number, &mut self.media, &mut self.now)?;
        let address = entry.address.get();
        if address != 0 {
            let segment = (address / u64::from(self.media.segment_blocks())) as u32;
            self.segments.lose(segment, Kind::Data, entry.writes.get(), entry.modified.get());
            (entry.address, entry.crc) = (0.into(), 0.into());
            self.dat.set(number, &entry, &mut self.media, &mut self.now)?;
        }
        Ok(())
    }

    /// Virtual blocks that the log named, and that belong to nobody.
    fn give_back_unused(&mut self, log: &[Found]) -> Result<(), SfsError> {
        for found in log {
            for (_, record) in found.blocks().filter(|(_, record)| record.kind == Kind::Data as u8) {
                let number = record.number.get();
                if !self.may_be_taken(number) {
                    continue;
                }
                let entry = self.dat.get(number, &mut self.media, &mut self.now)?;
                if entry.is_taken == 1 && entry.address.get() == 0 && !self.is_reserved(&record)? {
                    self.dat.give_back(number, &mut self.media, &mut self.now)?;
                }
            }
        }
        Ok(())
    }

    /// Whether a file has reserved this virtual block, and never written it.
    fn is_reserved(&mut self, record: &BlockRecord) -> Result<bool, SfsError> {
        let owner = record.inode.get();
        Ok(self.is_inode(owner)? && self.mapped(owner, record.place.get())? == record.number.get())
    }
}
