//! One client after the other, and the shutdown.

use crate::error::SessionError;
use crate::session::Session;
use flashpath::run::shared::SharedDevice;
use flashpath_nbd::{Listener, Notice, Notices, Traffic, guarded};
use rustix::event::{PollFd, PollFlags, poll};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};
use vhost_user_backend::{ShutdownHandle, VhostUserDaemon};

/// The maximum time for the last answers at shutdown, and then for the session's end.
const GRACE: Duration = Duration::from_secs(5);
/// The pauses after errors in a row: each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// State that the server's threads share.
struct Shared {
    device: Arc<SharedDevice>,
    name: String,
    listener: Listener,
    is_closed: AtomicBool,
    /// The client that is served.
    client: Mutex<Option<(Arc<Session>, ShutdownHandle)>>,
    /// The thread that serves clients has ended.
    has_ended: Mutex<bool>,
    ended: Condvar,
    accepted: AtomicU64,
    broken: AtomicU64,
}

/// A running server. Dropping it does the same as [`stop`](Server::stop).
pub struct Server {
    shared: Arc<Shared>,
    serving: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves `device` to the clients of `listener`, one at a time: another one waits until the first has left. The disk's serial number
    /// follows from `name`. `notices` hears messages for the user of the server.
    ///
    /// # Errors
    ///
    /// The system cannot start a thread, or the listener is of another kind than a Unix socket.
    pub fn start(listener: Listener, device: Arc<SharedDevice>, name: &str, notices: Notices) -> io::Result<Server> {
        let (socket, accepts) = (listener.duplicate()?, listener.duplicate()?);
        let shared = Arc::new(Shared {
            device,
            name: name.to_string(),
            listener,
            is_closed: AtomicBool::new(false),
            client: Mutex::default(),
            has_ended: Mutex::new(false),
            ended: Condvar::new(),
            accepted: AtomicU64::new(0),
            broken: AtomicU64::new(0),
        });
        let serves = Arc::clone(&shared);
        let serving = Builder::new().name("vhost-user".into()).spawn(move || {
            guarded(&notices, || serve_clients(&serves, &socket, accepts.into(), &notices));
            *lock(&serves.has_ended) = true;
            serves.ended.notify_all();
        })?;
        Ok(Server { shared, serving: Some(serving) })
    }

    /// A function that returns the counts of clients, also after the server's end.
    pub fn traffic(&self) -> impl Fn() -> Traffic + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move || Traffic {
            connected: lock(&shared.client).is_some().into(),
            accepted: shared.accepted.load(Ordering::Relaxed),
            turned_away: 0,
            broken: shared.broken.load(Ordering::Relaxed),
        }
    }

    /// Stops listening, answers the requests that were taken, and disconnects the client. Requests that were not taken stay in its
    /// rings, where the next server finds them.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let shared = &self.shared;
        shared.is_closed.store(true, Ordering::SeqCst);
        shared.listener.close();
        let client = lock(&shared.client).clone();
        if let Some((session, connection)) = client {
            let (finishing, finished) = std::sync::mpsc::channel();
            // A client that lets the writes to its own events block must not hold up the shutdown.
            let started = Builder::new().name("vhost-user-end".into()).spawn(move || {
                session.finish();
                let _ = finishing.send(());
            });
            if started.is_ok() {
                let _ = finished.recv_timeout(GRACE);
            }
            connection.shutdown();
        }
        let until = Instant::now() + GRACE;
        let mut has_ended = lock(&shared.has_ended);
        while !*has_ended {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            has_ended = shared.ended.wait_timeout(has_ended, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(has_ended);
        // It has ended; if it panicked, that was told.
        let _ = self.serving.take().map(JoinHandle::join);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code that holds such a lock can panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The threads of a session; dropping it ends them.
struct Threads {
    session: Arc<Session>,
    daemon: VhostUserDaemon<Arc<Session>>,
}

impl Drop for Threads {
    fn drop(&mut self) {
        // The daemon, which is dropped after this, waits for them.
        self.session.end();
    }
}

fn serve_clients(shared: &Shared, socket: &OwnedFd, listener: UnixListener, notices: &Notices) {
    let mut listener = vhost::vhost_user::Listener::from(listener);
    let mut pause = Duration::ZERO;
    while wait_for_client(socket, shared) {
        match accept(shared, &mut listener) {
            Ok(threads) => {
                if !std::mem::take(&mut pause).is_zero() {
                    notices(Notice::Open(0));
                }
                shared.accepted.fetch_add(1, Ordering::Relaxed);
                if serve_client(shared, threads).is_err() {
                    shared.broken.fetch_add(1, Ordering::Relaxed);
                }
            }
            Err(error) if !shared.is_closed.load(Ordering::SeqCst) => {
                if pause.is_zero() {
                    notices(Notice::Crowded(error.to_string()));
                }
                pause = (pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
                std::thread::sleep(pause);
            }
            Err(_) => return,
        }
    }
}

/// Waits for a client to accept; false once the listener is closed. Without a client there are no threads for its queues.
fn wait_for_client(socket: &OwnedFd, shared: &Shared) -> bool {
    while !shared.is_closed.load(Ordering::SeqCst) {
        let mut sockets = [PollFd::new(socket, PollFlags::IN)];
        match poll(&mut sockets, None) {
            Ok(_) => break,
            Err(rustix::io::Errno::INTR) => {}
            // The accept tells it.
            Err(_) => break,
        }
    }
    !shared.is_closed.load(Ordering::SeqCst)
}

fn accept(shared: &Shared, listener: &mut vhost::vhost_user::Listener) -> Result<Threads, SessionError> {
    let session = Session::new(Arc::clone(&shared.device), &shared.name)?;
    let daemon = session.start().inspect_err(|_| session.end())?;
    let mut threads = Threads { session, daemon };
    threads.daemon.start(listener)?;
    Ok(threads)
}

/// Serves a client from its first message to its last.
fn serve_client(shared: &Shared, mut threads: Threads) -> Result<(), SessionError> {
    let session = Arc::clone(&threads.session);
    let Some(connection) = threads.daemon.shutdown_handle() else { return Ok(()) };
    *lock(&shared.client) = Some((Arc::clone(&session), connection.clone()));
    // The server may have been stopped before the client was known.
    if shared.is_closed.load(Ordering::SeqCst) {
        connection.shutdown();
    }
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| session.give_answers());
        let ended = threads.daemon.wait();
        session.end();
        drop(threads);
        ended
    });
    *lock(&shared.client) = None;
    match ended {
        Err(vhost_user_backend::Error::HandleRequest(vhost::vhost_user::Error::Disconnected)) => Ok(()),
        ended => Ok(ended?),
    }
}
