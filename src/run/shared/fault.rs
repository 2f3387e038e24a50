//! Errors of requests, as front ends report them to their clients.

use super::Broken;
use crate::device::{DeviceError, ZoneError};
use crate::fs::volume::VolumeError;
use rustix::io::Errno;

/// The reason why a request could not be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// It reaches beyond the end.
    #[error("{length} bytes from {offset} on were asked for, and the device has {size_bytes}")]
    BeyondEnd {
        /// The first byte.
        offset: u64,
        /// Bytes.
        length: u64,
        /// Bytes of the device.
        size_bytes: u64,
    },
    /// The device is shared for reading only.
    #[error("the device is served for reading only")]
    ReadOnly,
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The device's code panicked in an earlier request: its state is unknown.
    #[error("an earlier request broke the device: restart it")]
    Broken,
    /// A device that keeps stamps in place of bytes cannot be served.
    #[error("a block of the device is carried in {width} bytes, and clients need all of it")]
    NoBytes {
        /// Bytes that stand for a block.
        width: usize,
    },
}

impl From<Broken> for ServeError {
    fn from(_: Broken) -> ServeError {
        ServeError::Broken
    }
}

/// Why a request to a mounted volume fails.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The volume refuses, or fails.
    #[error(transparent)]
    Volume(#[from] VolumeError),
    /// An earlier request panicked within the volume.
    #[error("an earlier request has broken the volume: what was not synced before is lost")]
    Broken,
}

impl From<Broken> for CallError {
    fn from(_: Broken) -> CallError {
        CallError::Broken
    }
}

impl CallError {
    /// The error number of the system call.
    pub fn errno(&self) -> Errno {
        match self {
            CallError::Volume(error) => error.errno(),
            CallError::Broken => Errno::IO,
        }
    }
}

/// The kinds of faults that clients distinguish: NBD and the kernel have a number for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request is wrong.
    Invalid,
    /// It reaches beyond the end.
    BeyondEnd,
    /// It would change a read-only device.
    ReadOnly,
    /// There is no room.
    NoSpace,
    /// The blocks there cannot be read.
    Unreadable,
    /// The device cannot do it.
    Failed,
}

impl ServeError {
    /// The fault that a client is told.
    pub fn fault(&self) -> Fault {
        match self {
            ServeError::BeyondEnd { .. } => Fault::BeyondEnd,
            ServeError::ReadOnly => Fault::ReadOnly,
            ServeError::Broken => Fault::Failed,
            ServeError::NoBytes { .. } => Fault::Invalid,
            ServeError::Device(error) => match error {
                DeviceError::BeyondEnd { .. } => Fault::BeyondEnd,
                DeviceError::ReadOnly { .. } | DeviceError::Zone(ZoneError::IsReadOnly { .. }) => Fault::ReadOnly,
                DeviceError::Full { .. } | DeviceError::WornOut { .. } => Fault::NoSpace,
                DeviceError::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => Fault::NoSpace,
                DeviceError::Uncorrectable { .. } => Fault::Unreadable,
                DeviceError::Io { .. } | DeviceError::Zone(_) | DeviceError::Station { .. } => Fault::Failed,
            },
        }
    }
}
