//! Requests to end the program: an interrupt, SIGTERM, SIGHUP, the warning of a power supply (SIGPWR), or an unmount.

use super::cannot;
use crate::failure::Failure;
use nix::sys::signal::{SigSet, Signal};
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
        let power_sender = sender.clone();
        let warn = move || {
            // As above.
            let _ = power_sender.send(());
        };
        watch_power(warn).map_err(|error| cannot("catch signals", error))?;
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

/// Calls `warn` when a power supply warns. The signal is blocked in this thread, and in those that it begins later.
fn watch_power(warn: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    let mut power = SigSet::empty();
    power.add(Signal::SIGPWR);
    power.thread_block()?;
    let wait = move || {
        if power.wait().is_ok() {
            warn();
        }
    };
    std::thread::Builder::new().name("power".to_string()).spawn(wait).map(drop)
}
