//! A walk over all blocks that a volume names: from the inodes down their maps to the entries of the DAT and the blocks they stand for. What
//! lives in each segment follows from it, and what is named by nobody.
//!
//! Each fault has a stage: those of one stage are mended together, and what they lead to is found by the next walk. No block is followed
//! twice, so that the walk ends on any input.

use super::attributes::FileKind;
use super::check::{Finding, Structure};
use super::error::SfsError;
use super::format::{BLOCK, BlockBytes, DatEntry, Kind, ROOTS, WAITS};
use super::inode::Inode;
use super::map::{FANOUT, FANOUT_BITS, MOST_BLOCKS, MOST_LEVELS, number_at};
use super::metadata_blocks::NO_PLACE;
use super::paged::{LEVEL_SHIFT, LostBlock, check_address};
use super::placement::Tick;
use super::survey_names::NameSeen;
use super::{Sfs, extended};
use std::collections::{BTreeMap, BTreeSet};

/// Blocks that are read at once.
const RUN: usize = 64;

/// When a fault is mended: before all that could follow from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// Inodes that are none.
    Inodes,
    /// Blocks and maps.
    Blocks,
    /// Blocks of directories.
    Directories,
    /// Names.
    Names,
    /// Who hangs where.
    Tree,
    /// Counts of an inode.
    Inode,
    /// Entries that nobody names.
    Leaks,
    /// Usage and counts of the volume.
    Sums,
}

/// Where a number of a map stands.
#[derive(Clone, Copy, Debug)]
pub(super) enum Via {
    /// In a root of the inode.
    Root(usize),
    /// In a map block.
    Block(u64, usize),
}

/// What mends a fault.
#[derive(Clone, Debug)]
pub(super) enum Mend {
    /// Nothing that could be done to a volume in use.
    Nothing,
    /// There is no root.
    MakeRoot,
    /// The inode is freed, and with it all that nobody else names.
    ClearInode(u64),
    /// The block is given up: reading it fails until it is written anew.
    GiveUp(u64),
    /// A number of a map cannot be: a block that is given up takes its place.
    Replace { inode: u64, number: u64, via: Via },
    /// A map block is damaged: what it named is looked for in the log.
    MapBlock { inode: u64, number: u64 },
    /// A directory has these blocks, in this order.
    Line { directory: u64, blocks: Vec<u64> },
    /// A block of a directory is made anew, of the names that it still holds.
    Rewrite { directory: u64, number: u64, place: u64 },
    /// Extended attributes are taken away.
    DropAttributes(u64),
    /// The name at a place of a directory is taken away.
    DropName { directory: u64, place: u64 },
    /// The name at a place of a directory gets this kind.
    SetKind { directory: u64, place: u64, inode: u64, kind: FileKind },
    /// A directory lies in this one.
    SetParent { directory: u64, parent: u64 },
    /// An inode gets a name in lost+found.
    Reconnect(u64),
    /// An inode has so many names.
    SetLinks { inode: u64, links: u32 },
    /// An inode has so many blocks.
    SetBlocks { inode: u64, blocks: u64 },
    /// Virtual blocks are freed.
    Free(Vec<u64>),
    /// What lives in a segment is as it was counted.
    SetUsage(u32),
    /// So many entries of a page of the DAT are not free.
    CountPage { page: usize, counted: u8 },
    /// So many virtual blocks are in use.
    CountUsed(u64),
    /// These inodes are free, in this order.
    Chain(Vec<u64>),
}

/// Something that is wrong, and what mends it.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub stage: Stage,
    pub finding: Finding,
    pub mend: Mend,
}

/// What lives in a segment.
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
    /// Whether a part of its map cannot be read, and so was not counted.
    pub is_partial: bool,
}

/// A set of numbers below a bound.
pub(super) struct Bits(Vec<u64>);

impl Bits {
    fn new(bound: u64) -> Bits {
        Bits(vec![0; (bound / 64 + 1) as usize])
    }

    /// Adds a number that is below the bound. Answers whether it was new.
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

/// What a walk found.
pub(super) struct Survey {
    pub faults: Vec<Fault>,
    pub inodes: BTreeMap<u64, Seen>,
    pub names: Vec<NameSeen>,
    /// Virtual blocks that something names.
    pub claimed: Bits,
    /// Taken virtual blocks that nothing names.
    pub unclaimed: Vec<u64>,
    /// What lives in each segment.
    pub live: Vec<Live>,
    /// Whether the live blocks that something names are as many in each segment as usage says.
    pub is_complete: bool,
    /// Blocks that an earlier repair gave up.
    pub given_up: u64,
    /// Addresses at which something lies.
    addresses: Bits,
    /// Addresses that two things claim.
    shared: BTreeSet<u64>,
    reads_data: bool,
}

/// A block of a file, as it was seen: its place, its virtual block, the entry of that.
type BlockSeen = (u64, u64, DatEntry);

impl Survey {
    pub fn fault(&mut self, stage: Stage, finding: Finding, mend: Mend) {
        self.faults.push(Fault { stage, finding, mend });
    }

    /// The findings, with the paths of their inodes.
    pub fn findings(self) -> Vec<Finding> {
        let paths = super::survey_names::Paths::of(&self.names);
        let with_path = |fault: Fault| {
            let path = fault.finding.inode.and_then(|inode| paths.path(inode));
            Finding { path, ..fault.finding }
        };
        self.faults.into_iter().map(with_path).collect()
    }

    fn gain(&mut self, address: u64, segment_blocks: u32, kind: Kind, entry: &DatEntry) {
        if address == 0 {
            return;
        }
        let live = &mut self.live[(address / u64::from(segment_blocks)) as usize];
        live.blocks += 1;
        if kind == Kind::Data {
            live.writes = live.writes.saturating_add(entry.writes.get());
            live.modified = live.modified.saturating_add(entry.modified.get());
            live.youngest = live.youngest.max(entry.modified.get());
        }
    }
}

impl Sfs {
    /// Looks at everything. `reads_data`: blocks of files are read and held against their checksums, too.
    pub(super) fn survey(&mut self, reads_data: bool) -> Result<Survey, SfsError> {
        let log_blocks = u64::from(self.media.segments()) * u64::from(self.media.segment_blocks());
        let mut survey = Survey {
            faults: Vec::new(),
            inodes: BTreeMap::new(),
            names: Vec::new(),
            claimed: Bits::new(self.dat.len()),
            unclaimed: Vec::new(),
            live: vec![Live::default(); self.segments.count() as usize],
            is_complete: false,
            given_up: 0,
            addresses: Bits::new(log_blocks),
            shared: BTreeSet::new(),
            reads_data,
        };
        self.survey_metadata_files(&mut survey);
        self.survey_inodes(&mut survey)?;
        self.survey_shared(&mut survey)?;
        self.survey_names(&mut survey)?;
        survey.is_complete = (0..self.segments.count())
            .all(|segment| self.segments.get(segment).live == survey.live[segment as usize].blocks);
        self.survey_entries(&mut survey)?;
        self.survey_usage(&mut survey);
        self.survey_counts(&mut survey)?;
        Ok(survey)
    }

    /// The blocks of the three metadata files.
    fn survey_metadata_files(&mut self, survey: &mut Survey) {
        let segment_blocks = self.media.segment_blocks();
        let reads = survey.reads_data && !self.media.holds_stamps();
        let kinds = [
            (Kind::Dat, Structure::Dat, "DAT"),
            (Kind::InodeFile, Structure::InodeFile, "inode file"),
            (Kind::UsageFile, Structure::UsageFile, "usage file"),
        ];
        for (kind, structure, name) in kinds {
            let file = match kind {
                Kind::Dat => self.dat.file(),
                Kind::InodeFile => self.inode_file.file(),
                _ => &mut self.usage_file,
            };
            let damaged = if reads { file.damaged(&mut self.media, &mut self.now) } else { Vec::new() };
            let places: Vec<(u64, u64)> = file.places().collect();
            for LostBlock { number, why, .. } in damaged {
                let place = name_of_block(name, number);
                let finding = Finding::new(
                    structure,
                    place,
                    why.to_string(),
                    "what was written",
                    "it is made of what the log says",
                );
                survey.fault(Stage::Inodes, finding, Mend::Nothing);
            }
            for (number, address) in places {
                if check_address(&self.media, name, address).is_err() || !survey.addresses.add(address) {
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

    /// An inode as it is, in memory or in the inode file. `Err`: what is there is none, and why.
    fn seen(&mut self, number: u64) -> Result<Option<Seen>, String> {
        let inode = match self.inodes.get(&number) {
            Some(inode) => Some(seen(inode)),
            None => {
                let image = self.inode_file.get(number, &mut self.media, &mut self.now);
                let image = image.map_err(|error| error.to_string())?;
                match Inode::of_image(&image) {
                    None if image.number.get() == 0 => None,
                    None => return Err(format!("its kind is {}", image.kind)),
                    Some(inode) if inode.number != number => {
                        return Err(format!("it says it is inode {}", inode.number));
                    }
                    Some(inode) => Some(seen(&inode)),
                }
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
        let freed: BTreeSet<u64> = self.inode_file.freed().collect();
        for number in 1..self.inode_file.count() {
            if freed.contains(&number) && !self.inodes.contains_key(&number) {
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
            if !self.media.holds_stamps() {
                self.dat.evict(self.settings.cache_bytes / 2);
            }
        }
        Ok(())
    }

    /// All blocks of one inode.
    fn survey_file(&mut self, survey: &mut Survey, number: u64, seen: &mut Seen) -> Result<(), SfsError> {
        let mut blocks: Vec<BlockSeen> = Vec::new();
        let span_bits = FANOUT_BITS * u32::from(seen.levels);
        for at in 0..ROOTS {
            let (root, levels, first) = (seen.roots[at], seen.levels, (at as u64) << span_bits);
            if root != 0 {
                self.survey_map(survey, (number, seen), (Via::Root(at), root, levels, first), &mut blocks);
            }
        }
        seen.counted += blocks.len() as u64;
        if seen.attributes != 0 {
            self.survey_attributes(survey, number, seen);
        }
        match seen.kind {
            FileKind::Regular => self.survey_data(survey, number, blocks),
            FileKind::Directory => self.survey_directory(survey, number, seen, blocks),
            _ => {
                self.survey_target(survey, number, seen, &blocks);
            }
        }
        if seen.blocks != seen.counted && !seen.is_partial {
            let found = format!("it is said to have {} blocks", seen.blocks);
            let place = format!("inode {number}");
            let finding =
                Finding::new(Structure::Inode, place, found, format!("{}", seen.counted), "the number is put right");
            survey.fault(Stage::Inode, finding.of(number), Mend::SetBlocks { inode: number, blocks: seen.counted });
        }
        Ok(())
    }

    /// A number of a map, and all below it.
    fn survey_map(
        &mut self,
        survey: &mut Survey,
        of: (u64, &mut Seen),
        (via, number, level, first): (Via, u64, u8, u64),
        blocks: &mut Vec<BlockSeen>,
    ) {
        let (inode, seen) = of;
        let offset = first.saturating_mul(BLOCK as u64);
        let kind = if level == 0 && seen.kind == FileKind::Regular { Kind::Data } else { Kind::Metadata };
        let its_place = if level == 0 { first } else { NO_PLACE };
        let claimed = match first < MOST_BLOCKS {
            true => self.claim(survey, (inode, its_place), number, kind),
            false => Err("it is beyond what a file can have".to_string()),
        };
        let entry = match claimed {
            Ok(entry) => entry,
            Err(why) => {
                let place = format!("the map of inode {inode}");
                let repair = "the block is given up: reading it fails until it is written anew";
                let found = format!("it names virtual block {number}: {why}");
                let finding = Finding::new(Structure::Map, place, found, "a virtual block of its own", repair);
                survey.fault(Stage::Blocks, finding.of(inode).at(offset), Mend::Replace { inode, number, via });
                return;
            }
        };
        if level == 0 {
            blocks.push((first, number, entry));
            return;
        }
        seen.counted += 1;
        if entry.is_given_up() && seen.kind != FileKind::Directory {
            survey.given_up += 1;
            return;
        }
        let bytes = match self.peek(number, inode, &entry) {
            Ok(bytes) => bytes,
            Err(why) => {
                let place = format!("a map block of inode {inode}, virtual block {number}");
                let repair =
                    "it is made anew of what the log says; if that is not all, it is given up, and reading there fails";
                let finding = Finding::new(Structure::Map, place, why, "what was written", repair);
                seen.is_partial = true;
                let mend = Mend::MapBlock { inode, number };
                survey.fault(Stage::Blocks, finding.of(inode).at(offset), mend);
                return;
            }
        };
        let span = 1u64 << (FANOUT_BITS * u32::from(level - 1));
        for at in 0..FANOUT as usize {
            let below = number_at(&bytes[..], at);
            if below != 0 {
                let its_first = first.saturating_add((at as u64).saturating_mul(span));
                self.survey_map(survey, (inode, seen), (Via::Block(number, at), below, level - 1, its_first), blocks);
            }
        }
    }

    /// Something names a virtual block. Answers its entry, or why it cannot be named.
    fn claim(&mut self, survey: &mut Survey, of: (u64, u64), number: u64, kind: Kind) -> Result<DatEntry, String> {
        let mut entry = match number < self.dat.len() && number != 0 {
            true => self.dat.get(number, &mut self.media, &mut self.now).map_err(|error| error.to_string())?,
            false => return Err(format!("there are {}", self.dat.len())),
        };
        if entry.is_taken != 1 {
            return Err("it is free".to_string());
        }
        if !self.salvaged.allows(number, of) {
            return Err("its entry is lost, and the log says it is another's".to_string());
        }
        if !survey.claimed.add(number) {
            return Err("it is named elsewhere, too".to_string());
        }
        let mut address = entry.address.get();
        if address & WAITS != 0 {
            // Its old version lies there until it is written.
            let slot = (address & !WAITS) as u32;
            address = if self.waiting.is_used(slot) { self.waiting.slot(slot).before } else { u64::MAX };
        }
        if address == 0 {
            return Ok(entry);
        }
        if check_address(&self.media, "DAT", address).is_err() {
            let end = u64::from(self.media.segments()) * u64::from(self.media.segment_blocks());
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
        survey.gain(address, self.media.segment_blocks(), kind, &entry);
        Ok(entry)
    }

    /// A virtual block of metadata, without keeping it in memory.
    pub(super) fn peek(&mut self, number: u64, inode: u64, entry: &DatEntry) -> Result<Box<BlockBytes>, String> {
        match self.metadata.get(number) {
            Some(block) if block.is_dirty || self.media.holds_stamps() => Ok(block.bytes.clone()),
            _ if entry.is_given_up() => Err("it was given up".to_string()),
            _ => self.read_virtual(number, inode).map_err(|error| error.to_string()),
        }
    }

    fn survey_attributes(&mut self, survey: &mut Survey, inode: u64, seen: &mut Seen) {
        let number = seen.attributes;
        let read = self.claim(survey, (inode, NO_PLACE), number, Kind::Metadata).and_then(|entry| {
            seen.counted += 1;
            self.peek(number, inode, &entry)
        });
        let why = match read {
            Ok(bytes) if extended::decode(&bytes[..]).is_some() => return,
            Ok(_) => "their lengths do not add up".to_string(),
            Err(why) => why,
        };
        let place = format!("the extended attributes of inode {inode}, virtual block {number}");
        let finding = Finding::new(Structure::Attributes, place, why, "attributes", "they are taken away");
        survey.fault(Stage::Blocks, finding.of(inode), Mend::DropAttributes(inode));
    }

    /// Blocks of a link, or of what has none.
    fn survey_target(&mut self, survey: &mut Survey, inode: u64, seen: &Seen, blocks: &[BlockSeen]) {
        if seen.kind != FileKind::Symlink {
            return;
        }
        let repair = "it is given up: reading it fails";
        let why = match blocks.iter().find(|(place, ..)| *place == 0) {
            Some((.., entry)) if entry.is_given_up() => {
                survey.given_up += 1;
                return;
            }
            Some((_, number, entry)) => match self.peek(*number, inode, entry) {
                Ok(_) => return,
                Err(why) => {
                    let place = format!("the target of inode {inode}, virtual block {number}");
                    let finding = Finding::new(Structure::Target, place, why, "what was written", repair);
                    survey.fault(Stage::Blocks, finding.of(inode), Mend::GiveUp(*number));
                    return;
                }
            },
            None => "it has no target",
        };
        // Its map may be damaged, and then that is a fault of its own.
        if seen.roots[0] == 0 {
            let place = format!("inode {inode}");
            let finding = Finding::new(Structure::Target, place, why, "a path", repair);
            survey.fault(Stage::Blocks, finding.of(inode), Mend::Replace { inode, number: 0, via: Via::Root(0) });
        }
    }

    /// Blocks of a regular file: each is what was written.
    fn survey_data(&mut self, survey: &mut Survey, inode: u64, mut blocks: Vec<BlockSeen>) {
        survey.given_up += blocks.iter().filter(|(.., entry)| entry.is_given_up()).count() as u64;
        if !survey.reads_data {
            return;
        }
        blocks.retain(|(.., entry)| entry.address.get() != 0 && entry.address.get() & WAITS == 0);
        blocks.sort_unstable_by_key(|(.., entry)| entry.address.get());
        let segment_blocks = u64::from(self.media.segment_blocks());
        let follows = |one: &BlockSeen, next: &BlockSeen| {
            let address = next.2.address.get();
            one.2.address.get() + 1 == address && !address.is_multiple_of(segment_blocks)
        };
        let mut damaged = Vec::new();
        for run in blocks.chunk_by(follows).flat_map(|run| run.chunks(RUN)) {
            self.check_run(run, &mut damaged);
        }
        damaged.sort_unstable_by_key(|((place, ..), _)| *place);
        for ((place, number, entry), why) in damaged {
            let where_ =
                format!("a block of inode {inode}, virtual block {number}, block {} of the log", entry.address);
            let repair = "it is given up: reading it fails until it is written anew";
            let finding = Finding::new(Structure::Data, where_, why, "what was written", repair);
            survey.fault(Stage::Blocks, finding.of(inode).at(place * BLOCK as u64), Mend::GiveUp(number));
        }
    }

    fn check_run(&mut self, run: &[BlockSeen], damaged: &mut Vec<(BlockSeen, String)>) {
        let width = self.media.block_width();
        let mut bytes = vec![0; run.len() * width];
        match self.media.read(run[0].2.address.get(), &mut bytes, self.now) {
            Ok(done) => self.now = done,
            Err(_) if run.len() > 1 => {
                // Which of them cannot be read shows one by one.
                return run.chunks(1).for_each(|one| self.check_run(one, damaged));
            }
            Err(error) => return damaged.push((run[0], error.to_string())),
        }
        for (block, bytes) in run.iter().zip(bytes.chunks_exact(width)) {
            let (found, written) = (crc32c::crc32c(bytes), block.2.crc.get());
            if found != written {
                damaged.push((*block, format!("its checksum is {found:08x}, and should be {written:08x}")));
            }
        }
    }

    /// Two virtual blocks that lie at one place: the log says whose it is, and the others are given up.
    fn survey_shared(&mut self, survey: &mut Survey) -> Result<(), SfsError> {
        let shared = std::mem::take(&mut survey.shared);
        if shared.is_empty() {
            return Ok(());
        }
        let segment_blocks = u64::from(self.media.segment_blocks());
        let mut owners: BTreeMap<u64, u64> = BTreeMap::new();
        for address in &shared {
            let told = self.contents_of((address / segment_blocks) as u32)?;
            let its = told.iter().find(|(block, _)| u64::from(*block) == address % segment_blocks);
            owners.extend(its.map(|(_, record)| (*address, record.number.get())));
        }
        for number in 1..self.dat.len() {
            let Ok(entry) = self.dat.get(number, &mut self.media, &mut self.now) else { continue };
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

    /// Entries of the DAT that are taken, and that nobody names.
    fn survey_entries(&mut self, survey: &mut Survey) -> Result<(), SfsError> {
        for number in 1..self.dat.len() {
            let Ok(entry) = self.dat.get(number, &mut self.media, &mut self.now) else { continue };
            if entry.is_taken != 1 || survey.claimed.has(number) {
                continue;
            }
            survey.unclaimed.push(number);
            let address = entry.address.get();
            if address & WAITS == 0 && check_address(&self.media, "DAT", address).is_ok() {
                // Usage was counted when it was written, as what it was then: metadata has no history.
                let kind = if entry.writes.get() > 0 { Kind::Data } else { Kind::Metadata };
                survey.gain(address, self.media.segment_blocks(), kind, &entry);
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

    fn survey_usage(&mut self, survey: &mut Survey) {
        for segment in 0..self.segments.count() {
            let (said, live) = (*self.segments.get(segment), survey.live[segment as usize]);
            if (said.live, said.writes, said.modified) == (live.blocks, live.writes, live.modified) {
                continue;
            }
            let sums = |live: u32, writes: u64, modified: u64| {
                format!("{live} live blocks with {writes} writes, and {modified} as the sum of when")
            };
            let finding = Finding::new(
                Structure::Usage,
                format!("the usage of segment {segment}"),
                sums(said.live, said.writes, said.modified),
                sums(live.blocks, live.writes, live.modified),
                "it is put right",
            );
            survey.fault(Stage::Sums, finding, Mend::SetUsage(segment));
        }
    }

    /// The counts of the volume, and the chain of free inodes.
    fn survey_counts(&mut self, survey: &mut Survey) -> Result<(), SfsError> {
        let mut total = 0;
        for page in 0..self.dat.pages() {
            let Ok((said, counted, used)) = self.dat.count_page(page, &mut self.media, &mut self.now) else { continue };
            total += used;
            if said != counted {
                let place = format!("page {page} of the DAT");
                let found = format!("{said} entries are said to be taken");
                let finding =
                    Finding::new(Structure::Count, place, found, format!("{counted}"), "the number is put right");
                survey.fault(Stage::Sums, finding, Mend::CountPage { page, counted });
            }
        }
        if total != self.dat.used() {
            let found = format!("{} virtual blocks are said to be in use", self.dat.used());
            let finding =
                Finding::new(Structure::Count, "the superblock", found, format!("{total}"), "the number is put right");
            survey.fault(Stage::Sums, finding, Mend::CountUsed(total));
        }
        let freed: BTreeSet<u64> = self.inode_file.freed().collect();
        let mut free = BTreeSet::new();
        for number in 1..self.inode_file.count() {
            if self.inodes.contains_key(&number) || freed.contains(&number) {
                continue;
            }
            let Ok(image) = self.inode_file.get(number, &mut self.media, &mut self.now) else { continue };
            if image.number.get() == 0 {
                free.insert(number);
            }
        }
        let (mut chained, mut at) = (BTreeSet::new(), self.inode_file.first_free());
        while at != 0 && chained.insert(at) {
            match self.inode_file.get(at, &mut self.media, &mut self.now) {
                Ok(image) => at = image.next.get(),
                Err(_) => break,
            }
        }
        let used = (self.inode_file.count() - 1).saturating_sub((free.len() + freed.len()) as u64);
        if chained != free || at != 0 || used != self.inode_file.used() {
            let found = format!(
                "{} free inodes are chained, and {} are said to be in use",
                chained.len(),
                self.inode_file.used()
            );
            let finding = Finding::new(
                Structure::Count,
                "the inode file",
                found,
                format!("{} free ones, and {used} in use", free.len()),
                "the chain is made anew",
            );
            survey.fault(Stage::Sums, finding, Mend::Chain(free.into_iter().collect()));
        }
        Ok(())
    }

    /// What a survey counted holds from now on.
    pub(super) fn take_usage(&mut self, segment: u32, live: Live) {
        self.segments.set_live(segment, live.blocks, live.writes, live.modified, Tick(live.youngest));
    }
}

/// A block of a metadata file, in words.
pub(super) fn name_of_block(name: &str, number: u64) -> String {
    let (level, block) = (number >> LEVEL_SHIFT, number & ((1 << LEVEL_SHIFT) - 1));
    match level {
        0 => format!("page {block} of the {name}"),
        level => format!("block {block} of level {level} of the {name}'s tree"),
    }
}

fn seen(inode: &Inode) -> Seen {
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
