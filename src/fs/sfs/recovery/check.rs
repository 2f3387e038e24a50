//! fsck without a repair: findings, in an order that is always the same.
//!
//! A volume that was not unmounted is first brought forward by its log, in memory, as a mount would. So the findings
//! are what a user would meet. Nothing is written.

use super::finding::Finding;
use super::open::{Tolerance, open};
use super::rebuilt_entries::RebuiltEntries;
use super::survey::surveyor;
use crate::device::Medium;
use crate::fs::sfs::error::{OpenSfsError, SfsError};
use crate::fs::sfs::make::Identity;
use crate::fs::sfs::settings::SfsSettings;
use crate::fs::sfs::{Sfs, Timestamp};
use crate::task::Task;
use crate::time::Time;

/// Checks a mounted volume: see [`Sfs::check`].
pub(in crate::fs::sfs) fn check_mounted(task: &Task<'_>, volume: &mut Sfs) -> Result<Vec<Finding>, SfsError> {
    Ok(surveyor(task, volume).survey(true, &RebuiltEntries::default())?.findings())
}

/// Checks the volume on a medium, and writes nothing. `settings` are those of a mount.
///
/// Fails if there is no volume, if it is of another version or shape, or if no checkpoint can be read at all.
pub fn check(medium: Medium, settings: &SfsSettings) -> Result<Vec<Finding>, OpenSfsError> {
    let task = &Task::at(Time::ZERO);
    let identity = Identity { seed: 0, origin: Timestamp(0) };
    let mut opened = open(task, medium, settings, identity, Tolerance::Lenient)?;
    let mut findings = opened.findings;
    let survey = surveyor(task, &mut opened.volume).survey(true, &opened.rebuilt)?;
    survey.name(&mut findings);
    findings.extend(survey.findings());
    Ok(findings)
}
