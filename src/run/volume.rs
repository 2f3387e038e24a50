//! Volumes of dm-zoned on images: made, checked, repaired, looked at.

use super::file_system::{Owner, make_sfs};
use super::open::{Holds, OpenError, open_zoned};
use super::path::{Path, Stack};
use crate::device::ImageError;
use crate::device::conv::{ConvSettings, Conventional};
use crate::device::zns::{Zns, ZnsSettings};
use crate::device::{BlockDevice, ZonedDevice};
use crate::translation::zoned::{Devices, Finding, Numbers, Survey, ZonedSettings, check, mkfs, repair, survey};
use std::path::Path as FilePath;

/// The stations of a volume whose devices all have an image.
struct Images<'a> {
    settings: &'a ZonedSettings,
    conventional: Option<&'a ConvSettings>,
    zoned: &'a [ZnsSettings],
}

impl<'a> Images<'a> {
    fn of(path: &'a Path) -> Result<Images<'a>, OpenError> {
        let no_volume = |what: &str| Err(OpenError::NoVolume { path: path.text.clone(), what: what.to_string() });
        let Stack::Zoned { settings, conventional, zoned } = &path.stack else {
            return no_volume("there is no dm-zoned in it");
        };
        if path.kernel().is_some() {
            return no_volume("a file system of the kernel is on top, which its own tools make and check");
        }
        let images = Images { settings, conventional: conventional.as_ref(), zoned };
        if images.names().count() < zoned.len() + usize::from(conventional.is_some()) {
            return no_volume("what is in memory is new each time: give every device an image=");
        }
        Ok(images)
    }

    fn names(&self) -> impl Iterator<Item = &'a FilePath> + '_ {
        let conventional = self.conventional.iter().filter_map(|device| device.image.as_deref());
        conventional.chain(self.zoned.iter().filter_map(|device| device.image.as_deref().or(device.device.as_deref())))
    }

    fn devices(
        &self,
        conventional: impl Fn(&ConvSettings) -> Result<Conventional, ImageError>,
        zoned: impl Fn(&ZnsSettings) -> Result<Box<dyn ZonedDevice>, OpenError>,
    ) -> Result<Devices, OpenError> {
        let conventional = self.conventional.map(conventional).transpose()?;
        Ok(Devices {
            conventional: conventional.map(|device| Box::new(device) as Box<dyn BlockDevice>),
            zoned: self.zoned.iter().map(zoned).collect::<Result<_, OpenError>>()?,
        })
    }

    fn open(&self) -> Result<Devices, OpenError> {
        self.devices(Conventional::open, |device| open_zoned(device, Holds::Bytes))
    }
}

/// Makes the images of a path, and an empty volume on them. Images that are there already are replaced only with `force`;
/// those that a failure leaves half made are taken away. `seed` is that of the volume's numbers: no two volumes should
/// have one seed. `owner` is that of the root directory of a volume of sfs, root's if there is none.
pub fn make_volume(
    path: &Path,
    force: bool,
    seed: u64,
    wall_origin_ns: i64,
    owner: Option<Owner>,
) -> Result<(), OpenError> {
    if path.sfs().is_some() {
        return make_sfs(path, force, seed, wall_origin_ns, owner);
    }
    let images = Images::of(path)?;
    let is_new: Vec<&FilePath> = images.names().filter(|name| !name.exists()).collect();
    if let Some(image) = images.names().find(|name| name.is_file() && !force) {
        let bytes = image.metadata().map_or(0, |metadata| metadata.len());
        return Err(ImageError::Exists { image: image.display().to_string(), bytes }.into());
    }
    let make = || -> Result<(), OpenError> {
        let devices = images.devices(
            |device| Conventional::create(device, force),
            |device| match &device.image {
                Some(_) => Ok(Box::new(Zns::create(device, force)?)),
                None => open_zoned(device, Holds::Bytes),
            },
        )?;
        let numbers = Numbers::of_seed(seed, devices.zoned.len());
        mkfs(devices, images.settings, &numbers)?;
        Ok(())
    };
    make().inspect_err(|_| {
        for image in is_new {
            // The error says more than one of the removal would.
            let _ = std::fs::remove_file(image);
        }
    })
}

/// Checks the volume of a path, and changes nothing.
pub fn check_volume(path: &Path) -> Result<Vec<Finding>, OpenError> {
    Ok(check(Images::of(path)?.open()?)?.0)
}

/// Repairs what [`check_volume`] calls repairable.
pub fn repair_volume(path: &Path) -> Result<(), OpenError> {
    let images = Images::of(path)?;
    repair(images.open()?, images.settings)?;
    Ok(())
}

/// Looks at the volume of a path, and changes nothing.
pub fn survey_volume(path: &Path) -> Result<Survey, OpenError> {
    Ok(survey(Images::of(path)?.open()?)?)
}
