//! Writes files atomically.

use std::path::{Path, PathBuf};

/// A file that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {file}: {source}")]
pub struct WriteError {
    /// The file.
    pub file: String,
    /// The system's error.
    pub source: std::io::Error,
}

impl WriteError {
    /// The system's error for `path`.
    pub fn new(path: &Path, source: std::io::Error) -> WriteError {
        WriteError { file: path.display().to_string(), source }
    }
}

/// Writes a file atomically, through a temporary file beside it. Devices and pipes, such as /dev/null, are written in
/// place.
pub fn write_file(path: &Path, content: impl AsRef<[u8]>) -> Result<(), WriteError> {
    if is_special(path) {
        return std::fs::write(path, content).map_err(|error| WriteError::new(path, error));
    }
    let beside = beside(path);
    std::fs::write(&beside, content).and_then(|()| std::fs::rename(&beside, path)).map_err(|error| {
        // Best effort: the first error matters more than one of the removal.
        let _ = std::fs::remove_file(&beside);
        WriteError::new(path, error)
    })
}

/// Checks that [`write_file`] could write to `path`, without changing it.
pub fn check_writable(path: &Path) -> Result<(), WriteError> {
    if path.is_dir() {
        return Err(WriteError::new(path, std::io::ErrorKind::IsADirectory.into()));
    }
    if is_special(path) {
        return Ok(());
    }
    let beside = beside(path);
    std::fs::File::create(&beside)
        .and_then(|_| std::fs::remove_file(&beside))
        .map_err(|error| WriteError::new(path, error))
}

/// True if `path` is a device, a pipe or a socket.
pub fn is_special(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

pub(super) fn beside(path: &Path) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".part");
    PathBuf::from(beside)
}
