//! Errors of making and opening a volume.

use crate::device::DeviceError;

/// The reason why a dm-zoned volume cannot be made or opened.
#[derive(Debug, thiserror::Error)]
pub enum ZonedVolumeError {
    /// A device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// These devices cannot hold a volume, or not this one.
    #[error("{0}")]
    Unsuitable(String),
    /// A field of a structure is inconsistent.
    #[error("{structure}: {field} is {found}, and {expected} would be right")]
    Damaged {
        /// The structure and its location.
        structure: String,
        /// The field.
        field: &'static str,
        /// Its value.
        found: String,
        /// A valid value.
        expected: String,
    },
}

/// The error for an inconsistent field.
pub(super) fn damaged(
    structure: impl Into<String>,
    field: &'static str,
    found: impl ToString,
    expected: impl Into<String>,
) -> ZonedVolumeError {
    let (structure, found, expected) = (structure.into(), found.to_string(), expected.into());
    ZonedVolumeError::Damaged { structure, field, found, expected }
}
