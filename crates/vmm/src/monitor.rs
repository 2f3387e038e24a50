//! The monitor: its socket, its guests, and the recoveries of volumes whose guests have died.

use crate::error::{VmmError, cannot};
use crate::event::{Event, Recovery};
use crate::keeper::{Frozen, Keeper};
use crate::peer::Peer;
use crate::session::{Common, Session};
use crate::spill;
use crate::wire::{Answer, Wire};
use rustix::fs::{Mode, fchmod};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen, shutdown,
    socket_with,
};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Guests that may wait to be accepted.
const WAITING: i32 = 64;
/// Recoveries that are tried before the memory is left to the next guest of the volume.
const RECOVERIES: u32 = 3;
const BETWEEN_RECOVERIES: Duration = Duration::from_secs(1);

/// Settings of a monitor.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The path of its socket.
    pub socket: PathBuf,
    /// The most blocks that it keeps of a volume: a guest that is near to that writes the oldest home.
    pub most_blocks: u32,
    /// The file to which it writes what it keeps when it ends, and from which it takes what the one before has kept.
    pub spill: Option<PathBuf>,
}

type Recover = dyn Fn(&Recovery) -> Result<(), String> + Send + Sync;

/// A monitor that listens.
pub struct Monitor {
    listener: OwnedFd,
    socket: PathBuf,
    common: Arc<Common>,
    recover: Arc<Recover>,
    sessions: AtomicU64,
    is_stopped: AtomicBool,
    /// Volumes whose memory was read from the spill.
    restored: Vec<[u8; 16]>,
}

impl Monitor {
    /// Listens at the path of `settings`. `events` hears what happens; `recover` writes home what is kept of a volume, as a guest
    /// of its own, and may be called by several threads.
    ///
    /// # Errors
    ///
    /// Another process listens there, or something that is no socket is there. The spill cannot be read.
    pub fn listen(
        settings: &Settings,
        events: impl Fn(Event) + Send + Sync + 'static,
        recover: impl Fn(&Recovery) -> Result<(), String> + Send + Sync + 'static,
    ) -> Result<Monitor, VmmError> {
        let listener = listener(&settings.socket)?;
        let (most_blocks, spill) = (settings.most_blocks, settings.spill.clone());
        let volumes = spill.as_deref().map_or(Ok(Vec::new()), spill::read)?;
        let restored = volumes.iter().map(|(volume, _)| *volume).collect();
        let keeper = Keeper::default();
        volumes.into_iter().for_each(|(uuid, volume)| keeper.restore(uuid, volume));
        let common = Common { keeper, most_blocks, spill, events: Box::new(events) };
        Ok(Monitor {
            listener,
            socket: settings.socket.clone(),
            common: Arc::new(common),
            recover: Arc::new(recover),
            sessions: AtomicU64::new(0),
            is_stopped: AtomicBool::new(false),
            restored,
        })
    }

    /// Serves guests, each in a thread, until [`stop`](Monitor::stop).
    pub fn serve(&self) -> Result<(), VmmError> {
        for &volume in &self.restored {
            let (common, recover) = (Arc::clone(&self.common), Arc::clone(&self.recover));
            let begun = std::thread::Builder::new()
                .name("recovery".to_string())
                .spawn(move || recovered(&common, &*recover, volume));
            begun.map_err(cannot("begin a thread"))?;
        }
        loop {
            match accept_with(&self.listener, SocketFlags::CLOEXEC) {
                Ok(_) | Err(_) if self.is_stopped.load(Ordering::SeqCst) => return Ok(()),
                Ok(socket) => self.welcome(Wire::of(socket)),
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(error) => return Err(cannot("accept a guest")(error)),
            }
        }
    }

    fn welcome(&self, wire: Wire) {
        let peer = match Peer::of(&wire) {
            Ok(peer) => peer,
            Err(error) => {
                // One who does not listen for the answer is gone.
                let _ = wire.send(&Answer::Refused(error.to_string()), &[]);
                return (self.common.events)(Event::Refused { process: 0, why: error.to_string() });
            }
        };
        let number = self.sessions.fetch_add(1, Ordering::SeqCst);
        let (common, recover) = (Arc::clone(&self.common), Arc::clone(&self.recover));
        let session = Session::new(Arc::clone(&common), number, wire, peer);
        let serve = move || {
            if let Some(volume) = session.serve() {
                recovered(&common, &*recover, volume);
            }
        };
        if let Err(error) = std::thread::Builder::new().name("guest".to_string()).spawn(serve) {
            (self.common.events)(Event::Refused { process: 0, why: format!("cannot begin a thread: {error}") });
        }
    }

    /// Accepts no guest any more.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        // It wakes the thread that accepts.
        let _ = shutdown(&self.listener, Shutdown::Both);
    }

    /// All that is kept. As long as the caller has it, nothing is committed.
    pub fn frozen(&self) -> Frozen<'_> {
        self.common.keeper.frozen()
    }

    /// Writes what is kept to the spill, if it has one.
    ///
    /// # Errors
    ///
    /// The file cannot be written. The one of an earlier time is there still.
    pub fn spill(&self, kept: &Frozen<'_>) -> Result<(), VmmError> {
        self.common.spill.as_deref().map_or(Ok(()), |path| spill::write(path, kept.volumes()))
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        // Somebody may have removed it.
        let _ = fs::remove_file(&self.socket);
    }
}

/// Has what a dead guest has left written home.
fn recovered(common: &Common, recover: &Recover, volume: [u8; 16]) {
    // The one before may have died in the middle of it, or it is another guest's now.
    let left = || {
        common.keeper.left(volume, |kept| Recovery {
            volume,
            path: kept.path.clone(),
            directory: kept.directory.clone(),
            blocks: kept.table.len(),
        })
    };
    for again in 0..RECOVERIES {
        if again > 0 {
            std::thread::sleep(BETWEEN_RECOVERIES);
        }
        let Some(recovery) = left() else { return };
        let done = recover(&recovery);
        // One that was killed may have done it all.
        let is_home = || common.keeper.with(volume, |_| ()).is_none();
        match done {
            Err(why) if left().is_some() => (common.events)(Event::NotRecovered { volume, why }),
            Err(_) if !is_home() => return,
            _ => {
                (common.events)(Event::Recovered { volume, blocks: recovery.blocks });
                break;
            }
        }
    }
    common.keeper.give_up(volume);
}

/// The address of a socket.
pub(crate) fn address(path: &Path) -> Result<SocketAddrUnix, VmmError> {
    SocketAddrUnix::new(path).map_err(cannot(&format!("use {} as the path of a socket", path.display())))
}

/// A new socket for packets.
pub(crate) fn socket() -> Result<OwnedFd, VmmError> {
    let made = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
    made.map_err(cannot("make a socket"))
}

fn listener(path: &Path) -> Result<OwnedFd, VmmError> {
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
