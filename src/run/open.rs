//! From a path to the devices that it names.

use super::path::{Path, Stack};
use super::stations::{DriveSettings, WithDrive};
use crate::device::{BlockDevice, DeviceError, STAMP_BYTES};
use crate::expression::ExpressionError;
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
    /// A file system of the kernel cannot be simulated.
    #[error("{0} is the running kernel's: a path with it on top is run on this machine, and cannot be simulated")]
    NeedsKernel(String),
}

/// Opens what is below the file system of a path, or all of a path without one, as one device.
///
/// Fails if an image cannot be used as the path says.
pub fn open_device(path: &Path, holds: Holds, seed: u64) -> Result<Box<dyn BlockDevice>, OpenError> {
    match &path.stack {
        Stack::Drive(drive) => Ok(open_drive(drive, drive.exported_bytes() / BLOCK_BYTES, holds, seed)),
        Stack::Conventional(settings) => {
            let blocks = settings.size_bytes / BLOCK_BYTES;
            Ok(Box::new(crate::device::conv::Conventional::in_memory(blocks, holds.width())))
        }
        Stack::Zoned { .. } => {
            Err(DeviceError::Station { station: "dm-zoned", reason: "it is not there yet".into() }.into())
        }
    }
}

/// A new drive that offers the first `blocks` blocks of what its translation layer exports.
fn open_drive(drive: &DriveSettings, blocks: u64, holds: Holds, seed: u64) -> Box<dyn BlockDevice> {
    struct AsDevice {
        blocks: u64,
        width: usize,
    }
    impl WithDrive for AsDevice {
        type Output = Box<dyn BlockDevice>;

        fn with<T: Translation + Send + 'static>(self, layer: T) -> Box<dyn BlockDevice> {
            Box::new(Drive::new(layer, self.blocks, self.width))
        }
    }
    drive.make(false, seed, AsDevice { blocks, width: holds.width() })
}
