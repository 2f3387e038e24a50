//! Small runs whose instructions are counted: the cells of `benches/cells.rs`.
//!
//! A cell is prepared, and then run once under callgrind. How many units of work each kind of cell does (host writes,
//! commits, requests, records) is in `counts.json`, beside the stored counts: `scripts/instructions` divides by it.

pub mod clients;
pub mod runs;
pub mod traces;

/// The units of work of a cell of this kind.
pub fn units(kind: &str) -> u64 {
    let counts: serde_json::Value = serde_json::from_str(include_str!("../counts.json")).expect("counts.json is JSON");
    counts["units"][kind].as_u64().expect("counts.json has the units of every kind of cell")
}
