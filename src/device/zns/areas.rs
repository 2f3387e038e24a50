//! The blocks in the random write areas of zones, for the ledger.
//!
//! A block that is written is kept with its label. A newer version takes the place of an older one, which no page is
//! programmed for (*joined*). Blocks that the write pointer passes go on to the flash, those that were never written as
//! padding.

use crate::device::account::BufferAccount;
use crate::label::{Cause, Content, Label, Provenance, Tally};
use crate::units::BLOCK_BYTES;
use std::collections::{BTreeMap, VecDeque};

/// Padding of blocks that were never written.
const PADDING: Label = Label::first(Cause::Padding, Content::Data);

/// The areas of all zones.
#[derive(Debug, Default)]
pub(super) struct Areas {
    /// For each zone with an area: the label of each block from the write pointer on, if it is written.
    held: BTreeMap<u32, VecDeque<Option<Label>>>,
    received: Tally,
    passed: Tally,
    joined: Tally,
    dropped: Tally,
    held_before: Tally,
    /// Blocks that the write pointers passed and nobody had written.
    padded: u64,
}

impl Areas {
    /// Gives a zone an area.
    pub fn open(&mut self, zone: u32) {
        let old = self.held.insert(zone, VecDeque::new());
        debug_assert!(old.is_none(), "zone {zone} has no area yet");
    }

    /// The area of a zone as the drive is opened: of each block from the write pointer on, true if it is written.
    /// Labels are not kept.
    pub fn found(&mut self, zone: u32, written: impl Iterator<Item = bool>) {
        let label = Label::again(Cause::HostWrite, Provenance::UNKNOWN);
        let held: VecDeque<_> = written.map(|is_written| is_written.then_some(label)).collect();
        self.held_before.add(label, held.iter().flatten().count() as u64);
        self.held.insert(zone, held);
    }

    /// Takes `count` blocks from block `from` of the area on, and passes on the `passed` first ones.
    pub fn write(&mut self, zone: u32, from: u64, count: u64, label: Label, passed: u64) {
        let held = self.held.get_mut(&zone).expect("the zone has an area");
        let end = (from + count) as usize;
        if held.len() < end {
            held.resize(end, None);
        }
        for place in held.range_mut(from as usize..end) {
            if let Some(older) = place.replace(label) {
                self.joined.add(older, 1);
            }
        }
        self.received.add(label, count);
        self.pass(zone, passed);
    }

    /// Passes on the `count` first blocks of an area.
    pub fn pass(&mut self, zone: u32, count: u64) {
        let held = self.held.get_mut(&zone).expect("the zone has an area");
        for _ in 0..count {
            match held.pop_front().flatten() {
                Some(label) => self.passed.add(label, 1),
                None => self.padded += 1,
            }
        }
    }

    /// Passes on an area to its last written block, and ends it. Returns the number of blocks passed on.
    pub fn finish(&mut self, zone: u32) -> u64 {
        let written = self.written(zone);
        self.pass(zone, written);
        self.held.remove(&zone);
        written
    }

    /// Blocks from the write pointer to the last written one of an area.
    pub fn written(&self, zone: u32) -> u64 {
        self.held[&zone].iter().rposition(Option::is_some).map_or(0, |last| last as u64 + 1)
    }

    /// Drops an area with its blocks.
    pub fn drop(&mut self, zone: u32) {
        let held = self.held.remove(&zone).expect("the zone has an area");
        held.into_iter().flatten().for_each(|label| self.dropped.add(label, 1));
    }

    /// Blocks received.
    pub fn received(&self) -> &Tally {
        &self.received
    }

    /// Blocks that went on to the flash, with padding.
    pub fn sent(&self) -> Tally {
        let mut sent = self.passed.clone();
        sent.add(PADDING, self.padded);
        sent
    }

    /// The counts of the areas as a write buffer.
    pub fn account(&self) -> BufferAccount {
        let mut held = Tally::default();
        self.held.values().flatten().flatten().for_each(|label| held.add(*label, 1));
        BufferAccount {
            page_bytes: BLOCK_BYTES,
            received: self.received.clone(),
            passed: self.passed.clone(),
            joined: self.joined.clone(),
            dropped: self.dropped.clone(),
            held_before: self.held_before.clone(),
            held,
        }
    }
}
