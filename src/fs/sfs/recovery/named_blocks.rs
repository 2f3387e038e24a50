//! Virtual blocks that maps name and that are free in the DAT: their numbers are not given out before the survey.
//!
//! The log is applied before the survey, and takes virtual blocks for names and maps. If it took one that a file names,
//! the file would read as another's bytes, with a right checksum.

use super::recount;
use crate::fs::sfs::error::SfsError;
use crate::fs::sfs::files::Files;
use crate::fs::sfs::files::attribute_blocks;
use crate::fs::sfs::files::map::{FANOUT, number_at};
use crate::fs::sfs::media::format::BlockBytes;
use crate::fs::sfs::media::invariants;
use crate::task::Task;
use std::collections::BTreeSet;

/// State of a walk over maps.
#[derive(Default)]
struct Walk {
    /// Numbers that are named, and seem free.
    seem_free: BTreeSet<u64>,
    /// Map blocks that were followed: in a damaged volume they may name each other.
    followed: BTreeSet<u64>,
}

/// The virtual blocks that maps name.
pub(super) struct NamedBlocks<'a> {
    pub task: &'a Task<'a>,
    pub files: &'a mut Files,
    /// Virtual blocks that there can be.
    pub most_taken: u64,
}

impl NamedBlocks<'_> {
    /// Withholds the numbers that maps and lists of attributes name, and that seem free, until the next checkpoint.
    /// Maps that cannot be read name nothing.
    ///
    /// # Errors
    ///
    /// If a page of the DAT cannot be read. A lenient opener has put another in its place.
    pub(super) fn withhold_named(&mut self) -> Result<(), SfsError> {
        let mut walk = Walk::default();
        for number in 1..self.files.metadata.inode_file.count() {
            let Ok(image) = self.files.metadata.inode_file.get(self.task, number) else { continue };
            if image.number.get() == 0 || invariants::inode(&image, number).is_err() {
                continue;
            }
            for root in image.roots {
                self.walk_map(number, root.get(), image.levels, &mut walk);
            }
            if let Some(first) = self.walk_block(number, image.attributes.get(), &mut walk) {
                let list = attribute_blocks::listed_blocks(&first).unwrap_or_default();
                list.into_iter().for_each(|number| self.note_if_free(number, &mut walk));
            }
        }
        if walk.seem_free.is_empty() {
            return Ok(());
        }
        for number in walk.seem_free {
            self.files.metadata.dat.withhold(self.task, number..number + 1)?;
        }
        recount::dat(self.task, &mut self.files.metadata.dat)
    }

    /// Notes a number of a map, and all below it.
    fn walk_map(&mut self, inode: u64, number: u64, level: u8, walk: &mut Walk) {
        if level == 0 {
            return self.note_if_free(number, walk);
        }
        if let Some(block) = self.walk_block(inode, number, walk) {
            for at in 0..FANOUT as usize {
                self.walk_map(inode, number_at(&block[..], at), level - 1, walk);
            }
        }
    }

    /// Notes the number of a block that names others, and reads it, once.
    fn walk_block(&mut self, inode: u64, number: u64, walk: &mut Walk) -> Option<Box<BlockBytes>> {
        self.note_if_free(number, walk);
        let is_new = number != 0 && walk.followed.insert(number);
        is_new.then(|| self.files.read_virtual(self.task, number, inode).ok()).flatten()
    }

    fn note_if_free(&mut self, number: u64, walk: &mut Walk) {
        let seems_free = match number < self.files.metadata.dat.len() {
            true => self.files.metadata.dat.get(self.task, number).is_ok_and(|entry| entry.is_taken == 0),
            false => true,
        };
        if seems_free && (1..self.most_taken).contains(&number) {
            walk.seem_free.insert(number);
        }
    }
}
