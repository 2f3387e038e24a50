//! Claims about how much one system saves over another.

use super::{JOURNAL, LAYERS, ORDERED, OURS, VMA};
use flashpath::report::figure::{Claim, Panel};

/// The panel's value of one mode over another's, for the workloads of these names.
pub(super) fn ratios(panel: &Panel, loads: &[&str], over: usize, under: usize) -> Vec<f64> {
    let chosen = panel.groups.iter().filter(|(load, _)| loads.contains(&load.as_str()));
    let ratios = chosen.filter_map(|(_, values)| Some(values[over]? / values[under]?));
    ratios.filter(|ratio| ratio.is_finite()).collect()
}

pub(super) fn smallest(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::min)
}

pub(super) fn largest(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::max)
}

pub(super) const MICRO: [&str; 2] = ["seq_write", "rnd_write"];
pub(super) const MACRO: [&str; 3] = ["postmark", "untar", "compile"];
pub(super) const ALL: [&str; 5] = ["seq_write", "rnd_write", "postmark", "untar", "compile"];

/// A claim of the paper, without our value.
pub(super) struct PaperClaim<'a> {
    pub(super) says: String,
    pub(super) place: &'a str,
    pub(super) bounds: (Option<f64>, Option<f64>),
    pub(super) because: &'a str,
}

pub(super) fn claim(paper: PaperClaim, ours: Option<f64>) -> Claim {
    let PaperClaim { says, place, bounds: (low, high), because } = paper;
    Claim { says, place: place.to_string(), low, high, ours, because: because.to_string(), shown_by: None }
}

/// The shares that VMA mode saves of what data=journal takes, by the paper: those of the micro benchmarks, and those of the
/// others.
pub(super) struct Savings<'a> {
    /// The thing that is saved, such as `erases`.
    pub(super) what: &'a str,
    pub(super) place: &'a str,
    pub(super) micro: (f64, f64),
    pub(super) others: (f64, f64),
    pub(super) because: &'a str,
}

/// For each workload, VMA mode of ext over its data=journal.
pub(super) fn savings(panel: &Panel, on: &str, savings: &Savings) -> Vec<Claim> {
    let claim_of = |load: &&str| {
        let (low, high) = if MICRO.contains(load) { savings.micro } else { savings.others };
        claim(
            PaperClaim {
                says: format!("{} of VMA over journal, both of ext, {load}{on}", savings.what),
                place: savings.place,
                bounds: (Some(1.0 - high), Some(1.0 - low)),
                because: savings.because,
            },
            smallest(&ratios(panel, &[load], OURS + VMA, OURS + JOURNAL)),
        )
    };
    ALL.iter().map(claim_of).collect()
}

/// For each workload, VMA mode of ext over its data=ordered: the paper finds them alike.
pub(super) fn like_ordered(panel: &Panel, what: &str, place: &str) -> Vec<Claim> {
    let because = "VMA writes bytes home at checkpoints, and data=ordered at each sync: a block that changes often \
                   is written less often, and one that is deleted before may not be written at all; data=ordered has a journal of \
                   metadata, and VMA has none";
    let claim_of = |load: &&str| {
        let says = format!("{what} of VMA over ordered, both of ext, {load}");
        let bounds = (Some(0.9), Some(1.1));
        claim(
            PaperClaim { says, place, bounds, because },
            smallest(&ratios(panel, &[load], OURS + VMA, OURS + ORDERED)),
        )
    };
    ALL.iter().map(claim_of).collect()
}

/// Factors by which a drive lives longer, if erases are what wears it: the most of all workloads, for each of the paper's
/// layers. It saves 64 %, 83 % and 86.5 % of the erases.
pub(super) fn lifetimes(panels: &[Panel], because: &str) -> Vec<Claim> {
    let most_saved = [0.64, 0.83, 0.865];
    let claim_of = |((panel, layer), saved): ((&Panel, &str), f64)| {
        claim(
            PaperClaim {
                says: format!(
                    "lifetime on {layer}: erases of journal over VMA, both of ext, the most of all workloads"
                ),
                place: "IV.B, derived: that share of the erases is saved at the most",
                bounds: (Some(1.0 / (1.0 - saved)), Some(1.0 / (1.0 - saved))),
                because,
            },
            largest(&ratios(panel, &ALL, OURS + JOURNAL, OURS + VMA)),
        )
    };
    panels.iter().zip(LAYERS).zip(most_saved).map(claim_of).collect()
}
