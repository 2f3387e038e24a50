//! One type for Unix and TCP sockets.

use crate::address::Address;
use crate::error::ListenError;
use rustix::fs::{Mode, fchmod};
use rustix::io::Errno;
use rustix::net::{
    self, AddressFamily, RecvFlags, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType, sockopt,
};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Connections that the kernel holds until they are accepted.
const BACKLOG: i32 = 64;

/// Bytes of a Unix socket's send buffer. The default is filled by one reply of 128 KiB: the sender then sleeps until the client has
/// received most of it, and the client until there is more.
const SEND_BUFFER: usize = 1 << 20;

/// A listening socket. A Unix socket's name is removed when it is closed or dropped.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    address: Address,
    name: Option<Name>,
    is_closed: AtomicBool,
}

/// The path of a Unix socket.
#[derive(Debug)]
struct Name {
    path: PathBuf,
    /// The socket's device and inode: another server may have replaced it since.
    identity: (u64, u64),
    is_removed: AtomicBool,
}

impl Name {
    fn remove(&self) {
        if self.is_removed.swap(true, Ordering::SeqCst) {
            return;
        }
        let is_ours = std::fs::symlink_metadata(&self.path).is_ok_and(|now| (now.dev(), now.ino()) == self.identity);
        if is_ours {
            // A name that stays is replaced by the next server.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Listener {
    /// Listens on `address`. A Unix socket is its owner's alone (mode 0600); the name of a dead server is replaced.
    ///
    /// # Errors
    ///
    /// Another server listens there, something that is not a socket has the name, or the system refuses.
    pub fn bind(address: &Address) -> Result<Listener, ListenError> {
        match address {
            Address::Unix(path) => Self::bind_unix(path),
            Address::Tcp(address) => Self::bind_tcp(*address),
        }
    }

    fn bind_unix(path: &Path) -> Result<Listener, ListenError> {
        let failed = |source: io::Error| ListenError::Io { place: path.display().to_string(), source };
        let name = SocketAddrUnix::new(path).map_err(|error| match error {
            Errno::NAMETOOLONG => failed(io::Error::other("the name of a Unix socket has at most 107 bytes")),
            error => failed(error.into()),
        })?;
        clear_name(path, &name)?;
        let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .map_err(|error| failed(error.into()))?;
        // The name gets the socket's mode, so others can never connect.
        fchmod(&socket, Mode::RUSR | Mode::WUSR)
            .and_then(|()| net::bind(&socket, &name))
            .map_err(|error| failed(error.into()))?;
        let metadata = std::fs::symlink_metadata(path).map_err(failed)?;
        let identity = (metadata.dev(), metadata.ino());
        let name = Some(Name { path: path.to_path_buf(), identity, is_removed: AtomicBool::new(false) });
        // From here on, the name is removed on any error.
        let listener =
            Listener { socket, address: Address::Unix(path.to_path_buf()), name, is_closed: AtomicBool::new(false) };
        net::listen(&listener.socket, BACKLOG).map_err(|error| failed(error.into()))?;
        Ok(listener)
    }

    fn bind_tcp(address: SocketAddr) -> Result<Listener, ListenError> {
        let failed = |error: Errno| ListenError::Io { place: address.to_string(), source: error.into() };
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None).map_err(failed)?;
        sockopt::set_socket_reuseaddr(&socket, true).map_err(failed)?;
        net::bind(&socket, &address).map_err(failed)?;
        net::listen(&socket, BACKLOG).map_err(failed)?;
        let bound = net::getsockname(&socket).map_err(failed)?;
        let bound = SocketAddr::try_from(bound).map_err(failed)?;
        Ok(Listener { socket, address: Address::Tcp(bound), name: None, is_closed: AtomicBool::new(false) })
    }

    /// The address of the socket; it has the actual port if port 0 was asked for.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Waits for a client; `None` after [`close`](Listener::close).
    ///
    /// # Errors
    ///
    /// The error of the system, such as too many open files; the next call may succeed.
    pub fn accept(&self) -> Result<Option<Socket>, Errno> {
        loop {
            let accepted = net::accept_with(&self.socket, SocketFlags::CLOEXEC);
            if self.is_closed.load(Ordering::SeqCst) {
                return Ok(None);
            }
            match accepted {
                Ok(socket) => {
                    // It costs time alone if that fails, such as for a client that has gone; and the kernel may grant less.
                    let _ = match self.address {
                        Address::Tcp(_) => sockopt::set_tcp_nodelay(&socket, true),
                        Address::Unix(_) => sockopt::set_socket_send_buffer_size(&socket, SEND_BUFFER),
                    };
                    return Ok(Some(Socket(Arc::new(socket))));
                }
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Another descriptor of it: in reserve, or for a library that accepts clients by itself.
    ///
    /// # Errors
    ///
    /// The process has as many descriptors as it may have.
    pub fn duplicate(&self) -> io::Result<OwnedFd> {
        self.socket.try_clone()
    }

    /// Stops listening, ends an [`accept`](Listener::accept) in another thread, and removes the name.
    pub fn close(&self) {
        self.name.iter().for_each(Name::remove);
        self.is_closed.store(true, Ordering::SeqCst);
        // Fails if the socket is already closed.
        let _ = net::shutdown(&self.socket, Shutdown::Both);
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.name.iter().for_each(Name::remove);
    }
}

/// Removes the name of a dead server.
fn clear_name(path: &Path, name: &SocketAddrUnix) -> Result<(), ListenError> {
    let failed = |source: io::Error| ListenError::Io { place: path.display().to_string(), source };
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
        Ok(metadata) if !metadata.file_type().is_socket() => return Err(ListenError::Occupied(path.to_path_buf())),
        Ok(_) => {}
    }
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let client =
        net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).map_err(|error| failed(error.into()))?;
    match net::connect(&client, name) {
        Err(Errno::CONNREFUSED) => std::fs::remove_file(path).map_err(failed),
        Err(Errno::NOENT) => Ok(()),
        // A server with a full backlog is alive, too.
        Ok(()) | Err(Errno::AGAIN | Errno::PROTOTYPE) => Err(ListenError::Taken(path.to_path_buf())),
        Err(error) => Err(failed(error.into())),
    }
}

/// A connected socket; a clone is the same socket.
#[derive(Clone, Debug)]
pub struct Socket(Arc<OwnedFd>);

impl Socket {
    /// A connected socket.
    #[cfg(test)]
    pub fn of(connected: OwnedFd) -> Socket {
        Socket(Arc::new(connected))
    }

    /// Sets the timeout of reads and writes.
    pub fn set_patience(&self, patience: Duration) -> io::Result<()> {
        self.set_timeouts(patience, patience)
    }

    /// Sets the timeout of reads, and that of writes.
    pub fn set_timeouts(&self, reads: Duration, writes: Duration) -> io::Result<()> {
        sockopt::set_socket_timeout(&self.0, sockopt::Timeout::Recv, Some(reads))?;
        Ok(sockopt::set_socket_timeout(&self.0, sockopt::Timeout::Send, Some(writes))?)
    }

    /// The address of this side, of a TCP socket.
    pub fn local_address(&self) -> Option<SocketAddr> {
        SocketAddr::try_from(net::getsockname(&self.0).ok()?).ok()
    }

    /// Reads the bytes that have arrived; `None` if there are none.
    pub fn read_available(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match net::recv(&self.0, buffer, RecvFlags::DONTWAIT) {
            Ok((count, _)) => Ok(Some(count)),
            Err(Errno::AGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Ends the input: a reader gets the bytes that have arrived, and then the end.
    pub fn close_input(&self) {
        // Fails if the other side has closed already.
        let _ = net::shutdown(&self.0, Shutdown::Read);
    }

    /// Closes both directions; ends reads and writes in progress.
    pub fn close(&self) {
        // Fails if the other side has closed already.
        let _ = net::shutdown(&self.0, Shutdown::Both);
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(net::recv(&self.0, buffer, RecvFlags::empty())?.0)
    }
}

impl Write for Socket {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        Ok(net::send(&self.0, buffer, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
