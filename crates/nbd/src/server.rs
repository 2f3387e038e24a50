//! A thread for each client, and the shutdown.

use crate::connection::serve_requests;
use crate::entrance::{Entrance, Notices, guarded};
use crate::error::ConnectionError;
use crate::handshake::shake_hands;
use crate::input::Input;
use crate::polling::Polling;
use crate::socket::{Listener, Socket};
use crate::waiting_room::{Place, WaitingRoom};
use flashpath::run::shared::SharedDevice;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Limits on the number of clients and on their time.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The maximum number of served clients; one more is refused.
    pub clients: usize,
    /// The maximum number of clients in the handshake; one more disconnects the oldest.
    pub newcomers: usize,
    /// The maximum time for a handshake.
    pub handshake: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { clients: 64, newcomers: 64, handshake: Duration::from_secs(5) }
    }
}

/// The maximum silence within a request.
const PATIENCE: Duration = Duration::from_secs(30);
/// The maximum time to fetch the last replies at shutdown.
const GRACE: Duration = Duration::from_secs(5);
/// The wait for clients to end that were disconnected.
const PAUSE: Duration = Duration::from_millis(50);

/// Counts of clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Clients that are served now.
    pub connected: u64,
    /// Clients that were served so far.
    pub accepted: u64,
    /// Clients that were refused because of a limit, in the handshake or after it.
    pub turned_away: u64,
    /// Clients whose connection ended in an error.
    pub broken: u64,
}

/// State that the server's threads share.
struct Shared {
    device: Arc<SharedDevice>,
    listener: Listener,
    limits: Limits,
    /// Clients in the handshake.
    newcomers: Arc<WaitingRoom>,
    /// Clients after the handshake.
    clients: Mutex<BTreeMap<u64, Socket>>,
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
    /// Serves `device` to all clients of `listener`. `notices` hears what the user of the server is to know at once.
    ///
    /// # Errors
    ///
    /// The system cannot start a thread.
    pub fn start(
        listener: Listener,
        device: Arc<SharedDevice>,
        limits: Limits,
        notices: Notices,
    ) -> io::Result<Server> {
        let shared = Arc::new(Shared {
            device,
            listener,
            limits,
            newcomers: WaitingRoom::new(limits.newcomers),
            clients: Mutex::default(),
            left: Condvar::new(),
            accepted: AtomicU64::new(0),
            turned_away: AtomicU64::new(0),
            broken: AtomicU64::new(0),
        });
        let accepts = Arc::clone(&shared);
        let accepting =
            Builder::new().name("nbd-accept".into()).spawn(move || guarded(&notices, || accept(&accepts, &notices)))?;
        Ok(Server { shared, accepting: Some(accepting) })
    }

    /// A function that returns the counts of clients, also after the server's end.
    pub fn traffic(&self) -> impl Fn() -> Traffic + Send + Sync + 'static {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let shared = Arc::clone(&self.shared);
        move || Traffic {
            connected: shared.clients().len() as u64,
            accepted: count(&shared.accepted),
            turned_away: count(&shared.turned_away),
            broken: count(&shared.broken),
        }
    }

    /// Stops listening, answers the requests that have arrived, and disconnects the clients. A client that does not
    /// fetch its replies within some seconds loses them.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let shared = &self.shared;
        shared.listener.close();
        // The accepting thread may wait for a place.
        shared.newcomers.clear();
        // The accepting thread ends with its listener; if it panicked, there is nothing more to stop.
        let _ = self.accepting.take().map(JoinHandle::join);
        shared.newcomers.clear();
        shared.newcomers.wait_until_empty();
        let mut clients = shared.clients();
        clients.values().for_each(Socket::close_input);
        let until = Instant::now() + GRACE;
        while !clients.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                clients.values().for_each(Socket::close);
            }
            let wait = if left.is_zero() { PAUSE } else { left };
            clients = shared.left.wait_timeout(clients, wait).unwrap_or_else(|broken| broken.into_inner()).0;
        }
    }
}

impl Shared {
    fn clients(&self) -> MutexGuard<'_, BTreeMap<u64, Socket>> {
        // No code that holds the lock can panic; and the map would still be valid.
        self.clients.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    /// Moves the client from the newcomers to the served ones; false if there is no place for it.
    fn admit(&self, number: u64, socket: &Socket, newcomer: &Place) -> bool {
        let mut clients = self.clients();
        if clients.len() >= self.limits.clients {
            self.turned_away.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        if newcomer.leave() {
            clients.insert(number, socket.clone());
            self.accepted.fetch_add(1, Ordering::Relaxed);
        }
        clients.contains_key(&number)
    }

    /// Serves one client from its first byte to its last.
    fn serve(&self, number: u64, socket: &Socket, newcomer: Place) -> Result<(), ConnectionError> {
        let until = Instant::now().checked_add(self.limits.handshake);
        let mut input = Input::new(Impatient { socket: socket.clone(), until, polling: Polling::default() });
        let mut output = Impatient { socket: socket.clone(), until, polling: Polling::default() };
        let mut admit = || self.admit(number, socket, &newcomer);
        let agreed = shake_hands(&self.device, &mut input, &mut output, &mut admit)?;
        drop(newcomer);
        let Some(agreement) = agreed else { return Ok(()) };
        input.reader().until = None;
        socket.set_patience(PATIENCE)?;
        serve_requests(&self.device, agreement, &mut input, socket.clone())
    }
}

/// Removes the client from the list when its thread ends, even by a panic.
struct Listed<'s> {
    shared: &'s Shared,
    number: u64,
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.shared.clients().remove(&self.number);
        self.shared.left.notify_all();
    }
}

fn accept(shared: &Arc<Shared>, notices: &Notices) {
    let mut entrance = Entrance::new(&shared.listener, notices);
    for number in 0.. {
        let Some(socket) = entrance.next_client() else { return };
        let (newcomer, displaces) = shared.newcomers.enter(&socket);
        let serves = Arc::clone(shared);
        let started = Builder::new().name(format!("nbd-{number}")).spawn(move || {
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

/// A socket with a deadline for all reads and writes together, even if its client sends single bytes.
struct Impatient {
    socket: Socket,
    until: Option<Instant>,
    polling: Polling,
}

impl Impatient {
    /// Sets the socket's timeout to the time that is left.
    fn hurry(&self) -> io::Result<()> {
        let Some(until) = self.until else { return Ok(()) };
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.socket.set_patience(left)
    }
}

impl Read for Impatient {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.hurry()?;
        self.polling.read(&mut self.socket, buffer)
    }
}

impl Write for Impatient {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.hurry()?;
        self.socket.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
