//! The thread that prints figures, if requested, and failures.

use super::cannot;
use crate::failure::Failure;
use crate::print_message;
use console::{Term, truncate_str};
use flashpath::run::shared::EventCount;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// The time for which failures are collected before they are printed.
const COLLECTION_TIME: Duration = Duration::from_secs(1);

/// A source of figures and failures.
pub trait Watched: Send + 'static {
    /// The figures of the last `seconds`, on one line; `None` if there will be no more.
    fn figures(&mut self, seconds: f64) -> Option<String>;

    /// The failures and warnings since the last call.
    fn failures(&mut self) -> Vec<String>;
}

/// The printing thread.
pub struct Watch {
    news: Arc<EventCount>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Watch {
    /// Starts the thread. It prints failures, counted by `news`, and figures at the interval, if given. Fails if the
    /// system cannot start a thread.
    pub fn start(watched: impl Watched, news: Arc<EventCount>, interval: Option<Duration>) -> Result<Watch, Failure> {
        let (counts, stop) = (Arc::clone(&news), Arc::new(AtomicBool::new(false)));
        let stopped = Arc::clone(&stop);
        let thread = Builder::new().name("watch".into()).spawn(move || {
            let mut view = View { watched, at: Instant::now(), is_line_open: false };
            view.run(&counts, interval, || stopped.load(Ordering::SeqCst));
            view.print_failures();
            view.end_line();
        });
        let thread = thread.map_err(|error| cannot("start a thread", error))?;
        Ok(Watch { news, stop, thread })
    }

    /// Stops the thread after it has printed the rest.
    pub fn stop(self) {
        self.stop.store(true, Ordering::SeqCst);
        self.news.wake();
        self.thread.thread().unpark();
        // The thread has ended already if its source panicked.
        let _ = self.thread.join();
    }
}

struct View<W> {
    watched: W,
    at: Instant,
    /// True if the terminal's cursor is after figures that the next ones will overwrite.
    is_line_open: bool,
}

impl<W: Watched> View<W> {
    /// Prints failures when they occur, and figures when they are due, until it is stopped.
    fn run(&mut self, news: &EventCount, interval: Option<Duration>, is_stopped: impl Fn() -> bool) {
        let mut due = interval.map(|interval| Instant::now() + interval);
        while !is_stopped() {
            let seen = news.read();
            self.print_failures();
            let left = || due.map(|due| due.saturating_duration_since(Instant::now()));
            news.wait(seen, left(), &is_stopped);
            if news.read() != seen && !is_stopped() {
                // Collects further failures for a while.
                std::thread::park_timeout(left().map_or(COLLECTION_TIME, |left| left.min(COLLECTION_TIME)));
            }
            if let (Some(interval), Some(Duration::ZERO)) = (interval, left()) {
                // A source that panicked has printed why, and has no more figures.
                if is_stopped() || !self.print_figures() {
                    return;
                }
                due = Some(Instant::now() + interval);
            }
        }
    }

    /// Returns false if there will be no more figures.
    fn print_figures(&mut self) -> bool {
        let now = Instant::now();
        let seconds = (now - self.at).as_secs_f64().max(1e-9);
        let Some(line) = self.watched.figures(seconds) else { return false };
        self.at = now;
        let terminal = Term::stderr();
        // Errors of a closed standard error are ignored.
        if terminal.is_term() && !crate::output::is_dumb() {
            let width = usize::from(terminal.size().1).saturating_sub(1);
            let _ = terminal.clear_line().and_then(|()| terminal.write_str(&truncate_str(&line, width, "")));
            self.is_line_open = true;
        } else {
            let _ = terminal.write_line(&line);
        }
        true
    }

    fn print_failures(&mut self) {
        for failure in self.watched.failures() {
            self.end_line();
            print_message(&format!("warning: {failure}"));
        }
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.is_line_open) {
            let _ = Term::stderr().write_line("");
        }
    }
}
