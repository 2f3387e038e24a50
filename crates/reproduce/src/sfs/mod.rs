//! Min, Kim, Cho, Lee and Eom's "SFS: Random Write Considered Harmful in Solid State Drives" (FAST 2012).
//!
//! | file | role |
//! |---|---|
//! | `loads` | the loads |
//! | `volume` | runs in a file on an sfs volume, each made once |
//! | `skew` | the skew of the loads (figure 2) |
//! | `devices` | Table 1 as times of `conv`; figure 1 |
//! | `segments` | the hotness (figure 4) and utilization (figure 10) of segments |
//! | `techniques` | the effect of each technique: figures 5 to 7 |
//! | `cost` | SFS beside LFS-CB: figures 8, 9 and 11 |
//! | `kernels` | beside the kernel's file systems, on drives: figures 12 to 14 (needs root) |
//! | `recorded` | figures 5, 6 and 8 with recorded calls of real programs |
//! | `policies`, `sensitivity` | beyond the paper: all policies on all loads; parameters that the paper omits |

mod cost;
mod devices;
mod kernels;
mod loads;
mod policies;
mod recorded;
mod segments;
mod sensitivity;
mod skew;
mod techniques;
mod volume;

use super::lab::Lab;
use crate::ReproduceError;
use flashpath::report::figure::{Claim, Panel, Reproduction};
use flashpath::run::Path;
use flashpath::units::human_size;
use volume::{Points, Reading};

/// The figures.
pub const FIGURES: &[&str] = &[
    "sfs-table1",
    "sfs-fig1",
    "sfs-fig2",
    "sfs-fig4",
    "sfs-fig5",
    recorded::GROUPS,
    "sfs-fig6",
    recorded::QUANTIZERS,
    "sfs-fig7",
    "sfs-fig8",
    recorded::COST,
    "sfs-fig9",
    "sfs-fig10",
    "sfs-fig11",
    "sfs-fig12",
    "sfs-fig13",
    "sfs-fig14",
    "sfs-sensitivity",
    "sfs-policies",
];

/// Makes the figures.
pub fn reproduce(lab: &Lab, figures: &[&'static str]) -> Result<Reproduction, ReproduceError> {
    let mut points = Points::new(lab);
    // Figures 12 to 14 show the same runs.
    let mut drives = None;
    // The recordings are read once.
    let mut recordings = None;
    let mut made = Vec::new();
    for figure in figures {
        made.push(match *figure {
            "sfs-table1" => devices::table(lab)?,
            "sfs-fig1" => devices::request_sizes(&points)?,
            "sfs-fig2" => skew::figure(&points)?,
            "sfs-fig4" => segments::hot(&mut points)?,
            "sfs-fig5" => techniques::groups(&mut points)?,
            "sfs-fig6" => techniques::quantizers(&mut points)?,
            "sfs-fig7" => techniques::cleaners(&mut points)?,
            "sfs-fig8" => cost::write_cost(&mut points)?,
            "sfs-fig9" => cost::throughput(&mut points)?,
            "sfs-fig10" => segments::full(&mut points)?,
            "sfs-fig11" => cost::devices(&mut points)?,
            "sfs-sensitivity" => sensitivity::figure(&mut points)?,
            "sfs-policies" => policies::figure(&mut points)?,
            name @ (recorded::GROUPS | recorded::QUANTIZERS | recorded::COST) => {
                let recordings = match &mut recordings {
                    Some(recordings) => recordings,
                    none => none.insert(recorded::Recorded::new(lab)?),
                };
                match name {
                    recorded::GROUPS => recorded::groups(recordings)?,
                    recorded::QUANTIZERS => recorded::quantizers(recordings)?,
                    _ => recorded::write_cost(recordings)?,
                }
            }
            number => {
                let drives = match &mut drives {
                    Some(drives) => drives,
                    none => none.insert(kernels::Drives::run(lab)?),
                };
                match number {
                    "sfs-fig12" => drives.throughput(lab),
                    "sfs-fig13" => drives.amplification(),
                    "sfs-fig14" => drives.erases(),
                    name => unreachable!("{name} is not in FIGURES"),
                }
            }
        });
    }
    let mut conditions = conditions(lab);
    if let Some(drives) = &drives {
        conditions.extend(drives.conditions(lab));
    }
    Ok(Reproduction {
        paper: "sfs".to_string(),
        title: "Min et al.: SFS, random write considered harmful in SSDs".to_string(),
        command: "flashpath reproduce sfs".to_string(),
        scale: lab.scale,
        seed: lab.seed,
        conditions,
        figures: made,
    })
}

fn condition(name: &str, value: String) -> (String, String) {
    (name.to_string(), value)
}

fn conditions(lab: &Lab) -> Vec<(String, String)> {
    let device = volume::device_bytes(lab);
    let share = device as f64 / volume::DEVICE as f64;
    let size = |bytes: u64| human_size(bytes as f64 * share);
    let amounts = |reading: Reading| {
        let (aging, measured) = reading.amounts();
        format!("{} of the load before counting, {} counted", size(aging), size(measured))
    };
    let loads: Vec<String> = loads::all().iter().map(loads::Load::about).collect();
    vec![
        condition(
            "volume",
            format!(
                "sfs on a device of {} in {} segments, in a file of {}, written once in order; a cold file holds \
                 the rest of the live data",
                size(volume::DEVICE),
                volume::SEGMENTS,
                size(volume::WORKING_SET),
            ),
        ),
        condition(
            "utilization",
            format!(
                "{}: the live share of the space for files, as in `df`; {}. {}: the live share of the whole device, \
                 with metadata and the cleaner's reserve; {}",
                Reading::Volume.name(),
                amounts(Reading::Volume),
                Reading::Device.name(),
                amounts(Reading::Device),
            ),
        ),
        condition(
            "systems",
            format!("SFS is `{}`, LFS-CB `{}`", term_in_full(volume::SFS), term_in_full(volume::LFS_CB)),
        ),
        condition("loads", loads.join("; ")),
        condition(
            "stand-ins",
            "the paper's TPC-C and RES traces are not public: block workloads with the skews that the paper cites \
             replace them; a file's hotness then adds nothing to its blocks' hotness"
                .to_string(),
        ),
        condition(
            "clock",
            "hotness is per block written on devices without times, per microsecond on devices with times (figures \
             9 and 11)"
                .to_string(),
        ),
    ]
}

/// The term of sfs with these options and all others; figures give the segment and the most dirty data of their scale.
fn term_in_full(options: &str) -> String {
    let path = Path::read(&format!("sfs:{options}/conv")).expect("the options are the figures' own");
    path.in_full.split('/').next().unwrap_or_default().to_string()
}

fn panel(title: &str, series: Vec<String>, groups: Vec<(String, Vec<Option<f64>>)>) -> Panel {
    Panel::new(title, series, groups)
}

fn claim(says: String, place: &str, low: Option<f64>, high: Option<f64>, ours: Option<f64>, because: &str) -> Claim {
    let ours = ours.filter(|value| value.is_finite());
    Claim { says, place: place.to_string(), low, high, ours, because: because.to_string(), shown_by: None }
}

/// A claim of one number.
fn exactly(says: String, place: &str, paper: f64, ours: f64, because: &str) -> Claim {
    claim(says, place, Some(paper), Some(paper), Some(ours), because)
}
