//! The segments: free and used ones, and sums over their live blocks (section 3.3: updated when a block is written or
//! dies).
//!
//! A segment without live blocks is not free yet: the last checkpoint may refer to its blocks. It becomes free at the
//! next checkpoint. Free segments are used in the order in which they became free (section 3.5).

use crate::device::UnitMap;
use crate::fs::sfs::media::format::USAGE_ENTRIES;
use crate::fs::sfs::media::format::{BlockBytes, Kind, NO_GROUP, UsageEntry, blocks_that_fit};
use crate::fs::sfs::placement::lives::Lives;
use crate::fs::sfs::placement::{SegmentView, Tick};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use zerocopy::{FromBytes, IntoBytes};

/// The state of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::fs::sfs) enum State {
    /// Free.
    Free,
    /// Without live blocks, but the last checkpoint may refer to it.
    Emptied,
    /// Open for writing.
    Open,
    /// Written.
    Written,
}

impl State {
    /// Its name in maps of segments.
    pub fn name(self) -> &'static str {
        match self {
            State::Free => "free",
            State::Emptied => "emptied",
            State::Open => "open",
            State::Written => "written",
        }
    }
}

/// A segment and its sums.
#[derive(Clone, Copy, Debug)]
pub(in crate::fs::sfs) struct Segment {
    pub state: State,
    pub live: u32,
    /// Sums of the write counts and times of live blocks. They wrap, so that additions and subtractions are exact at
    /// any age of the volume: the sum for 2 GiB exceeds 64 bits after a year of microseconds.
    pub writes: u64,
    pub modified: u64,
    pub youngest: Tick,
    pub written: Tick,
    pub group: u8,
    pub is_metadata: bool,
    /// True if its live blocks were read by cleaning, to be written again.
    pub is_being_cleaned: bool,
    /// True if it was emptied before the current checkpoint.
    pub is_settled: bool,
    /// The checkpoint epoch of its last write.
    pub epoch: u64,
}

impl Segment {
    /// The sum of the write times of its live blocks, unwrapped. No block is younger than the youngest, and the sum of
    /// their differences to it does not wrap.
    fn sum_of_times(&self) -> u128 {
        let youngest = at_once(self.youngest, self.live);
        youngest.saturating_sub((youngest as u64).wrapping_sub(self.modified).into())
    }
}

/// The sum of write times of blocks written together.
fn at_once(when: Tick, blocks: u32) -> u128 {
    u128::from(when.0) * u128::from(blocks)
}

const FREE: Segment = Segment {
    state: State::Free,
    live: 0,
    writes: 0,
    modified: 0,
    youngest: Tick(0),
    written: Tick(0),
    group: NO_GROUP,
    is_metadata: false,
    is_being_cleaned: false,
    is_settled: false,
    epoch: 0,
};

/// All segments.
pub(in crate::fs::sfs) struct Segments {
    all: Vec<Segment>,
    blocks: u32,
    /// Maximum blocks beside a summary: a segment with this many live blocks is full.
    capacity: u32,
    free: VecDeque<u32>,
    emptied: Vec<u32>,
    /// Segments being cleaned that are not emptied yet.
    cleaning: u32,
    live: u64,
    /// Segments whose number of live blocks comes from the usage file, and was not verified since.
    unchecked: BTreeSet<u32>,
    /// How long the blocks of each group live.
    pub lives: Lives,
}

impl Segments {
    /// `count` free segments of `blocks` blocks.
    pub fn new(count: u32, blocks: u32) -> Segments {
        Segments {
            all: vec![FREE; count as usize],
            blocks,
            capacity: blocks_that_fit(blocks, 0).unwrap_or(blocks),
            free: (0..count).collect(),
            emptied: Vec::new(),
            cleaning: 0,
            live: 0,
            unchecked: BTreeSet::new(),
            lives: Lives::default(),
        }
    }

    /// The entry of a segment in a page of the usage file.
    pub fn entry(segment: u32, page: &BlockBytes) -> UsageEntry {
        let at = (segment as usize % USAGE_ENTRIES) * size_of::<UsageEntry>();
        UsageEntry::read_from_bytes(&page[at..at + size_of::<UsageEntry>()]).expect("an entry's length")
    }

    /// Loads the usage entry of a segment. Segments not in use become free, in ascending order.
    pub fn load(&mut self, segment: u32, page: &BlockBytes) {
        let entry = Segments::entry(segment, page);
        if entry.in_use == 0 {
            return;
        }
        self.all[segment as usize] = Segment {
            state: State::Written,
            live: entry.live.get().min(self.blocks),
            writes: entry.writes.get(),
            modified: entry.modified.get(),
            youngest: Tick(entry.youngest.get()),
            written: Tick(entry.written.get()),
            group: entry.group,
            is_metadata: entry.is_metadata != 0,
            is_being_cleaned: false,
            is_settled: false,
            epoch: 0,
        };
    }

    /// Ends loading.
    pub fn loaded(&mut self) {
        self.free =
            (0..self.all.len() as u32).filter(|segment| self.all[*segment as usize].state == State::Free).collect();
        self.live = self.all.iter().map(|segment| u64::from(segment.live)).sum();
        let in_use = (0..self.all.len() as u32).filter(|segment| self.all[*segment as usize].state != State::Free);
        self.unchecked = in_use.collect();
        for segment in 0..self.all.len() as u32 {
            if self.all[segment as usize].state == State::Written && self.all[segment as usize].live == 0 {
                self.empty(segment);
            }
        }
    }

    /// The page of the usage file with the entry of a segment.
    pub fn page_of(segment: u32) -> usize {
        segment as usize / USAGE_ENTRIES
    }

    /// Fills a page of the usage file. Emptied segments are stored as free.
    pub fn fill_page(&self, number: usize, page: &mut BlockBytes) {
        page.fill(0);
        let segments = self.all.iter().skip(number * USAGE_ENTRIES).take(USAGE_ENTRIES);
        for (segment, place) in segments.zip(page.chunks_exact_mut(size_of::<UsageEntry>())) {
            if matches!(segment.state, State::Free | State::Emptied) {
                continue;
            }
            let entry = UsageEntry {
                live: segment.live.into(),
                in_use: 1,
                group: segment.group,
                is_metadata: segment.is_metadata.into(),
                modified: segment.modified.into(),
                writes: segment.writes.into(),
                youngest: segment.youngest.0.into(),
                written: segment.written.0.into(),
                ..UsageEntry::default()
            };
            place.copy_from_slice(entry.as_bytes());
        }
    }

    pub fn count(&self) -> u32 {
        self.all.len() as u32
    }

    pub fn get(&self, segment: u32) -> &Segment {
        &self.all[segment as usize]
    }

    /// Free segments.
    pub fn free(&self) -> u32 {
        self.free.len() as u32
    }

    /// Segments that become free at the next checkpoint.
    pub fn emptied(&self) -> u32 {
        self.emptied.len() as u32
    }

    /// Segments that become empty when their cleaned blocks are written.
    pub fn cleaning(&self) -> u32 {
        self.cleaning
    }

    /// Marks a segment whose live blocks are being cleaned.
    pub fn begin_cleaning(&mut self, segment: u32) {
        let it = &self.all[segment as usize];
        debug_assert!(
            it.state == State::Written && !it.is_being_cleaned,
            "segment {segment} is written, and not being cleaned"
        );
        self.all[segment as usize].is_being_cleaned = true;
        self.cleaning += 1;
    }

    /// Live blocks of all segments.
    pub fn live(&self) -> u64 {
        self.live
    }

    /// The most recently opened segment of each head.
    pub fn last_opened(&self) -> BTreeMap<u8, u32> {
        let mut last: BTreeMap<u8, (Tick, u32)> = BTreeMap::new();
        for (number, it) in (0..).zip(&self.all).filter(|(_, it)| it.state != State::Free && !it.is_metadata) {
            let newest = last.entry(it.group).or_insert((it.written, number));
            *newest = (*newest).max((it.written, number));
        }
        last.into_iter().map(|(head, (_, number))| (head, number)).collect()
    }

    /// The segment that is used next; if none is free, the first one after the next checkpoint.
    pub fn next(&self) -> Option<u32> {
        self.free.front().or(self.emptied.first()).copied()
    }

    /// Opens the segment that has been free for the longest time.
    pub fn take(&mut self, tick: Tick, group: u8, is_metadata: bool) -> Option<u32> {
        let segment = self.free.pop_front()?;
        assert_eq!(self.all[segment as usize].state, State::Free, "segment {segment} is free");
        self.unchecked.remove(&segment);
        self.all[segment as usize] = Segment { state: State::Open, written: tick, group, is_metadata, ..FREE };
        Some(segment)
    }

    /// Opens a segment in which recovery found the log.
    pub fn take_found(&mut self, segment: u32, tick: Tick, group: u8) {
        self.unchecked.remove(&segment);
        match self.all[segment as usize].state {
            State::Free => {
                self.free.retain(|free| *free != segment);
                self.all[segment as usize] = Segment { state: State::Open, written: tick, group, ..FREE };
            }
            State::Open => {}
            // The log freed it and continued in it. Blocks that the checkpoint counts as live in it die as the log is
            // applied.
            State::Emptied | State::Written => {
                self.reopen(segment);
                let it = &mut self.all[segment as usize];
                (it.written, it.group, it.is_metadata) = (tick, group, false);
            }
        }
    }

    /// Opens a written segment again, in which the log continues.
    pub fn reopen(&mut self, segment: u32) {
        self.all[segment as usize].state = State::Open;
        self.emptied.retain(|emptied| *emptied != segment);
    }

    /// Closes an open segment.
    pub fn close(&mut self, segment: u32) {
        let it = &mut self.all[segment as usize];
        it.state = State::Written;
        if it.live == 0 {
            self.empty(segment);
        }
    }

    fn empty(&mut self, segment: u32) {
        let it = &mut self.all[segment as usize];
        debug_assert!(it.state == State::Written && it.live == 0, "segment {segment} is written, without live blocks");
        it.state = State::Emptied;
        it.is_settled = false;
        if std::mem::take(&mut it.is_being_cleaned) {
            self.cleaning = self.cleaning.saturating_sub(1);
        }
        self.emptied.push(segment);
    }

    /// Counts a block written into a segment, with its history if it counts for hotness.
    #[inline]
    pub fn gain(&mut self, segment: u32, kind: Kind, writes: u64, modified: u64) {
        let it = &mut self.all[segment as usize];
        it.live += 1;
        self.live += 1;
        if kind == Kind::Data {
            it.writes = it.writes.wrapping_add(writes);
            it.modified = it.modified.wrapping_add(modified);
            it.youngest = it.youngest.max(Tick(modified));
        }
    }

    /// Counts a block of a segment that died.
    #[inline]
    pub fn lose(&mut self, segment: u32, kind: Kind, writes: u64, modified: u64) {
        let it = &mut self.all[segment as usize];
        // A wrong usage file may hold a smaller count. `live` stays the total of all segments.
        if it.live > 0 {
            it.live -= 1;
            self.live -= 1;
        }
        if kind == Kind::Data {
            it.writes = it.writes.wrapping_sub(writes);
            it.modified = it.modified.wrapping_sub(modified);
        }
        if it.live == 0 && it.state == State::Written {
            self.empty(segment);
        }
    }

    /// Counts the death of a live block of data of a segment for the lives of its group, unless the segment is open:
    /// then its exposure is not observed, either.
    pub fn count_death(&mut self, segment: u32, now: Tick) {
        let it = &self.all[segment as usize];
        if it.state == State::Written && it.live > 0 {
            let view = self.view(segment, it);
            self.lives.died(&view, now);
        }
    }

    /// Sets the counts of a segment. A segment recorded as free becomes used if any block is live.
    pub fn set_live(&mut self, segment: u32, live: u32, writes: u64, modified: u64, youngest: Tick) {
        let it = &mut self.all[segment as usize];
        self.live = self.live - u64::from(it.live) + u64::from(live);
        (it.live, it.writes, it.modified, it.youngest) = (live, writes, modified, youngest);
        match (it.state, live) {
            (State::Free, 1..) => {
                it.state = State::Written;
                self.free.retain(|free| *free != segment);
            }
            (State::Emptied, 1..) => {
                it.state = State::Written;
                self.emptied.retain(|emptied| *emptied != segment);
            }
            (State::Written, 0) => self.empty(segment),
            _ => {}
        }
    }

    /// Emptied segments whose live blocks were known only from the usage file. Each is returned once.
    pub fn take_unchecked(&mut self) -> Vec<u32> {
        let unchecked: Vec<u32> =
            self.emptied.iter().copied().filter(|segment| self.unchecked.contains(segment)).collect();
        self.unchecked.retain(|segment| !unchecked.contains(segment));
        unchecked
    }

    /// Marks the segments emptied before this checkpoint, which refers to none of them: they become free when it is
    /// durable.
    pub fn apply_frees(&mut self) {
        for segment in &self.emptied {
            self.all[*segment as usize].is_settled = true;
        }
    }

    /// Number of emptied segments that satisfy the condition.
    pub fn count_emptied(&self, is_so: impl Fn(&Segment) -> bool) -> u32 {
        self.emptied.iter().filter(|segment| is_so(&self.all[**segment as usize])).count() as u32
    }

    /// Frees the emptied segments that satisfy the condition, and returns them.
    pub fn release(&mut self, is_so: impl Fn(&Segment) -> bool) -> Vec<u32> {
        let all = &self.all;
        let (released, kept): (Vec<u32>, Vec<u32>) =
            self.emptied.iter().partition(|segment| is_so(&all[**segment as usize]));
        self.emptied = kept;
        for segment in &released {
            let Segment { state, live, .. } = self.all[*segment as usize];
            assert!(
                state == State::Emptied && live == 0,
                "segment {segment} is freed while {state:?} with {live} live blocks"
            );
            self.all[*segment as usize] = FREE;
            self.free.push_back(*segment);
        }
        released
    }

    /// Ends cleaning at a checkpoint: blocks still marked could not be read, and stay in place.
    pub fn end_cleaning(&mut self) {
        self.cleaning = 0;
    }

    /// Marks a segment as written in this checkpoint epoch.
    pub fn touch(&mut self, segment: u32, epoch: u64) {
        self.all[segment as usize].epoch = epoch;
    }

    /// The state of each segment, of `capacity` blocks.
    pub fn unit_map(&self, capacity: u32) -> UnitMap {
        UnitMap {
            unit: "segment",
            size: capacity.into(),
            live: self.all.iter().map(|segment| segment.live).collect(),
            states: self.all.iter().map(|segment| segment.state.name()).collect(),
            ..UnitMap::default()
        }
    }

    /// All written segments with live blocks.
    pub fn views(&self) -> impl Iterator<Item = SegmentView> + '_ {
        let written =
            self.all.iter().enumerate().filter(|(_, segment)| segment.state == State::Written && segment.live > 0);
        written.map(|(number, segment)| self.view(number as u32, segment))
    }

    /// The view of a segment for policies.
    pub fn view(&self, number: u32, segment: &Segment) -> SegmentView {
        // Metadata has no history: each block counts as written once, with its segment.
        let (writes, modified, youngest) = match segment.is_metadata {
            true => (u64::from(segment.live), at_once(segment.written, segment.live), segment.written),
            false => (segment.writes, segment.sum_of_times(), segment.youngest),
        };
        SegmentView {
            number,
            capacity: self.capacity,
            live: segment.live,
            writes,
            modified,
            youngest,
            written: segment.written,
            group: (segment.group != NO_GROUP).then_some(segment.group),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::sfs::placement::Cleaner;
    use crate::fs::sfs::placement::cleaners::{CostBenefit, CostHotness, Greedy};
    use crate::fs::sfs::placement::lives::Lives;
    use crate::fs::sfs::placement::victim;

    /// Regression: a volume of cold files was cleaned again and again. The summary of a full segment counted as dead,
    /// and old segments with few dead blocks score highest with both policies that use age.
    #[test]
    fn a_cold_segment_without_dead_blocks_is_full_and_never_cleaned() {
        let mut segments = Segments::new(2, 512);
        let capacity = blocks_that_fit(512, 0).unwrap();
        assert!(capacity < 512, "the summary takes space");
        for (segment, modified, dead) in [(0, 1, 0), (1, 1_000_000, 100)] {
            segments.take(Tick(modified), 0, false).unwrap();
            (0..capacity).for_each(|_| segments.gain(segment, Kind::Data, 1, modified));
            segments.close(segment);
            (0..dead).for_each(|_| segments.lose(segment, Kind::Data, 1, modified));
        }
        for policy in [&CostHotness as &dyn Cleaner, &CostBenefit, &Greedy] {
            assert_eq!(
                victim::choose(policy, segments.views(), &Lives::default(), Tick(1_000_100)),
                Some(1),
                "{policy:?}"
            );
        }
    }
    /// Regression: the sums of a segment of 2 GiB saturated after a year of microseconds, and a check then found them
    /// wrong.
    #[test]
    fn sums_of_a_segment_are_exact_at_any_clock_value() {
        let (blocks, years) = (1 << 19, 20 * 365 * 24 * 3600 * 1_000_000);
        let mut segments = Segments::new(1, blocks);
        segments.take(Tick(years), 0, false).unwrap();
        let time_of = |block: u32| years + u64::from(block % 7);
        (0..blocks - 100).for_each(|block| segments.gain(0, Kind::Data, 1, time_of(block)));
        segments.close(0);
        (10..blocks - 100).for_each(|block| segments.lose(0, Kind::Data, 1, time_of(block)));
        let view = segments.views().next().unwrap();
        assert_eq!(view.modified, (0..10).map(|block| u128::from(time_of(block))).sum());
        assert_eq!((view.live, view.writes), (10, 10));
    }
}
