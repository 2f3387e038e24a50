//! How a mount ended, for whoever waits for it: `flashpath umount`.
//!
//! The kernel lets umount(2) return as soon as nobody uses a FUSE file system; its server then takes the last checkpoint.
//! So the server listens on an abstract Unix socket that has the kernel's number of the mounted file system in its name.
//! Whoever unmounts connects first, and reads the server's exit code and its reason when all is done. The kernel keeps
//! connections until they are accepted, so no thread is needed.

use crate::failure::Failure;
use crate::tell;
use flashpath_fuse::FuseMount;
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use std::io::{self, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a server that has just ended may hold the same number.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(10);
/// After so long it is said what is waited for.
const UNTIL_TOLD: Duration = Duration::from_secs(2);

fn address(mount: &FuseMount) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("flashpath-mount-{}", mount.device))
}

/// Those who want to know how a mount ends.
#[derive(Default)]
pub struct Farewell {
    listener: Option<UnixListener>,
    waiting: Vec<UnixStream>,
}

impl Farewell {
    /// From now on `flashpath umount` can wait for the end of what is mounted at this directory.
    pub fn offer(&mut self, directory: &Path) {
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
                Err(error) => return tell(&format!("warning: 'flashpath umount' cannot wait for this mount: {error}")),
            }
        }
    }

    /// Nothing is mounted any more, and the next mount may get the same number.
    pub fn close(&mut self) {
        if let Some(listener) = self.listener.take()
            && listener.set_nonblocking(true).is_ok()
        {
            self.waiting.extend(std::iter::from_fn(|| listener.accept().ok()).map(|(stream, _)| stream));
        }
    }

    /// All is done, and nothing is held any more.
    pub fn tell(mut self, ended: &Result<(), Failure>) {
        self.close();
        let said = match ended {
            Ok(()) => "0 ".to_string(),
            Err(failure) => format!("{} {}", failure.code(), failure.words().unwrap_or_default()),
        };
        for mut stream in self.waiting {
            // Who has gone away does not want to know.
            let _ = stream.write_all(said.as_bytes());
        }
    }
}

/// A mount's server, which will say how it ended.
pub struct Server(UnixStream);

impl Server {
    /// The server of a mount. `None` if none listens, or if it belongs to somebody else than who mounted it.
    pub fn of(mount: &FuseMount) -> Option<Server> {
        let stream = UnixStream::connect_addr(&address(mount).ok()?).ok()?;
        let peer = getsockopt(&stream, PeerCredentials).ok()?;
        (peer.uid() == 0 || Some(peer.uid()) == mount.user).then_some(Server(stream))
    }

    /// Waits until it has let go of all: answers its exit code and the reason. `None`: it ended without a word.
    pub fn wait(mut self, place: &Path) -> Option<(u8, String)> {
        let mut said = Vec::new();
        let mut patience = Some(UNTIL_TOLD);
        loop {
            self.0.set_read_timeout(patience).ok()?;
            match self.0.read_to_end(&mut said) {
                Ok(_) => break,
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    patience = None;
                    tell(&format!(
                        "waiting for the last checkpoint of {}, or until it is mounted nowhere else",
                        place.display()
                    ));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        let said = String::from_utf8_lossy(&said);
        let (code, words) = said.split_once(' ')?;
        Some((code.parse().ok()?, words.to_string()))
    }
}
