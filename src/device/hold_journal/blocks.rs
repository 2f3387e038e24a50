//! The held blocks: their bytes and labels, in order.

use crate::device::Lba;
use crate::label::Label;
use std::collections::BTreeMap;
use std::ops::Range;

/// A held block.
pub(super) struct HeldBlock {
    /// Its bytes, or its stamp.
    pub bytes: Box<[u8]>,
    /// The label of its last write.
    pub label: Label,
}

/// The held blocks of a device, by address.
#[derive(Default)]
pub(super) struct HeldBlocks {
    blocks: BTreeMap<u64, HeldBlock>,
}

impl HeldBlocks {
    pub fn count(&self) -> u64 {
        self.blocks.len() as u64
    }

    pub fn get(&self, place: Lba) -> Option<&HeldBlock> {
        self.blocks.get(&place.0)
    }

    pub fn contains(&self, place: Lba) -> bool {
        self.blocks.contains_key(&place.0)
    }

    /// Stores a block, in the memory of its former version if it has one.
    pub fn put(&mut self, place: Lba, bytes: &[u8], label: Label) {
        match self.blocks.get_mut(&place.0) {
            Some(block) => {
                block.bytes.copy_from_slice(bytes);
                block.label = label;
            }
            None => drop(self.blocks.insert(place.0, HeldBlock { bytes: bytes.into(), label })),
        }
    }

    /// Removes the held blocks of a range. Returns their number.
    pub fn remove(&mut self, range: Range<Lba>) -> u64 {
        let gone: Vec<u64> = self.blocks.range(range.start.0..range.end.0).map(|(place, _)| *place).collect();
        gone.iter().for_each(|place| drop(self.blocks.remove(place)));
        gone.len() as u64
    }

    /// All blocks, in order of their addresses.
    pub fn iter(&self) -> impl Iterator<Item = (Lba, &HeldBlock)> {
        self.blocks.iter().map(|(place, block)| (Lba(*place), block))
    }

    /// The number of blocks from `first` on, at most `blocks`, before the first that is held.
    pub fn free_run(&self, first: Lba, blocks: u64) -> u64 {
        let end = first.0 + blocks;
        self.blocks.range(first.0..end).next().map_or(blocks, |(place, _)| place - first.0)
    }

    /// Copies the held blocks of a range to `buffer`. Returns their number, and the runs that are not held.
    pub fn read(&self, first: Lba, buffer: &mut [u8], width: usize) -> (u64, Vec<Range<Lba>>) {
        let end = first.0 + (buffer.len() / width) as u64;
        let (mut next, mut count, mut missing) = (first.0, 0, Vec::new());
        for (place, block) in self.blocks.range(first.0..end) {
            if next < *place {
                missing.push(Lba(next)..Lba(*place));
            }
            let at = (place - first.0) as usize * width;
            buffer[at..at + width].copy_from_slice(&block.bytes);
            (next, count) = (place + 1, count + 1);
        }
        if next < end {
            missing.push(Lba(next)..Lba(end));
        }
        (count, missing)
    }

    /// The runs of neighbouring blocks of one label among `places`, which are in order, of at most `most` blocks each.
    pub fn runs(&self, places: impl IntoIterator<Item = Lba>, most: u64) -> Vec<(Range<Lba>, Label)> {
        let mut runs: Vec<(Range<Lba>, Label)> = Vec::new();
        for place in places {
            let label = self.blocks[&place.0].label;
            match runs.last_mut() {
                Some((run, known)) if run.end == place && *known == label && run.end.0 - run.start.0 < most => {
                    run.end = place + 1;
                }
                _ => runs.push((place..place + 1, label)),
            }
        }
        runs
    }

    /// The bytes of a run of held blocks.
    pub fn bytes_of(&self, run: Range<Lba>) -> Vec<u8> {
        self.blocks.range(run.start.0..run.end.0).flat_map(|(_, block)| block.bytes.iter().copied()).collect()
    }
}
