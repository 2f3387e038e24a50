//! Why a volume cannot be made or opened.

use crate::device::DeviceError;

/// Why a dm-zoned volume cannot be made or opened.
#[derive(Debug, thiserror::Error)]
pub enum ZonedVolumeError {
    /// A device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// These devices cannot hold a volume, or not this one.
    #[error("{0}")]
    Unfit(String),
    /// A structure says what cannot be.
    #[error("{structure}: {field} is {found}, and {expected} would be right")]
    Damaged {
        /// The structure, and where it is.
        structure: String,
        /// The field of it.
        field: &'static str,
        /// What it says.
        found: String,
        /// What would be right.
        expected: String,
    },
}

/// A structure's field that is wrong.
pub(super) fn damaged(
    structure: impl Into<String>,
    field: &'static str,
    found: impl ToString,
    expected: impl Into<String>,
) -> ZonedVolumeError {
    let (structure, found, expected) = (structure.into(), found.to_string(), expected.into());
    ZonedVolumeError::Damaged { structure, field, found, expected }
}
