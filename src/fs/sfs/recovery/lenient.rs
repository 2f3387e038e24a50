//! Opening a volume of which parts are damaged: as much of the best checkpoint as can be read, and what the log says of
//! the rest.
//!
//! | lost | comes from |
//! |---|---|
//! | one superblock | the other |
//! | a tree block of a metadata file | the newest block records of the pages below it |
//! | a page of the DAT | each virtual block's newest block record, if the file it names has it mapped at that place |
//! | a page of the usage file | counting, which the survey does |
//! | a page of the inode file | nothing |
//! | the root's page, or most pages | an older checkpoint, if that has lost less, and the log since |
//!
//! The log is believed only if none of its summaries is damaged: an older record of a block would bring old bytes back.
//! Of an entry of the DAT that was made so, how often and when the block was written is not known.

use super::finding::{Finding, Structure};
use super::metadata_files::{Loss, Salvaged};
use super::superblocks::{self, AllFound, Found};
use super::survey::faults::Stage;
use crate::device::Medium;
use crate::fs::sfs::Sfs;
use crate::fs::sfs::error::{OpenSfsError, SfsError};
use crate::fs::sfs::format::{BLOCK, LARGEST, LOST, MEMORY, Superblock};
use crate::fs::sfs::inode_file::INODES;
use crate::fs::sfs::make::{Identity, check_shape};
use crate::fs::sfs::media::{Media, superblock_places};
use crate::fs::sfs::metadata_blocks::MetadataBlocks;
use crate::fs::sfs::segments::Segments;
use crate::fs::sfs::settings::SfsSettings;
use crate::fs::sfs::waiting::Waiting;
use crate::task::Task;

/// A volume of which parts may be damaged.
pub(super) struct Opened {
    pub volume: Sfs,
    /// What was found on the way; in memory it is put right already.
    pub findings: Vec<Finding>,
    /// Whether it was unmounted, so that the log goes on where it ended.
    pub is_clean: bool,
}

/// Opens what there is, and brings it forward by its log, in memory.
pub(super) fn open(
    task: &Task<'_>,
    mut medium: Medium,
    settings: &SfsSettings,
    identity: Identity,
) -> Result<Opened, OpenSfsError> {
    let (found, now) = superblocks::find(&mut medium, task.now())?;
    task.wait_until(now);
    let newest = found.newest()?;
    let (segment_blocks, segments) = (newest.superblock.segment_blocks.get(), newest.superblock.segments.get());
    let segment_bytes = u64::from(segment_blocks) * BLOCK as u64;
    if let Some(asked) = settings.segment_bytes.filter(|asked| *asked != segment_bytes) {
        return Err(OpenSfsError::Segment { found: segment_bytes, asked });
    }
    let (expected, there) = (newest.superblock.device_blocks.get(), medium.blocks());
    if there < expected || medium.cut(segment_blocks.max(1)) < (segment_blocks, segments) {
        return Err(OpenSfsError::Shape { expected, found: there });
    }
    let limits = check_shape(settings, segments, segment_blocks, medium.prescribes_segments())?;
    let mut findings = damaged_superblocks(&mut medium, &found, &newest)?;
    findings.extend(lost_changes(&newest));
    let media = Media::new(medium, segment_blocks, segments);
    media.go_on_in(newest.turn);
    let mut volume = Sfs::assemble(media, settings, limits, newest.superblock, identity);
    let (chosen, loss) = volume.load_best(task, &found)?;
    let is_whole = loss.findings.is_empty();
    findings.extend(loss.findings);
    findings.extend(found.disagree.as_deref().map(|why| {
        Finding::new(Structure::Superblock, "the superblocks", why, "two that are alike", "both are written anew")
    }));
    let mut is_clean = chosen.superblock.clean.get() == 1;
    if volume.last_partial(task)?.is_none() {
        volume.follow_the_higher(&chosen, &found);
    }
    findings.extend(volume.put_right_checkpoint(task, &mut is_clean)?);
    if !is_clean {
        if is_whole {
            // Without a log to change them, the survey looks at them.
            findings.extend(volume.put_right_counts(task)?);
        }
        findings.extend(volume.bring_forward(task, &chosen, &loss.inode_pages)?);
    }
    // No superblock may seem newer than the next.
    volume.superblock.sequence = newest.superblock.sequence;
    Ok(Opened { volume, findings, is_clean })
}

/// The mark of a mount that could not store what it was told to.
fn lost_changes(newest: &Found) -> Option<Finding> {
    let found = "a write or a flush failed when it was last mounted, and what was not synced before is lost";
    (newest.superblock.clean.get() == LOST).then(|| {
        Finding::new(
            Structure::Superblock,
            format!("the superblock at block {}", newest.place),
            found,
            "a mount that stored all that was changed",
            "the mark is taken away; what is lost does not come back",
        )
    })
}

/// The places of superblocks at which there is none that is whole.
fn damaged_superblocks(medium: &mut Medium, found: &AllFound, newest: &Found) -> Result<Vec<Finding>, OpenSfsError> {
    let repair = "it is written anew";
    let expected = format!("a superblock, as at block {}", newest.place);
    let mut findings = Vec::new();
    if medium.prescribes_segments() {
        // What was tried behind the newest that is whole; what lies before it is older.
        for (place, turn, why) in &found.damaged {
            if *turn == newest.turn && *place > newest.place {
                let place = format!("the superblock at block {place}");
                findings.push(Finding::new(Structure::Superblock, place, why.as_str(), &*expected, repair));
            }
        }
        return Ok(findings);
    }
    for place in superblock_places(newest.superblock.segment_blocks.get()) {
        if found.whole.iter().any(|found| found.place == place.0) {
            continue;
        }
        let why = found.damaged.iter().find(|(damaged, ..)| *damaged == place.0);
        let why = why.map_or("there is none", |(.., why)| why.as_str());
        let place = format!("the superblock at block {}", place.0);
        findings.push(Finding::new(Structure::Superblock, place, why, &*expected, repair));
    }
    Ok(findings)
}

impl Sfs {
    /// Loads the newest checkpoint, or an older one if that has lost less.
    fn load_best(&mut self, task: &Task<'_>, found: &AllFound) -> Result<(Found, Loss), OpenSfsError> {
        let newest = found.newest()?;
        let loss = self.load_in_part(task, &newest.superblock)?;
        let roots = |superblock: &Superblock| {
            [superblock.dat, superblock.inode_file].map(|root| (root.top.address.get(), root.top.crc.get()))
        };
        // Its shape is that of the volume, for as long as that lives.
        let shape = |it: &Superblock| (it.segment_blocks, it.segments, it.device_blocks);
        let older = |older: &&Found| {
            let (older, newest) = (&older.superblock, &newest.superblock);
            roots(older) != roots(newest) && shape(older) == shape(newest)
        };
        // The last changes to all files are given up only for the root, or for most of what there is.
        let pages = self.dat.pages() + self.inode_file.file().len();
        let is_unreadable = loss.inode_pages.contains(&0) || pages == 0 || 2 * loss.pages > pages;
        if !is_unreadable {
            return Ok((newest, loss));
        }
        let mut best = (self.measure(task, &loss)?, newest);
        for older in found.whole.iter().skip(1).filter(older) {
            let Ok(loss) = self.load_in_part(task, &older.superblock) else { continue };
            let damage = self.measure(task, &loss)?;
            if damage < best.0 {
                best = (damage, *older);
            }
        }
        let chosen = best.1;
        let mut loss = self.load_in_part(task, &chosen.superblock)?;
        if chosen.superblock.sequence != newest.superblock.sequence {
            let sequence = |found: &Found| format!("checkpoint {}", found.superblock.sequence);
            let finding = Finding::new(
                Structure::Superblock,
                sequence(&newest),
                "parts of its metadata cannot be read",
                "all of them",
                format!(
                    "{} takes its place: what changed between the two is lost, but for what was synced",
                    sequence(&chosen)
                ),
            );
            loss.findings.insert(0, finding);
        }
        Ok((chosen, loss))
    }

    /// How much is lost with a checkpoint that is loaded: pages, and then blocks.
    fn measure(&mut self, task: &Task<'_>, loss: &Loss) -> Result<(usize, usize), SfsError> {
        let survey = self.survey(task, true)?;
        let blocks = survey.faults.iter().filter(|fault| fault.stage <= Stage::Directories).count();
        Ok((loss.pages, blocks))
    }

    /// Loads what can be read of a checkpoint. What cannot is made of what the log says, or is empty.
    fn load_in_part(&mut self, task: &Task<'_>, superblock: &Superblock) -> Result<Loss, SfsError> {
        self.superblock = *superblock;
        self.inodes.retain(|_| false);
        self.orphans.clear();
        self.salvaged = Salvaged::default();
        self.metadata = MetadataBlocks::new(self.limits.shares.metadata_blocks);
        self.waiting = Waiting::new(self.media.block_width());
        self.segments = Segments::new(self.media.segments(), self.media.segment_blocks());
        self.is_changed = false;
        let mut loss = Loss::default();
        self.load_usage(task, &superblock.usage_file, &mut loss);
        let mut log = None;
        self.load_dat(task, superblock, &mut log, &mut loss)?;
        self.load_inodes(task, superblock, &mut log, &mut loss)?;
        self.bound_metadata_files();
        let memories = (superblock.memories.get() as usize).min(MEMORY);
        let memory: Vec<f64> = superblock.memory[..memories].iter().map(|number| number.get()).collect();
        if memory.iter().all(|number| number.is_finite()) {
            self.grouping.remember(&memory);
        }
        self.load_orphans(task, superblock.first_orphan.get(), &mut loss);
        Ok(loss)
    }

    /// Of two superblocks of a checkpoint that say differently where the log goes on, the higher number counts if the log
    /// vouches for neither: behind the lower one may lie what is older than the checkpoint.
    fn follow_the_higher(&mut self, chosen: &Found, found: &AllFound) {
        let end = |found: &Found| (found.superblock.next_partial.get(), found.superblock.chain);
        let address = |found: &Found| found.superblock.usage_file.top.address;
        let is_copy = |found: &&Found| address(found) == address(chosen);
        if let Some((next, chain)) = found.whole.iter().filter(is_copy).map(end).max_by_key(|(next, _)| *next)
            && next > self.superblock.next_partial.get()
        {
            (self.superblock.next_partial, self.superblock.chain) = (next.into(), chain);
        }
    }

    /// Where the log goes on behind a checkpoint that is loaded, as the log itself says, and not the superblock.
    fn put_right_checkpoint(&mut self, task: &Task<'_>, is_clean: &mut bool) -> Result<Vec<Finding>, OpenSfsError> {
        let mut findings = Vec::new();
        let mut tell = |why: &str, repair: &str| {
            findings.push(Finding::new(Structure::Superblock, "the superblock", why, "what the log says", repair));
        };
        if let Err(error) = self.check_last_partial(task) {
            if let Some(last) = self.last_partial(task)? {
                self.superblock.next_partial = (last.sequence.get().min(LARGEST) + 1).into();
                self.superblock.chain = last.crc;
                self.superblock.identity = last.identity;
            }
            tell(&error.to_string(), "the log goes on behind that one");
        }
        if let Err(error) = self.check_open_segment(task) {
            (self.superblock.open_segment, self.superblock.open_block) = (u32::MAX.into(), 0.into());
            tell(&error.to_string(), "the log goes on in another one");
        }
        // The first of the log may be damaged, too: what follows it is looked for, which a mount leaves out.
        if *is_clean && (self.log_goes_on(task)? || !self.find_log(task)?.partials.is_empty()) {
            *is_clean = false;
            tell("it says that the volume was unmounted, and the log goes on behind it", "the log is applied");
        }
        Ok(findings)
    }

    /// What is in use, as the superblock and the pages of the metadata files say.
    fn put_right_counts(&mut self, task: &Task<'_>) -> Result<Option<Finding>, SfsError> {
        let Err(why) = self.counts_hold() else { return Ok(None) };
        self.recount_dat(task)?;
        self.recount_inodes(task)?;
        let expected = "as many as the metadata files hold";
        Ok(Some(Finding::new(Structure::Count, "the superblock's counts", why, expected, "they are counted anew")))
    }

    /// Inodes without a name that were held.
    fn load_orphans(&mut self, task: &Task<'_>, first: u64, loss: &mut Loss) {
        if let Err(error) = self.find_orphans(task, first) {
            let place = "the chain of inodes without a name";
            let repair = "it is cut off there; what has no name is freed, or goes to lost+found";
            let finding = Finding::new(Structure::Count, place, error.to_string(), "inodes without a name", repair);
            loss.findings.push(finding);
        }
    }

    /// Does again what the log says since a checkpoint that is loaded.
    fn bring_forward(
        &mut self,
        task: &Task<'_>,
        chosen: &Found,
        inode_pages: &[usize],
    ) -> Result<Vec<Finding>, OpenSfsError> {
        let mut findings = Vec::new();
        let rolled = self.roll_forward(task);
        if let Err(error) = rolled {
            let repair = "what was synced since the last checkpoint is lost";
            let place = "the log since the last checkpoint";
            findings.push(Finding::new(Structure::Log, place, error.to_string(), "what can be done again", repair));
            self.load_in_part(task, &chosen.superblock)?;
        } else {
            findings.extend(rolled.unwrap_or_default());
            // As for a mount: a repair ends with a checkpoint, for which there must be room.
            self.release_by_log();
        }
        // Of an inode that is lost the log tells only what changed: the rest of it would read as zeros.
        let is_lost = |number: u64| inode_pages.contains(&((number / INODES) as usize));
        let partial: Vec<u64> =
            self.inodes.iter().map(|inode| inode.number).filter(|number| is_lost(*number)).collect();
        for number in partial.into_iter().filter(|number| *number < chosen.superblock.inodes.get()) {
            self.inodes.remove(number);
            self.orphans.remove(&number);
        }
        Ok(findings)
    }
}
