//! Sums of a survey: addresses that two blocks have, entries that nothing names, usage of segments, counts of the
//! volume.

use super::super::finding::{Finding, Structure};
use super::super::recount;
use super::faults::{Mend, Stage};
use super::{Survey, Surveyor};
use crate::fs::sfs::error::SfsError;
use crate::fs::sfs::log::LogReader;
use crate::fs::sfs::media::format::{DIRTY, Kind};
use crate::fs::sfs::metadata::paged::check_address;
use std::collections::BTreeMap;

impl Surveyor<'_> {
    /// Of virtual blocks that lie at one address, the one that the block record names keeps it; the others are given
    /// up.
    pub(super) fn survey_shared(&mut self, survey: &mut Survey) -> Result<(), SfsError> {
        let shared = std::mem::take(&mut survey.shared);
        if shared.is_empty() {
            return Ok(());
        }
        let segment_blocks = u64::from(self.files.media.segment_blocks());
        let mut owners: BTreeMap<u64, u64> = BTreeMap::new();
        for address in &shared {
            let segment = (address / segment_blocks) as u32;
            let reader = LogReader::new(self.task, &self.files.media, self.identity);
            let contents = reader.contents(segment, self.log.contents_of(segment))?;
            let its = contents.iter().find(|(block, _)| u64::from(*block) == address % segment_blocks);
            owners.extend(its.map(|(_, record)| (*address, record.number.get())));
        }
        for number in 1..self.files.metadata.dat.len() {
            let Ok(entry) = self.files.metadata.dat.get(self.task, number) else { continue };
            let address = entry.address.get();
            if entry.is_taken != 1 || !shared.contains(&address) || owners.get(&address) == Some(&number) {
                continue;
            }
            let place = format!("virtual block {number}");
            let found = format!("it is said to lie at block {address} of the log, where another does");
            let repair = "it is given up: reading it fails until it is written anew";
            survey.fault(
                Stage::Blocks,
                Finding::new(Structure::Dat, place, found, "a place of its own", repair),
                Mend::GiveUp(number),
            );
        }
        Ok(())
    }

    /// DAT entries that are taken, and that nothing names.
    pub(super) fn survey_entries(&mut self, survey: &mut Survey) -> Result<(), SfsError> {
        for number in 1..self.files.metadata.dat.len() {
            let Ok(entry) = self.files.metadata.dat.get(self.task, number) else { continue };
            if entry.is_taken != 1 || survey.claimed.has(number) {
                continue;
            }
            survey.unclaimed.push(number);
            let address = entry.address.get();
            if address & DIRTY == 0 && check_address(&self.files.media, "DAT", address).is_ok() {
                // Usage was counted when it was written, as what it was then: metadata has no history.
                let kind = if entry.writes.get() > 0 { Kind::Data } else { Kind::Metadata };
                survey.gain(address, self.files.media.segment_blocks(), kind, &entry);
            }
        }
        if let (Some(first), Some(last)) = (survey.unclaimed.first(), survey.unclaimed.last()) {
            let place = format!("{} virtual blocks from {first} to {last}", survey.unclaimed.len());
            let found = "they are taken, and nothing names them";
            let finding = Finding::new(Structure::Dat, place, found, "free, if all maps are whole", "they are freed");
            survey.fault(Stage::Leaks, finding, Mend::Free(survey.unclaimed.clone()));
        }
        Ok(())
    }

    /// Checks the usage of each segment against its live blocks.
    pub(super) fn survey_usage(&mut self, survey: &mut Survey) {
        for segment in 0..self.files.segments.count() {
            let (stored, live) = (*self.files.segments.get(segment), survey.live[segment as usize]);
            if (stored.live, stored.writes, stored.modified) == (live.blocks, live.writes, live.modified) {
                continue;
            }
            let sums = |live: u32, writes: u64, modified: u64| {
                format!("{live} live blocks with {writes} writes, and {modified} as the sum of when")
            };
            let finding = Finding::new(
                Structure::Usage,
                format!("the usage of segment {segment}"),
                sums(stored.live, stored.writes, stored.modified),
                sums(live.blocks, live.writes, live.modified),
                "it is put right",
            );
            survey.fault(Stage::Sums, finding, Mend::SetUsage(segment));
        }
    }

    /// Checks the counts of the volume.
    pub(super) fn survey_counts(&mut self, survey: &mut Survey) -> Result<(), SfsError> {
        let mut total = 0;
        for page in 0..self.files.metadata.dat.pages() {
            let Ok((stored, counted, used)) = self.files.metadata.dat.count_page(self.task, page) else { continue };
            total += used;
            if stored != u32::from(counted) {
                let place = format!("page {page} of the DAT");
                let found = format!("{stored} entries are said to be taken");
                let finding =
                    Finding::new(Structure::Count, place, found, format!("{counted}"), "the number is put right");
                survey.fault(Stage::Sums, finding, Mend::CountPage { page, counted });
            }
        }
        if total != self.files.metadata.dat.used() {
            let found = format!("{} virtual blocks are said to be in use", self.files.metadata.dat.used());
            let finding =
                Finding::new(Structure::Count, "the superblock", found, format!("{total}"), "the number is put right");
            survey.fault(Stage::Sums, finding, Mend::CountUsed(total));
        }
        self.survey_inode_counts(survey);
        Ok(())
    }

    /// Checks the bits of inodes in use against the inodes.
    fn survey_inode_counts(&mut self, survey: &mut Survey) {
        let mut total = 0;
        for page in 0..self.files.metadata.inode_file.pages() {
            let Ok(counted) = recount::inodes_in_use(self.task, self.files, page) else { continue };
            let stored = self.files.metadata.inode_file.taken(page);
            total += u64::from(counted.count_ones());
            if stored != counted {
                let place = format!("page {page} of the inode file");
                let (found, expected) =
                    (format!("inodes {stored:016b} are said to be in use"), format!("{counted:016b}"));
                let finding = Finding::new(Structure::Count, place, found, expected, "they are counted anew");
                survey.fault(Stage::Sums, finding, Mend::CountInodes);
            }
        }
        // Number 0 stands for none.
        let used = total.saturating_sub(1 + self.files.metadata.inode_file.freed().count() as u64);
        if used != self.files.metadata.inode_file.used() {
            let found = format!("{} inodes are said to be in use", self.files.metadata.inode_file.used());
            let finding =
                Finding::new(Structure::Count, "the inode file", found, format!("{used}"), "they are counted anew");
            survey.fault(Stage::Sums, finding, Mend::CountInodes);
        }
    }
}
