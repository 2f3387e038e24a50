//! Opens and makes the file system on top of a path.

use super::error::OpenError;
use super::open::{make_media, open_media, open_media_recorded, open_medium_recorded};
use super::path::Path;
use super::requests::MAX_REQUEST_BYTES;
use super::watched::Watched;
use crate::device::Medium;
use crate::device::station::{DeviceNode, MakeOptions, Payload, remove};
use crate::device::wait_log::WaitLog;
use crate::fs::sfs::{Identity, Sfs, SfsSettings, Timestamp};
use crate::fs::station::{Access, Mounting, StoredVolumes, VolumeFault, VolumeSettings};
use crate::fs::volume::{Call, Change, InodeNumber, Locked, Space, Volume, VolumeError};
use crate::task::Task;
use crate::time::Time;
use std::path::Path as FilePath;
use std::sync::Arc;

/// The user and group IDs of the root directory's owner in a new volume.
pub type Owner = (u32, u32);

/// Opens the volume of the file system on top of a path. What is in memory is made anew; what lies in an image must
/// have been made before.
pub fn open_file_system(path: &Path, mounting: &Mounting, access: Access) -> Result<Arc<dyn Volume>, OpenError> {
    open_on(path, open_media(path, Payload::Bytes, mounting.seed)?, mounting, access)
}

/// The same; its write requests to each device are counted, merged up to `max_request` bytes.
pub(super) fn open_file_system_counted(
    path: &Path,
    mounting: &Mounting,
    access: Access,
    max_request: u64,
) -> Result<Arc<dyn Volume>, OpenError> {
    let media = open_media(path, Payload::Bytes, mounting.seed)?;
    let counted = media.into_iter().map(|medium| Watched::of(medium, max_request).0).collect();
    open_on(path, counted, mounting, access)
}

fn open_on(path: &Path, below: Vec<Medium>, mounting: &Mounting, access: Access) -> Result<Arc<dyn Volume>, OpenError> {
    let settings = settings_of(path)?;
    match is_in_memory(path) {
        true => settings.create(below, mounting),
        false => stored(path, settings)?.open(below, mounting, access),
    }
    .map_err(failed(path))
}

/// Makes a volume of stamps in memory, in which a file workload is simulated.
pub fn simulated_file_system(path: &Path, seed: u64) -> Result<Arc<dyn Volume>, OpenError> {
    Ok(simulated_and_watched(path, seed, None, MAX_REQUEST_BYTES)?.0)
}

/// The same, and a hold of each device below it. The devices record the waits of their operations, if there is a log; its
/// write requests are merged up to `max_request` bytes.
pub(super) fn simulated_and_watched(
    path: &Path,
    seed: u64,
    waits: Option<&WaitLog>,
    max_request: u64,
) -> Result<(Arc<dyn Volume>, Vec<Watched>), OpenError> {
    let settings = settings_of(path)?;
    check_simulated(path, settings)?;
    let media = open_media_recorded(path, Payload::Stamps, seed, waits)?;
    let (below, watched): (Vec<Medium>, Vec<Watched>) =
        media.into_iter().map(|medium| Watched::of(medium, max_request)).unzip();
    Ok((settings.create(below, &Mounting::at(seed, 0)).map_err(failed(path))?, watched))
}

/// The space in such a volume.
pub fn simulated_space(path: &Path, seed: u64) -> Result<Space, OpenError> {
    let volume = simulated_file_system(path, seed)?;
    volume.space(&Call::by_root(&Task::at(Time::ZERO))).map_err(failed_call(path))
}

/// The same of sfs alone, for its own calls by blocks; `None` for another file system.
pub(super) fn simulated_sfs(
    task: &Task<'_>,
    path: &Path,
    seed: u64,
    waits: Option<&WaitLog>,
    max_request: u64,
) -> Result<Option<Sfs>, OpenError> {
    let settings = settings_of(path)?;
    let Some(sfs) = path.settings::<SfsSettings>() else { return Ok(None) };
    check_simulated(path, settings)?;
    let (medium, _) = Watched::of(open_medium_recorded(path, Payload::Stamps, seed, waits)?, max_request);
    let sfs = Sfs::create(task, medium, sfs, Identity { seed, origin: Timestamp(0) });
    sfs.map(Some).map_err(|error| failed(path)(error.into()))
}

fn check_simulated(path: &Path, settings: &dyn VolumeSettings) -> Result<(), OpenError> {
    if !is_in_memory(path) {
        let what = "a simulation writes stamps, and an image would lose what it holds: leave image= away";
        return Err(OpenError::no_volume(path, what));
    }
    settings.refuses_simulation().map_or(Ok(()), |why| Err(OpenError::no_volume(path, why)))
}

/// Makes the images of a path with a file system on top, and an empty volume on them. Those that a failure leaves
/// half made are removed.
pub(super) fn make_file_system(
    path: &Path,
    making: &MakeOptions,
    wall_origin_ns: i64,
    owner: Option<Owner>,
) -> Result<(), OpenError> {
    on_images(path)?;
    let new: Vec<&FilePath> = path.devices.iter().flat_map(DeviceNode::files).filter(|file| !file.exists()).collect();
    make_on(path, making, wall_origin_ns, owner).inspect_err(|_| remove(&new))
}

fn make_on(path: &Path, making: &MakeOptions, wall_origin_ns: i64, owner: Option<Owner>) -> Result<(), OpenError> {
    let below = make_media(path, making)?;
    let mounting = Mounting::at(making.seed, wall_origin_ns);
    let volume = settings_of(path)?.create(below, &mounting).map_err(failed(path))?;
    let task = Task::at(Time::ZERO);
    let call = Call::by_root(&task);
    owner
        .map_or(Ok(()), |owner| set_owner(&*volume, &call, owner))
        .and_then(|()| volume.unmount(&call))
        .map_err(failed_call(path))
}

/// Gives the root directory of a new volume to its owner.
pub fn set_owner(volume: &dyn Volume, call: &Call, (user, group): Owner) -> Result<(), VolumeError> {
    let mut owned = |_: &mut dyn Locked| Ok(Some(Change { user: Some(user), group: Some(group), ..Change::default() }));
    volume.change(call, InodeNumber::ROOT, &mut owned).map(drop)
}

/// True if the whole path is in memory, and so new in each run.
pub fn is_in_memory(path: &Path) -> bool {
    path.devices.iter().all(DeviceNode::is_in_memory)
}

/// An error if the volumes of a path do not outlast a mount.
pub(super) fn on_images(path: &Path) -> Result<(), OpenError> {
    stored(path, settings_of(path)?)?;
    path.devices.iter().try_for_each(DeviceNode::check_outlasts_a_run).map_err(OpenError::of_station(path))
}

pub(super) fn settings_of(path: &Path) -> Result<&dyn VolumeSettings, OpenError> {
    path.volume_settings().ok_or_else(|| OpenError::NoFileSystem(path.text.clone()))
}

pub(super) fn stored<'s>(path: &Path, settings: &'s dyn VolumeSettings) -> Result<&'s dyn StoredVolumes, OpenError> {
    let nothing = || OpenError::no_volume(path, "its files are in memory, and nothing of them outlasts a mount");
    settings.stored().ok_or_else(nothing)
}

pub(super) fn failed(path: &Path) -> impl Fn(VolumeFault) -> OpenError + '_ {
    |fault| OpenError::FileSystem { path: path.text.clone(), fault }
}

/// A call to the new volume of a path failed.
pub(super) fn failed_call(path: &Path) -> impl Fn(VolumeError) -> OpenError + '_ {
    |error| failed(path)(VolumeFault { is_lost: false, source: Box::new(error) })
}
