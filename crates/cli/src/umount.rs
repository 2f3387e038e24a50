//! `flashpath umount`: unmounts, and waits until the server has stored everything and released the images.

use crate::failure::Failure;
use crate::print_message;
use crate::resident::cannot;
use crate::resident::exit_notifier::Server;
use flashpath_fuse::{FuseMount, unmount};
use nix::errno::Errno;
use nix::mount::MntFlags;
use std::path::PathBuf;

/// Unmount a mount of `mount` or `serve --file`, and wait until all data is stored; the exit code is the server's
#[derive(clap::Args)]
pub struct Umount {
    /// The mount point
    #[arg(value_name = "MOUNTPOINT")]
    directory: PathBuf,
    /// Detach it although it is in use, and do not wait: it ends with its last user
    #[arg(short, long)]
    lazy: bool,
    /// Abort pending requests
    #[arg(short, long, conflicts_with = "lazy")]
    force: bool,
    /// Called by umount(8)
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
                Failure::failed(format!("{place} is in use{users}, or you have no right to unmount it"))
            }
            error => cannot(&format!("unmount {place}"), error),
        })?;
        if is_dead {
            return Err(Failure::failed(format!(
                "{place} is unmounted, but its server had ended without a last checkpoint: data that was not synced is lost"
            )));
        }
        if is_elsewhere {
            return Ok(());
        }
        if self.lazy {
            print_message(&format!("{place} is detached; its last checkpoint follows when its last user ends"));
            return Ok(());
        }
        let Some(server) = server else {
            return Err(Failure::failed(format!(
                "{place} is unmounted, but its server cannot be reached from here: 'flashpath fsck' waits for it"
            )));
        };
        match server.wait(&self.directory) {
            Some((0, _)) => Ok(()),
            Some((code, reason)) => {
                print_message(&format!("{place} is unmounted, but: {reason}"));
                Err(Failure::Quiet(code))
            }
            None => Err(Failure::failed(format!(
                "{place} is unmounted, but its server was killed before the last checkpoint: data that was not \
                 synced is lost"
            ))),
        }
    }

    fn mount(&self) -> Result<FuseMount, Failure> {
        let place = self.directory.display();
        let Some(mount) = FuseMount::at(&self.directory) else {
            return Err(Failure::input(
                format!("{place} is not a mount point of flashpath: nothing is mounted there through FUSE"),
                None,
            ));
        };
        if !mount.is_of_flashpath() {
            let (kind, source) = (&mount.kind, &mount.source);
            let help = Some(format!("use umount {place}"));
            return Err(Failure::input(format!("{place} is a mount of {source} ({kind}), not of flashpath"), help));
        }
        Ok(mount)
    }
}
