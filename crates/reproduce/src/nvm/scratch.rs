//! Directories for the files of real runs.

use crate::ReproduceError;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The memory of the system as a directory.
const MEMORY: &str = "/dev/shm";

/// A new directory, removed with all that is in it when it is dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// A directory below `place`.
    pub fn new(place: &Path) -> Result<Scratch, ReproduceError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = place.join(format!("flashpath-nvm-{}-{number}", std::process::id()));
        std::fs::create_dir(&path)
            .map_err(|error| ReproduceError::failed(format!("cannot make {}: {error}", path.display())))?;
        if path.to_string_lossy().contains([',', '+']) {
            let _ = std::fs::remove_dir(&path);
            let message = format!("{} cannot be in a path of stations: it has , or +", path.display());
            return Err(ReproduceError::input(message, Some("take another --dir".to_string())));
        }
        Ok(Scratch { path })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name of a file in it.
    pub fn file(&self, name: &str) -> String {
        self.path.join(name).display().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Best effort: it is a temporary directory.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// The directory of the system's memory, if it is one.
pub fn memory() -> Option<&'static Path> {
    let memory = Path::new(MEMORY);
    (file_system_of(memory) == "tmpfs").then_some(memory)
}

/// The file system of a directory, by the mount with the longest name above it; empty if it is not known.
pub fn file_system_of(directory: &Path) -> String {
    let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_path_buf());
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mounts = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((words.next()?, words.next()?))
    });
    let above = mounts.filter(|(mount, _)| directory.starts_with(mount));
    // Of two mounts in one place, the later one is seen.
    above.max_by_key(|(mount, _)| mount.len()).map(|(_, kind)| kind.to_string()).unwrap_or_default()
}
