//! A mount, from mounting to unmounting.

use crate::error::MountError;
use crate::file_system::{Caching, FileSystem};
use crate::mount_point::{prepare, source_name, unmount};
use crate::one_file::OneFile;
use crate::recorder::Recorder;
use flashpath::fs::posix::AccessTimes;
use flashpath::run::shared::{SharedDevice, SharedVolume};
use fuser::{Config, Filesystem, MountOption, Session, SessionACL};
use nix::errno::Errno;
use nix::mount::MntFlags;
use nix::unistd::geteuid;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Threads that serve the requests to a device: one answers while another reads.
const DEVICE_THREADS: usize = 2;
/// Threads that serve the requests to a volume: as many reads wait for an image's disk at once. More are hardly faster.
const VOLUME_THREADS: usize = 4;
/// The maximum wait for the end of the session after an unmount.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(5);

/// The outcome of an attempt to unmount.
#[derive(Debug)]
pub enum Leaving {
    /// It is unmounted.
    Left,
    /// A process uses it.
    Busy,
    /// The system's unmount call failed.
    Failed(io::Error),
}

/// Uses of a mount's files that the kernel forbids to all users.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forbidden {
    /// Running programs as the user or group of their set-id bits.
    pub set_id: bool,
    /// Using device files.
    pub devices: bool,
    /// Running programs.
    pub programs: bool,
}

/// The options of a mount.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// The name in `df` and `mount`.
    pub name: String,
    /// The type that `mount` shows behind `fuse.`.
    pub kind: String,
    /// Other users may use it, within its permissions. With root they always may.
    pub allow_other: bool,
    /// The place where unsent writes wait.
    pub caching: Caching,
    /// The recording of its requests, if somebody asks for one.
    pub recorder: Option<Arc<Recorder>>,
    /// Forbidden uses. Without root the system always forbids set-id bits and devices.
    pub forbidden: Forbidden,
}

/// The type that `mount` shows behind `fuse.`. fuser passes a subtype to fusermount3 only; with root, it is passed as
/// the kernel's own option.
fn subtype(name: &str) -> MountOption {
    match geteuid().is_root() {
        true => MountOption::CUSTOM(format!("subtype={name}")),
        false => MountOption::Subtype(name.into()),
    }
}

/// A mounted file system. Dropping it unmounts it, even if it is in use.
#[derive(Debug)]
pub struct Mounted {
    directory: PathBuf,
    /// True if the directory was made for the mount.
    is_made: bool,
    is_left: bool,
    serving: Option<JoinHandle<()>>,
}

impl Mounted {
    /// Mounts `device` as the file `place`. Its directory must be empty; a missing one is made, and removed at the end.
    /// The mount of a killed server is unmounted first. `on_end` is called after the unmount, whoever unmounts it.
    ///
    /// # Errors
    ///
    /// The directory cannot be used, or the system cannot mount: there is no /dev/fuse, or without root no fusermount3.
    pub fn one_file(
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
        let mut config = Config::default();
        config.n_threads = Some(DEVICE_THREADS);
        config.mount_options = vec![
            MountOption::FSName("flashpath".into()),
            subtype("flashpath"),
            MountOption::DefaultPermissions,
            MountOption::NoDev,
            MountOption::NoSuid,
            MountOption::NoExec,
            MountOption::NoAtime,
        ];
        Self::mount(|| OneFile::new(device, name), directory, config, on_end)
    }

    /// Mounts a volume at `directory`, as [`one_file`](Mounted::one_file) mounts a file. With root, set-id bits and device
    /// files work as on any mount of root's; without root, the system allows neither.
    ///
    /// # Errors
    ///
    /// Those of [`one_file`](Mounted::one_file). Without root, `allow_other` fails unless `/etc/fuse.conf` allows it.
    pub fn volume(
        volume: Arc<SharedVolume>,
        directory: &Path,
        wishes: &Wishes,
        on_end: impl FnOnce() + Send + 'static,
    ) -> Result<Mounted, MountError> {
        let (sharing, is_root) = (volume.sharing(), geteuid().is_root());
        let mut config = Config::default();
        config.n_threads = Some(VOLUME_THREADS);
        config.mount_options = vec![
            MountOption::FSName(source_name(&wishes.name, !is_root)),
            subtype(&wishes.kind),
            MountOption::DefaultPermissions,
        ];
        let forbidden = wishes.forbidden;
        let more = [
            (sharing.read_only, MountOption::RO),
            (volume.posix().usage().access_times == AccessTimes::Never, MountOption::NoAtime),
            (forbidden.set_id, MountOption::NoSuid),
            (is_root && !forbidden.set_id, MountOption::Suid),
            (forbidden.devices, MountOption::NoDev),
            (is_root && !forbidden.devices, MountOption::Dev),
            (forbidden.programs, MountOption::NoExec),
        ];
        config.mount_options.extend(more.into_iter().filter(|(wanted, _)| *wanted).map(|(_, option)| option));
        config.acl = if is_root || wishes.allow_other { SessionACL::All } else { SessionACL::Owner };
        Self::mount(|| FileSystem::new(volume, wishes.caching, wishes.recorder.clone()), directory, config, on_end)
    }

    fn mount<F: Filesystem>(
        files: impl FnOnce() -> io::Result<F>,
        directory: &Path,
        config: Config,
        on_end: impl FnOnce() + Send + 'static,
    ) -> Result<Mounted, MountError> {
        let is_made = prepare(directory)?;
        let mounted = Self::mount_at(files, directory, config, is_made, on_end);
        if mounted.is_err() && is_made {
            // The directory is still empty.
            let _ = std::fs::remove_dir(directory);
        }
        mounted
    }

    fn mount_at<F: Filesystem>(
        files: impl FnOnce() -> io::Result<F>,
        directory: &Path,
        mut config: Config,
        is_made: bool,
        on_end: impl FnOnce() + Send + 'static,
    ) -> Result<Mounted, MountError> {
        let failed = |source| MountError::Mount { directory: directory.to_path_buf(), source };
        // The path stays valid after a change of the working directory.
        let path = directory.canonicalize().map_err(failed)?;
        config.clone_fd = true;
        let session = Session::new(files().map_err(failed)?, &path, &config).map_err(failed)?;
        let serving = Builder::new()
            .name("fuse".into())
            .spawn(move || {
                // The only error is that the mount is gone, which is the normal end.
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

    /// Unmounts if no process uses it, and waits until the last request is served.
    pub fn leave(&mut self) -> Leaving {
        let is_served = self.serving.as_ref().is_some_and(|serving| !serving.is_finished());
        if !self.is_left && is_served {
            match unmount(&self.directory, MntFlags::UMOUNT_NOFOLLOW) {
                Ok(()) => {}
                // Another process has unmounted it.
                Err(Errno::EINVAL | Errno::ENOENT) => {}
                Err(Errno::EBUSY) => return Leaving::Busy,
                Err(error) => return Leaving::Failed(error.into()),
            }
        }
        self.is_left = true;
        self.end();
        Leaving::Left
    }

    /// Unmounts it lazily although it is in use: its users lose it when this program ends.
    pub fn abandon(mut self) {
        self.detach();
    }

    fn detach(&mut self) {
        if !std::mem::replace(&mut self.is_left, true) {
            // Fails if it is already unmounted.
            let _ = unmount(&self.directory, MntFlags::MNT_DETACH | MntFlags::UMOUNT_NOFOLLOW);
            self.end();
        }
    }

    /// Waits for the last request, and removes the directory if it was made for the mount.
    fn end(&mut self) {
        let until = Instant::now() + PATIENCE;
        if let Some(serving) = self.serving.take() {
            // If another mount namespace still has the mount, it ends with the program.
            while !serving.is_finished() && Instant::now() < until {
                std::thread::sleep(PAUSE);
            }
        }
        if std::mem::take(&mut self.is_made) {
            // Fails if a file was put there meanwhile.
            let _ = std::fs::remove_dir(&self.directory);
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        self.detach();
    }
}
