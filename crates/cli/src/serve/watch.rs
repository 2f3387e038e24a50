//! What the server tells on standard error while it serves: its figures if asked for, and what failed.

use super::figures::{Figures, by_content};
use console::{Term, truncate_str};
use flashpath::run::shared::{Counts, Request, ServeError, SharedDevice};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// How often it looks whether something failed, if no figures are asked for.
const LOOK: Duration = Duration::from_secs(1);

/// The thread that tells.
pub struct Watch {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Watch {
    /// Starts it. With an interval it tells figures; otherwise only what failed. Fails if the system starts no thread.
    pub fn start(device: Arc<SharedDevice>, interval: Option<Duration>) -> io::Result<Watch> {
        let (stop, stopped) = mpsc::channel();
        let thread = Builder::new().name("watch".into()).spawn(move || {
            let mut view = View { device, last: Counts::default(), at: Instant::now(), failed: 0, is_line_open: false };
            // A broken device has said why, and cannot tell more.
            while stopped.recv_timeout(interval.unwrap_or(LOOK)) == Err(RecvTimeoutError::Timeout)
                && view.tell(interval.is_some()).is_ok()
            {}
            view.tell_failures();
            view.end_line();
        })?;
        Ok(Watch { stop, thread })
    }

    /// Lets it tell what is left, and waits for its end.
    pub fn stop(self) {
        // It has ended already if the device broke.
        let _ = self.stop.send(());
        let _ = self.thread.join();
    }
}

struct View {
    device: Arc<SharedDevice>,
    last: Counts,
    at: Instant,
    /// Failures that were told.
    failed: u64,
    /// Whether the terminal's cursor stands behind figures that the next ones replace.
    is_line_open: bool,
}

impl View {
    fn tell(&mut self, figures: bool) -> Result<(), ServeError> {
        self.tell_failures();
        if !figures {
            return Ok(());
        }
        let counts = self.device.counts()?;
        let account = Figures::of(&self.device.account()?);
        let now = Instant::now();
        let seconds = (now - self.at).as_secs_f64().max(1e-9);
        let line = figures_line(&self.last, &counts, &account, seconds);
        (self.last, self.at) = (counts, now);
        let terminal = Term::stderr();
        // Who closed standard error does not want to know.
        if terminal.is_term() {
            let width = usize::from(terminal.size().1).saturating_sub(1);
            let _ = terminal.clear_line().and_then(|()| terminal.write_str(&truncate_str(&line, width, "")));
            self.is_line_open = true;
        } else {
            let _ = terminal.write_line(&line);
        }
        Ok(())
    }

    fn tell_failures(&mut self) {
        let Ok(counts) = self.device.counts() else { return };
        let failed = counts.failed_in_all();
        if failed > self.failed {
            self.end_line();
            let error = counts.last_error.unwrap_or_default();
            super::tell(&format!("warning: {} requests failed: {error}", failed - self.failed));
            self.failed = failed;
        }
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.is_line_open) {
            let _ = Term::stderr().write_line("");
        }
    }
}

/// What happened in some seconds, and what came of all so far.
fn figures_line(before: &Counts, now: &Counts, figures: &Figures, seconds: f64) -> String {
    let served = now.served_in_all() - before.served_in_all();
    let rate =
        |request: Request| (now.of(request).bytes - before.of(request).bytes) as f64 / seconds / (1 << 20) as f64;
    let amplification = figures.write_amplification().map_or("-".to_string(), |value| format!("{value:.3}"));
    format!(
        "{:.0} IOPS, read {:.1} MiB/s, written {:.1} MiB/s, write amplification {amplification}; received: {}; copied: {}",
        served as f64 / seconds,
        rate(Request::Read),
        rate(Request::Write),
        by_content(&figures.received),
        by_content(&figures.copied),
    )
}
