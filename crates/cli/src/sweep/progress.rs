//! The progress of a sweep on standard error: a bar on a terminal, a line from time to time elsewhere.

use flashpath_sweep::SweepProgress;
use indicatif::{ProgressBar as Bar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// The resolution of the bar.
const STEPS: f64 = 10_000.0;
/// The interval of lines where standard error is not a terminal, as in the log of a batch system.
const LINES: Duration = Duration::from_secs(30);

/// The progress of all runs together.
pub struct ProgressBar {
    bar: Bar,
    /// The time of the last line; `None` on a terminal, and if nothing is shown.
    last_line: Option<Instant>,
}

impl ProgressBar {
    /// The bar; nothing is shown if `quiet`.
    pub fn new(quiet: bool) -> ProgressBar {
        let has_bar = !quiet && std::io::stderr().is_terminal() && !crate::output::is_dumb();
        let target = if has_bar { ProgressDrawTarget::stderr_with_hz(5) } else { ProgressDrawTarget::hidden() };
        let bar = Bar::with_draw_target(Some(STEPS as u64), target);
        let style = "{spinner} [{bar:30}] {percent:>3}% {msg}";
        bar.set_style(ProgressStyle::with_template(style).expect("the template is valid").progress_chars("=> "));
        ProgressBar { bar, last_line: (!quiet && !has_bar).then(Instant::now) }
    }

    /// Shows the progress.
    pub fn show(&mut self, progress: &SweepProgress) {
        if !self.bar.is_hidden() {
            self.bar.set_position((progress.share * STEPS) as u64);
            self.bar.set_message(line(progress));
            self.bar.tick();
        }
        if self.last_line.is_some_and(|last| last.elapsed() > LINES) {
            self.last_line = Some(Instant::now());
            crate::print_message(&line(progress));
        }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

fn line(progress: &SweepProgress) -> String {
    let SweepProgress { runs, done, failed, running, seconds_left, .. } = progress;
    let mut line = format!("{done} of {runs} runs done, {running} running");
    if *failed > 0 {
        line += &format!(", {failed} failed");
    }
    if let Some(seconds) = seconds_left {
        line += &format!(", {} left", duration(*seconds));
    }
    line
}

/// A duration to two units: `2 h 05 min`, `3 min 20 s`, `12 s`.
fn duration(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds:02} s"),
        (hours, minutes, _) => format!("{hours} h {minutes:02} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_what_is_done_and_the_time_left() {
        let progress = SweepProgress {
            runs: 1000,
            done: 250,
            running: 2,
            failed: 1,
            seconds_left: Some(200.4),
            ..Default::default()
        };
        assert_eq!(line(&progress), "250 of 1000 runs done, 2 running, 1 failed, 3 min 20 s left");
        assert_eq!([0.2, 59.9, 7505.0].map(duration), ["0 s", "1 min 00 s", "2 h 05 min"]);
    }
}
