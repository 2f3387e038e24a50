//! Errors that end a connection or prevent a server from starting.

use flashpath::run::shared::{Fault, ServeError};
use std::io;
use std::path::PathBuf;

/// The reason why a connection ended before its client disconnected.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// The socket failed, the client left within a request, or a request took too long.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The client violated the protocol.
    #[error("the client does not speak NBD: {0}")]
    Protocol(&'static str),
    /// The limit of clients is reached.
    #[error("as many clients as there may be are served already")]
    NoPlace,
}

/// The reason why a server cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The text is not an address to listen on.
    #[error("{text} is no address to serve at: {why}")]
    Address {
        /// The text as given.
        text: String,
        /// The reason.
        why: &'static str,
    },
    /// Another server listens there.
    #[error("another server listens at {0}")]
    Taken(PathBuf),
    /// Something that is not a socket has that name.
    #[error("{0} is there already, and is no socket")]
    Occupied(PathBuf),
    /// A system call failed.
    #[error("cannot listen at {place}: {source}")]
    Io {
        /// The address.
        place: String,
        /// The error of the system.
        source: io::Error,
    },
}

/// The protocol's error number.
pub(crate) fn number(error: &ServeError, is_write: bool) -> u32 {
    use crate::wire::error::{INVALID, IO, NO_SPACE, PERMISSION};
    match error.fault() {
        Fault::BeyondEnd if is_write => NO_SPACE,
        Fault::BeyondEnd | Fault::Invalid => INVALID,
        Fault::ReadOnly => PERMISSION,
        Fault::NoSpace => NO_SPACE,
        Fault::Unreadable | Fault::Failed => IO,
    }
}
