//! The promises of a ledger, recomputed from a result's rows and its path alone.

use flashpath::label::{Cause, Content};
use flashpath::report::{LedgerRow, RunResult};
use std::collections::{BTreeMap, BTreeSet};

pub type Row = LedgerRow;

/// Blocks by origin and content.
type ByProvenance = BTreeMap<(String, String), f64>;

/// True if the blocks were on the flash before.
pub fn is_copy(row: &Row) -> bool {
    ["garbage-collection", "wear-levelling", "merge", "fold"].contains(&row.cause.as_str()) && !is_own(row)
}

/// True if a translation layer added the blocks: pages of its map, fillers, padding.
fn is_own(row: &Row) -> bool {
    row.content == "mapping" && ["mapping", "merge", "padding"].contains(&row.origin.as_str())
}

#[derive(Debug)]
pub struct Ledger {
    rows: Vec<Row>,
}

impl Ledger {
    pub fn of(result: &RunResult) -> Ledger {
        Ledger { rows: result.ledger.clone() }
    }

    /// The blocks of all rows that are chosen.
    pub fn sum(&self, is_chosen: &dyn Fn(&Row) -> bool) -> f64 {
        self.rows.iter().filter(|row| is_chosen(row)).map(|row| row.blocks).sum()
    }

    pub fn stations(&self) -> Vec<&str> {
        let mut stations: Vec<&str> = self.rows.iter().map(|row| row.station.as_str()).collect();
        stations.dedup();
        stations
    }

    fn by_provenance(&self, is_chosen: &dyn Fn(&Row) -> bool) -> ByProvenance {
        let mut blocks = ByProvenance::new();
        for row in self.rows.iter().filter(|row| is_chosen(row)) {
            *blocks.entry((row.origin.clone(), row.content.clone())).or_default() += row.blocks;
        }
        blocks
    }

    fn sent(&self, station: &str) -> ByProvenance {
        self.by_provenance(&|row| row.station == station && row.cause != "joined")
    }

    /// The blocks that a station received from above, as far as its own rows say; `None` for a cache and for a drive with a
    /// buffer, which absorb some.
    fn received(&self, station: &Station) -> Option<ByProvenance> {
        let name = station.name.as_str();
        if station.has_buffer {
            return None;
        }
        match (name, station.has_layer) {
            ("cache", _) => None,
            ("dm-zoned", _) => {
                Some(self.by_provenance(&|row| row.station == name && !["reclaim", "mapping"].contains(&&*row.cause)))
            }
            (_, true) => Some(self.by_provenance(&|row| row.station == name && row.cause == "host-write")),
            (_, false) => Some(self.sent(name)),
        }
    }
}

/// A station of a path, from its text.
struct Station {
    name: String,
    /// True if it is a translation layer on flash, or has one inside: a write of any cause is its host's.
    has_layer: bool,
    has_buffer: bool,
    below: Vec<Station>,
}

impl Station {
    /// The stations of a path's text: those side by side, behind a `+`, stand on the station before the first of them.
    fn read(text: &str) -> Station {
        let (term, rest) = text.split_once('/').unwrap_or((text, ""));
        let name = term.split(':').next().unwrap().to_string();
        let takes_several = |name: &str| ["ext", "cache", "dm-zoned"].contains(&name);
        // The nearest station that takes several devices has those behind a `+`.
        let is_nearest = |first: &str| !first.split('/').any(|term| takes_several(term.split(':').next().unwrap()));
        let is_fork = takes_several(&name) && rest.split_once('+').is_some_and(|(first, _)| is_nearest(first));
        let below = match rest {
            "" => Vec::new(),
            _ if is_fork => rest.split('+').map(Station::read).collect(),
            _ => vec![Station::read(rest)],
        };
        let has_layer = ["page", "dftl", "fast", "superblock"].contains(&name.as_str()) || term.contains("ftl=");
        let has_buffer = term.contains("buffer=");
        Station { name, has_layer, has_buffer, below }
    }

    /// The provenances that the station may add to those that it receives.
    fn own(&self) -> &'static [(&'static str, &'static str)] {
        match self.name.as_str() {
            "dm-zoned" => &[("mapping", "mapping"), ("reclaim", "mapping")],
            "cache" => &[("cache-fill", "data")],
            _ if self.has_layer => &[("mapping", "mapping"), ("merge", "mapping"), ("padding", "mapping")],
            _ => &[],
        }
    }
}

/// Checks every promise of the ledger that a result shows.
pub fn check_ledger(result: &RunResult) -> Ledger {
    let (ledger, path) = (Ledger::of(result), &result.path);
    assert!(!result.sums.is_empty() && result.sums.iter().all(|sum| sum.holds), "{path}: {:?}", result.sums);
    let (causes, contents) = (Cause::ALL.map(Cause::name), Content::ALL.map(Content::name));
    for row in &ledger.rows {
        let words = [&*row.cause, &*row.origin].iter().all(|cause| causes.contains(cause));
        assert!(words && contents.contains(&&*row.content) && row.blocks > 0.0, "{path}: {row:?}");
    }
    let mut rows: Vec<_> =
        ledger.rows.iter().map(|row| (&row.station, &row.cause, &row.origin, &row.content)).collect();
    rows.sort_unstable();
    rows.windows(2).for_each(|pair| assert_ne!(pair[0], pair[1], "{path}: a row for each label"));

    let top = Station::read(path);
    if !["sfs", "ext"].contains(&&*top.name) && result.flash.page_bytes <= 4096 && !top.has_buffer {
        assert_eq!(ledger.received(&top), Some(ledger.sent("workload")), "{path}: the top received what was written");
    }
    check_below(result, &ledger, &top);
    check_media(result, &ledger);
    ledger
}

/// What the stations below each received is what it sent, by origin and content; and none invents an origin.
fn check_below(result: &RunResult, ledger: &Ledger, station: &Station) {
    let path = &result.path;
    let is_flash = station.below.iter().any(|below| below.name == "nand");
    let received: Option<Vec<ByProvenance>> = station.below.iter().map(|below| ledger.received(below)).collect();
    if let Some(received) = received.filter(|received| !received.is_empty()) {
        let mut all = ByProvenance::new();
        for (provenance, blocks) in received.into_iter().flatten() {
            *all.entry(provenance).or_default() += blocks;
        }
        assert_eq!(ledger.sent(&station.name), all, "{path}: what is below {} received what it sent", station.name);
    }
    if is_flash {
        let labels = |name: &str| -> BTreeSet<_> {
            let rows = ledger.rows.iter().filter(|row| row.station == name && row.cause != "joined");
            rows.map(|row| (row.cause.clone(), row.origin.clone(), row.content.clone(), row.blocks as u64)).collect()
        };
        assert_eq!(labels(&station.name), labels("nand"), "{path}: the flash programmed what the layer sent");
    }
    let known = ledger.sent(&station.name);
    for below in &station.below {
        for (origin, content) in ledger.sent(&below.name).into_keys() {
            let is_own = below.own().contains(&(&*origin, &*content));
            assert!(is_own || known.contains_key(&(origin.clone(), content.clone())), "{path}: {origin}, {content}");
        }
        check_below(result, ledger, below);
    }
}

/// The media's blocks are the write amplification, the programmed pages, and, but for what is on the flash, the erases.
fn check_media(result: &RunResult, ledger: &Ledger) {
    let (path, flash) = (&result.path, &result.flash);
    let stored = ledger.sum(&|row| result.media.contains(&row.station));
    let amplification = result.write_amplification.total.expect("something was written");
    let from_host = amplification * result.workload.written_blocks as f64;
    assert!((from_host / stored - 1.0).abs() < 1e-12, "{path}: {from_host} and {stored}");
    let event = |name: &str| result.translation.events.get(name).copied().unwrap_or(0) as f64;
    let programmed = (flash.programmed_pages * flash.page_bytes) as f64 / 4096.0;
    match result.media.last().map(String::as_str) {
        Some("nand") => assert_eq!(ledger.sum(&|row| row.station == "nand"), programmed, "{path}"),
        // Each zone has less than a page in the buffer, when counting begins and at the end.
        Some("zns") => {
            let written = ledger.sum(&|row| row.station == "zns") + event("padded_blocks")
                - event("dropped_blocks")
                - event("conventional_blocks");
            let most = flash.blocks as f64 * (flash.page_bytes as f64 / 4096.0 - 1.0);
            assert!((written - programmed).abs() <= most, "{path}: {written} written, {programmed} programmed");
        }
        _ => {}
    }
    if flash.blocks > 0 {
        let of_flash = |sum: &&flashpath::report::SumCheck| sum.name.contains("blocks erased x pages per block");
        let sum = result.sums.iter().find(of_flash).unwrap_or_else(|| panic!("{path}: {:?}", result.sums));
        assert!(sum.left == sum.right && sum.left >= flash.programmed_pages as f64, "{path}: {sum:?}");
        // But for pages that were erased unprogrammed, the erased blocks were programmed before.
        assert!(sum.right >= (flash.erased_blocks * flash.pages_per_block) as f64, "{path}: {sum:?}");
    }
}
