//! The options of the journal, and the shape that they give a region.

use super::FOR_REVOKES;
use super::layout::{Hash, MOST_PARTITIONS, Shape};
use crate::expression::Choice;
use crate::units::format_size;

/// The course of commits and checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Commits look at the flags themselves; a checkpoint covers many commits, when the region is half full.
    Helping,
    /// As the paper has it: a thread for each partition looks at the flags; a checkpoint of each commit, in order.
    Paper,
}

impl Scheme {
    /// The hash of a new region.
    pub fn hash(self) -> Hash {
        match self {
            Scheme::Helping => Hash::Modulo,
            Scheme::Paper => Hash::Modulo,
        }
    }
}

impl Choice for Scheme {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("helping", Scheme::Helping, "commits look at the flags of slots; a checkpoint covers many commits"),
        (
            "paper",
            Scheme::Paper,
            "a thread for each partition looks at the flags; a checkpoint of each commit, in order",
        ),
    ];
}

/// The way in which a handle takes and fills its slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slots {
    /// By one atomic addition for each partition; nothing else is shared.
    Atomic,
    /// Behind one lock for all partitions, which is held until the slots are filled. It shows the worth of the additions.
    Locked,
}

impl Choice for Slots {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("atomic", Slots::Atomic, "by an atomic addition, without a lock, as in the paper"),
        ("locked", Slots::Locked, "behind one lock, as in a log without partitions"),
    ];
}

impl Choice for Hash {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("extents", Hash::Extents, "64 neighbours share a partition, so that they go home together"),
        ("modulo", Hash::Modulo, "its number modulo the number of partitions, as in the paper"),
        ("multiplicative", Hash::Multiplicative, "a multiplicative hash, which spreads strided numbers"),
    ];
}

/// The options of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NvmOptions {
    /// `None` for those of the region, or [`PARTITIONS`].
    pub partitions: Option<u32>,
    /// `None` for that of the region, or of a new one the scheme's: [`Scheme::hash`].
    pub hash: Option<Hash>,
    pub scheme: Scheme,
    pub slots: Slots,
    /// A region with another shape, of another volume or damaged is formatted anew.
    pub renews: bool,
}

/// Partitions of a new region.
pub const PARTITIONS: u32 = 8;
/// Slots of a partition with which the largest call fits into it four times.
pub const LEAST_SLOTS: u64 = 4 * (192 + FOR_REVOKES as u64);

impl NvmOptions {
    /// The shape of a region of so many bytes, which may have one already. Fails with a size that would be right.
    pub fn shape(&self, bytes: u64, block_bytes: usize, width: usize, known: Option<Shape>) -> Result<Shape, String> {
        let partitions = self.partitions.or(known.map(|shape| shape.partitions)).unwrap_or(PARTITIONS);
        let hash = self.hash.or(known.map(|shape| shape.hash)).unwrap_or(self.scheme.hash());
        let shape = Shape::of(bytes, partitions, hash, block_bytes, width);
        if shape.slots < LEAST_SLOTS {
            let least = u64::from(partitions) * LEAST_SLOTS * (block_bytes as u64 + 64);
            let (slots, least) = (shape.slots, format_size(least.next_multiple_of(1 << 20) + (1 << 20)));
            return Err(format!(
                "a region of {bytes} bytes has {slots} slots in each of {partitions} partitions, and {LEAST_SLOTS} are \
                 needed: take {least}, or fewer partitions"
            ));
        }
        match known {
            Some(known) if known != shape && !self.renews => Err(format!(
                "the region has {}, and would have {}: leave the options out, or let renew=on format it",
                known.in_words(),
                shape.in_words()
            )),
            _ => Ok(shape),
        }
    }
}

impl Shape {
    fn in_words(&self) -> String {
        let hash = Hash::WORDS.iter().find(|(_, hash, _)| *hash == self.hash).map_or("", |(word, ..)| word);
        format!(
            "{} partitions of {} slots for blocks of {} bytes, hash={hash}",
            self.partitions, self.slots, self.block_bytes
        )
    }
}

const _: () = assert!(PARTITIONS as u64 <= MOST_PARTITIONS, "a record has room for a new region's cuts");
