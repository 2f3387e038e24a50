//! Makes volumes on images; checks, repairs and describes those of dm-zoned.

use super::file_system::{Owner, make_sfs};
use super::open::{OpenError, make_medium};
use super::path::Path;
use crate::device::station::{MakeOptions, Payload};
use crate::translation::zoned::{Devices, Finding, Survey, ZonedSettings, ZonedVolumeError, check, repair, survey};

/// Makes the images of a path, and empty volumes on them. Existing images are replaced only with `force`; after a
/// failure, unfinished images are removed. `seed` is that of the volume's UUIDs: each volume needs another. `owner`
/// owns the root directory of a volume of sfs; root by default.
pub fn make_volume(
    path: &Path,
    force: bool,
    seed: u64,
    wall_origin_ns: i64,
    owner: Option<Owner>,
) -> Result<(), OpenError> {
    let making = MakeOptions { force, seed };
    if path.sfs().is_some() {
        return make_sfs(path, &making, wall_origin_ns, owner);
    }
    check_kernel(path)?;
    if !path.device.has_volume() {
        return Err(OpenError::no_volume(path, "it has no sfs and no dm-zoned"));
    }
    make_medium(path, &making).map(drop)
}

fn check_kernel(path: &Path) -> Result<(), OpenError> {
    match path.kernel() {
        Some(_) => {
            Err(OpenError::no_volume(path, "a file system of the kernel is on top, which its own tools make and check"))
        }
        None => Ok(()),
    }
}

/// The devices of the dm-zoned at the top of a path, and its options.
fn open(path: &Path) -> Result<(&ZonedSettings, Devices), OpenError> {
    check_kernel(path)?;
    let Some(settings) = path.device.settings::<ZonedSettings>() else {
        return Err(OpenError::no_volume(path, "its top is not dm-zoned"));
    };
    path.device.check_outlasts_a_run().map_err(OpenError::of_station(path))?;
    let below = path.device.open_below(Payload::Bytes, 0).map_err(OpenError::of_station(path))?;
    Ok((settings, Devices::of(below)))
}

fn failed(path: &Path) -> impl Fn(ZonedVolumeError) -> OpenError + '_ {
    |error| OpenError::of_station(path)(error.into())
}

/// Checks the volume of a path, without changes.
pub fn check_volume(path: &Path) -> Result<Vec<Finding>, OpenError> {
    Ok(check(open(path)?.1).map_err(failed(path))?.0)
}

/// Repairs the findings that [`check_volume`] calls repairable.
pub fn repair_volume(path: &Path) -> Result<(), OpenError> {
    let (settings, devices) = open(path)?;
    repair(devices, settings).map(drop).map_err(failed(path))
}

/// Describes the volume of a path, without changes.
pub fn survey_volume(path: &Path) -> Result<Survey, OpenError> {
    survey(open(path)?.1).map_err(failed(path))
}
