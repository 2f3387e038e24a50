//! Opens the devices of a path.

use super::error::OpenError;
use super::path::Path;
use super::watched::Watched;
use crate::device::station::{DeviceNode, MakeOptions, Payload, StationError};
use crate::device::wait_log::WaitLog;
use crate::device::{BlockDevice, Medium};

impl OpenError {
    /// Converts the error of a station of `path`.
    pub(super) fn of_station(path: &Path) -> impl Fn(StationError) -> OpenError + '_ {
        |error| match error {
            error @ StationError::Mixed => OpenError::no_volume(path, error),
            error => OpenError::Station(error),
        }
    }

    pub(super) fn no_volume(path: &Path, what: impl ToString) -> OpenError {
        OpenError::NoVolume { path: path.text.clone(), what: what.to_string() }
    }
}

/// Opens the part of a path below its file system, or the whole path without one, as one block device.
///
/// Storage in memory is new. An image has its last state, and holds bytes whatever `holds` says; a dm-zoned volume on
/// images must exist. `seed` is that of the devices' random choices.
pub fn open_device(path: &Path, holds: Payload, seed: u64) -> Result<Box<dyn BlockDevice>, OpenError> {
    block_device(path, open_medium_recorded(path, holds, seed, None)?)
}

/// The same, below a file system of the kernel whose write requests are counted, merged up to `max_request` bytes.
pub fn open_device_counted(path: &Path, seed: u64, max_request: u64) -> Result<Box<dyn BlockDevice>, OpenError> {
    let device = open_device(path, Payload::Bytes, seed)?;
    match Watched::of(Medium::Blocks(device), max_request).0 {
        Medium::Blocks(device) => Ok(device),
        _ => unreachable!("a device of blocks stays one"),
    }
}

/// The block device of a path whose medium this is.
pub(super) fn block_device(path: &Path, medium: Medium) -> Result<Box<dyn BlockDevice>, OpenError> {
    match medium {
        Medium::Blocks(device) => Ok(device),
        Medium::Zones(_) => Err(OpenError::no_volume(path, "zones cannot be written in any order")),
        Medium::Memory(_) => Err(OpenError::no_volume(path, "memory has no blocks")),
        Medium::Monitor(_) => Err(OpenError::no_volume(path, "a monitor has no blocks")),
    }
}

/// Opens the part of a path below its file system, or the whole path without one, as what it is: blocks, zones, memory. The rest is as
/// with [`open_device`].
pub fn open_medium(path: &Path, holds: Payload, seed: u64) -> Result<Medium, OpenError> {
    open_medium_recorded(path, holds, seed, None)
}

/// Opens the device of a path with one. Its devices record the waits of their operations, if there is a log.
pub(super) fn open_medium_recorded(
    path: &Path,
    payload: Payload,
    seed: u64,
    waits: Option<&WaitLog>,
) -> Result<Medium, OpenError> {
    device(path)?.open_recorded(payload, seed, waits).map_err(OpenError::of_station(path))
}

/// Opens the devices below the file system of a path: all in memory, or none.
pub(super) fn open_media(path: &Path, payload: Payload, seed: u64) -> Result<Vec<Medium>, OpenError> {
    open_media_recorded(path, payload, seed, None)
}

/// The same; the devices record the waits of their operations, if there is a log.
pub(super) fn open_media_recorded(
    path: &Path,
    payload: Payload,
    seed: u64,
    waits: Option<&WaitLog>,
) -> Result<Vec<Medium>, OpenError> {
    if !path.devices.iter().all(DeviceNode::is_in_memory) {
        path.devices.iter().try_for_each(DeviceNode::check_outlasts_a_run).map_err(OpenError::of_station(path))?;
    }
    let media = path.devices.iter().map(|device| device.open_recorded(payload, seed, waits));
    let media: Vec<Medium> = media.collect::<Result<_, _>>().map_err(OpenError::of_station(path))?;
    note_path(path, &media);
    Ok(media)
}

/// Tells a monitor by which path it finds the volume.
fn note_path(path: &Path, media: &[Medium]) {
    for medium in media {
        if let Medium::Monitor(monitor) = medium {
            monitor.note_path(&path.text);
        }
    }
}

/// The device of a path.
fn device(path: &Path) -> Result<&DeviceNode, OpenError> {
    path.device().ok_or_else(|| OpenError::no_volume(path, "it keeps files, and stands on no device"))
}

/// Makes the images of a path, and the volumes of the stations below its file system. Images that are there already are
/// replaced only with `force`; those that a failure leaves half made are removed.
pub(super) fn make_medium(path: &Path, making: &MakeOptions) -> Result<Medium, OpenError> {
    device(path)?.make(making).map_err(OpenError::of_station(path))
}

/// The same of all devices below a file system: nothing is made if an image of one exists.
pub(super) fn make_media(path: &Path, making: &MakeOptions) -> Result<Vec<Medium>, OpenError> {
    let checked = path.devices.iter().try_for_each(|device| device.check_makeable(making));
    let made = checked.and_then(|()| path.devices.iter().map(|device| device.make(making)).collect());
    let media: Vec<Medium> = made.map_err(OpenError::of_station(path))?;
    note_path(path, &media);
    Ok(media)
}
