//! Finding the log behind a checkpoint, and telling a torn tail from damage.
//!
//! Partial segments are numbered. A crash takes what was not flushed, in any part: the last ones may be missing, or
//! there in part (a torn tail), which is no loss, as nothing was answered for. But each one tells how far the log had
//! been flushed when it was written (`flushed_back`), and what seals the log is flushed before anything follows it. So
//! if a partial segment is there, those up to that number must be, too, and whole: what is not was damaged later.
//!
//! A damaged summary hides where the next one begins. It is looked for, block by block, behind the last one of that
//! segment, and in the segment that the one before said would be taken next. If anything is damaged, the search goes
//! through all segments of whose head nothing can be read. A summary that also lies elsewhere, as after a write that
//! went to a wrong place, hides what it was put over, and does not count as what lies there.
//!
//! What earlier crashes left cannot be mistaken for this log: a mount after a crash skips as many numbers as the volume
//! has blocks, and so all that were given out since the checkpoint.

use super::finding::{Finding, Structure};
use super::format::{BLOCK, BlockRecord, NO_GROUP, SUMMARY_MAGIC, SummaryHeader};
use super::records::{self, Record};
use super::{Sfs, SfsError, invariants};
use std::collections::{BTreeMap, BTreeSet};
use zerocopy::FromBytes;

/// Blocks that are read at once when a summary is looked for.
const READ_AT_ONCE: u32 = 256;

/// A partial segment that was found.
#[derive(Clone)]
pub(super) struct Found {
    pub segment: u32,
    /// Its first block in the segment.
    pub block: u32,
    pub header: SummaryHeader,
    summary: Vec<u8>,
    /// Its blocks that are not what its summary says.
    pub rotten: BTreeSet<u32>,
}

impl Found {
    pub fn number(&self) -> u64 {
        self.header.sequence.get()
    }

    /// Its blocks, each with its place in the segment.
    pub fn blocks(&self) -> impl Iterator<Item = (u32, BlockRecord)> + '_ {
        let first = self.block + self.header.summary_blocks.get();
        let records = &self.summary[size_of::<SummaryHeader>()..];
        let records = records.chunks_exact(size_of::<BlockRecord>()).take(self.header.blocks.get() as usize);
        (first..).zip(records.map(|record| BlockRecord::read_from_bytes(record).expect("a record's length")))
    }

    /// The records of the log in it, each with the number of the partial segment that it comes before.
    pub fn told(&self) -> impl Iterator<Item = (u64, Record<'_>)> {
        let from = size_of::<SummaryHeader>() + self.header.blocks.get() as usize * size_of::<BlockRecord>();
        records::read(&self.summary[from..from + self.header.log_bytes.get() as usize])
    }

    /// Its records are what a summary of this program holds.
    fn is_readable(&self) -> bool {
        let from = size_of::<SummaryHeader>() + self.header.blocks.get() as usize * size_of::<BlockRecord>();
        let log = &self.summary[from..from + self.header.log_bytes.get() as usize];
        let is_time = self.header.tick.get() < invariants::LARGEST;
        is_time
            && records::are_whole(log)
            && self.blocks().all(|(_, record)| super::format::Kind::of_number(record.kind).is_some())
    }

    /// The block behind it.
    fn end(&self) -> u32 {
        self.block + self.header.summary_blocks.get() + self.header.blocks.get()
    }

    fn place(&self) -> String {
        format!("partial segment {} of the log, in segment {} from block {}", self.number(), self.segment, self.block)
    }
}

/// The log behind a checkpoint.
#[derive(Default)]
pub(super) struct FollowedLog {
    /// What is there and counts, in order. Blocks of it may be rotten.
    pub partials: Vec<Found>,
    /// The lowest number of what was durable, and whose summary is lost or cannot be read.
    pub first_lost: Option<u64>,
    /// What was durable and is damaged. None: the log ends where the crash has torn it.
    pub damage: Vec<Finding>,
    /// The highest number that was found anywhere.
    pub highest: u64,
}

/// What was found so far.
struct Search {
    /// Numbers from here on are looked for.
    first: u64,
    /// The highest number that was found anywhere.
    highest: u64,
    /// By number; what is in more than one place is in the order in which it was found.
    found: BTreeMap<u64, Vec<Found>>,
    /// Segments, and the blocks from which on they were looked through.
    looked_through: BTreeSet<(u32, u32)>,
    /// Segments of whose head nothing can be read.
    headless: BTreeSet<u32>,
    /// Blocks that cannot be read: the segment, the block, and why.
    unreadable: BTreeMap<(u32, u32), String>,
}

impl Search {
    fn add(&mut self, found: Found) {
        self.found.entry(found.number()).or_default().push(found);
    }

    /// What was found at a place.
    fn at(&self, segment: u32, block: u32) -> Option<&Found> {
        self.found.values().flatten().find(|found| (found.segment, found.block) == (segment, block))
    }

    /// Segments of whose head nothing can be read, or what lies elsewhere, too.
    fn take_headless(&mut self) -> BTreeSet<u32> {
        let mut headless = std::mem::take(&mut self.headless);
        let doubles = self.found.values().filter(|found| found.len() > 1).flatten();
        headless.extend(doubles.filter(|found| found.block == 0).map(|found| found.segment));
        headless
    }

    /// True if the partial segment behind it names another checksum, and the one behind that one agrees, if there is one.
    /// No crash leaves that: the bytes were put in its place with their checksum. Older programs may have left a later
    /// one of another log; they did not tell how far it was flushed.
    fn is_contradicted(&self, found: &Found) -> bool {
        let named_by = |found: &Found, number: u64| {
            let after = self.found.get(&number).map(|after| after.iter().any(|it| it.header.chain == found.header.crc));
            after.unwrap_or(true)
        };
        let after = self.found.get(&(found.number() + 1)).into_iter().flatten();
        let mut sure = after.filter(|after| after.header.flushed_back.get() > 0 && named_by(after, after.number() + 1));
        sure.clone().all(|after| after.header.chain != found.header.crc) && sure.next().is_some()
    }

    /// The partial segments from the first number on, in order, each behind the one before it or behind a gap.
    ///
    /// One that names the checksum of another than the one before its number has a wrong number: it is left out.
    fn in_order(&self, chain: u32) -> Vec<Found> {
        let by_checksum = self.found.values().flatten().map(|found| (found.header.crc.get(), found.number()));
        let numbers: BTreeMap<u32, u64> = by_checksum.chain([(chain, self.first - 1)]).collect();
        let has_its_number =
            |found: &&Found| numbers.get(&found.header.chain.get()).is_none_or(|before| before + 1 == found.number());
        let (mut log, mut next, mut chain) = (Vec::new(), self.first, Some(chain));
        for (number, candidates) in &self.found {
            chain = chain.filter(|_| *number == next);
            let follows = |found: &&Found| chain.is_none_or(|chain| found.header.chain.get() == chain);
            // Behind a gap, that one is right which another names.
            let is_named = |found: &&Found| {
                let named = self.found.get(&(number + 1)).into_iter().flatten();
                named.into_iter().any(|after| after.header.chain == found.header.crc)
            };
            let is_right = |found: &&Found| has_its_number(found) && follows(found) && !self.is_contradicted(found);
            let mut right = candidates.iter().filter(is_right);
            let chosen = right.clone().find(is_named).or(right.next());
            chain = chosen.map(|found| found.header.crc.get());
            log.extend(chosen.cloned());
            next = number + 1;
        }
        log
    }
}

impl Sfs {
    /// The log since the checkpoint that is loaded.
    pub(super) fn follow_log(&mut self) -> Result<FollowedLog, SfsError> {
        let mut search = Search {
            first: self.superblock.next_partial.get(),
            highest: self.superblock.next_partial.get().saturating_sub(1),
            found: BTreeMap::new(),
            looked_through: BTreeSet::new(),
            headless: BTreeSet::new(),
            unreadable: BTreeMap::new(),
        };
        for segment in 0..self.segments.count() {
            // In one that was not written anew, the first is of before the checkpoint, and ends the search.
            if self.walk(segment, 0, &mut search)?.is_none() {
                search.headless.insert(segment);
            }
        }
        let open = self.where_it_goes_on()?;
        if let Some((segment, block)) = open {
            self.walk(segment, block, &mut search)?;
        }
        let (mut has_looked_everywhere, chain) = (false, self.superblock.chain.get());
        loop {
            let log = search.in_order(chain);
            let places = self.places_to_look_at(&log, open, &search);
            let durable = durable(&log);
            let there = log.iter().filter(|found| found.number() <= durable).count() as u64;
            let is_damaged = (durable + 1).saturating_sub(search.first) > there;
            if !places.is_empty() {
                for (segment, block) in places {
                    self.look_through(segment, block, &mut search)?;
                }
            } else if is_damaged && !has_looked_everywhere {
                has_looked_everywhere = true;
                for segment in search.take_headless() {
                    self.look_through(segment, 0, &mut search)?;
                }
            } else {
                return self.judge(log, durable, &search);
            }
        }
    }

    /// Where the segment that was open at the checkpoint goes on. If none is said to have been, it is the end of the
    /// one that was opened last, so that a superblock that is wrong hides no log.
    fn where_it_goes_on(&mut self) -> Result<Option<(u32, u32)>, SfsError> {
        let (segment, block) = (self.superblock.open_segment.get(), self.superblock.open_block.get());
        if segment < self.segments.count() {
            return Ok((1..self.media.segment_blocks()).contains(&block).then_some((segment, block)));
        }
        let Some(last) = self.segments.last_mixed() else { return Ok(None) };
        let end = self.end_of_partials(last)?;
        Ok((end > 0 && end < self.media.segment_blocks()).then_some((last, end)))
    }

    /// The block behind the partial segments that lie in a segment up to the checkpoint, one behind the other.
    pub(super) fn end_of_partials(&mut self, segment: u32) -> Result<u32, SfsError> {
        let start = u64::from(segment) * u64::from(self.media.segment_blocks());
        let (mut at, mut before, mut summary) = (0, 0, Vec::new());
        while at < self.media.segment_blocks() {
            let Some(header) = self.summary_at(start + u64::from(at), at, &mut summary)? else { break };
            let number = header.sequence.get();
            if number <= before || number >= self.superblock.next_partial.get() {
                break;
            }
            before = number;
            at += header.summary_blocks.get() + header.blocks.get();
        }
        Ok(at)
    }

    /// Follows the partial segments that lie one behind the other from a block on. Answers where that ends, or nothing
    /// if the first is none.
    fn walk(&mut self, segment: u32, from: u32, search: &mut Search) -> Result<Option<u32>, SfsError> {
        // Since a checkpoint there cannot be more than blocks of the log.
        let end_of_numbers = search.first.saturating_add(self.log_blocks());
        let start = u64::from(segment) * u64::from(self.media.segment_blocks());
        let (mut at, mut summary) = (from, Vec::new());
        while at < self.media.segment_blocks() {
            let header = match self.summary_at(start + u64::from(at), at, &mut summary) {
                Ok(Some(header)) => header,
                Ok(None) => break,
                Err(SfsError::Device(error)) => {
                    search.unreadable.insert((segment, at), error.to_string());
                    break;
                }
                Err(error) => return Err(error),
            };
            if header.sequence.get() >= invariants::LARGEST {
                break;
            }
            if header.sequence.get() < search.first {
                // It is of an earlier use of the segment.
                return Ok(Some(at));
            }
            search.highest = search.highest.max(header.sequence.get());
            if header.sequence.get() >= end_of_numbers {
                // A mount after a crash has skipped numbers, and crashed before its checkpoint.
                return Ok(Some(at));
            }
            let found = Found { segment, block: at, header, summary: summary.clone(), rotten: BTreeSet::new() };
            at = found.end();
            search.add(found);
        }
        Ok((at > from).then_some(at))
    }

    /// Where what is missing could lie: behind the open segment's last one, or in the segment that was to be next.
    fn places_to_look_at(&self, log: &[Found], open: Option<(u32, u32)>, search: &Search) -> Vec<(u32, u32)> {
        let told = |next: u32| next.checked_sub(1).filter(|segment| *segment < self.segments.count());
        let (mut places, mut open, mut next) = (Vec::new(), open, told(self.superblock.next_segment.get()));
        let (mut number, mut in_place) = (search.first, BTreeSet::new());
        for found in log.iter().map(Some).chain([None]) {
            let expected = [open, next.map(|next| (next, 0))];
            // One that lies elsewhere was put there by a wrong write, and does not lead to the next.
            let is_there = |found: &Found| expected.contains(&Some((found.segment, found.block)));
            if found.is_none_or(|found| found.number() != number || !is_there(found)) {
                places.extend(expected.into_iter().flatten());
            } else if found.is_some_and(|found| found.header.group == NO_GROUP && found.block == 0) {
                // It goes on in the open segment where there is room: another may be missing there.
                places.extend(open);
            }
            if let Some(found) = found {
                // Behind a gap it may lie where the missing one was.
                if found.number() == number && is_there(found) {
                    in_place.insert((found.segment, found.block));
                }
                if found.header.group == NO_GROUP {
                    open = Some((found.segment, found.end()));
                }
                next = told(found.header.next_segment.get());
                number = found.number() + 1;
            }
        }
        let is_known = |place: &(u32, u32)| in_place.contains(place) || search.looked_through.contains(place);
        places.retain(|place| place.1 + 1 < self.media.segment_blocks() && !is_known(place));
        places.sort_unstable();
        places.dedup();
        places
    }

    /// Looks for summaries from a block of a segment on, behind what may be damaged.
    fn look_through(&mut self, segment: u32, from: u32, search: &mut Search) -> Result<(), SfsError> {
        search.looked_through.insert((segment, from));
        search.headless.remove(&segment);
        let start = u64::from(segment) * u64::from(self.media.segment_blocks());
        let end = self.media.written(segment);
        let (mut at, mut first, mut bytes) = (from, from, Vec::new());
        while at < end {
            if at < first || at >= first + (bytes.len() / BLOCK) as u32 {
                first = at;
                bytes = self.read_as_far(start, at, (end - at).min(READ_AT_ONCE), (segment, search))?;
            }
            let block = &bytes[(at - first) as usize * BLOCK..][..BLOCK];
            if block[..SUMMARY_MAGIC.len()] == SUMMARY_MAGIC && search.at(segment, at).is_none() {
                self.walk(segment, at, search)?;
            }
            at = match search.at(segment, at).cloned() {
                Some(found) if self.rotten(&found)?.len() < found.header.blocks.get() as usize => found.end(),
                // It may lie in a wrong place: then its blocks are those of another.
                _ => at + 1,
            };
        }
        Ok(())
    }

    /// Reads blocks of a segment; what cannot be read is zeros, and is noted.
    fn read_as_far(
        &mut self,
        start: u64,
        at: u32,
        count: u32,
        (segment, search): (u32, &mut Search),
    ) -> Result<Vec<u8>, SfsError> {
        let mut bytes = vec![0; count as usize * BLOCK];
        match self.media.read(start + u64::from(at), &mut bytes, self.now) {
            Ok(done) => self.now = done,
            Err(_) => {
                for (block, place) in (at..).zip(bytes.chunks_exact_mut(BLOCK)) {
                    match self.media.read(start + u64::from(block), place, self.now) {
                        Ok(done) => self.now = done,
                        Err(error) => {
                            place.fill(0);
                            search.unreadable.insert((segment, block), error.to_string());
                        }
                    }
                }
            }
        }
        Ok(bytes)
    }

    /// What of a log counts, and what of it is damaged. All up to `durable` was flushed.
    fn judge(&mut self, log: Vec<Found>, durable: u64, search: &Search) -> Result<FollowedLog, SfsError> {
        let mut judged = FollowedLog { highest: search.highest, ..FollowedLog::default() };
        let (mut last_sealed, mut number) = (search.first - 1, search.first);
        let mut lost: Vec<u64> = Vec::new();
        for mut found in log {
            found.rotten = self.rotten(&found)?;
            if !found.rotten.is_empty() {
                found = self.least_rotten(found, search)?;
            }
            let is_whole = found.rotten.is_empty() && found.is_readable();
            lost.extend(number..found.number().min(durable + 1));
            let is_behind_gap = found.number() > number.max(durable + 1);
            if found.number() > durable && (is_behind_gap || !is_whole) {
                // The torn tail.
                break;
            }
            number = found.number() + 1;
            if found.header.seals == 1 {
                last_sealed = found.number();
            }
            if found.is_readable() {
                judged.partials.push(found);
            } else {
                lost.push(found.number());
            }
        }
        lost.extend(number..=durable);
        let end = lost.iter().copied().fold(last_sealed, u64::max);
        judged.partials.retain(|found| found.number() <= end);
        judged.first_lost = lost.first().copied();
        self.tell_damage(&mut judged, &lost, search);
        Ok(judged)
    }

    fn tell_damage(&self, judged: &mut FollowedLog, lost: &[u64], search: &Search) {
        let repair = "what else the log says is applied; what this one said is lost";
        for run in lost.chunk_by(|one, next| one + 1 == *next) {
            let place = match run {
                [number] => format!("partial segment {number} of the log"),
                run => format!("partial segments {} to {} of the log", run[0], run[run.len() - 1]),
            };
            let found = "a later one shows that it was durable, and it cannot be found or read";
            judged.damage.push(Finding::new(Structure::Log, place, found, "what was synced", repair));
        }
        for found in judged.partials.iter().filter(|found| !found.rotten.is_empty()) {
            let why = format!("{} of its {} blocks are not what was written", found.rotten.len(), found.header.blocks);
            let repair = "reading these blocks fails, if no later one took their place";
            judged.damage.push(Finding::new(Structure::Log, found.place(), why, "what was synced", repair));
        }
        for ((segment, block), error) in &search.unreadable {
            let place = format!("block {block} of segment {segment}");
            let repair = "nothing is known to be lost by it";
            judged.damage.push(Finding::new(Structure::Log, place, error, "what can be read", repair));
        }
    }

    /// A partial segment whose summary lies in more than one place is there where its blocks are.
    fn least_rotten(&mut self, found: Found, search: &Search) -> Result<Found, SfsError> {
        let mut least = found;
        for other in search.found.get(&least.number()).into_iter().flatten() {
            if other.header.crc == least.header.crc {
                let rotten = self.rotten(other)?;
                if rotten.len() < least.rotten.len() {
                    least = Found { rotten, ..other.clone() };
                }
            }
        }
        Ok(least)
    }

    /// Blocks of a partial segment that are not what its summary says.
    fn rotten(&mut self, found: &Found) -> Result<BTreeSet<u32>, SfsError> {
        let start = u64::from(found.segment) * u64::from(self.media.segment_blocks());
        let blocks: Vec<(u32, BlockRecord)> = found.blocks().collect();
        let mut rotten = BTreeSet::new();
        for part in blocks.chunks(READ_AT_ONCE as usize) {
            let mut bytes = vec![0; part.len() * BLOCK];
            let first = start + u64::from(part[0].0);
            let read = self.media.read(first, &mut bytes, self.now);
            self.now = *read.as_ref().unwrap_or(&self.now);
            for ((block, record), bytes) in part.iter().zip(bytes.chunks_exact_mut(BLOCK)) {
                let is_read = read.is_ok() || self.media.read(start + u64::from(*block), bytes, self.now).is_ok();
                if !is_read || crc32c::crc32c(bytes) != record.crc.get() {
                    rotten.insert(*block);
                }
            }
        }
        Ok(rotten)
    }
}

/// The highest number that was durable, as what is there shows.
fn durable(log: &[Found]) -> u64 {
    let told = log.iter().filter(|found| found.header.flushed_back.get() > 0);
    let told = told.map(|found| found.number().saturating_sub(found.header.flushed_back.get().into())).max();
    // Older volumes do not tell, but flush after each seal as well.
    let last = log.last().map_or(0, Found::number);
    let sealed = log.iter().filter(|found| found.header.seals == 1 && found.number() < last).map(Found::number).max();
    told.into_iter().chain(sealed).max().unwrap_or(0)
}
