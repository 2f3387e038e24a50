//! Requests to end the program: an interrupt, SIGTERM, SIGHUP, or an unmount.

use super::cannot;
use crate::failure::Failure;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

/// The number of signals so far.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// The number of signals after which the program exits at once.
const ENOUGH: usize = 3;

/// The requests to end.
pub struct Signals {
    sender: Sender<()>,
    receiver: Receiver<()>,
}

impl Signals {
    /// Catches signals from now on.
    pub fn catch() -> Result<Signals, Failure> {
        let (sender, receiver) = mpsc::channel();
        let handler_sender = sender.clone();
        let handler = move || {
            if COUNT.fetch_add(1, Ordering::SeqCst) + 1 >= ENOUGH {
                std::process::exit(130);
            }
            // The receiver may be gone already.
            let _ = handler_sender.send(());
        };
        ctrlc::set_handler(handler).map_err(|error| cannot("catch signals", error))?;
        Ok(Signals { sender, receiver })
    }

    /// A function that ends the program as a signal does.
    pub fn stopper(&self) -> impl FnOnce() + Send + 'static {
        let sender = self.sender.clone();
        move || {
            // The receiver may be gone already.
            let _ = sender.send(());
        }
    }

    /// Waits for the first request.
    pub fn wait(&self) {
        // This cannot fail: `self` holds a sender.
        let _ = self.receiver.recv();
    }

    /// Waits for the next request, at most this long.
    pub fn wait_at_most(&self, time: Duration) {
        // The caller distinguishes the cases by `are_two`.
        let _ = self.receiver.recv_timeout(time);
    }

    /// True after a second signal.
    pub fn are_two(&self) -> bool {
        COUNT.load(Ordering::SeqCst) > 1
    }
}
