//! Virtual blocks of files: reading and making those of metadata, giving up and freeing any.

use super::Files;
use crate::crc;
use crate::fs::sfs::SfsError;
use crate::fs::sfs::media::format::{self, BlockBytes, DIRTY, DatEntry, Kind};
use crate::fs::sfs::metadata::paged;
use crate::task::Task;

impl Files {
    /// Reads a virtual block of metadata.
    pub(in crate::fs::sfs) fn metadata_block(
        &mut self,
        task: &Task<'_>,
        number: u64,
        inode: u64,
        place: u64,
    ) -> Result<&BlockBytes, SfsError> {
        if self.metadata.blocks.used(number).is_none() {
            let bytes = self.read_virtual(task, number, inode)?;
            self.metadata.blocks.insert(number, inode, place, bytes);
        }
        Ok(&self.metadata.blocks.get(number).expect("the block was read").bytes)
    }

    /// Reads a virtual block of metadata, and marks it as dirty.
    pub(in crate::fs::sfs) fn metadata_block_mut(
        &mut self,
        task: &Task<'_>,
        number: u64,
        inode: u64,
        place: u64,
    ) -> Result<&mut BlockBytes, SfsError> {
        self.metadata_block(task, number, inode, place)?;
        self.is_changed = true;
        Ok(&mut self.metadata.blocks.get_mut(number).expect("the block was read").bytes)
    }

    /// Allocates a virtual block of metadata, of zeros.
    pub(in crate::fs::sfs) fn make_metadata_block(
        &mut self,
        task: &Task<'_>,
        inode: u64,
        place: u64,
    ) -> Result<u64, SfsError> {
        let number = self.metadata.dat.take(task)?;
        self.metadata.blocks.make(number, inode, place);
        self.inode_mut(task, inode)?.blocks += 1;
        Ok(number)
    }

    /// Reads a virtual block of metadata from the media, and verifies its checksum.
    pub(in crate::fs::sfs) fn read_virtual(
        &mut self,
        task: &Task<'_>,
        number: u64,
        inode: u64,
    ) -> Result<Box<BlockBytes>, SfsError> {
        let entry = self.metadata.dat.get(task, number)?;
        let what = || format!("virtual block {number} of inode {inode}");
        let mut bytes = format::zeroed();
        match entry.address.get() {
            _ if entry.is_given_up() => {
                Err(SfsError::Damaged { what: what(), why: "its content was lost in a repair".to_string() })
            }
            0 => Ok(bytes),
            address if address & format::DIRTY != 0 => {
                let why = "its DAT entry marks it as buffered data, and it is metadata".to_string();
                Err(SfsError::Damaged { what: what(), why })
            }
            address => {
                paged::check_address(&self.media, "DAT", address)?;
                self.media.read_metadata(task, address, &mut bytes[..])?;
                self.reads.blocks += 1;
                let crc = crc::crc32c(&bytes[..]);
                if crc != entry.crc.get() {
                    self.reads.damaged += 1;
                    let why = format!(
                        "its checksum is {crc:08x}, and should be {:08x} (block {address} of the log)",
                        entry.crc.get()
                    );
                    return Err(SfsError::Damaged { what: what(), why });
                }
                Ok(bytes)
            }
        }
    }

    /// A virtual block of metadata, without keeping it in memory.
    pub(in crate::fs::sfs) fn peek(
        &mut self,
        task: &Task<'_>,
        number: u64,
        inode: u64,
        entry: &DatEntry,
    ) -> Result<Box<BlockBytes>, String> {
        match self.metadata.blocks.get(number) {
            Some(block) if block.is_dirty || self.media.holds_stamps() => Ok(block.bytes.clone()),
            _ if entry.is_given_up() => Err("it was given up".to_string()),
            _ => self.read_virtual(task, number, inode).map_err(|error| error.to_string()),
        }
    }

    /// Frees a virtual block of a file.
    pub(in crate::fs::sfs) fn free_block(&mut self, task: &Task<'_>, inode: u64, number: u64) -> Result<(), SfsError> {
        let entry = self.metadata.dat.get(task, number)?;
        if entry.is_taken != 1 {
            let why = format!("it refers to virtual block {number}, which is free");
            return Err(SfsError::Damaged { what: format!("the map of inode {inode}"), why });
        }
        let address = entry.address.get();
        let (lies_at, kind) = match address & format::DIRTY {
            0 => {
                let is_data = self.metadata.blocks.get(number).is_none() && !self.inode(task, inode)?.holds_metadata();
                (address, if is_data { Kind::Data } else { Kind::Metadata })
            }
            _ => {
                let slot = (address & !format::DIRTY) as u32;
                let before = self.dirty_blocks.slot(slot).before;
                self.dirty_blocks.remove(slot);
                (before, Kind::Data)
            }
        };
        if lies_at != 0 {
            let segment = (lies_at / u64::from(self.media.segment_blocks())) as u32;
            if kind == Kind::Data {
                self.segments.count_death(segment, self.clock.tick);
            }
            self.segments.lose(segment, kind, entry.writes.get(), entry.modified.get());
        }
        self.metadata.blocks.remove(number);
        self.metadata.dat.free(task, number)?;
        let file = self.inode_mut(task, inode)?;
        file.blocks = file.blocks.saturating_sub(1);
        Ok(())
    }

    /// Gives up a virtual block: reading it fails until it is written anew.
    pub(in crate::fs::sfs) fn give_up(&mut self, task: &Task<'_>, number: u64) -> Result<(), SfsError> {
        self.metadata.blocks.remove(number);
        let mut entry = self.metadata.dat.get(task, number)?;
        self.drop_dirty(&mut entry);
        (entry.address, entry.crc, entry.is_lost) = (0.into(), 0.into(), 1);
        self.metadata.dat.set(task, number, &entry)
    }

    /// If a block is dirty, drops its bytes in memory: its entry then has the address of the stored version.
    pub(in crate::fs::sfs) fn drop_dirty(&mut self, entry: &mut DatEntry) {
        let address = entry.address.get();
        if address & DIRTY != 0 {
            let slot = (address & !DIRTY) as u32;
            entry.address = self.dirty_blocks.slot(slot).before.into();
            self.dirty_blocks.remove(slot);
        }
    }
}
