//! Mounts that nobody else sees.

use crate::{KernelError, failed};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

/// Gives the calling thread, and all threads and processes that it will start, mounts of their own: what they mount from
/// now on is not seen elsewhere, and goes when the last of them goes. What others mount is still seen.
///
/// Fails without the right to do so (root).
pub fn make_mounts_private() -> Result<(), KernelError> {
    unshare(CloneFlags::CLONE_NEWNS).map_err(failed("have mounts of its own"))?;
    let flags = MsFlags::MS_SLAVE | MsFlags::MS_REC;
    mount(None::<&str>, "/", None::<&str>, flags, None::<&str>).map_err(failed("keep its mounts to itself"))
}
