//! The writer of partial segments: blocks get their addresses, then are written after their summary.

use super::Discards;
use crate::crc;
use crate::device::DeviceError;
use crate::fs::sfs::failure::Faults;
use crate::fs::sfs::files::Files;
use crate::fs::sfs::log::records::{self, Record, RecordsToWrite};
use crate::fs::sfs::log::{Head, Log, LogReader};
use crate::fs::sfs::media::format::{
    BLOCK, BlockRecord, COPIED, COPIED_AND_COUNTED, Kind, NO_GROUP, SUMMARY_MAGIC, SummaryHeader, Superblock,
    blocks_that_fit, crc_without, summary_blocks,
};
use crate::fs::sfs::media::{BlockRun, Media};
use crate::fs::sfs::placement::Grouping;
use crate::fs::sfs::settings::CountedWrites;
use crate::fs::sfs::{Events, Limits, SfsError};
use crate::label::{Cause, Content, Label, Tally};
use crate::task::Task;
use zerocopy::{FromZeros, IntoBytes};

/// A block to be written.
#[derive(Clone, Copy, Debug)]
pub(in crate::fs::sfs) enum Item {
    /// A dirty data block, by its slot.
    Data(u32),
    /// A virtual block of metadata.
    Metadata(u64),
    /// A block of a metadata file, by its number as in block records.
    Paged(Kind, u64),
}

/// The target of written blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::fs::sfs) enum Destination {
    /// The open segment of a head: for blocks of a group, or of neighbouring ones.
    Head(u8),
    /// The open segment for metadata.
    Metadata,
}

impl Destination {
    /// Its number on the media.
    fn number(self) -> u8 {
        match self {
            Destination::Head(number) => number,
            Destination::Metadata => NO_GROUP,
        }
    }
}

/// A partial segment to be written.
struct Partial<'p> {
    to: Destination,
    head: Head,
    items: &'p [Item],
    /// Log records, as they are written.
    log: &'p [u8],
    seals: bool,
}

/// The writer of the log: the log's open ends, and what is decided about a block when it is written.
pub(in crate::fs::sfs) struct Writer {
    pub log: Log,
    /// The superblock of the last checkpoint, with the number and the chain of the next partial segment.
    pub superblock: Superblock,
    pub grouping: Box<dyn Grouping>,
    pub limits: Limits,
    pub counted_writes: CountedWrites,
    pub discards: Discards,
    pub faults: Faults,
    /// Blocks that were sent to the media.
    pub sent: Tally,
    pub events: Events,
}

impl Writer {
    /// A reader of what was written.
    pub fn reader<'a>(&self, task: &'a Task<'a>, media: &'a Media) -> LogReader<'a> {
        LogReader::new(task, media, self.superblock.identity)
    }

    /// Makes the volume read-only after a failed write or flush.
    pub fn fail(&mut self, files: &Files, why: String) {
        self.faults.fail(files, &self.log, why);
    }

    /// Fails the volume if a change was interrupted by an error: the partial change is not in the log and must not be
    /// stored.
    pub fn all_or_fail<T>(&mut self, files: &Files, what: &str, done: Result<T, SfsError>) -> Result<T, SfsError> {
        if let Err(SfsError::Device(error)) = &done {
            self.fail(files, format!("{what} was interrupted: {error}"));
        }
        done
    }

    /// Flushes the device: all written partial segments become durable.
    pub fn flush(&mut self, task: &Task<'_>, media: &Media) -> Result<(), SfsError> {
        media.flush(task)?;
        self.note_flushed();
        Ok(())
    }

    /// Ends a flush that began outside the gate, successful or failed.
    pub fn end_flush(&mut self, files: &Files, flushed: Result<(), DeviceError>) -> Result<(), SfsError> {
        self.log.is_flushing = false;
        flushed.inspect_err(|error| {
            // An unknown part of the writes may be lost.
            self.fail(files, format!("a flush failed: {error}"));
        })?;
        self.note_flushed();
        Ok(())
    }

    /// Notes that the whole log is durable.
    pub fn note_flushed(&mut self) {
        self.log.end_flush(self.superblock.next_partial.get());
    }

    /// True if so much log was written since the last checkpoint that a mount after a crash would take long.
    pub fn is_log_long(&self) -> bool {
        self.log.segments_since_checkpoint >= self.limits.log_segments
    }

    /// Checks that emptied segments, not written since the mount, hold no live blocks before they are freed.
    pub fn check_emptied(&self, task: &Task<'_>, files: &mut Files) -> Result<(), SfsError> {
        if files.media.holds_stamps() {
            return Ok(());
        }
        for segment in files.segments.take_unchecked() {
            let first = u64::from(segment) * u64::from(files.media.segment_blocks());
            for (block, record) in self.reader(task, &files.media).contents(segment, self.log.contents_of(segment))? {
                if files.metadata.is_live_at(task, &record, first + u64::from(block))? {
                    let why = format!("it says 0 blocks are live, and block {block} is");
                    return Err(SfsError::Damaged { what: format!("the usage of segment {segment}"), why });
                }
            }
        }
        Ok(())
    }

    /// Writes blocks in as few partial segments as possible. After a crash they count once a later one seals the log.
    pub fn write_blocks(
        &mut self,
        task: &Task<'_>,
        files: &mut Files,
        to: Destination,
        items: &[Item],
    ) -> Result<(), SfsError> {
        self.write_with_records(task, files, to, items, RecordsToWrite::nothing(), false)
    }

    /// Writes blocks after log records. With `seals`, the last partial segment seals the log: all changes are recorded.
    pub fn write_with_records(
        &mut self,
        task: &Task<'_>,
        files: &mut Files,
        to: Destination,
        items: &[Item],
        mut told: RecordsToWrite,
        seals: bool,
    ) -> Result<(), SfsError> {
        let mut left = items;
        while !left.is_empty() || !told.is_empty() {
            let (to, head) = self.head(task, files, to, left.len() as u32)?;
            let room = files.media.segment_blocks() - head.block;
            // Records come first, and may take half of the space.
            let log = told.next((room as usize * BLOCK / 2).saturating_sub(size_of::<SummaryHeader>()));
            let fits = blocks_that_fit(room, log.len()).unwrap_or(0);
            let log = log.to_vec();
            let (now, later) = left.split_at(left.len().min(fits as usize));
            left = later;
            if now.is_empty() && log.is_empty() {
                // Not even one block fits: the rest of the segment stays unused.
                self.close_head(task, files, to)?;
                continue;
            }
            let seals = seals && left.is_empty() && told.is_empty();
            let partial = Partial { to, head, items: now, log: &log, seals };
            let written = self.write_partial(task, files, &partial);
            let advanced = written.and_then(|took| {
                self.advance(task, files, to, Head { segment: head.segment, block: head.block + took })
            });
            advanced.inspect_err(|error| {
                // Memory is now ahead of the media.
                self.fail(files, format!("a write failed: {error}"));
            })?;
        }
        Ok(())
    }

    /// The open segment of a destination, or a new one for `blocks` blocks. If the volume is short of free segments, a
    /// head without room goes on in the segment of another one, so that open segments take no more of them.
    fn head(
        &mut self,
        task: &Task<'_>,
        files: &mut Files,
        to: Destination,
        blocks: u32,
    ) -> Result<(Destination, Head), SfsError> {
        if let Some(head) = self.open_head(to) {
            let room = files.media.segment_blocks() - head.block;
            if room > 1 || blocks == 0 {
                return Ok((to, head));
            }
            self.close_head(task, files, to)?;
        }
        if to != Destination::Metadata && files.segments.free() < self.limits.of_checkpoint() {
            let with_room = self.log.open_heads().filter(|(_, head)| files.media.segment_blocks() - head.block > 1);
            if let Some((number, head)) = with_room.min_by_key(|(_, head)| head.block) {
                return Ok((Destination::Head(number), head));
            }
        }
        let group = to.number();
        let Some(segment) = files.segments.take(files.clock.tick, group, to == Destination::Metadata) else {
            return Err(SfsError::NoSpace { free: 0, blocks: self.limits.usable });
        };
        self.discards.forget(segment);
        files.media.begin(task, segment)?;
        if let Some(contents) = self.log.contents.get_mut(segment as usize) {
            contents.clear();
        }
        let head = Head { segment, block: 0 };
        *self.head_mut(to) = Some(head);
        Ok((to, head))
    }

    /// The open segment of a destination.
    fn open_head(&self, to: Destination) -> Option<Head> {
        match to {
            Destination::Head(number) => self.log.heads[usize::from(number)],
            Destination::Metadata => self.log.of_metadata,
        }
    }

    fn head_mut(&mut self, to: Destination) -> &mut Option<Head> {
        match to {
            Destination::Head(number) => &mut self.log.heads[usize::from(number)],
            Destination::Metadata => &mut self.log.of_metadata,
        }
    }

    /// Advances the end of the log in an open segment.
    fn advance(&mut self, task: &Task<'_>, files: &mut Files, to: Destination, head: Head) -> Result<(), SfsError> {
        let is_full = files.media.segment_blocks() - head.block < 2;
        *self.head_mut(to) = (!is_full).then_some(head);
        if is_full { self.end_segment(task, files, head.segment) } else { Ok(()) }
    }

    /// Closes the open segment of a destination.
    pub fn close_head(&mut self, task: &Task<'_>, files: &mut Files, to: Destination) -> Result<(), SfsError> {
        let head = self.head_mut(to).take();
        head.map_or(Ok(()), |head| self.end_segment(task, files, head.segment))
    }

    fn end_segment(&mut self, task: &Task<'_>, files: &mut Files, segment: u32) -> Result<(), SfsError> {
        files.media.end(task, segment)?;
        files.segments.close(segment);
        self.log.segments_since_checkpoint += 1;
        self.events.segments_written += 1;
        Ok(())
    }

    /// Blocks that fit into one more partial segment of the open segment of a destination.
    pub fn room_at(&self, segment_blocks: u32, to: Destination) -> u32 {
        let room = self.open_head(to).map_or(0, |head| segment_blocks - head.block);
        blocks_that_fit(room, 0).unwrap_or(0)
    }

    /// Writes one partial segment at its head, and returns the number of blocks it takes.
    fn write_partial(
        &mut self,
        task: &Task<'_>,
        files: &mut Files,
        &Partial { to, head, items, log, seals }: &Partial,
    ) -> Result<u32, SfsError> {
        let segment_blocks = u64::from(files.media.segment_blocks());
        let summary = summary_blocks(items.len() as u32, log.len());
        let first = u64::from(head.segment) * segment_blocks + u64::from(head.block);
        assert!(
            u64::from(head.block) + u64::from(summary) + items.len() as u64 <= segment_blocks,
            "{} blocks and {summary} of a summary do not fit into segment {} from block {}",
            items.len(),
            head.segment,
            head.block
        );
        let width = files.media.block_width();
        let mut records = Vec::with_capacity(items.len());
        let mut labels = Vec::with_capacity(items.len());
        for (item, address) in items.iter().zip(first + u64::from(summary)..) {
            let (record, label) = match item {
                Item::Data(slot) => self.place_data(task, files, *slot, address, head.segment)?,
                Item::Metadata(number) => place_metadata(task, files, *number, address, head.segment)?,
                Item::Paged(kind, number) => place_paged(files, *kind, *number, address, head.segment),
            };
            records.push(record);
            labels.push(label);
        }
        // All addresses are assigned, so the content of metadata file blocks is final.
        if matches!(items.first(), Some(Item::Paged(Kind::UsageFile, _))) {
            fill_usage(task, files)?;
        }
        let mut buffer = files.media.buffer();
        buffer.resize(summary as usize * width, 0);
        for (item, record) in items.iter().zip(&mut records) {
            match item {
                Item::Data(slot) => {
                    buffer.extend_from_slice(files.dirty_blocks.bytes(*slot));
                    files.dirty_blocks.remove(*slot);
                }
                Item::Metadata(number) => {
                    let bytes = &files.metadata.blocks.get(*number).expect("the block has an address").bytes;
                    buffer.extend_from_slice(&bytes[..width]);
                    files.metadata.blocks.written(*number);
                }
                Item::Paged(kind, number) => {
                    let bytes = files.metadata.paged(*kind).bytes(*number);
                    let crc = crc::crc32c(&bytes[..]);
                    files.metadata.paged(*kind).set_checksum(*number, crc);
                    record.crc = crc.into();
                    buffer.extend_from_slice(&bytes[..width]);
                }
            }
        }
        debug_assert_eq!(
            buffer.len(),
            (summary as usize + items.len()) * width,
            "each block of the partial segment has bytes"
        );
        assert!(!self.log.is_flushing, "nothing is written to the log during a flush");
        // A seal is flushed before anything follows it: recovery relies on this to distinguish torn from damaged
        // blocks.
        assert!(self.log.is_unsealed || !self.log.is_unflushed, "nothing is written behind a seal before its flush");
        let flushed_back = self.superblock.next_partial.get() + 1 - self.log.flushed;
        let mut header = SummaryHeader {
            magic: SUMMARY_MAGIC,
            sequence: self.superblock.next_partial,
            chain: self.superblock.chain,
            summary_blocks: summary.into(),
            blocks: (items.len() as u32).into(),
            log_bytes: (log.len() as u32).into(),
            tick: files.clock.tick.0.into(),
            identity: self.superblock.identity,
            group: to.number(),
            seals: seals.into(),
            flushed_back: u16::try_from(flushed_back).unwrap_or(0).into(),
            next_segment: files.segments.next().map_or(0, |next| next + 1).into(),
            ..SummaryHeader::new_zeroed()
        };
        if width == BLOCK {
            let (head, rest) = buffer.split_at_mut(size_of::<SummaryHeader>());
            let (blocks, rest) = rest.split_at_mut(records.len() * size_of::<BlockRecord>());
            blocks.copy_from_slice(records.as_bytes());
            rest[..log.len()].copy_from_slice(log);
            head.copy_from_slice(header.as_bytes());
            header.crc = crc_without(&buffer[..summary as usize * BLOCK], 4).into();
            buffer[..size_of::<SummaryHeader>()].copy_from_slice(header.as_bytes());
        } else {
            // Block records stay in memory, as the device holds only a stamp of the summary.
            let stamp = (header.sequence.get() as u32).to_le_bytes();
            buffer[..summary as usize * width].chunks_exact_mut(width).for_each(|block| block.copy_from_slice(&stamp));
            self.log.contents[head.segment as usize].extend((head.block + summary..).zip(records));
        }
        self.superblock.next_partial += 1;
        self.superblock.chain = header.crc;

        let of_summary = labels.first().map_or(Cause::HostWrite, |label: &Label| label.cause);
        let summary_label = match records::read(log).any(|(_, record)| matches!(record, Record::Bytes { .. })) {
            true => Label::first(Cause::JournalCommit, Content::Journal),
            false => Label::first(of_summary, Content::Metadata),
        };
        let labels = std::iter::repeat_n(summary_label, summary as usize).chain(labels);
        self.log.unflushed_blocks += items.len() as u64;
        let runs = self.runs(first, width, labels);
        debug_assert_eq!(
            runs.last().map_or(0, |run| run.bytes.end),
            buffer.len(),
            "each block that is written has a label"
        );
        files.media.write(task, buffer, runs)?;
        self.discards.wait(task.now());
        self.log.is_unflushed = true;
        self.log.is_unsealed = !seals;
        files.segments.touch(head.segment, self.log.epoch);
        Ok(summary + items.len() as u32)
    }

    /// Groups consecutive blocks with equal labels into requests. All are issued at once: nothing relies on their order
    /// before the next flush.
    fn runs(&mut self, first: u64, width: usize, labels: impl Iterator<Item = Label>) -> Vec<BlockRun> {
        let mut runs: Vec<BlockRun> = Vec::new();
        for (at, label) in labels.enumerate() {
            match runs.last_mut().filter(|run| run.label == label) {
                Some(run) => run.bytes.end += width,
                None => {
                    let bytes = at * width..(at + 1) * width;
                    runs.push(BlockRun { address: first + at as u64, bytes, label });
                }
            }
        }
        for run in &runs {
            self.sent.add(run.label, (run.bytes.len() / width) as u64);
        }
        runs
    }

    /// Assigns an address to a dirty data block.
    fn place_data(
        &mut self,
        task: &Task<'_>,
        files: &mut Files,
        slot: u32,
        address: u64,
        segment: u32,
    ) -> Result<(BlockRecord, Label), SfsError> {
        let waits = *files.dirty_blocks.slot(slot);
        debug_assert!(files.dirty_blocks.is_used(slot), "slot {slot} is in use");
        let mut entry = files.metadata.dat.get(task, waits.number)?;
        assert_ne!(waits.group, NO_GROUP, "slot {slot} was assigned to a group");
        let view = files.block_view(task, &waits, &entry)?;
        entry.memory = self.grouping.written(&view, Some(waits.group), files.clock.tick);
        if waits.before != 0 {
            let old = (waits.before / u64::from(files.media.segment_blocks())) as u32;
            if !waits.is_cleaned() {
                files.segments.count_death(old, files.clock.tick);
            }
            files.segments.lose(old, Kind::Data, entry.writes.get(), entry.modified.get());
        }
        let crc = crc::crc32c(files.dirty_blocks.bytes(slot));
        let cleaned = match (waits.is_cleaned(), self.counted_writes) {
            (false, _) => 0,
            (true, CountedWrites::Host) => COPIED,
            (true, CountedWrites::All) => COPIED_AND_COUNTED,
        };
        let record = BlockRecord {
            number: waits.number.into(),
            inode: waits.inode.into(),
            place: waits.place.into(),
            crc: crc.into(),
            kind: Kind::Data as u8,
            cleaned,
            group: waits.group,
            reserved: 0,
        };
        if record.is_counted() {
            files.count_write(task, &mut entry, waits.inode, files.clock.tick)?;
        }
        if waits.is_cleaned() {
            // A cleaned block keeps its version and its checksum, right or wrong.
            entry.crc = waits.crc_before.into();
        } else {
            entry.crc = crc.into();
        }
        entry.address = address.into();
        entry.is_lost = 0;
        entry.group = waits.group;
        self.log.unobserved_blocks = self.log.unobserved_blocks.saturating_add(1);
        files.segments.gain(segment, Kind::Data, entry.writes.get(), entry.modified.get());
        files.metadata.dat.set(task, waits.number, &entry)?;
        let cause = if waits.is_cleaned() { Cause::SegmentCleaning } else { Cause::HostWrite };
        Ok((record, Label::first(cause, Content::Data)))
    }
}

/// Assigns an address to a metadata block.
fn place_metadata(
    task: &Task<'_>,
    files: &mut Files,
    number: u64,
    address: u64,
    segment: u32,
) -> Result<(BlockRecord, Label), SfsError> {
    let mut entry = files.metadata.dat.get(task, number)?;
    let block = files.metadata.blocks.get(number).expect("a block to be written is in memory");
    let (inode, place) = (block.inode, block.place);
    let before = entry.address.get();
    if before != 0 {
        let old = (before / u64::from(files.media.segment_blocks())) as u32;
        files.segments.lose(old, Kind::Metadata, 0, 0);
    }
    entry.address = address.into();
    entry.is_lost = 0;
    entry.crc = crc::crc32c(&block.bytes[..]).into();
    files.segments.gain(segment, Kind::Metadata, 0, 0);
    files.metadata.dat.set(task, number, &entry)?;
    let record = BlockRecord {
        number: number.into(),
        inode: inode.into(),
        place: place.into(),
        crc: entry.crc,
        kind: Kind::Metadata as u8,
        group: NO_GROUP,
        ..BlockRecord::default()
    };
    Ok((record, Label::first(Cause::Checkpoint, Content::Metadata)))
}

/// Assigns an address to a block of a metadata file.
fn place_paged(files: &mut Files, kind: Kind, number: u64, address: u64, segment: u32) -> (BlockRecord, Label) {
    debug_assert_eq!(
        (address / u64::from(files.media.segment_blocks())) as u32,
        segment,
        "the address is in the segment"
    );
    let before = files.metadata.paged(kind).set_address(number, address);
    if before != 0 {
        let old = (before / u64::from(files.media.segment_blocks())) as u32;
        files.segments.lose(old, kind, 0, 0);
    }
    files.segments.gain(segment, kind, 0, 0);
    let record = BlockRecord { number: number.into(), kind: kind as u8, group: NO_GROUP, ..BlockRecord::default() };
    (record, Label::first(Cause::Checkpoint, Content::Metadata))
}
/// Fills the pages of the usage file after all of them have addresses.
fn fill_usage(task: &Task<'_>, files: &mut Files) -> Result<(), SfsError> {
    for page in 0..files.metadata.usage_file.len() {
        let bytes = files.metadata.usage_file.page_mut(task, page)?;
        files.segments.fill_page(page, bytes);
    }
    Ok(())
}
