//! The hotness (figure 4) and utilization (figure 10) of segments.

use super::loads::{self, Load, tpcc};
use super::volume::{LFS_CB, Measured, Point, Points, READINGS, Reading, SFS};
use super::{claim, exactly, panel};
use crate::ReproduceError;
use flashpath::fs::sfs::Census;
use flashpath::fs::sfs::placement::hotness;
use flashpath::report::figure::{Claim, Figure, Panel};

const UTILIZATION: f64 = 0.7;

fn shares(counts: &[u32]) -> Vec<f64> {
    let all = counts.iter().sum::<u32>().max(1);
    counts.iter().map(|count| f64::from(*count) / f64::from(all)).collect()
}

/// The number of segments in each tenth of the range of hotness, and the hottest segment's hotness.
fn by_hotness(census: &Census) -> ([u32; 10], f64) {
    let all: Vec<f64> = census.segments.iter().map(|segment| hotness::of_segment(segment, census.tick)).collect();
    let hottest = all.iter().copied().fold(0.0, f64::max);
    let mut bins = [0; 10];
    for value in all {
        bins[((value / hottest.max(f64::MIN_POSITIVE) * 10.0) as usize).min(9)] += 1;
    }
    (bins, hottest)
}

/// Figure 4.
pub fn hot(points: &mut Points) -> Result<Figure, ReproduceError> {
    let point = Point::new(points.lab, tpcc(), SFS, Reading::Volume.at(UTILIZATION));
    let measured = points.measure(&[point])?.remove(0);
    let census = measured.census.ok_or_else(|| ReproduceError::failed("a volume returned no segments"))?;
    let (bins, hottest) = by_hotness(&census);
    let shares = shares(&bins);
    let groups =
        shares.iter().enumerate().map(|(tenth, share)| (format!("to {} %", (tenth + 1) * 10), vec![Some(*share)]));
    let centres = census
        .centres
        .iter()
        .enumerate()
        .map(|(group, centre)| (format!("group {group}"), vec![Some(centre / hottest)]));
    Ok(Figure {
        name: "sfs-fig4".to_string(),
        title: "SFS figure 4: hotness of segments".to_string(),
        unit: "share".to_string(),
        about: "After the TPC-C-like load at 70 % of the volume, without the cold file's segments: the share of \
                segments in each tenth of the range of hotness, and the positions of the four groups' centres in it."
            .to_string(),
        panels: vec![
            Panel {
                unit: Some("share of segments".to_string()),
                axis: Some("hotness over the hottest segment's".to_string()),
                ..panel("segments by hotness over the hottest", vec!["segments".to_string()], groups.collect())
            },
            Panel {
                unit: Some("hotness over the hottest segment's".to_string()),
                ..panel("centres over the hottest", vec!["centre".to_string()], centres.collect())
            },
        ],
        claims: vec![claim(
            "share of segments in the coldest tenth of the range".into(),
            "3.4: most segments are not hot",
            Some(0.5),
            None,
            shares.first().copied(),
            "the hottest segments are only slightly hotter than the others",
        )],
        made_by: None,
    })
}

/// The number of segments in each tenth of utilization.
fn by_utilization(census: &Census) -> Vec<f64> {
    let mut bins = [0; 10];
    for segment in &census.segments {
        bins[((segment.live * 10 / segment.capacity.max(1)) as usize).min(9)] += 1;
    }
    shares(&bins)
}

/// The depth of the deepest valley between two peaks, as a share of the segments: that of a distribution of one mode is 0.
fn valley(shares: &[f64]) -> f64 {
    let highest = |shares: &[f64]| shares.iter().copied().fold(0.0, f64::max);
    let depths = (0..shares.len()).map(|at| {
        let (before, after) = (highest(&shares[..at]), highest(&shares[at..]));
        before.min(after) - shares[at]
    });
    depths.fold(0.0, f64::max)
}

/// The least valley of a bimodal distribution.
const VALLEY: f64 = 0.05;
const ONE_MODE: &str = "most segments are nearly empty, and few are nearly full, since all blocks of these loads are \
                        written again; at 70 % of the device next to nothing is cleaned in the paper's amounts";

/// The claims of figure 10 for SFS and LFS-CB under one load.
fn modes(load: &Load, title: &str, shares: &[Vec<f64>], pair: &[Measured]) -> Vec<Claim> {
    let [sfs, _] = shares else { return Vec::new() };
    let is_uniform = load.name() == loads::uniform().name();
    let bounds = if is_uniform { (None, Some(VALLEY)) } else { (Some(VALLEY), None) };
    let mut claims = vec![claim(
        format!("{title}: depth of the valley between two modes of SFS, as a share of the segments"),
        "4.3.2: bimodal under SFS in all but uniform; a twentieth counts as two modes",
        bounds.0,
        bounds.1,
        Some(valley(sfs)),
        ONE_MODE,
    )];
    let utilizations = pair[0].victim_utilization().zip(pair[1].victim_utilization());
    if let Some((of_sfs, of_lfs)) = utilizations.filter(|_| load.name() == loads::zipf(1.0).name()) {
        let place = "4.3.2, figure 10a, taken as Zipf";
        claims.extend([
            exactly(format!("{title}: mean utilization of the victims of SFS"), place, 0.1, of_sfs, VICTIMS),
            exactly(format!("{title}: mean utilization of the victims of LFS-CB"), place, 0.3, of_lfs, VICTIMS),
            exactly(
                format!("{title}: victims of SFS over those of LFS-CB"),
                "4.3.2: a third",
                1.0 / 3.0,
                of_sfs / of_lfs,
                VICTIMS,
            ),
        ]);
    }
    claims
}

const VICTIMS: &str = "the paper gives neither the working set nor the exponent, and the victims' utilization depends on \
                       the share of dead blocks among all segments first";

/// Figure 10.
pub fn full(points: &mut Points) -> Result<Figure, ReproduceError> {
    let loads = loads::all();
    let lab = points.lab;
    let (mut panels, mut claims) = (Vec::new(), Vec::new());
    for of in READINGS {
        let full = of.at(UTILIZATION);
        let wanted: Vec<Point> = loads
            .iter()
            .flat_map(|load| [SFS, LFS_CB].map(|options| Point::new(lab, load.clone(), options, full)))
            .collect();
        let measured = points.measure(&wanted)?;
        for (load, pair) in loads.iter().zip(measured.chunks(2)) {
            let title = format!("{}, {}", load.name(), full.about());
            let shares: Vec<Vec<f64>> = pair.iter().filter_map(|one| one.census.as_ref()).map(by_utilization).collect();
            let groups = (0..10).map(|tenth| {
                (format!("to {} %", (tenth + 1) * 10), shares.iter().map(|shares| Some(shares[tenth])).collect())
            });
            panels.push(panel(&title, ["SFS", "LFS-CB"].map(String::from).to_vec(), groups.collect()));
            claims.extend(modes(load, &title, &shares, pair));
        }
    }
    Ok(Figure {
        name: "sfs-fig10".to_string(),
        title: "SFS figure 10: utilization of segments".to_string(),
        unit: "share of segments".to_string(),
        about: "At the end of the run, without the cold file's segments and empty ones.".to_string(),
        panels,
        claims,
        made_by: None,
    }
    .over("utilization of the segment"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_valley_needs_a_peak_on_both_sides() {
        for (shares, depth) in [
            (vec![0.1; 10], 0.0),
            (vec![0.0, 0.1, 0.4, 0.4, 0.1, 0.0], 0.0),
            (vec![0.5, 0.3, 0.1, 0.1], 0.0),
            (vec![0.3, 0.1, 0.0, 0.2, 0.4], 0.3),
            (vec![0.1, 0.0, 0.9], 0.1),
        ] {
            assert!((valley(&shares) - depth).abs() < 1e-9, "{shares:?}: {}", valley(&shares));
        }
    }
}
