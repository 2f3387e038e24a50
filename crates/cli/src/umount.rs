//! `flashpath umount`: takes a mount away, and waits until its server has stored everything and let go of the images.

use crate::failure::Failure;
use crate::resident::cannot;
use crate::resident::farewell::Server;
use crate::tell;
use flashpath_fuse::{FuseMount, unmount};
use nix::errno::Errno;
use nix::mount::MntFlags;
use std::path::PathBuf;

/// Unmount what `mount` or `serve --file` has mounted, and wait until all of it is stored; the exit code is the server's
#[derive(clap::Args)]
pub struct Umount {
    /// The mount point
    #[arg(value_name = "MOUNTPOINT")]
    directory: PathBuf,
    /// Take it out of sight although it is in use, and do not wait: it ends when its last user does
    #[arg(short, long)]
    lazy: bool,
    /// Let requests that are under way fail
    #[arg(short, long, conflicts_with = "lazy")]
    force: bool,
    /// umount(8) has called
    #[arg(long, hide = true)]
    by_mount: bool,
}

impl Umount {
    /// Unmounts and waits.
    pub fn run(self) -> Result<(), Failure> {
        let place = self.directory.display();
        let mount = self.mount()?;
        let (is_dead, is_elsewhere) = (mount.is_dead(), mount.is_elsewhere());
        let server = if self.lazy || is_dead { None } else { Server::of(&mount) };
        let flags = match (self.lazy || is_dead, self.force) {
            (true, _) => MntFlags::MNT_DETACH,
            (false, true) => MntFlags::MNT_FORCE,
            (false, false) => MntFlags::empty(),
        };
        unmount(&mount.directory, flags | MntFlags::UMOUNT_NOFOLLOW).map_err(|error| match error {
            Errno::EBUSY => {
                let users = flashpath_kernel::users_of(&mount.directory);
                Failure::failed(format!("{place} is in use{users}, or it is not yours to unmount"))
            }
            error => cannot(&format!("unmount {place}"), error),
        })?;
        if is_dead {
            return Err(Failure::failed(format!(
                "{place} is unmounted, but its server had ended without a last checkpoint: what was not synced is lost"
            )));
        }
        if is_elsewhere {
            return Ok(());
        }
        if self.lazy {
            tell(&format!("{place} is out of sight; nothing tells when its last checkpoint is taken"));
            return Ok(());
        }
        let Some(server) = server else {
            return Err(Failure::failed(format!(
                "{place} is unmounted, but its server cannot be heard from here: 'flashpath fsck' waits for it"
            )));
        };
        match server.wait(&self.directory) {
            Some((0, _)) => Ok(()),
            Some((code, reason)) => {
                tell(&format!("{place} is unmounted, but: {reason}"));
                Err(Failure::Quiet(code))
            }
            None => Err(Failure::failed(format!(
                "{place} is unmounted, but its server was killed before it had taken the last checkpoint: what was not \
                 synced is lost"
            ))),
        }
    }

    fn mount(&self) -> Result<FuseMount, Failure> {
        let place = self.directory.display();
        let Some(mount) = FuseMount::at(&self.directory) else {
            return Err(Failure::input(
                format!("{place} is no mount point of flashpath: nothing is mounted there through FUSE"),
                None,
            ));
        };
        if !mount.is_of_flashpath() {
            let (kind, source) = (&mount.kind, &mount.source);
            let help = Some(format!("umount {place} unmounts it"));
            return Err(Failure::input(format!("{place} is no mount of flashpath, but of {source} ({kind})"), help));
        }
        Ok(mount)
    }
}
