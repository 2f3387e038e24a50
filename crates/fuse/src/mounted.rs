//! The mount, from its beginning to its end in good order.

use crate::one_file::OneFile;
use flashpath::run::shared::SharedDevice;
use fuser::{Config, MountOption, Session};
use nix::errno::Errno;
use nix::mount::{MntFlags, umount2};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Threads that serve the kernel's requests: one answers while another reads.
const THREADS: usize = 2;
/// How long the kernel may take to end a file system that is unmounted.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(5);

/// Why the file could not be mounted.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// What is written is no file in a directory.
    #[error("{0} names no file in a directory")]
    Name(PathBuf),
    /// The directory is used for something else.
    #[error("{0} is not empty")]
    NotEmpty(PathBuf),
    /// The directory cannot be used, or made.
    #[error("cannot use the directory {directory}: {source}")]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The system does not mount it.
    #[error("cannot mount at {directory}: {source}")]
    Mount {
        /// The directory.
        directory: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// How an attempt to unmount ended.
#[derive(Debug)]
pub enum Leaving {
    /// It is unmounted.
    Left,
    /// Someone uses it.
    Busy,
    /// The system refuses.
    Failed(io::Error),
}

/// A device as one file in a directory, which becomes a mount point.
#[derive(Debug)]
pub struct Mounted {
    directory: PathBuf,
    /// Whether the directory was made for it.
    is_made: bool,
    is_left: bool,
    serving: Option<JoinHandle<()>>,
}

impl Mounted {
    /// Mounts `device` as the file `place`. Its directory must be empty; if there is none, it is made, and removed at the
    /// end. A mount that a server left behind when it was killed is taken away. `on_end` is called once nothing is mounted
    /// there any more, whoever unmounted it.
    ///
    /// # Errors
    ///
    /// The directory cannot be used, or the system does not mount: there is no /dev/fuse, or without root no fusermount3.
    pub fn mount(
        device: Arc<SharedDevice>,
        place: &Path,
        on_end: impl FnOnce() + Send + 'static,
    ) -> Result<Mounted, MountError> {
        let name = place.file_name().filter(|_| !place.as_os_str().as_encoded_bytes().ends_with(b"/"));
        let (Some(name), Some(directory)) = (name, place.parent()) else {
            return Err(MountError::Name(place.to_path_buf()));
        };
        if directory.as_os_str().is_empty() {
            return Err(MountError::Name(place.to_path_buf()));
        }
        let is_made = prepare(directory)?;
        let mounted = Self::mount_in(device, directory, name, is_made, on_end);
        if mounted.is_err() && is_made {
            // An empty directory is all that could be left.
            let _ = std::fs::remove_dir(directory);
        }
        mounted
    }

    fn mount_in(
        device: Arc<SharedDevice>,
        directory: &Path,
        name: &OsStr,
        is_made: bool,
        on_end: impl FnOnce() + Send + 'static,
    ) -> Result<Mounted, MountError> {
        let failed = |source| MountError::Mount { directory: directory.to_path_buf(), source };
        // A later change of the working directory must not matter.
        let path = directory.canonicalize().map_err(failed)?;
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName("flashpath".into()),
            MountOption::Subtype("flashpath".into()),
            MountOption::DefaultPermissions,
            MountOption::NoDev,
            MountOption::NoSuid,
            MountOption::NoExec,
            MountOption::NoAtime,
        ];
        config.n_threads = Some(THREADS);
        config.clone_fd = true;
        let files = OneFile::new(device, name).map_err(failed)?;
        let session = Session::new(files, &path, &config).map_err(failed)?;
        let serving = Builder::new()
            .name("fuse".into())
            .spawn(move || {
                // What it would say is that the mount is gone, which is no error.
                let _ = session.run();
                on_end();
            })
            .map_err(failed)?;
        Ok(Mounted { directory: path, is_made, is_left: false, serving: Some(serving) })
    }

    /// The mount point.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Unmounts if nobody uses it, and waits until the last request is served.
    pub fn leave(&mut self) -> Leaving {
        let is_served = self.serving.as_ref().is_some_and(|serving| !serving.is_finished());
        if !self.is_left && is_served {
            match unmount(&self.directory, MntFlags::UMOUNT_NOFOLLOW) {
                Ok(()) => {}
                // Someone else was quicker.
                Err(Errno::EINVAL | Errno::ENOENT) => {}
                Err(Errno::EBUSY) => return Leaving::Busy,
                Err(error) => return Leaving::Failed(error.into()),
            }
        }
        self.is_left = true;
        self.end();
        Leaving::Left
    }

    /// Takes it out of sight although it is used: whoever uses it loses it when this program ends.
    pub fn abandon(mut self) {
        self.detach();
    }

    fn detach(&mut self) {
        if !std::mem::replace(&mut self.is_left, true) {
            // It fails where nothing is mounted any more.
            let _ = unmount(&self.directory, MntFlags::MNT_DETACH | MntFlags::UMOUNT_NOFOLLOW);
            self.end();
        }
    }

    /// Waits for the last request, and removes what was made.
    fn end(&mut self) {
        let until = Instant::now() + PATIENCE;
        if let Some(serving) = self.serving.take() {
            // Another mount namespace may hold on to it: then it ends with the program.
            while !serving.is_finished() && Instant::now() < until {
                std::thread::sleep(PAUSE);
            }
        }
        if std::mem::take(&mut self.is_made) {
            // Somebody may have put something there.
            let _ = std::fs::remove_dir(&self.directory);
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        self.detach();
    }
}

/// Makes sure that there is an empty directory; whether it was made.
fn prepare(directory: &Path) -> Result<bool, MountError> {
    let failed = |source| MountError::Directory { directory: directory.to_path_buf(), source };
    let is_dead = |error: &io::Error| error.raw_os_error() == Some(Errno::ENOTCONN as i32);
    if std::fs::metadata(directory).is_err_and(|error| is_dead(&error)) {
        // Its server was killed: nothing can be done with it but this.
        unmount(directory, MntFlags::MNT_DETACH | MntFlags::UMOUNT_NOFOLLOW).map_err(|error| failed(error.into()))?;
    }
    match std::fs::read_dir(directory) {
        Ok(mut entries) => match entries.next() {
            None => Ok(false),
            Some(_) => Err(MountError::NotEmpty(directory.to_path_buf())),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            std::fs::create_dir(directory).map(|()| true).map_err(failed)
        }
        Err(error) => Err(failed(error)),
    }
}

/// Unmounts; without root, through fusermount3, which may.
fn unmount(directory: &Path, flags: MntFlags) -> Result<(), Errno> {
    match umount2(directory, flags) {
        Err(Errno::EPERM) => {
            let mut command = Command::new("fusermount3");
            command.arg("-u").args(flags.contains(MntFlags::MNT_DETACH).then_some("-z")).arg("--").arg(directory);
            let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
            match status {
                Ok(status) if status.success() => Ok(()),
                // It says why only in words; what it is nearly always about is this.
                Ok(_) => Err(Errno::EBUSY),
                Err(_) => Err(Errno::EPERM),
            }
        }
        ended => ended,
    }
}
