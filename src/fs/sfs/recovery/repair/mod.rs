//! fsck: mending what the survey finds.
//!
//! A repair works in memory on what could be opened. Each pass surveys the whole volume and mends the faults of the
//! earliest stage that has any, until a survey finds nothing. One checkpoint then makes it durable: a repair that is
//! cut off leaves the volume as it was.
//!
//! | stage | faults | mended by |
//! |---|---|---|
//! | inodes | no inode, or the root is no directory | freeing it; a new root |
//! | blocks | maps that name what cannot be, damaged blocks, map blocks, targets and attributes | giving up the block; rebuilding a map from block records; taking attributes away |
//! | directories | damaged blocks, holes | rewriting the records that are left; closing up |
//! | names | names that cannot be | taking them away; setting the kind |
//! | tree | no name | a name in lost+found, or freeing |
//! | inode | counts of links and blocks, `..` | setting them |
//! | leaks | virtual blocks that nothing names | freeing them |
//! | sums | usage of segments, counts of the volume | setting them |
//!
//! Lost bytes are never replaced by zeros. A block whose bytes are not what was written is given up: its file keeps
//! its size, and reading that block fails (EIO) until it is written whole, punched or cut off. (As btrfs does; e2fsck
//! does not look at data.) So with the part of a file below a map block that is lost, and with the target of a link.
//! Inodes that have lost their names get one in lost+found.

mod blocks;
mod directories;
mod mend;

use super::finding::{Finding, Structure};
use super::mount;
use super::open::{Opened, Tolerance, open};
use super::rebuilt_entries::RebuiltEntries;
use super::recount;
use super::survey::faults::{Fault, Stage};
use super::survey::{Survey, surveyor};
use crate::device::Medium;
use crate::fs::sfs::Sfs;
use crate::fs::sfs::error::{OpenSfsError, SfsError};
use crate::fs::sfs::files::Files;
use crate::fs::sfs::log::Log;
use crate::fs::sfs::make::Identity;
use crate::fs::sfs::media::format::{DIRTY, Superblock};
use crate::fs::sfs::settings::SfsSettings;
use crate::fs::sfs::write_back::Writer;
use crate::task::Task;
use crate::time::Time;

/// Surveys until nothing is found: there are eight stages, and a mend may lead to faults of an earlier one.
const MOST_PASSES: usize = 40;

/// The result of a repair.
#[derive(Debug)]
pub struct Repaired {
    /// Damage that was mended. If empty, nothing was written.
    pub findings: Vec<Finding>,
    /// Damage that is left.
    pub left: Vec<Finding>,
}

/// Checks the volume on a medium, and mends its faults. `identity` has the time at which that is done.
///
/// Fails as [`check`](super::check()) does, and if the device fails. Then the volume is as it was, or as after the
/// repair.
pub fn repair(medium: Medium, settings: &SfsSettings, identity: Identity) -> Result<Repaired, OpenSfsError> {
    let task = &Task::at(Time::ZERO);
    Ok(repair_opened(task, open(task, medium, settings, identity, Tolerance::Lenient)?)?.0)
}

/// Repairs what could be opened, and hands it back.
pub(super) fn repair_opened(task: &Task<'_>, opened: Opened) -> Result<(Repaired, Sfs), SfsError> {
    let Opened { mut volume, mut findings, mut rebuilt, is_clean: was_unmounted } = opened;
    let (mut is_clean, mut reads_data) = (false, true);
    for pass in 0..MOST_PASSES {
        // Names and sums change no data; what a map names anew must be read.
        let survey = surveyor(task, &mut volume).survey(reads_data, &rebuilt)?;
        let mut mending = Mending::of(task, &mut volume, &survey, &mut rebuilt);
        if pass == 0 {
            survey.name(&mut findings);
        }
        let Some(stage) = survey.faults.iter().map(|fault| fault.stage).min() else {
            is_clean = true;
            mending.drop_unnamed_metadata();
            mending.drop_unnamed_data()?;
            break;
        };
        reads_data = stage <= Stage::Blocks;
        let faults: Vec<Fault> = survey.faults.iter().filter(|fault| fault.stage == stage).cloned().collect();
        recount::dat(task, &mut mending.files.metadata.dat)?;
        recount::inodes(task, mending.files)?;
        mending.mend_maps(&faults)?;
        for fault in &faults {
            mending.mend(&fault.mend)?;
        }
        // Sums follow from what was mended: they are wrong in themselves only at first.
        let sums_count = pass == 0;
        for finding in survey.findings() {
            let is_sum = matches!(finding.structure, Structure::Usage | Structure::Count);
            let is_known = |known: &Finding| known.place == finding.place && known.offset == finding.offset;
            if (sums_count || !is_sum) && !findings.iter().any(is_known) {
                findings.push(finding);
            }
        }
    }
    if findings.is_empty() && is_clean {
        return Ok((Repaired { findings, left: Vec::new() }, volume));
    }
    // Segments that the log freed may be written over once the log is durable.
    volume.writer.flush(task, &volume.files.media)?;
    mount::tidy_zones(task, &volume)?;
    if was_unmounted {
        mount::go_on(task, &mut volume);
    }
    volume.write_back(task).checkpoint(true)?;
    let left = surveyor(task, &mut volume).survey(true, &rebuilt)?.findings();
    volume.files.media.close(task)?;
    Ok((Repaired { findings, left }, volume))
}

/// A volume in memory whose faults are mended, as a survey found them.
struct Mending<'a> {
    task: &'a Task<'a>,
    superblock: &'a Superblock,
    log: &'a Log,
    files: &'a mut Files,
    survey: &'a Survey,
    rebuilt: &'a mut RebuiltEntries,
}

impl<'a> Mending<'a> {
    fn of(task: &'a Task<'a>, volume: &'a mut Sfs, survey: &'a Survey, rebuilt: &'a mut RebuiltEntries) -> Mending<'a> {
        let Sfs { files, writer: Writer { superblock, log, .. }, .. } = volume;
        Mending { task, superblock, log, files, survey, rebuilt }
    }
}

impl Mending<'_> {
    /// Drops changed blocks of metadata that nothing names, so that they are not written.
    fn drop_unnamed_metadata(&mut self) {
        for number in self.files.metadata.blocks.dirty_numbers() {
            if !self.survey.claimed.has(number) {
                self.files.metadata.blocks.remove(number);
            }
        }
    }

    /// Drops bytes of log records whose file or virtual block was given up, so that they are not written.
    fn drop_unnamed_data(&mut self) -> Result<(), SfsError> {
        let slots: Vec<u32> = self.files.dirty_blocks.all().collect();
        for slot in slots {
            let waits = *self.files.dirty_blocks.slot(slot);
            let is_named = self.survey.claimed.has(waits.number) && self.survey.inodes.contains_key(&waits.inode);
            let entry = self.files.metadata.dat.get(self.task, waits.number)?;
            if !is_named || entry.address.get() != DIRTY | u64::from(slot) {
                self.files.dirty_blocks.remove(slot);
            }
        }
        Ok(())
    }
}
