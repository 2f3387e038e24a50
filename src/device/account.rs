//! What a device counts, for the ledger.

use super::Warnings;
use crate::label::Tally;

/// What a station has counted since it was opened, and what is below it. Counts of blocks are in 4 KiB; those of a drive
/// that is all of a path, and of its flash, are in the flash's pages.
///
/// What a station sent is what those below it received, for each cause and content; a run whose accounts break that
/// fails.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// The station's name in a path.
    pub station: &'static str,
    /// Blocks that were written to it.
    pub received: Tally,
    /// Blocks that it wrote to those below; for media, blocks that it stored. Whoever copies says what it copied.
    pub sent: Tally,
    /// Blocks that were read from it.
    pub read_blocks: u64,
    /// What else it did, by name: zones reclaimed, copies interrupted.
    pub events: Vec<(&'static str, u64)>,
    /// What its user should know.
    pub warnings: Warnings,
    /// Its flash, if it has some.
    pub flash: Option<FlashAccount>,
    /// Of a drive that is all of a path: what only it can tell of itself.
    pub drive: Option<DriveAccount>,
    /// The stations below it.
    pub below: Vec<Account>,
}

impl Account {
    /// What this station and those below it warn of, as lines that begin with the station's name.
    pub fn all_warnings(&self) -> Vec<String> {
        let own = self.warnings.iter().map(|warning| format!("{}: {}", self.station, warning.what));
        own.chain(self.below.iter().flat_map(Account::all_warnings)).collect()
    }

    /// What has been counted since `earlier`, an older account of the same station. A warning holds whenever it was given.
    pub fn since(&self, earlier: &Account) -> Account {
        let events = self.events.iter().zip(&earlier.events).map(|((name, now), (_, then))| (*name, now - then));
        let flash = match (&self.flash, &earlier.flash) {
            (Some(now), Some(then)) => Some(FlashAccount {
                programmed_pages: now.programmed_pages - then.programmed_pages,
                read_pages: now.read_pages - then.read_pages,
                erased_blocks: now.erased_blocks - then.erased_blocks,
                ..now.clone()
            }),
            _ => None,
        };
        Account {
            station: self.station,
            received: self.received.since(&earlier.received),
            sent: self.sent.since(&earlier.sent),
            read_blocks: self.read_blocks - earlier.read_blocks,
            events: events.collect(),
            warnings: self.warnings.clone(),
            flash,
            drive: self.drive.as_ref().zip(earlier.drive.as_ref()).map(|(now, then)| DriveAccount {
                mapping_reads: now.mapping_reads - then.mapping_reads,
                ..now.clone()
            }),
            below: self.below.iter().zip(&earlier.below).map(|(now, then)| now.since(then)).collect(),
        }
    }
}

/// A drive that is all of a path: a translation layer alone on its flash.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DriveAccount {
    /// Bytes of a page, in which it and its flash count.
    pub page_bytes: u64,
    /// Pages of flash that were read for what they say of the mapping.
    pub mapping_reads: u64,
    /// Spare pages over exported pages, as collection finds them.
    pub effective_overprovisioning: f64,
    /// Bytes of mapping that a real drive would hold in RAM.
    pub mapping_ram_bytes: u64,
    /// Pages that were erased without having been programmed, since the drive was new.
    pub erased_unprogrammed: u64,
    /// Pages that are programmed now.
    pub programmed_now: u64,
}

/// The flash of a drive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlashAccount {
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Pages of an erase block.
    pub pages_per_block: u64,
    /// Pages programmed.
    pub programmed_pages: u64,
    /// Pages read.
    pub read_pages: u64,
    /// Blocks erased.
    pub erased_blocks: u64,
    /// Erase counts since the drive was new: of each erase block or, where zones are erased whole, of each zone.
    pub erase_counts: Vec<u32>,
    /// Erases a block stands.
    pub endurance: u32,
    /// Bytes of all pages.
    pub raw_bytes: u64,
}
