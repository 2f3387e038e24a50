//! The thread that tells figures, if they are asked for, and what failed.

use super::cannot;
use crate::failure::Failure;
use crate::tell;
use console::{Term, truncate_str};
use flashpath::run::shared::EventCount;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// How long it collects what else there is to tell.
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
    news: Arc<EventCount>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Watch {
    /// Starts it. With an interval it tells figures; always, what failed, which `news` counts. Fails if the system starts no
    /// thread.
    pub fn start(watched: impl Watched, news: Arc<EventCount>, interval: Option<Duration>) -> Result<Watch, Failure> {
        let (counts, stop) = (Arc::clone(&news), Arc::new(AtomicBool::new(false)));
        let stopped = Arc::clone(&stop);
        let thread = Builder::new().name("watch".into()).spawn(move || {
            let mut view = View { watched, at: Instant::now(), is_line_open: false };
            view.tell_all(&counts, interval, || stopped.load(Ordering::SeqCst));
            view.tell_failures();
            view.end_line();
        });
        let thread = thread.map_err(|error| cannot("start a thread", error))?;
        Ok(Watch { news, stop, thread })
    }

    /// Lets it tell what is left, and waits for its end.
    pub fn stop(self) {
        self.stop.store(true, Ordering::SeqCst);
        self.news.wake();
        self.thread.thread().unpark();
        // It has ended already if what it watches broke.
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
    /// Tells failures when there are such, and figures when it is time for them, until it is stopped.
    fn tell_all(&mut self, news: &EventCount, interval: Option<Duration>, is_stopped: impl Fn() -> bool) {
        let mut due = interval.map(|interval| Instant::now() + interval);
        while !is_stopped() {
            let seen = news.read();
            self.tell_failures();
            let left = || due.map(|due| due.saturating_duration_since(Instant::now()));
            news.wait(seen, left(), &is_stopped);
            if news.read() != seen && !is_stopped() {
                // What else fails meanwhile is told with it.
                std::thread::park_timeout(left().map_or(LOOK, |left| left.min(LOOK)));
            }
            if let (Some(interval), Some(Duration::ZERO)) = (interval, left()) {
                // What is broken has said why, and cannot tell more.
                if is_stopped() || !self.tell_figures() {
                    return;
                }
                due = Some(Instant::now() + interval);
            }
        }
    }

    /// Whether there can be more to tell.
    fn tell_figures(&mut self) -> bool {
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
