//! The entrance of the monitor: no error of an accept ends it.
//!
//! A process that has no descriptor left cannot even take a connection to refuse it, and the guest would wait without a word. So
//! the entrance keeps a spare descriptor: it is given up for the next guest, which is refused with the reason unless another
//! descriptor has become free meanwhile.

use crate::event::Event;
use crate::wire::{Answer, Wire};
use rustix::fd::OwnedFd;
use rustix::io::{Errno, dup};
use rustix::net::{SocketFlags, accept_with};
use std::time::Duration;

/// The pauses after errors in a row: each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Descriptors that a session opens besides its connection: the guest's process, its memory, and the image.
const OF_A_SESSION: usize = 4;

/// Errors in a row: they were told, and their end is to be.
#[derive(Default)]
struct Trouble {
    pause: Duration,
    refused: u64,
}

/// Where guests come in.
pub(crate) struct Entrance<'m> {
    listener: &'m OwnedFd,
    events: &'m (dyn Fn(Event) + Send + Sync),
    spare: Option<OwnedFd>,
    trouble: Option<Trouble>,
}

impl<'m> Entrance<'m> {
    pub fn new(listener: &'m OwnedFd, events: &'m (dyn Fn(Event) + Send + Sync)) -> Entrance<'m> {
        Entrance { listener, events, spare: dup(listener).ok(), trouble: None }
    }

    /// Waits for the next guest; `None` once `is_stopped`.
    pub fn next(&mut self, is_stopped: impl Fn() -> bool) -> Option<OwnedFd> {
        loop {
            let accepted = accept_with(self.listener, SocketFlags::CLOEXEC);
            if is_stopped() {
                return None;
            }
            match accepted {
                Ok(guest) => {
                    // The spare one was given up for this guest if no other was free.
                    self.spare = self.spare.take().or_else(|| dup(self.listener).ok());
                    if self.spare.is_some() && self.has_room() {
                        self.end_trouble();
                        return Some(guest);
                    }
                    self.refuse(guest);
                }
                // That guest went away, or a signal came.
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(error) => self.endure(error),
            }
        }
    }

    /// True if a session can open the descriptors that it needs besides its connection.
    fn has_room(&self) -> bool {
        let opened: Result<Vec<OwnedFd>, Errno> = (0..OF_A_SESSION).map(|_| dup(self.listener)).collect();
        opened.is_ok()
    }

    /// Tells a guest that it cannot come in. Its descriptor is the spare one from then on.
    fn refuse(&mut self, guest: OwnedFd) {
        self.begin_trouble(Errno::MFILE);
        let why = "the monitor has no file descriptor left: try again later";
        Wire::of(guest).dismiss(&Answer::Refused(why.to_string()));
        self.spare = dup(self.listener).ok();
        self.trouble.get_or_insert_default().refused += 1;
    }

    fn endure(&mut self, error: Errno) {
        self.begin_trouble(error);
        let trouble = self.trouble.get_or_insert_default();
        let is_full = matches!(error, Errno::MFILE | Errno::NFILE);
        if is_full && self.spare.take().is_some() {
            // The next accept waits for a guest, and has a descriptor for it.
            return;
        }
        trouble.pause = (trouble.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
        std::thread::sleep(trouble.pause);
    }

    fn begin_trouble(&mut self, error: Errno) {
        if self.trouble.is_none() {
            (self.events)(Event::Crowded { why: std::io::Error::from(error).to_string() });
            self.trouble = Some(Trouble::default());
        }
    }

    fn end_trouble(&mut self) {
        if let Some(Trouble { refused, .. }) = self.trouble.take() {
            (self.events)(Event::Open { refused });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::{address, listener, socket};
    use crate::wire::Request;
    use rustix::net::{RecvFlags, connect, recv};
    use std::sync::Mutex;

    /// An error of the listener that does not pass, such as that of a descriptor that is none of a socket, is told once; guests
    /// that come after it has passed are served.
    #[test]
    fn an_error_of_an_accept_ends_nothing_and_is_told_once() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("socket");
        let listens = listener(&place).unwrap();
        let events = Mutex::new(Vec::new());
        let hear = |event| events.lock().unwrap().push(event);
        let mut entrance = Entrance::new(&listens, &hear);
        for error in [Errno::NOMEM, Errno::PROTO, Errno::MFILE, Errno::MFILE, Errno::PERM, Errno::INVAL] {
            entrance.endure(error);
        }
        assert!(entrance.spare.is_none(), "it was given up for the next guest");
        let guest = socket().unwrap();
        connect(&guest, &address(&place).unwrap()).unwrap();
        assert!(entrance.next(|| false).is_some());
        assert!(entrance.spare.is_some() && entrance.trouble.is_none());
        let told = events.into_inner().unwrap();
        assert!(matches!(&told[..], [Event::Crowded { .. }, Event::Open { refused: 0 }]), "{told:?}");
    }

    /// A guest that had sent its greeting heard that the connection was reset, and not why: the kernel says so of a connection that is
    /// closed with a message unread. No test had a guest that speaks before it is refused.
    #[test]
    fn a_guest_that_has_spoken_hears_why_it_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("socket");
        let listens = listener(&place).unwrap();
        let hear = |_| ();
        let mut entrance = Entrance::new(&listens, &hear);
        let guest = Wire::of(socket().unwrap());
        connect(guest.socket(), &address(&place).unwrap()).unwrap();
        guest.send(&Request::Hello { version: 0 }, &[]).unwrap();
        let accepted = accept_with(&listens, SocketFlags::CLOEXEC).unwrap();
        entrance.refuse(accepted);
        let mut heard = [0; 200];
        let (count, _) = recv(guest.socket(), &mut heard[..], RecvFlags::DONTWAIT).unwrap();
        assert!(String::from_utf8_lossy(&heard[..count]).contains("no file descriptor left"));
        assert_eq!(entrance.trouble.as_ref().map(|trouble| trouble.refused), Some(1));
    }
}
