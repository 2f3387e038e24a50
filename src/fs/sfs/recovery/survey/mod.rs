//! The survey: a walk over all blocks that a volume names, from the inodes down their maps to DAT entries and the
//! blocks that these name. Live blocks of each segment follow from it, and blocks that nothing names.
//!
//! Each fault has a stage: those of one stage are mended together, and what they lead to is found by the next walk. No
//! block is followed twice, so that the walk ends on any input.

use super::finding::{Finding, Structure};
use super::rebuilt_entries::RebuiltEntries;
use crate::fs::sfs::Sfs;
use crate::fs::sfs::error::SfsError;
use crate::fs::sfs::files::Files;
use crate::fs::sfs::files::attributes::FileKind;
use crate::fs::sfs::files::inode::Inode;
use crate::fs::sfs::log::Log;
use crate::fs::sfs::media::format::{BLOCK, DIRTY, DatEntry, Kind, ROOTS};
use crate::fs::sfs::media::format::{MOST_BLOCKS, MOST_LEVELS};
use crate::fs::sfs::media::invariants;
use crate::fs::sfs::metadata::paged::{LostBlock, check_address, name_of_block};
use crate::task::Task;
pub(super) mod faults;
mod files;
mod names;
mod paths;
mod sums;

use faults::{Fault, Mend, Stage};
use paths::{NameSeen, Paths};
use std::collections::{BTreeMap, BTreeSet};

/// Live blocks of a segment, and the sums of their writes and times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Live {
    pub blocks: u32,
    pub writes: u64,
    pub modified: u64,
    pub youngest: u64,
}

/// An inode, as it was seen.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub kind: FileKind,
    pub links: u32,
    pub size: u64,
    pub blocks: u64,
    pub levels: u8,
    pub roots: [u64; ROOTS],
    pub attributes: u64,
    pub parent: u64,
    /// Blocks that were found.
    pub counted: u64,
    /// True if a part of its map cannot be read, and so was not counted.
    pub is_partial: bool,
}

impl Seen {
    fn of(inode: &Inode) -> Seen {
        Seen {
            kind: inode.kind,
            links: inode.links,
            size: inode.size,
            blocks: inode.blocks,
            levels: inode.levels,
            roots: inode.roots,
            attributes: inode.attributes,
            parent: inode.parent,
            counted: 0,
            is_partial: false,
        }
    }
}

/// A set of numbers below a bound.
pub(super) struct Bits(Vec<u64>);

impl Bits {
    fn new(bound: u64) -> Bits {
        Bits(vec![0; (bound / 64 + 1) as usize])
    }

    /// Adds a number that is below the bound. Returns true if it was new.
    fn add(&mut self, number: u64) -> bool {
        let (word, bit) = (&mut self.0[(number / 64) as usize], 1 << (number % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    pub fn has(&self, number: u64) -> bool {
        self.0.get((number / 64) as usize).is_some_and(|word| word & (1 << (number % 64)) != 0)
    }
}

/// The result of a survey.
pub(super) struct Survey {
    pub faults: Vec<Fault>,
    pub inodes: BTreeMap<u64, Seen>,
    pub names: Vec<NameSeen>,
    /// Virtual blocks that something names.
    pub claimed: Bits,
    /// Taken virtual blocks that nothing names.
    pub unclaimed: Vec<u64>,
    /// Live blocks of each segment.
    pub live: Vec<Live>,
    /// Of which something names these.
    pub named_live: Vec<Live>,
    /// True if usage counts as many live blocks in each segment as something names.
    pub is_complete: bool,
    /// Blocks that an earlier repair gave up.
    pub given_up: u64,
    /// Addresses at which something lies.
    addresses: Bits,
    /// Addresses that two things claim.
    pub shared: BTreeSet<u64>,
    /// True if blocks of files are read, too.
    pub reads_data: bool,
    /// DAT entries that were rebuilt from the log.
    rebuilt: RebuiltEntries,
}

impl Survey {
    pub fn fault(&mut self, stage: Stage, finding: Finding, mend: Mend) {
        self.faults.push(Fault { stage, finding, mend });
    }

    /// Adds the paths of their inodes to findings from before the survey.
    pub fn name(&self, findings: &mut [Finding]) {
        let paths = Paths::of(&self.names);
        for finding in findings {
            finding.path = finding.inode.and_then(|inode| paths.path(inode));
        }
    }

    /// The findings, with the paths of their inodes.
    pub fn findings(self) -> Vec<Finding> {
        let paths = Paths::of(&self.names);
        let with_path = |fault: Fault| {
            let path = fault.finding.inode.and_then(|inode| paths.path(inode));
            Finding { path, ..fault.finding }
        };
        self.faults.into_iter().map(with_path).collect()
    }

    /// Counts a live block at an address; 0 is none.
    pub fn gain(&mut self, address: u64, segment_blocks: u32, kind: Kind, entry: &DatEntry) {
        if address == 0 {
            return;
        }
        let live = &mut self.live[(address / u64::from(segment_blocks)) as usize];
        live.blocks += 1;
        if kind == Kind::Data {
            live.writes = live.writes.wrapping_add(entry.writes.get());
            live.modified = live.modified.wrapping_add(entry.modified.get());
            live.youngest = live.youngest.max(entry.modified.get());
        }
    }
}

/// A walk over all blocks that a volume names.
pub(super) struct Surveyor<'a> {
    task: &'a Task<'a>,
    files: &'a mut Files,
    /// The number of the volume, and its log.
    identity: [u8; 16],
    log: &'a Log,
}

impl<'a> Surveyor<'a> {
    /// A walk over the volume with this number.
    pub fn new(task: &'a Task<'a>, files: &'a mut Files, log: &'a Log, identity: [u8; 16]) -> Surveyor<'a> {
        Surveyor { task, files, identity, log }
    }
}

/// A walk over a volume in memory.
pub(super) fn surveyor<'a>(task: &'a Task<'a>, volume: &'a mut Sfs) -> Surveyor<'a> {
    Surveyor::new(task, &mut volume.files, &volume.writer.log, volume.writer.superblock.identity)
}

impl Surveyor<'_> {
    /// Surveys the whole volume. With `reads_data`, blocks of files are read and checked against their checksums, too.
    pub(super) fn survey(&mut self, reads_data: bool, rebuilt: &RebuiltEntries) -> Result<Survey, SfsError> {
        let log_blocks = u64::from(self.files.media.segments()) * u64::from(self.files.media.segment_blocks());
        let mut survey = Survey {
            faults: Vec::new(),
            inodes: BTreeMap::new(),
            names: Vec::new(),
            claimed: Bits::new(self.files.metadata.dat.len()),
            unclaimed: Vec::new(),
            live: vec![Live::default(); self.files.segments.count() as usize],
            named_live: Vec::new(),
            is_complete: false,
            given_up: 0,
            addresses: Bits::new(log_blocks),
            shared: BTreeSet::new(),
            reads_data,
            rebuilt: rebuilt.clone(),
        };
        self.survey_metadata_files(&mut survey);
        self.survey_inodes(&mut survey)?;
        self.survey_shared(&mut survey)?;
        self.survey_names(&mut survey)?;
        survey.named_live = survey.live.clone();
        survey.is_complete = (0..self.files.segments.count())
            .all(|segment| self.files.segments.get(segment).live == survey.live[segment as usize].blocks);
        self.survey_entries(&mut survey)?;
        self.survey_usage(&mut survey);
        self.survey_counts(&mut survey)?;
        Ok(survey)
    }

    /// The blocks of the three metadata files.
    fn survey_metadata_files(&mut self, survey: &mut Survey) {
        let segment_blocks = self.files.media.segment_blocks();
        let reads = survey.reads_data && !self.files.media.holds_stamps();
        let kinds = [
            (Kind::Dat, Structure::Dat, "DAT"),
            (Kind::InodeFile, Structure::InodeFile, "inode file"),
            (Kind::UsageFile, Structure::UsageFile, "usage file"),
        ];
        for (kind, structure, name) in kinds {
            let file = match kind {
                Kind::Dat => self.files.metadata.dat.file(),
                Kind::InodeFile => self.files.metadata.inode_file.file(),
                _ => &mut self.files.metadata.usage_file,
            };
            let damaged = if reads { file.damaged(self.task) } else { Vec::new() };
            let places: Vec<(u64, u64)> = file.addresses().collect();
            for LostBlock { number, why, .. } in damaged {
                let place = name_of_block(name, number);
                let finding =
                    Finding::new(structure, place, why.to_string(), "what was written", "it is rebuilt from the log");
                survey.fault(Stage::Inodes, finding, Mend::Nothing);
            }
            for (number, address) in places {
                if check_address(&self.files.media, name, address).is_err() || !survey.addresses.add(address) {
                    let found = format!("it lies at block {address} of the log, where something else does");
                    let finding =
                        Finding::new(structure, name_of_block(name, number), found, "a place of its own", "none");
                    survey.fault(Stage::Inodes, finding, Mend::Nothing);
                    continue;
                }
                survey.gain(address, segment_blocks, kind, &DatEntry::default());
            }
        }
    }

    /// An inode, from memory or from the inode file. `Err`: why what is there cannot be an inode.
    fn seen(&mut self, number: u64) -> Result<Option<Seen>, String> {
        let inode = match self.files.inodes.peek(number) {
            Some(inode) => Some(Seen::of(inode)),
            None => {
                let image = self.files.metadata.inode_file.get(self.task, number);
                let image = image.map_err(|error| error.to_string())?;
                if image.number.get() == 0 {
                    return Ok(None);
                }
                invariants::inode(&image, number)?;
                Inode::of_image(&image).as_ref().map(Seen::of)
            }
        };
        match &inode {
            Some(inode) if inode.levels > MOST_LEVELS => Err(format!("its map has {} levels", inode.levels)),
            Some(inode) if inode.size.div_ceil(BLOCK as u64) > MOST_BLOCKS => {
                Err(format!("its size is {}", inode.size))
            }
            Some(inode) if inode.kind == FileKind::Symlink && !(1..BLOCK as u64).contains(&inode.size) => {
                Err(format!("it is a symbolic link whose target has {} bytes", inode.size))
            }
            _ => Ok(inode),
        }
    }

    fn survey_inodes(&mut self, survey: &mut Survey) -> Result<(), SfsError> {
        let freed: BTreeSet<u64> = self.files.metadata.inode_file.freed().collect();
        for number in 1..self.files.metadata.inode_file.count() {
            if freed.contains(&number) && !self.files.inodes.contains(number) {
                continue;
            }
            let mut seen = match self.seen(number) {
                Ok(Some(seen)) => seen,
                Ok(None) => continue,
                Err(why) => {
                    let finding = Finding::new(
                        Structure::Inode,
                        format!("inode {number}"),
                        why,
                        "an inode, or none",
                        "it is freed",
                    );
                    survey.fault(Stage::Inodes, finding.of(number), Mend::ClearInode(number));
                    continue;
                }
            };
            self.survey_file(survey, number, &mut seen)?;
            survey.inodes.insert(number, seen);
        }
        Ok(())
    }

    /// Claims a virtual block for whoever names it. Returns its entry, or why it cannot be named.
    pub(super) fn claim(
        &mut self,
        survey: &mut Survey,
        of: (u64, u64),
        number: u64,
        kind: Kind,
    ) -> Result<DatEntry, String> {
        let mut entry = match number < self.files.metadata.dat.len() && number != 0 {
            true => self.files.metadata.dat.get(self.task, number).map_err(|error| error.to_string())?,
            false => return Err(format!("there are {}", self.files.metadata.dat.len())),
        };
        if entry.is_taken != 1 {
            return Err("it is free".to_string());
        }
        if !survey.rebuilt.can_be_of(number, of, entry.address.get()) {
            return Err("its entry is lost, and the log says it is another's".to_string());
        }
        // One that changed since the checkpoint was found by its owner's map, or was just given out.
        if let Some(its) = self.files.metadata.blocks.get(number).filter(|its| its.is_dirty)
            && (kind == Kind::Data || its.inode != of.0)
        {
            return Err(format!("it is metadata of inode {}", its.inode));
        }
        if !survey.claimed.add(number) {
            return Err("it is named elsewhere, too".to_string());
        }
        let mut address = entry.address.get();
        if address & DIRTY != 0 {
            // Its old version lies there until it is written.
            let slot = (address & !DIRTY) as u32;
            address = if self.files.dirty_blocks.is_used(slot) {
                self.files.dirty_blocks.slot(slot).before
            } else {
                u64::MAX
            };
        }
        if address == 0 {
            return Ok(entry);
        }
        if check_address(&self.files.media, "DAT", address).is_err() {
            let end = u64::from(self.files.media.segments()) * u64::from(self.files.media.segment_blocks());
            let place = format!("virtual block {number}");
            let found = format!("it is said to lie at block {address} of the log, which has {end}");
            let repair = "it is given up: reading it fails until it is written anew";
            let finding = Finding::new(Structure::Dat, place, found, "a block of the log", repair);
            survey.fault(Stage::Blocks, finding.of(of.0), Mend::GiveUp(number));
            (entry.address, entry.is_lost) = (0.into(), 1);
            return Ok(entry);
        }
        if !survey.addresses.add(address) {
            survey.shared.insert(address);
        }
        survey.gain(address, self.files.media.segment_blocks(), kind, &entry);
        Ok(entry)
    }
}
