//! Mending maps and the blocks that they name.

use super::super::survey::faults::{Fault, Mend, Via};
use super::Mending;
use crate::fs::sfs::error::SfsError;
use crate::fs::sfs::files::attributes::FileKind;
use crate::fs::sfs::files::map::set_number;
use crate::fs::sfs::log::LogReader;
use crate::fs::sfs::media::format::{BlockBytes, DatEntry, Kind, NO_GROUP, zeroed};
use crate::fs::sfs::metadata::blocks::NO_PLACE;
use std::collections::BTreeMap;

impl Mending<'_> {
    /// Puts a block that is given up where a map names what cannot be. In a directory the place stays empty: it is
    /// closed up later.
    pub(super) fn replace(&mut self, (inode, named, via): (u64, u64, Via)) -> Result<(), SfsError> {
        if self.rebuilt.is_of_lost_page(named) && self.survey.is_complete && !self.survey.claimed.has(named) {
            // Its entry was lost, the log has no record of it, and no block is missing: it was reserved, and never
            // written.
            self.rebuilt.forget(named);
            self.files.metadata.dat.take_found(self.task, named)?;
            // It does not lie where the log's other owner of the number has written.
            let entry = DatEntry { is_taken: 1, group: NO_GROUP, ..DatEntry::default() };
            return self.files.metadata.dat.set(self.task, named, &entry);
        }
        let number = match self.files.inode(self.task, inode)?.kind {
            FileKind::Directory => 0,
            _ => {
                let number = self.files.metadata.dat.take(self.task)?;
                self.files.give_up(self.task, number)?;
                number
            }
        };
        match via {
            Via::Root(at) => self.files.inode_mut(self.task, inode)?.roots[at] = number,
            Via::Block(block, at) => {
                set_number(self.files.metadata_block_mut(self.task, block, inode, NO_PLACE)?, at, number)
            }
        }
        Ok(())
    }

    /// Puts these bytes where a block of metadata lies, whatever that holds.
    pub(super) fn put_block(
        &mut self,
        number: u64,
        inode: u64,
        place: u64,
        bytes: Box<BlockBytes>,
    ) -> Result<(), SfsError> {
        let entry = self.files.metadata.dat.get(self.task, number)?;
        if entry.is_lost == 1 {
            self.files.metadata.dat.set(self.task, number, &DatEntry { is_lost: 0, ..entry })?;
        }
        self.files.metadata.blocks.remove(number);
        self.files.metadata.blocks.insert(number, inode, place, bytes);
        self.files.metadata.blocks.get_mut(number);
        Ok(())
    }

    /// Mends damaged map blocks: they are rebuilt if block records name all blocks of the file, and else given up.
    pub(super) fn mend_maps(&mut self, faults: &[Fault]) -> Result<(), SfsError> {
        let mut lost: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for fault in faults {
            if let Mend::MapBlock { inode, number } = fault.mend {
                lost.entry(inode).or_default().push(number);
            }
        }
        if lost.is_empty() {
            return Ok(());
        }
        let owners = self.owners_of(&self.survey.unclaimed)?;
        for (inode, blocks) in lost {
            let Some(seen) = self.survey.inodes.get(&inode) else { continue };
            let is_directory = seen.kind == FileKind::Directory;
            let its = owners.iter().filter(|(_, (owner, _))| *owner == inode);
            let found: Vec<(u64, u64)> =
                its.clone().filter(|(_, (_, place))| *place != NO_PLACE).map(|(n, (_, p))| (*n, *p)).collect();
            let is_all = its.count() as u64 == seen.blocks.saturating_sub(seen.counted);
            if !is_all && !is_directory {
                for number in blocks {
                    self.files.give_up(self.task, number)?;
                }
                continue;
            }
            for number in &blocks {
                self.put_block(*number, inode, NO_PLACE, zeroed())?;
            }
            for (number, place) in found {
                if self.files.mapped(self.task, inode, place)? == 0 {
                    self.files.map(self.task, inode, place, number)?;
                }
            }
        }
        Ok(())
    }

    /// The owners of virtual blocks, as the block records name them that describe where they lie: the inode and the
    /// place.
    fn owners_of(&mut self, numbers: &[u64]) -> Result<BTreeMap<u64, (u64, u64)>, SfsError> {
        let segment_blocks = u64::from(self.files.media.segment_blocks());
        let mut by_segment: BTreeMap<u32, Vec<(u32, u64)>> = BTreeMap::new();
        for number in numbers {
            let address = self.files.metadata.dat.get(self.task, *number)?.address.get();
            if address != 0 && address / segment_blocks < u64::from(self.files.media.segments()) {
                let segment = by_segment.entry((address / segment_blocks) as u32).or_default();
                segment.push(((address % segment_blocks) as u32, *number));
            }
        }
        let mut owners = BTreeMap::new();
        for (segment, blocks) in by_segment {
            let reader = LogReader::new(self.task, &self.files.media, self.superblock.identity);
            let contents = reader.contents(segment, self.log.contents_of(segment))?;
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
}
