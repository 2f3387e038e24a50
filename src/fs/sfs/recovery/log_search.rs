//! Finding the partial segments since a checkpoint, wherever they lie.
//!
//! 1. From the first block of each segment, and from where the open segments went on, partial segments are read one
//!    behind the other as long as their numbers are those of the log since the checkpoint.
//! 2. A damaged summary hides where the next one begins. Where one is missing or in a wrong place, it is searched for
//!    block by block: behind the last one of each open segment, and in the segment that the one before names as next.
//! 3. If something that was durable is missing still, all segments are searched at whose first block nothing is read,
//!    or what lies elsewhere, too.
//!
//! Remains of earlier crashes are not mistaken for this log: a mount after a crash skips as many numbers as the volume
//! has blocks, and so all that were given out since the checkpoint.

use super::log_order::{FoundPartials, durable_up_to};
use crate::device::DeviceError;
use crate::fs::sfs::log::{LogReader, PartialSegment, Summary};
use crate::fs::sfs::media::format::{LARGEST, Superblock};
use std::collections::{BTreeMap, BTreeSet};

/// A block of a segment.
type Place = (u32, u32);

/// The beginning of the log since a checkpoint.
#[derive(Clone, Debug)]
pub(super) struct LogStart {
    /// The number of its first partial segment.
    pub first: u64,
    /// The checksum of the one before that.
    pub chain: u32,
    /// The places at which the open segments go on, by their heads.
    pub open: BTreeMap<u8, Place>,
    /// The segment that is taken next, if the superblock names it.
    pub next_segment: Option<u32>,
}

impl LogStart {
    /// As a superblock says. If it names no open segment of a head, that is the one which the head opened last, so that
    /// a superblock that is wrong hides no log.
    ///
    /// # Errors
    ///
    /// If the device cannot read such a segment.
    pub fn of(
        superblock: &Superblock,
        last_opened: &BTreeMap<u8, u32>,
        reader: LogReader<'_>,
    ) -> Result<LogStart, DeviceError> {
        let named = superblock.open_ends().filter(|(_, segment, _)| *segment < reader.segments());
        let mut open: BTreeMap<u8, Place> = named.map(|(head, segment, block)| (head, (segment, block))).collect();
        let named: BTreeSet<u32> = open.values().map(|(segment, _)| *segment).collect();
        for (head, segment) in last_opened {
            if !open.contains_key(head) && !named.contains(segment) {
                open.insert(*head, (*segment, reader.end_before(*segment, superblock.next_partial.get())?));
            }
        }
        open.retain(|_, (_, block)| (1..reader.segment_blocks()).contains(block));
        Ok(LogStart {
            first: superblock.next_partial.get(),
            chain: superblock.chain.get(),
            open,
            next_segment: superblock.next_segment.get().checked_sub(1),
        })
    }
}

/// The results of a search for the log.
pub(super) struct FoundLog {
    pub partials: FoundPartials,
    /// The highest number that was found anywhere.
    pub highest: u64,
    /// Blocks that the device cannot read, and why.
    pub unreadable: BTreeMap<Place, String>,
    /// Segments, and the blocks from which on they were searched.
    searched: BTreeSet<Place>,
    /// Segments at whose first block no partial segment begins.
    headless: BTreeSet<u32>,
}

/// Finds the partial segments since a checkpoint.
pub(super) fn find(reader: LogReader<'_>, start: &LogStart) -> FoundLog {
    let mut found = FoundLog {
        partials: FoundPartials::behind(start.first, start.chain),
        highest: start.first.saturating_sub(1),
        unreadable: BTreeMap::new(),
        searched: BTreeSet::new(),
        headless: BTreeSet::new(),
    };
    for segment in 0..reader.segments() {
        if !found.take_from(reader, segment, 0) {
            found.headless.insert(segment);
        }
    }
    for (segment, block) in start.open.values() {
        found.take_from(reader, *segment, *block);
    }
    let mut has_searched_headless = false;
    loop {
        let log = found.partials.in_order();
        let places = found.places_to_search(&log, start, reader);
        if !places.is_empty() {
            for (segment, block) in places {
                found.search(reader, segment, block);
            }
            continue;
        }
        let durable = durable_up_to(&log);
        let there = log.iter().filter(|partial| partial.number() <= durable).count() as u64;
        let is_damaged = (durable + 1).saturating_sub(start.first) > there;
        if !is_damaged || has_searched_headless {
            return found;
        }
        has_searched_headless = true;
        for segment in found.take_headless() {
            found.search(reader, segment, 0);
        }
    }
}

impl FoundLog {
    /// Takes the partial segments of the log that lie one behind the other from a block on. Returns false if none
    /// begins there, of whatever number.
    fn take_from(&mut self, reader: LogReader<'_>, segment: u32, from: u32) -> bool {
        // Since a checkpoint there cannot be more than blocks of the log.
        let numbers = self.partials.first()..self.partials.first().saturating_add(reader.log_blocks());
        let mut begins_here = false;
        for (block, summary) in reader.walk(segment, from) {
            let partial = match summary {
                Summary::Valid(partial) if partial.number() < LARGEST => partial,
                Summary::Unreadable(error) => {
                    self.unreadable.insert((segment, block), error.to_string());
                    break;
                }
                _ => break,
            };
            begins_here = true;
            let number = partial.number();
            // A mount after a crash has skipped numbers, and crashed before its checkpoint.
            self.highest = self.highest.max(number);
            if !numbers.contains(&number) {
                break;
            }
            self.partials.add(partial);
        }
        begins_here
    }

    /// Searches a segment block by block from one on, behind what may be damaged.
    fn search(&mut self, reader: LogReader<'_>, segment: u32, from: u32) {
        self.searched.insert((segment, from));
        self.headless.remove(&segment);
        let mut candidates = reader.search(segment, from);
        while let Some(block) = candidates.next(reader) {
            if self.partials.at(segment, block).is_none() {
                self.take_from(reader, segment, block);
            }
            // The blocks of a misplaced one are those of another, and may hold a summary.
            if let Some(partial) = self.partials.at(segment, block)
                && !reader.is_misplaced(partial)
            {
                candidates.skip_to(partial.end());
            }
        }
        let unreadable = candidates.unreadable.into_iter();
        self.unreadable.extend(unreadable.map(|(block, error)| ((segment, block), error.to_string())));
    }

    /// Segments at whose first block nothing can be read, or what lies elsewhere, too.
    fn take_headless(&mut self) -> BTreeSet<u32> {
        let mut headless = std::mem::take(&mut self.headless);
        headless.extend(self.partials.duplicates().filter(|it| it.block == 0).map(|it| it.segment));
        headless
    }

    /// Places at which a missing partial segment could lie: behind the last one of an open segment, or in the segment
    /// that was to be taken next.
    fn places_to_search(&self, log: &[PartialSegment], start: &LogStart, reader: LogReader<'_>) -> Vec<Place> {
        let named = |next: Option<u32>| next.filter(|segment| *segment < reader.segments()).map(|segment| (segment, 0));
        let (mut open, mut next) = (start.open.clone(), named(start.next_segment));
        let (mut places, mut number, mut in_place) = (Vec::new(), start.first, BTreeSet::new());
        for partial in log.iter().map(Some).chain([None]) {
            // One that lies elsewhere was put there by a wrong write, and does not lead to the next.
            let is_expected = |place: Place| next == Some(place) || open.values().any(|open| *open == place);
            let is_next = partial.is_some_and(|it| it.number() == number && is_expected(it.place()));
            if !is_next {
                places.extend(open.values().copied().chain(next));
            } else if let Some(begun) = partial.filter(|it| it.block == 0) {
                // It goes on in the head's open segment where there is room: another may be missing there.
                places.extend(open.get(&begun.head()));
            }
            if let Some(partial) = partial {
                if is_next {
                    in_place.insert(partial.place());
                }
                open.insert(partial.head(), (partial.segment, partial.end()));
                next = named(partial.next_segment());
                number = partial.number() + 1;
            }
        }
        let is_known = |place: &Place| in_place.contains(place) || self.searched.contains(place);
        places.retain(|place| place.1 + 1 < reader.segment_blocks() && !is_known(place));
        places.sort_unstable();
        places.dedup();
        places
    }
}
