//! The page of figures, in Prometheus' text format (version 0.0.4).

use super::figures::Figures;
use flashpath::device::Account;
use flashpath::label::Tally;
use flashpath::run::shared::{Counts, LATENCY_BOUNDS_NS, Request, RequestCounts, ServeError};
use flashpath_nbd::Traffic;
use flashpath_nvme::{Drive, Health};
use std::fmt::{Display, Write};

/// The figures of a device.
pub struct DriveFigures {
    size_bytes: u64,
    seconds: f64,
    counts: Counts,
    account: Account,
    health: Health,
}

impl DriveFigures {
    /// The figures of a device now.
    pub fn of(drive: &Drive) -> Result<DriveFigures, ServeError> {
        Ok(DriveFigures {
            size_bytes: drive.size_bytes(),
            seconds: drive.now().seconds(),
            counts: drive.counts()?,
            account: drive.account()?,
            health: Health::of([drive].into_iter())?,
        })
    }
}

/// The text of the page.
struct Page<'d> {
    text: String,
    drives: &'d [DriveFigures],
}

impl<'d> Page<'d> {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.line(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &dyn Display)], value: impl Display) {
        self.line(format_args!("{name}"));
        for (index, (label, value)) in labels.iter().enumerate() {
            let before = if index == 0 { '{' } else { ',' };
            self.line(format_args!("{before}{label}=\"{value}\""));
        }
        let end = if labels.is_empty() { "" } else { "}" };
        self.line(format_args!("{end} {value}\n"));
    }

    /// A sample of the device of this position. Of several, each has its number as a label.
    fn of_drive(&mut self, drive: usize, name: &str, labels: &[(&str, &dyn Display)], value: impl Display) {
        let number = drive + 1;
        let mut all: Vec<(&str, &dyn Display)> = labels.to_vec();
        if self.drives.len() > 1 {
            all.push(("namespace", &number));
        }
        self.sample(name, &all, value);
    }

    /// A family with one sample of each device, where it has one.
    fn gauge<V: Display>(&mut self, name: &str, help: &str, value: impl Fn(&DriveFigures) -> Option<V>) {
        if self.drives.iter().all(|drive| value(drive).is_none()) {
            return;
        }
        self.family(name, "gauge", help);
        for (number, drive) in self.drives.iter().enumerate() {
            if let Some(value) = value(drive) {
                self.of_drive(number, name, &[], value);
            }
        }
    }

    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.text.write_fmt(text);
    }
}

/// Collects the stations of a path from top to bottom.
fn stations<'a>(account: &'a Account, all: &mut Vec<&'a Account>) {
    all.push(account);
    account.below.iter().for_each(|below| stations(below, all));
}

/// The page of these devices.
pub fn page(drives: &[DriveFigures], clients: Option<(&str, Traffic)>) -> String {
    let mut page = Page { text: String::new(), drives };
    page.gauge("flashpath_size_bytes", "Bytes of the served device.", |drive| Some(drive.size_bytes));
    page.gauge("flashpath_uptime_seconds", "Time since the device was opened.", |drive| Some(drive.seconds));
    let help = "Blocks stored by the media over blocks written by clients, since the device was opened.";
    page.gauge("flashpath_write_amplification", help, |drive| Figures::of(&drive.account).write_amplification());
    let help = "Bytes that clients wrote, since the device was opened.";
    page.gauge("flashpath_host_written_bytes", help, |drive| Some(drive.health.host_written));
    let help = "Bytes that the media stored or programmed, since the device was opened.";
    page.gauge("flashpath_media_written_bytes", help, |drive| Some(drive.health.media_written));
    let of_flash =
        |value: fn(&Health) -> u64| move |drive: &DriveFigures| drive.health.has_flash.then(|| value(&drive.health));
    let help = "Share of the endurance that is used, on average over the blocks of the flash.";
    page.gauge("flashpath_used_endurance_percent", help, of_flash(|health| health.percent_used));
    let help = "Erases of the most worn block, since the flash was new.";
    page.gauge("flashpath_most_erases", help, of_flash(|health| health.most_erases.into()));
    let help = "Erases of the least worn block, since the flash was new.";
    page.gauge("flashpath_least_erases", help, of_flash(|health| health.least_erases.into()));
    add_stations(&mut page);
    add_requests(&mut page);
    if let Some((what, clients)) = clients {
        let name = format!("flashpath_{what}");
        page.family(&name, "gauge", "Connected clients.");
        page.sample(&name, &[], clients.connected);
        let name = format!("{name}_total");
        page.family(&name, "counter", "Clients, by fate.");
        for (fate, count) in
            [("accepted", clients.accepted), ("turned-away", clients.turned_away), ("broken", clients.broken)]
        {
            page.sample(&name, &[("fate", &fate)], count);
        }
    }
    page.text
}

/// The stations of all devices: the position of the device, and the number of the station in its path.
fn all_stations(drives: &[DriveFigures]) -> Vec<(usize, usize, &Account)> {
    let mut every = Vec::new();
    for (drive, figures) in drives.iter().enumerate() {
        let mut all = Vec::new();
        stations(&figures.account, &mut all);
        every.extend(all.into_iter().enumerate().map(|(number, station)| (drive, number, station)));
    }
    every
}

fn add_stations(page: &mut Page<'_>) {
    let all = all_stations(page.drives);
    let mut family = |name, help, tally: fn(&Account) -> &Tally| {
        page.family(name, "counter", help);
        for (drive, number, station) in &all {
            for (label, blocks) in tally(station).entries() {
                let labels: [(&str, &dyn Display); 5] = [
                    ("station", &station.station),
                    ("number", number),
                    ("cause", &label.cause.name()),
                    ("origin", &label.origin.name()),
                    ("content", &label.content.name()),
                ];
                page.of_drive(*drive, name, &labels, blocks);
            }
        }
    };
    let help = "Blocks of 4 KiB written to a station.";
    family("flashpath_received_blocks_total", help, |account| &account.received);
    let help = "Blocks of 4 KiB that a station wrote to the stations below, or stored.";
    family("flashpath_blocks_total", help, |account| &account.sent);
    let name = "flashpath_read_blocks_total";
    page.family(name, "counter", "Blocks of 4 KiB read from a station.");
    for (drive, number, station) in &all {
        page.of_drive(*drive, name, &[("station", &station.station), ("number", number)], station.read_blocks);
    }
    let name = "flashpath_events_total";
    page.family(name, "counter", "Other events of a station.");
    for (drive, number, station) in &all {
        for (event, count) in &station.events {
            let labels: [(&str, &dyn Display); 3] =
                [("station", &station.station), ("number", number), ("event", event)];
            page.of_drive(*drive, name, &labels, *count);
        }
    }
    let name = "flashpath_warnings_total";
    page.family(name, "counter", "Warnings of a station, by kind.");
    for (drive, number, station) in &all {
        for (kind, count) in station.warnings.counts() {
            let labels: [(&str, &dyn Display); 3] =
                [("station", &station.station), ("number", number), ("kind", &kind)];
            page.of_drive(*drive, name, &labels, count);
        }
    }
    let name = "flashpath_flash_operations_total";
    page.family(name, "counter", "Pages programmed and read by flash, and blocks erased.");
    for (drive, number, station) in &all {
        let Some(flash) = &station.flash else { continue };
        let operations = [("program", flash.programs), ("read", flash.read_pages), ("erase", flash.erased_blocks)];
        for (operation, count) in operations {
            let labels: [(&str, &dyn Display); 3] =
                [("station", &station.station), ("number", number), ("operation", &operation)];
            page.of_drive(*drive, name, &labels, count);
        }
    }
}

fn add_requests(page: &mut Page<'_>) {
    let drives = page.drives;
    let mut family = |name, help, value: fn(&RequestCounts) -> u64| {
        page.family(name, "counter", help);
        for (drive, figures) in drives.iter().enumerate() {
            for request in Request::ALL {
                page.of_drive(drive, name, &[("kind", &request.name())], value(figures.counts.of(request)));
            }
        }
    };
    family("flashpath_requests_total", "Requests served.", |counts| counts.served);
    family("flashpath_request_bytes_total", "Bytes of the served requests.", |counts| counts.bytes);
    family("flashpath_failed_requests_total", "Requests that the device failed.", |counts| counts.failed);
    let name = "flashpath_request_seconds";
    page.family(name, "histogram", "Latency of requests: by the timing model with --pace, else by the clock.");
    for (drive, figures) in drives.iter().enumerate() {
        for request in Request::ALL {
            let (kind, latencies) = (request.name(), &figures.counts.of(request).latencies);
            let bounds = LATENCY_BOUNDS_NS.iter().map(|bound| (*bound as f64 / 1e9).to_string());
            let mut below = 0;
            for (bound, count) in bounds.chain(["+Inf".to_string()]).zip(latencies.counts) {
                below += count;
                page.of_drive(drive, "flashpath_request_seconds_bucket", &[("kind", &kind), ("le", &bound)], below);
            }
            let sum = latencies.sum_ns as f64 / 1e9;
            page.of_drive(drive, "flashpath_request_seconds_sum", &[("kind", &kind)], sum);
            page.of_drive(drive, "flashpath_request_seconds_count", &[("kind", &kind)], below);
        }
    }
}
