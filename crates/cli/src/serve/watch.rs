//! The figures and failures of served devices, for standard error.

use super::figures::{Figures, by_content};
use crate::resident::warnings::PrintedWarnings;
use crate::resident::watch::Watched;
use flashpath::run::shared::{Counts, Request};
use flashpath_nvme::Drive;
use std::sync::Arc;

/// A served device, and the state of its last report.
struct Reported {
    drive: Drive,
    last: Counts,
    /// The number of failures reported so far.
    failed: u64,
}

/// The served devices.
pub struct WatchedDevices {
    devices: Vec<Reported>,
    warnings: Arc<PrintedWarnings>,
}

impl WatchedDevices {
    /// Devices of which only `warnings` have been reported.
    pub fn new(drives: Vec<Drive>, warnings: Arc<PrintedWarnings>) -> WatchedDevices {
        let reported = |drive| Reported { drive, last: Counts::default(), failed: 0 };
        WatchedDevices { devices: drives.into_iter().map(reported).collect(), warnings }
    }
}

impl Watched for WatchedDevices {
    fn figures(&mut self, seconds: f64) -> Option<String> {
        let several = self.devices.len() > 1;
        let mut lines = Vec::new();
        for (number, device) in (1..).zip(&mut self.devices) {
            let counts = device.drive.counts().ok()?;
            let account = Figures::of(&device.drive.account().ok()?);
            let line = figures_line(&device.last, &counts, &account, seconds);
            lines.push(if several { format!("namespace {number}: {line}") } else { line });
            device.last = counts;
        }
        Some(lines.join(" | ") + &self.warnings.summary())
    }

    fn failures(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        for device in &mut self.devices {
            let (Ok(counts), Ok(account)) = (device.drive.counts(), device.drive.account()) else { continue };
            let failed = counts.failed_in_all();
            let new = failed - std::mem::replace(&mut device.failed, failed);
            all.extend(self.warnings.take_new(&account));
            all.extend((new > 0).then(|| format!("{new} requests failed: {}", counts.last_error.unwrap_or_default())));
        }
        all
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
