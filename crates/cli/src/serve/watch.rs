//! The figures and failures of a served device, for standard error.

use super::figures::{Figures, by_content};
use crate::resident::warnings::PrintedWarnings;
use crate::resident::watch::Watched;
use flashpath::run::shared::{Counts, Request, SharedDevice};
use std::sync::Arc;

/// A served device, and the state of its last report.
pub struct WatchedDevice {
    device: Arc<SharedDevice>,
    last: Counts,
    /// The number of failures reported so far.
    failed: u64,
    warnings: Arc<PrintedWarnings>,
}

impl WatchedDevice {
    /// A device of which only `warnings` have been reported.
    pub fn new(device: Arc<SharedDevice>, warnings: Arc<PrintedWarnings>) -> WatchedDevice {
        WatchedDevice { device, last: Counts::default(), failed: 0, warnings }
    }
}

impl Watched for WatchedDevice {
    fn figures(&mut self, seconds: f64) -> Option<String> {
        let counts = self.device.counts().ok()?;
        let account = Figures::of(&self.device.account().ok()?);
        let line = figures_line(&self.last, &counts, &account, seconds);
        self.last = counts;
        Some(line + &self.warnings.summary())
    }

    fn failures(&mut self) -> Vec<String> {
        let (Ok(counts), Ok(account)) = (self.device.counts(), self.device.account()) else { return Vec::new() };
        let failed = counts.failed_in_all();
        let new = failed - std::mem::replace(&mut self.failed, failed);
        let failures = (new > 0).then(|| format!("{new} requests failed: {}", counts.last_error.unwrap_or_default()));
        self.warnings.take_new(&account).into_iter().chain(failures).collect()
    }
}

/// The rates of the last `seconds`, and the figures since the start.
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
