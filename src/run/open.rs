//! From a path to the device that it names.

use super::path::Path;
use crate::device::station::{Holds, Making, StationError};
use crate::device::{BlockDevice, DeviceError, ImageError, Medium};
use crate::expression::ExpressionError;
use crate::fs::sfs::OpenSfsError;
use std::error::Error;

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
    /// The devices hold no volume of a station, or cannot.
    #[error("{source}")]
    Volume {
        /// True if there is a volume, and a structure of it says what cannot be.
        is_damaged: bool,
        /// What is wrong.
        source: Box<dyn Error + Send + Sync>,
    },
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

impl OpenError {
    /// Why a station of `path` cannot be opened or made.
    pub(super) fn of_station(path: &Path) -> impl Fn(StationError) -> OpenError + '_ {
        |error| match error {
            StationError::Device(error) => error.into(),
            StationError::Image(error) => error.into(),
            StationError::Volume { is_damaged, source } => OpenError::Volume { is_damaged, source },
            error @ StationError::Mixed => OpenError::no_volume(path, error),
        }
    }

    pub(super) fn no_volume(path: &Path, what: impl ToString) -> OpenError {
        OpenError::NoVolume { path: path.text.clone(), what: what.to_string() }
    }
}

/// Opens what is below the file system of a path, or all of a path without one, as one device of blocks.
///
/// What is in memory is new. What has an image is opened as it was left, and carries bytes, whatever `holds` says; on
/// images dm-zoned must have been made before. `seed` is that of the choices that devices make.
pub fn open_device(path: &Path, holds: Holds, seed: u64) -> Result<Box<dyn BlockDevice>, OpenError> {
    match open_medium(path, holds, seed)? {
        Medium::Blocks(device) => Ok(device),
        Medium::Zones(_) => Err(OpenError::no_volume(path, "zones alone are no blocks that can be written anywhere")),
    }
}

/// Opens what is below the file system of a path.
pub(super) fn open_medium(path: &Path, holds: Holds, seed: u64) -> Result<Medium, OpenError> {
    path.device.open(holds, seed).map_err(OpenError::of_station(path))
}

/// Makes the images of a path, and the volumes of the stations below its file system. Images that are there already are
/// replaced only with `force`; those that a failure leaves half made are removed.
pub(super) fn make_medium(path: &Path, making: &Making) -> Result<Medium, OpenError> {
    path.device.make(making).map_err(OpenError::of_station(path))
}
