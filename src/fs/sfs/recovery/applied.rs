//! State collected while a log is applied.

use super::finding::{Finding, Structure};
use super::lost_parts::AfterGap;
use crate::fs::sfs::media::format::BLOCK;
use std::collections::BTreeSet;
use std::ops::Range;

/// What was applied of a log, and what is unknown of it.
pub(super) struct Applied {
    /// Up to this partial segment nothing can depend on what is lost; `u64::MAX` if nothing is.
    pub exact_up_to: u64,
    pub after_gap: AfterGap,
    /// Virtual blocks at places where there was none.
    pub filled: BTreeSet<u64>,
    /// Blocks, by inode and place, whose newest bytes were not applied: the version that they changed is lost.
    pub missed: BTreeSet<(u64, u64)>,
}

impl Applied {
    /// Nothing yet, of a log without the partial segments `lost`.
    pub fn nothing(exact_up_to: u64, lost: Vec<u64>) -> Applied {
        let after_gap = AfterGap::without(lost);
        Applied { exact_up_to, after_gap, filled: BTreeSet::new(), missed: BTreeSet::new() }
    }

    /// A partial segment holds a block, or bytes of it.
    pub fn writes(&mut self, inode: u64, place: u64, partial: u64) {
        if self.exact_up_to != u64::MAX {
            self.after_gap.writes(inode, place, partial);
        }
    }

    /// Blocks of a file are freed.
    pub fn frees(&mut self, inode: u64, places: &Range<u64>) {
        self.missed.retain(|(of, place)| *of != inode || !places.contains(place));
    }

    /// Reports blocks whose synced bytes could not be applied.
    pub fn report_missed(&self, damage: &mut Vec<Finding>) {
        for (inode, place) in &self.missed {
            let where_ = format!("block {place} of inode {inode}");
            let found = "the log has new bytes of it, and the version that they changed is lost";
            let repair = "they are left out: an older version is read, if one is whole";
            let finding = Finding::new(Structure::Data, where_, found, "what was synced", repair);
            damage.push(finding.of(*inode).at(place * BLOCK as u64));
        }
    }
}
