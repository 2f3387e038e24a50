//! The entrance of a server: no error of an accept ends it, and each is told at once.
//!
//! A process that has no descriptor left cannot even take a connection to close it, and the client would wait without a word. So
//! the entrance keeps a spare descriptor: it is given up for the next client, who is disconnected unless another descriptor has
//! become free meanwhile.

use crate::socket::{Listener, Socket};
use rustix::io::Errno;
use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

/// The pauses after errors in a row: each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Something that the user of a server is to know at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// No client can be accepted for this reason. The server goes on to try.
    Crowded(String),
    /// Clients are accepted again; so many were disconnected meanwhile.
    Open(u64),
    /// The thread that accepts clients has failed: there will be no others, and the process is to end.
    Failed(String),
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::Crowded(why) => {
                write!(
                    f,
                    "no client can be accepted: {why}; the server goes on, and disconnects those that wait if it can"
                )
            }
            Notice::Open(refused) => write!(f, "clients are accepted again; {refused} were disconnected meanwhile"),
            Notice::Failed(why) => write!(f, "the thread that accepts clients has failed: {why}"),
        }
    }
}

/// Hears the notices of a server.
pub type Notices = Arc<dyn Fn(Notice) + Send + Sync>;

/// Errors in a row: they were told, and their end is to be.
#[derive(Default)]
struct Trouble {
    pause: Duration,
    refused: u64,
}

/// Where clients come in.
pub struct Entrance<'l> {
    listener: &'l Listener,
    notices: &'l Notices,
    spare: Option<OwnedFd>,
    trouble: Option<Trouble>,
}

impl<'l> Entrance<'l> {
    /// That of a listener.
    pub fn new(listener: &'l Listener, notices: &'l Notices) -> Entrance<'l> {
        Entrance { listener, notices, spare: listener.duplicate().ok(), trouble: None }
    }

    /// Waits for a client; `None` once the listener is closed.
    pub fn next_client(&mut self) -> Option<Socket> {
        loop {
            match self.listener.accept() {
                Ok(Some(client)) => {
                    // The spare one was given up for this client if no other was free.
                    self.spare = self.spare.take().or_else(|| self.listener.duplicate().ok());
                    if self.spare.is_some() {
                        self.end_trouble();
                        return Some(client);
                    }
                    drop(client);
                    self.spare = self.listener.duplicate().ok();
                    self.trouble.get_or_insert_default().refused += 1;
                }
                Ok(None) => return None,
                Err(error) => self.endure(error),
            }
        }
    }

    fn endure(&mut self, error: Errno) {
        if self.trouble.is_none() {
            (self.notices)(Notice::Crowded(std::io::Error::from(error).to_string()));
        }
        let trouble = self.trouble.get_or_insert_default();
        let is_full = matches!(error, Errno::MFILE | Errno::NFILE);
        if is_full && self.spare.take().is_some() {
            // The next accept waits for a client, and has a descriptor for it.
            return;
        }
        trouble.pause = (trouble.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
        std::thread::sleep(trouble.pause);
    }

    fn end_trouble(&mut self) {
        if let Some(Trouble { refused, .. }) = self.trouble.take() {
            (self.notices)(Notice::Open(refused));
        }
    }
}

/// Does the work of the thread that accepts clients. A panic of it is told.
pub fn guarded(notices: &Notices, work: impl FnOnce()) {
    if let Err(payload) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic");
        notices(Notice::Failed(format!("it has panicked: {text}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Address;
    use std::os::unix::net::UnixStream;
    use std::sync::Mutex;

    /// The accept loops of the NBD server and of the metrics said nothing of their errors.
    #[test]
    fn errors_of_an_accept_are_told_once_and_the_next_client_is_served() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("socket");
        let listener = Listener::bind(&Address::Unix(name.clone())).unwrap();
        let told = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&told);
        let notices: Notices = Arc::new(move |notice| heard.lock().unwrap().push(notice));
        let mut entrance = Entrance::new(&listener, &notices);
        for error in [Errno::NOMEM, Errno::PROTO, Errno::MFILE, Errno::NFILE, Errno::PERM] {
            entrance.endure(error);
        }
        assert!(entrance.spare.is_none(), "it was given up for the next client");
        let _client = UnixStream::connect(&name).unwrap();
        assert!(entrance.next_client().is_some());
        assert!(entrance.spare.is_some() && entrance.trouble.is_none());
        guarded(&notices, || panic!("as it was told"));
        listener.close();
        assert!(entrance.next_client().is_none(), "the server ends");
        let told = told.lock().unwrap();
        let failed = Notice::Failed("it has panicked: as it was told".to_string());
        assert!(matches!(&told[..], [Notice::Crowded(_), Notice::Open(0), last] if *last == failed), "{told:?}");
    }
}
