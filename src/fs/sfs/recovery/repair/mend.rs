//! Mending faults, in memory.

use super::super::rebuilt_entries::RebuiltEntries;
use super::super::survey::Survey;
use super::super::survey::faults::Mend;
use crate::fs::sfs::Sfs;
use crate::fs::sfs::error::SfsError;
use crate::fs::sfs::files::attributes::{FileKind, InodeNumber};
use crate::fs::sfs::files::directory;
use crate::fs::sfs::files::inode::Inode;
use crate::fs::sfs::media::format::{BLOCK, InodeImage};
use crate::fs::sfs::placement::Tick;
use crate::task::Task;
use zerocopy::FromZeros;

impl Sfs {
    /// Mends a fault that a survey found.
    pub(super) fn mend(
        &mut self,
        task: &Task<'_>,
        survey: &Survey,
        rebuilt: &mut RebuiltEntries,
        mend: &Mend,
    ) -> Result<(), SfsError> {
        self.files.is_changed = true;
        match mend {
            Mend::Nothing | Mend::MapBlock { .. } => Ok(()),
            Mend::MakeRoot => self.make_new_root(task),
            Mend::ClearInode(number) => self.clear_inode(task, *number),
            Mend::GiveUp(number) => self.files.give_up(task, *number),
            Mend::Replace { inode, number, via } => self.replace(task, survey, rebuilt, (*inode, *number, *via)),
            Mend::Line { directory, blocks } => self.line(task, *directory, blocks),
            Mend::Rewrite { directory, number, place } => self.rewrite(task, *directory, *number, *place),
            Mend::DropAttributes(inode) => {
                self.files.inode_mut(task, *inode)?.attributes = 0;
                Ok(())
            }
            Mend::DropName { directory, place } => self.drop_name(task, *directory, *place),
            Mend::SetKind { directory, place, inode, kind } => {
                let (number, at) = (place / BLOCK as u64, (place % BLOCK as u64) as usize);
                let virtual_block = self.files.mapped(task, *directory, number)?;
                let block = self.files.metadata_block_mut(task, virtual_block, *directory, number)?;
                directory::replace(block, at, *inode, *kind);
                Ok(())
            }
            Mend::SetParent { directory, parent } => {
                self.files.inode_mut(task, *directory)?.parent = *parent;
                Ok(())
            }
            Mend::Reconnect(inode) => self.reconnect(task, *inode),
            Mend::SetLinks { inode, links } => {
                self.files.inode_mut(task, *inode)?.links = *links;
                Ok(())
            }
            Mend::SetBlocks { inode, blocks } => {
                self.files.inode_mut(task, *inode)?.blocks = *blocks;
                Ok(())
            }
            Mend::Free(numbers) => numbers.iter().try_for_each(|number| {
                self.files.metadata.blocks.remove(*number);
                self.files.metadata.dat.free(task, *number)
            }),
            Mend::SetUsage(segment) => {
                let live = &survey.live[*segment as usize];
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
            Mend::CountInodes => self.recount_inodes(task),
        }
    }

    fn clear_inode(&mut self, task: &Task<'_>, number: u64) -> Result<(), SfsError> {
        self.files.inodes.remove(number);
        self.files.orphans.remove(&number);
        self.files.metadata.inode_file.set(task, number, &InodeImage::new_zeroed())
    }

    fn make_new_root(&mut self, task: &Task<'_>) -> Result<(), SfsError> {
        let number = InodeNumber::ROOT.0;
        if self.files.metadata.inode_file.count() <= number {
            self.files.metadata.inode_file.take_found(number);
        }
        self.clear_inode(task, number)?;
        let mut root = Inode::new(number, 0, FileKind::Directory, self.files.clock.wall(task));
        (root.permissions, root.links, root.parent) = (0o755, 2, number);
        self.files.inodes.insert(root);
        Ok(())
    }
}
