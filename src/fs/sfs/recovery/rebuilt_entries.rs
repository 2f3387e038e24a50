//! DAT entries that were rebuilt from the log, as their pages were lost.

use crate::fs::sfs::media::format::DAT_ENTRIES;
use std::collections::{BTreeMap, BTreeSet};

/// DAT entries rebuilt from the log up to the checkpoint. Each counts only if the file that its block record names has
/// it mapped at that place: the number may have been given to another file since.
#[derive(Clone, Default)]
pub(super) struct RebuiltEntries {
    /// Pages of the DAT that were lost.
    pages: BTreeSet<u64>,
    /// The inode and the place of each entry's block record, and the address of the block.
    owners: BTreeMap<u64, ((u64, u64), u64)>,
    /// Entries of blocks that were cleaned: their record does not have the time of their last write.
    cleaned: BTreeSet<u64>,
    /// Pages that were found by their block records: the pointers to them were lost.
    found_pages: BTreeSet<u64>,
}

impl RebuiltEntries {
    /// None yet, of these lost pages.
    pub fn lose_pages(&mut self, pages: &[usize]) {
        self.pages.extend(pages.iter().map(|page| *page as u64));
    }

    /// Pages were found by their block records.
    pub fn find_pages(&mut self, pages: impl Iterator<Item = u64>) {
        self.found_pages.extend(pages);
    }

    /// An entry was rebuilt from the record of a block at this address, of this inode at this place.
    pub fn add(&mut self, number: u64, owner: (u64, u64), address: u64, is_cleaned: bool) {
        self.owners.insert(number, (owner, address));
        if is_cleaned {
            self.cleaned.insert(number);
        }
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.owners.is_empty() && self.found_pages.is_empty()
    }

    /// Entries that were rebuilt, or lie in pages that were found, each once.
    pub fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        let found = self.found_pages.iter().flat_map(|page| page * DAT_ENTRIES..(page + 1) * DAT_ENTRIES);
        self.owners.keys().copied().chain(found.filter(|number| !self.owners.contains_key(number)))
    }

    /// True if the entry is that of a cleaned block.
    pub fn is_cleaned(&self, number: u64) -> bool {
        self.cleaned.contains(&number)
    }

    /// True if an entry with this address can be that of a block of this inode at this place, as far as the log shows.
    /// With another address than that of the rebuilt entry, the log since the checkpoint has changed it.
    pub fn can_be_of(&self, number: u64, owner: (u64, u64), address: u64) -> bool {
        self.owners.get(&number).is_none_or(|its| its.0 == owner || its.1 != address)
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
