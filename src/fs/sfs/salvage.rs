//! Opening a volume of which parts are damaged: as much of the best checkpoint as can be read, and what the log says of the rest.
//!
//! | lost | comes from |
//! |---|---|
//! | one superblock | the other |
//! | a tree block of a metadata file | the newest block records of the pages below it |
//! | a page of the DAT | the newest block record of each virtual block, if it names the file and place that the file's map names, too |
//! | a page of the usage file | counting, which the survey does |
//! | a page of the inode file | nothing |
//! | the root's page, or most pages | an older checkpoint, if that has lost less, and the log since |
//!
//! The log is believed only if none of its summaries is damaged: an older record of a block would bring old bytes back. Of an entry of the
//! DAT that was made so, how often and when the block was written is not known.

use super::check::{Finding, Structure};
use super::dat::{Dat, ENTRIES};
use super::error::{OpenSfsError, SfsError};
use super::format::{
    BLOCK, BlockRecord, DatEntry, Kind, MEMORY, Pointer, Root, SUMMARY_MAGIC, SummaryHeader, Superblock,
};
use super::inode_file::{INODES, InodeFile};
use super::make::{Identity, check_shape};
use super::media::{Media, Medium, superblock_places};
use super::paged::{FANOUT, LEVEL_SHIFT, LostBlock, PagedFile};
use super::segments::Segments;
use super::settings::SfsSettings;
use super::superblocks::{self, AllFound, Found};
use super::survey::{Stage, name_of_block};
use super::{Sfs, Waiting};
use crate::time::Time;
use std::collections::{BTreeMap, BTreeSet};
use zerocopy::{FromBytes, IntoBytes};

/// A volume of which parts may be damaged.
pub(super) struct Opened {
    pub volume: Sfs,
    /// What was found on the way; in memory it is put right already.
    pub findings: Vec<Finding>,
    /// Whether it was unmounted, so that the log goes on where it ended.
    pub is_clean: bool,
}

/// What of the DAT was lost, and made of what the log says.
#[derive(Default)]
pub(super) struct Salvaged {
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
        self.pages.contains(&(number / ENTRIES))
    }

    /// An entry is made anew for whoever names it.
    pub fn forget(&mut self, number: u64) {
        self.owners.remove(&number);
    }
}

/// What could not be read of a checkpoint.
#[derive(Default)]
struct Loss {
    findings: Vec<Finding>,
    /// Pages of the DAT and of the inode file that nothing stands for.
    pages: usize,
    /// Pages of the inode file that are lost.
    inode_pages: Vec<usize>,
}

/// The newest block record of a block.
#[derive(Clone, Copy)]
struct Told {
    sequence: u64,
    tick: u64,
    address: u64,
    record: BlockRecord,
}

/// What the log says of each block, the newest alone.
struct Log {
    blocks: BTreeMap<(u8, u64), Told>,
    /// Whether all its summaries are whole.
    is_whole: bool,
}

impl Log {
    fn pointer(&self, kind: Kind, number: u64) -> Option<Pointer> {
        let told = self.blocks.get(&(kind as u8, number)).filter(|_| self.is_whole)?;
        Some(Pointer { address: told.address.into(), crc: told.record.crc, taken: 0.into() })
    }
}

/// Opens what there is, and brings it forward by its log, in memory.
pub(super) fn open(mut medium: Medium, settings: &SfsSettings, identity: Identity) -> Result<Opened, OpenSfsError> {
    let (found, now) = superblocks::find(&mut medium, Time::ZERO)?;
    let newest = found.newest()?;
    let (segment_blocks, segments) = (newest.superblock.segment_blocks.get(), newest.superblock.segments.get());
    let segment_bytes = u64::from(segment_blocks) * BLOCK as u64;
    if let Some(asked) = settings.segment_bytes.filter(|asked| *asked != segment_bytes) {
        return Err(OpenSfsError::Segment { found: segment_bytes, asked });
    }
    let (expected, there) = (newest.superblock.device_blocks.get(), medium.blocks());
    if there < expected || medium.cut(segment_blocks.max(1)) < (segment_blocks, segments) {
        return Err(OpenSfsError::Shape { expected, found: there });
    }
    let limits = check_shape(settings, segments, segment_blocks, medium.prescribes_segments())?;
    let mut findings = damaged_superblocks(&mut medium, &found, &newest)?;
    let mut media = Media::new(medium, segment_blocks, segments);
    media.go_on_in(newest.turn);
    let mut volume = Sfs::assemble(media, settings, limits, newest.superblock, identity);
    volume.now = now;
    let (chosen, loss) = volume.load_best(&found)?;
    findings.extend(loss.findings);
    let is_clean = chosen.superblock.clean.get() == 1;
    if !is_clean {
        findings.extend(volume.bring_forward(&chosen, &loss.inode_pages)?);
    }
    // No superblock may seem newer than the next.
    volume.superblock.sequence = newest.superblock.sequence;
    Ok(Opened { volume, findings, is_clean })
}

/// The places of superblocks at which there is none that is whole.
fn damaged_superblocks(medium: &mut Medium, found: &AllFound, newest: &Found) -> Result<Vec<Finding>, OpenSfsError> {
    let repair = "it is written anew";
    let expected = format!("a superblock, as at block {}", newest.place);
    let mut findings = Vec::new();
    if medium.prescribes_segments() {
        // What was tried behind the newest that is whole; what lies before it is older.
        for (place, turn, why) in &found.damaged {
            if *turn == newest.turn && *place > newest.place {
                let place = format!("the superblock at block {place}");
                findings.push(Finding::new(Structure::Superblock, place, why.as_str(), &*expected, repair));
            }
        }
        return Ok(findings);
    }
    for place in superblock_places(newest.superblock.segment_blocks.get()) {
        if found.whole.iter().any(|found| found.place == place.0) {
            continue;
        }
        let why = found.damaged.iter().find(|(damaged, ..)| *damaged == place.0);
        let why = why.map_or("there is none", |(.., why)| why.as_str());
        let place = format!("the superblock at block {}", place.0);
        findings.push(Finding::new(Structure::Superblock, place, why, &*expected, repair));
    }
    Ok(findings)
}

impl Sfs {
    /// Loads the newest checkpoint, or an older one if that has lost less.
    fn load_best(&mut self, found: &AllFound) -> Result<(Found, Loss), OpenSfsError> {
        let newest = found.newest()?;
        let loss = self.load_in_part(&newest.superblock)?;
        let roots = |superblock: &Superblock| {
            [superblock.dat, superblock.inode_file].map(|root| (root.top.address.get(), root.top.crc.get()))
        };
        let older = |older: &&Found| roots(&older.superblock) != roots(&newest.superblock);
        // The last changes to all files are given up only for the root, or for most of what there is.
        let pages = self.dat.pages() + self.inode_file.file().len();
        let is_unreadable = loss.inode_pages.contains(&0) || pages == 0 || 2 * loss.pages > pages;
        if !is_unreadable {
            return Ok((newest, loss));
        }
        let mut best = (self.damage(&loss)?, newest);
        for older in found.whole.iter().skip(1).filter(older) {
            let Ok(loss) = self.load_in_part(&older.superblock) else { continue };
            let damage = self.damage(&loss)?;
            if damage < best.0 {
                best = (damage, *older);
            }
        }
        let chosen = best.1;
        let mut loss = self.load_in_part(&chosen.superblock)?;
        if chosen.superblock.sequence != newest.superblock.sequence {
            let sequence = |found: &Found| format!("checkpoint {}", found.superblock.sequence);
            let finding = Finding::new(
                Structure::Superblock,
                sequence(&newest),
                "parts of its metadata cannot be read",
                "all of them",
                format!(
                    "{} takes its place: what changed between the two is lost, but for what was synced",
                    sequence(&chosen)
                ),
            );
            loss.findings.insert(0, finding);
        }
        Ok((chosen, loss))
    }

    /// How much is lost with a checkpoint that is loaded: pages, and then blocks.
    fn damage(&mut self, loss: &Loss) -> Result<(usize, usize), SfsError> {
        let survey = self.survey(true)?;
        let blocks = survey.faults.iter().filter(|fault| fault.stage <= Stage::Directories).count();
        Ok((loss.pages, blocks))
    }

    /// Loads what can be read of a checkpoint. What cannot is made of what the log says, or is empty.
    fn load_in_part(&mut self, superblock: &Superblock) -> Result<Loss, SfsError> {
        self.superblock = *superblock;
        self.inodes.clear();
        self.orphans.clear();
        self.salvaged = Salvaged::default();
        self.metadata = Default::default();
        self.waiting = Waiting::new(self.media.block_width());
        self.segments = Segments::new(self.media.segments(), self.media.segment_blocks());
        self.is_changed = false;
        let mut loss = Loss::default();
        self.load_usage(&superblock.usage_file, &mut loss);
        let mut log = None;
        self.load_dat(superblock, &mut log, &mut loss)?;
        self.load_inodes(superblock, &mut log, &mut loss)?;
        let memories = (superblock.memories.get() as usize).min(MEMORY);
        let memory: Vec<f64> = superblock.memory[..memories].iter().map(|number| number.get()).collect();
        if memory.iter().all(|number| number.is_finite()) {
            self.grouping.remember(&memory);
        }
        self.load_orphans(superblock.first_orphan.get(), &mut loss);
        Ok(loss)
    }

    fn load_usage(&mut self, root: &Root, loss: &mut Loss) {
        let pages = Segments::pages(self.segments.count());
        let name = "usage file";
        let mut lose = |number: u64, error: &str| {
            let repair = "what lives in each segment is counted anew";
            let place = name_of_block(name, number);
            loss.findings.push(Finding::new(Structure::UsageFile, place, error, "what was written", repair));
        };
        let (media, now) = (&mut self.media, &mut self.now);
        let opened = PagedFile::open_in_part(name, root, media, now, &mut |_| None);
        let (mut file, lost) = match opened {
            Ok((file, lost)) if file.len() == pages => (file, lost),
            Ok((file, _)) => {
                lose(0, &format!("there are {} pages for {} segments", file.len(), self.segments.count()));
                (PagedFile::new(name), Vec::new())
            }
            Err(error) => {
                lose(0, &error.to_string());
                (PagedFile::new(name), Vec::new())
            }
        };
        file.grow(pages);
        let mut gone: Vec<u64> = lost.iter().map(|lost| lost.address).collect();
        lost.iter().for_each(|lost| lose(lost.number, &lost.why.to_string()));
        for LostBlock { number, address, why } in file.damaged(media, now) {
            if number >> LEVEL_SHIFT == 0 {
                lose(number, &why.to_string());
                file.lose_page(number as usize);
                gone.push(address);
            }
        }
        for segment in 0..self.segments.count() {
            if let Ok(page) = file.page(Segments::page_of(segment), media, now) {
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

    /// One of the two metadata files that cannot be counted anew. Answers it, its lost pages, and findings for all that was damaged.
    fn load_file(
        &mut self,
        kind: Kind,
        root: &Root,
        log: &mut Option<Log>,
        loss: &mut Loss,
    ) -> Result<(PagedFile, Vec<usize>), SfsError> {
        let (name, structure) = match kind {
            Kind::Dat => ("DAT", Structure::Dat),
            _ => ("inode file", Structure::InodeFile),
        };
        let opened = PagedFile::open_in_part(name, root, &mut self.media, &mut self.now, &mut |_| None);
        let (mut file, mut lost) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                let place = format!("the root of the {name}");
                let finding = Finding::new(structure, place, error.to_string(), "a root", "it is made anew, empty");
                loss.findings.push(finding);
                loss.pages += 1;
                return Ok((PagedFile::new(name), Vec::new()));
            }
        };
        if !lost.is_empty() {
            let said = self.said(log)?;
            let mut find = |number| said.pointer(kind, number);
            (file, lost) = PagedFile::open_in_part(name, root, &mut self.media, &mut self.now, &mut find)?;
        }
        let mut gone = Vec::new();
        for LostBlock { number, address, why } in &lost {
            self.lives_no_more(*address);
            let (level, block) = ((number >> LEVEL_SHIFT) as u32, number & ((1 << LEVEL_SHIFT) - 1));
            let reach = (FANOUT as u64).saturating_pow(level);
            let pages = (block * reach..(block + 1) * reach).take_while(|page| *page < file.len() as u64);
            let said = self.said(log)?;
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
        for LostBlock { number, address, why } in file.damaged(&mut self.media, &mut self.now) {
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

    fn load_dat(&mut self, superblock: &Superblock, log: &mut Option<Log>, loss: &mut Loss) -> Result<(), SfsError> {
        let (file, gone) = self.load_file(Kind::Dat, &superblock.dat, log, loss)?;
        self.dat = Dat::of_file(file, superblock.used_blocks.get());
        for page in &gone {
            self.dat.lose_page(*page);
        }
        if gone.is_empty() {
            return Ok(());
        }
        let said = self.said(log)?;
        let first = |page: &usize| *page as u64 * ENTRIES;
        if !said.is_whole {
            loss.pages += gone.len();
        } else {
            self.salvaged.pages = gone.iter().map(|page| *page as u64).collect();
            let numbers = gone.iter().flat_map(|page| first(page)..first(page) + ENTRIES);
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
                self.dat.set(number, &entry, &mut self.media, &mut self.now)?;
                self.salvaged.owners.insert(number, (told.record.inode.get(), told.record.place.get()));
            }
        }
        self.recount_dat()
    }

    fn load_inodes(&mut self, superblock: &Superblock, log: &mut Option<Log>, loss: &mut Loss) -> Result<(), SfsError> {
        let (mut file, gone) = self.load_file(Kind::InodeFile, &superblock.inode_file, log, loss)?;
        gone.iter().for_each(|page| file.lose_page(*page));
        loss.pages += gone.len();
        loss.inode_pages = gone;
        let counts = (superblock.inodes.get(), superblock.first_free_inode.get(), superblock.used_inodes.get());
        let count = counts.0;
        self.inode_file = InodeFile::of_file(file, counts);
        if self.inode_file.count() != count {
            let found = format!("there are {count} inodes in {} pages", self.inode_file.file().len());
            let expected = format!("{}", self.inode_file.count());
            let place = "the superblock's inode file";
            loss.findings.push(Finding::new(Structure::Count, place, found, expected, "the number is put right"));
        }
        Ok(())
    }

    /// Inodes without a name that were held.
    fn load_orphans(&mut self, first: u64, loss: &mut Loss) {
        if let Err(error) = self.find_orphans(first) {
            let place = "the chain of inodes without a name";
            let repair = "it is cut off there; what has no name is freed, or goes to lost+found";
            let finding = Finding::new(Structure::Count, place, error.to_string(), "inodes without a name", repair);
            loss.findings.push(finding);
        }
    }

    /// Counts what is taken in the DAT.
    pub(super) fn recount_dat(&mut self) -> Result<(), SfsError> {
        if self.dat.pages() > 0 {
            // Number 0 stands for none, and is never given out.
            let mut none = self.dat.entry_of_none(&mut self.media, &mut self.now)?;
            if none.is_taken != 1 {
                none.is_taken = 1;
                self.dat.set_entry_of_none(&none, &mut self.media, &mut self.now)?;
            }
        }
        let mut total = 0;
        for page in 0..self.dat.pages() {
            let (said, counted, used) = self.dat.count_page(page, &mut self.media, &mut self.now)?;
            total += used;
            if said != counted {
                self.dat.set_counted(page, counted);
            }
        }
        self.dat.set_used(total);
        Ok(())
    }

    /// Does again what the log says since a checkpoint that is loaded.
    fn bring_forward(&mut self, chosen: &Found, inode_pages: &[usize]) -> Result<Vec<Finding>, OpenSfsError> {
        let mut findings = Vec::new();
        if let Err(error) = self.roll_forward() {
            let repair = "what was synced since the last checkpoint is lost";
            let place = "the log since the last checkpoint";
            findings.push(Finding::new(Structure::Log, place, error.to_string(), "what can be done again", repair));
            self.load_in_part(&chosen.superblock)?;
        }
        // Of an inode that is lost the log tells only what changed: the rest of it would read as zeros.
        let is_lost = |number: u64| inode_pages.contains(&((number / INODES) as usize));
        let partial: Vec<u64> = self.inodes.keys().copied().filter(|number| is_lost(*number)).collect();
        for number in partial.into_iter().filter(|number| *number < chosen.superblock.inodes.get()) {
            self.inodes.remove(&number);
            self.orphans.remove(&number);
        }
        Ok(findings)
    }

    fn said<'a>(&mut self, log: &'a mut Option<Log>) -> Result<&'a Log, SfsError> {
        if log.is_none() {
            *log = Some(self.read_log()?);
        }
        Ok(log.as_ref().expect("it was just read"))
    }

    /// All that the log says of blocks up to the checkpoint that is loaded.
    fn read_log(&mut self) -> Result<Log, SfsError> {
        let mut log = Log { blocks: BTreeMap::new(), is_whole: true };
        let mut summary = Vec::new();
        for segment in 0..self.media.segments() {
            let first = u64::from(segment) * u64::from(self.media.segment_blocks());
            let mut at = 0;
            while at < self.media.segment_blocks() {
                let Ok(header) = self.summary_at(first + u64::from(at), at, &mut summary) else {
                    log.is_whole = false;
                    break;
                };
                let Some(header) = header else {
                    log.is_whole &= !self.looks_like_summary(&summary);
                    break;
                };
                if header.sequence >= self.superblock.next_partial {
                    break;
                }
                let behind = first + u64::from(at + header.summary_blocks.get());
                let records = summary[size_of::<SummaryHeader>()..].chunks_exact(size_of::<BlockRecord>());
                for (number, record) in (0..header.blocks.get()).zip(records) {
                    let record = BlockRecord::read_from_bytes(record).expect("a record's length");
                    let address = behind + u64::from(number);
                    let told = Told { sequence: header.sequence.get(), tick: header.tick.get(), address, record };
                    // Virtual blocks have one row of numbers, whatever they hold.
                    let kind = if record.kind == Kind::Metadata as u8 { Kind::Data as u8 } else { record.kind };
                    let newest = log.blocks.entry((kind, record.number.get())).or_insert(told);
                    if newest.sequence < told.sequence {
                        *newest = told;
                    }
                }
                at += header.summary_blocks.get() + header.blocks.get();
            }
        }
        Ok(log)
    }

    /// Whether what is no summary was meant to be one of this volume.
    fn looks_like_summary(&self, bytes: &[u8]) -> bool {
        let Ok((header, _)) = SummaryHeader::read_from_prefix(bytes) else { return false };
        let is_older = header.sequence < self.superblock.next_partial && header.sequence.get() > 0;
        (header.magic == SUMMARY_MAGIC || header.identity.as_bytes() == self.superblock.identity.as_bytes()) && is_older
    }
}
