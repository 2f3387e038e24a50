//! The socket at which guests find the monitor.

use crate::error::{VmmError, cannot};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, fchmod};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with};
use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Guests that may wait to be accepted.
const WAITING: i32 = 64;

/// The address of a socket.
pub(crate) fn address(path: &Path) -> Result<SocketAddrUnix, VmmError> {
    SocketAddrUnix::new(path).map_err(cannot(&format!("use {} as the path of a socket", path.display())))
}

/// A new socket for packets.
pub(crate) fn socket() -> Result<OwnedFd, VmmError> {
    let made = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
    made.map_err(cannot("make a socket"))
}

/// Listens at a path, in place of a monitor that has died.
pub(crate) fn listener(path: &Path) -> Result<OwnedFd, VmmError> {
    let place = address(path)?;
    let listener = socket()?;
    fchmod(&listener, Mode::RUSR | Mode::WUSR).map_err(cannot("protect a socket"))?;
    let doing = format!("listen at {}", path.display());
    let mut bound = bind(&listener, &place);
    if bound == Err(Errno::ADDRINUSE) {
        // A connection to a file of another kind is refused too, and that is not to be removed.
        let is_socket = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
        if !is_socket || connect(socket()?, &place) != Err(Errno::CONNREFUSED) {
            let why = "another process listens there, or it is no socket of a monitor";
            return Err(cannot(&doing)(io::Error::new(io::ErrorKind::AddrInUse, why)));
        }
        // The one that a dead monitor has left.
        fs::remove_file(path).map_err(cannot(&doing))?;
        bound = bind(&listener, &place);
    }
    bound.and_then(|()| listen(&listener, WAITING)).map_err(cannot(&doing))?;
    Ok(listener)
}
