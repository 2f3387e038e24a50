//! Progress on standard error: a bar for each path, with rate and remaining time.

use flashpath::run::Progress;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// The bars of all runs. Nothing is drawn if standard error is not a terminal.
pub struct Bars {
    all: MultiProgress,
}

/// One run's bar.
pub struct Bar {
    bar: ProgressBar,
    phase: &'static str,
}

/// The resolution of a bar.
const STEPS: f64 = 10_000.0;

impl Bars {
    /// The bars; hidden if `quiet`, and on a dumb terminal.
    pub fn new(quiet: bool) -> Bars {
        // A bar moves the cursor, which a dumb terminal cannot.
        let is_hidden = quiet || crate::output::is_dumb();
        let target = if is_hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr_with_hz(5) };
        Bars { all: MultiProgress::with_draw_target(target) }
    }

    /// A bar for a run of this path.
    pub fn add(&self, path: &str) -> Bar {
        let style = "{spinner} {prefix} {msg} [{bar:30}] {percent:>3}% {elapsed} left {eta}";
        let bar = self.all.add(ProgressBar::new(STEPS as u64));
        bar.set_style(ProgressStyle::with_template(style).expect("the template is valid").progress_chars("=> "));
        bar.set_prefix(path.to_string());
        bar.enable_steady_tick(Duration::from_millis(500));
        Bar { bar, phase: "" }
    }
}

impl Bar {
    /// Shows the progress of the run.
    pub fn show(&mut self, progress: &Progress) {
        if self.bar.is_hidden() {
            return;
        }
        if self.phase != progress.phase {
            self.phase = progress.phase;
            self.bar.reset();
        }
        self.bar.set_position((progress.share.unwrap_or(0.0) * STEPS) as u64);
        let rate = progress.requests as f64 / self.bar.elapsed().as_secs_f64().max(1e-3);
        self.bar.set_message(format!("{} {:.2} M requests/s", progress.phase, rate / 1e6));
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
