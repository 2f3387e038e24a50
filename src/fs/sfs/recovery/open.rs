//! Mounting: the newer superblock that is whole, the metadata files under it, and what the log says since.

use super::superblocks;
use crate::device::Medium;
use crate::fs::sfs::dat::Dat;
use crate::fs::sfs::error::{OpenSfsError, SfsError};
use crate::fs::sfs::format::{BLOCK, MEMORY, VERSION};
use crate::fs::sfs::inode_file::InodeFile;
use crate::fs::sfs::invariants;
use crate::fs::sfs::log::Head;
use crate::fs::sfs::make::{Identity, check_shape};
use crate::fs::sfs::media::Media;
use crate::fs::sfs::paged::PagedFile;
use crate::fs::sfs::segments::{Segments, State};
use crate::fs::sfs::settings::SfsSettings;
use crate::fs::sfs::{FileKind, Sfs};
use crate::task::Task;

/// How a volume may be used.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    ReadOnly,
    /// It may be written if nothing of its log is damaged.
    IfWhole,
    DespiteDamage,
}

impl Sfs {
    /// Mounts the volume on a medium. After a crash, it rolls the log forward, and takes a checkpoint; if it may only
    /// be read, in memory alone.
    ///
    /// If parts of the log are [damaged](Sfs::damage), what is whole is applied, in memory alone, and the volume can
    /// only be read.
    pub fn open(
        task: &Task<'_>,
        medium: Medium,
        settings: &SfsSettings,
        identity: Identity,
        read_only: bool,
    ) -> Result<Sfs, OpenSfsError> {
        let access = if read_only { Access::ReadOnly } else { Access::IfWhole };
        Sfs::open_for(task, medium, settings, identity, access)
    }

    /// Mounts the volume on a medium, and goes on although parts of its log are [damaged](Sfs::damage): what could not
    /// be applied of it is lost then.
    pub fn open_despite_damage(
        task: &Task<'_>,
        medium: Medium,
        settings: &SfsSettings,
        identity: Identity,
    ) -> Result<Sfs, OpenSfsError> {
        Sfs::open_for(task, medium, settings, identity, Access::DespiteDamage)
    }

    fn open_for(
        task: &Task<'_>,
        mut medium: Medium,
        settings: &SfsSettings,
        identity: Identity,
        access: Access,
    ) -> Result<Sfs, OpenSfsError> {
        let (found, now) = superblocks::find(&mut medium, task.now())?;
        task.wait_until(now);
        let superblocks::Found { superblock, turn, .. } = found.newest()?;
        if let Some(why) = found.disagree {
            return Err(SfsError::Damaged { what: "one of the superblocks".to_string(), why }.into());
        }
        let (segment_blocks, segments) = (superblock.segment_blocks.get(), superblock.segments.get());
        let segment_bytes = u64::from(segment_blocks) * BLOCK as u64;
        if let Some(asked) = settings.segment_bytes.filter(|asked| *asked != segment_bytes) {
            return Err(OpenSfsError::Segment { found: segment_bytes, asked });
        }
        let (expected, found) = (superblock.device_blocks.get(), medium.blocks());
        // A device may have grown; the volume does not.
        if found < expected || medium.cut(segment_blocks.max(1)) < (segment_blocks, segments) {
            return Err(OpenSfsError::Shape { expected, found });
        }
        let limits = check_shape(settings, segments, segment_blocks, medium.prescribes_segments())?;
        let media = Media::new(medium, segment_blocks, segments);
        media.go_on_in(turn);
        let mut sfs = Sfs::assemble(media, settings, limits, superblock, identity);
        sfs.load(task)?;
        sfs.check_checkpoint(task)?;
        let is_clean = superblock.clean.get() == 1;
        if !is_clean {
            sfs.damage = sfs.roll_forward(task)?;
        }
        let is_damaged = !sfs.damage.is_empty();
        if access == Access::ReadOnly || is_damaged && access == Access::IfWhole {
            sfs.read_only = Some(match access {
                Access::ReadOnly => "it was mounted so".to_string(),
                _ => "parts of its log are damaged, and 'flashpath fsck' repairs it".to_string(),
            });
            // Whatever was rolled forward is durable in the log.
            sfs.is_changed = false;
            return Ok(sfs);
        }
        if !is_clean {
            // The log may have taken all that was free, and gone on in what it freed: that is free for the checkpoint
            // below, too. If only the process ended, the device may hold the log in its memory yet.
            sfs.flush_device(task)?;
            sfs.check_emptied(task)?;
            for segment in sfs.release_by_log() {
                sfs.discard(task, segment)?;
            }
        }
        sfs.tidy_zones(task)?;
        if is_clean && superblock.version.get() == VERSION {
            sfs.go_on(task);
            // It is no longer unmounted, and that must be durable before the first fsync adds to the log: a superblock
            // that says that nothing follows would have the next mount not look for it.
            sfs.write_superblocks(task, false)?;
        } else {
            sfs.checkpoint(task, false)?;
            // Should the power fail again and again, and nothing else be done in between, there must be room for the
            // next such checkpoint.
            sfs.write_back(task).keep_room()?;
        }
        sfs.discard_what_is_free(task);
        Ok(sfs)
    }

    /// Reads what the superblock names.
    fn load(&mut self, task: &Task<'_>) -> Result<(), SfsError> {
        let superblock = self.superblock;
        self.is_changed = false;
        let media = &self.media;
        self.usage_file = PagedFile::open(task, "usage file", &superblock.usage_file, media)?;
        if self.usage_file.len() != Segments::pages(self.segments.count()) {
            let why = format!("it has {} pages for {} segments", self.usage_file.len(), self.segments.count());
            return Err(SfsError::Damaged { what: "the usage file".to_string(), why });
        }
        for segment in 0..self.segments.count() {
            let page = self.usage_file.page(task, Segments::page_of(segment))?;
            let holds = invariants::usage_entry(&Segments::entry(segment, page), superblock.segment_blocks.get());
            holds.map_err(|why| SfsError::Damaged { what: format!("the usage of segment {segment}"), why })?;
            self.segments.load(segment, page);
        }
        self.segments.loaded();
        self.dat = Dat::open(task, &superblock.dat, superblock.used_blocks.get(), media)?;
        let counts = (superblock.inodes.get(), superblock.used_inodes.get());
        self.inode_file = InodeFile::open(task, &superblock.inode_file, counts, media)?;
        if superblock.version.get() < VERSION {
            self.recount_inodes(task)?;
        }
        self.inode_file.file().check_pages(invariants::inode_page);
        self.bound_metadata_files();
        let memories = (superblock.memories.get() as usize).min(MEMORY);
        let memory: Vec<f64> = superblock.memory[..memories].iter().map(|number| number.get()).collect();
        self.grouping.remember(&memory);
        let root = self.inode(task, 1)?;
        if root.kind != FileKind::Directory {
            let why = "it is no directory".to_string();
            return Err(SfsError::Damaged { what: "the root".to_string(), why });
        }
        self.find_orphans(task, superblock.first_orphan.get())
    }

    /// Inodes without a name: who held them is gone.
    pub(super) fn find_orphans(&mut self, task: &Task<'_>, first: u64) -> Result<(), SfsError> {
        let mut at = first;
        while at != 0 && !self.orphans.contains(&at) {
            let image = self.inode_file.get(task, at)?;
            let inode = self.inode(task, at)?;
            if inode.links != 0 {
                let why = format!("inode {at} is in it, and has {} names", inode.links);
                return Err(SfsError::Damaged { what: "the chain of inodes without a name".to_string(), why });
            }
            self.orphans.insert(at);
            at = image.next.get();
        }
        Ok(())
    }

    /// Goes on in the segment that was open when the volume was unmounted.
    pub(super) fn go_on(&mut self, task: &Task<'_>) {
        let (segment, block) = (self.superblock.open_segment.get(), self.superblock.open_block.get());
        if segment < self.segments.count()
            && block < self.media.segment_blocks()
            && matches!(self.segments.get(segment).state, State::Written | State::Emptied)
            && self.media.goes_on_at(segment, block)
            && self.open_segment_ends_at(task, segment, block).is_ok_and(|ends| ends)
        {
            self.segments.reopen(segment);
            self.mixed = Some(Head { segment, block });
        }
    }

    /// Zones that are open and will not be written on take what a device has few of.
    pub(super) fn tidy_zones(&mut self, task: &Task<'_>) -> Result<(), SfsError> {
        if !self.media.is_zoned() {
            return Ok(());
        }
        for segment in 0..self.segments.count() {
            let goes_on = segment == self.superblock.open_segment.get() && self.superblock.clean.get() == 1;
            match self.segments.get(segment).state {
                _ if goes_on => {}
                State::Free => self.media.discard(task, segment)?,
                _ => self.media.end(task, segment)?,
            }
        }
        Ok(())
    }
}
