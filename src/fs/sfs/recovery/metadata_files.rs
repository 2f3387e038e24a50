//! The metadata files of a checkpoint of which parts are damaged: what can be read of them, and what is made of what
//! the log says.

use super::finding::{Finding, Structure};
use super::newest_records::{Log, Told};
use crate::fs::sfs::Sfs;
use crate::fs::sfs::dat::Dat;
use crate::fs::sfs::error::SfsError;
use crate::fs::sfs::format::{DAT_ENTRIES, DatEntry, Kind, NO_GROUP, Root, Superblock, VERSION};
use crate::fs::sfs::inode_file::{INODES, InodeFile};
use crate::fs::sfs::invariants;
use crate::fs::sfs::paged::{FANOUT, LEVEL_SHIFT, LostBlock, PagedFile, name_of_block};
use crate::fs::sfs::segments::Segments;
use crate::task::Task;
use std::collections::{BTreeMap, BTreeSet};

/// What of the DAT was lost, and made of what the log says.
#[derive(Default)]
pub(in crate::fs::sfs) struct Salvaged {
    /// Pages.
    pages: BTreeSet<u64>,
    /// Whose each entry must then be: an inode, and a place in it.
    owners: BTreeMap<u64, (u64, u64)>,
}

impl Salvaged {
    /// Whether an entry can be this one's, as far as the log tells.
    pub fn allows(&self, number: u64, owner: (u64, u64)) -> bool {
        self.owners.get(&number).is_none_or(|its| *its == owner)
    }

    /// Whether the page of an entry was lost.
    pub fn holds(&self, number: u64) -> bool {
        self.pages.contains(&(number / DAT_ENTRIES))
    }

    /// An entry is made anew for whoever names it.
    pub fn forget(&mut self, number: u64) {
        self.owners.remove(&number);
    }
}

/// What could not be read of a checkpoint.
#[derive(Default)]
pub(super) struct Loss {
    pub findings: Vec<Finding>,
    /// Pages of the DAT and of the inode file that nothing stands for.
    pub pages: usize,
    /// Pages of the inode file that are lost.
    pub inode_pages: Vec<usize>,
}

impl Sfs {
    /// The usage file: what it has lost is counted anew.
    pub(super) fn load_usage(&mut self, task: &Task<'_>, root: &Root, loss: &mut Loss) {
        let pages = Segments::pages(self.segments.count());
        let name = "usage file";
        let mut lose = |number: u64, error: &str| {
            let repair = "what lives in each segment is counted anew";
            let place = name_of_block(name, number);
            loss.findings.push(Finding::new(Structure::UsageFile, place, error, "what was written", repair));
        };
        let opened = PagedFile::open_in_part(task, name, root, &self.media, &mut |_| None);
        let (mut file, lost) = match opened {
            Ok((file, lost)) if file.len() == pages => (file, lost),
            Ok((file, _)) => {
                lose(0, &format!("there are {} pages for {} segments", file.len(), self.segments.count()));
                (PagedFile::new(name, &self.media), Vec::new())
            }
            Err(error) => {
                lose(0, &error.to_string());
                (PagedFile::new(name, &self.media), Vec::new())
            }
        };
        file.grow(pages);
        let mut gone: Vec<u64> = lost.iter().map(|lost| lost.address).collect();
        lost.iter().for_each(|lost| lose(lost.number, &lost.why.to_string()));
        for LostBlock { number, address, why } in file.damaged(task) {
            if number >> LEVEL_SHIFT == 0 {
                lose(number, &why.to_string());
                file.zero_page(number as usize);
                gone.push(address);
            }
        }
        for segment in 0..self.segments.count() {
            if let Ok(page) = file.page(task, Segments::page_of(segment)) {
                let holds =
                    invariants::usage_entry(&Segments::entry(segment, page), self.superblock.segment_blocks.get());
                if let Err(why) = holds {
                    let (place, repair) = (format!("the usage of segment {segment}"), "it is counted anew");
                    loss.findings.push(Finding::new(Structure::UsageFile, place, why, "what can be", repair));
                }
                self.segments.load(segment, page);
            }
        }
        self.segments.loaded();
        self.usage_file = file;
        gone.into_iter().for_each(|address| self.lives_no_more(address));
    }

    /// A block of a metadata file is given up: it is no longer one of those that usage counts.
    fn lives_no_more(&mut self, address: u64) {
        let segment = address / u64::from(self.media.segment_blocks());
        if segment < u64::from(self.segments.count()) {
            self.segments.lose(segment as u32, Kind::Dat, 0, 0);
        }
    }

    /// One of the two metadata files that cannot be counted anew. Answers it, its lost pages, and findings for all that
    /// was damaged.
    fn load_file(
        &mut self,
        task: &Task<'_>,
        kind: Kind,
        root: &Root,
        log: &mut Option<Log>,
        loss: &mut Loss,
    ) -> Result<(PagedFile, Vec<usize>), SfsError> {
        let (name, structure) = match kind {
            Kind::Dat => ("DAT", Structure::Dat),
            _ => ("inode file", Structure::InodeFile),
        };
        let opened = PagedFile::open_in_part(task, name, root, &self.media, &mut |_| None);
        let (mut file, mut lost) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                let place = format!("the root of the {name}");
                let finding = Finding::new(structure, place, error.to_string(), "a root", "it is made anew, empty");
                loss.findings.push(finding);
                loss.pages += 1;
                return Ok((PagedFile::new(name, &self.media), Vec::new()));
            }
        };
        if !lost.is_empty() {
            let said = self.said(task, log)?;
            let mut find = |number| said.pointer(kind, number);
            (file, lost) = PagedFile::open_in_part(task, name, root, &self.media, &mut find)?;
        }
        let mut gone = Vec::new();
        for LostBlock { number, address, why } in &lost {
            self.lives_no_more(*address);
            let (level, block) = ((number >> LEVEL_SHIFT) as u32, number & ((1 << LEVEL_SHIFT) - 1));
            let reach = (FANOUT as u64).saturating_pow(level);
            let pages = (block * reach..(block + 1) * reach).take_while(|page| *page < file.len() as u64);
            let said = self.said(task, log)?;
            let before = gone.len();
            if !said.is_whole {
                gone.extend(pages.map(|page| page as usize));
            }
            let repair = match gone.len() > before {
                true => "what it leads to is lost, as the log has damaged summaries",
                false => "it is made of what the log says",
            };
            let place = name_of_block(name, *number);
            loss.findings.push(Finding::new(structure, place, why.to_string(), "what was written", repair));
        }
        for LostBlock { number, address, why } in file.damaged(task) {
            if number >> LEVEL_SHIFT == 0 {
                self.lives_no_more(address);
                gone.push(number as usize);
                let repair = match kind {
                    Kind::Dat => "its entries are made of what the log says; what it says nothing of is given up",
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

    /// The DAT: entries of lost pages are made of what the log says.
    pub(super) fn load_dat(
        &mut self,
        task: &Task<'_>,
        superblock: &Superblock,
        log: &mut Option<Log>,
        loss: &mut Loss,
    ) -> Result<(), SfsError> {
        let before = loss.findings.len();
        let (file, gone) = self.load_file(task, Kind::Dat, &superblock.dat, log, loss)?;
        let is_whole = loss.findings.len() == before;
        self.dat = Dat::of_file(file, superblock.used_blocks.get());
        for page in &gone {
            self.dat.lose_page(*page);
        }
        self.put_right_entries(task, &gone, loss)?;
        if is_whole && loss.findings.len() == before {
            return Ok(());
        }
        if gone.is_empty() {
            // Entries were put right, or the tree was made anew: what it says of the taken entries of each page is void.
            return self.recount_dat(task);
        }
        let said = self.said(task, log)?;
        let first = |page: &usize| *page as u64 * DAT_ENTRIES;
        if !said.is_whole {
            loss.pages += gone.len();
        } else {
            self.salvaged.pages = gone.iter().map(|page| *page as u64).collect();
            let numbers = gone.iter().flat_map(|page| first(page)..first(page) + DAT_ENTRIES);
            let told: Vec<(u64, Told)> =
                numbers.filter_map(|number| Some((number, *said.blocks.get(&(Kind::Data as u8, number))?))).collect();
            for (number, told) in told {
                let entry = DatEntry {
                    address: told.address.into(),
                    writes: u64::from(told.record.kind == Kind::Data as u8).into(),
                    modified: told.tick.into(),
                    crc: told.record.crc,
                    group: told.record.group,
                    is_taken: 1,
                    ..DatEntry::default()
                };
                self.dat.set(task, number, &entry)?;
                self.salvaged.owners.insert(number, (told.record.inode.get(), told.record.place.get()));
            }
        }
        self.recount_dat(task)?;
        for page in &gone {
            self.dat.withhold(task, first(page)..first(page) + DAT_ENTRIES)?;
        }
        self.recount_dat(task)
    }

    /// Entries of the DAT with fields that cannot be. Where one lies, the survey looks at.
    fn put_right_entries(&mut self, task: &Task<'_>, gone: &[usize], loss: &mut Loss) -> Result<(), SfsError> {
        let blocks = self.log_blocks();
        if self.dat.pages() > 0
            && let Ok(entry) = self.dat.entry_of_none(task)
            && let Err(why) = invariants::entry_of_none(&entry)
        {
            self.dat.set_entry_of_none(task)?;
            if !gone.contains(&0) {
                let place = "virtual block 0".to_string();
                loss.findings.push(Finding::new(Structure::Dat, place, why, "none", "it is put right"));
            }
        }
        for number in 1..self.dat.len() {
            let Ok(entry) = self.dat.get(task, number) else { continue };
            let lies_somewhere = DatEntry { address: entry.address.get().min(blocks - 1).into(), ..entry };
            let Err(why) = invariants::dat_entry(&lies_somewhere, blocks) else { continue };
            // One with a checksum was written: where, nobody knows.
            let is_nowhere = entry.address.get() == 0;
            let is_lost = if is_nowhere && entry.crc.get() != 0 { 1 } else { entry.is_lost.min(1) };
            let right = match entry.is_taken {
                1 => DatEntry {
                    address: entry.address,
                    crc: if is_nowhere { 0.into() } else { entry.crc },
                    group: NO_GROUP,
                    is_taken: 1,
                    is_lost,
                    ..DatEntry::default()
                },
                _ => DatEntry { group: NO_GROUP, ..DatEntry::default() },
            };
            self.dat.set(task, number, &right)?;
            self.dat.withhold(task, number..number + 1)?;
            let place = format!("virtual block {number}");
            loss.findings.push(Finding::new(Structure::Dat, place, why, "an entry that can be", "it is put right"));
        }
        Ok(())
    }

    /// The inode file: inodes of lost pages are lost.
    pub(super) fn load_inodes(
        &mut self,
        task: &Task<'_>,
        superblock: &Superblock,
        log: &mut Option<Log>,
        loss: &mut Loss,
    ) -> Result<(), SfsError> {
        let findings = loss.findings.len();
        let (mut file, gone) = self.load_file(task, Kind::InodeFile, &superblock.inode_file, log, loss)?;
        gone.iter().for_each(|page| file.zero_page(*page));
        loss.pages += gone.len();
        loss.inode_pages = gone;
        let count = superblock.inodes.get();
        self.inode_file = InodeFile::of_file(file, superblock.used_inodes.get());
        let is_old = superblock.version.get() < VERSION;
        if is_old || loss.findings.len() > findings {
            self.recount_inodes(task)?;
        }
        let expected = self.inode_file.count();
        if count > expected || count < expected && !is_old {
            let found = format!("there are {count} inodes in {} pages", self.inode_file.pages());
            let place = "the superblock's inode file";
            let repair = "the number is put right";
            loss.findings.push(Finding::new(Structure::Count, place, found, expected.to_string(), repair));
        }
        Ok(())
    }

    /// Which inodes of a page are in use, or were freed since the last checkpoint.
    pub(super) fn inodes_in_use(&mut self, task: &Task<'_>, page: usize) -> Result<u16, SfsError> {
        let first = page as u64 * INODES;
        // Number 0 stands for none.
        let mut taken = u16::from(page == 0);
        for number in first.max(1)..first + INODES {
            let is_held = self.inodes.contains(number) || self.inode_file.is_freed(number);
            if is_held || self.inode_file.get(task, number)?.number.get() != 0 {
                taken |= 1 << (number % INODES);
            }
        }
        Ok(taken)
    }

    /// Counts which inodes are in use.
    pub(super) fn recount_inodes(&mut self, task: &Task<'_>) -> Result<(), SfsError> {
        for page in 0..self.inode_file.pages() {
            let taken = self.inodes_in_use(task, page)?;
            self.inode_file.set_taken(page, taken);
        }
        self.inode_file.count_used();
        Ok(())
    }

    /// Counts what is taken in the DAT.
    pub(super) fn recount_dat(&mut self, task: &Task<'_>) -> Result<(), SfsError> {
        if self.dat.pages() > 0 {
            // Number 0 stands for none, and is never given out.
            if self.dat.entry_of_none(task)?.is_taken != 1 {
                self.dat.set_entry_of_none(task)?;
            }
        }
        let mut total = 0;
        for page in 0..self.dat.pages() {
            let (said, counted, used) = self.dat.count_page(task, page)?;
            total += used;
            if said != u32::from(counted) {
                self.dat.set_counted(page, counted);
            }
        }
        self.dat.set_used(total);
        Ok(())
    }
}
