//! The one way from a medium to a volume in memory: superblocks, metadata files, fields, log. Nothing is written.

use super::checkpoint_fields::CheckpointFields;
use super::finding::{Finding, Structure};
use super::load::Loading;
use super::metadata_files::Loss;
use super::named_blocks::NamedBlocks;
use super::rebuilt_entries::RebuiltEntries;
use super::roll_forward::roll_forward;
use super::superblocks::{self, AllFound, Damaged, Found};
use crate::device::Medium;
use crate::fs::sfs::error::{OpenSfsError, SfsError};
use crate::fs::sfs::files::Files;
use crate::fs::sfs::make::{Identity, assemble, check_shape};
use crate::fs::sfs::media::format::INODES;
use crate::fs::sfs::media::format::{BLOCK, LOST};
use crate::fs::sfs::media::{Media, superblock_places};
use crate::fs::sfs::settings::SfsSettings;
use crate::fs::sfs::write_back::release_by_log;
use crate::fs::sfs::{Limits, Sfs};
use crate::task::Task;

/// The damage that [`open`] tolerates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tolerance {
    /// For a mount: what can be read is trusted, so whatever is wrong with a checkpoint refuses the volume.
    Strict,
    /// For `check`, `repair` and `segment_map`: whatever can be read is loaded, and the rest is rebuilt or left out.
    Lenient,
}

/// A volume in memory.
pub(super) struct Opened {
    pub volume: Sfs,
    /// Damage, which is corrected in memory. A strict opener finds that of the log, and of several superblocks.
    pub findings: Vec<Finding>,
    /// DAT entries that were rebuilt from the log.
    pub rebuilt: RebuiltEntries,
    /// True if it was unmounted, so that the log goes on where it ended.
    pub is_clean: bool,
}

/// A medium, and the superblocks of the volume on it.
pub(super) struct Located {
    pub medium: Medium,
    pub superblocks: AllFound,
    /// The newest superblock that is whole.
    pub newest: Found,
}

/// Finds the superblocks of a volume. Each opener begins with it, and [`mark_lost`](super::mark_lost()) needs no more.
///
/// # Errors
///
/// If there is no superblock that is whole, or if it is of another version.
pub(super) fn locate(task: &Task<'_>, mut medium: Medium) -> Result<Located, OpenSfsError> {
    let (superblocks, now) = superblocks::find(&mut medium, task.now())?;
    task.wait_until(now);
    let newest = superblocks.newest()?;
    Ok(Located { medium, superblocks, newest })
}

impl Located {
    /// Checks the shape of the volume against the medium and the settings, and answers what follows from it.
    fn check_shape(&self, settings: &SfsSettings) -> Result<Limits, OpenSfsError> {
        let superblock = &self.newest.superblock;
        let (segment_blocks, segments) = (superblock.segment_blocks.get(), superblock.segments.get());
        let segment_bytes = u64::from(segment_blocks) * BLOCK as u64;
        if let Some(asked) = settings.segment_bytes.filter(|asked| *asked != segment_bytes) {
            return Err(OpenSfsError::Segment { found: segment_bytes, asked });
        }
        let (expected, found) = (superblock.device_blocks.get(), self.medium.blocks());
        // A device may have grown; the volume does not.
        if found < expected || self.medium.cut(segment_blocks.max(1)) < (segment_blocks, segments) {
            return Err(OpenSfsError::Shape { expected, found });
        }
        check_shape(settings, segments, segment_blocks, self.medium.prescribes_segments())
    }
}

/// The medium, cut into the segments of its volume. The next superblock is written behind the newest one, or, if that
/// is followed by a torn one, into the other zone. On a device of blocks, a torn one is wiped before.
pub(super) fn media_of(medium: Medium, superblocks: &AllFound, newest: &Found) -> Media {
    let superblock = &newest.superblock;
    let media = Media::new(medium, superblock.segment_blocks.get(), superblock.segments.get());
    media.resume_superblocks_in(newest.turn);
    if media.is_zoned() && !superblocks.torn_zone(newest).is_empty() {
        media.leave_superblock_zone();
    }
    let next = superblock_places(superblock.segment_blocks.get())[((superblock.sequence.get() + 1) % 2) as usize];
    if !media.is_zoned() && superblocks.damaged.iter().any(|damaged| damaged.place == next.0) {
        media.note_damaged_place();
    }
    media
}

/// Opens the volume on a medium, and brings it forward by its log, in memory.
///
/// | damage | strict | lenient |
/// |---|---|---|
/// | no superblock is whole; another version, segment size or device size than there can be | refused | refused |
/// | one superblock | the other serves | the other serves, reported |
/// | on zones, two superblocks of one zone behind the newest whole one | the newest whole one serves, reported | the same |
/// | two superblocks of one checkpoint differ | refused | the newer serves, reported |
/// | the mark of a mount that lost changes | reported by [`Sfs::has_lost_before`] | reported |
/// | a tree block of a metadata file | refused | rebuilt from the log, reported |
/// | a page of the DAT or of the inode file | reading it fails | rebuilt from the log, or lost, reported |
/// | a page or an entry of the usage file | refused | counted anew, reported |
/// | the root, or most pages | refused | an older checkpoint serves if less of it is lost, reported |
/// | a count, the end of the log, or the open segment of the superblock | refused | corrected, reported |
/// | an unmounted volume behind which the log goes on | refused | the log is applied, reported |
/// | a part of the log that was durable | the rest is applied, reported | the rest is applied, reported |
/// | a log that cannot be applied | refused | left out, reported |
///
/// A mount is read-only if a strict opener reports anything, unless it was asked to go on despite damage.
///
/// # Errors
///
/// If the table says so, or if the device fails.
pub(super) fn open(
    task: &Task<'_>,
    medium: Medium,
    settings: &SfsSettings,
    identity: Identity,
    tolerance: Tolerance,
) -> Result<Opened, OpenSfsError> {
    let located = locate(task, medium)?;
    let limits = located.check_shape(settings)?;
    let mut findings = superblock_findings(&located, tolerance)?;
    let Located { medium, superblocks, newest } = located;
    let media = media_of(medium, &superblocks, &newest);
    let mut volume = assemble(media, settings, limits, newest.superblock, identity);
    let (chosen, mut loss) = load_checkpoint(task, &mut volume, &superblocks, tolerance)?;
    let is_whole = loss.findings.is_empty();
    findings.append(&mut loss.findings);
    let mut is_clean = chosen.superblock.clean.get() == 1;
    match tolerance {
        Tolerance::Strict => fields(task, &mut volume).check_checkpoint()?,
        Tolerance::Lenient => {
            if fields(task, &mut volume).last_partial()?.is_none() {
                fields(task, &mut volume).follow_the_higher(&chosen, &superblocks);
            }
            findings.extend(fields(task, &mut volume).correct_checkpoint(&mut is_clean)?);
        }
    }
    if !is_clean {
        if tolerance == Tolerance::Lenient && is_whole {
            // Without a log to change them, the survey looks at them.
            findings.extend(fields(task, &mut volume).correct_counts()?);
        }
        if tolerance == Tolerance::Lenient {
            let most_taken = volume.writer.limits.most_taken(volume.files.media.log_blocks());
            NamedBlocks { task, files: &mut volume.files, most_taken }.withhold_named()?;
        }
        findings.extend(apply_log_since(task, &mut volume, &chosen, &mut loss, tolerance)?);
    }
    // No superblock may seem newer than the next.
    volume.writer.superblock.sequence = newest.superblock.sequence;
    Ok(Opened { volume, findings, rebuilt: loss.rebuilt, is_clean })
}

/// Findings in the superblocks. A strict opener refuses two that differ, and reports damage only if the newest whole
/// one is of an older checkpoint.
fn superblock_findings(located: &Located, tolerance: Tolerance) -> Result<Vec<Finding>, SfsError> {
    let Located { superblocks, newest, .. } = located;
    match (tolerance, &superblocks.disagree) {
        (Tolerance::Strict, Some(why)) => {
            Err(SfsError::Damaged { what: "one of the superblocks".to_string(), why: why.clone() })
        }
        (Tolerance::Strict, None) if superblocks.are_rotten_behind(newest) => Ok(damaged_superblocks(located)),
        (Tolerance::Strict, None) => Ok(Vec::new()),
        (Tolerance::Lenient, disagree) => {
            let differ = disagree.as_deref().map(|why| {
                let (expected, repair) = ("two that are alike", "both are written anew");
                Finding::new(Structure::Superblock, "the superblocks", why, expected, repair)
            });
            Ok(damaged_superblocks(located).into_iter().chain(lost_changes(newest)).chain(differ).collect())
        }
    }
}

/// The mark of a mount that lost changes.
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

/// The places of superblocks at which none is whole.
fn damaged_superblocks(located: &Located) -> Vec<Finding> {
    let Located { medium, superblocks: found, newest } = located;
    let repair = "it is written anew";
    let expected = format!("a superblock, as at block {}", newest.place);
    let mut findings = Vec::new();
    if medium.prescribes_segments() {
        // Those before the newest whole one are older.
        for Damaged { place, why, .. } in found.damaged_behind(newest) {
            let place = format!("the superblock at block {place}");
            findings.push(Finding::new(Structure::Superblock, place, why.as_str(), &*expected, repair));
        }
        return findings;
    }
    for place in superblock_places(newest.superblock.segment_blocks.get()) {
        if found.whole.iter().any(|found| found.place == place.0) {
            continue;
        }
        let why = found.damaged.iter().find(|damaged| damaged.place == place.0);
        let why = why.map_or("there is none", |damaged| damaged.why.as_str());
        let place = format!("the superblock at block {}", place.0);
        findings.push(Finding::new(Structure::Superblock, place, why, &*expected, repair));
    }
    findings
}

fn fields<'a>(task: &'a Task<'a>, volume: &'a mut Sfs) -> CheckpointFields<'a> {
    CheckpointFields { task, superblock: &mut volume.writer.superblock, files: &mut volume.files }
}

/// Loads a checkpoint: the newest, all of it, or the best as far as it can be read.
fn load_checkpoint(
    task: &Task<'_>,
    volume: &mut Sfs,
    superblocks: &AllFound,
    tolerance: Tolerance,
) -> Result<(Found, Loss), OpenSfsError> {
    match tolerance {
        Tolerance::Strict => {
            Loading::of(task, volume).load()?;
            Ok((superblocks.newest()?, Loss::default()))
        }
        Tolerance::Lenient => Loading::of(task, volume).load_best(superblocks),
    }
}

/// Applies the log since the loaded checkpoint. If it cannot be applied, a lenient opener goes on with the
/// checkpoint alone.
fn apply_log_since(
    task: &Task<'_>,
    volume: &mut Sfs,
    chosen: &Found,
    loss: &mut Loss,
    tolerance: Tolerance,
) -> Result<Vec<Finding>, OpenSfsError> {
    let findings = match (tolerance, roll_forward(task, volume)) {
        (Tolerance::Strict, rolled) => return Ok(rolled?),
        (Tolerance::Lenient, Ok(findings)) => {
            // As for a mount: a repair ends with a checkpoint, for which there must be room.
            release_by_log(&mut volume.files, &volume.writer.log);
            findings
        }
        (Tolerance::Lenient, Err(error)) => {
            let next = volume.writer.superblock.next_partial;
            loss.rebuilt = Loading::of(task, volume).load_in_part(&chosen.superblock)?.rebuilt;
            // No number that lies anywhere on the media is given out again.
            volume.writer.superblock.next_partial = next;
            let (place, repair) =
                ("the log since the last checkpoint", "what was synced since the last checkpoint is lost");
            let (found, expected) = (error.to_string(), "records that can be applied");
            vec![Finding::new(Structure::Log, place, found, expected, repair)]
        }
    };
    drop_lost_inodes(&mut volume.files, &loss.inode_pages, chosen.superblock.inodes.get());
    Ok(findings)
}

/// Drops inodes below `count` on lost pages: the log has only what changed of them, and the rest would read as
/// zeros.
fn drop_lost_inodes(files: &mut Files, pages: &[usize], count: u64) {
    let is_lost = |number: &u64| pages.contains(&((number / INODES) as usize)) && *number < count;
    let lost: Vec<u64> = files.inodes.iter().map(|inode| inode.number).filter(is_lost).collect();
    for number in lost {
        files.inodes.remove(number);
        files.orphans.remove(&number);
    }
}
