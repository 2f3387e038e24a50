//! Loading a checkpoint of which parts are damaged: as much of the best one as can be read, and what the log has of the
//! rest.
//!
//! | lost | comes from |
//! |---|---|
//! | a tree block of a metadata file | the newest block records of the pages below it |
//! | a page of the DAT | each virtual block's newest block record, if the file it names has it mapped at that place |
//! | a page of the usage file | counting, which the survey does |
//! | a page of the inode file | nothing |
//! | the root's page, or most pages | an older checkpoint, if that has lost less, and the log since |
//!
//! The log is believed only if none of its summaries is damaged, and where the usage of segments agrees
//! (`doubtful_entries`): an older record of a block would bring old bytes back.
//! An entry of the DAT that was rebuilt so has no history.

use super::finding::{Finding, Structure};
use super::load::Loading;
use super::metadata_files::Loss;
use super::superblocks::{AllFound, Found};
use super::survey::Surveyor;
use super::survey::faults::Stage;
use crate::fs::sfs::error::{OpenSfsError, SfsError};
use crate::fs::sfs::files::dirty_blocks::DirtyBlocks;
use crate::fs::sfs::log::segments::Segments;
use crate::fs::sfs::media::format::{MEMORY, Superblock};
use crate::fs::sfs::metadata::blocks::MetadataBlocks;
use zerocopy::IntoBytes;

impl Loading<'_> {
    /// Loads the newest checkpoint, or an older one if that has lost less.
    pub(super) fn load_best(&mut self, found: &AllFound) -> Result<(Found, Loss), OpenSfsError> {
        let newest = found.newest()?;
        let loss = self.load_in_part(&newest.superblock)?;
        // Its shape is that of the volume, for as long as that lives.
        let shape = |it: &Superblock| (it.segment_blocks, it.segments, it.device_blocks);
        let other = |other: &&Found| {
            let (other, newest) = (&other.superblock, &newest.superblock);
            roots(other) != roots(newest) && shape(other) == shape(newest)
        };
        // The last changes to all files are given up only for the root, or for most of what there is. Of two copies
        // that differ, either may be wrong.
        let pages = self.files.metadata.dat.pages() + self.files.metadata.inode_file.file().len();
        let is_unreadable = loss.inode_pages.contains(&0) || pages == 0 || 2 * loss.pages > pages;
        if !is_unreadable && found.disagree.is_none() {
            return Ok((newest, loss));
        }
        let most = if is_unreadable { found.whole.len() } else { 1 };
        let mut best = (self.measure(&loss)?, newest);
        for other in found.whole.iter().skip(1).take(most).filter(other) {
            let Ok(loss) = self.load_in_part(&other.superblock) else { continue };
            let damage = self.measure(&loss)?;
            if damage < best.0 {
                best = (damage, *other);
            }
        }
        let chosen = best.1;
        let mut loss = self.load_in_part(&chosen.superblock)?;
        let is_copy = found.disagree.is_some() && found.whole.get(1).is_some_and(|copy| copy.place == chosen.place);
        if chosen.superblock.sequence != newest.superblock.sequence && !is_copy {
            let sequence = |found: &Found| format!("checkpoint {}", found.superblock.sequence);
            let finding = Finding::new(
                Structure::Superblock,
                sequence(&newest),
                "parts of its metadata cannot be read",
                "all of them",
                format!(
                    "{} takes its place: later changes are lost, except those that the log recorded before {}",
                    sequence(&chosen),
                    sequence(&newest)
                ),
            );
            loss.findings.insert(0, finding);
        }
        Ok((chosen, loss))
    }

    /// The loss with the loaded checkpoint: pages, and then blocks.
    fn measure(&mut self, loss: &Loss) -> Result<(usize, usize), SfsError> {
        let survey =
            Surveyor::new(self.task, self.files, self.log, self.superblock.identity).survey(true, &loss.rebuilt)?;
        let blocks = survey.faults.iter().filter(|fault| fault.stage <= Stage::Directories).count();
        Ok((loss.pages, blocks))
    }

    /// Loads what can be read of a checkpoint. The rest is rebuilt from the log, or is empty.
    pub(super) fn load_in_part(&mut self, superblock: &Superblock) -> Result<Loss, SfsError> {
        *self.superblock = *superblock;
        self.files.inodes.retain(|_| false);
        self.files.orphans.clear();
        self.files.metadata.blocks = MetadataBlocks::new(self.limits.shares.metadata_blocks);
        self.files.dirty_blocks = DirtyBlocks::new(self.files.media.block_width());
        self.files.segments = Segments::new(self.files.media.segments(), self.files.media.segment_blocks());
        self.files.is_changed = false;
        let mut loss = Loss::default();
        self.load_usage(&superblock.usage_file, &mut loss);
        let mut newest = None;
        self.load_dat(superblock, &mut newest, &mut loss)?;
        self.load_inodes(superblock, &mut newest, &mut loss)?;
        self.files.metadata.bound(self.limits.shares.dat_pages, self.limits.shares.inode_pages);
        let memories = (superblock.memories.get() as usize).min(MEMORY);
        let memory: Vec<f64> = superblock.memory[..memories].iter().map(|number| number.get()).collect();
        if memory.iter().all(|number| number.is_finite()) {
            self.grouping.restore(&memory);
        }
        self.load_orphans(superblock.first_orphan.get(), &mut loss);
        if !loss.findings.iter().any(|finding| finding.structure == Structure::UsageFile) {
            self.drop_doubtful_entries(&mut loss.rebuilt)?;
        }
        Ok(loss)
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
}

/// The roots of the metadata files of a checkpoint.
fn roots(superblock: &Superblock) -> [Vec<u8>; 3] {
    [superblock.dat, superblock.inode_file, superblock.usage_file].map(|root| root.as_bytes().to_vec())
}
