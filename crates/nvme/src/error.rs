//! The reasons why a connection ends before its host disconnects.

use std::io;

/// The reason why a connection ended.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// The socket failed, the host left within a unit, or took too long for one.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The host broke the transport, and was told.
    #[error("the host does not speak NVMe/TCP: {0}")]
    Transport(&'static str),
    /// The host ended it with a termination request.
    #[error("the host ended the connection: status {0} at {1}")]
    Terminated(u16, u32),
    /// The host gave no sign of life for the time that it had set.
    #[error("the host gave no sign of life within its keep alive time")]
    Forsaken,
}
