//! fsck without a repair: what is wrong with a volume, as values, in an order that is always the same.
//!
//! A volume that was not unmounted is first brought forward by its log, in memory, as a mount would; what is then found
//! is what a user would meet. Nothing is written.

use super::finding::Finding;
use super::lenient;
use crate::device::Medium;
use crate::fs::sfs::error::{OpenSfsError, SfsError};
use crate::fs::sfs::make::Identity;
use crate::fs::sfs::settings::SfsSettings;
use crate::fs::sfs::{Sfs, Timestamp};
use crate::task::Task;
use crate::time::Time;

impl Sfs {
    /// Checks all that a mounted volume names: what is in memory against itself, and what lies on the media against its
    /// checksums. Changes nothing. An empty list: nothing is wrong. Fails only if a device does where no finding can
    /// stand for it.
    pub fn check(&mut self, task: &Task<'_>) -> Result<Vec<Finding>, SfsError> {
        Ok(self.survey(task, true)?.findings())
    }
}

/// Checks the volume on a medium, and writes nothing. `settings` are those of a mount.
///
/// Fails if there is no volume, if it is of another version or shape, or if no checkpoint can be read at all.
pub fn check(medium: Medium, settings: &SfsSettings) -> Result<Vec<Finding>, OpenSfsError> {
    let identity = Identity { seed: 0, origin: Timestamp(0) };
    let task = &Task::at(Time::ZERO);
    let mut opened = lenient::open(task, medium, settings, identity)?;
    let mut findings = opened.findings;
    let survey = opened.volume.survey(task, true)?;
    survey.name(&mut findings);
    findings.extend(survey.findings());
    Ok(findings)
}
