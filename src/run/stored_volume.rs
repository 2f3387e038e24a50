//! Volumes of file systems on images: checked, repaired, looked at.

use super::error::OpenError;
use super::file_system::{failed, on_images, settings_of, stored};
use super::open::open_media;
use super::path::Path;
use crate::device::Medium;
use crate::device::station::Payload;
use crate::fs::station::{Inspection, Mounting, RepairOutcome, StoredVolumes};
use crate::fs::volume::Damage;

/// The devices of a volume that is there already, and what can be done with it.
fn open(path: &Path) -> Result<(&dyn StoredVolumes, Vec<Medium>), OpenError> {
    let volumes = stored(path, settings_of(path)?)?;
    on_images(path)?;
    Ok((volumes, open_media(path, Payload::Bytes, 0)?))
}

/// Checks the volume that a path names, and writes nothing to it. The image is locked as long: one that is mounted is
/// refused.
pub fn check_file_system(path: &Path) -> Result<Vec<Damage>, OpenError> {
    let (volumes, below) = open(path)?;
    volumes.check(below).map_err(failed(path))
}

/// Checks it, and puts right what is wrong. `wall_origin_ns` is the time on the wall clock at which that is done.
pub fn repair_file_system(path: &Path, wall_origin_ns: i64) -> Result<RepairOutcome, OpenError> {
    let (volumes, below) = open(path)?;
    volumes.repair(below, &Mounting::at(0, wall_origin_ns)).map_err(failed(path))
}

/// Writes home what a monitor keeps of it, whose process has died. `wall_origin_ns` is the time on the wall clock at which
/// that is done.
pub fn recover_file_system(path: &Path, wall_origin_ns: i64) -> Result<(), OpenError> {
    let (volumes, below) = open(path)?;
    volumes.recover(below, &Mounting::at(0, wall_origin_ns)).map_err(failed(path))
}

/// Marks the volume with this number as one whose last mount lost changes, so that the next mount and fsck say so.
pub fn mark_lost_changes(path: &Path, number: [u8; 16]) -> Result<(), OpenError> {
    let (volumes, below) = open(path)?;
    volumes.mark_lost(below, number).map_err(failed(path))
}

/// Looks at it, and writes nothing.
pub fn inspect_file_system(path: &Path) -> Result<Inspection, OpenError> {
    let (volumes, below) = open(path)?;
    volumes.inspect(below).map_err(failed(path))
}
