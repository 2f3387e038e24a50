//! Why a connection, or a server, ended.

use flashpath::run::shared::{Fault, ServeError};
use std::io;
use std::path::PathBuf;

/// Why a connection ended before its client said so.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// The socket failed, the client went away in the middle of a request, or took too long within one.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// What came is not the protocol.
    #[error("the client does not speak NBD: {0}")]
    Protocol(&'static str),
    /// As many clients as there may be are served already.
    #[error("as many clients as there may be are served already")]
    NoPlace,
}

/// Why a server could not begin to listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The text names no place to listen at.
    #[error("{text} is no address to serve at: {why}")]
    Address {
        /// What was written.
        text: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Another server listens there.
    #[error("another server listens at {0}")]
    Taken(PathBuf),
    /// Something else has that name.
    #[error("{0} is there already, and is no socket")]
    Occupied(PathBuf),
    /// The system refuses.
    #[error("cannot listen at {place}: {source}")]
    Io {
        /// Where.
        place: String,
        /// What the system says.
        source: io::Error,
    },
}

/// The protocol's number of an error.
pub(crate) fn number(error: &ServeError, is_write: bool) -> u32 {
    use crate::wire::error::{INVALID, IO, NO_SPACE, PERMISSION};
    match error.fault() {
        Fault::BeyondEnd if is_write => NO_SPACE,
        Fault::BeyondEnd | Fault::Invalid => INVALID,
        Fault::ReadOnly => PERMISSION,
        Fault::NoSpace => NO_SPACE,
        Fault::Failed => IO,
    }
}
