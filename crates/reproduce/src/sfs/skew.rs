//! The skew of the loads (figure 2): the cumulative frequency of their writes.

use super::loads::{self, Load};
use super::policies::recorded;
use super::volume::{Points, WORKING_SET, small_device_bytes};
use super::{claim, panel};
use crate::ReproduceError;
use crate::recording::Compact;
use flashpath::report::figure::{Claim, Figure};
use flashpath::units::format_size;
use flashpath::workload::{Action, Workload};

const BLOCK: u64 = 4096;
/// Writes for each block of a generated load: enough that a block's own share shows.
const WRITES: u64 = 32;
/// The shares of the blocks, the most written first, that are shown.
const TOP: [f64; 8] = [0.01, 0.016, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8];
/// The places of the shares that the paper names.
const TPCC_PAGES: usize = 1;
const DESKTOP_BLOCKS: usize = 4;
const GENERATED: &str = "the load is generated with this skew";
const RECORDED: &str = "another database, and another size of its memory, in which pages that are written often wait";

/// The shares of the writes that go to the most written blocks of a file, for each share in [`TOP`].
fn cumulative(workload: &mut dyn Workload, blocks: u64) -> Result<Vec<f64>, ReproduceError> {
    let mut counts = vec![0_u64; blocks as usize];
    let mut batch = Vec::new();
    while workload.next_batch(&mut batch, 1024)? > 0 {
        for operation in batch.drain(..).filter(|operation| operation.action == Action::Write) {
            let written = operation.offset_bytes / BLOCK..operation.end_bytes().div_ceil(BLOCK);
            written.for_each(|block| counts[block as usize] += 1);
        }
    }
    counts.sort_unstable_by(|one, other| other.cmp(one));
    let all = counts.iter().sum::<u64>().max(1) as f64;
    let of_top = |share: &f64| {
        let top = (blocks as f64 * share).round() as usize;
        counts[..top.min(counts.len())].iter().sum::<u64>() as f64 / all
    };
    Ok(TOP.iter().map(of_top).collect())
}

/// Figure 2.
pub fn figure(points: &Points) -> Result<Figure, ReproduceError> {
    let lab = points.lab;
    let bytes = lab.scaled(WORKING_SET, small_device_bytes(lab) / 16);
    let (mut names, mut columns, mut claims): (Vec<String>, Vec<Vec<f64>>, Vec<Claim>) = Default::default();
    for load in loads::all().into_iter().chain(recorded(lab)?) {
        let shares = match &load {
            Load::Made(_, expression) => {
                let expression = format!("{expression},writes={}", format_size(WRITES * bytes));
                cumulative(&mut *lab.generator(&expression, bytes)?, bytes / BLOCK)?
            }
            Load::Recorded(_, recording) => {
                // Each request once.
                let written = recording.written_bytes();
                cumulative(&mut Compact::open(recording, written, false)?, recording.bytes() / BLOCK)?
            }
        };
        let because = if matches!(load, Load::Made(..)) { GENERATED } else { RECORDED };
        if load.name().starts_with("TPC-C") {
            claims.push(claim(
                format!("{}: share of the writes that go to 1.6 % of the blocks", load.name()),
                "2.3, cited of TPC-C",
                Some(0.29),
                Some(0.29),
                Some(shares[TPCC_PAGES]),
                because,
            ));
        }
        if load.name() == loads::desktop().name() {
            claims.push(claim(
                format!("{}: share of the writes that go to the top 20 % of the blocks", load.name()),
                "2.3, cited of desktops and servers: 45 to 66 %",
                Some(0.45),
                Some(0.66),
                Some(shares[DESKTOP_BLOCKS]),
                because,
            ));
        }
        names.push(load.name().to_string());
        columns.push(shares);
    }
    let groups = TOP.iter().enumerate().map(|(at, share)| {
        (format!("{} %", share * 100.0), columns.iter().map(|shares| Some(shares[at])).collect::<Vec<_>>())
    });
    Ok(Figure {
        name: "sfs-fig2".to_string(),
        title: "SFS figure 2: cumulative write frequency".to_string(),
        unit: "share of the writes".to_string(),
        about: format!(
            "The most written blocks first; {WRITES} writes for each block of a generated load, each request of a recorded one once."
        ),
        panels: vec![panel("", names, groups.collect())],
        claims,
        made_by: None,
    }
    .over("share of the blocks"))
}
