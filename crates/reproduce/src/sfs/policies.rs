//! Every cleaner with every grouping, on the paper's loads and on recorded ones.

use super::loads::{self, Load};
use super::volume::{Full, Point, Points, Reading, SEGMENTS, small_device_bytes};
use super::{claim, panel};
use crate::ReproduceError;
use crate::lab::Lab;
use crate::recording::Recording;
use flashpath::report::figure::Figure;
use std::sync::Arc;

const CLEANERS: [&str; 3] = ["greedy", "cost-benefit", "cost-hotness"];
const GROUPINGS: [&str; 4] = ["none", "sfs", "sepbit", "dac"];
const FULL: [Full; 3] = [Reading::Volume.at(0.8), Reading::Volume.at(0.9), Reading::Device.at(0.9)];
/// Recorded loads: names and files in the folder of --traces.
const RECORDED: [(&str, &str); 2] =
    [("varmail on ext4", "fb_varmail_ext4.csv.zst"), ("TPC-C on ext4", "mariadb_tpcc_ext4.csv.zst")];
/// The size of the device over the written file. For generated loads, the device is a quarter of the other figures', as
/// there are many runs.
const DEVICE: u64 = 4;
/// The multiples of the file written before counting and counted: the free space, four to eight tenths of the file, is
/// used up several times.
const AGING: u64 = 3;
const MEASURED: u64 = 2;

/// The recorded loads whose traces are there.
pub fn recorded(lab: &Lab) -> Result<Vec<Load>, ReproduceError> {
    let mut loads = Vec::new();
    for (name, file) in RECORDED {
        match lab.kept(file) {
            Some(file) => loads.push(Load::Recorded(name, Arc::new(Recording::read(&file)?))),
            None => lab.progress(&format!("no trace {file}: the figure is made without it")),
        }
    }
    Ok(loads)
}

pub fn figure(points: &mut Points) -> Result<Figure, ReproduceError> {
    let mut loads = loads::all();
    loads.extend(recorded(points.lab)?);
    let (mut panels, mut claims) = (Vec::new(), Vec::new());
    for full in FULL {
        for load in &loads {
            let mut wanted = Vec::new();
            for cleaner in CLEANERS {
                for grouping in GROUPINGS {
                    // SepBIT and DAC measure lifetimes between writes of the host.
                    let hotness = if matches!(grouping, "sepbit" | "dac") { ",hotness=host" } else { "" };
                    let options = format!("preset=paper,grouping={grouping},cleaner={cleaner}{hotness}");
                    let mut point = Point::new(points.lab, load.clone(), &options, full);
                    // The unit of sizes: segments are whole blocks.
                    let step = SEGMENTS * 4096;
                    let file = match load {
                        Load::Made(..) => small_device_bytes(points.lab) / DEVICE,
                        Load::Recorded(_, recording) => recording.bytes(),
                    };
                    point.file_bytes = file;
                    point.device_bytes = (DEVICE * file).div_ceil(step).max(64) * step;
                    (point.aging, point.measured) = (AGING * file, MEASURED * file);
                    wanted.push(point);
                }
            }
            let amplification: Vec<f64> = points.measure(&wanted)?.iter().map(|one| 1.0 + one.copies()).collect();
            let groups = CLEANERS.iter().zip(amplification.chunks(GROUPINGS.len())).map(|(cleaner, values)| {
                (cleaner.to_string(), values.iter().map(|value| Some(*value)).collect::<Vec<_>>())
            });
            let title = format!("{} at {}", load.name(), full.about());
            panels.push(panel(&title, GROUPINGS.map(String::from).to_vec(), groups.collect()));
            let name =
                |at: usize| format!("{} with {}", CLEANERS[at / GROUPINGS.len()], GROUPINGS[at % GROUPINGS.len()]);
            let at = |cleaner: usize, grouping: usize| amplification[cleaner * GROUPINGS.len() + grouping];
            let best =
                (0..amplification.len()).min_by(|a, b| amplification[*a].total_cmp(&amplification[*b])).unwrap_or(0);
            let (sfs, lfs) = (at(2, 1), at(1, 0));
            claims.push(claim(
                format!("{title}: SFS over LFS-CB"),
                "4.3.1: SFS is never above",
                None,
                Some(1.0),
                Some(sfs / lfs),
                "cost-hotness cleans cold segments too early",
            ));
            claims.push(claim(
                format!("{title}: SFS over the best, {}", name(best)),
                "ours, not the paper's: at 1, SFS is best",
                Some(1.0),
                Some(1.0),
                Some(sfs / amplification[best]),
                "another policy copies less",
            ));
        }
    }
    Ok(Figure {
        name: "sfs-policies".to_string(),
        title: "SFS: grouping and cleaning policies".to_string(),
        unit: "blocks of files written over new ones".to_string(),
        about: format!(
            "Write amplification of the file system on a device of {DEVICE} times the written file; a cold file \
             fills the volume up to the utilization. A recorded load's writes go to a file of the blocks that it \
             touches: {AGING} times its size before counting, and {MEASURED} times counted.",
        ),
        panels,
        claims,
        made_by: None,
    })
}
