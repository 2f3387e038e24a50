//! From a path to the file system of this program on its top.

use super::open::{Holds, OpenError, open_device, open_zoned};
use super::path::{Path, Stack};
use crate::device::ImageError;
use crate::device::conv::Conventional;
use crate::device::zns::Zns;
use crate::fs::sfs::{Change, Identity, InodeNumber, Medium, Sfs, SfsError, SfsSettings, Timestamp};
use std::path::Path as FilePath;

/// The user and the group that own the root directory of a new volume.
pub type Owner = (u32, u32);

/// Opens the volume that a path with `sfs` on top names. What is in memory is made anew; what lies in an image must
/// have been made before. `wall_origin_ns` is the time on the wall clock at [`Time::ZERO`](crate::time::Time::ZERO), 0
/// in a simulation.
pub fn open_file_system(path: &Path, seed: u64, wall_origin_ns: i64, read_only: bool) -> Result<Sfs, OpenError> {
    let settings = sfs_of(path)?;
    let medium = open_medium(path, Holds::Bytes, seed)?;
    let identity = Identity { seed, origin: Timestamp(wall_origin_ns) };
    let opened = match is_in_memory(path) {
        true => Sfs::create(medium, settings, identity),
        false => Sfs::open(medium, settings, identity, read_only),
    };
    opened.map_err(failed(path))
}

/// Opens it although parts of its log are damaged, as [`Sfs::open_despite_damage`] does.
pub fn open_file_system_despite_damage(path: &Path, seed: u64, wall_origin_ns: i64) -> Result<Sfs, OpenError> {
    if is_in_memory(path) {
        return open_file_system(path, seed, wall_origin_ns, false);
    }
    let settings = sfs_of(path)?;
    let medium = open_medium(path, Holds::Bytes, seed)?;
    let identity = Identity { seed, origin: Timestamp(wall_origin_ns) };
    Sfs::open_despite_damage(medium, settings, identity).map_err(failed(path))
}

/// Makes a volume of stamps in memory, in which a workload is simulated.
pub fn simulated_file_system(path: &Path, seed: u64) -> Result<Sfs, OpenError> {
    let settings = sfs_of(path)?;
    if !is_in_memory(path) {
        let what = "a simulation writes stamps, and an image would lose what it holds: leave image= away".to_string();
        return Err(OpenError::NoVolume { path: path.text.clone(), what });
    }
    if settings.memory_bytes.is_some() {
        let what = "a simulation keeps all metadata in memory, as stamps cannot be read back: leave memory= away";
        return Err(OpenError::NoVolume { path: path.text.clone(), what: what.to_string() });
    }
    let medium = open_medium(path, Holds::Stamps, seed)?;
    Sfs::create(medium, settings, Identity { seed, origin: Timestamp(0) }).map_err(failed(path))
}

/// Makes the images of a path with `sfs` on top, and an empty volume on them. Images that are there already are
/// replaced only with `force`.
pub(super) fn make_sfs(
    path: &Path,
    force: bool,
    seed: u64,
    wall_origin_ns: i64,
    owner: Option<Owner>,
) -> Result<(), OpenError> {
    let settings = sfs_of(path)?;
    let image = match &path.stack {
        Stack::Conventional(device) => device.image.as_deref(),
        Stack::Zones(device) => device.image.as_deref().or(device.device.as_deref()),
        _ => None,
    };
    let Some(image) = image else {
        let what =
            "what is in memory is new each time: write sfs/conv:image=FILE,size=1G or sfs/zns:image=FILE".to_string();
        return Err(OpenError::NoVolume { path: path.text.clone(), what });
    };
    if image.is_file() && !force {
        let bytes = image.metadata().map_or(0, |metadata| metadata.len());
        return Err(ImageError::Exists { image: image.display().to_string(), bytes }.into());
    }
    let is_new = !image.exists();
    let made = make_on(path, settings, force, Identity { seed, origin: Timestamp(wall_origin_ns) }, owner);
    if made.is_err() && is_new {
        // The error says more than one of the removal would.
        let _ = std::fs::remove_file(image);
    }
    made
}

fn make_on(
    path: &Path,
    settings: &SfsSettings,
    force: bool,
    identity: Identity,
    owner: Option<Owner>,
) -> Result<(), OpenError> {
    let medium = match &path.stack {
        Stack::Conventional(device) => Medium::Blocks(Box::new(Conventional::create(device, force)?)),
        Stack::Zones(device) if device.image.is_some() => Medium::Zones(Box::new(Zns::create(device, force)?)),
        Stack::Zones(device) => Medium::Zones(open_zoned(device, Holds::Bytes)?),
        _ => open_medium(path, Holds::Bytes, identity.seed)?,
    };
    let mut volume = Sfs::create(medium, settings, identity).map_err(failed(path))?;
    owner
        .map_or(Ok(()), |owner| give(&mut volume, owner))
        .and_then(|()| volume.unmount())
        .map_err(|error| failed(path)(error.into()))
}

/// Gives the root directory of a new volume to its owner.
pub fn give(volume: &mut Sfs, (user, group): Owner) -> Result<(), SfsError> {
    volume.change(InodeNumber::ROOT, &Change { user: Some(user), group: Some(group), ..Change::default() }).map(drop)
}

/// What is below the file system.
pub(super) fn open_medium(path: &Path, holds: Holds, seed: u64) -> Result<Medium, OpenError> {
    Ok(match &path.stack {
        Stack::Zones(settings) => Medium::Zones(open_zoned(settings, holds)?),
        _ => Medium::Blocks(open_device(path, holds, seed)?),
    })
}

/// Whether all of a path is in memory, and so is new each time.
pub fn is_in_memory(path: &Path) -> bool {
    let is_there = |image: &Option<std::path::PathBuf>| {
        image.as_deref().is_some_and(|image: &FilePath| !image.as_os_str().is_empty())
    };
    match &path.stack {
        Stack::Drive(_) => true,
        Stack::Conventional(device) => !is_there(&device.image),
        Stack::Zones(device) => device.is_in_memory(),
        Stack::Zoned { conventional, zoned, .. } => {
            conventional.iter().all(|device| !is_there(&device.image))
                && zoned.iter().all(|device| device.is_in_memory())
        }
    }
}

pub(super) fn sfs_of(path: &Path) -> Result<&SfsSettings, OpenError> {
    path.sfs().ok_or_else(|| OpenError::NoFileSystem(path.text.clone()))
}

pub(super) fn failed(path: &Path) -> impl Fn(crate::fs::sfs::OpenSfsError) -> OpenError + '_ {
    |source| OpenError::FileSystem { path: path.text.clone(), source }
}
