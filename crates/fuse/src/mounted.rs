//! The mount, from its beginning to its end in good order.

use crate::error::MountError;
use crate::file_system::{Caching, FileSystem};
use crate::mount_point::{prepare, source_name, unmount};
use crate::one_file::OneFile;
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

/// Threads that serve the kernel's requests: one answers while another reads.
const THREADS: usize = 2;
/// How long the kernel may take to end a file system that is unmounted.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(5);

/// The outcome of an attempt to unmount.
#[derive(Debug)]
pub enum Leaving {
    /// It is unmounted.
    Left,
    /// Someone uses it.
    Busy,
    /// The system refuses.
    Failed(io::Error),
}

/// What the kernel lets nobody do with a mount's files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forbidden {
    /// Run programs as the user or group of their set-id bits.
    pub set_id: bool,
    /// Use device files.
    pub devices: bool,
    /// Run programs.
    pub programs: bool,
}

/// The options of a mount.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// The name in `df` and `mount`.
    pub name: String,
    /// The type that `mount` shows behind `fuse.`.
    pub kind: String,
    /// Other users may use it, as far as its permissions let them. With root they always may.
    pub allow_other: bool,
    /// The place where writes wait.
    pub caching: Caching,
    /// What nobody may do. Without root the system forbids the first two always.
    pub forbidden: Forbidden,
}

/// What `mount` shows behind `fuse.`. fuser hands the subtype on to fusermount3 only: with root, the kernel is told
/// in its own words.
fn subtype(name: &str) -> MountOption {
    match geteuid().is_root() {
        true => MountOption::CUSTOM(format!("subtype={name}")),
        false => MountOption::Subtype(name.into()),
    }
}

/// A file system at a directory, which became a mount point.
#[derive(Debug)]
pub struct Mounted {
    directory: PathBuf,
    /// Whether the directory was made for it.
    is_made: bool,
    is_left: bool,
    serving: Option<JoinHandle<()>>,
}

impl Mounted {
    /// Mounts `device` as the file `place`. Its directory must be empty; if there is none, it is made, and removed at
    /// the end. A mount that a server left behind when it was killed is taken away. `on_end` is called once nothing
    /// is mounted there any more, whoever unmounted it.
    ///
    /// # Errors
    ///
    /// The directory cannot be used, or the system does not mount: there is no /dev/fuse, or without root no
    /// fusermount3.
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

    /// Mounts a volume at `directory`, as [`one_file`](Mounted::one_file) does with a file. With root, programs with
    /// set-id bits and device files work as on any file system that root mounts; without, the system lets neither
    /// work.
    ///
    /// # Errors
    ///
    /// Those of [`one_file`](Mounted::one_file); and without root others may only be let in if `/etc/fuse.conf` says
    /// so.
    pub fn volume(
        volume: Arc<SharedVolume>,
        directory: &Path,
        wishes: &Wishes,
        on_end: impl FnOnce() + Send + 'static,
    ) -> Result<Mounted, MountError> {
        let (sharing, is_root) = (volume.sharing(), geteuid().is_root());
        let mut config = Config::default();
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
        Self::mount(|| FileSystem::new(volume, wishes.caching), directory, config, on_end)
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
            // An empty directory is all that could be left.
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
        // A later change of the working directory must not matter.
        let path = directory.canonicalize().map_err(failed)?;
        config.n_threads = Some(THREADS);
        config.clone_fd = true;
        let session = Session::new(files().map_err(failed)?, &path, &config).map_err(failed)?;
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
