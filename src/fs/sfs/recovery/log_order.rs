//! The partial segments that make up the log since a checkpoint: the rules about numbers, chained checksums and
//! duplicates.
//!
//! | rule | why |
//! |---|---|
//! | the log begins with the number and the checksum that the superblock names | what a segment held before is older |
//! | behind number n comes n + 1, which names n's checksum | what follows a lost one is not mistaken for the log |
//! | behind a gap, that candidate is right which the next number names | nothing before it vouches for it |
//! | one that names the checksum of another number than its own less 1 is left out | its number was changed, with its checksum |
//! | one whose checksum is not the one that the next number names is left out, if the number after that agrees | the summary was changed, with its checksum; no crash does that |
//! | of summaries that lie in more than one place, one counts | the others were written to a wrong place, and hide what lay there |
//! | all numbers up to what a later one says was flushed were durable | what is missing or damaged there was not torn by a crash |

use crate::fs::sfs::log::PartialSegment;
use std::collections::BTreeMap;

/// Partial segments that were found, by number.
pub(super) struct FoundPartials {
    /// The first number behind the checkpoint.
    first: u64,
    /// The checksum of the one before that.
    chain: u32,
    /// Those with the same number are in the order in which they were found.
    by_number: BTreeMap<u64, Vec<PartialSegment>>,
}

impl FoundPartials {
    /// None yet, behind a checkpoint whose superblock names this number and checksum.
    pub fn behind(first: u64, chain: u32) -> FoundPartials {
        FoundPartials { first, chain, by_number: BTreeMap::new() }
    }

    /// The first number behind the checkpoint.
    pub fn first(&self) -> u64 {
        self.first
    }

    pub fn add(&mut self, partial: PartialSegment) {
        debug_assert!(partial.number() >= self.first, "what is older than the checkpoint is not of this log");
        let others = self.by_number.entry(partial.number()).or_default();
        // A segment that was freed and reused may end where it was open at the checkpoint.
        if others.iter().all(|other| other.place() != partial.place()) {
            others.push(partial);
        }
    }

    /// Those with this number.
    pub fn with_number(&self, number: u64) -> &[PartialSegment] {
        self.by_number.get(&number).map_or(&[], Vec::as_slice)
    }

    /// The one that begins at a block of a segment.
    pub fn at(&self, segment: u32, block: u32) -> Option<&PartialSegment> {
        self.by_number.values().flatten().find(|partial| partial.place() == (segment, block))
    }

    /// Those whose number was found in more than one place.
    pub fn duplicates(&self) -> impl Iterator<Item = &PartialSegment> {
        self.by_number.values().filter(|partials| partials.len() > 1).flatten()
    }

    /// The log, as far as it was found: at most one of each number, each behind the one before it or behind a gap.
    pub fn in_order(&self) -> Vec<PartialSegment> {
        let by_checksum = self.by_number.values().flatten().map(|it| (it.header.crc.get(), it.number()));
        let numbers: BTreeMap<u32, u64> = by_checksum.chain([(self.chain, self.first - 1)]).collect();
        let has_its_number =
            |it: &PartialSegment| numbers.get(&it.header.chain.get()).is_none_or(|before| before + 1 == it.number());
        let (mut log, mut next, mut chain) = (Vec::new(), self.first, Some(self.chain));
        for (number, candidates) in &self.by_number {
            chain = chain.filter(|_| *number == next);
            let follows = |it: &PartialSegment| chain.is_none_or(|chain| it.header.chain.get() == chain);
            let is_named = |it: &&PartialSegment| self.with_number(number + 1).iter().any(|next| it.is_named_by(next));
            let is_right = |it: &&PartialSegment| has_its_number(it) && follows(it) && !self.is_contradicted(it);
            let mut right = candidates.iter().filter(is_right);
            let chosen = right.clone().find(is_named).or(right.next());
            chain = chosen.map(|partial| partial.header.crc.get());
            log.extend(chosen.cloned());
            next = number + 1;
        }
        log
    }

    /// True if the next number names another checksum, and the number after that names the next one's, if it was found.
    /// Only one that records how far the log was flushed counts: older programs may have left a later one of another
    /// log.
    fn is_contradicted(&self, partial: &PartialSegment) -> bool {
        let agrees = |next: &&PartialSegment| {
            let after = self.with_number(next.number() + 1);
            next.durable_up_to().is_some() && (after.is_empty() || after.iter().any(|after| next.is_named_by(after)))
        };
        let mut sure = self.with_number(partial.number() + 1).iter().filter(agrees).peekable();
        sure.peek().is_some() && sure.all(|next| !partial.is_named_by(next))
    }
}

/// The highest number that was durable, as a log in order shows; 0 if it shows none.
pub(super) fn durable_up_to(log: &[PartialSegment]) -> u64 {
    let told = log.iter().filter_map(PartialSegment::durable_up_to).max();
    // Older volumes do not record it, but flush after each seal as well.
    let last = log.last().map_or(0, PartialSegment::number);
    let sealed = log.iter().filter(|it| it.seals() && it.number() < last).map(PartialSegment::number).max();
    told.into_iter().chain(sealed).max().unwrap_or(0)
}
