//! Errors that end a session.

/// The reason why a client could not be served, or no longer.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The system lacks memory, threads or descriptors.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The protocol was violated, or a socket failed.
    #[error("the client of the vhost-user socket: {0}")]
    Protocol(String),
}

impl From<vhost_user_backend::Error> for SessionError {
    fn from(error: vhost_user_backend::Error) -> SessionError {
        SessionError::Protocol(error.to_string())
    }
}
