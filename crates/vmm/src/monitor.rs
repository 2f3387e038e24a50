//! The monitor: its socket, its guests, and the recoveries of volumes whose guests have died.

use crate::entrance::Entrance;
use crate::error::VmmError;
use crate::event::{Event, Recovery};
use crate::guests::Guests;
use crate::keeper::{Frozen, Keeper};
use crate::name::{HeldName, NameError};
use crate::peer::Peer;
use crate::session::{Common, Session, guarded, panic_message};
use crate::socket::listener;
use crate::spill;
use crate::wire::{Answer, Wire};
use rustix::net::{Shutdown, shutdown};
use std::collections::BTreeSet;
use std::fs;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Recoveries that are tried before the memory is left to the next guest of the volume: the image may be in use, or the process
/// short of descriptors.
const RECOVERIES: u32 = 8;
/// The pauses between them: each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(20);
/// The interval at which one looks whether all recoveries have ended.
const TICK: Duration = Duration::from_millis(20);

/// Settings of a monitor.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The path of its socket.
    pub socket: PathBuf,
    /// The most blocks that it keeps of a volume: a guest that is near to that writes the oldest home.
    pub most_blocks: u32,
    /// The file to which it writes the kept memory when it ends, and from which it takes that of the monitor before.
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
    /// Listens at the path of `settings`. `events` hears of each event; `recover` writes the kept memory of a volume home, as a guest
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
        for (uuid, volume) in volumes {
            let name = HeldName::hold(volume.name).map_err(|error| match error {
                NameError::Taken { .. } => {
                    VmmError::Refused(format!("{error} keeps memory of {} that is in the spill, too", volume.path))
                }
                NameError::System(error) => error,
            })?;
            keeper.restore(uuid, volume, name);
        }
        let common = Common { keeper, most_blocks, spill, events: Box::new(events), guests: Guests::default() };
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

    /// Serves guests, each in a thread, until [`stop`](Monitor::stop). A failure of the thread is an event, and it goes on: what
    /// dead guests have left is written home by guests.
    pub fn serve(&self) {
        for &volume in &self.restored {
            self.begin_recovery(volume);
        }
        while !self.is_stopped() {
            let served = catch_unwind(AssertUnwindSafe(|| {
                let mut entrance = Entrance::new(&self.listener, &*self.common.events);
                while let Some(guest) = entrance.next(|| self.is_stopped()) {
                    self.welcome(Wire::of(guest));
                }
            }));
            if let Err(payload) = served {
                let why = panic_message(&*payload);
                (self.common.events)(Event::Failed { thread: "the thread that accepts guests", why });
                std::thread::sleep(FIRST_PAUSE);
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }

    /// Has a volume written home by a thread.
    fn begin_recovery(&self, volume: [u8; 16]) {
        let (common, recover) = (Arc::clone(&self.common), Arc::clone(&self.recover));
        let begun = std::thread::Builder::new()
            .name("recovery".to_string())
            .spawn(move || recovered_by_thread(&common, &*recover, volume));
        if let Err(error) = begun {
            self.common.keeper.give_up(volume);
            let why = format!("it cannot begin: {error}");
            (self.common.events)(Event::Failed { thread: "the thread of a recovery", why });
        }
    }

    /// Waits until the memory of dead guests is home, at most so long. Recoveries that have failed are tried once more.
    pub fn drain(&self, patience: Duration) {
        let mut tried = BTreeSet::new();
        for _ in 0..patience.as_millis() / TICK.as_millis() {
            for volume in self.common.keeper.take_left(&tried) {
                tried.insert(volume);
                self.begin_recovery(volume);
            }
            if !self.common.keeper.recovers() {
                return;
            }
            std::thread::sleep(TICK);
        }
    }

    /// Tells all guests that this monitor ends, for this reason. `_kept`: none of them commits any more.
    pub fn tell(&self, _kept: &Frozen<'_>, why: &str) {
        self.common.guests.tell(why);
    }

    fn welcome(&self, wire: Wire) {
        let peer = match Peer::of(&wire) {
            Ok(peer) => peer,
            Err(error) => {
                wire.dismiss(&Answer::Refused(error.to_string()));
                return (self.common.events)(Event::Refused { process: 0, why: error.to_string() });
            }
        };
        let number = self.sessions.fetch_add(1, Ordering::SeqCst);
        let (common, recover) = (Arc::clone(&self.common), Arc::clone(&self.recover));
        let wire = Arc::new(wire);
        self.common.guests.enter(number, &wire);
        let session = Session::new(Arc::clone(&common), number, Arc::clone(&wire), peer);
        let serve = move || {
            guarded(&common, "the thread of a guest", || {
                let left = session.serve();
                common.guests.leave(number);
                if let Some(volume) = left {
                    recovered_by_thread(&common, &*recover, volume);
                }
            });
        };
        if let Err(error) = std::thread::Builder::new().name("guest".to_string()).spawn(serve) {
            let why = format!("cannot begin a thread: {error}");
            wire.dismiss(&Answer::Refused(why.clone()));
            self.common.guests.leave(number);
            (self.common.events)(Event::Refused { process: 0, why });
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

    /// Writes the kept memory to the spill, if it has one.
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

/// The work of a thread that has a volume written home.
fn recovered_by_thread(common: &Common, recover: &Recover, volume: [u8; 16]) {
    let mut has_returned = false;
    guarded(common, "the thread of a recovery", || {
        recovered(common, recover, volume);
        has_returned = true;
    });
    if !has_returned {
        common.keeper.give_up(volume);
    }
}

/// Has the memory of a dead guest written home.
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
    let mut pause = FIRST_PAUSE;
    for again in 0..RECOVERIES {
        if again > 0 {
            std::thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
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
