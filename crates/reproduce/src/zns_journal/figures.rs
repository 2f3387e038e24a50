//! The figures of the runs.

use super::{LOADS, MODES, Measured, Pair};
use flashpath::report::RunResult;
use flashpath::report::figure::{Claim, Figure, Panel};

/// Parts into which the journal's writes are divided in figure 3.
const PARTS: usize = 12;

const SCHEMES: [&str; 2] = ["dm-zoned", "journal-zone"];

/// Blocks copied by reclaim, of one content or of all, without zeros that fill holes.
fn copies(result: &RunResult, content: Option<&str>) -> f64 {
    let is_counted = |of: &str| content.map_or(of != "mapping", |content| of == content);
    let rows = result.ledger.iter().filter(|row| row.station == "dm-zoned" && row.cause == "reclaim");
    rows.filter(|row| is_counted(&row.content)).map(|row| row.blocks).sum()
}

fn mean(measured: &Measured, of: impl Fn(&Pair) -> f64) -> f64 {
    measured.runs.iter().map(of).sum::<f64>() / measured.runs.len().max(1) as f64
}

fn share(measured: &Measured) -> f64 {
    mean(measured, |pair| copies(&pair.plain, Some("journal"))) / mean(measured, |pair| copies(&pair.plain, None))
}

fn saved(measured: &Measured) -> f64 {
    1.0 - mean(measured, |pair| copies(&pair.separated, None)) / mean(measured, |pair| copies(&pair.plain, None))
}

/// A panel with a group for each workload and a series for each mode.
fn by_mode(title: &str, measured: &[Measured], value: impl Fn(&Measured) -> f64) -> Panel {
    let of = |load: &str, mode: &str| measured.iter().find(|one| one.load == load && one.mode == mode).map(&value);
    let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
    let groups = LOADS.iter().map(|(load, ..)| (load.to_string(), MODES.map(|mode| finite(of(load, mode))).to_vec()));
    Panel::new(title, MODES.map(String::from).to_vec(), groups.collect())
}

/// The lowest and the highest value.
fn ends(values: impl Iterator<Item = f64>) -> [Option<f64>; 2] {
    let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    [values.iter().copied().reduce(f64::min), values.iter().copied().reduce(f64::max)]
}

/// The median.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    let (low, high) = (values.len().checked_sub(1)? / 2, values.len() / 2);
    Some((values[low] + values[high]) / 2.0)
}

fn claim(
    says: impl Into<String>,
    place: &str,
    (low, high): (Option<f64>, Option<f64>),
    ours: Option<f64>,
    because: &str,
) -> Claim {
    Claim { says: says.into(), place: place.to_string(), low, high, ours, because: because.to_string() }
}

const SIZES: &str = "the paper gives neither the file's size nor the amount written between two commits. With more \
                     chunks in use than conventional zones, the journal's chunk is copied whole after every commit \
                     that touches it, so that its share depends on the number of commits; data=journal touches more \
                     of it. Beside sequential data, the journal stays in a buffer zone, which is not a victim while \
                     there are data zones";

/// Figure 3: the zone of the journal.
pub fn zones(measured: &[Measured]) -> Figure {
    let of = |mode: &str| measured.iter().find(|one| one.mode == mode && one.load == LOADS[0].0);
    let panel = |mode: &str| {
        let zones: [&[u32]; 2] = match of(mode).and_then(|one| one.runs.first()) {
            Some(pair) => [&pair.journal_zones[0], &pair.journal_zones[1]],
            None => [&[], &[]],
        };
        let groups = (0..PARTS).map(|part| {
            let at = |zones: &[u32]| zones.get((part * 2 + 1) * zones.len() / (2 * PARTS)).map(|zone| f64::from(*zone));
            (format!("{}/{PARTS}", part + 1), zones.map(at).to_vec())
        });
        Panel::new(mode, SCHEMES.map(String::from).to_vec(), groups.collect())
    };
    let distinct = |which: usize| {
        let counts = measured.iter().flat_map(|one| &one.runs).map(move |pair| {
            let mut zones = pair.journal_zones[which].clone();
            zones.sort_unstable();
            zones.dedup();
            zones.len() as f64
        });
        ends(counts)
    };
    Figure {
        name: "zns-journal-fig3".to_string(),
        title: "ZNS journal figure 3: zone number used for journal write requests".to_string(),
        unit: "number of the conventional zone".to_string(),
        about: "The conventional zone of the journal, over the journal's writes from mkfs on; uniform, first run."
            .to_string(),
        panels: MODES.map(panel).to_vec(),
        claims: vec![
            claim(
                "zones that held the journal, in the run with the most",
                "2.2: it is changed continuously",
                (Some(2.0), None),
                distinct(0)[1],
                SIZES,
            ),
            claim(
                "zones that held the journal with the journal zone, in the run with the most",
                "4.3, derived: all journal writes go to that zone",
                (Some(1.0), Some(1.0)),
                distinct(1)[1],
                "mkfs writes the journal before it can be recognised as one",
            ),
        ],
    }
    .over("part of the run")
}

/// Figure 7: the journal's share of the copied blocks.
pub fn journal_share(measured: &[Measured]) -> Figure {
    let [low, high] = ends(measured.iter().map(share));
    let band = (Some(0.10), Some(0.485));
    Figure {
        name: "zns-journal-fig7".to_string(),
        title: "ZNS journal figure 7: journal data copied during garbage collection".to_string(),
        unit: "share of the blocks copied by reclaim".to_string(),
        about: "dm-zoned without the scheme. Zeros that fill holes are not counted; the done part of cancelled \
                copies is."
            .to_string(),
        panels: vec![by_mode("", measured, share)],
        claims: vec![
            claim(
                "the journal's share, the median of all workloads and modes",
                "5.1",
                band,
                median(measured.iter().map(share)),
                SIZES,
            ),
            claim("the journal's share, in the workload and mode with the least", "5.1", band, low, SIZES),
            claim("the journal's share, in the workload and mode with the most", "5.1", band, high, SIZES),
        ],
    }
}

/// Figure 8: the reduction of copies.
pub fn reduction(measured: &[Measured]) -> Figure {
    let [low, high] = ends(measured.iter().map(saved));
    let band = (Some(0.14), Some(0.268));
    let left = measured.iter().flat_map(|one| &one.runs).map(|pair| copies(&pair.separated, Some("journal"))).sum();
    let blocks = |which: fn(&Pair) -> &RunResult| {
        move |one: &Measured| mean(one, |pair| copies(which(pair), None)) * 4096.0 / f64::from(1 << 20)
    };
    Figure {
        name: "zns-journal-fig8".to_string(),
        title: "ZNS journal figure 8: reduction of the data copied during garbage collection".to_string(),
        unit: "share of the copies saved".to_string(),
        about: "The same traces on dm-zoned with and without the journal zone.".to_string(),
        panels: vec![
            by_mode("reduction", measured, saved),
            Panel { unit: Some("MiB copied".to_string()), ..by_mode("dm-zoned", measured, blocks(|pair| &pair.plain)) },
            Panel {
                unit: Some("MiB copied".to_string()),
                ..by_mode("journal-zone", measured, blocks(|pair| &pair.separated))
            },
        ],
        claims: vec![
            claim(
                "the reduction, the median of all workloads and modes",
                "5.1",
                band,
                median(measured.iter().map(saved)),
                SIZES,
            ),
            claim("the reduction, in the workload and mode with the least", "5.1", band, low, SIZES),
            claim("the reduction, in the workload and mode with the most", "5.1", band, high, SIZES),
            claim(
                "journal blocks copied by reclaim with the journal zone, in all runs",
                "4.4: it is never a reclaim target",
                (Some(0.0), Some(0.0)),
                Some(left),
                "a journal zone must not be reclaimed",
            ),
        ],
    }
}

/// Figure 9: throughput.
pub fn throughput(measured: &[Measured]) -> Figure {
    let speed = |result: &RunResult| result.throughput_mib_s.unwrap_or(f64::NAN);
    let ratio = |one: &Measured| mean(one, |pair| speed(&pair.separated)) / mean(one, |pair| speed(&pair.plain));
    let panel = |mode: &str| {
        let groups = measured.iter().filter(|one| one.mode == mode).map(|one| {
            let values = [mean(one, |pair| speed(&pair.plain)), mean(one, |pair| speed(&pair.separated))];
            (one.load.to_string(), values.map(|value| Some(value).filter(|value| value.is_finite())).to_vec())
        });
        Panel::new(mode, SCHEMES.map(String::from).to_vec(), groups.collect())
    };
    let lowest = |mode: &str| ends(measured.iter().filter(|one| one.mode == mode).map(ratio))[0];
    let because = "the scheme saves copies, but leaves one zone less for all other blocks";
    Figure {
        name: "zns-journal-fig9".to_string(),
        title: "ZNS journal figure 9: I/O performance".to_string(),
        unit: "MiB/s in simulated time".to_string(),
        about: "Bytes written to the volume, journal included, over the simulated time of the replay at depth 32."
            .to_string(),
        panels: MODES.map(panel).to_vec(),
        claims: vec![
            claim(
                "ordered: throughput with the journal zone over without, in the worst workload",
                "5.2: no significant improvement; 5 % counts as significant",
                (Some(0.95), None),
                lowest("ordered"),
                because,
            ),
            claim(
                "journal: throughput with the journal zone over without, in the worst workload",
                "5.2: it has improved",
                (Some(1.0), None),
                lowest("journal"),
                because,
            ),
        ],
    }
}
