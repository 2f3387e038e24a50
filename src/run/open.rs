//! From a path to the devices that it names.

use super::path::{Path, Stack};
use super::stations::{DriveSettings, WithDrive};
use crate::device::conv::{self, ConvSettings, Conventional};
use crate::device::zns::{self, Zns, ZnsSettings};
use crate::device::{BlockDevice, DeviceError, ImageError, STAMP_BYTES, ZonedDevice};
use crate::expression::ExpressionError;
use crate::fs::sfs::OpenSfsError;
use crate::translation::zoned::{Devices, DmZoned, ZonedVolumeError};
use crate::translation::{Drive, Translation};
use crate::units::BLOCK_BYTES;

/// What the blocks of a device in memory hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// Bytes: a reader will look at them.
    Bytes,
    /// Stamps that stand for bytes: a simulation. What lies in an image holds bytes all the same.
    Stamps,
}

impl Holds {
    /// Bytes of a buffer that are a block.
    fn width(self) -> usize {
        match self {
            Holds::Bytes => BLOCK_BYTES as usize,
            Holds::Stamps => STAMP_BYTES,
        }
    }
}

/// Why a path cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The path cannot be what it says.
    #[error(transparent)]
    Path(#[from] ExpressionError),
    /// A device cannot be opened.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// An image cannot be used.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The devices hold no volume of dm-zoned, or cannot.
    #[error("{0}")]
    Volume(#[from] ZonedVolumeError),
    /// The volume of a file system cannot be made or opened.
    #[error("{path}: {source}")]
    FileSystem {
        /// The path.
        path: String,
        /// What is wrong.
        source: OpenSfsError,
    },
    /// There is no file system of this program on top.
    #[error("{0} has no file system of this program on top: write sfs/ before it")]
    NoFileSystem(String),
    /// A path names no volume that could be made, checked or looked at.
    #[error("{path} names no volume on images: {what}")]
    NoVolume {
        /// The path.
        path: String,
        /// What is wrong with it.
        what: String,
    },
    /// A file system of the kernel cannot be simulated.
    #[error("{0} is the running kernel's: a path with it on top is run on this machine, and cannot be simulated")]
    NeedsKernel(String),
}

/// Opens what is below the file system of a path, or all of a path without one, as one device.
///
/// What is in memory is new. What has an image is opened as it was left, and carries bytes, whatever `holds` says; on
/// images dm-zoned must have been made before. `seed` is that of the choices that devices make.
pub fn open_device(path: &Path, holds: Holds, seed: u64) -> Result<Box<dyn BlockDevice>, OpenError> {
    match &path.stack {
        Stack::Drive(drive) => Ok(open_drive(drive, drive.exported_bytes() / BLOCK_BYTES, holds, seed, None)),
        Stack::Conventional(settings) => open_conventional(settings, holds, seed),
        Stack::Zones(_) => {
            let what = "zones alone are no blocks that can be written anywhere".to_string();
            Err(OpenError::NoVolume { path: path.text.clone(), what })
        }
        Stack::Zoned { settings, conventional, zoned } => {
            let mut in_memory = conventional
                .iter()
                .map(|device| device.image.is_none())
                .chain(zoned.iter().map(ZnsSettings::is_in_memory));
            let is_new = in_memory.clone().all(|is_in_memory| is_in_memory);
            if !is_new && in_memory.any(|is_in_memory| is_in_memory) {
                let what = "what is in memory is new each time: give every device an image=, or none".to_string();
                return Err(OpenError::NoVolume { path: path.text.clone(), what });
            }
            let holds = if is_new { holds } else { Holds::Bytes };
            let devices = Devices {
                conventional: conventional.as_ref().map(|device| open_conventional(device, holds, seed)).transpose()?,
                zoned: zoned.iter().map(|device| open_zoned(device, holds)).collect::<Result<_, _>>()?,
            };
            Ok(Box::new(if is_new {
                DmZoned::create(devices, settings, seed)?
            } else {
                DmZoned::open(devices, settings)?
            }))
        }
    }
}

fn open_conventional(settings: &ConvSettings, holds: Holds, seed: u64) -> Result<Box<dyn BlockDevice>, OpenError> {
    if let Some(ftl) = &settings.ftl {
        let drive = DriveSettings::exporting(settings.size_bytes, &ftl.layer, &ftl.flash)?;
        return Ok(open_drive(&drive, settings.blocks(), holds, seed, Some(conv::KIND.name)));
    }
    Ok(Box::new(match settings.image {
        Some(_) => Conventional::open(settings)?,
        None => Conventional::new(settings, holds.width()),
    }))
}

pub(super) fn open_zoned(settings: &ZnsSettings, holds: Holds) -> Result<Box<dyn ZonedDevice>, OpenError> {
    if let Some(device) = &settings.device {
        return Ok(zns::open_system_device(device)?);
    }
    Ok(Box::new(match settings.image {
        Some(_) => Zns::open(settings)?,
        None => Zns::new(settings, holds.width()),
    }))
}

/// A new drive that offers the first `blocks` blocks of what its translation layer exports; as one `medium` of a path, if
/// that has a name.
fn open_drive(
    drive: &DriveSettings,
    blocks: u64,
    holds: Holds,
    seed: u64,
    medium: Option<&'static str>,
) -> Box<dyn BlockDevice> {
    struct AsDevice {
        blocks: u64,
        width: usize,
        medium: Option<&'static str>,
    }
    impl WithDrive for AsDevice {
        type Output = Box<dyn BlockDevice>;

        fn with<T: Translation + Send + 'static>(self, layer: T) -> Box<dyn BlockDevice> {
            let drive = Drive::new(layer, self.blocks, self.width);
            Box::new(match self.medium {
                Some(station) => drive.as_medium(station),
                None => drive,
            })
        }
    }
    drive.make(false, seed, AsDevice { blocks, width: holds.width(), medium })
}
