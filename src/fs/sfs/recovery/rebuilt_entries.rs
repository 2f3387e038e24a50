//! DAT entries that were rebuilt from the log, as their pages were lost.

use crate::fs::sfs::media::format::DAT_ENTRIES;
use std::collections::{BTreeMap, BTreeSet};

/// DAT entries rebuilt from the log. Each counts only if the file that its block record names has it mapped at that
/// place: the number may have been given to another file since.
#[derive(Clone, Default)]
pub(super) struct RebuiltEntries {
    /// Pages of the DAT that were lost.
    pages: BTreeSet<u64>,
    /// The inode and the place of each entry's block record.
    owners: BTreeMap<u64, (u64, u64)>,
}

impl RebuiltEntries {
    /// None yet, of these pages.
    pub fn of_pages(pages: &[usize]) -> RebuiltEntries {
        RebuiltEntries { pages: pages.iter().map(|page| *page as u64).collect(), owners: BTreeMap::new() }
    }

    /// An entry was rebuilt from the record of a block of this inode at this place.
    pub fn add(&mut self, number: u64, owner: (u64, u64)) {
        self.owners.insert(number, owner);
    }

    /// True if an entry can be that of a block of this inode at this place, as far as the log shows.
    pub fn can_be_of(&self, number: u64, owner: (u64, u64)) -> bool {
        self.owners.get(&number).is_none_or(|its| *its == owner)
    }

    /// True if the page of an entry was lost.
    pub fn is_of_lost_page(&self, number: u64) -> bool {
        self.pages.contains(&(number / DAT_ENTRIES))
    }

    /// An entry is made anew for whoever names it.
    pub fn forget(&mut self, number: u64) {
        self.owners.remove(&number);
    }
}
