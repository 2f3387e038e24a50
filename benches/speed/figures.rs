//! The figures of `docs/speed.json`. `pages.rs` makes the tables of the pages from them.

use serde::{Deserialize, Serialize};

/// All figures. A part that was never measured is absent.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Figures {
    pub drives: Option<Part<DriveRow>>,
    pub layers: Option<Part<LayerRow>>,
    pub sources: Option<Part<SourceRow>>,
}

/// Figures that were taken one after the other.
#[derive(Debug, Serialize, Deserialize)]
pub struct Part<Row> {
    pub taken: Taken,
    pub rows: Vec<Row>,
}

/// When and where figures were taken.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Taken {
    pub commit: String,
    pub date: String,
    pub machine: String,
    /// The seed of the paths and workloads.
    pub seed: u64,
}

/// The median of a figure over the rounds, and its bounds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

/// The rounds of a row, and the load of the machine at the start of the first and at the end of the last.
///
/// A load is the number of processes that run or want to, on average over a minute, this one included. CPU time grows
/// with it: processes share caches and memory.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Rounds {
    pub count: usize,
    /// Unknown where the kernel does not count it.
    pub load_at_start: Option<f64>,
    pub load_at_end: Option<f64>,
}

/// The page-level layer on a drive, under uniform writes of 4 KiB.
#[derive(Debug, Serialize, Deserialize)]
pub struct DriveRow {
    pub path: String,
    pub size_gib: u64,
    pub planes: u32,
    pub is_timed: bool,
    /// Host writes per CPU-second.
    pub writes_per_second: Spread,
    /// Those of the bare loop on as many pages.
    pub bare_loop: Spread,
    /// The share of the loop, pair by pair.
    pub of_loop: Spread,
    /// With the timing model: the loop and bare queues of planes and channels one after the other, for as many copies.
    pub bare_queues: Option<Spread>,
    /// The share of these, pair by pair.
    pub of_queues: Option<Spread>,
    pub write_amplification: f64,
    /// Memory of the filled drive over its flash pages.
    pub bytes_per_page: f64,
    pub rounds: Rounds,
}

/// A layer on a workload, beside `page` on the same.
#[derive(Debug, Serialize, Deserialize)]
pub struct LayerRow {
    pub path: String,
    pub layer: String,
    pub workload: String,
    pub writes_per_second: Spread,
    pub of_page: Spread,
    pub ns_per_program: Spread,
    pub write_amplification: f64,
    pub rounds: Rounds,
}

/// A source of requests alone.
#[derive(Debug, Serialize, Deserialize)]
pub struct SourceRow {
    pub source: String,
    pub requests_per_second: Spread,
    pub rounds: Rounds,
}
