//! DAT entries that were rebuilt from the log, against the usage of segments.
//!
//! An entry is rebuilt from the newest block record of its virtual block. If the summary that held a newer one was
//! wiped, so that it does not even look like a damaged one, an older version of the block would be read. The usage file
//! counts the live blocks of each segment, and sums up when they were written: where that does not agree with what maps
//! name, the rebuilt entries are dropped.

use super::load::Loading;
use super::rebuilt_entries::RebuiltEntries;
use super::recount;
use super::survey::Survey;
use super::survey::Surveyor;
use crate::fs::sfs::error::SfsError;
use crate::fs::sfs::media::format::DatEntry;
use std::collections::BTreeSet;

impl Loading<'_> {
    /// Drops rebuilt entries of a checkpoint that is loaded and whose usage file is whole. Their numbers are withheld:
    /// the survey gives up what names them.
    ///
    /// # Errors
    ///
    /// If the device fails.
    pub(super) fn drop_doubtful_entries(&mut self, rebuilt: &mut RebuiltEntries) -> Result<(), SfsError> {
        if rebuilt.is_empty() {
            return Ok(());
        }
        let survey = Surveyor::new(self.task, self.files, self.log, self.superblock.identity).survey(false, rebuilt)?;
        let mut named: Vec<(u64, u32)> = Vec::new();
        for number in rebuilt.numbers().filter(|number| survey.claimed.has(*number)) {
            let address = self.files.metadata.dat.get(self.task, number)?.address.get();
            if (1..self.files.media.log_blocks()).contains(&address) {
                named.push((number, self.files.media.segment_of(address)));
            }
        }
        let cleaned = named.iter().filter(|(number, _)| rebuilt.is_cleaned(*number));
        let with_cleaned: BTreeSet<u32> = cleaned.map(|(_, segment)| *segment).collect();
        named.retain(|(_, segment)| self.is_doubtful(&survey, *segment, with_cleaned.contains(segment)));
        if named.is_empty() {
            return Ok(());
        }
        for (number, _) in named {
            rebuilt.forget(number);
            self.files.metadata.dat.set(self.task, number, &DatEntry::default())?;
            self.files.metadata.dat.withhold(self.task, number..number + 1)?;
        }
        recount::dat(self.task, &mut self.files.metadata.dat)
    }

    /// True if usage does not agree with what is named in a segment: fewer blocks live, or more than there are; or as
    /// many, and they were written at other times. The times of cleaned blocks are not known.
    fn is_doubtful(&self, survey: &Survey, segment: u32, has_cleaned: bool) -> bool {
        let usage = self.files.segments.get(segment);
        let (named, all) = (&survey.named_live[segment as usize], &survey.live[segment as usize]);
        let agrees = named.blocks < usage.live || has_cleaned || named.modified == usage.modified;
        !(named.blocks..=all.blocks).contains(&usage.live) || !agrees
    }
}
