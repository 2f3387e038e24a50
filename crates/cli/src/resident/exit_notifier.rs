//! Sends the exit status of a mount's server to `flashpath umount`.
//!
//! umount(2) of a FUSE file system returns before its server takes the last checkpoint. So the server listens on an
//! abstract Unix socket with the device number of the mount in its name. `flashpath umount` connects before it
//! unmounts, and reads the server's exit code and message at the end. The kernel queues connections until they are
//! accepted, so no thread is needed.

use crate::failure::Failure;
use crate::print_message;
use flashpath_fuse::FuseMount;
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use std::io::{self, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

/// The time for which a server that is ending may hold the same device number.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(10);
/// The time after which the wait is announced.
const UNTIL_ANNOUNCED: Duration = Duration::from_secs(2);

fn address(mount: &FuseMount) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("flashpath-mount-{}", mount.device))
}

/// The server's end: the clients that wait for its exit status.
#[derive(Default)]
pub struct ExitNotifier {
    listener: Option<UnixListener>,
    waiting: Vec<UnixStream>,
}

impl ExitNotifier {
    /// Listens for `flashpath umount` of the mount at this directory.
    pub fn listen(&mut self, directory: &Path) {
        let until = Instant::now() + PATIENCE;
        let Some(mount) = FuseMount::at(directory) else { return };
        loop {
            match address(&mount).and_then(|address| UnixListener::bind_addr(&address)) {
                Ok(listener) => {
                    self.listener = Some(listener);
                    return;
                }
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && Instant::now() < until => {
                    std::thread::sleep(PAUSE);
                }
                Err(error) => {
                    return print_message(&format!("warning: 'flashpath umount' cannot wait for this mount: {error}"));
                }
            }
        }
    }

    /// Stops listening: after the unmount, the next mount may get the same device number.
    pub fn close(&mut self) {
        if let Some(listener) = self.listener.take()
            && listener.set_nonblocking(true).is_ok()
        {
            self.waiting.extend(std::iter::from_fn(|| listener.accept().ok()).map(|(stream, _)| stream));
        }
    }

    /// Sends the exit status to all waiting clients. Call it when all images are released.
    pub fn notify(mut self, result: &Result<(), Failure>) {
        self.close();
        let status = match result {
            Ok(()) => "0 ".to_string(),
            Err(failure) => format!("{} {}", failure.code(), failure.message().unwrap_or_default()),
        };
        for mut stream in self.waiting {
            // A client that has gone away is ignored.
            let _ = stream.write_all(status.as_bytes());
        }
    }
}

/// The client's end: a connection to a mount's server.
pub struct Server(UnixStream);

impl Server {
    /// Connects to the server of a mount. `None` if none listens, or if its user is neither root nor the user of the
    /// mount.
    pub fn of(mount: &FuseMount) -> Option<Server> {
        let stream = UnixStream::connect_addr(&address(mount).ok()?).ok()?;
        let peer = getsockopt(&stream, PeerCredentials).ok()?;
        (peer.uid() == 0 || Some(peer.uid()) == mount.user).then_some(Server(stream))
    }

    /// Waits for the server's end; returns its exit code and message. `None` if it ended without a status.
    pub fn wait(mut self, place: &Path) -> Option<(u8, String)> {
        let mut status = Vec::new();
        let mut patience = Some(UNTIL_ANNOUNCED);
        loop {
            self.0.set_read_timeout(patience).ok()?;
            match self.0.read_to_end(&mut status) {
                Ok(_) => break,
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    patience = None;
                    print_message(&format!(
                        "waiting for the last checkpoint of {}, or for the end of its other mounts",
                        place.display()
                    ));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        let status = String::from_utf8_lossy(&status);
        let (code, message) = status.split_once(' ')?;
        Some((code.parse().ok()?, message.to_string()))
    }
}
