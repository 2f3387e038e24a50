//! fsck: putting right what the survey finds.
//!
//! It works in memory on what could be opened, from stage to stage, until a survey finds nothing. One checkpoint then
//! makes it durable: a repair that is cut off leaves the volume as it was.
//!
//! What was lost is never replaced by zeros. A block whose bytes are not what was written is given up: its file keeps
//! its size, and reading that block fails (EIO) until it is written whole, punched or cut off. (As btrfs does; e2fsck
//! does not look at data.) So with the part of a file below a map block that is lost, and with the target of a link.
//! What has no name any more gets one in lost+found.

use super::finding::{Finding, Structure};
use super::lenient;
use super::survey::Survey;
use super::survey::faults::{Fault, Mend, Stage, Via};
use crate::device::Medium;
use crate::fs::sfs::Sfs;
use crate::fs::sfs::attributes::{FileKind, InodeNumber};
use crate::fs::sfs::directory::{self, Index};
use crate::fs::sfs::error::{OpenSfsError, SfsError};
use crate::fs::sfs::format::{BLOCK, BlockBytes, DatEntry, InodeImage, Kind, NO_GROUP, zeroed};
use crate::fs::sfs::inode::Inode;
use crate::fs::sfs::make::Identity;
use crate::fs::sfs::map::set_number;
use crate::fs::sfs::metadata_blocks::NO_PLACE;
use crate::fs::sfs::settings::SfsSettings;
use crate::task::Task;
use crate::time::Time;
use std::collections::BTreeMap;
use zerocopy::FromZeros;

/// Surveys until nothing is found: there are eight stages, and a mend may lead to faults of an earlier one.
const MOST_PASSES: usize = 40;
/// Where what has no name goes.
const LOST_AND_FOUND: &[u8] = b"lost+found";

/// What a repair did.
#[derive(Debug)]
pub struct Repaired {
    /// What was wrong, and was put right. Empty: nothing was written.
    pub findings: Vec<Finding>,
    /// What is wrong still.
    pub left: Vec<Finding>,
}

/// Checks the volume on a medium, and puts right what is wrong. `identity` has the time at which that is done.
///
/// Fails as [`check`](super::check()) does, and if the device fails. Then the volume is as it was, or as after the
/// repair.
pub fn repair(medium: Medium, settings: &SfsSettings, identity: Identity) -> Result<Repaired, OpenSfsError> {
    let task = &Task::at(Time::ZERO);
    Ok(repair_opened(task, lenient::open(task, medium, settings, identity)?)?.0)
}

/// Repairs what could be opened, and hands it back.
pub(super) fn repair_opened(task: &Task<'_>, mut opened: lenient::Opened) -> Result<(Repaired, Sfs), SfsError> {
    let mut volume = opened.volume;
    let mut findings = std::mem::take(&mut opened.findings);
    let (mut is_clean, mut reads_data) = (false, true);
    for pass in 0..MOST_PASSES {
        // Names and sums change no data; what a map names anew must be read.
        let survey = volume.survey(task, reads_data)?;
        if pass == 0 {
            survey.name(&mut findings);
        }
        let Some(stage) = survey.faults.iter().map(|fault| fault.stage).min() else {
            is_clean = true;
            break;
        };
        reads_data = stage <= Stage::Blocks;
        let faults: Vec<Fault> = survey.faults.iter().filter(|fault| fault.stage == stage).cloned().collect();
        volume.recount_dat(task)?;
        volume.recount_inodes(task)?;
        volume.mend_maps(task, &survey, &faults)?;
        for fault in &faults {
            volume.mend(task, &survey, &fault.mend)?;
        }
        // Sums follow from what was mended: they are wrong in themselves only at first.
        let sums_count = pass == 0;
        for finding in survey.findings() {
            let is_sum = matches!(finding.structure, Structure::Usage | Structure::Count);
            let is_told = |told: &Finding| told.place == finding.place && told.offset == finding.offset;
            if (sums_count || !is_sum) && !findings.iter().any(is_told) {
                findings.push(finding);
            }
        }
    }
    if findings.is_empty() && is_clean {
        return Ok((Repaired { findings, left: Vec::new() }, volume));
    }
    // What is free because the log says so may be written once the log is durable.
    volume.flush_device(task)?;
    volume.tidy_zones(task)?;
    if opened.is_clean {
        volume.go_on(task);
    }
    volume.checkpoint(task, true)?;
    let left = volume.survey(task, true)?.findings();
    volume.media.close(task)?;
    Ok((Repaired { findings, left }, volume))
}

impl Sfs {
    fn mend(&mut self, task: &Task<'_>, survey: &Survey, mend: &Mend) -> Result<(), SfsError> {
        self.is_changed = true;
        match mend {
            Mend::Nothing | Mend::MapBlock { .. } => Ok(()),
            Mend::MakeRoot => self.make_new_root(task),
            Mend::ClearInode(number) => self.clear_inode(task, *number),
            Mend::GiveUp(number) => self.give_up(task, *number),
            Mend::Replace { inode, number, via } => self.replace(task, survey, *inode, *number, *via),
            Mend::Line { directory, blocks } => self.line(task, *directory, blocks),
            Mend::Rewrite { directory, number, place } => self.rewrite(task, *directory, *number, *place),
            Mend::DropAttributes(inode) => {
                self.inode_mut(task, *inode)?.attributes = 0;
                Ok(())
            }
            Mend::DropName { directory, place } => self.drop_name(task, *directory, *place),
            Mend::SetKind { directory, place, inode, kind } => {
                let (number, at) = (place / BLOCK as u64, (place % BLOCK as u64) as usize);
                let virtual_block = self.mapped(task, *directory, number)?;
                let block = self.metadata_block_mut(task, virtual_block, *directory, number)?;
                directory::replace(block, at, *inode, *kind);
                Ok(())
            }
            Mend::SetParent { directory, parent } => {
                self.inode_mut(task, *directory)?.parent = *parent;
                Ok(())
            }
            Mend::Reconnect(inode) => self.reconnect(task, *inode),
            Mend::SetLinks { inode, links } => {
                self.inode_mut(task, *inode)?.links = *links;
                Ok(())
            }
            Mend::SetBlocks { inode, blocks } => {
                self.inode_mut(task, *inode)?.blocks = *blocks;
                Ok(())
            }
            Mend::Free(numbers) => numbers.iter().try_for_each(|number| {
                self.metadata.remove(*number);
                self.dat.free(task, *number)
            }),
            Mend::SetUsage(segment) => {
                self.take_usage(*segment, survey.live[*segment as usize]);
                Ok(())
            }
            Mend::CountPage { page, counted } => {
                self.dat.set_counted(*page, *counted);
                Ok(())
            }
            Mend::CountUsed(used) => {
                self.dat.set_used(*used);
                Ok(())
            }
            Mend::CountInodes => self.recount_inodes(task),
        }
    }

    fn clear_inode(&mut self, task: &Task<'_>, number: u64) -> Result<(), SfsError> {
        self.inodes.remove(number);
        self.orphans.remove(&number);
        self.inode_file.set(task, number, &InodeImage::new_zeroed())
    }

    fn make_new_root(&mut self, task: &Task<'_>) -> Result<(), SfsError> {
        let number = InodeNumber::ROOT.0;
        if self.inode_file.count() <= number {
            self.inode_file.take_found(number);
        }
        self.clear_inode(task, number)?;
        let mut root = Inode::new(number, 0, FileKind::Directory, self.wall(task));
        (root.permissions, root.links, root.parent) = (0o755, 2, number);
        self.inodes.insert(root);
        Ok(())
    }

    pub(super) fn give_up(&mut self, task: &Task<'_>, number: u64) -> Result<(), SfsError> {
        self.metadata.remove(number);
        let mut entry = self.dat.get(task, number)?;
        (entry.address, entry.crc, entry.is_lost) = (0.into(), 0.into(), 1);
        self.dat.set(task, number, &entry)
    }

    /// Puts a block that is given up where a map names what cannot be. In a directory the place stays empty: it is
    /// closed up later.
    fn replace(&mut self, task: &Task<'_>, survey: &Survey, inode: u64, named: u64, via: Via) -> Result<(), SfsError> {
        if self.salvaged.holds(named) && survey.is_complete && !survey.claimed.has(named) {
            // Its entry was lost, the log tells of no block of it, and none is missing: it was reserved, and never
            // written.
            self.salvaged.forget(named);
            self.dat.take_found(task, named)?;
            // It does not lie where the log's other owner of the number has written.
            let entry = DatEntry { is_taken: 1, group: NO_GROUP, ..DatEntry::default() };
            return self.dat.set(task, named, &entry);
        }
        let number = match self.inode(task, inode)?.kind {
            FileKind::Directory => 0,
            _ => {
                let number = self.dat.take(task)?;
                self.give_up(task, number)?;
                number
            }
        };
        match via {
            Via::Root(at) => self.inode_mut(task, inode)?.roots[at] = number,
            Via::Block(block, at) => set_number(self.metadata_block_mut(task, block, inode, NO_PLACE)?, at, number),
        }
        Ok(())
    }

    /// Puts these bytes where a block of metadata lies, whatever that holds.
    fn put_block(
        &mut self,
        task: &Task<'_>,
        number: u64,
        inode: u64,
        place: u64,
        bytes: Box<BlockBytes>,
    ) -> Result<(), SfsError> {
        let entry = self.dat.get(task, number)?;
        if entry.is_lost == 1 {
            self.dat.set(task, number, &DatEntry { is_lost: 0, ..entry })?;
        }
        self.metadata.remove(number);
        self.metadata.insert(number, inode, place, bytes);
        self.metadata.get_mut(number);
        Ok(())
    }

    /// Map blocks that are damaged: they are made anew if the log says where all blocks of the file are, and else given
    /// up.
    fn mend_maps(&mut self, task: &Task<'_>, survey: &Survey, faults: &[Fault]) -> Result<(), SfsError> {
        let mut lost: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for fault in faults {
            if let Mend::MapBlock { inode, number } = fault.mend {
                lost.entry(inode).or_default().push(number);
            }
        }
        if lost.is_empty() {
            return Ok(());
        }
        let told = self.owners_of(task, &survey.unclaimed)?;
        for (inode, blocks) in lost {
            let Some(seen) = survey.inodes.get(&inode) else { continue };
            let is_directory = seen.kind == FileKind::Directory;
            let its = told.iter().filter(|(_, (owner, _))| *owner == inode);
            let found: Vec<(u64, u64)> =
                its.clone().filter(|(_, (_, place))| *place != NO_PLACE).map(|(n, (_, p))| (*n, *p)).collect();
            let is_all = its.count() as u64 == seen.blocks.saturating_sub(seen.counted);
            if !is_all && !is_directory {
                for number in blocks {
                    self.give_up(task, number)?;
                }
                continue;
            }
            for number in &blocks {
                self.put_block(task, *number, inode, NO_PLACE, zeroed())?;
            }
            for (number, place) in found {
                if self.mapped(task, inode, place)? == 0 {
                    self.map(task, inode, place, number)?;
                }
            }
        }
        Ok(())
    }

    /// Whose these virtual blocks are, as the block records say that lie where they do: the inode and the place.
    fn owners_of(&mut self, task: &Task<'_>, numbers: &[u64]) -> Result<BTreeMap<u64, (u64, u64)>, SfsError> {
        let segment_blocks = u64::from(self.media.segment_blocks());
        let mut by_segment: BTreeMap<u32, Vec<(u32, u64)>> = BTreeMap::new();
        for number in numbers {
            let address = self.dat.get(task, *number)?.address.get();
            if address != 0 && address / segment_blocks < u64::from(self.media.segments()) {
                let segment = by_segment.entry((address / segment_blocks) as u32).or_default();
                segment.push(((address % segment_blocks) as u32, *number));
            }
        }
        let mut owners = BTreeMap::new();
        for (segment, blocks) in by_segment {
            let contents = self.contents_of(task, segment)?;
            for (block, number) in blocks {
                let record = contents.iter().find(|(at, record)| *at == block && record.number.get() == number);
                let is_virtual = |kind: u8| kind == Kind::Data as u8 || kind == Kind::Metadata as u8;
                if let Some((_, record)) = record.filter(|(_, record)| is_virtual(record.kind)) {
                    owners.insert(number, (record.inode.get(), record.place.get()));
                }
            }
        }
        Ok(owners)
    }

    /// Puts the blocks of a directory one behind the other.
    fn line(&mut self, task: &Task<'_>, directory: u64, blocks: &[u64]) -> Result<(), SfsError> {
        let it = self.inode_mut(task, directory)?;
        (it.levels, it.roots, it.index) = (0, Default::default(), None);
        it.size = (blocks.len() * BLOCK) as u64;
        for (place, number) in (0..).zip(blocks) {
            let entry = self.dat.get(task, *number)?;
            if let Ok(bytes) = self.peek(task, *number, directory, &entry) {
                self.put_block(task, *number, directory, place, bytes)?;
            }
            self.map(task, directory, place, *number)?;
        }
        Ok(())
    }

    /// Makes a block of a directory anew, of the records that it still has.
    fn rewrite(&mut self, task: &Task<'_>, directory: u64, number: u64, place: u64) -> Result<(), SfsError> {
        let entry = self.dat.get(task, number)?;
        let old = self.peek(task, number, directory, &entry).ok();
        let mut block = zeroed();
        directory::format(&mut block);
        let mut index = Index::default();
        index.take_up(&block);
        let records = old.iter().flat_map(|old| directory::records(old).map_while(|record| record));
        for record in records.filter(|record| record.inode != 0) {
            if let Some(kind) = FileKind::of_number(record.kind) {
                index.put(0, &mut block, record.name, record.inode, kind);
            }
        }
        self.inodes.take_index(directory);
        self.put_block(task, number, directory, place, block)
    }

    fn drop_name(&mut self, task: &Task<'_>, directory: u64, place: u64) -> Result<(), SfsError> {
        let (number, at) = (place / BLOCK as u64, (place % BLOCK as u64) as usize);
        self.index(task, directory)?;
        let virtual_block = self.mapped(task, directory, number)?;
        let mut index = self.inodes.take_index(directory).ok_or(SfsError::NotFound)?;
        let block = self.metadata_block_mut(task, virtual_block, directory, number)?;
        if let Some(record) = directory::record(block, at) {
            let name = record.name.to_vec();
            index.remove(block, &name, place);
        }
        self.inodes.put_index(directory, index);
        Ok(())
    }

    /// Gives what has no name one in lost+found.
    fn reconnect(&mut self, task: &Task<'_>, inode: u64) -> Result<(), SfsError> {
        let directory = self.lost_and_found(task)?;
        let kind = self.inode(task, inode)?.kind;
        let mut name = format!("#{inode}");
        while self.lookup(task, InodeNumber(directory), name.as_bytes()).is_ok() {
            name.push('_');
        }
        self.put_name(task, directory, name.as_bytes(), inode, kind)?;
        let now = self.wall(task);
        let it = self.inode_mut(task, inode)?;
        it.times.changed(now);
        if kind == FileKind::Directory {
            it.parent = directory;
        }
        Ok(())
    }

    /// The directory lost+found, which is made if there is none.
    fn lost_and_found(&mut self, task: &Task<'_>) -> Result<u64, SfsError> {
        let root = InodeNumber::ROOT;
        let mut name = LOST_AND_FOUND.to_vec();
        loop {
            match self.lookup(task, root, &name) {
                Ok(found) if self.inode(task, found.0).is_ok_and(|it| it.kind == FileKind::Directory) => {
                    return Ok(found.0);
                }
                Ok(_) => name.push(b'_'),
                Err(SfsError::NotFound) => break,
                Err(error) => return Err(error),
            }
        }
        let (number, generation) = self.take_inode(task)?;
        let mut made = Inode::new(number, generation, FileKind::Directory, self.wall(task));
        (made.permissions, made.links, made.parent) = (0o700, 2, root.0);
        self.inodes.insert(made);
        self.put_name(task, root.0, &name, number, FileKind::Directory)?;
        Ok(number)
    }
}
