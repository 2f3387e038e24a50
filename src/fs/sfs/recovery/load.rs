//! Loading a checkpoint of which everything can be read. Pages of the DAT and of the inode file are read where they are
//! used.

use super::recount;
use crate::fs::sfs::error::SfsError;
use crate::fs::sfs::files::Files;
use crate::fs::sfs::log::segments::Segments;
use crate::fs::sfs::log::{Log, LogReader};
use crate::fs::sfs::media::format::Superblock;
use crate::fs::sfs::media::format::usage_pages;
use crate::fs::sfs::media::format::{INODES_VERSION, MEMORY};
use crate::fs::sfs::media::invariants;
use crate::fs::sfs::metadata::dat::Dat;
use crate::fs::sfs::metadata::inode_file::InodeFile;
use crate::fs::sfs::metadata::paged::PagedFile;
use crate::fs::sfs::placement::Grouping;
use crate::fs::sfs::write_back::Writer;
use crate::fs::sfs::{FileKind, Limits, Sfs};
use crate::task::Task;

/// A volume into which a checkpoint is loaded.
pub(super) struct Loading<'a> {
    pub task: &'a Task<'a>,
    pub limits: &'a Limits,
    pub superblock: &'a mut Superblock,
    pub log: &'a Log,
    pub files: &'a mut Files,
    pub grouping: &'a mut dyn Grouping,
}

impl<'a> Loading<'a> {
    /// Of this volume.
    pub fn of(task: &'a Task<'a>, volume: &'a mut Sfs) -> Loading<'a> {
        let Sfs { files, writer: Writer { limits, superblock, log, grouping, .. }, .. } = volume;
        Loading { task, limits, superblock, log, files, grouping: &mut **grouping }
    }

    /// A reader of the volume's log.
    pub fn reader(&self) -> LogReader<'_> {
        LogReader::new(self.task, &self.files.media, self.superblock.identity)
    }
}

impl Loading<'_> {
    /// Loads what the superblock names.
    ///
    /// # Errors
    ///
    /// If any of it is damaged, or is not what it must be.
    pub(super) fn load(&mut self) -> Result<(), SfsError> {
        let superblock = *self.superblock;
        self.files.is_changed = false;
        let media = &self.files.media;
        self.files.metadata.usage_file = PagedFile::open(self.task, "usage file", &superblock.usage_file, media)?;
        if self.files.metadata.usage_file.len() != usage_pages(self.files.segments.count()) {
            let why = format!(
                "it has {} pages for {} segments",
                self.files.metadata.usage_file.len(),
                self.files.segments.count()
            );
            return Err(SfsError::Damaged { what: "the usage file".to_string(), why });
        }
        for segment in 0..self.files.segments.count() {
            let page = self.files.metadata.usage_file.page(self.task, Segments::page_of(segment))?;
            let holds = invariants::usage_entry(&Segments::entry(segment, page), superblock.segment_blocks.get());
            holds.map_err(|why| SfsError::Damaged { what: format!("the usage of segment {segment}"), why })?;
            self.files.segments.load(segment, page);
        }
        self.files.segments.loaded();
        self.files.metadata.dat = Dat::open(self.task, &superblock.dat, superblock.used_blocks.get(), media)?;
        let counts = (superblock.inodes.get(), superblock.used_inodes.get());
        self.files.metadata.inode_file = InodeFile::open(self.task, &superblock.inode_file, counts, media)?;
        if superblock.version.get() < INODES_VERSION {
            recount::inodes(self.task, self.files)?;
        }
        self.files.metadata.inode_file.file().check_pages(invariants::inode_page);
        self.files.metadata.bound(self.limits.shares.dat_pages, self.limits.shares.inode_pages);
        let memories = (superblock.memories.get() as usize).min(MEMORY);
        let memory: Vec<f64> = superblock.memory[..memories].iter().map(|number| number.get()).collect();
        self.grouping.restore(&memory);
        let root = self.files.inode(self.task, 1)?;
        if root.kind != FileKind::Directory {
            let why = "it is no directory".to_string();
            return Err(SfsError::Damaged { what: "the root".to_string(), why });
        }
        self.find_orphans(superblock.first_orphan.get())
    }

    /// Collects the inodes without a name: who held them is gone.
    pub(super) fn find_orphans(&mut self, first: u64) -> Result<(), SfsError> {
        let mut at = first;
        while at != 0 && !self.files.orphans.contains(&at) {
            let image = self.files.metadata.inode_file.get(self.task, at)?;
            let inode = self.files.inode(self.task, at)?;
            if inode.links != 0 {
                let why = format!("inode {at} is in it, and has {} names", inode.links);
                return Err(SfsError::Damaged { what: "the chain of inodes without a name".to_string(), why });
            }
            self.files.orphans.insert(at);
            at = image.next.get();
        }
        Ok(())
    }
}
