//! The page of figures, in Prometheus' text format (version 0.0.4).

use super::figures::Figures;
use flashpath::device::Account;
use flashpath::label::Tally;
use flashpath::run::shared::{Counts, LATENCY_BOUNDS_NS, Request, RequestCounts};
use flashpath_nbd::Traffic;
use std::fmt::{Display, Write};

/// The text of the page.
struct Page {
    text: String,
}

impl Page {
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

    fn single(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
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

/// The page.
pub fn page(size_bytes: u64, seconds: f64, counts: &Counts, account: &Account, clients: Option<Traffic>) -> String {
    let mut page = Page { text: String::new() };
    page.single("flashpath_size_bytes", "gauge", "Bytes of the served device.", size_bytes);
    page.single("flashpath_uptime_seconds", "gauge", "Time since the device was opened.", seconds);
    if let Some(factor) = Figures::of(account).write_amplification() {
        let help = "Blocks stored by the media over blocks written by clients, since the device was opened.";
        page.single("flashpath_write_amplification", "gauge", help, factor);
    }
    add_stations(&mut page, account);
    add_requests(&mut page, counts);
    if let Some(clients) = clients {
        page.single("flashpath_nbd_clients", "gauge", "Connected clients.", clients.connected);
        let name = "flashpath_nbd_clients_total";
        page.family(name, "counter", "Clients, by fate.");
        for (fate, count) in
            [("accepted", clients.accepted), ("turned-away", clients.turned_away), ("broken", clients.broken)]
        {
            page.sample(name, &[("fate", &fate)], count);
        }
    }
    page.text
}

fn add_stations(page: &mut Page, account: &Account) {
    let mut all = Vec::new();
    stations(account, &mut all);
    let numbered = || all.iter().enumerate();
    let mut family = |name, help, tally: fn(&Account) -> &Tally| {
        page.family(name, "counter", help);
        for (number, station) in numbered() {
            for (label, blocks) in tally(station).entries() {
                let labels: [(&str, &dyn Display); 5] = [
                    ("station", &station.station),
                    ("number", &number),
                    ("cause", &label.cause.name()),
                    ("origin", &label.origin.name()),
                    ("content", &label.content.name()),
                ];
                page.sample(name, &labels, blocks);
            }
        }
    };
    let help = "Blocks of 4 KiB written to a station.";
    family("flashpath_received_blocks_total", help, |account| &account.received);
    let help = "Blocks of 4 KiB that a station wrote to the stations below, or stored.";
    family("flashpath_blocks_total", help, |account| &account.sent);
    let name = "flashpath_read_blocks_total";
    page.family(name, "counter", "Blocks of 4 KiB read from a station.");
    for (number, station) in numbered() {
        page.sample(name, &[("station", &station.station), ("number", &number)], station.read_blocks);
    }
    let name = "flashpath_events_total";
    page.family(name, "counter", "Other events of a station.");
    for (number, station) in numbered() {
        for (event, count) in &station.events {
            let labels: [(&str, &dyn Display); 3] =
                [("station", &station.station), ("number", &number), ("event", event)];
            page.sample(name, &labels, *count);
        }
    }
    let name = "flashpath_warnings_total";
    page.family(name, "counter", "Warnings of a station, by kind.");
    for (number, station) in numbered() {
        for (kind, count) in station.warnings.counts() {
            let labels: [(&str, &dyn Display); 3] =
                [("station", &station.station), ("number", &number), ("kind", &kind)];
            page.sample(name, &labels, count);
        }
    }
    let name = "flashpath_flash_operations_total";
    page.family(name, "counter", "Pages programmed and read by flash, and blocks erased.");
    for (number, station) in numbered() {
        let Some(flash) = &station.flash else { continue };
        let operations = [("program", flash.programs), ("read", flash.read_pages), ("erase", flash.erased_blocks)];
        for (operation, count) in operations {
            let labels: [(&str, &dyn Display); 3] =
                [("station", &station.station), ("number", &number), ("operation", &operation)];
            page.sample(name, &labels, count);
        }
    }
}

fn add_requests(page: &mut Page, counts: &Counts) {
    let mut family = |name, help, value: fn(&RequestCounts) -> u64| {
        page.family(name, "counter", help);
        for request in Request::ALL {
            page.sample(name, &[("kind", &request.name())], value(counts.of(request)));
        }
    };
    family("flashpath_requests_total", "Requests served.", |counts| counts.served);
    family("flashpath_request_bytes_total", "Bytes of the served requests.", |counts| counts.bytes);
    family("flashpath_failed_requests_total", "Requests that the device failed.", |counts| counts.failed);
    let name = "flashpath_request_seconds";
    page.family(name, "histogram", "Latency of requests: by the timing model with --pace, else by the clock.");
    for request in Request::ALL {
        let (kind, latencies) = (request.name(), &counts.of(request).latencies);
        let bounds = LATENCY_BOUNDS_NS.iter().map(|bound| (*bound as f64 / 1e9).to_string());
        let mut below = 0;
        for (bound, count) in bounds.chain(["+Inf".to_string()]).zip(latencies.counts) {
            below += count;
            page.sample("flashpath_request_seconds_bucket", &[("kind", &kind), ("le", &bound)], below);
        }
        page.sample("flashpath_request_seconds_sum", &[("kind", &kind)], latencies.sum_ns as f64 / 1e9);
        page.sample("flashpath_request_seconds_count", &[("kind", &kind)], below);
    }
}
