//! Makes volumes on images; checks, repairs and describes those of dm-zoned.

use super::error::OpenError;
use super::file_system::{Owner, make_file_system};
use super::open::make_medium;
use super::path::Path;
use crate::device::station::{DeviceNode, MakeOptions, Payload};
use crate::device::{HeldName, ImageError, Lba, Medium};
use crate::fs::ext::{SUPERBLOCK_BYTES, SUPERBLOCK_PLACE, hold_memory_of};
use crate::time::Time;
use crate::translation::zoned::{Devices, Finding, Survey, ZonedSettings, ZonedVolumeError, check, repair, survey};
use crate::units::BLOCK_BYTES;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Makes the images of a path, and empty volumes on them; of a path that is a zoned drive, its empty zones. Images that are there already are replaced only with `force`;
/// those that a failure leaves half made are removed. `seed` is that of the volume's numbers: no two volumes should have
/// one seed. `owner` is that of the root directory of a file system, root's if there is none.
pub fn make_volume(
    path: &Path,
    force: bool,
    seed: u64,
    wall_origin_ns: i64,
    owner: Option<Owner>,
) -> Result<(), OpenError> {
    let making = MakeOptions { force, seed };
    let _held = if force { hold_kept_memory(path)? } else { Vec::new() };
    if path.volume_settings().is_some() {
        return make_file_system(path, &making, wall_origin_ns, owner);
    }
    check_kernel(path)?;
    if !path.is_zoned_drive() && !path.device().is_some_and(DeviceNode::has_volume) {
        return Err(OpenError::no_volume(path, "there is no file system of this program and no dm-zoned in it"));
    }
    make_medium(path, &making).map(drop)
}

/// Refuses to replace a volume while a monitor that lives keeps memory of it, which is about to be written home. As long as the
/// caller has the names, no monitor takes such memory back.
fn hold_kept_memory(path: &Path) -> Result<Vec<HeldName>, OpenError> {
    let mut superblocks: Vec<[u8; SUPERBLOCK_BYTES]> = Vec::new();
    // Most images have the volume's blocks at their places.
    for file in path.devices.iter().flat_map(DeviceNode::files) {
        let mut superblock = [0; SUPERBLOCK_BYTES];
        // What is not there, or too short, is no volume.
        if File::open(file).and_then(|image| image.read_exact_at(&mut superblock, SUPERBLOCK_PLACE)).is_ok() {
            superblocks.push(superblock);
        }
    }
    for node in path.devices.iter().filter(|node| !node.below.is_empty()) {
        // Devices that cannot be opened together hold no volume that a monitor could find by this path.
        if let Ok(Medium::Blocks(device)) = node.open(Payload::Bytes, 0) {
            let mut block = vec![0; BLOCK_BYTES as usize];
            let place = SUPERBLOCK_PLACE as usize;
            if device.block_width() == block.len() && device.read(Lba(0), &mut block, Time::ZERO).is_ok() {
                superblocks.extend(<[u8; SUPERBLOCK_BYTES]>::try_from(&block[place..place + SUPERBLOCK_BYTES]));
            }
        }
    }
    superblocks.sort_unstable();
    superblocks.dedup();
    let held: Result<Vec<Option<HeldName>>, ImageError> = superblocks.iter().map(hold_memory_of).collect();
    let held = held.map_err(|error| OpenError::of_station(path)(error.into()))?;
    Ok(held.into_iter().flatten().collect())
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
    let zoned = path.device().and_then(|device| Some((device, device.settings::<ZonedSettings>()?)));
    let Some((device, settings)) = zoned else {
        return Err(OpenError::no_volume(path, "there is no dm-zoned on its top"));
    };
    device.check_outlasts_a_run().map_err(OpenError::of_station(path))?;
    let below = device.open_below(Payload::Bytes, 0).map_err(OpenError::of_station(path))?;
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
