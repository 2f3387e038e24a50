//! A thread for each connection, and the shutdown.

use crate::connection::serve_host;
use crate::controller::{Hangup, Portal};
use crate::error::ConnectionError;
use crate::subsystem::Subsystem;
use flashpath_nbd::{Address, Entrance, Listener, Notices, Place, Polling, Socket, Traffic, WaitingRoom, guarded};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Limits on the number of connections and on their time.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The maximum number of connected queues; one more is refused.
    pub queues: usize,
    /// The maximum number of connections without a queue; one more disconnects the oldest.
    pub newcomers: usize,
    /// The maximum time until a queue is connected.
    pub handshake: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { queues: 128, newcomers: 64, handshake: Duration::from_secs(5) }
    }
}

/// The longest wait for a unit, after which events and the keep alive time are looked at.
const TICK: Duration = Duration::from_millis(250);
/// The maximum time for a write to a host.
const PATIENCE: Duration = Duration::from_secs(30);
/// The maximum time to fetch the last answers at shutdown.
const GRACE: Duration = Duration::from_secs(5);
/// The wait for connections to end that were closed.
const PAUSE: Duration = Duration::from_millis(50);

/// State that the server's threads share.
struct Shared {
    subsystem: Arc<Subsystem>,
    listener: Listener,
    limits: Limits,
    /// Connections without a queue.
    newcomers: Arc<WaitingRoom>,
    /// Connected queues.
    queues: Mutex<BTreeMap<u64, Socket>>,
    left: Condvar,
    accepted: AtomicU64,
    turned_away: AtomicU64,
    broken: AtomicU64,
}

/// A running server. Dropping it does the same as [`stop`](Server::stop).
pub struct Server {
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves `subsystem` to all hosts that connect to `listener`. `notices` hears what the user of the server is to know at once.
    ///
    /// # Errors
    ///
    /// The system cannot start a thread.
    pub fn start(
        listener: Listener,
        subsystem: Arc<Subsystem>,
        limits: Limits,
        notices: Notices,
    ) -> io::Result<Server> {
        let shared = Arc::new(Shared {
            subsystem,
            listener,
            limits,
            newcomers: WaitingRoom::new(limits.newcomers),
            queues: Mutex::default(),
            left: Condvar::new(),
            accepted: AtomicU64::new(0),
            turned_away: AtomicU64::new(0),
            broken: AtomicU64::new(0),
        });
        let accepts = Arc::clone(&shared);
        let accepting = Builder::new()
            .name("nvme-accept".into())
            .spawn(move || guarded(&notices, || accept(&accepts, &notices)))?;
        Ok(Server { shared, accepting: Some(accepting) })
    }

    /// A function that returns the counts of queues, also after the server's end.
    pub fn traffic(&self) -> impl Fn() -> Traffic + Send + Sync + 'static {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let shared = Arc::clone(&self.shared);
        move || Traffic {
            connected: shared.queues().len() as u64,
            accepted: count(&shared.accepted),
            turned_away: count(&shared.turned_away),
            broken: count(&shared.broken),
        }
    }

    /// Stops listening, answers the commands that have arrived, and disconnects the hosts. A host that does not fetch its answers
    /// within some seconds loses them.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let shared = &self.shared;
        shared.subsystem.end();
        shared.listener.close();
        // The accepting thread may wait for a place.
        shared.newcomers.clear();
        // The accepting thread ends with its listener; if it panicked, there is nothing more to stop.
        let _ = self.accepting.take().map(JoinHandle::join);
        shared.newcomers.clear();
        shared.newcomers.wait_until_empty();
        let mut queues = shared.queues();
        queues.values().for_each(Socket::close_input);
        let until = Instant::now() + GRACE;
        while !queues.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                queues.values().for_each(Socket::close);
            }
            let wait = if left.is_zero() { PAUSE } else { left };
            queues = shared.left.wait_timeout(queues, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Shared {
    fn queues(&self) -> MutexGuard<'_, BTreeMap<u64, Socket>> {
        // No code that holds the lock can panic; and the map would still be valid.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves the connection from the newcomers to the queues; false if there is no place for it.
    fn admit(&self, number: u64, socket: &Socket, newcomer: &Place) -> bool {
        let mut queues = self.queues();
        if queues.contains_key(&number) {
            return true;
        }
        if queues.len() >= self.limits.queues {
            self.turned_away.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        let is_waiting = newcomer.leave();
        if is_waiting {
            queues.insert(number, socket.clone());
            self.accepted.fetch_add(1, Ordering::Relaxed);
        }
        is_waiting
    }

    /// The place at which a host has connected.
    fn portal(&self, socket: &Socket) -> Portal {
        match (self.listener.address(), socket.local_address()) {
            (Address::Unix(path), _) => Portal::Local(path.display().to_string()),
            (Address::Tcp(address), local) => {
                let address = local.unwrap_or(*address);
                Portal::Tcp(address.ip(), address.port())
            }
        }
    }

    /// Serves one connection from its first byte to its last.
    fn serve(&self, number: u64, socket: &Socket, newcomer: Place) -> Result<(), ConnectionError> {
        socket.set_timeouts(TICK, PATIENCE)?;
        let is_admitted = AtomicBool::new(false);
        let until = Instant::now().checked_add(self.limits.handshake);
        let input = Impatient { socket: socket.clone(), until, is_admitted: &is_admitted, polling: Polling::default() };
        let closes = socket.clone();
        let hangup: Hangup = Arc::new(move || closes.close_input());
        let mut newcomer = Some(newcomer);
        let mut admit = || {
            let has_place = newcomer.as_ref().is_none_or(|newcomer| self.admit(number, socket, newcomer));
            if has_place {
                newcomer = None;
                is_admitted.store(true, Ordering::Relaxed);
            }
            has_place
        };
        serve_host(&self.subsystem, input, socket.clone(), self.portal(socket), hangup, &mut admit)
    }
}

/// Removes the queue from the list when its thread ends, even by a panic.
struct Listed<'s> {
    shared: &'s Shared,
    number: u64,
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.shared.queues().remove(&self.number);
        self.shared.left.notify_all();
    }
}

fn accept(shared: &Arc<Shared>, notices: &Notices) {
    let mut entrance = Entrance::new(&shared.listener, notices);
    for number in 0.. {
        let Some(socket) = entrance.next_client() else { return };
        let (newcomer, displaces) = shared.newcomers.enter(&socket);
        let serves = Arc::clone(shared);
        let started = Builder::new().name(format!("nvme-{number}")).spawn(move || {
            let listed = Listed { shared: &serves, number };
            if serves.serve(number, &socket, newcomer).is_err() {
                serves.broken.fetch_add(1, Ordering::Relaxed);
            }
            socket.close();
            drop(listed);
        });
        if displaces || started.is_err() {
            shared.turned_away.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A socket with a deadline for all reads before its queue is connected, even if its host sends single bytes.
struct Impatient<'a> {
    socket: Socket,
    until: Option<Instant>,
    is_admitted: &'a AtomicBool,
    polling: Polling,
}

impl Read for Impatient<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(until) = self.until {
            if self.is_admitted.load(Ordering::Relaxed) {
                self.until = None;
            } else if Instant::now() > until {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        self.polling.read(&mut self.socket, buffer)
    }
}
