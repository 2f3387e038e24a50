//! Errors of operations and of mounts.

use crate::device::DeviceError;
pub use crate::fs::volume::VolumeError as SfsError;
use crate::units::format_size;

/// Failure to make or mount a volume.
#[derive(Debug, thiserror::Error)]
pub enum OpenSfsError {
    /// No superblock, and no trace of one.
    #[error("the device holds no volume of sfs; 'flashpath mkfs' makes one")]
    NoVolume,
    /// Superblocks exist, but none can be used.
    #[error(
        "no superblock can be used ({0}): the data may still be stored, but only an older copy of the image has the roots to find it"
    )]
    Superblocks(String),
    /// The volume has an unknown format version.
    #[error("the volume has format version {found}, and this program knows version {known}")]
    Version {
        /// The version in the superblock.
        found: u32,
        /// The newest known version.
        known: u32,
    },
    /// The device has another size than at mkfs.
    #[error("the volume was made on {expected} blocks, and the device has {found}")]
    Shape {
        /// Blocks in the superblock.
        expected: u64,
        /// Blocks of the device.
        found: u64,
    },
    /// The volume's segment size differs from the option.
    #[error("the volume has segments of {found} bytes, not segment={asked}; omit the option")]
    Segment {
        /// Segment size in the superblock, in bytes.
        found: u64,
        /// Segment size in the option, in bytes.
        asked: u64,
    },
    /// Too few segments.
    #[error("a volume needs {needed} segments, and only {found} of {bytes} bytes fit: {advice}")]
    TooSmall {
        /// Segments needed.
        needed: u32,
        /// Segments available.
        found: u32,
        /// Segment size in bytes.
        bytes: u64,
        /// A change that would help.
        advice: String,
    },
    /// Too many segments.
    #[error(
        "the volume would have {found} segments of {bytes} bytes, and the table of their usage must fit into one of them: {advice}"
    )]
    TooManySegments {
        /// Segments of the volume.
        found: u32,
        /// Segment size in bytes.
        bytes: u64,
        /// A change that would help.
        advice: String,
    },
    /// The requested volume was replaced.
    #[error("the device now holds another volume")]
    Another,
    /// The grouping needs to know future writes.
    #[error(
        "this grouping places blocks by the time at which they will die, which is known only of a block workload in a simulation: choose another one, such as grouping=lifetime"
    )]
    Future,
    /// The memory bound is too low for the segment size.
    #[error("memory={} is too little for segments of {}: write memory={} or more, or omit it", format_size(*asked), format_size(*segment), format_size(*least))]
    Memory {
        /// The requested bound, in bytes.
        asked: u64,
        /// The minimum, in bytes.
        least: u64,
        /// Segment size in bytes.
        segment: u64,
    },
    /// A structure of the volume is damaged, or the device failed.
    #[error("{0}; run 'flashpath fsck' for details")]
    Inside(#[from] SfsError),
}

impl From<DeviceError> for OpenSfsError {
    fn from(error: DeviceError) -> OpenSfsError {
        OpenSfsError::Inside(error.into())
    }
}
