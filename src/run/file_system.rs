//! Opens and makes the file system on top of a path.

use super::open::{OpenError, make_medium, open_medium};
use super::path::Path;
use crate::device::station::{MakeOptions, Payload, remove};
use crate::fs::sfs::{Identity, Sfs, SfsSettings, SfsVolume, Timestamp};
use crate::fs::volume::{Call, Change, InodeNumber, Locked, Volume, VolumeError};
use crate::task::Task;
use crate::time::Time;
use std::path::Path as FilePath;

/// The user and group IDs of the root directory's owner in a new volume.
pub type Owner = (u32, u32);

/// Opens the volume of a path with `sfs` on top. A volume in memory is made; one on an image must exist.
/// `wall_origin_ns` is the wall clock at [`Time::ZERO`], 0 in a simulation.
pub fn open_file_system(
    task: &Task<'_>,
    path: &Path,
    seed: u64,
    wall_origin_ns: i64,
    read_only: bool,
) -> Result<Sfs, OpenError> {
    let settings = sfs_of(path)?;
    let medium = open_medium(path, Payload::Bytes, seed)?;
    let identity = Identity { seed, origin: Timestamp(wall_origin_ns) };
    let opened = match is_in_memory(path) {
        true => Sfs::create(task, medium, settings, identity),
        false => Sfs::open(task, medium, settings, identity, read_only),
    };
    opened.map_err(failed(path))
}

/// Opens a volume with a damaged log, as [`Sfs::open_despite_damage`] does.
pub fn open_file_system_despite_damage(
    task: &Task<'_>,
    path: &Path,
    seed: u64,
    wall_origin_ns: i64,
) -> Result<Sfs, OpenError> {
    if is_in_memory(path) {
        return open_file_system(task, path, seed, wall_origin_ns, false);
    }
    let settings = sfs_of(path)?;
    let medium = open_medium(path, Payload::Bytes, seed)?;
    let identity = Identity { seed, origin: Timestamp(wall_origin_ns) };
    Sfs::open_despite_damage(task, medium, settings, identity).map_err(failed(path))
}

/// Makes a volume of stamps in memory, for a simulated workload.
pub fn simulated_file_system(task: &Task<'_>, path: &Path, seed: u64) -> Result<Sfs, OpenError> {
    let settings = sfs_of(path)?;
    if !is_in_memory(path) {
        let what = "a simulation writes stamps, and an image would lose its content: remove image=".to_string();
        return Err(OpenError::NoVolume { path: path.text.clone(), what });
    }
    if settings.memory_bytes.is_some() {
        let what = "a simulation keeps all metadata in memory, as stamps cannot be read back: remove memory=";
        return Err(OpenError::NoVolume { path: path.text.clone(), what: what.to_string() });
    }
    let medium = open_medium(path, Payload::Stamps, seed)?;
    Sfs::create(task, medium, settings, Identity { seed, origin: Timestamp(0) }).map_err(failed(path))
}

/// Makes the images of a path with `sfs` on top, and an empty volume on them. After a failure, unfinished images are
/// removed.
pub(super) fn make_sfs(
    path: &Path,
    making: &MakeOptions,
    wall_origin_ns: i64,
    owner: Option<Owner>,
) -> Result<(), OpenError> {
    path.device.check_outlasts_a_run().map_err(OpenError::of_station(path))?;
    let new: Vec<&FilePath> = path.device.files().into_iter().filter(|file| !file.exists()).collect();
    make_on(path, making, wall_origin_ns, owner).inspect_err(|_| remove(&new))
}

fn make_on(path: &Path, making: &MakeOptions, wall_origin_ns: i64, owner: Option<Owner>) -> Result<(), OpenError> {
    let medium = make_medium(path, making)?;
    let identity = Identity { seed: making.seed, origin: Timestamp(wall_origin_ns) };
    let task = Task::at(Time::ZERO);
    let volume = Sfs::create(&task, medium, sfs_of(path)?, identity).map_err(failed(path))?;
    let volume = SfsVolume::new(volume, task.now());
    let call = Call::by_root(&task);
    owner
        .map_or(Ok(()), |owner| set_owner(&volume, &call, owner))
        .and_then(|()| volume.unmount(&call))
        .map_err(|error| failed(path)(error.into()))
}

/// Gives the root directory of a new volume to its owner.
pub fn set_owner(volume: &dyn Volume, call: &Call, (user, group): Owner) -> Result<(), VolumeError> {
    let mut owned = |_: &mut dyn Locked| Ok(Some(Change { user: Some(user), group: Some(group), ..Change::default() }));
    volume.change(call, InodeNumber::ROOT, &mut owned).map(drop)
}

/// True if the whole path is in memory, and so new in each run.
pub fn is_in_memory(path: &Path) -> bool {
    path.device.is_in_memory()
}

pub(super) fn sfs_of(path: &Path) -> Result<&SfsSettings, OpenError> {
    path.sfs().ok_or_else(|| OpenError::NoFileSystem(path.text.clone()))
}

pub(super) fn failed(path: &Path) -> impl Fn(crate::fs::sfs::OpenSfsError) -> OpenError + '_ {
    |source| OpenError::FileSystem { path: path.text.clone(), source }
}
