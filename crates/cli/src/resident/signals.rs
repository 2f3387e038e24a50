//! Who tells the program to end: an interrupt, SIGTERM, SIGHUP, or whoever unmounts what it has mounted.

use super::cannot;
use crate::failure::Failure;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

/// Signals that came so far.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// The signal at which the program ends at once, wherever it is: it was told twice before.
const ENOUGH: usize = 3;

/// What was told to the program.
pub struct Signals {
    sender: Sender<()>,
    receiver: Receiver<()>,
}

impl Signals {
    /// Catches signals from now on.
    pub fn catch() -> Result<Signals, Failure> {
        let (sender, receiver) = mpsc::channel();
        let tells = sender.clone();
        let handler = move || {
            if COUNT.fetch_add(1, Ordering::SeqCst) + 1 >= ENOUGH {
                std::process::exit(130);
            }
            // Whoever listened has gone to its end already.
            let _ = tells.send(());
        };
        ctrlc::set_handler(handler).map_err(|error| cannot("catch signals", error))?;
        Ok(Signals { sender, receiver })
    }

    /// What ends the program as a signal does.
    pub fn ender(&self) -> impl FnOnce() + Send + 'static {
        let sender = self.sender.clone();
        move || {
            // Whoever listened has gone to its end already.
            let _ = sender.send(());
        }
    }

    /// Waits for the first of them.
    pub fn wait(&self) {
        // This holds a sender: it cannot fail.
        let _ = self.receiver.recv();
    }

    /// Waits for the next, but no longer than this.
    pub fn wait_at_most(&self, time: Duration) {
        // Which of both it was the caller sees by `were_two`.
        let _ = self.receiver.recv_timeout(time);
    }

    /// Whether the user insists.
    pub fn were_two(&self) -> bool {
        COUNT.load(Ordering::SeqCst) > 1
    }
}
