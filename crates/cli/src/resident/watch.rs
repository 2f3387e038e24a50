//! The thread that tells figures, if they are asked for, and what failed.

use super::{cannot, tell};
use crate::failure::Failure;
use console::{Term, truncate_str};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// How often it looks whether something failed, if no figures are asked for.
const LOOK: Duration = Duration::from_secs(1);

/// What is watched.
pub trait Watched: Send + 'static {
    /// The figures of the last `seconds`, on one line; `None` if there are none any more, and never will be.
    fn figures(&mut self, seconds: f64) -> Option<String>;

    /// What failed, and what was warned of, since it was last asked for.
    fn failures(&mut self) -> Vec<String>;
}

/// The thread that tells.
pub struct Watch {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Watch {
    /// Starts it. With an interval it tells figures; otherwise only what failed. Fails if the system starts no thread.
    pub fn start(watched: impl Watched, interval: Option<Duration>) -> Result<Watch, Failure> {
        let (stop, stopped) = mpsc::channel();
        let thread = Builder::new().name("watch".into()).spawn(move || {
            let mut view = View { watched, at: Instant::now(), is_line_open: false };
            // What is broken has said why, and cannot tell more.
            while stopped.recv_timeout(interval.unwrap_or(LOOK)) == Err(RecvTimeoutError::Timeout)
                && view.tell(interval.is_some())
            {}
            view.tell_failures();
            view.end_line();
        });
        let thread = thread.map_err(|error| cannot("start a thread", error))?;
        Ok(Watch { stop, thread })
    }

    /// Lets it tell what is left, and waits for its end.
    pub fn stop(self) {
        // It has ended already if what it watches broke.
        let _ = self.stop.send(());
        let _ = self.thread.join();
    }
}

struct View<W> {
    watched: W,
    at: Instant,
    /// Whether the terminal's cursor stands behind figures that the next ones replace.
    is_line_open: bool,
}

impl<W: Watched> View<W> {
    /// Whether there can be more to tell.
    fn tell(&mut self, figures: bool) -> bool {
        self.tell_failures();
        if !figures {
            return true;
        }
        let now = Instant::now();
        let seconds = (now - self.at).as_secs_f64().max(1e-9);
        let Some(line) = self.watched.figures(seconds) else { return false };
        self.at = now;
        let terminal = Term::stderr();
        // Who closed standard error does not want to know.
        if terminal.is_term() {
            let width = usize::from(terminal.size().1).saturating_sub(1);
            let _ = terminal.clear_line().and_then(|()| terminal.write_str(&truncate_str(&line, width, "")));
            self.is_line_open = true;
        } else {
            let _ = terminal.write_line(&line);
        }
        true
    }

    fn tell_failures(&mut self) {
        for said in self.watched.failures() {
            self.end_line();
            tell(&format!("warning: {said}"));
        }
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.is_line_open) {
            let _ = Term::stderr().write_line("");
        }
    }
}
