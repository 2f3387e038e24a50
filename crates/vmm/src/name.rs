//! The name of memory that is kept, held by the process that keeps it.
//!
//! A volume names its memory in its superblock. A process that keeps the memory holds an abstract socket of that name from before
//! the volume names it until the volume names it no longer; the kernel lets the name go when the process ends, in any way. So
//! a process that is about to give the memory up tries to hold the name: while a monitor that has the memory lives, that fails, and while
//! it holds it, no monitor takes that memory back from a spill.
//!
//! Such names are those of a network namespace: the check of a volume belongs into that of its monitor.

use crate::error::{VmmError, cannot};
use crate::socket::socket;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{SocketAddrUnix, bind, connect, listen};

/// Processes that ask for the holder's process and are not answered yet: the holder never accepts, and the rest learn nothing.
const ASKING: i32 = 4096;

/// The name of memory, which this process holds.
#[derive(Debug)]
pub struct HeldName(#[allow(dead_code, reason = "the name is held as long as it is open")] OwnedFd);

/// The reason why a name is not held.
#[derive(Debug, thiserror::Error)]
pub enum NameError {
    /// Another process holds it: it keeps the memory, or is about to give it up.
    #[error("{}", by(*process))]
    Taken {
        /// The process, if it is known.
        process: Option<i32>,
    },
    /// A call of the system failed.
    #[error(transparent)]
    System(VmmError),
}

fn by(process: Option<i32>) -> String {
    process.map_or_else(|| "another process".to_string(), |process| format!("process {process}"))
}

impl HeldName {
    /// Holds a name, which nobody else does.
    ///
    /// # Errors
    ///
    /// Somebody holds it, or the system cannot tell.
    pub fn hold(name: [u8; 16]) -> Result<HeldName, NameError> {
        let doing = "hold the name of memory";
        let text: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
        let address = SocketAddrUnix::new_abstract_name(format!("flashpath-memory-{text}").as_bytes());
        let address = address.map_err(|error| NameError::System(cannot(doing)(error)))?;
        let held = socket().map_err(NameError::System)?;
        match bind(&held, &address).and_then(|()| listen(&held, ASKING)) {
            Ok(()) => Ok(HeldName(held)),
            Err(Errno::ADDRINUSE) => Err(NameError::Taken { process: holder(&address) }),
            Err(error) => Err(NameError::System(cannot(doing)(error))),
        }
    }
}

/// The process that holds a name.
fn holder(address: &SocketAddrUnix) -> Option<i32> {
    let asking = socket().ok()?;
    let flags = fcntl_getfl(asking.as_fd()).ok()?;
    fcntl_setfl(asking.as_fd(), flags | OFlags::NONBLOCK).ok()?;
    connect(&asking, address).ok()?;
    // The credentials are those at the time at which the other side began to listen.
    socket_peercred(&asking).ok().map(|credentials| credentials.pid.as_raw_nonzero().get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_held_once_and_says_who_holds_it() {
        let name = (u128::from(std::process::id()) << 64 | 0x4E41_4D45).to_le_bytes();
        let held = HeldName::hold(name).unwrap();
        let own = std::process::id() as i32;
        for _ in 0..3 {
            let refused = HeldName::hold(name);
            assert!(
                matches!(refused, Err(NameError::Taken { process: Some(process) }) if process == own),
                "{refused:?}"
            );
        }
        drop(held);
        HeldName::hold(name).unwrap();
    }
}
