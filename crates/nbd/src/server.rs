//! A thread for each client, and the end of all.

use crate::connection::serve_requests;
use crate::error::ConnectionError;
use crate::handshake::shake_hands;
use crate::input::Input;
use crate::socket::{Listener, Socket};
use flashpath::run::shared::SharedDevice;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Clients that are served at once; more are turned away.
pub const MOST_CLIENTS: usize = 64;

/// How long a client may take to agree, and how long it may be silent within a request.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long clients may take to fetch their last replies.
const GRACE: Duration = Duration::from_secs(5);
/// After what the system could not do, such as opening one more file.
const PAUSE: Duration = Duration::from_millis(50);

/// How many clients there are and were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Clients that are connected now.
    pub connected: u64,
    /// Clients that were let in so far.
    pub accepted: u64,
    /// Clients that were turned away since there were too many.
    pub turned_away: u64,
    /// Clients whose connection ended in an error.
    pub broken: u64,
}

/// What the server's threads share.
struct Shared {
    device: Arc<SharedDevice>,
    listener: Listener,
    clients: Mutex<BTreeMap<u64, Socket>>,
    left: Condvar,
    accepted: AtomicU64,
    turned_away: AtomicU64,
    broken: AtomicU64,
}

/// A server that runs.
pub struct Server {
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

impl Server {
    /// Serves `device` to whoever connects.
    ///
    /// # Errors
    ///
    /// The system starts no thread.
    pub fn start(listener: Listener, device: Arc<SharedDevice>) -> io::Result<Server> {
        let shared = Arc::new(Shared {
            device,
            listener,
            clients: Mutex::default(),
            left: Condvar::new(),
            accepted: AtomicU64::new(0),
            turned_away: AtomicU64::new(0),
            broken: AtomicU64::new(0),
        });
        let accepts = Arc::clone(&shared);
        let accepting = Builder::new().name("nbd-accept".into()).spawn(move || accept(&accepts))?;
        Ok(Server { shared, accepting })
    }

    /// What answers how many clients there are and were, also after the server's end.
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

    /// Lets nobody in any more, answers the requests that have arrived, and sends the clients away. A client that does
    /// not fetch its replies within some seconds loses them.
    pub fn stop(self) {
        self.shared.listener.close();
        // It ends when its listener does; if it panicked, there is nothing more to stop.
        let _ = self.accepting.join();
        self.shared.clients().values().for_each(Socket::close_input);
        let until = Instant::now() + GRACE;
        let mut clients = self.shared.clients();
        while !clients.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                clients.values().for_each(Socket::close);
            }
            let wait = if left.is_zero() { PAUSE } else { left };
            clients = self.shared.left.wait_timeout(clients, wait).unwrap_or_else(|broken| broken.into_inner()).0;
        }
    }
}

impl Shared {
    fn clients(&self) -> MutexGuard<'_, BTreeMap<u64, Socket>> {
        // Nothing that holds the lock can panic; and the map would still be one.
        self.clients.lock().unwrap_or_else(|broken| broken.into_inner())
    }
}

/// Takes a client off the list, however its thread ends.
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

fn accept(shared: &Arc<Shared>) {
    for number in 0.. {
        let socket = loop {
            match shared.listener.accept() {
                Ok(Some(socket)) => break socket,
                Ok(None) => return,
                Err(_) => std::thread::sleep(PAUSE),
            }
        };
        let mut clients = shared.clients();
        if clients.len() >= MOST_CLIENTS {
            shared.turned_away.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        clients.insert(number, socket.clone());
        drop(clients);
        let serves = Arc::clone(shared);
        let started = Builder::new().name(format!("nbd-{number}")).spawn(move || {
            let listed = Listed { shared: &serves, number };
            if serve(&serves.device, &socket).is_err() {
                serves.broken.fetch_add(1, Ordering::Relaxed);
            }
            socket.close();
            drop(listed);
        });
        match started {
            Ok(_) => shared.accepted.fetch_add(1, Ordering::Relaxed),
            Err(_) => {
                drop(Listed { shared, number });
                shared.turned_away.fetch_add(1, Ordering::Relaxed)
            }
        };
    }
}

fn serve(device: &SharedDevice, socket: &Socket) -> Result<(), ConnectionError> {
    socket.set_patience(PATIENCE)?;
    let until = Instant::now() + PATIENCE;
    let mut input = Input::new(Impatient { socket: socket.clone(), until: Some(until) });
    match shake_hands(device, &mut input, &mut socket.clone())? {
        Some(agreement) => {
            input.reader().until = None;
            serve_requests(device, agreement, &mut input, socket.clone())
        }
        None => Ok(()),
    }
}

/// A socket that is read until some instant at most, however busily its client sends single bytes.
struct Impatient {
    socket: Socket,
    until: Option<Instant>,
}

impl Read for Impatient {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.until.is_some_and(|until| Instant::now() > until) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.socket.read(buffer)
    }
}
