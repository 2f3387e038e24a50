//! Loading the metadata files of a checkpoint of which parts are damaged: what cannot be read is rebuilt from the
//! newest records of the log, counted anew, or lost.

use super::finding::{Finding, Structure};
use super::load::Loading;
use super::newest_records::{NewestRecord, NewestRecords};
use super::rebuilt_entries::RebuiltEntries;
use super::recount;
use super::roots;
use super::roots::name_of;
use crate::fs::sfs::error::SfsError;
use crate::fs::sfs::log::segments::Segments;
use crate::fs::sfs::media::format::usage_pages;
use crate::fs::sfs::media::format::{DAT_ENTRIES, DatEntry, INODES_VERSION, Kind, NO_GROUP, Root, Superblock};
use crate::fs::sfs::media::invariants;
use crate::fs::sfs::metadata::dat::Dat;
use crate::fs::sfs::metadata::inode_file::InodeFile;
use crate::fs::sfs::metadata::paged::{FANOUT, LEVEL_SHIFT, LostBlock, PagedFile, name_of_block};

/// The parts of a checkpoint that could not be read.
#[derive(Default)]
pub(super) struct Loss {
    pub findings: Vec<Finding>,
    /// Pages of the DAT and of the inode file that nothing replaces.
    pub pages: usize,
    /// Pages of the inode file that are lost.
    pub inode_pages: Vec<usize>,
    /// DAT entries that were rebuilt from the log.
    pub rebuilt: RebuiltEntries,
}

impl Loading<'_> {
    /// Loads the usage file. Entries that are lost are counted anew.
    pub(super) fn load_usage(&mut self, root: &Root, loss: &mut Loss) {
        let pages = usage_pages(self.files.segments.count());
        let name = "usage file";
        let mut lose = |number: u64, error: &str| {
            let repair = "what lives in each segment is counted anew";
            let place = name_of_block(name, number);
            loss.findings.push(Finding::new(Structure::UsageFile, place, error, "what was written", repair));
        };
        let opened = PagedFile::open_in_part(self.task, name, root, &self.files.media, &mut |_| None);
        let (mut file, lost) = match opened {
            Ok((file, lost)) if file.len() == pages => (file, lost),
            Ok((file, _)) => {
                lose(0, &format!("there are {} pages for {} segments", file.len(), self.files.segments.count()));
                (PagedFile::new(name, &self.files.media), Vec::new())
            }
            Err(error) => {
                lose(0, &error.to_string());
                (PagedFile::new(name, &self.files.media), Vec::new())
            }
        };
        file.grow(pages);
        let mut gone: Vec<u64> = lost.iter().map(|lost| lost.address).collect();
        lost.iter().for_each(|lost| lose(lost.number, &lost.why.to_string()));
        for LostBlock { number, address, why } in file.damaged(self.task) {
            if number >> LEVEL_SHIFT == 0 {
                lose(number, &why.to_string());
                file.zero_page(number as usize);
                gone.push(address);
            }
        }
        for segment in 0..self.files.segments.count() {
            if let Ok(page) = file.page(self.task, Segments::page_of(segment)) {
                let holds =
                    invariants::usage_entry(&Segments::entry(segment, page), self.superblock.segment_blocks.get());
                if let Err(why) = holds {
                    let (place, repair) = (format!("the usage of segment {segment}"), "it is counted anew");
                    loss.findings.push(Finding::new(Structure::UsageFile, place, why, "what can be", repair));
                }
                self.files.segments.load(segment, page);
            }
        }
        self.files.segments.loaded();
        self.files.metadata.usage_file = file;
        gone.into_iter().for_each(|address| self.uncount(address));
    }

    /// A block of a metadata file is given up: usage no longer counts it as live.
    fn uncount(&mut self, address: u64) {
        let segment = address / u64::from(self.files.media.segment_blocks());
        if segment < u64::from(self.files.segments.count()) {
            self.files.segments.lose(segment as u32, Kind::Dat, 0, 0);
        }
    }

    /// Loads one of the two metadata files that cannot be counted anew. Answers it and its lost pages; each damaged
    /// block is a finding.
    fn load_file(
        &mut self,
        kind: Kind,
        root: &Root,
        newest: &mut Option<NewestRecords>,
        loss: &mut Loss,
    ) -> Result<(PagedFile, Vec<usize>), SfsError> {
        let (name, structure) = (name_of(kind), if kind == Kind::Dat { Structure::Dat } else { Structure::InodeFile });
        let (root, wrong_pages) = roots::correct_root(&self.files.media, self.reader(), kind, root);
        loss.findings.extend(wrong_pages);
        let root = &root;
        let opened = PagedFile::open_in_part(self.task, name, root, &self.files.media, &mut |_| None);
        let (mut file, mut lost) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                let place = format!("the root of the {name}");
                let finding = Finding::new(structure, place, error.to_string(), "a root", "it is made anew, empty");
                loss.findings.push(finding);
                loss.pages += 1;
                return Ok((PagedFile::new(name, &self.files.media), Vec::new()));
            }
        };
        if !lost.is_empty() {
            let records = NewestRecords::once(newest, self.reader(), self.superblock.next_partial.get());
            let mut find = |number| records.pointer(kind, number);
            (file, lost) = PagedFile::open_in_part(self.task, name, root, &self.files.media, &mut find)?;
        }
        let mut gone = Vec::new();
        for LostBlock { number, address, why } in &lost {
            self.uncount(*address);
            let (level, block) = ((number >> LEVEL_SHIFT) as u32, number & ((1 << LEVEL_SHIFT) - 1));
            let reach = (FANOUT as u64).saturating_pow(level);
            let pages = (block * reach..(block + 1) * reach).take_while(|page| *page < file.len() as u64);
            let records = NewestRecords::once(newest, self.reader(), self.superblock.next_partial.get());
            let before = gone.len();
            match (records.is_whole, kind) {
                (false, _) => gone.extend(pages.map(|page| page as usize)),
                (true, Kind::Dat) => loss.rebuilt.find_pages(pages),
                (true, _) => {}
            }
            let repair = match gone.len() > before {
                true => "the pages below it are lost, as the log has damaged summaries",
                false => "it is rebuilt from the log",
            };
            let place = name_of_block(name, *number);
            loss.findings.push(Finding::new(structure, place, why.to_string(), "what was written", repair));
        }
        for LostBlock { number, address, why } in file.damaged(self.task) {
            if number >> LEVEL_SHIFT == 0 {
                self.uncount(address);
                gone.push(number as usize);
                let repair = match kind {
                    Kind::Dat => "its entries are rebuilt from the log; those that are not in it are given up",
                    _ => "its sixteen inodes are lost",
                };
                let place = name_of_block(name, number);
                loss.findings.push(Finding::new(structure, place, why.to_string(), "what was written", repair));
            }
        }
        gone.sort_unstable();
        gone.dedup();
        Ok((file, gone))
    }

    /// Loads the DAT. Entries of lost pages are rebuilt from the log.
    pub(super) fn load_dat(
        &mut self,
        superblock: &Superblock,
        newest: &mut Option<NewestRecords>,
        loss: &mut Loss,
    ) -> Result<(), SfsError> {
        let before = loss.findings.len();
        let (file, gone) = self.load_file(Kind::Dat, &superblock.dat, newest, loss)?;
        let is_whole = loss.findings.len() == before;
        self.files.metadata.dat = Dat::of_file(file, superblock.used_blocks.get());
        for page in &gone {
            self.files.metadata.dat.lose_page(*page);
        }
        self.correct_entries(&gone, loss)?;
        if is_whole && loss.findings.len() == before {
            return Ok(());
        }
        if gone.is_empty() {
            // Entries were put right, or the tree was made anew: what it says of the taken entries of each page is
            // void.
            return recount::dat(self.task, &mut self.files.metadata.dat);
        }
        let records = NewestRecords::once(newest, self.reader(), self.superblock.next_partial.get());
        let first = |page: &usize| *page as u64 * DAT_ENTRIES;
        if !records.is_whole {
            loss.pages += gone.len();
        } else {
            loss.rebuilt.lose_pages(&gone);
            let numbers = gone.iter().flat_map(|page| first(page)..first(page) + DAT_ENTRIES);
            let found: Vec<(u64, NewestRecord)> =
                numbers.filter_map(|number| Some((number, records.of_virtual_block(number)?))).collect();
            for (number, NewestRecord { address, tick, record, .. }) in found {
                let entry = DatEntry {
                    address: address.into(),
                    writes: u64::from(record.kind == Kind::Data as u8).into(),
                    modified: tick.into(),
                    crc: record.crc,
                    group: record.group,
                    is_taken: 1,
                    ..DatEntry::default()
                };
                self.files.metadata.dat.set(self.task, number, &entry)?;
                let owner = (record.inode.get(), record.place.get());
                loss.rebuilt.add(number, owner, address, !record.is_counted());
            }
        }
        recount::dat(self.task, &mut self.files.metadata.dat)?;
        for page in &gone {
            self.files.metadata.dat.withhold(self.task, first(page)..first(page) + DAT_ENTRIES)?;
        }
        recount::dat(self.task, &mut self.files.metadata.dat)
    }

    /// Corrects entries of the DAT with fields that cannot be right, before the log changes them: a mount refuses their
    /// pages, whatever the log has.
    fn correct_entries(&mut self, gone: &[usize], loss: &mut Loss) -> Result<(), SfsError> {
        let blocks = self.files.media.log_blocks();
        if self.files.metadata.dat.pages() > 0
            && let Ok(entry) = self.files.metadata.dat.entry_zero(self.task)
            && let Err(why) = invariants::entry_zero(&entry)
        {
            self.files.metadata.dat.reset_entry_zero(self.task)?;
            if !gone.contains(&0) {
                let place = "virtual block 0".to_string();
                loss.findings.push(Finding::new(Structure::Dat, place, why, "none", "it is put right"));
            }
        }
        for number in 1..self.files.metadata.dat.len() {
            let Ok(entry) = self.files.metadata.dat.get(self.task, number) else { continue };
            let Err(why) = invariants::dat_entry(&entry, blocks) else { continue };
            self.files.metadata.dat.set(self.task, number, &corrected(&entry, blocks))?;
            let place = format!("virtual block {number}");
            loss.findings.push(Finding::new(Structure::Dat, place, why, "an entry that can be", "it is put right"));
        }
        Ok(())
    }

    /// Loads the inode file. Inodes of lost pages are lost.
    pub(super) fn load_inodes(
        &mut self,
        superblock: &Superblock,
        newest: &mut Option<NewestRecords>,
        loss: &mut Loss,
    ) -> Result<(), SfsError> {
        let findings = loss.findings.len();
        let (mut file, gone) = self.load_file(Kind::InodeFile, &superblock.inode_file, newest, loss)?;
        gone.iter().for_each(|page| file.zero_page(*page));
        loss.pages += gone.len();
        loss.inode_pages = gone;
        let count = superblock.inodes.get();
        self.files.metadata.inode_file = InodeFile::of_file(file, superblock.used_inodes.get());
        let is_old = superblock.version.get() < INODES_VERSION;
        if is_old || loss.findings.len() > findings {
            recount::inodes(self.task, self.files)?;
        }
        let expected = self.files.metadata.inode_file.count();
        if count > expected || count < expected && !is_old {
            let found = format!("there are {count} inodes in {} pages", self.files.metadata.inode_file.pages());
            let place = "the superblock's inode file";
            let repair = "the number is put right";
            loss.findings.push(Finding::new(Structure::Count, place, found, expected.to_string(), repair));
        }
        Ok(())
    }
}

/// An entry as it can be, in place of one with fields that cannot be right. It is taken, whatever it says: a map may
/// name it, and one that nothing names is freed by the survey. A block that lies nowhere is lost, unless all else says
/// that it was reserved and never written.
fn corrected(entry: &DatEntry, blocks: u64) -> DatEntry {
    let taken = DatEntry { group: NO_GROUP, is_taken: 1, ..DatEntry::default() };
    let address = entry.address.get();
    if address != 0 && address < blocks {
        return DatEntry { address: address.into(), crc: entry.crc, is_lost: entry.is_lost.min(1), ..taken };
    }
    let is_reserved = entry.is_taken == 1 && (address, entry.crc.get(), entry.is_lost) == (0, 0, 0);
    DatEntry { is_lost: u8::from(!is_reserved), ..taken }
}
