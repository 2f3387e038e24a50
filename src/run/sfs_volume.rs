//! Volumes of sfs on images: checked, repaired, looked at.

use super::file_system::{failed, sfs_of};
use super::open::{OpenError, open_medium};
use super::path::Path;
use crate::device::Medium;
use crate::device::station::Payload;
use crate::fs::sfs::{
    Finding, Identity, Repaired, SegmentMap, SfsSettings, Timestamp, check, mark_lost, repair, segment_map,
};

/// The settings and the medium of a volume that is there already.
fn open(path: &Path) -> Result<(&SfsSettings, Medium), OpenError> {
    let settings = sfs_of(path)?;
    path.device.check_outlasts_a_run().map_err(OpenError::of_station(path))?;
    Ok((settings, open_medium(path, Payload::Bytes, 0)?))
}

/// Checks the volume of sfs that a path names, and writes nothing to it. The image is locked as long: one that is
/// mounted is refused.
pub fn check_file_system(path: &Path) -> Result<Vec<Finding>, OpenError> {
    let (settings, medium) = open(path)?;
    check(medium, settings).map_err(failed(path))
}

/// Checks it, and puts right what is wrong. `wall_origin_ns` is the time on the wall clock at which that is done.
pub fn repair_file_system(path: &Path, wall_origin_ns: i64) -> Result<Repaired, OpenError> {
    let (settings, medium) = open(path)?;
    let identity = Identity { seed: 0, origin: Timestamp(wall_origin_ns) };
    repair(medium, settings, identity).map_err(failed(path))
}

/// Marks the volume with this number as one whose last mount lost changes, so that the next mount and fsck say so.
pub fn mark_lost_changes(path: &Path, number: [u8; 16]) -> Result<(), OpenError> {
    let (_, medium) = open(path)?;
    mark_lost(medium, number).map_err(failed(path))
}

/// Looks at it, segment by segment, and writes nothing.
pub fn map_segments(path: &Path) -> Result<SegmentMap, OpenError> {
    let (settings, medium) = open(path)?;
    segment_map(medium, settings).map_err(failed(path))
}
