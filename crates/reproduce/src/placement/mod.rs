//! A bench of placement, of no paper: every grouping of sfs with every cleaner, on recorded and generated loads, at four
//! utilizations, without syncs and with many.
//!
//! | file | role |
//! |---|---|
//! | `mod` | the loads, the policies, and the figures' conditions |
//! | `runs` | the runs, beside each other, with a journal of those that are done |
//! | `figures` | means, values by load, winners, and what our policy promises |

mod figures;
mod runs;

use crate::ReproduceError;
use crate::lab::Lab;
use crate::recording::Recording;
use figures::Measured;
use flashpath::report::figure::Reproduction;
use flashpath::units::{format_size, human_size};
use std::sync::Arc;

/// The figures.
pub const FIGURES: &[&str] = &["placement-means", "placement-loads", "placement-winners", "placement-all"];

const GROUPINGS: [&str; 7] = ["none", "sfs", "sepbit", "dac", "midas", "lifetime", "oracle"];
const CLEANERS: [&str; 5] = ["greedy", "cost-benefit", "cost-hotness", "cost-lifetime", "fifo"];
/// Live shares of the volume.
const FULL: [f64; 4] = [0.7, 0.8, 0.9, 0.95];

/// The generated loads: a name and an expression.
const GENERATED: [(&str, &str); 7] = [
    ("uniform", "uniform:request=4K"),
    ("Zipf 0.8", "zipf:theta=0.8"),
    ("Zipf 1.0", "zipf:theta=1.0"),
    ("Zipf 1.2", "zipf:theta=1.2"),
    ("10 % get 90 %", "hotcold:r=10%,f=90%,scatter=on"),
    ("TPC-C-like", "hotcold:r=1.6%,f=29%,scatter=on"),
    ("desktop-like", "hotcold:r=20%,f=55%,scatter=on"),
];
/// Recorded loads: names and files in the folder of `--traces`.
const RECORDED: [(&str, &str); 3] = [
    ("MariaDB", "mariadb_tpcc_ext4.csv.zst"),
    ("varmail", "fb_varmail_ext4.csv.zst"),
    ("a virtual machine", "cloudphysics_w106.vscsi.zst"),
];

/// The file of generated loads at full scale.
const FILE: u64 = 1 << 30;
/// At full scale whole traces are replayed; at a smaller one a part of their extents, but not less than a sixteenth.
const TRACE_PARTS: f64 = 0.25;
const MOST_PARTS: u64 = 16;

/// The syncs of the file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Syncs {
    Never,
    /// After so many writes.
    Every(u64),
    /// As in the trace: where it has flushes.
    Recorded,
}

const SYNCS: [Syncs; 6] =
    [Syncs::Never, Syncs::Every(1024), Syncs::Every(64), Syncs::Every(8), Syncs::Every(1), Syncs::Recorded];

impl Syncs {
    fn name(self) -> String {
        match self {
            Syncs::Never => "no sync".to_string(),
            Syncs::Every(1) => "a sync after each write".to_string(),
            Syncs::Every(writes) => format!("a sync every {writes} writes"),
            Syncs::Recorded => "syncs as recorded".to_string(),
        }
    }
}

/// The writes of a load.
enum Writes {
    /// By the expression of a generator.
    Generated(&'static str),
    Recorded(Arc<Recording>),
}

/// A load in a file.
pub struct Load {
    name: &'static str,
    writes: Writes,
}

/// Reads the recorded loads, and lists the generated ones.
fn loads(lab: &Lab) -> Result<Vec<Load>, ReproduceError> {
    let mut loads: Vec<Load> =
        GENERATED.into_iter().map(|(name, expression)| Load { name, writes: Writes::Generated(expression) }).collect();
    let parts = trace_parts(lab);
    for (name, file) in RECORDED {
        match lab.kept(file) {
            Some(file) => {
                let recording = Arc::new(Recording::sample(&file, parts)?);
                loads.push(Load { name, writes: Writes::Recorded(recording) });
            }
            None => lab.progress(&format!("no trace {file}: the bench is made without it")),
        }
    }
    Ok(loads)
}

/// One in so many extents of the traces is replayed.
fn trace_parts(lab: &Lab) -> u64 {
    ((TRACE_PARTS / lab.scale).round() as u64).clamp(1, MOST_PARTS)
}

/// Makes the figures.
pub fn reproduce(lab: &Lab, figures: &[&'static str]) -> Result<Reproduction, ReproduceError> {
    let loads = loads(lab)?;
    let measured = Measured { loads: &loads, values: runs::measure(lab, &loads)? };
    let made = figures.iter().map(|figure| match *figure {
        "placement-means" => measured.means(),
        "placement-loads" => measured.by_load(),
        "placement-winners" => measured.winners(),
        "placement-all" => measured.all(),
        name => unreachable!("{name} is not in FIGURES"),
    });
    Ok(Reproduction {
        paper: "placement".to_string(),
        title: "Placement in sfs: groupings and cleaners".to_string(),
        command: "flashpath reproduce placement".to_string(),
        scale: lab.scale,
        seed: lab.seed,
        conditions: conditions(lab, &loads),
        figures: made.collect(),
    })
}

fn conditions(lab: &Lab, loads: &[Load]) -> Vec<(String, String)> {
    let condition = |name: &str, value: String| (name.to_string(), value);
    let about = |load: &Load| match &load.writes {
        Writes::Generated(expression) => format!("{}: `{expression}`", load.name),
        Writes::Recorded(recording) => format!(
            "{}: {}, a file of {}",
            load.name,
            recording.trace.file_name().unwrap_or_default().to_string_lossy(),
            human_size(recording.bytes() as f64)
        ),
    };
    vec![
        condition(
            "volume",
            format!(
                "sfs in {} segments, or fewer of {}, on `conv` without times, of {} times the file; a cold file holds the rest of \
                 the live data",
                runs::SEGMENTS,
                format_size(runs::LEAST_SEGMENT),
                runs::DEVICE
            ),
        ),
        condition("loads", loads.iter().map(about).collect::<Vec<_>>().join("; ")),
        condition(
            "amounts",
            format!(
                "generated loads in a file of {}; of the traces, one in {} extents, repeated. The file is written once in \
                 order, then {} times its size by the load, then {} times counted",
                human_size(runs::generated_bytes(lab) as f64),
                trace_parts(lab),
                runs::AGING,
                runs::COUNTED
            ),
        ),
        condition(
            "the bound",
            "`oracle` knows when each block will be overwritten: nothing that looks back can. Where blocks die at random, \
             as in all generated loads, no policy can come near to it"
                .to_string(),
        ),
    ]
}
