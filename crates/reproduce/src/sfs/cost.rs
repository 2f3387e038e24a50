//! SFS and LFS-CB by utilization: write cost (figure 8), throughput (figure 9), and throughput on three devices (figure
//! 11).

use super::devices::{DEVICES, Device, M};
use super::loads;
use super::volume::{LFS_CB, Measured, Point, Points, READINGS, Reading, SFS};
use super::{claim, exactly, panel};
use crate::ReproduceError;
use flashpath::report::figure::{Claim, Figure, Panel};

const UTILIZATIONS: [f64; 5] = [0.5, 0.6, 0.7, 0.8, 0.9];
/// Fewer utilizations for the slower runs with times.
const TIMED: [f64; 3] = [0.5, 0.7, 0.9];
const SYSTEMS: [&str; 2] = ["SFS", "LFS-CB"];
/// Indexes into the loads.
const TPCC: usize = 1;
const UNIFORM: usize = 3;
const WHY: &str = "the paper's load is an Oracle trace whose skew is more than one number; a block load with the \
                   skew that it cites gains less from groups (figure 5)";
const UNIFORM_WHY: &str = "under uniform writes no policy copies less than greedy, and LFS-CB copies as little \
                           (sfs-policies): the paper's LFS-CB must have copied more";
const GROWS: &str = "SFS copies less than LFS-CB already at 50 %, and the gap grows in blocks but not as a ratio";

fn why(load: usize) -> &'static str {
    if load == UNIFORM { UNIFORM_WHY } else { WHY }
}

/// A panel for each load, with SFS and LFS-CB for each utilization.
fn panels(
    of: Reading,
    utilizations: &[f64],
    measured: &[Measured],
    value: impl Fn(&Measured) -> Option<f64>,
) -> Vec<Panel> {
    let series = SYSTEMS.map(String::from).to_vec();
    let loads = loads::all();
    let panels = loads.iter().zip(measured.chunks(2 * utilizations.len())).map(|(load, runs)| {
        let groups = utilizations
            .iter()
            .zip(runs.chunks(2))
            .map(|(utilization, pair)| (percent(*utilization), pair.iter().map(&value).collect()));
        panel(&format!("{}, {}", load.name(), of.name()), series.clone(), groups.collect())
    });
    panels.collect()
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// SFS over LFS-CB at the highest utilization.
fn over(panel: &Panel) -> Option<f64> {
    let (_, values) = panel.groups.last()?;
    Some(values[0]? / values[1]?)
}

fn points_of(points: &Points, of: Reading, utilizations: &[f64], device: Option<&Device>) -> Vec<Point> {
    let lab = points.lab;
    let mut wanted = Vec::new();
    for load in loads::all() {
        for utilization in utilizations {
            for options in [SFS, LFS_CB] {
                let mut point = Point::new(lab, load.clone(), options, of.at(*utilization));
                if let Some(device) = device {
                    let share = point.device_bytes as f64 / super::volume::DEVICE as f64;
                    // The paper's five and thirty seconds, scaled as the device.
                    let milliseconds = |seconds: f64| (seconds * 1000.0 * share).max(10.0);
                    point.options =
                        format!("{options},flush={:.0}ms,checkpoint={:.0}ms", milliseconds(5.0), milliseconds(30.0));
                    point.times = device.times();
                }
                wanted.push(point);
            }
        }
    }
    wanted
}

/// Figure 8.
pub fn write_cost(points: &mut Points) -> Result<Figure, ReproduceError> {
    let (mut all, mut claims): (Vec<Panel>, Vec<Claim>) = Default::default();
    for of in READINGS {
        let measured = points.measure(&points_of(points, of, &UTILIZATIONS, None))?;
        let cost = |measured: &Measured| Some(M.write_cost(measured));
        let panels = panels(of, &UTILIZATIONS, &measured, cost);
        for (place, less) in [(TPCC, 0.774), (UNIFORM, 0.279)] {
            let panel = &panels[place];
            claims.push(exactly(
                format!("{}: write cost of SFS over LFS-CB at 90 %", panel.title),
                "4.3.1",
                1.0 - less,
                over(panel).unwrap_or(f64::NAN),
                why(place),
            ));
        }
        for panel in &panels {
            let more = |group: &(String, Vec<Option<f64>>)| Some(group.1[1]? / group.1[0]?);
            let grows = panel.groups.last().and_then(more).zip(panel.groups.first().and_then(more));
            claims.push(claim(
                format!("{}: write cost of LFS-CB over SFS at 90 %, over the same at 50 %", panel.title),
                "4.3.1: the gap grows with utilization",
                Some(1.0),
                None,
                grows.map(|(last, first)| last / first),
                GROWS,
            ));
        }
        let shares: Vec<f64> = measured.iter().map(Measured::metadata_over_data).collect();
        for (which, ours) in [
            ("least", shares.iter().copied().fold(f64::INFINITY, f64::min)),
            ("most", shares.iter().copied().fold(0.0, f64::max)),
        ] {
            claims.push(claim(
                format!("{}: metadata written over data written, in the run with {which}", of.name()),
                "4.1: 5 to 10 %",
                Some(0.05),
                Some(0.10),
                Some(ours),
                METADATA,
            ));
        }
        all.extend(panels);
    }
    Ok(Figure {
        name: "sfs-fig8".to_string(),
        title: "SFS figure 8: write cost by utilization".to_string(),
        unit: "write cost on SSD-M".to_string(),
        about: "Wc = 1 + g (1 + sequential write / random read), section 4.1's cost with g the blocks copied for each new one.".to_string(),
        panels: all,
        claims,
        made_by: None,
    }
    .over("utilization"))
}

const METADATA: &str = "most of it are DAT pages of 128 entries: the number that a checkpoint writes depends on the \
                        working set, which the paper does not give";

/// Figure 9.
pub fn throughput(points: &mut Points) -> Result<Figure, ReproduceError> {
    let (mut all, mut claims): (Vec<Panel>, Vec<Claim>) = Default::default();
    for of in READINGS {
        let measured = points.measure(&points_of(points, of, &TIMED, Some(M)))?;
        let panels = panels(of, &TIMED, &measured, |measured| measured.mib_s);
        for (place, more) in [(TPCC, 2.519), (UNIFORM, 1.185)] {
            let panel = &panels[place];
            claims.push(exactly(
                format!("{}: throughput of SFS over LFS-CB at 90 %", panel.title),
                "4.3.1",
                more,
                over(panel).unwrap_or(f64::NAN),
                why(place),
            ));
        }
        all.extend(panels);
    }
    Ok(Figure {
        name: "sfs-fig9".to_string(),
        title: "SFS figure 9: throughput by utilization on SSD-M".to_string(),
        unit: "MiB/s in simulated time".to_string(),
        about: format!(
            "Simulated, not derived: the device is `conv` with `{}`, one request at a time, and hotness on its clock.",
            M.times()
        ),
        panels: all,
        claims,
        made_by: None,
    }
    .over("utilization"))
}

/// Figure 11.
pub fn devices(points: &mut Points) -> Result<Figure, ReproduceError> {
    const UTILIZATION: f64 = 0.7;
    let mut speeds = Vec::new();
    for device in &DEVICES {
        let all = points_of(points, Reading::Volume, &[UTILIZATION], Some(device));
        let sfs: Vec<Point> = all.into_iter().step_by(2).collect();
        speeds.push(points.measure(&sfs)?.into_iter().map(|one| one.mib_s).collect::<Vec<_>>());
    }
    let loads = loads::all();
    let groups = loads
        .iter()
        .enumerate()
        .map(|(place, load)| (load.name().to_string(), speeds.iter().map(|device| device[place]).collect::<Vec<_>>()));
    let full = Reading::Volume.at(UTILIZATION);
    let panel = panel(&full.about(), DEVICES.iter().map(|device| device.name.to_string()).collect(), groups.collect());
    let ratio = |of: usize, over: usize| {
        let sum = |device: usize| panel.groups.iter().filter_map(|(_, values)| values[device]).sum::<f64>();
        sum(of) / sum(over)
    };
    let because = "cleaning reads take part of the time, and the devices differ less in reads than in writes";
    let claims = vec![
        exactly(
            "all loads: throughput of H over M, beside the ratio of their sequential writes".into(),
            "4.3.3, derived from Table 1",
            170.0 / 87.0,
            ratio(0, 1),
            because,
        ),
        exactly(
            "all loads: throughput of M over L, beside the ratio of their sequential writes".into(),
            "4.3.3, derived from Table 1",
            87.0 / 38.0,
            ratio(1, 2),
            because,
        ),
    ];
    Ok(Figure {
        name: "sfs-fig11".to_string(),
        title: "SFS figure 11: throughput on three devices".to_string(),
        unit: "MiB/s in simulated time".to_string(),
        about: "SFS on `conv` with each device's times.".to_string(),
        panels: vec![panel],
        claims,
        made_by: None,
    })
}
