//! Mending faults, in memory.

use super::super::recount;
use super::super::survey::faults::Mend;
use super::Mending;
use crate::fs::sfs::error::SfsError;
use crate::fs::sfs::files::attributes::{FileKind, InodeNumber};
use crate::fs::sfs::files::directory;
use crate::fs::sfs::files::inode::Inode;
use crate::fs::sfs::media::format::{BLOCK, InodeImage};
use crate::fs::sfs::placement::Tick;
use zerocopy::FromZeros;

impl Mending<'_> {
    /// Mends a fault that a survey found.
    pub(super) fn mend(&mut self, mend: &Mend) -> Result<(), SfsError> {
        self.files.is_changed = true;
        match mend {
            Mend::Nothing | Mend::MapBlock { .. } => Ok(()),
            Mend::MakeRoot => self.make_new_root(),
            Mend::ClearInode(number) => self.clear_inode(*number),
            Mend::GiveUp(number) => self.files.give_up(self.task, *number),
            Mend::Replace { inode, number, via } => self.replace((*inode, *number, *via)),
            Mend::Line { directory, blocks } => self.line(*directory, blocks),
            Mend::Rewrite { directory, number, place } => self.rewrite(*directory, *number, *place),
            Mend::DropAttributes(inode) => {
                self.files.inode_mut(self.task, *inode)?.attributes = 0;
                Ok(())
            }
            Mend::DropName { directory, place } => self.drop_name(*directory, *place),
            Mend::SetKind { directory, place, inode, kind } => {
                let (number, at) = (place / BLOCK as u64, (place % BLOCK as u64) as usize);
                let virtual_block = self.files.mapped(self.task, *directory, number)?;
                let block = self.files.metadata_block_mut(self.task, virtual_block, *directory, number)?;
                directory::replace(block, at, *inode, *kind);
                Ok(())
            }
            Mend::SetParent { directory, parent } => {
                self.files.inode_mut(self.task, *directory)?.parent = *parent;
                Ok(())
            }
            Mend::Reconnect(inode) => self.reconnect(*inode),
            Mend::SetLinks { inode, links } => {
                self.files.inode_mut(self.task, *inode)?.links = *links;
                Ok(())
            }
            Mend::SetBlocks { inode, blocks } => {
                self.files.inode_mut(self.task, *inode)?.blocks = *blocks;
                Ok(())
            }
            Mend::Free(numbers) => numbers.iter().try_for_each(|number| {
                self.files.metadata.blocks.remove(*number);
                self.files.metadata.dat.free(self.task, *number)
            }),
            Mend::SetUsage(segment) => {
                let live = &self.survey.live[*segment as usize];
                self.files.segments.set_live(*segment, live.blocks, live.writes, live.modified, Tick(live.youngest));
                Ok(())
            }
            Mend::CountPage { page, counted } => {
                self.files.metadata.dat.set_counted(*page, *counted);
                Ok(())
            }
            Mend::CountUsed(used) => {
                self.files.metadata.dat.set_used(*used);
                Ok(())
            }
            Mend::CountInodes => recount::inodes(self.task, self.files),
        }
    }

    fn clear_inode(&mut self, number: u64) -> Result<(), SfsError> {
        self.files.inodes.remove(number);
        self.files.orphans.remove(&number);
        self.files.metadata.inode_file.set(self.task, number, &InodeImage::new_zeroed())
    }

    fn make_new_root(&mut self) -> Result<(), SfsError> {
        let number = InodeNumber::ROOT.0;
        if self.files.metadata.inode_file.count() <= number {
            self.files.metadata.inode_file.take_found(number);
        }
        self.clear_inode(number)?;
        let mut root = Inode::new(number, 0, FileKind::Directory, self.files.clock.wall(self.task));
        (root.permissions, root.links, root.parent) = (0o755, 2, number);
        self.files.inodes.insert(root);
        Ok(())
    }
}
