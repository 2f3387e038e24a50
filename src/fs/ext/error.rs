//! Why a volume cannot be opened.

use crate::device::{DeviceError, ImageError};
use crate::fs::station::VolumeFault;
use crate::fs::volume::VolumeError;
use std::error::Error;

/// The way out for a volume whose memory is lost.
pub const GIVE_UP: &str = "'fsck ext:journal=inline/DATA' gives it up, with what was not home";

/// Why a volume cannot be opened, made or checked.
#[derive(Debug, thiserror::Error)]
pub enum OpenExtError {
    /// The device has no superblock that can be used.
    #[error("the superblock at byte 1024: {0}")]
    Superblock(String),
    /// The volume has features that are not known here.
    #[error("the volume has features that cannot be read here: {0}")]
    Unreadable(String),
    /// A check says nothing of it, since it has something that only e2fsck knows.
    #[error("cannot check the volume, because {0}: e2fsck checks it")]
    Uncheckable(String),
    /// The volume is damaged, and has features that are not written here.
    #[error("the volume is damaged, and has features that cannot be written here: {0}: e2fsck repairs it")]
    Unrepairable(String),
    /// The journal's device is missing, or is not that of the volume.
    #[error("the journal's device: {0}")]
    JournalDevice(String),
    /// A monitor that lives keeps memory of the volume.
    #[error(transparent)]
    InUse(ImageError),
    /// The volume has something that is not done here.
    #[error("{0}")]
    Unsupported(String),
    /// A structure is damaged, or the device fails.
    #[error(transparent)]
    Volume(#[from] VolumeError),
}

impl From<DeviceError> for OpenExtError {
    fn from(error: DeviceError) -> OpenExtError {
        OpenExtError::Volume(error.into())
    }
}

impl From<OpenExtError> for VolumeFault {
    fn from(error: OpenExtError) -> VolumeFault {
        let source: Box<dyn Error + Send + Sync> = match error {
            // A program that waits for an image looks for it.
            OpenExtError::InUse(error) => Box::new(error),
            error => Box::new(error),
        };
        // Without a superblock nothing says that there was a volume of ext.
        VolumeFault { is_lost: false, source }
    }
}

/// A structure is not as it should be.
pub fn damaged(what: impl Into<String>, why: impl Into<String>) -> VolumeError {
    VolumeError::Damaged { what: what.into(), why: why.into() }
}
