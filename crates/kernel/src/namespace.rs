//! Private mounts.

use crate::{KernelError, failed};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

/// Gives the calling thread and its later threads and processes a mount namespace: their mounts are invisible
/// elsewhere, and end with the last of them. Mounts of others stay visible.
///
/// Fails without root.
pub fn make_mounts_private() -> Result<(), KernelError> {
    unshare(CloneFlags::CLONE_NEWNS).map_err(failed("have mounts of its own"))?;
    let flags = MsFlags::MS_SLAVE | MsFlags::MS_REC;
    mount(None::<&str>, "/", None::<&str>, flags, None::<&str>).map_err(failed("keep its mounts to itself"))
}
