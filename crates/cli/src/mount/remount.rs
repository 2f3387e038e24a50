//! `mount -o remount`: changes the options of a mount that the kernel enforces.
//!
//! All other options belong to the server, and stay as they are until it ends.

use super::options::MountOptions;
use crate::failure::Failure;
use crate::resident::cannot;
use flashpath::fs::posix::AccessTimes;
use flashpath_fuse::FuseMount;
use nix::mount::MsFlags;
use std::fs::File;
use std::path::Path;

/// Changes the options of the mount at a directory.
pub fn remount(directory: &Path, options: &MountOptions) -> Result<(), Failure> {
    let place = directory.display();
    let Some(mount) = FuseMount::at(directory).filter(FuseMount::is_of_flashpath) else {
        let help = "leave remount out to mount it".to_string();
        return Err(Failure::input(format!("-o remount: no volume is mounted at {place}"), Some(help)));
    };
    let forbidden = options.forbidden;
    let flags = [
        (options.read_only, MsFlags::MS_RDONLY),
        (forbidden.set_id, MsFlags::MS_NOSUID),
        (forbidden.devices, MsFlags::MS_NODEV),
        (forbidden.programs, MsFlags::MS_NOEXEC),
        (options.access_times == AccessTimes::Never, MsFlags::MS_NOATIME),
        (options.access_times == AccessTimes::Relative, MsFlags::MS_RELATIME),
        (options.access_times == AccessTimes::Strict, MsFlags::MS_STRICTATIME),
        (options.ignores_directory_reads, MsFlags::MS_NODIRATIME),
    ];
    let flags: MsFlags = flags.into_iter().filter(|(wanted, _)| *wanted).map(|(_, flag)| flag).collect();
    let none: Option<&str> = None;
    nix::mount::mount(none, &mount.directory, none, flags | MsFlags::MS_REMOUNT, none)
        .map_err(|error| cannot(&format!("remount {place}"), error))?;
    if options.read_only {
        // No later request would make names and data durable.
        let root = File::open(&mount.directory).and_then(|root| root.sync_all());
        root.map_err(|error| {
            Failure::failed(format!("{place} is read-only, and its last changes are not stored: {error}"))
        })?;
    }
    Ok(())
}
