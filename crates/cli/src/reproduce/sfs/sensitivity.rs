//! What the paper does not give: the exponent of Zipf, and the share of the device that is written. Where its numbers fall.

use super::devices::M;
use super::loads::zipf;
use super::volume::{LFS_CB, Point, Points, SFS};
use super::{claim, panel};
use crate::failure::Failure;
use flashpath::report::figure::Figure;

const EXPONENTS: [f64; 3] = [0.8, 1.0, 1.2];
/// Of the device.
const SETS: [f64; 4] = [0.0625, 0.125, 0.25, 0.5];
const UTILIZATION: f64 = 0.85;
const SERIES: [(&str, &str); 3] = [
    ("SFS", SFS),
    ("four groups, cost-benefit", "groups=4,quantizer=iterative,cleaner=cost-benefit"),
    ("one group, cost-benefit", LFS_CB),
];

pub fn figure(points: &mut Points) -> Result<Figure, Failure> {
    let lab = points.lab;
    let mut panels = Vec::new();
    let mut ends = [(f64::INFINITY, 0.0f64); SERIES.len()];
    for exponent in EXPONENTS {
        let asked = SETS.iter().flat_map(|set| {
            SERIES.map(|(_, options)| {
                let mut point = Point::new(lab, zipf(exponent), options, UTILIZATION);
                point.file_bytes = (point.device_bytes as f64 * set) as u64 & !4095;
                point
            })
        });
        let measured = points.measure(&asked.collect::<Vec<_>>())?;
        let costs: Vec<f64> =
            measured.iter().map(|one| one.write_cost(M.sequential_write(), M.random_read())).collect();
        for row in costs.chunks(SERIES.len()) {
            for (end, cost) in ends.iter_mut().zip(row) {
                *end = (end.0.min(*cost), end.1.max(*cost));
            }
        }
        let groups = SETS.iter().zip(costs.chunks(SERIES.len())).map(|(set, costs)| {
            (format!("{:.1} %", set * 100.0), costs.iter().map(|cost| Some(*cost)).collect::<Vec<_>>())
        });
        panels.push(panel(
            &format!("theta={exponent}"),
            SERIES.map(|(name, _)| name.to_string()).to_vec(),
            groups.collect(),
        ));
    }
    let says = |low: f64, high: f64, paper: f64| {
        // How often the paper's point goes into the range from low to high: 1 is inside.
        if paper < low {
            low / paper
        } else if paper > high {
            high / paper
        } else {
            1.0
        }
    };
    let claims =
        [("one group, Zipf: 6.96", 2, 6.96), ("four groups, Zipf: 4.21", 0, 4.21)].map(|(name, series, paper)| {
            let (low, high) = ends[series];
            claim(
                format!("{name}: our nearest end of the range {low:.2} to {high:.2} over it (1: inside)"),
                "4.2",
                Some(1.0),
                Some(1.0),
                Some(says(low, high, paper)),
                "no exponent and no working set of these gives the paper's point",
            )
        });
    Ok(Figure {
        name: "sfs-sensitivity".to_string(),
        title: "SFS: what the paper does not give".to_string(),
        unit: "write cost on SSD-M".to_string(),
        about: "Zipf at 85 % utilization: exponents from 0.8 to 1.2, and files of a sixteenth to a half of the device."
            .to_string(),
        panels,
        claims: claims.to_vec(),
    })
}
