//! Why an operation of the file system fails, or a volume cannot be mounted.

use crate::device::DeviceError;
pub use crate::fs::volume::VolumeError as SfsError;
use crate::units::format_size;

/// Why a volume cannot be made or mounted.
#[derive(Debug, thiserror::Error)]
pub enum OpenSfsError {
    /// There is no superblock, and nothing that was one.
    #[error("it holds no volume of sfs; 'flashpath mkfs' makes one")]
    NoVolume,
    /// Superblocks are there, and none can be used.
    #[error(
        "no superblock can be used ({0}): what the volume holds may still be there, but only an older copy of the image has its roots"
    )]
    Superblocks(String),
    /// It was made by another version.
    #[error("it is of version {found} of the format, and this program knows version {known}")]
    Version {
        /// What the superblock says.
        found: u32,
        /// What is known.
        known: u32,
    },
    /// The device is not the one that the volume was made on.
    #[error("the volume was made on {expected} blocks, and the device has {found}")]
    Shape {
        /// What the superblock says.
        expected: u64,
        /// What there is.
        found: u64,
    },
    /// The volume has other segments than asked for.
    #[error("the volume has segments of {found} bytes, and segment={asked} was written; leave it away")]
    Segment {
        /// What the superblock says, in bytes.
        found: u64,
        /// What was asked for.
        asked: u64,
    },
    /// There are too few segments.
    #[error("a volume needs {needed} segments, and {found} of {bytes} bytes fit: {advice}")]
    TooSmall {
        /// How many it needs.
        needed: u32,
        /// How many there are.
        found: u32,
        /// Bytes of a segment.
        bytes: u64,
        /// What would help.
        advice: String,
    },
    /// The volume that was asked for is not there any more.
    #[error("it holds another volume now")]
    Another,
    /// The bound on memory is too low for the segments.
    #[error("memory={} is too little for segments of {}: write memory={} or more, or leave it away", format_size(*asked), format_size(*segment), format_size(*least))]
    Memory {
        /// What was asked for, in bytes.
        asked: u64,
        /// The least, in bytes.
        least: u64,
        /// Bytes of a segment.
        segment: u64,
    },
    /// Something in it is damaged or fails.
    #[error("{0}; 'flashpath fsck' says more")]
    Inside(#[from] SfsError),
}

impl From<DeviceError> for OpenSfsError {
    fn from(error: DeviceError) -> OpenSfsError {
        OpenSfsError::Inside(error.into())
    }
}
